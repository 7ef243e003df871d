"""The Anthropic Messages wire: where images stand in a request, and how their fates are written there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from sightline.model.edit import Edit, Insert, Replace
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Path, Scene, Sight
from sightline.model.source import Link, Opaque, Source
from sightline.wire.inline import inline
from sightline.wire.lowering import Block, Dialect, has_pixels, in_place, in_words, moved, result
from sightline.wire.reader import Reader, is_said
from sightline.wire.shape import Texts, at, entries, items, text_in, value_in, word_in

PATHS = ("/v1/messages",)
COUNTS = ("/v1/messages/count_tokens",)
HEAD = ("tools", "system")
ITEMS = "messages"

_RESULT = 5  # steps to what a block of a message holds: messages, message, content, block, content
_FOUND = "search_result"
_REMOTE = "mcp_tool_result"  # of a call that the provider itself has made


def read(tree: Json, texts: Texts) -> Scene:
    reader = Reader(texts)
    messages = items(tree, ITEMS)
    for i, message in enumerate(messages):
        if value_in(message, "role") == "assistant":
            _spoken(reader, (ITEMS, i, "content"), value_in(message, "content"), messages[i + 1 : i + 2])
        else:
            _heard(reader, (ITEMS, i, "content"), message)
    tools = (word_in(tool, "name", texts) for _, tool in entries(at(tree, "tools")))
    return reader.scene(word_in(tree, "model", texts), stream=at(tree, "stream") is True, tools=tools)


def _spoken(reader: Reader, place: Path, content: Json, following: list[Json]) -> None:
    reader.message("assistant")
    for j, block in entries(content):
        kind = block.get("type")
        if kind == "tool_use":
            name = word_in(block, "name", reader.texts)
            reader.calling(word_in(block, "id", reader.texts), name, block.get("input"))
        elif kind == _REMOTE and any(map(_is_open, following)):
            _texts(reader, (*place, j, "content"), block, reader.called(block, "tool_use_id"))


def _heard(reader: Reader, place: Path, message: Json) -> None:
    content, user = value_in(message, "content"), value_in(message, "role") == "user"
    words = [content] if isinstance(content, str) else []
    held: list[tuple[int, Json, Block]] = []  # what may hold images
    results = False
    for j, block in entries(content):
        if isinstance(text := block.get("text"), str):
            words.append(text)
        if (kind := block.get("type")) != "text":
            held.append((j, kind, block))
            results = results or kind == "tool_result"
    reader.message("tool" if results else "user" if user else "other", opens=user and is_said(words))
    for j, kind, block in held:
        if kind == "image" and (found := source(block, reader.texts)):
            reader.stands((*place, j), found, at(content, j - 1))
        elif kind == "tool_result":
            _result(reader, (*place, j, "content"), block)
        elif kind == "document":
            for way, found in _pages(block, reader.texts):
                reader.pasted((*place, j, *way), found)
        elif kind == _FOUND:
            _texts(reader, (*place, j, "content"), block, None)


def _is_open(message: Json) -> bool:
    """Is it a user's message that images can be put into?"""
    content = value_in(message, "content")
    written = isinstance(content, list) or bool(isinstance(content, str) and content.strip())
    return written and value_in(message, "role") == "user"


def _result(reader: Reader, place: Path, block: Block) -> None:
    call = reader.called(block, "tool_use_id")
    content = block.get("content")
    if isinstance(content, str):
        reader.said(place, content, call)
    for k, inner in entries(content):
        kind = inner.get("type")
        if kind == "image" and (found := source(inner, reader.texts)):
            reader.brought((*place, k), found, call)
        elif kind == "text":
            reader.said((*place, k, "text"), text_in(inner, "text"), call)
        elif kind == "document":
            for way, found in _pages(inner, reader.texts):
                reader.brought((*place, k, *way), found, call)
        elif kind == _FOUND and isinstance(inner.get("content"), list):
            _texts(reader, (*place, k, "content"), inner, call)


def _pages(document: Block, texts: Texts) -> Iterator[tuple[Path, Source]]:
    """The images of a document that is made of blocks, each with the way to it."""
    held = document.get("source")
    for m, inner in entries(value_in(held, "content")) if value_in(held, "type") == "content" else ():
        if inner.get("type") == "image" and (found := source(inner, texts)):
            yield ("source", "content", m), found


def _texts(reader: Reader, place: Path, block: Block, call: Call | None) -> None:
    """What a block says that can hold nothing but texts."""
    content = block.get("content")
    if isinstance(content, str):
        reader.said(place, content, call)
    for k, inner in entries(content):
        if inner.get("type") == "text":
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
        for place, held in groupby(group, key=lambda sight: sight.place[:_RESULT]):
            brought, holder = list(held), at(tree, *place[:-1])
            hoist = profile.tool_images != "native" or _is_words(holder, brought)
            if value_in(holder, "type") == "tool_result":
                edits += result(place, brought, tree, DIALECT, hoist=hoist)
            else:
                edits += in_words(brought, tree, DIALECT)
            leaving += filter(has_pixels, brought) if hoist else ()
        edits += _shown(message, leaving, tree) if leaving else ()
    return edits


def _is_words(holder: Json, sights: list[Sight]) -> bool:
    """Can these sights of a result not be shown in it? What a tool says of its failure may be nothing but text.

    Nor may what a search has found, which may stand in the result, nor what a remote tool said.
    """
    amid = any(sight.within is not None and len(sight.place) > _RESULT + 2 for sight in sights)
    return amid or value_in(holder, "type") != "tool_result" or value_in(holder, "is_error") is True


def _shown(message: int, sights: list[Sight], tree: Json) -> list[Edit]:
    """What has left its results stands behind the last of them, for all results come first.

    What has left the assistant's own message stands in the next one.
    """
    shown = moved(sights, tree, DIALECT)
    remote = at(tree, ITEMS, message, "role") == "assistant"
    place: Path = (ITEMS, message + remote, "content")
    content = at(tree, *place)
    if isinstance(content, str):
        return [Replace(place, [*shown, DIALECT.words(content)])]
    holders = () if remote else (int(sight.place[_RESULT - 2]) for sight in sights)
    end = max((*_results(content), *holders), default=-1) + 1
    return [Insert((*place, end), value) for value in shown]


def _results(content: Json) -> Iterator[int]:
    return (index for index, block in entries(content) if block.get("type") == "tool_result")
