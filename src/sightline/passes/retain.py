"""The pass that retires images: images that the model can view again are replaced by one line each, in batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import accumulate, chain, repeat
from typing import NamedTuple

from sightline.model.facts import (
    CompareFile,
    ConversationHistory,
    Facts,
    Keep,
    KeptImage,
    Need,
    Needs,
    Probe,
    RecallHistory,
    Rules,
)
from sightline.model.fence import escape_for_brackets
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo, Sizing, count_image_tokens
from sightline.model.refusal import Refusal
from sightline.model.scene import InlineSource, Repeated, Retired, Scene, Sight, ToolCall
from sightline.passes.frontier import NEWEST_KEPT, HistoryImage, MessageTuple, Removal, compute_frontier

# Tools that open a file by its path and show its content, by the names that agents and servers give them.
_READER_NAMES = frozenset(
    """read readfile readfiles fileread fsread readimage readimagefile readmedia readmediafile
    view viewfile viewimage openfile openimage loadimage""".split()
)
_MAX_NAME = 240
_ASSUMED_SIZE = Size(1024, 1024)  # of an image that only the provider can measure


class _Recovery(NamedTuple):
    """How the model can see an image again."""

    tool: str
    path: str | None = None  # of the file, which must still have the image's bytes; None: the record has the image
    lost_at: int | None = None  # index of the message at which the file may have changed


def retain(scene: Scene, facts: Facts, rules: Rules) -> Scene | Needs:
    """Retire the images that the retention rule says have left the conversation by now."""
    retention = rules.retention
    if retention.is_off or rules.is_blind or scene.is_partial:
        return scene
    recoveries = _find_recoveries(scene, pasted=retention.includes_pasted)
    removals: Mapping[int, Removal] | Needs = {}
    if retention.kept_turns is not None:
        removals = _choose_by_turns(scene, recoveries, retention.kept_turns)
    elif recoveries:
        removals = _choose_by_cost(scene, recoveries, facts, rules)
    if isinstance(removals, Needs):
        return removals
    return _retire(scene, removals, recoveries, facts) if removals else scene


def _find_recoveries(scene: Scene, *, pasted: bool) -> dict[int, _Recovery]:
    """Return the sights that can be seen again, by index, and how."""
    found: dict[int, _Recovery] = {}
    if not pasted and "tool" not in [sight.role for sight in scene.sights]:
        return found
    own_tool = scene.find_own_tool("view_image")
    for index, sight in enumerate(scene.sights):
        if _is_undecided(sight) and isinstance(sight.source, InlineSource) and (pasted or sight.role == "tool"):
            recovery = _Recovery(own_tool) if own_tool else _find_reader(sight.call, scene.tools)
            if recovery and not sight.pixels_only:
                found[index] = recovery
    if found and own_tool is None:
        for index, lost_at in _find_overwrites(scene).items():
            if index in found:
                found[index] = found[index]._replace(lost_at=lost_at)
    return found


def _find_overwrites(scene: Scene) -> dict[int, int]:
    """Return the sights, by index, whose paths no longer lead to them, and the messages at which that begins.

    That is where reading the path gave something else, or where any tool other than a reader was given the path.
    """
    call_order = {call.id: order for order, (_, call) in enumerate(scene.file_calls)}
    writes_by_path: dict[str, list[tuple[int, int]]] = {}
    for order, (message, call) in enumerate(scene.file_calls):
        if call.path is not None and not _is_reader(call.name):
            writes_by_path.setdefault(call.path, []).append((order, message))
    lost: dict[int, int] = {}
    for path, results in _group_results(scene).items():
        writes = writes_by_path.get(path, [])
        if len(results) == 1 and not writes:  # the usual case
            continue
        later, changed_at = results[0][1], None  # the next result of the path, and the message where it differed
        for call, indexes in results:
            sources, message = [scene.sights[n].source for n in indexes], scene.sights[indexes[0]].message
            if sources != [scene.sights[n].source for n in later]:
                changed_at = scene.sights[later[0]].message
            later = indexes
            first = bisect_right(writes, (call_order.get(call.id, -1), len(scene.messages)))
            ends = [message for _, message in writes[first : first + 1]]
            if changed_at is not None:
                ends.append(changed_at)
            if ends:
                lost |= dict.fromkeys(indexes, max(min(ends), message))
    return lost


def _group_results(scene: Scene) -> dict[str, list[tuple[ToolCall, list[int]]]]:
    """Return by path the calls that returned images, the last call first, and the indexes of their sights."""
    found: dict[str, list[tuple[ToolCall, list[int]]]] = {}
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


def _is_undecided(sight: Sight) -> bool:
    return sight.fate is None


def _find_reader(call: ToolCall | None, tools: frozenset[str]) -> _Recovery | None:
    """Return how to see the image again if the model can repeat the call that read it from a file."""
    # A request without any tools, such as one for a summary, belongs to a conversation that has tools.
    if call is None or call.path is None or (tools and call.name not in tools):
        return None
    return _Recovery(call.name, call.path) if _is_reader(call.name) else None


@lru_cache(1024)
def _is_reader(tool: str) -> bool:
    name = tool.lower()
    for separator in ("__", ".", ":", "/"):  # after the name of the tool's server
        name = name.rpartition(separator)[2]
    return name.replace("_", "").replace("-", "") in _READER_NAMES


def _choose_by_turns(scene: Scene, recoveries: Mapping[int, _Recovery], turns: int) -> dict[int, Removal]:
    """Return the images that are older than a number of turns, except those that the model has not seen yet."""
    turn = list(accumulate(message.opens_turn for message in scene.messages))
    answers = (index for index, message in enumerate(scene.messages) if message.role == "assistant")
    last_answer = max(answers, default=-1)
    why = f"it is more than {turns} turns old" if turns else "it is from an earlier turn"
    removals: dict[int, Removal] = {}
    for index, recovery in recoveries.items():
        message = scene.sights[index].message
        removed_at = bisect_right(turn, turn[message] + turns)
        is_lost = recovery.lost_at is not None and removed_at >= recovery.lost_at
        if removed_at < len(turn) and message < last_answer and not is_lost:
            removals[index] = Removal(removed_at, why)
    return removals


def _choose_by_cost(
    scene: Scene, recoveries: Mapping[int, _Recovery], facts: Facts, rules: Rules
) -> dict[int, Removal] | Needs:
    """Return the images that cost more in the prompt cache than their removal.

    The history is needed from the first image on: the record must see every request to know when a cache is cold.
    """
    too_few = len(recoveries) <= NEWEST_KEPT
    indexes = [] if too_few else [index for index, sight in enumerate(scene.sights) if _is_undecided(sight)]
    probes = {n: Probe(source) for n in indexes if isinstance(source := scene.sights[n].source, InlineSource)}
    infos = facts.get_all(probes, ImageInfo)
    history = facts.get(RecallHistory(), ConversationHistory)
    if history is None or isinstance(infos, Needs):
        missing = infos.needs if isinstance(infos, Needs) else frozenset[Need]()
        return Needs(missing | ({RecallHistory()} if history is None else frozenset[Need]()))
    if not isinstance(history, ConversationHistory) or too_few:
        return {}
    indexes.sort(key=lambda index: scene.sights[index].message)
    sizing = rules.profile.sizing
    images = [_build_image(scene.sights[n], infos.get(n), sizing, recoveries.get(n)) for n in indexes]
    removals = compute_frontier(iter_history(scene, history), images, rules.profile.cache, rules.profile.limits)
    return {indexes[number]: removal for number, removal in removals.items()}


def iter_history(scene: Scene, history: ConversationHistory) -> Iterator[MessageTuple]:
    """Return the messages of a conversation as `compute_frontier` takes them."""
    by_assistant = [message.role == "assistant" for message in scene.messages]
    opens_turn = [message.opens_turn for message in scene.messages]
    cold = [index in history.cold_messages for index in range(len(scene.messages))]
    return zip(chain(history.tokens, repeat(0)), by_assistant, opens_turn, cold, strict=False)


def _build_image(
    sight: Sight, info: ImageInfo | Refusal | None, sizing: Sizing, recovery: _Recovery | None
) -> HistoryImage:
    if not isinstance(sight.source, InlineSource):
        return HistoryImage(sight.message, count_image_tokens(_ASSUMED_SIZE, sizing), is_permanent=True)
    if not isinstance(info, ImageInfo):  # it will be refused, and costs nothing
        return HistoryImage(sight.message, 0, is_permanent=True)
    cost, encoded, edge = count_image_tokens(info.size, sizing), len(sight.source.text), info.size.edge
    return HistoryImage(sight.message, cost, encoded, edge, recovery is None, recovery.lost_at if recovery else None)


def _retire(
    scene: Scene, removals: Mapping[int, Removal], recoveries: Mapping[int, _Recovery], facts: Facts
) -> Scene | Needs:
    """Retire images, except those whose file had other bytes at that point and those that the record cannot keep."""
    sources = {n: source for n in removals if isinstance(source := scene.sights[n].source, InlineSource)}
    files = {
        n: CompareFile(path, source, removals[n].message)
        for n, source in sources.items()
        if (path := recoveries[n].path) is not None
    }
    is_same = facts.get_all(files, bool)
    if isinstance(is_same, Needs):
        return is_same
    images = {n: Keep(source) for n, source in sources.items() if n not in files or is_same[n] is True}
    kept = facts.get_all(images, KeptImage)
    if isinstance(kept, Needs):
        return kept
    sights = list(scene.sights)
    for index, image in kept.items():
        if isinstance(image, KeptImage):
            line = _write_line(sights[index], image, recoveries[index])
            removal = removals[index]
            sights[index] = sights[index].with_fate(Retired(line, removal.why, removal.message))
    return scene.with_sights(tuple(sights)) if images else scene


def _write_line(sight: Sight, kept: KeptImage, recovery: _Recovery) -> str:
    """Tell the model what the image was and how to see it again. A file may change after that."""
    call, size = sight.call, kept.info.size
    name = (call.path or (f"from {call.name}" if call.name else "")) if call else ""
    what = f"{_shorten_name(name)} " if name else ""
    about = f"{kept.info.mime} {size.width}×{size.height}, sha256:{kept.sha256}"
    unless = "" if recovery.path is None else ", unless the file has changed"
    return f"[image {what}({about}) viewed earlier; call {_shorten_name(recovery.tool)} to see it again{unless}]"


@lru_cache(1024)
def _shorten_name(name: str) -> str:
    """Return the end of a name, escaped so that it cannot close the brackets around it."""
    short = name if len(name) <= _MAX_NAME else f"…{name[-_MAX_NAME:]}"
    return escape_for_brackets(short)
