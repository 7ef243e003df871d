"""The tool loop on Gemini's wire.

Calls need not have ids here, and any part may have a signature. From its third generation on, Gemini rejects the first
call of a turn without one. If that call is ours, the client's first call is lent its signature, and gives it back when
the answer is restored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sightline.model.scene import Edit, Insert, Json
from sightline.wire.gemini import CACHED_CONTENT, CALL, DECLARATIONS, RESPONSE, get_field
from sightline.wire.json_tree import Block, enumerate_objects, get_at, get_list, get_text, get_value
from sightline.wire.sse import write_event
from sightline.wire.tool_loop.leg import (
    OPTIONAL,
    OTHER,
    AnswerRun,
    BlockContent,
    CallContent,
    Leg,
    OwnResult,
    OwnTool,
    ReasoningContent,
    StoredLeg,
    TextContent,
    add_usages,
    as_object,
    canonicalize_arguments,
)
from sightline.wire.tool_loop.restoration import find_runs, lay_out_legs, pair_results, restore_legs
from sightline.wire.tool_loop.stream_listener import StreamListener

MESSAGES_KEY = "contents"
CALL_IDS_OPTIONAL = True
_OUTPUT_KEYS = ("candidatesTokenCount", "thoughtsTokenCount")
_SIGNATURE = ("thoughtSignature", "thought_signature")
_FREE_MODES = ("", "AUTO", "MODE_UNSPECIFIED", "VALIDATED")
_UNSUPPORTED_KEYS = ("additionalProperties",)  # which `parameters`, the older way of declaring them, doesn't support


def classify_block(part: Block) -> BlockContent:
    call = get_field(part, CALL)
    if isinstance(call, dict):
        return CallContent(get_text(call, "id"), get_text(call, "name"), canonicalize_arguments(call.get("args") or {}))
    signed = get_field(part, _SIGNATURE) is not None
    if part.get("thought"):
        return ReasoningContent() if signed else OPTIONAL
    if "text" not in part or (signed and not part["text"]):
        return OTHER
    return TextContent(get_text(part, "text"))


def can_offer_tools(tree: Json) -> bool:
    generation = get_field(tree, ("generationConfig", "generation_config"))
    is_single = get_field(generation, ("candidateCount", "candidate_count")) in (None, 1)
    is_complete = get_field(tree, CACHED_CONTENT) is None
    contents = get_list(tree, MESSAGES_KEY)
    expects_answer = bool(contents) and get_value(contents[-1], "role") != "model"
    return _find_declarations(tree) is not None and is_single and is_complete and expects_answer


def has_free_choice(tree: Json) -> bool:
    config = get_field(tree, ("toolConfig", "tool_config"))
    calling = get_field(config, ("functionCallingConfig", "function_calling_config"))
    allowed = get_field(calling, ("allowedFunctionNames", "allowed_function_names"))
    return get_text(calling, "mode").upper() in _FREE_MODES and not allowed


def _find_declarations(tree: Json) -> tuple[int, str] | None:
    """Return the last list of functions: the index of its tool, and its key."""
    found = [
        (index, key)
        for index, tool in enumerate_objects(get_value(tree, "tools"))
        for key in DECLARATIONS
        if get_list(tool, key)
    ]
    return found[-1] if found else None


def is_stored(tree: Json) -> bool:
    return False  # every request has the whole conversation in it


def add_tools(tree: Json, tools: Sequence[OwnTool]) -> list[Edit]:
    there = _find_declarations(tree)
    assert there is not None, "checked by can_offer_tools"
    index, key = there
    listed = get_list(get_at(tree, "tools", index), key)
    schema_keys = [
        name
        for name in ("parametersJsonSchema", "parameters_json_schema")
        for _, each in enumerate_objects(listed)
        if name in each
    ]
    place = ("tools", index, key, len(listed))
    return [Insert(place, _build_function(one, schema_keys[0] if schema_keys else "")) for one in tools]


def _build_function(tool: OwnTool, key: str) -> Block:
    schema: Json = tool.schema if key else _simplify_schema(tool.schema)
    return {"name": tool.name, "description": tool.description, key or "parameters": schema}


def _simplify_schema(schema: Json) -> Json:
    if isinstance(schema, dict):
        return {key: _simplify_schema(value) for key, value in schema.items() if key not in _UNSUPPORTED_KEYS}
    return [_simplify_schema(each) for each in schema] if isinstance(schema, list) else schema


def build_result(call: CallContent, result: OwnResult) -> Block:
    named: Block = {"id": call.id, "name": call.name} if call.id else {"name": call.name}
    response: Block = {"error" if result.failed else "output": result.text}
    data: list[Json] = [{"inlineData": {"mimeType": mime, "data": each}} for mime, each in result.images]
    return {"functionResponse": {**named, "response": response, **({"parts": data} if data else {})}}


def append_legs(tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
    place = (MESSAGES_KEY, len(get_list(tree, MESSAGES_KEY)))
    return [
        Insert(place, content)
        for leg, results in legs
        for content in (_build_content("model", leg.blocks), _build_content("user", results))
    ]


def _build_content(role: str, blocks: Sequence[Block]) -> Block:
    return {"role": role, "parts": [*blocks]}


def find_answers(tree: Json) -> list[AnswerRun]:
    """Return everything that may be one answer: some programs keep a content for each chunk of a stream."""
    return find_runs(
        [
            [part for _, part in enumerate_objects(get_value(content, "parts"))]
            if get_value(content, "role") == "model"
            else None
            for content in get_list(tree, MESSAGES_KEY)
        ]
    )


def widen_answer(tree: Json, run: AnswerRun, stored: Sequence[StoredLeg]) -> AnswerRun | None:
    return None  # results never come before the end of an answer


def restore_answer(
    tree: Json, run: AnswerRun, stored: Sequence[StoredLeg], results: Sequence[Block]
) -> list[Edit] | None:
    legs = restore_legs(run, stored, classify_block, _split_text)
    if legs is None or len(results) != len(stored[-1].own_calls):
        return None
    lent = [signature for block, _ in stored[-1].own_calls if (signature := get_field(block, _SIGNATURE))]
    legs[-1] = [(part if owner is None else _drop_lent_signature(part, lent), owner) for part, owner in legs[-1]]

    def build_content(owner: int | None, parts: list[Block], _: bool) -> Block:
        content = as_object(get_at(tree, MESSAGES_KEY, owner)) if owner is not None else {"role": "model"}
        return {**content, "parts": [*parts]}

    between = [[_build_content("user", leg.results)] for leg in stored[:-1]]
    edits = lay_out_legs(MESSAGES_KEY, run, legs, between, build_content)
    if not stored[-1].own_calls:
        return edits
    following = get_at(tree, MESSAGES_KEY, run.end)
    client_results = [
        n for n, part in enumerate_objects(get_value(following, "parts")) if get_field(part, RESPONSE) is not None
    ]
    if not client_results:
        return None
    for before, result in pair_results(stored[-1], results):
        place = client_results[before] if before < len(client_results) else client_results[-1] + 1
        edits.append(Insert((MESSAGES_KEY, run.end, "parts", place), result))
    return edits


def _drop_lent_signature(part: Block, lent: Sequence[Json]) -> Block:
    """Return a part without the signature that it was lent."""
    if get_field(part, CALL) is None or get_field(part, _SIGNATURE) not in lent:
        return part
    return {key: value for key, value in part.items() if key not in _SIGNATURE}


def _split_text(part: Block, length: int) -> tuple[Block, Block]:
    text = get_text(part, "text")
    front = {key: value for key, value in part.items() if key not in _SIGNATURE}
    return {**front, "text": text[:length]}, {**part, "text": text[length:]}


class GeminiListener(StreamListener):
    classify_block = staticmethod(classify_block)

    def __init__(self, tool_names: frozenset[str]) -> None:
        self._id: Json = None
        super().__init__(tool_names)

    def _begin_leg(self) -> None:
        super()._begin_leg()
        self._signature: Json = None  # of one of our calls, for the client's first call
        self._text_pieces: dict[int, list[str]] = {}  # of texts that came in several pieces

    @property
    def _stopped_for_calls(self) -> bool:
        return self._stop in (None, "STOP")

    def _read(self, value: Block, raw: bytes) -> bytes:
        if value.get("error"):
            self.failed = True
            return raw
        self._id = self._id or value.get("responseId")
        self._usage |= as_object(value.get("usageMetadata"))
        candidate = next((each for _, each in enumerate_objects(value.get("candidates"))), None)
        if candidate is None:
            return raw if not self.earlier_legs else b""
        content = as_object(candidate.get("content"))
        parts = [part for _, part in enumerate_objects(content.get("parts"))]
        kept = [shown for part in parts if (shown := self._read_part(part)) is not None]
        stop = candidate.get("finishReason")
        if stop:
            self._stop = str(stop)
        if stop and self.continues:
            rest = {key: each for key, each in candidate.items() if key != "finishReason"}
            return self._write_chunk(value, {**rest, "content": {**content, "parts": [*kept]}}) if kept else b""
        if kept == parts and not self.earlier_legs:
            return self._end_or_hold(raw) if stop else raw
        if not kept and not stop:
            return b""
        parts_or_blank: list[Json] = [*kept] or [{"text": ""}]  # clients take a chunk without parts for a failure
        out = self._write_chunk(value, {**candidate, "content": {**content, "parts": parts_or_blank}})
        return self._end_or_hold(out) if stop else out

    def _write_chunk(self, value: Block, candidate: Block) -> bytes:
        usage: Block = {"usageMetadata": _add_usages(self._all_usages)} if value.get("usageMetadata") else {}
        named: Block = {"responseId": self._id} if self._id and "responseId" in value else {}
        return write_event("", {**value, "candidates": [candidate], **usage, **named})

    def _read_part(self, part: Block) -> Block | None:
        """Add a part to the leg; return what the client gets of it."""
        call = get_field(part, CALL)
        number = len(self._blocks_by_number)
        if not isinstance(call, dict):
            self._append_part(number, part)
            return part
        self._blocks_by_number[number] = part
        if get_text(call, "name") in self.tool_names:
            self._our_calls.add(number)
            self._signature = self._signature or get_field(part, _SIGNATURE)
            return None
        first, self._calls_client = not self._calls_client, True
        if first and self._signature and get_field(part, _SIGNATURE) is None:
            return {**part, "thoughtSignature": self._signature}
        return part

    def _append_part(self, number: int, part: Block) -> None:
        """Add a part that isn't a call; pieces of one text become one part."""
        if part == {"text": ""}:
            return
        before = self._blocks_by_number.get(number - 1)
        plain = set(part) <= {"text", "thought"} and "text" in part
        if before is not None and plain and set(before) == set(part) and before.get("thought") == part.get("thought"):
            self._text_pieces.setdefault(number - 1, []).append(get_text(part, "text"))
        else:
            self._blocks_by_number[number] = part

    def _build_blocks(self) -> list[Block]:
        return [self._complete_part(number, part) for number, part in sorted(self._blocks_by_number.items())]

    def build_body(self, before: Block) -> Block:
        content: Block = {"role": "model", "parts": [*self._build_blocks()]}
        candidate: Block = {"index": 0, "content": content, "finishReason": self._stop or "STOP"}
        return {**before, "candidates": [candidate], "usageMetadata": self._usage}

    def _complete_part(self, number: int, part: Block) -> Block:
        more = self._text_pieces.get(number)
        return {**part, "text": get_text(part, "text") + "".join(more)} if more else part


def build_listener(tool_names: frozenset[str]) -> GeminiListener:
    return GeminiListener(tool_names)


def list_blocks(answer: Json) -> list[Block]:
    return [part for _, part in enumerate_objects(get_at(answer, "candidates", 0, "content", "parts"))]


def stopped_for_calls(answer: Json) -> bool:
    return get_at(answer, "candidates", 0, "finishReason") in (None, "STOP")


def join_answers(answers: Sequence[Block], tool_names: frozenset[str]) -> Block:
    """Return all legs as one answer, without our calls."""
    visible: list[Json] = [part for answer in answers for part in _list_visible(list_blocks(answer), tool_names)]
    candidate = as_object(get_at(answers[-1], "candidates", 0))
    content = {**as_object(candidate.get("content")), "parts": visible}
    usage = _add_usages([as_object(answer.get("usageMetadata")) for answer in answers])
    first = {key: answers[0][key] for key in ("responseId",) if key in answers[0]}
    return {**answers[-1], **first, "candidates": [{**candidate, "content": content}], "usageMetadata": usage}


def _list_visible(parts: Sequence[Block], tool_names: frozenset[str]) -> Iterator[Block]:
    """Yield the parts without our calls. The client's first call is lent our call's signature, if it has none."""
    signature: Json = None
    for part in parts:
        call = get_field(part, CALL)
        if get_text(call, "name") in tool_names:
            signature = signature or get_field(part, _SIGNATURE)
        elif call is None:
            yield part
        else:
            lend = signature is not None and get_field(part, _SIGNATURE) is None
            yield {**part, "thoughtSignature": signature} if lend else part
            signature = None


def _add_usages(usages: Sequence[Block]) -> Block:
    return add_usages(usages, _OUTPUT_KEYS, "totalTokenCount", "promptTokenCount")
