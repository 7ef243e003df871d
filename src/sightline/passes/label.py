"""The words beside a sight: an image that is moved away from its tool call is led by the name of that call."""

from __future__ import annotations

from sightline.model.facts import Facts, Needs
from sightline.model.fate import Refitted, Shown
from sightline.model.marks import label as named
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight


def label(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    if rules.profile.tool_images == "native":
        return scene
    return scene.with_sights(tuple(map(_labelled, scene.sights)))


def _labelled(sight: Sight) -> Sight:
    moves = sight.role == "tool" and not sight.hoisted and isinstance(sight.fate, (Shown, Refitted))
    return sight.revised(named(sight.call), sight.fate) if moves and sight.call else sight
