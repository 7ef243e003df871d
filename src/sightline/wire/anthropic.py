"""The Anthropic Messages wire: where images stand in a request, and how their fates are written there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from sightline.model.edit import Edit, Insert
from sightline.model.profile import Profile
from sightline.model.scene import Json, Path, Scene, Sight
from sightline.model.source import Link, Opaque, Source
from sightline.wire.inline import inline
from sightline.wire.lowering import Block, Dialect, has_pixels, in_place, moved, result
from sightline.wire.reader import Reader, is_said
from sightline.wire.shape import Texts, at, entries, items, text_in, value_in, word_in

PATHS = ("/v1/messages",)
COUNTS = ("/v1/messages/count_tokens",)
HEAD = ("tools", "system")
ITEMS = "messages"


def read(tree: Json, texts: Texts) -> Scene:
    reader = Reader(texts)
    for i, message in enumerate(items(tree, ITEMS)):
        _message(reader, (ITEMS, i, "content"), message)
    tools = (word_in(tool, "name", texts) for _, tool in entries(at(tree, "tools")))
    return reader.scene(word_in(tree, "model", texts), stream=at(tree, "stream") is True, tools=tools)


def _message(reader: Reader, place: Path, message: Json) -> None:
    content = value_in(message, "content")
    role = value_in(message, "role")
    if role == "assistant":
        reader.message("assistant")
        for _, block in entries(content):
            if block.get("type") == "tool_use":
                name = word_in(block, "name", reader.texts)
                reader.calling(word_in(block, "id", reader.texts), name, block.get("input"))
        return
    blocks = entries(content)
    words = [content] if isinstance(content, str) else [text_in(block, "text") for _, block in blocks]
    results = "tool_result" in [block.get("type") for _, block in blocks]
    speaks = role == "user" and is_said(words)
    reader.message("tool" if results else "user" if role == "user" else "other", opens=speaks)
    for j, block in blocks:
        if block.get("type") == "image" and (found := source(block, reader.texts)):
            reader.stands((*place, j), found, at(content, j - 1))
        elif block.get("type") == "tool_result":
            _result(reader, (*place, j, "content"), block)


def _result(reader: Reader, place: Path, block: Block) -> None:
    call = reader.called(block, "tool_use_id")
    content = block.get("content")
    if isinstance(content, str):
        reader.said(place, content, call)
    for k, inner in entries(content):
        if inner.get("type") == "image" and (found := source(inner, reader.texts)):
            reader.brought((*place, k), found, call)
        elif inner.get("type") == "text":
            reader.said((*place, k, "text"), text_in(inner, "text"), call)


def source(block: Block, texts: Texts) -> Source | None:
    # Lookups, not a pattern: that takes several times as long, and this is asked of every image.
    held = block.get("source")
    kind = value_in(held, "type")
    if kind == "base64" and isinstance(data := value_in(held, "data"), str):
        return inline(text_in(held, "media_type"), data, texts)
    if kind == "url" and isinstance(url := value_in(held, "url"), str):
        return Link(url)
    if kind == "file" and isinstance(reference := value_in(held, "file_id"), str):
        return Opaque(reference)
    return None


def _base64(mime: str, data: str) -> Block:
    return {"type": "base64", "media_type": mime, "data": data}


def _recoded(source: Json, mime: str, data: str) -> Block:
    """What else a source of this kind holds stays in it."""
    held = source if isinstance(source, dict) and source.get("type") == "base64" else {}
    return {**held, **_base64(mime, data)}


DIALECT = Dialect(
    words=lambda text: {"type": "text", "text": text},
    pixels=lambda mime, data: {"type": "image", "source": _base64(mime, data)},
    recoded=lambda old, mime, data: {**old, "source": _recoded(old.get("source"), mime, data)},
)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    edits = in_place([sight for sight in scene.sights if not sight.held], tree, DIALECT)
    for message, group in groupby((sight for sight in scene.sights if sight.held), key=lambda sight: sight.message):
        leaving: list[Sight] = []
        for place, held in groupby(group, key=lambda sight: sight.place[:5]):
            # What a tool says of its failure may be nothing but text.
            hoist = profile.tool_images != "native" or at(tree, *place[:-1], "is_error") is True
            brought = list(held)
            edits += result(place, brought, tree, DIALECT, hoist=hoist)
            leaving += [sight for sight in brought if hoist and has_pixels(sight)]
        if leaving:
            end = (ITEMS, message, "content", _after_results(at(tree, ITEMS, message, "content")))
            edits += [Insert(end, value) for value in moved(leaving, tree, DIALECT)]
    return edits


def _after_results(content: Json) -> int:
    """All results come first: what is moved out of them stands behind the last one."""
    return max(_results(content), default=-1) + 1


def _results(content: Json) -> Iterator[int]:
    return (index for index, block in entries(content) if block.get("type") == "tool_result")
