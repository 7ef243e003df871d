"""Calls of ours on Gemini's wire: nobody has to name a call here, and a signature may stand on any part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sightline.model.edit import Edit, Insert
from sightline.model.scene import Json
from sightline.wire.gemini import CACHED, CALL, DECLARED, RESPONSE, under
from sightline.wire.shape import at, entries, items, text_in, value_in
from sightline.wire.sse import write_event
from sightline.wire.tool_loop.leg import (
    LOOSE,
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

ITEMS = "contents"
_OUTPUT = ("candidatesTokenCount", "thoughtsTokenCount")
_SIGNATURE = ("thoughtSignature", "thought_signature")
_FREE = ("", "AUTO", "MODE_UNSPECIFIED")
_SUBSET = ("additionalProperties",)  # what the older way of declaring parameters does not know


def reads(part: Block) -> Atom:
    call = under(part, CALL)
    if isinstance(call, dict):
        return Called(text_in(call, "id"), text_in(call, "name"), arguments(call.get("args") or {}))
    signed = under(part, _SIGNATURE) is not None
    if part.get("thought"):
        return Thought() if signed else LOOSE
    if "text" not in part or (signed and not part["text"]):
        return OTHER
    return Words(text_in(part, "text"))


def has_room(tree: Json) -> bool:
    generation = under(tree, ("generationConfig", "generation_config"))
    once = under(generation, ("candidateCount", "candidate_count")) in (None, 1)
    apart = under(tree, CACHED) is None
    said = items(tree, ITEMS)
    asked = bool(said) and value_in(said[-1], "role") != "model"
    return _declared(tree) is not None and once and apart and asked


def is_free(tree: Json) -> bool:
    config = under(tree, ("toolConfig", "tool_config"))
    calling = under(config, ("functionCallingConfig", "function_calling_config"))
    return text_in(calling, "mode").upper() in _FREE


def _declared(tree: Json) -> tuple[int, str] | None:
    """The last list of functions: which tool has it, under which key."""
    found = [(index, key) for index, tool in entries(value_in(tree, "tools")) for key in DECLARED if items(tool, key)]
    return found[-1] if found else None


def offer(tree: Json, offered: Sequence[Offer]) -> list[Edit]:
    there = _declared(tree)
    assert there is not None, "it was asked whether anything can be offered"
    index, key = there
    listed = items(at(tree, "tools", index), key)
    whole = [
        name
        for name in ("parametersJsonSchema", "parameters_json_schema")
        for _, each in entries(listed)
        if name in each
    ]
    place = ("tools", index, key, len(listed))
    return [Insert(place, _function(one, whole[0] if whole else "")) for one in offered]


def _function(one: Offer, key: str) -> Block:
    schema: Json = one.schema if key else _plain(one.schema)
    return {"name": one.name, "description": one.description, key or "parameters": schema}


def _plain(schema: Json) -> Json:
    if isinstance(schema, dict):
        return {key: _plain(value) for key, value in schema.items() if key not in _SUBSET}
    return [_plain(each) for each in schema] if isinstance(schema, list) else schema


def result(call: Called, got: Result) -> Block:
    named: Block = {"id": call.id, "name": call.name} if call.id else {"name": call.name}
    said: Block = {"error" if got.failed else "output": got.text}
    data: list[Json] = [{"inlineData": {"mimeType": mime, "data": each}} for mime, each in got.images]
    return {"functionResponse": {**named, "response": said, **({"parts": data} if data else {})}}


def grown(tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
    place = (ITEMS, len(items(tree, ITEMS)))
    return [
        Insert(place, content)
        for leg, results in legs
        for content in (_content("model", leg.said), _content("user", results))
    ]


def _content(role: str, blocks: Sequence[Block]) -> Block:
    return {"role": role, "parts": [*blocks]}


def runs(tree: Json) -> list[Run]:
    """Some programs keep what was streamed as one content a chunk."""
    return spoken(
        [
            [part for _, part in entries(value_in(content, "parts"))] if value_in(content, "role") == "model" else None
            for content in items(tree, ITEMS)
        ]
    )


def woven(tree: Json, run: Run, pasts: Sequence[Past], results: Sequence[Block]) -> list[Edit] | None:
    legs = cut(run, pasts, reads, _split)
    if legs is None or len(results) != len(pasts[-1].asks):
        return None
    lent = [signature for block, _ in pasts[-1].asks if (signature := under(block, _SIGNATURE))]
    legs[-1] = [(part if owner is None else _returned(part, lent), owner) for part, owner in legs[-1]]

    def made(owner: int | None, said: list[Block], _: bool) -> Block:
        content = mapping(at(tree, ITEMS, owner)) if owner is not None else {"role": "model"}
        return {**content, "parts": [*said]}

    edits = laid(ITEMS, run, legs, [[_content("user", past.results)] for past in pasts[:-1]], made)
    if not pasts[-1].asks:
        return edits
    following = at(tree, ITEMS, run.end)
    theirs = [n for n, part in entries(value_in(following, "parts")) if under(part, RESPONSE) is not None]
    if not theirs:
        return None
    for before, brought in in_order(pasts[-1], results):
        place = theirs[before] if before < len(theirs) else theirs[-1] + 1
        edits.append(Insert((ITEMS, run.end, "parts", place), brought))
    return edits


def _returned(part: Block, lent: Sequence[Json]) -> Block:
    """A call of the client's, without the signature that it was lent."""
    if under(part, CALL) is None or under(part, _SIGNATURE) not in lent:
        return part
    return {key: value for key, value in part.items() if key not in _SIGNATURE}


def _split(part: Block, letters: int) -> tuple[Block, Block]:
    text = text_in(part, "text")
    front = {key: value for key, value in part.items() if key not in _SIGNATURE}
    return {**front, "text": text[:letters]}, {**part, "text": text[letters:]}


class Listener(StreamListener):
    reads = staticmethod(reads)

    def __init__(self, names: frozenset[str]) -> None:
        self._id: Json = None
        super().__init__(names)

    def _begin_leg(self) -> None:
        super()._begin_leg()
        self._signature: Json = None  # of a call of ours, for the client's first one
        self._pieces: dict[int, list[str]] = {}  # of words that came in several

    @property
    def _stopped_for_calls(self) -> bool:
        return self._stop in (None, "STOP")

    def _read(self, value: Block, raw: bytes) -> bytes:
        if value.get("error"):
            self.failed = True
            return raw
        self._id = self._id or value.get("responseId")
        self._usage |= mapping(value.get("usageMetadata"))
        candidate = next((each for _, each in entries(value.get("candidates"))), None)
        if candidate is None:
            return raw if not self.earlier_legs else b""
        content = mapping(candidate.get("content"))
        parts = [part for _, part in entries(content.get("parts"))]
        kept = [shown for part in parts if (shown := self._part(part)) is not None]
        stop = candidate.get("finishReason")
        if stop:
            self._stop = str(stop)
        if stop and self.goes_on:
            rest = {key: each for key, each in candidate.items() if key != "finishReason"}
            return self._told(value, {**rest, "content": {**content, "parts": [*kept]}}) if kept else b""
        if kept == parts and not self.earlier_legs:
            return self._end_with(raw) if stop else raw
        if not kept and not stop:
            return b""
        told_parts: list[Json] = [*kept] or [{"text": ""}]  # a chunk without parts is taken for an answer that failed
        told = self._told(value, {**candidate, "content": {**content, "parts": told_parts}})
        return self._end_with(told) if stop else told

    def _told(self, value: Block, candidate: Block) -> bytes:
        usage: Block = {"usageMetadata": _merged(self._usages)} if value.get("usageMetadata") else {}
        named: Block = {"responseId": self._id} if self._id and "responseId" in value else {}
        return write_event("", {**value, "candidates": [candidate], **usage, **named})

    def _part(self, part: Block) -> Block | None:
        """What the client gets of a part; all of it is part of the leg."""
        call = under(part, CALL)
        number = len(self._blocks_by_number)
        if not isinstance(call, dict):
            self._joined(number, part)
            return part
        self._blocks_by_number[number] = part
        if text_in(call, "name") in self.names:
            self._our_calls.add(number)
            self._signature = self._signature or under(part, _SIGNATURE)
            return None
        first, self._calls_client = not self._calls_client, True
        if first and self._signature and under(part, _SIGNATURE) is None:
            return {**part, "thoughtSignature": self._signature}
        return part

    def _joined(self, number: int, part: Block) -> None:
        """Words that came in pieces are one part of a request."""
        if part == {"text": ""}:
            return
        before = self._blocks_by_number.get(number - 1)
        plain = set(part) <= {"text", "thought"} and "text" in part
        if before is not None and plain and set(before) == set(part) and before.get("thought") == part.get("thought"):
            self._pieces.setdefault(number - 1, []).append(text_in(part, "text"))
        else:
            self._blocks_by_number[number] = part

    def _blocks(self) -> list[Block]:
        return [self._whole(number, part) for number, part in sorted(self._blocks_by_number.items())]

    def whole(self, before: Block) -> Block:
        content: Block = {"role": "model", "parts": [*self._blocks()]}
        candidate: Block = {"index": 0, "content": content, "finishReason": self._stop or "STOP"}
        return {**before, "candidates": [candidate], "usageMetadata": self._usage}

    def _whole(self, number: int, part: Block) -> Block:
        more = self._pieces.get(number)
        return {**part, "text": text_in(part, "text") + "".join(more)} if more else part


def said(answer: Json) -> list[Block]:
    return [part for _, part in entries(at(answer, "candidates", 0, "content", "parts"))]


def calls(answer: Json) -> bool:
    return at(answer, "candidates", 0, "finishReason") in (None, "STOP")


def whole(answers: Sequence[Block], names: frozenset[str]) -> Block:
    """All legs as one answer, without our calls."""
    seen: list[Json] = [part for answer in answers for part in _visible(said(answer), names)]
    candidate = mapping(at(answers[-1], "candidates", 0))
    content = {**mapping(candidate.get("content")), "parts": seen}
    usage = _merged([mapping(answer.get("usageMetadata")) for answer in answers])
    first = {key: answers[0][key] for key in ("responseId",) if key in answers[0]}
    return {**answers[-1], **first, "candidates": [{**candidate, "content": content}], "usageMetadata": usage}


def _visible(parts: Sequence[Block], names: frozenset[str]) -> Iterator[Block]:
    """The client's first call gets the signature that ours has, if it has none."""
    signature: Json = None
    for part in parts:
        call = under(part, CALL)
        if text_in(call, "name") in names:
            signature = signature or under(part, _SIGNATURE)
        elif call is None:
            yield part
        else:
            lend = signature is not None and under(part, _SIGNATURE) is None
            yield {**part, "thoughtSignature": signature} if lend else part
            signature = None


def _merged(usages: Sequence[Block]) -> Block:
    return summed(usages, _OUTPUT, "totalTokenCount", "promptTokenCount")
