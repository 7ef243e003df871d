"""The OpenAI Responses wire: where images are in a request, how their fates are written, and its errors.

A conversation is a flat list of items here. Reasoning, text and calls of the assistant are items of their own, and
reasoning must stay directly before the item that it led to. An output can contain images; if an upstream doesn't accept
them there, they move into a user message after the run of outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from sightline.model import labels
from sightline.model.profile import Profile
from sightline.model.scene import Edit, Insert, Json, JsonPath, OpaqueSource, Scene, Sight, Source, ToolCall
from sightline.wire.image_blocks import find_foreign_source, read_image_data_url, read_image_url
from sightline.wire.json_tree import (
    Block,
    Texts,
    enumerate_objects,
    get_list,
    get_name,
    get_text,
    get_value,
    parse_arguments,
)
from sightline.wire.lowering import (
    BlockFormat,
    build_hoisted_blocks,
    group_by_run,
    has_pixels,
    lower_in_messages,
    lower_in_text,
    lower_tool_result,
    sort_by_call,
)
from sightline.wire.scene_reader import SceneReader, is_from_person
from sightline.wire.sse import write_event

PATHS = ("/v1/responses", "/responses", "/v1/responses/compact", "/responses/compact")
COUNTING_PATHS = ("/v1/responses/input_tokens", "/responses/input_tokens")
HEAD_KEYS = ("tools", "instructions")
MESSAGES_KEY = "input"

# An image in a message must name its detail, one in an output need not. This is the default.
_DETAIL: Block = {"detail": "auto"}
# These refer to a part of the conversation that OpenAI has stored.
_STORED_KEYS = ("previous_response_id", "conversation")
_LIST_OUTPUTS = ("function_call_output", "custom_tool_call_output")  # their output may be a text or a list
_FILE_PART = "input_file"
_REMOTE_CALL = "mcp_call"  # a call that the provider itself has made, with its result
_SHELL_TEXTS = ("stdout", "stderr")  # the texts of a shell's output
_ASSISTANT_TYPES = (
    "reasoning",
    "image_generation_call",
    "web_search_call",
    "file_search_call",
    "code_interpreter_call",
)


def read(tree: Json, texts: Texts) -> Scene:
    reader = SceneReader(texts)
    if isinstance(words := get_value(tree, MESSAGES_KEY), str):
        reader.begin_message("user", opens=is_from_person([words]))
    run: list[ToolCall] = []  # the calls of the outputs just before
    offered = [get_value(tree, "tools")]
    for i, item in enumerate(get_list(tree, MESSAGES_KEY)):
        kind = _get_type(item)
        if kind.endswith("_output"):
            run = run if reader.is_in_results else []
            run.append(reader.find_call(item, "call_id"))
            _read_output(reader, (MESSAGES_KEY, i, "output"), kind, item, run[-1])
            continue
        run = _read_item(reader, (MESSAGES_KEY, i, "content"), kind, item, run)
        if kind == "additional_tools":
            offered.append(get_value(item, "tools"))
    partial = any(get_value(tree, key) is not None for key in _STORED_KEYS)
    model, stream = get_name(tree, "model", texts), get_value(tree, "stream") is True
    names = _list_tool_names(offered, texts)
    return reader.build_scene(model, stream=stream, tools=names, partial=partial, declared_tools=tuple(offered))


def _get_type(item: Json) -> str:
    """Return the type of an item; a message may come without one."""
    if not isinstance(item, dict):
        return ""
    kind = item.get("type")
    return kind if isinstance(kind, str) and kind else "message" if item.get("role") is not None else ""


def _is_output(item: Json) -> bool:
    return _get_type(item).endswith("_output")


def _is_call(item: Json) -> bool:
    return _get_type(item).endswith("_call") and isinstance(get_value(item, "call_id"), str)


def _is_from_assistant(item: Json) -> bool:
    return (
        _is_call(item) or _get_type(item) in (*_ASSISTANT_TYPES, _REMOTE_CALL) or get_value(item, "role") == "assistant"
    )


def _read_arguments(item: Json, texts: Texts) -> Json:
    """Return the arguments of a call: of a function, the action of a built-in tool, or the text of a custom tool."""
    if isinstance(action := get_value(item, "action"), dict):
        return action
    given = get_text(item, "arguments")
    return parse_arguments(given, texts) if given else {"input": get_name(item, "input", texts)}


def _read_item(reader: SceneReader, place: JsonPath, kind: str, item: Json, calls: list[ToolCall]) -> list[ToolCall]:
    """Read an item after the outputs of `calls`; return those whose images may still follow."""
    if kind.endswith("_call") and _is_call(item):
        reader.begin_message("assistant")
        call_id, name = get_name(item, "call_id", reader.texts), get_name(item, "name", reader.texts)
        reader.add_call(call_id, name, _read_arguments(item, reader.texts))
    elif kind == _REMOTE_CALL:
        reader.begin_message("assistant")
        own, arguments = get_name(item, "id", reader.texts), parse_arguments(get_text(item, "arguments"), reader.texts)
        reader.add_call(own, get_name(item, "name", reader.texts), arguments)
        reader.read_tool_text((*place[:-1], "output"), get_text(item, "output"), reader.calls[own])
    elif (role := get_value(item, "role")) == "assistant" or kind in _ASSISTANT_TYPES:
        reader.begin_message("assistant")
    elif role == "user" and kind == "message":
        content = get_value(item, "content")
        return reader.read_user_message(place, content, enumerate_objects(content), _find_source, calls)
    else:
        reader.begin_message("other")
        for j, part in enumerate_objects(get_value(item, "content")):
            if (source := _find_source(part, reader.texts)) is not None:
                reader.add_pasted_image((*place, j), source)
    return []


def _read_output(reader: SceneReader, place: JsonPath, kind: str, item: Json, call: ToolCall) -> None:
    reader.begin_message("tool")
    output = get_value(item, "output")
    if kind == "computer_call_output":
        if isinstance(output, dict) and (source := _find_source(output, reader.texts)):
            reader.add_tool_image(place, source, call, fixed=True)
    elif isinstance(output, str):
        reader.read_tool_text(place, output, call)
    elif kind == "shell_call_output":
        for k, part in enumerate_objects(output):
            for stream in _SHELL_TEXTS:
                reader.read_tool_text((*place, k, stream), get_text(part, stream), call)
    else:
        _read_output_parts(reader, place, output, call)


def _read_output_parts(reader: SceneReader, place: JsonPath, output: Json, call: ToolCall) -> None:
    for k, part in enumerate_objects(output):
        if (source := _find_source(part, reader.texts)) is not None:
            reader.add_tool_image((*place, k), source, call)
        elif part.get("type") == "input_text":
            reader.read_tool_text((*place, k, "text"), get_text(part, "text"), call)


def _find_source(part: Block, texts: Texts) -> Source | None:
    kind = part.get("type")
    if kind == _FILE_PART:
        return read_image_data_url(part.get("file_data"), texts)
    if kind not in ("input_image", "computer_screenshot"):
        return find_foreign_source(part, texts)
    if isinstance(url := part.get("image_url"), str):
        return read_image_url(url, texts)
    if isinstance(reference := part.get("file_id"), str):
        return OpaqueSource(reference)
    return None


def _list_tool_names(offered: Sequence[Json], texts: Texts) -> Iterator[str]:
    """Yield the names of the tools: of the request, of items that add tools, and of namespaces.

    A call names a tool of a namespace without it. The full name, as other wires write it, tells whose tool it is.
    """
    for tools in offered:
        for _, tool in enumerate_objects(tools):
            yield (space := get_name(tool, "name", texts))
            for _, inner in enumerate_objects(tool.get("tools")):
                yield (name := get_name(inner, "name", texts))
                yield f"{space.rstrip('_')}__{name}"


def _replace_image(old: Block, mime: str, data: str) -> Block:
    return {**old, "file_data" if old.get("type") == _FILE_PART else "image_url": f"data:{mime};base64,{data}"}


BLOCKS = BlockFormat(
    build_text=lambda text: {"type": "input_text", "text": text},
    build_image=lambda mime, data: _replace_image({"type": "input_image", **_DETAIL}, mime, data),
    replace_image=_replace_image,
    accepts=lambda part: get_value(part, "type") in ("input_image", "computer_screenshot", _FILE_PART),
    build_link=lambda url: {"type": "input_image", **_DETAIL, "image_url": url},
    has_cache_marks=False,
)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    hoist = profile.moves_tool_images
    in_results = [sight for sight in scene.sights if sight.is_in_tool_result and not sight.pixels_only]
    edits = lower_in_messages(
        [sight for sight in scene.sights if not sight.is_in_tool_result or sight.pixels_only], tree, BLOCKS
    )
    items = get_list(tree, MESSAGES_KEY)
    leaving: list[Sight] = []
    for message, group in groupby(in_results, key=lambda sight: sight.message):
        group_sights, is_text = list(group), _must_be_text(items[message])
        if is_text:
            edits += lower_in_text(group_sights, tree, BLOCKS)
        else:
            edits += lower_tool_result((MESSAGES_KEY, message, "output"), group_sights, tree, BLOCKS, hoist=hoist)
        leaving += filter(has_pixels, group_sights) if hoist or is_text else ()
    order = _number_calls(items) if len(leaving) > 1 else {}
    for end, run in group_by_run(leaving, lambda message: _find_run_end(message, items)):
        if profile.tool_images == "bridge":
            edits.append(Insert((MESSAGES_KEY, end), _build_message("assistant", labels.BRIDGE_TEXT)))
        shown = build_hoisted_blocks(sort_by_call(run, order), tree, BLOCKS)
        edits.append(Insert((MESSAGES_KEY, end), _build_message("user", [_add_detail(part) for part in shown])))
    return edits


def _must_be_text(item: Json) -> bool:
    """Return whether an output must stay text."""
    kind = _get_type(item)
    return kind == "shell_call_output" or (kind not in _LIST_OUTPUTS and isinstance(get_value(item, "output"), str))


def _add_detail(part: Json) -> Json:
    if isinstance(part, dict) and part.get("type") == "input_image" and part.get("detail") is None:
        return {**part, **_DETAIL}
    return part


def _build_message(role: str, content: Json) -> Json:
    return {"type": "message", "role": role, "content": content}


def _find_run_end(message: int, items: Sequence[Json]) -> int:
    """Return the index just after the run of outputs that contains this one, or follows the same group of calls."""
    end = message
    if _get_type(items[end]) == _REMOTE_CALL:
        end += 1
        next_output = _skip_while(_is_from_assistant, items, end)
        end = next_output if next_output < len(items) and _is_output(items[next_output]) else end
    return _skip_while(_is_output, items, end)


def _skip_while(passes: Callable[[Json], bool], items: Sequence[Json], start: int) -> int:
    return next((index for index in range(start, len(items)) if not passes(items[index])), len(items))


def _number_calls(items: Sequence[Json]) -> dict[str, int]:
    """Return the order of the calls. The first with an id counts, so that no later one moves what was sent before."""
    order: dict[str, int] = {}
    for item in items:
        if _is_call(item):
            order.setdefault(get_text(item, "call_id"), len(order))
    return order


def write_error(message: str) -> bytes:
    """Return the events that report an error in a stream.

    There are two: OpenAI's own SDK raises for any event with an `error`, and others read only the end of a response.
    """
    about = {"code": "server_error", "message": message, "param": None}
    error: Json = {"type": "error", **about, "sequence_number": 0, "error": {"type": "server_error", **about}}
    response: Json = {
        "id": "resp_sightline",
        "object": "response",
        "created_at": 0,
        "status": "failed",
        "error": {"code": "server_error", "message": message},
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": "",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    failed: Json = {"type": "response.failed", "sequence_number": 1, "response": response}
    return write_event("error", error) + write_event("response.failed", failed)
