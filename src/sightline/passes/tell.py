"""Words for a model that is blind: each image becomes its description, or one honest sentence."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.facts import Description, Facts, Look, Need, Needs
from sightline.model.fate import Fate, Refused, Shown, Told
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.passes.words import absence, description

_OFF = Refusal(
    "not_permitted",
    "this model takes no images and describing them is switched off",
    "`sightline config set mode fallback` switches it on",
)
_TOO_MANY = Refusal(
    "unavailable",
    "only the newest images of a request are described and it is not among them",
    "`sightline config set maxImagesPerTurn` raises their number",
)
_UNSEEN = "word " * 600  # stands for a description of some 600 tokens where tokens are only counted


def tell(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    if not rules.blind:
        return scene
    # The newest are described first: a look at each of a long history could cost more than the history is worth.
    newest = len(scene.sights) - rules.max_images if rules.max_images else 0
    needs: set[Need] = set()
    sights: list[Sight] = []
    for index, sight in enumerate(scene.sights):
        outcome = (
            sight.fate
            or (Shown() if sight.fixed else None)
            or _fate(sight, facts, rules, paid=rules.paid and index >= newest)
        )
        if isinstance(outcome, Look):
            needs.add(outcome)
        else:
            sights.append(sight.meets(outcome))
    return Needs(frozenset(needs)) if needs else replace(scene, sights=tuple(sights))


def _fate(sight: Sight, facts: Facts, rules: Rules, paid: bool) -> Fate | Look:
    if rules.mode == "off":
        return Refused(absence(_OFF, sight.filename), _OFF)
    need = Look(sight.source, remembered_only=not paid)
    match facts.answer(need, Description):
        case None:
            return need
        case Description() as seen:
            return Told(description(seen, sight.filename), seen.seer)
        case Refusal() if not rules.paid:
            return Told(_UNSEEN, "nobody yet")
        case Refusal(code="pending") if not paid:
            return Refused(absence(_TOO_MANY, sight.filename), _TOO_MANY)
        case Refusal() as no:
            return Refused(absence(no, sight.filename), no)
