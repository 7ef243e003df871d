"""Images that were seen and can be seen again give their places to a line about them, seldom and many at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, chain, groupby, repeat

from sightline.model.facts import Facts, History, Keep, Kept, Need, Needs, Present, Probe, Recall
from sightline.model.fate import Repeated, Retired
from sightline.model.fence import one_line
from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.rules import Rules
from sightline.model.scene import Call, Scene, Sight
from sightline.model.sizing import tokens
from sightline.model.source import Inline
from sightline.passes.frontier import NEWEST, Beat, Left, View, frontier
from sightline.passes.tools import called

# The tools that open a file by its path and show what is in it, by the names that agents and servers give them.
_READERS = frozenset(
    """read readfile readfiles fileread fsread readimage readimagefile readmedia readmediafile
    view viewfile viewimage openfile openimage loadimage""".split()
)
_LONGEST_NAME = 240
_UNSEEN = Size(1024, 1024)  # stands for an image that only the provider can measure


@dataclass(frozen=True, slots=True)
class _Way:
    """How an image can be seen again."""

    tool: str
    path: str | None = None  # of the file that has to be there still; None: the record holds it
    lost: int | None = None  # the message that shows that the file has another content by then


def retain(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    retention = rules.retention
    if retention.off or rules.blind or scene.partial:
        return scene
    ways = _ways(scene, pasted=retention.pasted)
    leaving: Mapping[int, Left] | Needs = {}
    if retention.turns is not None:
        leaving = _by_turns(scene, ways, retention.turns)
    elif ways:
        leaving = _by_cost(scene, ways, facts, rules)
    return leaving if isinstance(leaving, Needs) else _retired(scene, leaving, ways, facts)


def _ways(scene: Scene, *, pasted: bool) -> dict[int, _Way]:
    """By their indexes, the sights that can be seen again."""
    ours = called(scene, "view_image")
    found: dict[int, _Way] = {}
    for index, sight in enumerate(scene.sights):
        if _has_pixels(sight) and isinstance(sight.source, Inline) and (pasted or sight.role == "tool"):
            way = _Way(ours) if ours else _read_again(sight.call, scene.tools)
            if way and not sight.fixed:
                found[index] = way
    lost = _overwritten(scene) if any(way.path is not None for way in found.values()) else {}
    return {i: replace(way, lost=lost[i]) if way.path is not None and i in lost else way for i, way in found.items()}


def _overwritten(scene: Scene) -> dict[int, int]:
    """By their indexes, the sights whose paths do not bring them back, and the messages from which on that is so.

    There the path brought something else, or may have: any tool but one that reads was given it.
    """
    made = {call.id: order for order, (_, call) in enumerate(scene.calls)}
    written: dict[str, list[tuple[int, int]]] = {}
    for order, (message, call) in enumerate(scene.calls):
        if call.path is not None and not _reads(call):
            written.setdefault(call.path, []).append((order, message))
    lost: dict[int, int] = {}
    after: dict[str, tuple[list[Sight], int | None]] = {}  # by path: what it brought next, and where that was another
    for path, indexes in _results(scene):
        brought = [scene.sights[index] for index in indexes]
        later, changed = after.get(path, (brought, None))
        same = [each.source for each in later] == [each.source for each in brought]
        other = changed if same else later[0].message
        after[path] = brought, other
        writes = written.get(path, [])
        first = bisect_right(writes, (made.get(_origin(brought[0])[1], -1), len(scene.messages)))
        ends = [*([] if other is None else [other]), *(message for _, message in writes[first : first + 1])]
        if ends:
            lost |= dict.fromkeys(indexes, max(min(ends), brought[0].message))
    return lost


def _results(scene: Scene) -> Iterator[tuple[str, list[int]]]:
    """What each call brought from its path, by indexes, the last call first."""
    shown = (n for n in range(len(scene.sights) - 1, -1, -1) if not isinstance(scene.sights[n].fate, Repeated))
    for (path, *_), group in groupby(shown, key=lambda n: _origin(scene.sights[n])):
        if path is not None:
            yield path, [*group]


def _origin(sight: Sight) -> tuple[str | None, str, int]:
    call = sight.call
    return (call.path, call.id, sight.message) if call is not None else (None, "", sight.message)


def _has_pixels(sight: Sight) -> bool:
    """As far as the passes before this one have decided."""
    return sight.fate is None


def _read_again(call: Call | None, tools: frozenset[str]) -> _Way | None:
    """The way of a call that read a file, if it can be made once more."""
    # A request that offers no tools at all is a moment of a conversation that has some, such as its summary.
    if call is None or call.path is None or (tools and call.name not in tools):
        return None
    return _Way(call.name, call.path) if _reads(call) else None


def _reads(call: Call) -> bool:
    name = call.name.lower()
    for mark in ("__", ".", ":", "/"):  # behind the name of the server that offers it
        name = name.rpartition(mark)[2]
    return name.replace("_", "").replace("-", "") in _READERS


def _by_turns(scene: Scene, ways: Mapping[int, _Way], turns: int) -> dict[int, Left]:
    """The simple rule: the images of this turn stay, and of so many before it. What nobody has seen yet stays too."""
    turn = list(accumulate(message.opens for message in scene.messages))
    spoken = max((index for index, message in enumerate(scene.messages) if message.role == "assistant"), default=-1)
    why = f"it is more than {turns} turns old" if turns else "it is of an earlier turn"
    left: dict[int, Left] = {}
    for index, way in ways.items():
        message = scene.sights[index].message
        gone = bisect_right(turn, turn[message] + turns)
        if gone < len(turn) and message < spoken and (way.lost is None or gone < way.lost):
            left[index] = Left(gone, why)
    return left


def _by_cost(scene: Scene, ways: Mapping[int, _Way], facts: Facts, rules: Rules) -> dict[int, Left] | Needs:
    """From the first image on the record hears of the conversation, or it could not say later that it had been idle."""
    few = len(ways) <= NEWEST
    sights = [(index, sight) for index, sight in enumerate(scene.sights) if _has_pixels(sight) and not few]
    probes = (Probe(sight.source) for _, sight in sights if isinstance(sight.source, Inline))
    if needs := _unknown([Recall(), *probes], facts):
        return needs
    history = facts.answer(Recall(), History)
    if not isinstance(history, History) or few:
        return {}
    sights.sort(key=lambda each: each[1].message)
    views = [_view(sight, facts, rules, ways.get(index)) for index, sight in sights]
    left = frontier(beats(scene, history), views, rules.profile.cache, rules.profile.limits)
    return {sights[number][0]: each for number, each in left.items()}


def beats(scene: Scene, history: History) -> list[Beat]:
    lengths = chain(history.tokens, repeat(0))
    return [
        Beat(length, message.role == "assistant", message.opens, index in history.cold)
        for index, (message, length) in enumerate(zip(scene.messages, lengths, strict=False))
    ]


def _view(sight: Sight, facts: Facts, rules: Rules, way: _Way | None) -> View:
    sizing = rules.profile.sizing
    if not isinstance(sight.source, Inline):
        return View(sight.message, tokens(_UNSEEN, sizing), stays=True)
    seen = facts.answer(Probe(sight.source), Picture)
    if not isinstance(seen, Picture):  # whatever it is, it will not be shown
        return View(sight.message, 0, stays=True)
    cost = tokens(seen.size, sizing)
    if way is None:
        return View(sight.message, cost, len(sight.source.text), seen.size.edge, stays=True)
    return View(sight.message, cost, len(sight.source.text), seen.size.edge, lost=way.lost)


def _retired(scene: Scene, leaving: Mapping[int, Left], ways: Mapping[int, _Way], facts: Facts) -> Scene | Needs:
    """What was not there to be seen again when it would have left, or cannot be kept, stays; the others leave."""
    files = {
        index: Present(path, left.message) for index, left in leaving.items() if (path := ways[index].path) is not None
    }
    if needs := _unknown(files.values(), facts):
        return needs
    there = [index for index in leaving if index not in files or facts.answer(files[index], bool) is True]
    images = {index: source for index in there if isinstance(source := scene.sights[index].source, Inline)}
    if needs := _unknown(map(Keep, images.values()), facts):
        return needs
    sights = list(scene.sights)
    for index, source in images.items():
        kept = facts.answer(Keep(source), Kept)
        if isinstance(kept, Kept):
            line = _line(sights[index], kept, ways[index])
            sights[index] = sights[index].meets(Retired(line, leaving[index].why))
    return replace(scene, sights=tuple(sights)) if images else scene


def _unknown(needs: Iterable[Need], facts: Facts) -> Needs | None:
    missing = frozenset(need for need in needs if need not in facts)
    return Needs(missing) if missing else None


def _line(sight: Sight, kept: Kept, way: _Way) -> str:
    """What it was and how to see it again, for the model. Nobody can promise that a file will stay as it is."""
    call, size = sight.call, kept.picture.size
    name = (call.path or (f"from {call.name}" if call.name else "")) if call else ""
    what = f"{_within_brackets(name)} " if name else ""
    about = f"{kept.picture.mime} {size.width}×{size.height}, sha256:{kept.sha256}"
    unless = "" if way.path is None else ", unless the file has changed"
    return f"[image {what}({about}) viewed earlier; call {_within_brackets(way.tool)} to see it again{unless}]"


@lru_cache(1024)
def _within_brackets(name: str) -> str:
    """A name that cannot end the brackets around it, nor be longer than the image is worth."""
    short = name if len(name) <= _LONGEST_NAME else f"…{name[-_LONGEST_NAME:]}"
    return one_line(short.replace("[", "?").replace("]", "?"))
