"""The tool loop on the Messages wire."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import orjson

from sightline.model.scene import Edit, Insert, Json, Replace
from sightline.wire.json_edits import WrittenObject
from sightline.wire.json_tree import Block, enumerate_objects, get_at, get_list, get_text, get_value
from sightline.wire.sse import write_event
from sightline.wire.tool_loop.leg import (
    MAX_KEPT_TOOLS,
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

MESSAGES_KEY = "messages"
CALL_IDS_OPTIONAL = False
_OUTPUT_KEYS = ("output_tokens",)
# LiteLLM writes this before calls that came without text, when it translates from Chat Completions.
_EMPTY_TEXT = "[System: Empty message content sanitised to satisfy protocol]"
# Stop reasons after which no call is answered.
_CUT_REASONS = ("max_tokens", "model_context_window_exceeded", "refusal", "pause_turn")


def classify_block(block: Block) -> BlockContent:
    match block.get("type"):
        case "text" if get_text(block, "text").strip() == _EMPTY_TEXT:
            return OPTIONAL
        case "text":
            return TextContent(get_text(block, "text"))
        case "tool_use":
            return CallContent(
                get_text(block, "id"), get_text(block, "name"), canonicalize_arguments(block.get("input"))
            )
        case "thinking" | "redacted_thinking":
            return ReasoningContent()
    return OTHER


def can_offer_tools(tree: Json) -> bool:
    tools, messages = get_value(tree, "tools"), get_list(tree, MESSAGES_KEY)
    expects_answer = bool(messages) and get_value(messages[-1], "role") != "assistant"
    return bool(tools) and isinstance(tools, list) and expects_answer


def has_free_choice(tree: Json) -> bool:
    return get_text(get_value(tree, "tool_choice"), "type") in ("", "auto")


def is_stored(tree: Json) -> bool:
    return False  # every request has the whole conversation in it


def add_tools(tree: Json, tools: Sequence[OwnTool]) -> list[Edit]:
    place = ("tools", len(get_list(tree, "tools")))
    return [Insert(place, _build_entry(one)) for one in tools]


@lru_cache(MAX_KEPT_TOOLS)
def _build_entry(tool: OwnTool) -> WrittenObject:
    return WrittenObject({"name": tool.name, "description": tool.description, "input_schema": tool.schema})


def build_result(call: CallContent, result: OwnResult) -> Block:
    blocks: list[Json] = [{"type": "text", "text": result.text}]
    for mime, data in result.images:
        blocks.append({"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}})
    block: Block = {"type": "tool_result", "tool_use_id": call.id, "content": blocks if result.images else result.text}
    return {**block, "is_error": True} if result.failed else block


def append_legs(tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
    place = (MESSAGES_KEY, len(get_list(tree, MESSAGES_KEY)))
    return [
        Insert(place, message)
        for leg, results in legs
        for message in (_build_message("assistant", leg.blocks), _build_message("user", results))
    ]


def _build_message(role: str, blocks: Sequence[Block]) -> Block:
    return {"role": role, "content": [*blocks]}


def find_answers(tree: Json) -> list[AnswerRun]:
    return find_runs(
        [_get_blocks(each) if get_value(each, "role") == "assistant" else None for each in get_list(tree, MESSAGES_KEY)]
    )


def _get_blocks(message: Json) -> list[Block]:
    content = get_value(message, "content")
    return (
        [{"type": "text", "text": content}]
        if isinstance(content, str)
        else [each for _, each in enumerate_objects(content)]
    )


def widen_answer(tree: Json, run: AnswerRun, stored: Sequence[StoredLeg]) -> AnswerRun | None:
    return None  # results never come before the end of an answer


def restore_answer(
    tree: Json, run: AnswerRun, stored: Sequence[StoredLeg], results: Sequence[Block]
) -> list[Edit] | None:
    """Split an answer into a message per leg, with our results between and after them."""
    legs = restore_legs(run, stored, classify_block, _split_text)
    if legs is None or len(results) != len(stored[-1].own_calls):
        return None

    def build_message(owner: int | None, blocks: list[Block], _: bool) -> Block:
        message = as_object(get_at(tree, MESSAGES_KEY, owner)) if owner is not None else {}
        plain = isinstance(message.get("content"), str) and len(blocks) == 1
        return {**message, "role": "assistant", "content": blocks[0]["text"] if plain else [*blocks]}

    between: list[list[Block]] = [[_build_message("user", leg.results)] for leg in stored[:-1]]
    edits = lay_out_legs(MESSAGES_KEY, run, legs, between, build_message)
    if not stored[-1].own_calls:
        return edits
    following = get_at(tree, MESSAGES_KEY, run.end)
    if get_value(following, "role") != "user":
        return None
    return [*edits, *_insert_results(run.end, following, stored[-1], results)]


def _insert_results(index: int, message: Json, stored: StoredLeg, results: Sequence[Block]) -> list[Edit]:
    """Return the edits that put our results among the client's, in the order of the calls."""
    content = get_value(message, "content")
    if isinstance(content, str):
        return [Replace((MESSAGES_KEY, index, "content"), [*results, {"type": "text", "text": content}])]
    client_results = [number for number, block in enumerate_objects(content) if block.get("type") == "tool_result"]
    end = client_results[-1] + 1 if client_results else 0
    return [
        Insert(
            (MESSAGES_KEY, index, "content", client_results[before] if before < len(client_results) else end), result
        )
        for before, result in pair_results(stored, results)
    ]


def _split_text(block: Block, length: int) -> tuple[Block, Block]:
    text = get_text(block, "text")
    front = {key: value for key, value in block.items() if key not in ("cache_control", "citations")}
    return {**front, "text": text[:length]}, {**block, "text": text[length:]}


class AnthropicListener(StreamListener):
    classify_block = staticmethod(classify_block)

    def __init__(self, tool_names: frozenset[str]) -> None:
        self._next_index = 0  # the index of the client's next block
        super().__init__(tool_names)

    def _begin_leg(self) -> None:
        super()._begin_leg()
        self._client_indexes: dict[int, int] = {}
        self._input_pieces: dict[int, list[str]] = {}
        self._text_pieces: dict[int, dict[str, list[str]]] = {}

    @property
    def _stopped_for_calls(self) -> bool:
        return self._stop not in _CUT_REASONS

    def _read(self, value: Block, raw: bytes) -> bytes:
        kind, number = get_text(value, "type"), value.get("index")
        if kind == "message_start":
            self._usage |= as_object(get_at(value, "message", "usage"))
            return b"" if self.earlier_legs else raw
        if kind == "message_delta":
            return self._read_stop(value, raw)
        if kind == "message_stop":
            return self._end_or_hold(raw)
        if kind == "error":
            self.failed = True
            return raw
        if not isinstance(number, int) or not kind.startswith("content_block"):
            return raw
        return self._read_block(kind, number, value, raw)

    def _read_block(self, kind: str, number: int, value: Block, raw: bytes) -> bytes:
        if kind == "content_block_start":
            self._start_block(number, as_object(value.get("content_block")))
        elif kind == "content_block_delta":
            self._extend_block(number, as_object(value.get("delta")))
        if number in self._our_calls:
            return b""
        shown = self._client_indexes.get(number, number)
        return raw if shown == number else write_event(kind, {**value, "index": shown})

    def _start_block(self, number: int, block: Block) -> None:
        self._blocks_by_number[number] = dict(block)
        called = block.get("type") == "tool_use"
        if called and block.get("name") in self.tool_names:
            self._our_calls.add(number)
            return
        self._calls_client = self._calls_client or called
        self._client_indexes[number] = self._next_index
        self._next_index += 1

    def _extend_block(self, number: int, delta: Block) -> None:
        block = self._blocks_by_number.setdefault(number, {})
        if delta.get("type") == "input_json_delta":
            self._input_pieces.setdefault(number, []).append(get_text(delta, "partial_json"))
            return
        for key, more in delta.items():
            if key == "citation":
                cited = block.get("citations")
                if isinstance(cited, list):
                    cited.append(more)
                else:
                    block["citations"] = [more]
            elif key != "type" and isinstance(more, str):
                self._text_pieces.setdefault(number, {}).setdefault(key, [get_text(block, key)]).append(more)
            elif key != "type":
                block[key] = more

    def _read_stop(self, value: Block, raw: bytes) -> bytes:
        self._usage |= {key: each for key, each in as_object(value.get("usage")).items() if each is not None}
        self._stop = get_text(value.get("delta"), "stop_reason") or None
        if not self.earlier_legs:
            return self._end_or_hold(raw)
        return self._end_or_hold(
            write_event("message_delta", {**value, "usage": add_usages(self._all_usages, _OUTPUT_KEYS)})
        )

    def _build_blocks(self) -> list[Block]:
        return [self._complete_block(number, block) for number, block in sorted(self._blocks_by_number.items())]

    def build_body(self, before: Block) -> Block:
        return {**before, "content": [*self._build_blocks()], "stop_reason": self._stop, "usage": self._usage}

    def _complete_block(self, number: int, block: Block) -> Block:
        grown: Block = {key: "".join(pieces) for key, pieces in self._text_pieces.get(number, {}).items()}
        written = "".join(self._input_pieces.get(number, ()))
        if not written:
            return {**block, **grown}
        try:
            given = orjson.loads(written)
        except orjson.JSONDecodeError:
            given = {}
        return {**block, **grown, "input": given if isinstance(given, dict) else {}}


def build_listener(tool_names: frozenset[str]) -> AnthropicListener:
    return AnthropicListener(tool_names)


def list_blocks(answer: Json) -> list[Block]:
    """Return the blocks of an answer as a request contains them."""
    return [each for _, each in enumerate_objects(get_value(answer, "content"))]


def stopped_for_calls(answer: Json) -> bool:
    return get_value(answer, "stop_reason") not in _CUT_REASONS


def join_answers(answers: Sequence[Block], tool_names: frozenset[str]) -> Block:
    """Return all legs as one answer, without our calls."""
    visible: list[Json] = [
        block for answer in answers for block in list_blocks(answer) if not _is_own_call(block, tool_names)
    ]
    usage = add_usages([as_object(answer.get("usage")) for answer in answers], _OUTPUT_KEYS)
    return {**answers[-1], "id": answers[0].get("id"), "content": visible, "usage": usage}


def _is_own_call(block: Block, tool_names: frozenset[str]) -> bool:
    return block.get("type") == "tool_use" and block.get("name") in tool_names
