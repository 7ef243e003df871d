"""The Anthropic Messages wire: where images are in a request, how their fates are written, and its errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby

from sightline.model.profile import Profile
from sightline.model.scene import (
    Edit,
    Insert,
    Json,
    JsonPath,
    Replace,
    Role,
    Scene,
    Sight,
    Source,
    ToolCall,
)
from sightline.wire.image_blocks import MIN_BASE64, find_base64_source, find_foreign_source
from sightline.wire.json_tree import (
    Block,
    Texts,
    enumerate_objects,
    get_at,
    get_known,
    get_list,
    get_name,
    get_text,
    get_value,
)
from sightline.wire.lowering import (
    BlockFormat,
    build_hoisted_blocks,
    has_pixels,
    lower_in_messages,
    lower_in_text,
    lower_tool_result,
)
from sightline.wire.scene_reader import SceneReader, assign_owners, is_from_person, is_moved, list_texts
from sightline.wire.sse import write_event

PATHS = ("/v1/messages",)
COUNTING_PATHS = ("/v1/messages/count_tokens",)
HEAD_KEYS = ("tools", "system")
MESSAGES_KEY = "messages"

_RESULT_DEPTH = 5  # steps to the content of a block: messages, message, content, block, content
_SEARCH_RESULT = "search_result"
_REMOTE_RESULT = "mcp_tool_result"  # of a call that the provider itself has made


def read(tree: Json, texts: Texts) -> Scene:
    reader = SceneReader(texts)
    messages = get_list(tree, MESSAGES_KEY)
    run: list[ToolCall] = []  # the calls whose images may follow
    for i, message in enumerate(messages):
        fields = message if isinstance(message, dict) else {}
        place, role, content = (MESSAGES_KEY, i, "content"), fields.get("role"), fields.get("content")
        if role == "assistant":
            _read_assistant(reader, place, content, messages)
            run = []
        else:
            run = _read_user(reader, place, content, run, is_user=role == "user")
    model, stream = get_name(tree, "model", texts), get_value(tree, "stream") is True
    declared = get_value(tree, "tools")
    tools = [get_name(tool, "name", texts) for _, tool in enumerate_objects(declared)]
    return reader.build_scene(model, stream=stream, tools=tools, declared_tools=(declared,))


def _read_assistant(reader: SceneReader, place: JsonPath, content: Json, messages: list[Json]) -> None:
    reader.begin_message("assistant")
    for j, block in enumerate_objects(content):
        kind = block.get("type")
        if kind == "tool_use":
            name = get_name(block, "name", reader.texts)
            reader.add_call(get_name(block, "id", reader.texts), name, block.get("input"))
        elif kind == _REMOTE_RESULT and _can_hold_images(get_at(messages, len(reader.messages))):  # the next one
            _read_texts(reader, (*place, j, "content"), block, reader.find_call(block, "tool_use_id"))


def _read_user(
    reader: SceneReader, place: JsonPath, content: Json, calls: list[ToolCall], *, is_user: bool
) -> list[ToolCall]:
    """Read a message after the results of `calls`; return the calls whose images may follow it."""
    blocks = enumerate_objects(content)
    words = list_texts(content, blocks)
    others = [(j, block) for j, block in blocks if block.get("type") != "text"]
    results = (
        {j: reader.find_call(block, "tool_use_id") for j, block in others if block.get("type") == "tool_result"}
        if others
        else {}
    )
    role: Role = "tool" if results else "user" if is_user else "other"
    opens = is_user and is_from_person(words)
    reader.begin_message(role, opens=opens)
    if words and is_user and not results and max(map(len, words)) >= MIN_BASE64:
        reader.read_user_texts(place, content, blocks)
    if not others:
        return []
    find_source = _find_source if is_user else _find_own_source
    sources = {
        j: source
        for j, block in others
        if j not in results and (source := find_source(block, reader.texts)) is not None
    }
    calls = [*results.values()] or calls
    moved = bool(sources) and not opens and is_moved(words, calls)  # a person writes more than labels
    owners = dict(zip(sources, assign_owners(len(sources), calls), strict=False)) if moved else {}
    for j, block in others:
        if j in sources:
            owner = owners.get(j) or (ToolCall("") if moved else None)
            reader.add_user_image((*place, j), sources[j], get_at(content, j - 1) if j else None, owner)
        else:
            _read_block(reader, (*place, j), block, results.get(j))
    return calls if results or moved else []


def _read_block(reader: SceneReader, place: JsonPath, block: Block, call: ToolCall | None) -> None:
    """Read a block of a user's message that is neither a text nor an image; `call` is that of a result."""
    kind = block.get("type")
    if call is not None:
        _read_result(reader, (*place, "content"), block, call)
    elif kind == "document":
        for way, found in _find_document_images(block, reader.texts):
            reader.add_pasted_image((*place, *way), found)
    elif kind == _SEARCH_RESULT:
        _read_texts(reader, (*place, "content"), block, None)


def _can_hold_images(message: Json) -> bool:
    """Return whether this is a user's message that images can be put into."""
    content = get_value(message, "content")
    written = isinstance(content, list) or bool(isinstance(content, str) and content.strip())
    return written and get_value(message, "role") == "user"


def _read_result(reader: SceneReader, place: JsonPath, block: Block, call: ToolCall) -> None:
    content = block.get("content")
    if isinstance(content, str):
        reader.read_tool_text(place, content, call)
    for k, inner in enumerate_objects(content):
        kind = inner.get("type")
        if kind == "text":
            reader.read_tool_text((*place, k, "text"), get_text(inner, "text"), call)
        elif found := _find_source(inner, reader.texts):
            reader.add_tool_image((*place, k), found, call)
        elif kind == "document":
            for way, found in _find_document_images(inner, reader.texts):
                reader.add_tool_image((*place, k, *way), found, call)
        elif kind == _SEARCH_RESULT and isinstance(inner.get("content"), list):
            _read_texts(reader, (*place, k, "content"), inner, call)


def _find_document_images(document: Block, texts: Texts) -> Iterator[tuple[JsonPath, Source]]:
    """Yield the images of a document that consists of blocks, each with its path in the document."""
    source = document.get("source")
    for m, inner in enumerate_objects(get_value(source, "content")) if get_value(source, "type") == "content" else ():
        if found := _find_source(inner, texts):
            yield ("source", "content", m), found


def _read_texts(reader: SceneReader, place: JsonPath, block: Block, call: ToolCall | None) -> None:
    """Read a block that can contain nothing but texts."""
    content = block.get("content")
    if isinstance(content, str):
        reader.read_tool_text(place, content, call)
    for k, inner in enumerate_objects(content):
        if inner.get("type") == "text":
            reader.read_tool_text((*place, k, "text"), get_text(inner, "text"), call)


def _find_source(block: Block, texts: Texts) -> Source | None:
    return _find_own_source(block, texts) or find_foreign_source(block, texts)


def _find_own_source(block: Block, texts: Texts) -> Source | None:
    return find_base64_source(block, texts) if block.get("type") == "image" else None


def _build_base64_source(mime: str, data: str) -> Block:
    return {"type": "base64", "media_type": mime, "data": data}


def _replace_source(source: Json, mime: str, data: str) -> Block:
    """Return a source with other pixels; other fields of a base64 source stay."""
    fields = source if isinstance(source, dict) and source.get("type") == "base64" else {}
    return {**fields, **_build_base64_source(mime, data)}


BLOCKS = BlockFormat(
    build_text=lambda text: {"type": "text", "text": text},
    build_image=lambda mime, data: {"type": "image", "source": _build_base64_source(mime, data)},
    replace_image=lambda old, mime, data: {**old, "source": _replace_source(old.get("source"), mime, data)},
    accepts=lambda block: get_value(block, "type") == "image" and isinstance(get_value(block, "source"), dict),
    build_link=lambda url: {"type": "image", "source": {"type": "url", "url": url}},
)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    edits = lower_in_messages([sight for sight in scene.sights if not sight.is_in_tool_result], tree, BLOCKS)
    moves = profile.moves_tool_images
    for message, group in groupby(
        [sight for sight in scene.sights if sight.is_in_tool_result], key=lambda sight: sight.message
    ):
        leaving: list[Sight] = []
        for place, result_group in groupby(group, key=lambda sight: sight.place[:_RESULT_DEPTH]):
            result_sights, holder = list(result_group), get_known(tree, place[:-1])
            hoist = moves or _must_be_text(holder, result_sights)
            if get_value(holder, "type") == "tool_result":
                edits += lower_tool_result(place, result_sights, tree, BLOCKS, hoist=hoist)
            else:
                edits += lower_in_text(result_sights, tree, BLOCKS)
            leaving += filter(has_pixels, result_sights) if hoist else ()
        edits += _hoist(message, leaving, tree) if leaving else ()
    return edits


def _must_be_text(holder: Json, sights: list[Sight]) -> bool:
    """Return whether this result can't show these sights, because the API accepts only text there.

    That is so for the result of a tool that failed, for a search result inside a result, and for a remote tool.
    """
    nested = any(sight.path_in_text is not None and len(sight.place) > _RESULT_DEPTH + 2 for sight in sights)
    return nested or get_value(holder, "type") != "tool_result" or get_value(holder, "is_error") is True


def _hoist(message: int, sights: list[Sight], tree: Json) -> list[Edit]:
    """Return the edits that put images after the last result of their message, since all results must come first.

    Images out of a remote tool's result, which is in the assistant's message, go into the next message.
    """
    shown = build_hoisted_blocks(sights, tree, BLOCKS)
    remote = get_at(tree, MESSAGES_KEY, message, "role") == "assistant"
    place: JsonPath = (MESSAGES_KEY, message + remote, "content")
    content = get_at(tree, *place)
    if isinstance(content, str):
        return [Replace(place, [*shown, BLOCKS.build_text(content)])]
    holders = () if remote else (int(sight.place[_RESULT_DEPTH - 2]) for sight in sights)
    end = max((*_find_results(content), *holders), default=-1) + 1
    return [Insert((*place, end), value) for value in shown]


def make_error(kind: str) -> Callable[[str], Json]:
    return lambda message: {"type": "error", "error": {"type": kind, "message": message}}


def write_error(message: str) -> bytes:
    """Return the event that reports an error in a stream."""
    return write_event("error", make_error("api_error")(message))


def _find_results(content: Json) -> Iterator[int]:
    return (index for index, block in enumerate_objects(content) if block.get("type") == "tool_result")
