"""The messages of the AI SDK (`ModelMessage`): where images are in them, and how their fates are written.

The SDK's providers for Chat Completions write a tool's result into the prompt as text, with the pixels as base64, and
nothing in the messages says which provider will get them. So an image of a tool always moves into a user message of its
own, after the last result of the run: every provider shows it there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from sightline.model import labels
from sightline.model.profile import Profile
from sightline.model.scene import (
    Edit,
    InlineSource,
    Insert,
    Json,
    JsonPath,
    LinkSource,
    OpaqueSource,
    Refitted,
    Replace,
    Scene,
    Shown,
    Sight,
    Source,
    ToolCall,
)
from sightline.wire.image_blocks import find_file_source, get_mime, read_file_data, read_image_url, to_standard_base64
from sightline.wire.json_edits import dump_json
from sightline.wire.json_tree import Block, Texts, enumerate_objects, get_at, get_list, get_name, get_text
from sightline.wire.lowering import (
    BlockFormat,
    group_by_run,
    has_pixels,
    lower_in_messages,
    lower_tool_result,
    sort_by_call,
)
from sightline.wire.scene_reader import SceneReader

MESSAGES_KEY = "messages"
_OUTPUT_DEPTH = 5  # steps to the output of a tool's result: messages, message, content, part, output


def read(tree: Json, texts: Texts) -> Scene:
    reader = SceneReader(texts)
    run: list[ToolCall] = []  # the calls of the results just before
    for i, message in enumerate(get_list(tree, MESSAGES_KEY)):
        place, content = (MESSAGES_KEY, i, "content"), get_at(message, "content")
        match get_at(message, "role"):
            case "tool":
                run = run if reader.is_in_results else []
                reader.begin_message("tool")
                run += [_read_result(reader, (*place, j), part) for j, part in enumerate_objects(content)]
                continue
            case "assistant":
                reader.begin_message("assistant")
                _read_calls(reader, content)
                if content == labels.BRIDGE_TEXT:
                    continue
            case "user":
                run = reader.read_user_message(place, content, enumerate_objects(content), _find_pasted_source, run)
                continue
            case _:
                reader.begin_message("other")
        run = []
    return reader.build_scene(
        get_name(tree, "model", texts), stream=False, tools=_list_tool_names(get_at(tree, "tools"))
    )


def _list_tool_names(offered: Json) -> list[str]:
    """Return the names of the tools: the keys of an object."""
    return list(offered) if isinstance(offered, dict) else []


def _read_calls(reader: SceneReader, content: Json) -> None:
    for _, part in enumerate_objects(content):
        if part.get("type") == "tool-call":
            name = get_name(part, "toolName", reader.texts)
            reader.add_call(get_name(part, "toolCallId", reader.texts), name, part.get("input"))


def _find_pasted_source(part: Block, texts: Texts) -> Source | None:
    match part:
        case {"type": "image"}:
            return read_file_data(part.get("image"), get_mime(part), texts)
        case {"type": "file"}:
            return find_file_source(part, texts)
        case _:
            return None


def _read_result(reader: SceneReader, place: JsonPath, part: Block) -> ToolCall:
    call = reader.find_call(part, "toolCallId")
    if not call.name:
        call = replace(call, name=get_name(part, "toolName", reader.texts))
    output = (*place, "output", "value")
    match part.get("output") if part.get("type") == "tool-result" else None:
        case {"type": "content", "value": list(value)}:
            for k, item in enumerate_objects(value):
                if (source := _find_result_source(item, reader.texts)) is not None:
                    reader.add_tool_image((*output, k), source, call)
                elif item.get("type") == "text":
                    reader.read_tool_text((*output, k, "text"), get_text(item, "text"), call)
        case {"type": "text" | "json" | "error-text" | "error-json", "value": value}:
            reader.read_tool_text(output, _write_as_text(value), call)
    return call


def _find_result_source(item: Block, texts: Texts) -> Source | None:
    """Return the image that an item of a tool's result is, under any name that a version of the SDK has for it."""
    match item:
        case {"type": "media" | "image-data" | "file-data" | "file"}:
            return find_file_source(item, texts)
        case {"type": "image-url", "url": str(url)}:
            return read_image_url(url, texts)
        case {"type": "image-file-id", "fileId": str(reference)}:
            return OpaqueSource(reference)
        case _:
            return None


def _write_as_text(value: Json) -> str:
    """Return a tool's output as text; an empty one for objects that JSON can't express."""
    if isinstance(value, str):
        return value
    try:
        return dump_json(value)
    except (TypeError, ValueError, RecursionError):
        return ""


def _build_image(mime: str, data: str) -> Block:
    return {"type": "image", "image": data, "mediaType": mime}


def _replace_image(old: Block, mime: str, data: str) -> Block:
    kept = {key: value for key, value in old.items() if key != "mimeType"}
    match old:
        case {"type": "image"}:
            return {**kept, "image": data, "mediaType": mime}
        case {"data": {"type": _}}:
            return {**kept, "data": {"type": "data", "data": data}, "mediaType": mime}
        case _:
            return {**kept, "data": data, "mediaType": mime}


BLOCKS = BlockFormat(
    build_text=lambda text: {"type": "text", "text": text}, build_image=_build_image, replace_image=_replace_image
)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    edits = lower_in_messages([sight for sight in scene.sights if not sight.is_in_tool_result], tree, BLOCKS)
    # A user message can't contain an image that only a provider can open: it stays where the tool put it.
    in_results = [sight for sight in scene.sights if sight.is_in_tool_result and not _stays(sight)]
    for place, group in groupby(in_results, key=lambda sight: sight.place[:_OUTPUT_DEPTH]):
        edits += _lower_output(place, list(group), tree)
    leaving = [sight for sight in in_results if has_pixels(sight)]
    for end, run in group_by_run(leaving, lambda message: _find_run_end(message, tree)):
        if profile.tool_images == "bridge":
            edits.append(Insert((MESSAGES_KEY, end), {"role": "assistant", "content": labels.BRIDGE_TEXT}))
        shown = [part for sight in _sort_by_call(run, tree) for part in _build_user_image(sight, tree)]
        edits.append(Insert((MESSAGES_KEY, end), {"role": "user", "content": shown}))
    return edits


def _stays(sight: Sight) -> bool:
    return isinstance(sight.source, OpaqueSource) and has_pixels(sight)


def _lower_output(place: JsonPath, sights: Sequence[Sight], tree: Json) -> list[Edit]:
    """Return the edits that take the pixels out of a tool's output."""
    output = get_at(tree, *place)
    assert isinstance(output, dict)
    if output.get("type") == "content":
        return lower_tool_result((*place, "value"), sights, tree, BLOCKS, hoist=True)
    # A text, or an object that the SDK writes out as text: it is split like one.
    text: Json = {"value": _write_as_text(output.get("value"))}
    (edit,) = lower_tool_result(("value",), [replace(s, place=("value",)) for s in sights], text, BLOCKS, hoist=True)
    assert isinstance(edit, Replace), "a text is replaced"
    failed = str(output.get("type")).startswith("error-")
    match edit.value:
        case list(parts) if not failed:
            return [Replace(place, {**output, "type": "content", "value": parts})]
        case list(parts):  # only a text can report that the tool has failed
            value = "\n".join(get_text(part, "text") for part in parts)
        case other:
            value = str(other)
    return [Replace(place, {**output, "type": "error-text" if failed else "text", "value": value})]


def _build_user_image(sight: Sight, tree: Json) -> list[Json]:
    """Return the parts of an image in a user message: a label that names its call, and the image."""
    lead: list[Json] = [BLOCKS.build_text(sight.label)] if sight.label else []
    own = get_at(tree, *sight.place) if sight.path_in_text is None else None
    options = get_at(own, "providerOptions")
    extra: Block = {} if options is None else {"providerOptions": options}
    match sight.fate, sight.source:
        case Refitted(image=image), _:
            part = _build_image(image.mime, image.base64)
        case fate, InlineSource() as source:
            known = fate.mime if isinstance(fate, Shown) and fate.mime else source.declared_mime
            part = _build_image(known, to_standard_base64(source))
        case _, source:
            assert isinstance(source, LinkSource), "an opaque source stays in its result"
            part = {"type": "image", "image": source.url}
    return [*lead, {**part, **extra}]


def _find_run_end(message: int, tree: Json) -> int:
    """Return the index just after the run of tool messages that contains this one."""
    end = message
    while get_at(tree, MESSAGES_KEY, end, "role") == "tool":
        end += 1
    return end


def _sort_by_call(sights: list[Sight], tree: Json) -> list[Sight]:
    start = sights[0].message
    while start > 0 and get_at(tree, MESSAGES_KEY, start, "role") == "tool":
        start -= 1
    calls = (
        part
        for _, part in enumerate_objects(get_at(tree, MESSAGES_KEY, start, "content"))
        if part.get("type") == "tool-call"
    )
    order = {get_text(call, "toolCallId"): index for index, call in enumerate(calls)}
    return sort_by_call(sights, order)
