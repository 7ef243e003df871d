"""The words beside a sight: the name of the call that a moved image came from, and the reference of a pasted one."""

from __future__ import annotations

from sightline.model.facts import Facts, Keep, Kept, Need, Needs
from sightline.model.fate import Refitted, Shown
from sightline.model.marks import label as named
from sightline.model.marks import reference
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Inline

_SAID = ("user", "tool")  # a user's words may stand in one message with what tools brought


def refer(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    if not rules.references:
        return scene
    pasted = ((sight.place, sight.source) for sight in scene.sights if _is_pasted(sight, scene))
    kept = {place: Keep(source) for place, source in pasted if isinstance(source, Inline)}
    if not kept:
        return scene
    needs: frozenset[Need] = frozenset(need for need in kept.values() if need not in facts)
    if needs:
        return Needs(needs)
    return scene.with_sights(tuple(_named(sight, kept.get(sight.place), facts) for sight in scene.sights))


def _is_pasted(sight: Sight, scene: Scene) -> bool:
    """Did a user put these pixels there, and do they go on as such?"""
    speaks = sight.message >= len(scene.messages) or scene.messages[sight.message].role in _SAID
    return sight.role == "user" and speaks and isinstance(sight.fate, Shown | Refitted)


def _named(sight: Sight, need: Keep | None, facts: Facts) -> Sight:
    """What the record could not take has no name that anybody could use."""
    kept = facts.answer(need, Kept) if need else None
    return sight.revised(reference(kept.sha256), sight.fate) if isinstance(kept, Kept) else sight


def label(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    if rules.profile.tool_images == "native":
        return scene
    return scene.with_sights(tuple(map(_labelled, scene.sights)))


def _labelled(sight: Sight) -> Sight:
    moves = sight.role == "tool" and not sight.hoisted and isinstance(sight.fate, (Shown, Refitted))
    return sight.revised(named(sight.call), sight.fate) if moves and sight.call else sight
