"""The OpenAI Chat Completions wire: where images are in a request, how their fates are written, and its errors.

A tool message of this wire can contain text only. An image in one moves into a user message of its own, after the last
tool message of the run. It is never put between two of them: each call must be answered before another role speaks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from sightline.model import labels
from sightline.model.profile import Profile
from sightline.model.scene import (
    Edit,
    Insert,
    Json,
    JsonPath,
    OpaqueSource,
    Scene,
    Sight,
    Source,
    ToolCall,
)
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
    lower_tool_result,
    sort_by_call,
)
from sightline.wire.scene_reader import SceneReader
from sightline.wire.sse import write_event

PATHS = ("/v1/chat/completions", "/chat/completions")
HEAD_KEYS = ("tools",)
MESSAGES_KEY = "messages"
_TOOL_ROLES = ("tool", "function")


def read(tree: Json, texts: Texts) -> Scene:
    reader = SceneReader(texts)
    body = tree if isinstance(tree, dict) else {}
    run: list[ToolCall] = []  # the calls of the tool messages just before
    for i, message in enumerate(get_list(body, MESSAGES_KEY)):
        fields = message if isinstance(message, dict) else {}
        place, role, content = (MESSAGES_KEY, i, "content"), fields.get("role"), fields.get("content")
        if role == "assistant":
            reader.begin_message("assistant")
            if calls := fields.get("tool_calls"):
                _read_calls(reader, calls)
            run = []
        elif role in _TOOL_ROLES:
            run = run if reader.is_in_results else []
            run.append(reader.find_call(fields, "tool_call_id"))
            _read_result(reader, place, content, run[-1])
        elif role == "user":
            # Some programs name the call of the images that they have moved into a message.
            before = [reader.find_call(fields, "tool_call_id")] if fields.get("tool_call_id") else run
            run = reader.read_user_message(place, content, _enumerate_parts(content), _find_source, before)
        else:
            reader.begin_message("other")
            for j, part in _enumerate_parts(content):
                if (source := _find_source(part, texts)) is not None:
                    reader.add_pasted_image(place if isinstance(content, dict) else (*place, j), source)
            run = []
    declared = body.get("tools"), body.get("functions")
    tools = _list_tools(declared[0], texts) if declared[0] else ()
    model, stream = get_name(body, "model", texts), body.get("stream") is True
    return reader.build_scene(model, stream=stream, tools=tools, declared_tools=declared)


def _list_tools(declared: Json, texts: Texts) -> list[str]:
    return [get_name(tool.get("function"), "name", texts) for _, tool in enumerate_objects(declared)]


def _read_calls(reader: SceneReader, calls: Json) -> None:
    for _, call in enumerate_objects(calls):
        function = call.get("function")
        arguments = parse_arguments(get_text(function, "arguments"), reader.texts)
        reader.add_call(get_name(call, "id", reader.texts), get_name(function, "name", reader.texts), arguments)


def _read_result(reader: SceneReader, place: JsonPath, content: Json, call: ToolCall) -> None:
    reader.begin_message("tool")
    if isinstance(content, str):
        reader.read_tool_text(place, content, call)
    for j, part in _enumerate_parts(content):
        part_place = place if isinstance(content, dict) else (*place, j)
        if (source := _find_source(part, reader.texts)) is not None:
            reader.add_tool_image(part_place, source, call)
        elif part.get("type") == "text":
            reader.read_tool_text((*part_place, "text"), get_text(part, "text"), call)


def _enumerate_parts(content: Json) -> list[tuple[int, Block]]:
    """Return the parts with their indexes; some clients write one part instead of a list."""
    if isinstance(content, str):  # nearly always
        return []
    return [(0, content)] if isinstance(content, dict) else enumerate_objects(content)


def _find_source(part: Block, texts: Texts) -> Source | None:
    kind = part.get("type")
    if kind == "text":
        return None
    if kind == "file" and "file" in part:
        return read_image_data_url(get_value(part.get("file"), "file_data"), texts)
    if kind != "image_url":
        return find_foreign_source(part, texts)
    image_url = part.get("image_url")
    if isinstance(url := image_url.get("url") if isinstance(image_url, dict) else image_url, str):
        return read_image_url(url, texts)
    if isinstance(reference := get_value(image_url, "file_id"), str):
        return OpaqueSource(reference)
    return None


def _replace_image(old: Block, mime: str, data: str) -> Block:
    url: Json = f"data:{mime};base64,{data}"
    if isinstance(file := old.get("file"), dict):
        return {**old, "file": {**file, "file_data": url}}
    image_url = old.get("image_url")
    return {**old, "image_url": {**image_url, "url": url} if isinstance(image_url, dict) else {"url": url}}


def _is_own_part(part: Json) -> bool:
    """Return whether a part is one of this wire. LangChain may write an address where its object belongs."""
    if not isinstance(part, dict):
        return False
    return isinstance(part.get("image_url" if part.get("type") == "image_url" else "file"), dict)


BLOCKS = BlockFormat(
    build_text=lambda text: {"type": "text", "text": text},
    build_image=lambda mime, data: _replace_image({"type": "image_url", "image_url": {}}, mime, data),
    replace_image=_replace_image,
    accepts=_is_own_part,
    build_link=lambda url: {"type": "image_url", "image_url": {"url": url}},
)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    hoist = profile.moves_tool_images
    in_results: list[Sight] = []
    singles: list[Sight] = []  # some clients write one part instead of a list
    others: list[Sight] = []
    for sight in scene.sights:
        if sight.is_in_tool_result:
            in_results.append(sight)
        else:
            is_single = sight.place[-1] == "content" and sight.path_in_text is None
            (singles if is_single else others).append(sight)
    edits = lower_in_messages(others, tree, BLOCKS)
    for single in singles:
        edits += lower_tool_result(single.place, [single], tree, BLOCKS, hoist=False)
    if not in_results:
        return edits
    for message, group in groupby(in_results, key=lambda sight: sight.message):
        edits += lower_tool_result((MESSAGES_KEY, message, "content"), list(group), tree, BLOCKS, hoist=hoist)
    messages = get_list(tree, MESSAGES_KEY)
    leaving = filter(has_pixels, in_results) if hoist else ()
    for end, run in group_by_run(leaving, lambda message: _find_run_end(message, messages)):
        if profile.tool_images == "bridge":
            edits.append(Insert((MESSAGES_KEY, end), {"role": "assistant", "content": labels.BRIDGE_TEXT}))
        shown = build_hoisted_blocks(_sort_by_call(run, messages), tree, BLOCKS)
        edits.append(Insert((MESSAGES_KEY, end), {"role": "user", "content": shown}))
    return edits


def _find_run_end(message: int, messages: Sequence[Json]) -> int:
    """Return the index just after the run of tool messages that contains this one."""
    end = message
    while end < len(messages) and get_value(messages[end], "role") in _TOOL_ROLES:
        end += 1
    return end


def _sort_by_call(sights: list[Sight], messages: Sequence[Json]) -> list[Sight]:
    if len(sights) == 1:
        return sights
    start = sights[0].message
    while start > 0 and get_value(messages[start], "role") in _TOOL_ROLES:
        start -= 1
    order = {get_text(call, "id"): index for index, call in enumerate_objects(get_value(messages[start], "tool_calls"))}
    return sort_by_call(sights, order)


def make_error(kind: str) -> Callable[[str], Json]:
    # The message comes first: some agents show the raw body.
    return lambda message: {"error": {"message": message, "type": kind, "param": None, "code": "sightline"}}


def write_error(message: str) -> bytes:
    """Return the event that reports an error in a stream."""
    return write_event("", make_error("server_error")(message))
