"""The tool loop on the Responses wire, where an answer is a run of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice, takewhile

from sightline.model.scene import Edit, Insert, Json
from sightline.wire.json_edits import WrittenObject
from sightline.wire.json_tree import Block, enumerate_objects, get_list, get_text, get_value
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
)
from sightline.wire.tool_loop.restoration import MAX_ITEMS, pair_results, restore_legs
from sightline.wire.tool_loop.stream_listener import StreamListener

MESSAGES_KEY = "input"
CALL_IDS_OPTIONAL = False
_OUTPUT_KEYS = ("output_tokens", "output_tokens_details")
_END_EVENTS = {f"response.{end}" for end in ("completed", "incomplete", "failed", "cancelled")}
_START_EVENTS = {"response.created", "response.in_progress", "response.queued"}
_CLIENT_CALLS = frozenset(  # calls that the client answers
    {"function_call", "custom_tool_call", "computer_call", "local_shell_call", "shell_call", "apply_patch_call"}
)


def classify_block(item: Block) -> BlockContent:
    match item.get("type", "message"):
        case "message":
            content = item.get("content")
            texts = (
                [content]
                if isinstance(content, str)
                else [get_text(part, "text") for _, part in enumerate_objects(content)]
            )
            return TextContent("".join(texts))
        case "reasoning":
            return ReasoningContent()
        case "function_call":
            return CallContent(
                get_text(item, "call_id"), get_text(item, "name"), canonicalize_arguments(item.get("arguments"))
            )
        case "custom_tool_call":
            return CallContent(get_text(item, "call_id"), get_text(item, "name"), get_text(item, "input"))
    return OTHER


def can_offer_tools(tree: Json) -> bool:
    tools, items = get_value(tree, "tools"), get_list(tree, MESSAGES_KEY)
    is_complete = get_value(tree, "previous_response_id") is None
    is_complete = is_complete and get_value(tree, "conversation") is None and get_value(tree, "background") is not True
    expects_answer = bool(items) and not _is_from_assistant(items[-1])
    return bool(tools) and isinstance(tools, list) and is_complete and expects_answer


def is_stored(tree: Json) -> bool:
    """Return whether the client may refer to the answer by its id.

    A stream names the id of its first leg before the last leg has one. A request that refers to it would continue after
    one of our calls without its result, and only the proxy could repair that.
    """
    return get_value(tree, "store") is not False


def has_free_choice(tree: Json) -> bool:
    return get_value(tree, "tool_choice") in (None, "auto")


def add_tools(tree: Json, tools: Sequence[OwnTool]) -> list[Edit]:
    place = ("tools", len(get_list(tree, "tools")))
    return [Insert(place, _build_entry(one)) for one in tools]


@lru_cache(MAX_KEPT_TOOLS)
def _build_entry(tool: OwnTool) -> WrittenObject:
    about: Block = {"name": tool.name, "description": tool.description, "strict": False, "parameters": tool.schema}
    return WrittenObject({"type": "function", **about})


def build_result(call: CallContent, result: OwnResult) -> Block:
    parts: list[Json] = [{"type": "input_text", "text": result.text}]
    for mime, data in result.images:
        parts.append({"type": "input_image", "detail": "auto", "image_url": f"data:{mime};base64,{data}"})
    return {"type": "function_call_output", "call_id": call.id, "output": parts if result.images else result.text}


def append_legs(tree: Json, legs: Sequence[tuple[Leg, Sequence[Block]]]) -> list[Edit]:
    place = (MESSAGES_KEY, len(get_list(tree, MESSAGES_KEY)))
    return [Insert(place, item) for leg, results in legs for item in (*_drop_empty_reasoning(leg.blocks), *results)]


def _drop_empty_reasoning(blocks: Sequence[Block]) -> Sequence[Block]:
    """Return the blocks without reasoning that was sent without its content, which no upstream has stored.

    The other items lose their ids then: an item that followed reasoning is rejected without it, if it has its id.
    """
    content_keys = ("encrypted_content", "content")
    kept = [item for item in blocks if item.get("type") != "reasoning" or any(map(item.get, content_keys))]
    return kept if len(kept) == len(blocks) else [_drop_id(item) for item in kept]


def _drop_id(item: Block) -> Block:
    return {key: value for key, value in item.items() if key != "id"}


def _is_from_assistant(item: Json) -> bool:
    """Return whether an item is the assistant's, and not the result of a call."""
    kind, role = get_text(item, "type"), get_text(item, "role")
    return role == "assistant" if role else bool(kind) and not kind.endswith("_output")


def find_answers(tree: Json) -> list[AnswerRun]:
    """Return the runs of the assistant's items, and longer ones that go on after results of their calls.

    The longer ones are needed only where no call has a unique id: else `widen_answer` finds them.
    """
    found: list[AnswerRun] = []
    items = get_list(tree, MESSAGES_KEY)
    at = 0
    while at < len(items):
        onward = (items[index] for index in range(at, len(items)))  # a slice would be copied for every run
        run = [item for item in takewhile(_is_from_assistant, onward) if isinstance(item, dict)]
        if run:
            one = AnswerRun(at, at + len(run), run, [*range(at, at + len(run))])
            has_call = any(isinstance(classify_block(item), CallContent) for item in run)
            wide = (
                islice(_extend_run(items, one), MAX_ITEMS)
                if has_call and not fingerprint_blocks(run, classify_block).is_unique
                else ()
            )
            found += [*reversed([*wide]), one]
        at += len(run) or 1
    return found


def widen_answer(tree: Json, run: AnswerRun, stored: Sequence[StoredLeg]) -> AnswerRun | None:
    """Return an answer whose client put the results of some calls before the next call; None if this isn't one."""
    calls = sum(len(leg.client_calls) for leg in stored)

    def has_all_calls(run: AnswerRun) -> bool:
        return sum(isinstance(classify_block(item), CallContent) for item in run.blocks) >= calls

    return next(filter(has_all_calls, islice(_extend_run(get_list(tree, MESSAGES_KEY), run), calls)), None)


def _extend_run(items: Sequence[Json], run: AnswerRun) -> Iterator[AnswerRun]:
    """Yield longer and longer runs from this item, with only results of their own calls between their items."""
    blocks, owners = [*run.blocks], [*run.owners]
    called = {get_text(each, "call_id") for each in blocks}
    for index in range(run.end, len(items)):
        item = items[index]
        if isinstance(item, dict) and _is_from_assistant(item):
            blocks.append(item)
            owners.append(index)
            called.add(get_text(item, "call_id"))
            if not (index + 1 < len(items) and _is_from_assistant(items[index + 1])):
                yield AnswerRun(run.start, index + 1, [*blocks], [*owners])
        elif not _is_output(item) or get_text(item, "call_id") not in called:
            return


def _is_output(item: Json) -> bool:
    return get_text(item, "type").endswith("_output")


def restore_answer(
    tree: Json, run: AnswerRun, stored: Sequence[StoredLeg], results: Sequence[Block]
) -> list[Edit] | None:
    """Insert our calls and results; all items of the client stay as they are."""
    legs = restore_legs(run, stored, classify_block)
    last = stored[-1]
    client_results = [*takewhile(_is_output, get_list(tree, MESSAGES_KEY)[run.end :])]
    if legs is None or len(results) != len(last.own_calls) or (last.own_calls and not client_results):
        return None
    has_no_reasoning = not any(isinstance(classify_block(item), ReasoningContent) for item in run.blocks)
    placed: list[tuple[Block, int | None, StoredLeg]] = []
    for blocks, leg in zip(legs, stored, strict=True):
        own_results = leg.results if leg is not last else ()
        placed += [*((item, owner, leg) for item, owner in blocks), *((item, None, leg) for item in own_results)]
    last_results = pair_results(last, results)
    edits: list[Edit] = []
    after: list[Edit] = []
    for number, (item, owner, leg) in enumerate(placed):
        if owner is not None:
            continue
        place = next((index for _, index, _ in placed[number:] if index is not None), run.end)
        edits.append(
            Insert((MESSAGES_KEY, place), _drop_id(item) if has_no_reasoning and leg.reasoning_blocks else item)
        )
        if leg is last:
            before, result = next(last_results)
            if place < run.end and len(run.blocks) < run.end - run.start:  # results are between the calls here
                edits.append(Insert((MESSAGES_KEY, place), result))
            else:
                after.append(Insert((MESSAGES_KEY, run.end + min(before, len(client_results))), result))
    return [*edits, *after]


class ResponsesListener(StreamListener):
    classify_block = staticmethod(classify_block)

    def __init__(self, tool_names: frozenset[str]) -> None:
        self._id: Json = None
        self._next_index = 0  # the index of the client's next item
        self._sequence: int | None = None  # the number of its next event; None: the upstream's first number
        self._sent_items: list[Json] = []  # the items that the client has received
        super().__init__(tool_names)

    def _begin_leg(self) -> None:
        super()._begin_leg()
        self._client_indexes: dict[int, int] = {}

    @property
    def _stopped_for_calls(self) -> bool:
        return self._stop in (None, "response.completed")

    def _read(self, value: Block, raw: bytes) -> bytes:
        kind, number = get_text(value, "type"), value.get("output_index")
        if kind in _START_EVENTS:
            self._id = self._id or get_value(value.get("response"), "id")
            return b"" if self.earlier_legs else self._write_numbered_event(value, raw)
        if kind in _END_EVENTS:
            return self._read_end(kind, value, raw)
        if kind == "error":
            self.failed = True
            return raw
        if not isinstance(number, int):
            return self._write_numbered_event(value, raw)
        return self._read_item(kind, number, value, raw)

    def _read_item(self, kind: str, number: int, value: Block, raw: bytes) -> bytes:
        item = as_object(value.get("item"))
        if kind == "response.output_item.added":
            self._start_item(number, item)
        elif kind == "response.output_item.done":
            if number not in self._client_indexes and number not in self._our_calls:
                self._start_item(number, item)
            self._blocks_by_number[number] = item
            if number not in self._our_calls:
                self._sent_items.append(item)
        if number in self._our_calls:
            return b""
        shown = self._client_indexes.get(number, number)
        return self._write_numbered_event(value if shown == number else {**value, "output_index": shown}, raw)

    def _start_item(self, number: int, item: Block) -> None:
        if item.get("type") == "function_call" and item.get("name") in self.tool_names:
            self._our_calls.add(number)
            return
        self._calls_client = self._calls_client or item.get("type") in _CLIENT_CALLS
        self._client_indexes[number] = self._next_index
        self._next_index += 1

    def _write_numbered_event(self, value: Block, raw: bytes) -> bytes:
        """Return an event with its number among all that the client gets."""
        given = value.get("sequence_number")
        number = self._sequence if self._sequence is not None else given if isinstance(given, int) else 0
        self._sequence = number + 1
        index = value.get("output_index")
        if not self.earlier_legs and not self._our_calls and given in (number, None):
            return raw
        if "sequence_number" not in value and not isinstance(index, int):
            return raw
        new = {**value, "sequence_number": number} if "sequence_number" in value else value
        return write_event(get_text(value, "type"), new)

    def _read_end(self, kind: str, value: Block, raw: bytes) -> bytes:
        self._stop = kind
        response = as_object(value.get("response"))
        self._usage |= as_object(response.get("usage"))
        self.failed = kind == "response.failed"
        if self.continues:
            return b""
        if not self.earlier_legs and not self._our_calls:
            return self._write_numbered_event(value, raw)
        usage: Block = {"usage": _add_usages(self._all_usages)} if any(self._all_usages) else {}
        final: Block = {**value, "response": {**response, "id": self._id, "output": [*self._sent_items], **usage}}
        return (
            self._end_or_hold(self._write_numbered_event(final, raw))
            if not self.failed
            else self._write_numbered_event(final, raw)
        )

    def _build_blocks(self) -> list[Block]:
        return [item for _, item in sorted(self._blocks_by_number.items())]

    def build_body(self, before: Block) -> Block:
        status = (self._stop or "response.completed").removeprefix("response.")
        return {**before, "status": status, "output": [*self._build_blocks()], "usage": self._usage}


def build_listener(tool_names: frozenset[str]) -> ResponsesListener:
    return ResponsesListener(tool_names)


def list_blocks(answer: Json) -> list[Block]:
    return [item for _, item in enumerate_objects(get_value(answer, "output"))]


def stopped_for_calls(answer: Json) -> bool:
    return get_value(answer, "status") not in ("incomplete", "failed", "cancelled")


def join_answers(answers: Sequence[Block], tool_names: frozenset[str]) -> Block:
    """Return all legs as one answer, without our calls."""
    visible: list[Json] = [
        item for answer in answers for item in list_blocks(answer) if not _is_own_call(item, tool_names)
    ]
    usage = _add_usages([as_object(answer.get("usage")) for answer in answers])
    return {**answers[-1], "id": answers[0].get("id"), "output": visible, "usage": usage}


def _is_own_call(item: Block, tool_names: frozenset[str]) -> bool:
    return item.get("type") == "function_call" and item.get("name") in tool_names


def _add_usages(usages: Sequence[Block]) -> Block:
    return add_usages(usages, _OUTPUT_KEYS, "total_tokens", "input_tokens")
