"""Calls of ours on the Responses wire: an answer is a run of items here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, takewhile

from sightline.model.edit import Edit, Insert
from sightline.model.scene import Json
from sightline.wire.shape import entries, items, text_in, value_in
from sightline.wire.sse import write_event
from sightline.wire.tool_loop.leg import (
    OTHER,
    Atom,
    Block,
    Called,
    Leg,
    Offer,
    Past,
    Result,
    Run,
    Thought,
    Words,
    arguments,
    mapping,
    seen,
    summed,
)
from sightline.wire.tool_loop.listener import StreamListener
from sightline.wire.tool_loop.weaving import FEW, in_order
from sightline.wire.tool_loop.weaving import woven as cut

ITEMS = "input"
_OUTPUT = ("output_tokens", "output_tokens_details")
_ENDS = {f"response.{end}" for end in ("completed", "incomplete", "failed", "cancelled")}
_BEGINS = {"response.created", "response.in_progress", "response.queued"}
_THEIRS = frozenset(  # the calls that a client answers itself
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)


def reads(item: Block) -> Atom:
    match item.get("type", "message"):
        case "message":
            content = item.get("content")
            texts = [content] if isinstance(content, str) else [text_in(part, "text") for _, part in entries(content)]
            return Words("".join(texts))
        case "reasoning":
            return Thought()
        case "function_call":
            return Called(text_in(item, "call_id"), text_in(item, "name"), arguments(item.get("arguments")))
        case "custom_tool_call":
            return Called(text_in(item, "call_id"), text_in(item, "name"), text_in(item, "input"))
    return OTHER


def has_room(tree: Json) -> bool:
    tools, said = value_in(tree, "tools"), items(tree, ITEMS)
    apart = value_in(tree, "previous_response_id") is None
    apart = apart and value_in(tree, "conversation") is None and value_in(tree, "background") is not True
    asked = bool(said) and not _is_said(said[-1])
    return bool(tools) and isinstance(tools, list) and apart and asked


def is_kept(tree: Json) -> bool:
    """A stream tells the id of its first leg before the last one has any. Whoever names it later would go on behind a
    call that has no result, and only with us could that be mended; and so it is with a call of ours beside theirs."""
    return value_in(tree, "store") is not False


def is_free(tree: Json) -> bool:
    return value_in(tree, "tool_choice") in (None, "auto")


def offer(tree: Json, offered: Sequence[Offer]) -> list[Edit]:
    place = ("tools", len(items(tree, "tools")))
    return [Insert(place, _function(one)) for one in offered]


def _function(one: Offer) -> Block:
    about: Block = {"name": one.name, "description": one.description, "strict": False, "parameters": one.schema}
    return {"type": "function", **about}


def result(call: Called, got: Result) -> Block:
    parts: list[Json] = [{"type": "input_text", "text": got.text}]
    for mime, data in got.images:
        parts.append({"type": "input_image", "detail": "auto", "image_url": f"data:{mime};base64,{data}"})
    return {"type": "function_call_output", "call_id": call.id, "output": parts if got.images else got.text}


def grown(tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
    place = (ITEMS, len(items(tree, ITEMS)))
    return [Insert(place, item) for leg, results in legs for item in (*_lasting(leg.said), *results)]


def _lasting(said: Sequence[Block]) -> Sequence[Block]:
    """Nobody keeps a thought that is not sent whole; what it led to is known by its id to have come with one."""
    whole = ("encrypted_content", "content")
    kept = [item for item in said if item.get("type") != "reasoning" or any(map(item.get, whole))]
    return kept if len(kept) == len(said) else [_nameless(item) for item in kept]


def _nameless(item: Block) -> Block:
    return {key: value for key, value in item.items() if key != "id"}


def _is_said(item: Json) -> bool:
    """Whether an item was said by the assistant, and is no result of a call."""
    kind, role = text_in(item, "type"), text_in(item, "role")
    return role == "assistant" if role else bool(kind) and not kind.endswith("_output")


def runs(tree: Json) -> list[Run]:
    """All that was said in a row; and what goes on behind results of its calls, where those have no good ids."""
    found: list[Run] = []
    said = items(tree, ITEMS)
    at = 0
    while at < len(said):
        onward = (said[index] for index in range(at, len(said)))  # a slice would be copied for every run
        run = [item for item in takewhile(_is_said, onward) if isinstance(item, dict)]
        if run:
            one = Run(at, at + len(run), run, [*range(at, at + len(run))])
            called = any(isinstance(reads(item), Called) for item in run)
            wide = islice(_onward(said, one), FEW) if called and not seen(run, reads).alone else ()
            found += [*reversed([*wide]), one]
        at += len(run) or 1
    return found


def wider(tree: Json, run: Run, pasts: Sequence[Past]) -> Run | None:
    """An answer of which some calls have their results at once, before the next call; None: it is no such one."""
    calls = sum(len(past.calls) for past in pasts)

    def enough(run: Run) -> bool:
        return sum(isinstance(reads(item), Called) for item in run.blocks) >= calls

    return next(filter(enough, islice(_onward(items(tree, ITEMS), run), calls)), None)


def _onward(said: Sequence[Json], run: Run) -> Iterator[Run]:
    """All that is said from here on, with nothing between but results of its own calls; ever more of it."""
    blocks, owners = [*run.blocks], [*run.owners]
    called = {text_in(each, "call_id") for each in blocks}
    for index in range(run.end, len(said)):
        item = said[index]
        if isinstance(item, dict) and _is_said(item):
            blocks.append(item)
            owners.append(index)
            called.add(text_in(item, "call_id"))
            if not (index + 1 < len(said) and _is_said(said[index + 1])):
                yield Run(run.start, index + 1, [*blocks], [*owners])
        elif not _is_output(item) or text_in(item, "call_id") not in called:
            return


def _is_output(item: Json) -> bool:
    return text_in(item, "type").endswith("_output")


def woven(tree: Json, run: Run, pasts: Sequence[Past], results: Sequence[Block]) -> list[Edit] | None:
    """All that the client sends stays where it is; our calls and results come between."""
    legs = cut(run, pasts, reads)
    last = pasts[-1]
    theirs = [*takewhile(_is_output, items(tree, ITEMS)[run.end :])]
    if legs is None or len(results) != len(last.asks) or (last.asks and not theirs):
        return None
    thoughtless = not any(isinstance(reads(item), Thought) for item in run.blocks)
    put: list[tuple[Block, int | None, Past]] = []
    for leg, past in zip(legs, pasts, strict=True):
        brought = past.results if past is not last else ()
        put += [*((item, owner, past) for item, owner in leg), *((item, None, past) for item in brought)]
    late = in_order(last, results)
    edits: list[Edit] = []
    behind: list[Edit] = []
    for number, (item, owner, past) in enumerate(put):
        if owner is not None:
            continue
        place = next((after for _, after, _ in put[number:] if after is not None), run.end)
        edits.append(Insert((ITEMS, place), _nameless(item) if thoughtless and past.thoughts else item))
        if past is last:
            before, result = next(late)
            if place < run.end and len(run.blocks) < run.end - run.start:  # as its neighbours have theirs
                edits.append(Insert((ITEMS, place), result))
            else:
                behind.append(Insert((ITEMS, run.end + min(before, len(theirs))), result))
    return [*edits, *behind]


class Listener(StreamListener):
    reads = staticmethod(reads)

    def __init__(self, names: frozenset[str]) -> None:
        self._id: Json = None
        self._next = 0  # the number that the client's next item gets
        self._sequence: int | None = None  # … and its next event; None: as the upstream begins to count
        self._seen: list[Json] = []  # the items that the client has got
        super().__init__(names)

    def _begin_leg(self) -> None:
        super()._begin_leg()
        self._numbers: dict[int, int] = {}

    @property
    def _stopped_for_calls(self) -> bool:
        return self._stop in (None, "response.completed")

    def _read(self, value: Block, raw: bytes) -> bytes:
        kind, number = text_in(value, "type"), value.get("output_index")
        if kind in _BEGINS:
            self._id = self._id or value_in(value.get("response"), "id")
            return b"" if self.earlier_legs else self._numbered(value, raw)
        if kind in _ENDS:
            return self._ended(kind, value, raw)
        if kind == "error":
            self.failed = True
            return raw
        if not isinstance(number, int):
            return self._numbered(value, raw)
        return self._item(kind, number, value, raw)

    def _item(self, kind: str, number: int, value: Block, raw: bytes) -> bytes:
        item = mapping(value.get("item"))
        if kind == "response.output_item.added":
            self._starts(number, item)
        elif kind == "response.output_item.done":
            if number not in self._numbers and number not in self._our_calls:
                self._starts(number, item)
            self._blocks_by_number[number] = item
            if number not in self._our_calls:
                self._seen.append(item)
        if number in self._our_calls:
            return b""
        shown = self._numbers.get(number, number)
        return self._numbered(value if shown == number else {**value, "output_index": shown}, raw)

    def _starts(self, number: int, item: Block) -> None:
        if item.get("type") == "function_call" and item.get("name") in self.names:
            self._our_calls.add(number)
            return
        self._calls_client = self._calls_client or item.get("type") in _THEIRS
        self._numbers[number] = self._next
        self._next += 1

    def _numbered(self, value: Block, raw: bytes) -> bytes:
        """An event with its number among all that the client gets."""
        given = value.get("sequence_number")
        number = self._sequence if self._sequence is not None else given if isinstance(given, int) else 0
        self._sequence = number + 1
        index = value.get("output_index")
        if not self.earlier_legs and not self._our_calls and given in (number, None):
            return raw
        if "sequence_number" not in value and not isinstance(index, int):
            return raw
        new = {**value, "sequence_number": number} if "sequence_number" in value else value
        return write_event(text_in(value, "type"), new)

    def _ended(self, kind: str, value: Block, raw: bytes) -> bytes:
        self._stop = kind
        response = mapping(value.get("response"))
        self._usage |= mapping(response.get("usage"))
        self.failed = kind == "response.failed"
        if self.goes_on:
            return b""
        if not self.earlier_legs and not self._our_calls:
            return self._numbered(value, raw)
        usage: Block = {"usage": _merged(self._usages)} if any(self._usages) else {}
        told: Block = {**value, "response": {**response, "id": self._id, "output": [*self._seen], **usage}}
        return self._end_with(self._numbered(told, raw)) if not self.failed else self._numbered(told, raw)

    def _blocks(self) -> list[Block]:
        return [item for _, item in sorted(self._blocks_by_number.items())]

    def whole(self, before: Block) -> Block:
        status = (self._stop or "response.completed").removeprefix("response.")
        return {**before, "status": status, "output": [*self._blocks()], "usage": self._usage}


def said(answer: Json) -> list[Block]:
    return [item for _, item in entries(value_in(answer, "output"))]


def calls(answer: Json) -> bool:
    return value_in(answer, "status") not in ("incomplete", "failed", "cancelled")


def whole(answers: Sequence[Block], names: frozenset[str]) -> Block:
    """All legs as one answer, without our calls."""
    seen: list[Json] = [item for answer in answers for item in said(answer) if not _is_ours(item, names)]
    usage = _merged([mapping(answer.get("usage")) for answer in answers])
    return {**answers[-1], "id": answers[0].get("id"), "output": seen, "usage": usage}


def _is_ours(item: Block, names: frozenset[str]) -> bool:
    return item.get("type") == "function_call" and item.get("name") in names


def _merged(usages: Sequence[Block]) -> Block:
    return summed(usages, _OUTPUT, "total_tokens", "input_tokens")
