"""What a lesson makes of a profile: the upstream's own word outranks the table, the user's outranks both."""

from __future__ import annotations

from sightline.model.profile import Lesson, Limits
from sightline.profiles.lookup import Override, profile
from tests.requirements import requirement

SEES = Lesson(blind=False, why="it named the colours")
BLIND = Lesson(blind=True, why="it said so")


@requirement("probe.used")
def test_a_trial_outranks_the_table_in_both_directions() -> None:
    pro = profile("deepseek", "openai_chat", "deepseek-v4-pro")
    assert pro.vision is False
    assert (pro.learnt(SEES).vision, pro.learnt(SEES).why) == (True, "it named the colours")
    claude = profile("anthropic", "anthropic", "claude-x")
    assert (claude.learnt(BLIND).vision, claude.learnt(BLIND).why) == (False, "it said so")


def test_a_lesson_about_limits_says_nothing_about_sight() -> None:
    pro = profile("deepseek", "openai_chat", "deepseek-v4-pro")
    after = pro.learnt(Lesson(limits=Limits(count=3), why="too many"))
    assert (after.vision, after.why, after.limits.count) == (False, pro.why, 3)


@requirement("probe.used")
def test_where_images_of_tools_go_is_learnt_for_the_wire_that_was_tried() -> None:
    taught = Lesson(why="tried", tool_images={"openai_chat": "native"})
    assert profile("", "openai_chat", "m").tool_images == "hoist"
    assert profile("", "openai_chat", "m").learnt(taught).tool_images == "native"
    assert profile("", "anthropic", "m").learnt(Lesson(tool_images={"openai_chat": "hoist"})).tool_images == "native"


@requirement("profile.user_first")
def test_what_the_user_has_said_stays() -> None:
    said = [Override("m", vision=False, tool_images=False)]
    taught = Lesson(blind=False, why="tried", tool_images={"openai_chat": "native"})
    after = profile("", "openai_chat", "m", said).learnt(taught)
    assert (after.vision, after.tool_images) == (False, "hoist")
    assert profile("", "openai_chat", "m", hoist=True).learnt(taught).tool_images == "hoist"
