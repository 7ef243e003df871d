"""Decisions, pure: each pass gives sights their fates, or says what it must know first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sightline.model.facts import Facts, Needs
from sightline.model.rules import Rules
from sightline.model.scene import Scene
from sightline.passes.fit import fit
from sightline.passes.label import label, refer
from sightline.passes.once import once
from sightline.passes.permit import permit
from sightline.passes.resolve import resolve
from sightline.passes.retain import retain
from sightline.passes.tell import tell

Pass = Callable[[Scene, Facts, Rules], Scene | Needs]

PASSES: Sequence[Pass] = (permit, resolve, once, tell, retain, fit, label, refer)


def decide(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """The scene with a fate for every sight, or what the first undecided pass lacks."""
    for each in PASSES:
        outcome = each(scene, facts, rules)
        if isinstance(outcome, Needs):
            return outcome
        scene = outcome
    return scene
