"""Decisions: each pass gives sights their fates, or returns what it must know first. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sightline.model.facts import Facts, Needs, Rules
from sightline.model.scene import Scene
from sightline.passes.permit import deduplicate, permit, resolve
from sightline.passes.retain import retain
from sightline.passes.show import fit, label, refer
from sightline.passes.tell import tell

Pass = Callable[[Scene, Facts, Rules], Scene | Needs]

PASSES: Sequence[Pass] = (permit, resolve, deduplicate, tell, retain, fit, label, refer)


def decide(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """Return the scene with a fate for every sight, or what the first pass that cannot decide needs to know."""
    for run_pass in PASSES:
        outcome = run_pass(scene, facts, rules)
        if isinstance(outcome, Needs):
            return outcome
        scene = outcome
    return scene
