"""The OpenAI Chat Completions wire: where images stand in a request, and how their fates are written there.

A tool message of this wire carries text alone. An image in one moves into a user message of its own, after the
last tool message of the run (never between two of them: each call must be answered before anybody else speaks).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sightline.model import marks
from sightline.model.edit import Edit, Insert
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Path, Scene, Sight
from sightline.model.source import Inline, Opaque, Source
from sightline.wire import anthropic, content_blocks
from sightline.wire.inline import address, pictured
from sightline.wire.lowering import Block, Dialect, by_run, has_pixels, in_place, moved, result
from sightline.wire.reader import Reader
from sightline.wire.rescue import announces
from sightline.wire.shape import Texts, at, entries, items, parsed, text_in, value_in, word_in

PATHS = ("/v1/chat/completions", "/chat/completions")
HEAD = ("tools",)
ITEMS = "messages"
_TOOLS = ("tool", "function")


def read(tree: Json, texts: Texts) -> Scene:
    reader = Reader(texts)
    run: list[Call] = []  # the calls of the tool messages that stand just before
    announced = False  # … one of which says that images will follow without a word
    for i, message in enumerate(items(tree, ITEMS)):
        place = (ITEMS, i, "content")
        match value_in(message, "role"):
            case "tool" | "function":
                run.append(reader.called(message, "tool_call_id"))
                announced = _tool(reader, place, message, run[-1]) or announced
                continue
            case "assistant":
                reader.message("assistant")
                _calls(reader, value_in(message, "tool_calls"))
            case "user":
                content = value_in(message, "content")
                reader.heard(place, content, _parts(content), _source, run, announced=announced)
            case _:
                reader.message("other")
                content = value_in(message, "content")
                for j, part in _parts(content):
                    if (source := _source(part, texts)) is not None:
                        reader.pasted(place if isinstance(content, dict) else (*place, j), source)
        run, announced = [], False
    tools = (word_in(tool.get("function"), "name", texts) for _, tool in entries(at(tree, "tools")))
    return reader.scene(word_in(tree, "model", texts), stream=at(tree, "stream") is True, tools=tools)


def _calls(reader: Reader, made: Json) -> None:
    for _, call in entries(made):
        function = call.get("function")
        arguments = parsed(text_in(function, "arguments"), reader.texts)
        reader.calling(word_in(call, "id", reader.texts), word_in(function, "name", reader.texts), arguments)


def _tool(reader: Reader, place: Path, message: Json, call: Call) -> bool:
    """A tool's result; whether it says that its images stand in the following message."""
    reader.message("tool")
    content = value_in(message, "content")
    if isinstance(content, str):
        reader.said(place, content, call)
        return announces(content)
    announced = False
    for j, part in _parts(content):
        here = place if isinstance(content, dict) else (*place, j)
        if (source := _source(part, reader.texts) or _foreign(part, reader.texts)) is not None:
            reader.brought(here, source, call)
        elif part.get("type") == "text":
            reader.said((*here, "text"), text_in(part, "text"), call)
        announced = announced or announces(text_in(part, "text"))
    return announced


def _parts(content: Json) -> list[tuple[int, Block]]:
    """Some write a part alone where a list of parts is meant."""
    return [(0, content)] if isinstance(content, dict) else entries(content)


def _source(part: Block, texts: Texts) -> Source | None:
    kind = part.get("type")
    if kind == "file":
        return pictured(value_in(part.get("file"), "file_data"), texts)
    if kind != "image_url":
        return None
    held = part.get("image_url")
    if isinstance(url := value_in(held, "url") if isinstance(held, dict) else held, str):
        return address(url, texts)
    if isinstance(reference := value_in(held, "file_id"), str):
        return Opaque(reference)
    return None


def _foreign(part: Block, texts: Texts) -> Source | None:
    """Some pass on what a tool brought as it came: in a block of MCP, or of the Messages wire."""
    found = content_blocks.source(part, texts) or (
        anthropic.source(part, texts) if part.get("type") == "image" else None
    )
    return found if isinstance(found, Inline) else None


def _recoded(old: Block, mime: str, data: str) -> Block:
    url: Json = f"data:{mime};base64,{data}"
    if isinstance(file := old.get("file"), dict):
        return {**old, "file": {**file, "file_data": url}}
    held = old.get("image_url")
    return {**old, "image_url": {**held, "url": url} if isinstance(held, dict) else url}


DIALECT = Dialect(
    words=lambda text: {"type": "text", "text": text},
    pixels=lambda mime, data: _recoded({"type": "image_url", "image_url": {}}, mime, data),
    recoded=_recoded,
    knows=lambda part: at(part, "type") in ("image_url", "file"),
)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    hoist = profile.tool_images != "native"
    held = [sight for sight in scene.sights if sight.held]
    standing = [sight for sight in scene.sights if not sight.held]
    edits = in_place([sight for sight in standing if sight.place[-1] != "content"], tree, DIALECT)
    for alone in (sight for sight in standing if sight.place[-1] == "content"):
        edits += result(alone.place, [alone], tree, DIALECT, hoist=False)
    for message, group in groupby(held, key=lambda sight: sight.message):
        edits += result((ITEMS, message, "content"), list(group), tree, DIALECT, hoist=hoist)
    said = items(tree, ITEMS)
    leaving = filter(has_pixels, held) if hoist else ()
    for end, run in by_run(leaving, lambda message: _run_end(message, said)):
        if profile.tool_images == "bridge":
            edits.append(Insert((ITEMS, end), {"role": "assistant", "content": marks.BRIDGE}))
        shown = moved(_in_call_order(run, said), tree, DIALECT)
        edits.append(Insert((ITEMS, end), {"role": "user", "content": shown}))
    return edits


def _run_end(message: int, said: Sequence[Json]) -> int:
    """The index just after the run of tool messages in which this one stands."""
    end = message
    while end < len(said) and value_in(said[end], "role") in _TOOLS:
        end += 1
    return end


def _in_call_order(sights: list[Sight], said: Sequence[Json]) -> list[Sight]:
    if len(sights) == 1:
        return sights
    start = sights[0].message
    while start > 0 and value_in(said[start], "role") in _TOOLS:
        start -= 1
    order = {text_in(call, "id"): index for index, call in entries(value_in(said[start], "tool_calls"))}
    return sorted(sights, key=lambda sight: order.get(sight.call.id if sight.call else "", len(order)))
