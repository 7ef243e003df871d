"""Which images of a turn are looked at together, where what was seen of them stands, and when it leaves.

A turn may bring more images with each of its steps, and each time all that it has by then are looked at together. What
was said at an earlier step stays where it was said: whatever stands behind it would else have to be read anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from sightline.model.base64_text import PER_TOKEN
from sightline.model.facts import Compare, Facts, History, Joint, Need, Recall
from sightline.model.fate import Refused, Told
from sightline.model.profile import Limits
from sightline.model.rules import Routing, Rules
from sightline.model.scene import Scene, Sight
from sightline.model.source import Inline
from sightline.passes.frontier import View, frontier
from sightline.passes.retain import beats
from sightline.passes.words import joint

_ALWAYS = 1 << 30  # steps: as long as its turn goes on, nothing that was said of it grows old
_BEFORE = -1  # the turn of what stands before anybody has said a word
OVER = "its turn is over"


@dataclass(frozen=True, slots=True)
class Group:
    """The images of a turn, up to one of its steps."""

    beside: int  # the index of the last one's sight, where that stands which is said of all
    turn: int
    need: Compare


def turns(scene: Scene) -> list[int]:
    """For each message, the one with which its turn begins."""
    opened = (index if message.opens else _BEFORE for index, message in enumerate(scene.messages))
    return list(accumulate(opened, max))


def turn_of(sight: Sight, turn: Sequence[int]) -> int:
    return turn[sight.message] if sight.message < len(turn) else _BEFORE


def told(scene: Scene, rules: Rules) -> list[bool]:
    """For each sight, whether it is told in words: all for the blind; where pixels are for one turn, the others'."""
    if rules.blind or not rules.by_turn:
        return [rules.blind] * len(scene.sights)
    turn = turns(scene)
    now = turn[-1] if turn else _BEFORE
    return [turn_of(sight, turn) != now and not sight.fixed for sight in scene.sights]


def groups(scene: Scene, rules: Rules) -> list[Group]:
    """One for each step that brought a turn more images, as long as there are not too many of them."""
    most = min(rules.max_batch, rules.max_images or rules.max_batch)
    if rules.mode == "off" or most < 2 or len(scene.sights) < 2:
        return []
    turn, words = turns(scene), told(scene, rules)
    loose = [(index, sight) for index, sight in enumerate(scene.sights) if words[index] and not sight.fixed]
    return [
        group
        for number, brought in groupby(loose, key=lambda each: turn_of(each[1], turn))
        for group in _of_turn(number, list(brought), scene, rules, most)
    ]


def _of_turn(
    number: int, brought: Sequence[tuple[int, Sight]], scene: Scene, rules: Rules, most: int
) -> Iterator[Group]:
    seen: dict[str, Sight] = {}
    broken = False
    ends, last = scene.ends, len(scene.messages) - 1
    for step, arrived in groupby(brought, key=lambda each: bisect_left(ends, each[1].message)):
        known, beside = len(seen), -1
        for index, sight in arrived:
            if sight.fate is None and isinstance(sight.source, Inline):
                seen.setdefault(sight.source.key, sight)
                beside = index
            else:
                broken = True
        if len(seen) + broken > most:
            return
        if len(seen) > known and len(seen) + broken > 1:  # only what the newest step brought is looked at now
            newest = step >= len(ends) or ends[step] == last
            yield Group(beside, number, _need(scene.sights[beside], seen, not (newest and rules.paid), not broken))


def _need(last: Sight, seen: Mapping[str, Sight], remembered_only: bool, whole: bool) -> Compare:
    images = tuple(sight.source for sight in seen.values() if isinstance(sight.source, Inline))
    return Compare(images, tuple(sight.filename or "" for sight in seen.values()), last.message, remembered_only, whole)


def needed(found: Sequence[Group], rules: Rules) -> Iterator[Need]:
    """From the first such look on the record hears of the conversation, or it could not say when its cache is cold."""
    yield from (group.need for group in found)
    if found and _turns_kept(rules) is None:
        yield Recall()


def _turns_kept(rules: Rules) -> int | None:
    """After how many turns such words leave by themselves; None: as the cost of keeping them says."""
    return 0 if rules.joint_turns else rules.retention.turns


def said(found: Sequence[Group], facts: Facts) -> dict[int, Joint]:
    """By the sight beside which it stands, all that was ever said."""
    answers = ((group.beside, facts.answer(group.need, Joint)) for group in found)
    return {beside: seen for beside, seen in answers if isinstance(seen, Joint)}


def left(
    scene: Scene, found: Sequence[Group], words: Mapping[int, Joint], facts: Facts, rules: Rules
) -> dict[int, str]:
    """What is said no longer, and why; `scene` is the one in which each image has been told."""
    keeps = _turns_kept(rules)
    if keeps is not None:
        opened = sorted({_BEFORE, *turns(scene)})
        ages = {group.beside: len(opened) - 1 - opened.index(group.turn) for group in found}
        return {beside: OVER for beside in words if ages[beside] > keeps}
    history = facts.answer(Recall(), History)
    if not isinstance(history, History) or rules.retention.off or scene.partial:
        return {}
    return _retired(scene, words, history, rules)


def _retired(scene: Scene, words: Mapping[int, Joint], history: History, rules: Rules) -> dict[int, str]:
    """The fold that retires images takes these out as well: those of earlier turns, when they no longer pay."""
    views: list[tuple[int, View]] = []
    for index, sight in enumerate(scene.sights):
        if isinstance(sight.fate, Told | Refused):
            views.append((index, View(sight.message, _tokens(sight.fate.words), stays=True)))
        if index in words:
            views.append((index, View(sight.message, _tokens(joint(words[index])))))
    numbers = [view for _, view in views]
    gone = frontier(beats(scene, history), numbers, rules.profile.cache, Limits(), newest=0, window=_ALWAYS)
    return {views[number][0]: each.why for number, each in gone.items()}


def _tokens(words: str) -> int:
    return len(words) // PER_TOKEN


def route(scene: Scene, image_model: str) -> Routing:
    """The way of a request, all of whose sights are images."""
    turn = turns(scene)
    first: dict[int, int] = {}  # by turn: the message in which its first image stands
    for sight in scene.sights:
        opened = turn_of(sight, turn)
        first[opened] = min(sight.message, first.get(opened, sight.message))
    now = turn[-1] if turn else -1
    to_images = now in first
    said = [index for index, message in enumerate(scene.messages) if message.role == "assistant"]
    seeing = {index for index in said if turn[index] in first and index > first[turn[index]]}
    strangers = frozenset(said) - seeing if to_images else frozenset(seeing)
    return Routing(image_model if to_images else scene.model, scene.model, now, strangers)
