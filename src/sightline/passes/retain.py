"""Images that were seen and can be seen again give their places to a line about them, seldom and many at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate, chain, repeat
from typing import NamedTuple

from sightline.model.facts import Facts, History, Keep, Kept, Need, Needs, Present, Probe, Recall
from sightline.model.fate import Repeated, Retired
from sightline.model.fence import in_brackets
from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Call, Scene, Sight
from sightline.model.sizing import Sizing, tokens
from sightline.model.source import Inline
from sightline.passes.frontier import NEWEST, AnyBeat, Left, View, frontier
from sightline.passes.tools import called

# The tools that open a file by its path and show what is in it, by the names that agents and servers give them.
_READERS = frozenset(
    """read readfile readfiles fileread fsread readimage readimagefile readmedia readmediafile
    view viewfile viewimage openfile openimage loadimage""".split()
)
_LONGEST_NAME = 240
_UNSEEN = Size(1024, 1024)  # stands for an image that only the provider can measure


class _Way(NamedTuple):
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
    if found and ours is None:
        for index, lost in _overwritten(scene).items():
            if index in found:
                found[index] = found[index]._replace(lost=lost)
    return found


def _overwritten(scene: Scene) -> dict[int, int]:
    """By their indexes, the sights whose paths do not bring them back, and the messages from which on that is so.

    There the path brought something else, or may have: any tool but one that reads was given it.
    """
    made = {call.id: order for order, (_, call) in enumerate(scene.calls)}
    written: dict[str, list[tuple[int, int]]] = {}
    for order, (message, call) in enumerate(scene.calls):
        if call.path is not None and not _reads(call.name):
            written.setdefault(call.path, []).append((order, message))
    lost: dict[int, int] = {}
    for path, results in _results(scene).items():
        writes = written.get(path, [])
        if len(results) == 1 and not writes:  # as it mostly is
            continue
        later, other = results[0][1], None  # what it brought next, and where that was another
        for call, indexes in results:
            brought, message = [scene.sights[n].source for n in indexes], scene.sights[indexes[0]].message
            if brought != [scene.sights[n].source for n in later]:
                other = scene.sights[later[0]].message
            later = indexes
            first = bisect_right(writes, (made.get(call.id, -1), len(scene.messages)))
            ends = [*([] if other is None else [other]), *(message for _, message in writes[first : first + 1])]
            if ends:
                lost |= dict.fromkeys(indexes, max(min(ends), message))
    return lost


def _results(scene: Scene) -> dict[str, list[tuple[Call, list[int]]]]:
    """By path, the calls that brought something from it, the last one first, and what each brought, by indexes."""
    found: dict[str, list[tuple[Call, list[int]]]] = {}
    last: tuple[str, str, int] | None = None
    for index in range(len(scene.sights) - 1, -1, -1):
        sight = scene.sights[index]
        call = sight.call
        if isinstance(sight.fate, Repeated):
            continue
        if call is None or call.path is None:
            last = None
        elif last == (origin := (call.path, call.id, sight.message)):
            found[call.path][-1][1].append(index)
        else:
            found.setdefault(call.path, []).append((call, [index]))
            last = origin
    return found


def _has_pixels(sight: Sight) -> bool:
    """As far as the passes before this one have decided."""
    return sight.fate is None


def _read_again(call: Call | None, tools: frozenset[str]) -> _Way | None:
    """The way of a call that read a file, if it can be made once more."""
    # A request that offers no tools at all is a moment of a conversation that has some, such as its summary.
    if call is None or call.path is None or (tools and call.name not in tools):
        return None
    return _Way(call.name, call.path) if _reads(call.name) else None


@lru_cache(1024)
def _reads(tool: str) -> bool:
    name = tool.lower()
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
    shown = [] if few else [index for index, sight in enumerate(scene.sights) if _has_pixels(sight)]
    probes = {n: Probe(source) for n in shown if isinstance(source := scene.sights[n].source, Inline)}
    pictures = facts.answers(probes, Picture)
    history = facts.answer(Recall(), History)
    if history is None or isinstance(pictures, Needs):
        unseen = pictures.needs if isinstance(pictures, Needs) else frozenset[Need]()
        return Needs(unseen | ({Recall()} if history is None else frozenset[Need]()))
    if not isinstance(history, History) or few:
        return {}
    shown.sort(key=lambda index: scene.sights[index].message)
    views = [_view(scene.sights[n], pictures.get(n), rules.profile.sizing, ways.get(n)) for n in shown]
    left = frontier(beats(scene, history), views, rules.profile.cache, rules.profile.limits)
    return {shown[number]: each for number, each in left.items()}


def beats(scene: Scene, history: History) -> Iterator[AnyBeat]:
    speaks = [message.role == "assistant" for message in scene.messages]
    opens = [message.opens for message in scene.messages]
    cold = [index in history.cold for index in range(len(scene.messages))]
    return zip(chain(history.tokens, repeat(0)), speaks, opens, cold, strict=False)


def _view(sight: Sight, seen: Picture | Refusal | None, sizing: Sizing, way: _Way | None) -> View:
    if not isinstance(sight.source, Inline):
        return View(sight.message, tokens(_UNSEEN, sizing), stays=True)
    if not isinstance(seen, Picture):  # whatever it is, it will not be shown
        return View(sight.message, 0, stays=True)
    cost, encoded, edge = tokens(seen.size, sizing), len(sight.source.text), seen.size.edge
    return View(sight.message, cost, encoded, edge, way is None, way.lost if way else None)


def _retired(scene: Scene, leaving: Mapping[int, Left], ways: Mapping[int, _Way], facts: Facts) -> Scene | Needs:
    """What was not there to be seen again when it would have left, or cannot be kept, stays; the others leave."""
    files = {n: Present(path, left.message) for n, left in leaving.items() if (path := ways[n].path) is not None}
    there = facts.answers(files, bool)
    if isinstance(there, Needs):
        return there
    images = {
        n: Keep(source)
        for n in leaving
        if (n not in files or there[n] is True) and isinstance(source := scene.sights[n].source, Inline)
    }
    kept = facts.answers(images, Kept)
    if isinstance(kept, Needs):
        return kept
    sights = list(scene.sights)
    for index, safe in kept.items():
        if isinstance(safe, Kept):
            line = _line(sights[index], safe, ways[index])
            sights[index] = sights[index].meets(Retired(line, leaving[index].why))
    return scene.with_sights(tuple(sights)) if images else scene


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
    return in_brackets(short)
