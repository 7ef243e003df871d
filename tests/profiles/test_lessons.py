"""Lessons: what an upstream says overrides the presets, and the user's settings override both."""

from __future__ import annotations

from sightline.model.profile import ImageLimits, Lesson
from sightline.profiles.profile_lookup import ProfileOverride, look_up_profile
from tests.requirements import requirement

SEES = Lesson(blind=False, why="it named the colours")
BLIND = Lesson(blind=True, why="it said so")


@requirement("probe.used")
def test_a_trial_overrides_the_preset_in_both_directions() -> None:
    pro = look_up_profile("deepseek", "openai_chat", "deepseek-v4-pro")
    assert pro.vision is False
    assert (pro.apply_lesson(SEES).vision, pro.apply_lesson(SEES).why) == (True, "it named the colours")
    claude = look_up_profile("anthropic", "anthropic", "claude-x")
    assert (claude.apply_lesson(BLIND).vision, claude.apply_lesson(BLIND).why) == (False, "it said so")


def test_a_lesson_about_limits_does_not_change_vision() -> None:
    pro = look_up_profile("deepseek", "openai_chat", "deepseek-v4-pro")
    after = pro.apply_lesson(Lesson(limits=ImageLimits(count=3), why="too many"))
    assert (after.vision, after.why, after.limits.count) == (False, pro.why, 3)


@requirement("probe.used")
def test_placement_is_learned_only_for_the_tried_wire() -> None:
    taught = Lesson(why="tried", tool_images={"openai_chat": "native"})
    assert look_up_profile("", "openai_chat", "m").tool_images == "hoist"
    assert look_up_profile("", "openai_chat", "m").apply_lesson(taught).tool_images == "native"
    assert (
        look_up_profile("", "anthropic", "m").apply_lesson(Lesson(tool_images={"openai_chat": "hoist"})).tool_images
        == "native"
    )


@requirement("profile.user_first")
def test_the_users_settings_stay() -> None:
    said = [ProfileOverride("m", vision=False, tool_images=False)]
    taught = Lesson(blind=False, why="tried", tool_images={"openai_chat": "native"})
    after = look_up_profile("", "openai_chat", "m", said).apply_lesson(taught)
    assert (after.vision, after.tool_images) == (False, "hoist")
    assert look_up_profile("", "openai_chat", "m", hoist=True).apply_lesson(taught).tool_images == "hoist"
