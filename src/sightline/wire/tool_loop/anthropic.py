"""Calls of ours on the Messages wire."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from sightline.model.edit import Edit, Insert, Replace
from sightline.model.scene import Json
from sightline.wire.shape import at, entries, items, text_in, value_in
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
    summed,
)
from sightline.wire.tool_loop.listener import StreamListener
from sightline.wire.tool_loop.weaving import in_order, laid, spoken
from sightline.wire.tool_loop.weaving import woven as cut

ITEMS = "messages"
_OUTPUT = ("output_tokens",)
_CUT = ("max_tokens", "model_context_window_exceeded", "refusal", "pause_turn")  # ends in which nobody is called


def reads(block: Block) -> Atom:
    match block.get("type"):
        case "text":
            return Words(text_in(block, "text"))
        case "tool_use":
            return Called(text_in(block, "id"), text_in(block, "name"), arguments(block.get("input")))
        case "thinking" | "redacted_thinking":
            return Thought()
    return OTHER


def has_room(tree: Json) -> bool:
    tools, messages = value_in(tree, "tools"), items(tree, ITEMS)
    asked = bool(messages) and value_in(messages[-1], "role") != "assistant"
    return bool(tools) and isinstance(tools, list) and asked


def is_free(tree: Json) -> bool:
    return text_in(value_in(tree, "tool_choice"), "type") in ("", "auto")


def offer(tree: Json, offered: Sequence[Offer]) -> list[Edit]:
    place = ("tools", len(items(tree, "tools")))
    return [
        Insert(place, {"name": one.name, "description": one.description, "input_schema": one.schema}) for one in offered
    ]


def result(call: Called, got: Result) -> Block:
    blocks: list[Json] = [{"type": "text", "text": got.text}]
    for mime, data in got.images:
        blocks.append({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}})
    made: Block = {"type": "tool_result", "tool_use_id": call.id, "content": blocks if got.images else got.text}
    return {**made, "is_error": True} if got.failed else made


def grown(tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
    place = (ITEMS, len(items(tree, ITEMS)))
    return [
        Insert(place, message)
        for leg, results in legs
        for message in (_message("assistant", leg.said), _message("user", results))
    ]


def _message(role: str, blocks: Sequence[Block]) -> Block:
    return {"role": role, "content": [*blocks]}


def runs(tree: Json) -> list[Run]:
    return spoken([_blocks(each) if value_in(each, "role") == "assistant" else None for each in items(tree, ITEMS)])


def _blocks(message: Json) -> list[Block]:
    content = value_in(message, "content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else [each for _, each in entries(content)]


def woven(tree: Json, run: Run, pasts: Sequence[Past], results: Sequence[Block]) -> list[Edit] | None:
    """What an assistant said, again in as many messages as there were legs, with our results between and behind."""
    legs = cut(run, pasts, reads, _split)
    if legs is None or len(results) != len(pasts[-1].asks):
        return None

    def made(owner: int | None, said: list[Block], _: bool) -> Block:
        message = mapping(at(tree, ITEMS, owner)) if owner is not None else {}
        plain = isinstance(message.get("content"), str) and len(said) == 1
        return {**message, "role": "assistant", "content": said[0]["text"] if plain else [*said]}

    between: list[list[Block]] = [[_message("user", past.results)] for past in pasts[:-1]]
    edits = laid(ITEMS, run, legs, between, made)
    if not pasts[-1].asks:
        return edits
    following = at(tree, ITEMS, run.end)
    if value_in(following, "role") != "user":
        return None
    return [*edits, *_answered(run.end, following, pasts[-1], results)]


def _answered(index: int, message: Json, past: Past, results: Sequence[Block]) -> list[Edit]:
    """Our results among the client's, in the order of the calls."""
    content = value_in(message, "content")
    if isinstance(content, str):
        return [Replace((ITEMS, index, "content"), [*results, {"type": "text", "text": content}])]
    theirs = [number for number, block in entries(content) if block.get("type") == "tool_result"]
    end = theirs[-1] + 1 if theirs else 0
    return [
        Insert((ITEMS, index, "content", theirs[before] if before < len(theirs) else end), made)
        for before, made in in_order(past, results)
    ]


def _split(block: Block, letters: int) -> tuple[Block, Block]:
    text = text_in(block, "text")
    front = {key: value for key, value in block.items() if key not in ("cache_control", "citations")}
    return {**front, "text": text[:letters]}, {**block, "text": text[letters:]}


class Listener(StreamListener):
    reads = staticmethod(reads)

    def __init__(self, names: frozenset[str]) -> None:
        self._next = 0  # the number that the client's next block gets
        super().__init__(names)

    def _begin_leg(self) -> None:
        super()._begin_leg()
        self._numbers: dict[int, int] = {}
        self._inputs: dict[int, list[str]] = {}
        self._grown: dict[int, dict[str, list[str]]] = {}

    @property
    def _stopped_for_calls(self) -> bool:
        return self._stop not in _CUT

    def _read(self, value: Block, raw: bytes) -> bytes:
        kind, number = text_in(value, "type"), value.get("index")
        if kind == "message_start":
            self._usage |= mapping(at(value, "message", "usage"))
            return b"" if self.earlier_legs else raw
        if kind == "message_delta":
            return self._stopped(value, raw)
        if kind == "message_stop":
            return self._end_with(raw)
        if kind == "error":
            self.failed = True
            return raw
        if not isinstance(number, int) or not kind.startswith("content_block"):
            return raw
        return self._block(kind, number, value, raw)

    def _block(self, kind: str, number: int, value: Block, raw: bytes) -> bytes:
        if kind == "content_block_start":
            self._starts(number, mapping(value.get("content_block")))
        elif kind == "content_block_delta":
            self._grows(number, mapping(value.get("delta")))
        if number in self._our_calls:
            return b""
        shown = self._numbers.get(number, number)
        return raw if shown == number else write_event(kind, {**value, "index": shown})

    def _starts(self, number: int, block: Block) -> None:
        self._blocks_by_number[number] = dict(block)
        called = block.get("type") == "tool_use"
        if called and block.get("name") in self.names:
            self._our_calls.add(number)
            return
        self._calls_client = self._calls_client or called
        self._numbers[number] = self._next
        self._next += 1

    def _grows(self, number: int, delta: Block) -> None:
        block = self._blocks_by_number.setdefault(number, {})
        if delta.get("type") == "input_json_delta":
            self._inputs.setdefault(number, []).append(text_in(delta, "partial_json"))
            return
        for key, more in delta.items():
            if key == "citation":
                cited = block.get("citations")
                if isinstance(cited, list):
                    cited.append(more)
                else:
                    block["citations"] = [more]
            elif key != "type" and isinstance(more, str):
                self._grown.setdefault(number, {}).setdefault(key, [text_in(block, key)]).append(more)
            elif key != "type":
                block[key] = more

    def _stopped(self, value: Block, raw: bytes) -> bytes:
        self._usage |= {key: each for key, each in mapping(value.get("usage")).items() if each is not None}
        self._stop = text_in(value.get("delta"), "stop_reason") or None
        if not self.earlier_legs:
            return self._end_with(raw)
        return self._end_with(write_event("message_delta", {**value, "usage": summed(self._usages, _OUTPUT)}))

    def _blocks(self) -> list[Block]:
        return [self._whole(number, block) for number, block in sorted(self._blocks_by_number.items())]

    def whole(self, before: Block) -> Block:
        return {**before, "content": [*self._blocks()], "stop_reason": self._stop, "usage": self._usage}

    def _whole(self, number: int, block: Block) -> Block:
        grown: Block = {key: "".join(pieces) for key, pieces in self._grown.get(number, {}).items()}
        written = "".join(self._inputs.get(number, ()))
        if not written:
            return {**block, **grown}
        try:
            given = orjson.loads(written)
        except orjson.JSONDecodeError:
            given = {}
        return {**block, **grown, "input": given if isinstance(given, dict) else {}}


def said(answer: Json) -> list[Block]:
    """What a whole answer says, as a request carries it."""
    return [each for _, each in entries(value_in(answer, "content"))]


def calls(answer: Json) -> bool:
    return value_in(answer, "stop_reason") not in _CUT


def whole(answers: Sequence[Block], names: frozenset[str]) -> Block:
    """All legs as one answer, without our calls."""
    seen: list[Json] = [block for answer in answers for block in said(answer) if not _is_ours(block, names)]
    usage = summed([mapping(answer.get("usage")) for answer in answers], _OUTPUT)
    return {**answers[-1], "id": answers[0].get("id"), "content": seen, "usage": usage}


def _is_ours(block: Block, names: frozenset[str]) -> bool:
    return block.get("type") == "tool_use" and block.get("name") in names
