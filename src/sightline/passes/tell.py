"""Words for a model that is blind, or of a turn that is over: each image becomes its description, or one honest
sentence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from sightline.model.facts import Description, Facts, Joint, Look, Need, Needs
from sightline.model.fate import Fate, Refused, Shown, Told
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Source
from sightline.passes.together import groups, left, needed, said, told, turn_of, turns
from sightline.passes.tools import called
from sightline.passes.words import absence, description, joint

_OFF = Refusal(
    "not_permitted",
    "this model takes no images and describing them is switched off",
    "`sightline config set mode fallback` switches it on",
)
_UNSEEN = "word " * 600  # stands for a description of some 600 tokens where tokens are only counted


def tell(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    words = told(scene, rules)
    if not any(words):
        return scene
    found = groups(scene, rules)
    needs: set[Need] = {need for need in needed(found, rules) if need not in facts}
    sights: list[Sight] = []
    asker = called(scene, "analyze_image")
    for sight, look, spoken in zip(scene.sights, _looks(scene, rules), words, strict=True):
        if not spoken:
            sights.append(sight)
            continue
        outcome = sight.fate or (Shown() if sight.fixed else None) or _fate(sight, look, facts, rules, asker)
        if isinstance(outcome, Look):
            needs.add(outcome)
        else:
            sights.append(sight.meets(outcome))
    if needs:
        return Needs(frozenset(needs))
    done = replace(scene, sights=tuple(sights))
    joint_words = said(found, facts)
    return _beside(done, joint_words, left(done, found, joint_words, facts, rules)) if joint_words else done


def _looks(scene: Scene, rules: Rules) -> list[Look]:
    """The look at each sight. An image that stands twice in one turn is looked at once."""
    # The newest are described first: a look at each of a long history could cost more than the history is worth.
    newest = len(scene.sights) - rules.max_images if rules.max_images else 0
    turn, first = turns(scene), dict[tuple[Source, int], int]()
    looks = []
    for index, sight in enumerate(scene.sights):
        message = first.setdefault((sight.source, turn_of(sight, turn)), sight.message)
        looks.append(Look(sight.source, not rules.paid, message, beyond=index < newest))
    return looks


def _fate(sight: Sight, look: Look, facts: Facts, rules: Rules, asker: str | None) -> Fate | Look:
    if rules.mode == "off":
        return Refused(absence(_OFF, sight.filename), _OFF)
    match facts.answer(look, Description):
        case None:
            return look
        case Description() as seen:
            return Told(description(seen, sight.filename, asker), seen.seer, seen.size)
        case Refusal() if not rules.paid:
            return Told(_UNSEEN, "nobody yet")
        case Refusal() as no:
            return Refused(absence(no, sight.filename), no)


def _beside(scene: Scene, words: Mapping[int, Joint], gone: Mapping[int, str]) -> Scene:
    """What several images show together stands beside the last of them, until it leaves; the receipt says both."""
    sights = list(scene.sights)
    for index, seen in words.items():
        fate = sights[index].fate
        assert isinstance(fate, Told | Refused), "nothing else is told"
        if index not in gone:
            fate = replace(fate, words=f"{fate.words}\n{joint(seen)}")
        if isinstance(fate, Told):
            what = f"{len(seen.images)} images together"
            why = f"; {what} no longer ({gone[index]})" if index in gone else f", {what} by {seen.seer}"
            fate = replace(fate, seer=f"{fate.seer}{why}")
        sights[index] = replace(sights[index], fate=fate)
    return replace(scene, sights=tuple(sights))
