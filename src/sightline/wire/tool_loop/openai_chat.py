"""The tool loop on the Chat Completions wire.

An answer is one message here, with all text in one field. To treat it like the other wires, `_split_message` makes
blocks of it: `{"reasoning_content": …}`, `{"content": …}`, each call, and `{"more": …}` for fields that aren't known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

from sightline.model.scene import Edit, Insert, Json, Replace
from sightline.wire.json_edits import WrittenObject
from sightline.wire.json_tree import Block, enumerate_objects, get_at, get_list, get_text, get_value
from sightline.wire.sse import write_event
from sightline.wire.tool_loop.leg import (
    MAX_KEPT_TOOLS,
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
    fingerprint_blocks,
    fingerprint_legs,
)
from sightline.wire.tool_loop.restoration import find_runs, lay_out_legs, pair_results, restore_legs
from sightline.wire.tool_loop.stream_listener import StreamListener

MESSAGES_KEY = "messages"
CALL_IDS_OPTIONAL = False
_OUTPUT_KEYS = ("completion_tokens", "completion_tokens_details")
_REASONING_KEYS = ("reasoning_content", "reasoning")  # clients may send these back or not
_EXTRA = "more"  # the block of all other fields of a message, such as reasoning_details
_CUT_REASONS = ("length", "content_filter")  # stop reasons after which no call is answered
_KNOWN_KEYS = ("role", "content", "tool_calls", *_REASONING_KEYS)


def classify_block(block: Block) -> BlockContent:
    if "content" in block:
        return TextContent(get_text(block, "content"))
    if isinstance(function := block.get("function"), dict):
        return CallContent(
            get_text(block, "id"), get_text(function, "name"), canonicalize_arguments(function.get("arguments"))
        )
    return next((ReasoningContent(get_text(block, key)) for key in _REASONING_KEYS if key in block), OTHER)


def can_offer_tools(tree: Json) -> bool:
    tools, messages = get_value(tree, "tools"), get_list(tree, MESSAGES_KEY)
    expects_answer = bool(messages) and get_value(messages[-1], "role") != "assistant"
    is_single = get_value(tree, "n") in (None, 1)
    return bool(tools) and isinstance(tools, list) and expects_answer and is_single


def has_free_choice(tree: Json) -> bool:
    return get_value(tree, "tool_choice") in (None, "auto")


def is_stored(tree: Json) -> bool:
    return False  # every request has the whole conversation in it


def add_tools(tree: Json, tools: Sequence[OwnTool]) -> list[Edit]:
    place = ("tools", len(get_list(tree, "tools")))
    return [Insert(place, _build_entry(one)) for one in tools]


@lru_cache(MAX_KEPT_TOOLS)
def _build_entry(tool: OwnTool) -> WrittenObject:
    function: Block = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return WrittenObject({"type": "function", "function": function})


def build_result(call: CallContent, result: OwnResult) -> Block:
    parts: list[Json] = [{"type": "text", "text": result.text}]
    for mime, data in result.images:
        parts.append({"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}})
    return {"role": "tool", "tool_call_id": call.id, "content": parts if result.images else result.text}


def append_legs(tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
    place = (MESSAGES_KEY, len(get_list(tree, MESSAGES_KEY)))
    return [
        Insert(place, each)
        for leg, results in legs
        for each in (_build_message({"role": "assistant"}, leg.blocks), *results)
    ]


def _build_message(base: Block, blocks: Sequence[Block]) -> Block:
    """Return a message of these blocks; other fields of `base` stay."""
    message: Block = {key: value for key, value in base.items() if key not in _KNOWN_KEYS or key == "role"}
    text = "".join(get_text(block, "content") for block in blocks if "content" in block)
    message["content"] = text or None
    for block in blocks:
        message |= {key: block[key] for key in _REASONING_KEYS if key in block}
        message |= as_object(block.get(_EXTRA))
    calls: list[Json] = [block for block in blocks if "function" in block]
    return {**message, "tool_calls": calls} if calls else message


def find_answers(tree: Json) -> list[AnswerRun]:
    return find_runs(
        [
            _split_message(message) if isinstance(message, dict) and message.get("role") == "assistant" else None
            for message in get_list(tree, MESSAGES_KEY)
        ]
    )


def _list_extras(message: Block) -> list[Block]:
    """Return a block of the fields of a message that aren't known here, if there are any."""
    more: Block = {key: each for key, each in message.items() if key not in _KNOWN_KEYS and not _is_empty(each)}
    return [{_EXTRA: more}] if more else []


def _is_empty(value: Json) -> bool:
    """Return whether a field says nothing, such as `annotations: []`: clients don't send it back."""
    return value in (None, "", []) or (isinstance(value, dict) and all(map(_is_empty, value.values())))


def _split_message(message: Block) -> list[Block]:
    content = message.get("content")
    texts = (
        [content] if isinstance(content, str) else [get_text(part, "text") for _, part in enumerate_objects(content)]
    )
    calls = [call for _, call in enumerate_objects(message.get("tool_calls"))]
    reasoning: list[Block] = [{key: message[key]} for key in _REASONING_KEYS if get_text(message, key)]
    words: list[Block] = [{"content": "".join(texts)}] if any(texts) else []
    return [*reasoning[:1], *words, *calls]


def widen_answer(tree: Json, run: AnswerRun, stored: Sequence[StoredLeg]) -> AnswerRun | None:
    return None  # results never come before the end of an answer


def restore_answer(
    tree: Json, run: AnswerRun, stored: Sequence[StoredLeg], results: Sequence[Block]
) -> list[Edit] | None:
    """Split an answer into a message per leg, with our results between and after them."""
    last = stored[-1]
    if len(results) != len(last.own_calls):
        return None
    if fingerprint_legs(stored) != fingerprint_blocks(run.blocks, classify_block):
        return None
    edits = _restore_one_message(tree, run, stored) if run.end - run.start == 1 else _restore_several(tree, run, stored)
    if edits is None or not last.own_calls:
        return edits
    client_results = [
        *takewhile(lambda each: get_value(each, "role") == "tool", get_list(tree, MESSAGES_KEY)[run.end :])
    ]
    if not client_results:
        return None
    inserted = [
        Insert((MESSAGES_KEY, run.end + min(before, len(client_results))), result)
        for before, result in pair_results(last, results)
    ]
    return [*edits, *inserted]


def _restore_one_message(tree: Json, run: AnswerRun, stored: Sequence[StoredLeg]) -> list[Edit]:
    """Restore an answer that comes back as one message: each leg gets its text and reasoning from the record."""
    *inner, last = stored
    messages: list[Block] = []
    reasoning_key = _find_reasoning_key(run.blocks, stored)
    for leg in inner:
        own_calls = [block for block, _ in leg.own_calls]
        messages += [
            _build_message({"role": "assistant"}, [*_build_leg_blocks(leg, reasoning_key), *own_calls]),
            *leg.results,
        ]
    calls = [block for block in run.blocks if "function" in block]
    for block, position in reversed(last.own_calls):
        calls.insert(position.calls, block)
    kept = [] if reasoning_key else _list_reasoning(run.blocks)
    old = as_object(get_at(tree, MESSAGES_KEY, run.start))
    messages.append(_build_message(old, [*kept, *_build_leg_blocks(last, reasoning_key), *calls]))
    first, *others = messages
    return [Replace((MESSAGES_KEY, run.start), first), *(Insert((MESSAGES_KEY, run.end), each) for each in others)]


def _restore_several(tree: Json, run: AnswerRun, stored: Sequence[StoredLeg]) -> list[Edit] | None:
    """Restore an answer that comes back as several messages, such as the text in one and each call in another."""
    reasoning_key = _find_reasoning_key(run.blocks, stored)
    pairs = [pair for pair in zip(run.blocks, run.owners, strict=True) if not _list_reasoning([pair[0]])]
    answer_run = replace(run, blocks=[block for block, _ in pairs], owners=[owner for _, owner in pairs])
    legs = restore_legs(
        answer_run, [leg.without(reasoning=True, others=True) for leg in stored], classify_block, _split_text
    )
    if legs is None:
        return None

    def build_message(owner: int | None, blocks: list[Block], last: bool) -> Block:
        if owner is None or not last:
            return _build_message({"role": "assistant"}, blocks)
        kept = [] if reasoning_key else _list_reasoning(run.get_blocks(owner))
        return _build_message(as_object(get_at(tree, MESSAGES_KEY, owner)), [*kept, *blocks])

    for placed, leg in zip(legs, stored, strict=True):
        placed[:0] = [(block, None) for block in _build_reasoning(leg, reasoning_key)]
    between = [leg.results for leg in stored[:-1]]
    return lay_out_legs(MESSAGES_KEY, run if reasoning_key else answer_run, legs, between, build_message)


def _list_reasoning(blocks: Sequence[Block]) -> list[Block]:
    return [block for block in blocks if isinstance(classify_block(block), ReasoningContent)]


def _split_text(block: Block, length: int) -> tuple[Block, Block]:
    text = get_text(block, "content")
    return {"content": text[:length]}, {"content": text[length:]}


def _find_reasoning_key(blocks: Sequence[Block], stored: Sequence[StoredLeg]) -> str:
    """Return the key of the reasoning, if it came back unchanged and each leg can get its own; else an empty text."""
    reasoning = _list_reasoning(blocks)
    if not reasoning:
        return ""
    ((key, text),) = reasoning[0].items()
    return key if text == "".join(leg.reasoning_text for leg in stored) else ""


def _build_leg_blocks(stored: StoredLeg, reasoning_key: str) -> list[Block]:
    return [*_build_reasoning(stored, reasoning_key), {"content": stored.text}]


def _build_reasoning(stored: StoredLeg, reasoning_key: str) -> list[Block]:
    return [{reasoning_key: stored.reasoning_text}] if reasoning_key and stored.reasoning_text else []


class ChatListener(StreamListener):
    classify_block = staticmethod(classify_block)
    call_keys = ("tool_calls",)

    def __init__(self, tool_names: frozenset[str]) -> None:
        self._head: Block = {}  # the fields that all chunks of the first leg share
        self._role_sent = False  # a chunk with the role was sent
        super().__init__(tool_names)

    def _begin_leg(self) -> None:
        super()._begin_leg()
        self._text_pieces: dict[str, list[str]] = {}  # of the text and the reasoning of this leg
        self._extras: Block = {}  # other fields of its message
        self._argument_pieces: dict[int, list[str]] = {}  # of the arguments of its calls
        self._call_by_index: dict[
            int, int
        ] = {}  # by the index that the upstream gives it: the call that is being written
        self._unnamed: dict[int, Block] = {}  # calls whose names haven't come yet
        self._client_indexes: dict[int, int] = {}
        self._owes_usage = False  # the usage has still to be sent, in a chunk of its own

    @property
    def _stopped_for_calls(self) -> bool:
        return self._stop not in _CUT_REASONS

    def finish(self) -> bytes:
        out = super().finish()
        if self._owes_usage and not self.continues:  # some upstreams end without [DONE]
            self.ending += self._write_usage(self.usages)
        return out

    def _end_stream(self, raw: bytes) -> bytes:
        return self._end_or_hold(self._write_usage(self._all_usages) + raw)

    def _read(self, value: Block, raw: bytes) -> bytes:
        if value.get("error"):
            self.failed = True
            return raw
        if not self._head:
            self._head = {key: value[key] for key in ("id", "created", "model") if key in value}
        self._usage |= as_object(value.get("usage"))
        choice = next((each for _, each in enumerate_objects(value.get("choices"))), None)
        if choice is None:
            return self._read_usage(value, raw)
        delta, stop = as_object(choice.get("delta")), choice.get("finish_reason")
        kept = self._read_delta(delta)
        if stop:
            self._stop = str(stop)
        if stop and self.continues:  # some upstreams send the last text together with the stop reason
            return self._write_chunk(value, {**choice, "finish_reason": None}, kept, b"")
        out = self._write_chunk(value, choice, kept, raw if kept == delta else b"")
        if value.get("usage") and not out:  # LiteLLM sends the usage beside an empty choice
            self._owes_usage = True
        return self._end_or_hold(out) if stop else out

    def _read_usage(self, value: Block, raw: bytes) -> bytes:
        """Read a chunk without a choice: the usage, or nothing important."""
        if not value.get("usage"):
            return b"" if self.earlier_legs else raw
        if not self.earlier_legs and not self.calls_ours:
            return raw
        self._owes_usage = True  # sent with the end of the answer
        return b""

    def _write_usage(self, usages: Sequence[Block]) -> bytes:
        """Return the chunk with the usage of all legs, if it has still to be sent."""
        if not self._owes_usage:
            return b""
        self._owes_usage = False
        chunk: Block = {"object": "chat.completion.chunk", "choices": [], "usage": _add_usages(usages)}
        return write_event("", {**self._head, **chunk})

    def _write_chunk(self, value: Block, choice: Block, kept: Block, raw: bytes) -> bytes:
        """Return the chunk without our calls; nothing, if that was all of it."""
        if raw and not self.earlier_legs and not self._our_calls:
            self._role_sent = self._role_sent or "role" in kept
            return raw
        stop = choice.get("finish_reason")
        kept = {key: each for key, each in kept.items() if key != "role"}
        if not self._role_sent:
            kept = {"role": "assistant", **kept}
        if not stop and not {key: each for key, each in kept.items() if key != "role" and each not in (None, "")}:
            return b""
        self._role_sent = True
        usage: Block = {"usage": _add_usages(self._all_usages)} if value.get("usage") and stop else {}
        return write_event("", {**value, **self._head, "choices": [{**choice, "delta": kept}], **usage})

    def _read_delta(self, delta: Block) -> Block:
        """Add a delta to the leg; return what of it goes to the client."""
        for key, more in delta.items():
            if key in ("content", *_REASONING_KEYS):
                self._text_pieces.setdefault(key, []).append(more if isinstance(more, str) else "")
            elif key not in _KNOWN_KEYS and not _is_empty(more):
                old = self._extras.get(key)
                self._extras[key] = [*old, *more] if isinstance(old, list) and isinstance(more, list) else more
        pieces = enumerate_objects(delta.get("tool_calls"))
        if not pieces:
            return delta
        kept_calls: list[Json] = [kept for _, call in pieces if (kept := self._read_call(call)) is not None]
        rest = {key: each for key, each in delta.items() if key != "tool_calls"}
        return {**rest, "tool_calls": kept_calls} if kept_calls else rest

    def _read_call(self, call: Block) -> Block | None:
        """Add a piece of a call; return it with the client's index. None: it is ours, or that isn't known yet."""
        number = self._number_call(call)
        self._argument_pieces.setdefault(number, []).append(get_text(call.get("function"), "arguments"))
        block = self._blocks_by_number.setdefault(number, {"id": "", "type": "function"})
        function = {**as_object(block.get("function")), **_drop_arguments(as_object(call.get("function")))}
        block |= {key: each for key, each in call.items() if key not in ("index", "function") and each}
        block["function"] = function
        if number not in self._client_indexes and number not in self._our_calls:
            call = _join_pieces(self._unnamed.pop(number, {}), call)
            if not function.get("name"):
                self._unnamed[number] = call
                return None
            self._assign_call(number, get_text(function, "name"))
        return None if number in self._our_calls else {**call, "index": self._client_indexes[number]}

    def _number_call(self, call: Block) -> int:
        """Return the number of a call in this leg. One with another id is another call, even at the same index."""
        index = call.get("index")
        index = index if isinstance(index, int) else len(self._blocks_by_number)
        at = self._call_by_index.get(index)
        name = get_text(call, "id")
        if at is None or (name and get_text(self._blocks_by_number.get(at), "id") not in ("", name)):
            at = self._call_by_index[index] = len(self._blocks_by_number)
        return at

    def _assign_call(self, number: int, name: str) -> None:
        """Note whether a call is ours or the client's, now that its name is known."""
        if name in self.tool_names:
            self._our_calls.add(number)
        else:
            self._calls_client = True
            self._client_indexes[number] = len(self._client_indexes)

    def _build_blocks(self) -> list[Block]:
        texts = {key: "".join(pieces) for key, pieces in self._text_pieces.items()}
        thoughts: list[Block] = [{key: texts[key]} for key in _REASONING_KEYS if texts.get(key)]
        words: list[Block] = [{"content": texts["content"]}] if texts.get("content") else []
        more: list[Block] = [{_EXTRA: self._extras}] if self._extras else []
        return [
            *more,
            *thoughts[:1],
            *words,
            *(self._complete_call(number) for number in sorted(self._blocks_by_number)),
        ]

    def build_body(self, before: Block) -> Block:
        message = _build_message({"role": "assistant"}, self._build_blocks())
        choice: Block = {"index": 0, "message": message, "finish_reason": self._stop or "stop"}
        return {**before, "choices": [choice], "usage": self._usage}

    def _complete_call(self, number: int) -> Block:
        call = self._blocks_by_number[number]
        given = "".join(self._argument_pieces.get(number, ()))
        return {**call, "function": {**as_object(call.get("function")), "arguments": given}}


def _drop_arguments(function: Block) -> Block:
    """Return the fields of a piece without arguments: the name isn't appended, some upstreams repeat it."""
    return {key: each for key, each in function.items() if key != "arguments" and each}


def _join_pieces(before: Block, call: Block) -> Block:
    """Return two pieces of one streamed call as one."""
    if not before:
        return call
    first, then = as_object(before.get("function")), as_object(call.get("function"))
    given = get_text(first, "arguments") + get_text(then, "arguments")
    return {**before, **_drop_arguments(call), "function": {**first, **_drop_arguments(then), "arguments": given}}


def build_listener(tool_names: frozenset[str]) -> ChatListener:
    return ChatListener(tool_names)


def list_blocks(answer: Json) -> list[Block]:
    message = get_at(answer, "choices", 0, "message")
    return [*_list_extras(message), *_split_message(message)] if isinstance(message, dict) else []


def stopped_for_calls(answer: Json) -> bool:
    return get_at(answer, "choices", 0, "finish_reason") not in _CUT_REASONS


def join_answers(answers: Sequence[Block], tool_names: frozenset[str]) -> Block:
    """Return all legs as one answer, without our calls."""
    kept = [block for answer in answers for block in list_blocks(answer) if not _is_own_call(block, tool_names)]
    message, choice = get_at(answers[-1], "choices", 0, "message"), as_object(get_at(answers[-1], "choices", 0))
    thinking = "".join(content.text for block in kept if isinstance(content := classify_block(block), ReasoningContent))
    key = next((key for block in kept for key in _REASONING_KEYS if key in block), "")
    shown = [block for block in kept if not isinstance(classify_block(block), ReasoningContent)]
    thoughts: list[Block] = [{key: thinking}] if key else []
    visible = _build_message(as_object(message), [*thoughts, *shown])
    head: Block = {each: answers[0][each] for each in ("id", "created") if each in answers[0]}
    usage: Block = {}
    if any("usage" in answer for answer in answers):
        usage = {"usage": _add_usages([as_object(answer.get("usage")) for answer in answers])}
    return {**answers[-1], **head, "choices": [{**choice, "message": visible}], **usage}


def _is_own_call(block: Block, tool_names: frozenset[str]) -> bool:
    return get_text(block.get("function"), "name") in tool_names


def _add_usages(usages: Sequence[Block]) -> Block:
    return add_usages(usages, _OUTPUT_KEYS, "total_tokens", "prompt_tokens")
