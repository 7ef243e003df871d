"""What is this, really? Text that only looked like an image is left alone; an address is opened for the blind."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.facts import Facts, Fetch, Need, Needs, Probe
from sightline.model.fate import Refused
from sightline.model.image import Picture
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Inline, Link
from sightline.passes.together import told
from sightline.passes.words import absence


def resolve(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    looks = rules.paid and rules.mode != "off"
    opens = [looks and words for words in told(scene, rules)]
    pairs = list(zip(scene.sights, opens, strict=True))
    if not any(sight.within is not None or (opened and isinstance(sight.source, Link)) for sight, opened in pairs):
        return scene
    needs: set[Need] = set()
    sights: list[Sight] = []
    for sight, opened in pairs:
        outcome = _resolved(sight, facts, opens=opened) if sight.fate is None else sight
        if isinstance(outcome, Sight):
            sights.append(outcome)
        elif outcome is not None:
            needs.add(outcome)
    if needs:
        return Needs(frozenset(needs))
    return replace(scene, sights=tuple(sights))


def _resolved(sight: Sight, facts: Facts, *, opens: bool) -> Sight | Need | None:
    """The sight with its true source, what must be known first, or None for what is no image at all."""
    if isinstance(sight.source, Inline) and sight.within is not None:
        need: Need = Probe(sight.source)
        seen = facts.answer(need, Picture)
        return need if seen is None else None if isinstance(seen, Refusal) else sight
    if isinstance(sight.source, Link) and opens:
        need = Fetch(sight.source)
        match facts.answer(need, Inline):
            case None:
                return need
            case Refusal() as no:
                return sight.meets(Refused(absence(no, sight.filename), no))
            case Inline() as found:
                return replace(sight, source=found)
    return sight
