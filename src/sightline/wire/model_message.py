"""The messages of the AI SDK (`ModelMessage`): where images stand in them, and how their fates are written there.

The SDK's providers for Chat Completions write a tool's result into the prompt as text, pixels and all, and no word
in the messages says which provider will get them. So an image that a tool brought always moves into a user message
of its own, after the last result of the run: there every provider shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from sightline.model import marks
from sightline.model.edit import Edit, Insert, Replace
from sightline.model.fate import Refitted, Shown
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Path, Scene, Sight
from sightline.model.source import Inline, Link, Opaque, Source
from sightline.wire.inline import address, inline, picture_in, standard
from sightline.wire.jsonedits import dumps
from sightline.wire.lowering import Block, Dialect, by_run, has_pixels, in_place, result
from sightline.wire.reader import Reader
from sightline.wire.shape import Texts, at, entries, items, text_in, word_in

ITEMS = "messages"
_WEB = ("https://", "http://")
_UNTOLD = ("", "application/octet-stream")  # media types that say nothing
_OUTPUT = 5  # steps to the output of a tool's result: messages, message, content, part, output


def read(tree: Json, texts: Texts) -> Scene:
    reader = Reader(texts)
    run: list[Call] = []  # the calls of the results that stand just before
    for i, message in enumerate(items(tree, ITEMS)):
        place, content = (ITEMS, i, "content"), at(message, "content")
        match at(message, "role"):
            case "tool":
                reader.message("tool")
                run += [_result(reader, (*place, j), part) for j, part in entries(content)]
                continue
            case "assistant":
                reader.message("assistant")
                _calls(reader, content)
                if content == marks.BRIDGE:
                    continue
            case "user":
                reader.heard(place, content, entries(content), _pasted, run, announced=False)
            case _:
                reader.message("other")
        run = []
    return reader.scene(word_in(tree, "model", texts), stream=False, tools=_tools(at(tree, "tools")))


def _tools(offered: Json) -> list[str]:
    """The SDK names its tools by the keys of an object."""
    return list(offered) if isinstance(offered, dict) else []


def _calls(reader: Reader, content: Json) -> None:
    for _, part in entries(content):
        if part.get("type") == "tool-call":
            name = word_in(part, "toolName", reader.texts)
            reader.calling(word_in(part, "toolCallId", reader.texts), name, part.get("input"))


def _pasted(part: Block, texts: Texts) -> Source | None:
    match part:
        case {"type": "image"}:
            return _source(part.get("image"), _mime(part), texts)
        case {"type": "file"}:
            return _of_image(part, texts)
        case _:
            return None


def _result(reader: Reader, place: Path, part: Block) -> Call:
    call = reader.called(part, "toolCallId")
    if not call.name:
        call = replace(call, name=word_in(part, "toolName", reader.texts))
    output = (*place, "output", "value")
    match part.get("output") if part.get("type") == "tool-result" else None:
        case {"type": "content", "value": list(value)}:
            for k, item in entries(value):
                if (source := _brought(item, reader.texts)) is not None:
                    reader.brought((*output, k), source, call)
                elif item.get("type") == "text":
                    reader.said((*output, k, "text"), text_in(item, "text"), call)
        case {"type": "text" | "json" | "error-text" | "error-json", "value": value}:
            reader.said(output, _written(value), call)
    return call


def _brought(item: Block, texts: Texts) -> Source | None:
    """An image among what a tool's result holds, under any of the names that the SDK's versions have for it."""
    match item:
        case {"type": "media" | "image-data" | "file-data" | "file"}:
            return _of_image(item, texts)
        case {"type": "image-url", "url": str(url)}:
            return address(url, texts)
        case {"type": "image-file-id", "fileId": str(reference)}:
            return Opaque(reference)
        case _:
            return None


def _of_image(holder: Block, texts: Texts) -> Source | None:
    """The data of a file that says to be an image, or says nothing and is one."""
    mime = _mime(holder)
    source = _source(holder.get("data"), mime, texts)
    if mime.startswith("image/"):
        return source
    return picture_in(source.leaf, texts) if mime in _UNTOLD and isinstance(source, Inline) else None


def _source(data: Json, mime: str, texts: Texts) -> Source | None:
    """Text is base64, a data URL or an address; newer versions say which."""
    match data:
        case {"type": "data", "data": str(text)}:
            return inline(mime, text, texts)
        case {"type": "url", "url": str(text)} | str(text):
            elsewhere = text.startswith(_WEB) or text[:5].lower() == "data:"
            return address(text, texts) if elsewhere else inline(mime, text, texts)
        case _:  # a program's own bytes, which no JSON holds
            return None


def _mime(holder: Block) -> str:
    return (text_in(holder, "mediaType") or text_in(holder, "mimeType")).strip().lower()


def _written(value: Json) -> str:
    """What a tool answered, as text; nothing for objects that JSON has no words for."""
    if isinstance(value, str):
        return value
    try:
        return dumps(value)
    except (TypeError, ValueError, RecursionError):
        return ""


def _image(mime: str, data: str) -> Block:
    return {"type": "image", "image": data, "mediaType": mime}


def _recoded(old: Block, mime: str, data: str) -> Block:
    kept = {key: value for key, value in old.items() if key != "mimeType"}
    match old:
        case {"type": "image"}:
            return {**kept, "image": data, "mediaType": mime}
        case {"data": {"type": _}}:
            return {**kept, "data": {"type": "data", "data": data}, "mediaType": mime}
        case _:
            return {**kept, "data": data, "mediaType": mime}


DIALECT = Dialect(words=lambda text: {"type": "text", "text": text}, pixels=_image, recoded=_recoded)


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    edits = in_place([sight for sight in scene.sights if not sight.held], tree, DIALECT)
    # What only a provider can open has no form as an image of a user: it stays where the tool put it.
    held = [sight for sight in scene.sights if sight.held and not _stays(sight)]
    for place, group in groupby(held, key=lambda sight: sight.place[:_OUTPUT]):
        edits += _neutral(place, list(group), tree)
    leaving = [sight for sight in held if has_pixels(sight)]
    for end, run in by_run(leaving, lambda message: _run_end(message, tree)):
        if profile.tool_images == "bridge":
            edits.append(Insert((ITEMS, end), {"role": "assistant", "content": marks.BRIDGE}))
        shown = [part for sight in _in_call_order(run, tree) for part in _moved(sight, tree)]
        edits.append(Insert((ITEMS, end), {"role": "user", "content": shown}))
    return edits


def _stays(sight: Sight) -> bool:
    return isinstance(sight.source, Opaque) and has_pixels(sight)


def _neutral(place: Path, sights: Sequence[Sight], tree: Json) -> list[Edit]:
    """The output of a tool's result without its pixels."""
    output = at(tree, *place)
    assert isinstance(output, dict)
    if output.get("type") == "content":
        return result((*place, "value"), sights, tree, DIALECT, hoist=True)
    # A text, or an object that the SDK writes out as one: it is taken apart as such.
    text: Json = {"value": _written(output.get("value"))}
    (edit,) = result(("value",), [replace(s, place=("value",)) for s in sights], text, DIALECT, hoist=True)
    assert isinstance(edit, Replace), "it is a text"
    failed = str(output.get("type")).startswith("error-")
    match edit.value:
        case list(parts) if not failed:
            return [Replace(place, {**output, "type": "content", "value": parts})]
        case list(parts):  # only a text can say that the tool has failed
            value = "\n".join(text_in(part, "text") for part in parts)
        case other:
            value = str(other)
    return [Replace(place, {**output, "type": "error-text" if failed else "text", "value": value})]


def _moved(sight: Sight, tree: Json) -> list[Json]:
    """An image as a user shows it, led by the words that name its call."""
    lead: list[Json] = [DIALECT.words(sight.label)] if sight.label else []
    own = at(tree, *sight.place) if sight.within is None else None
    options = at(own, "providerOptions")
    beside: Block = {} if options is None else {"providerOptions": options}
    match sight.fate, sight.source:
        case Refitted(image=image), _:
            part = _image(image.mime, image.base64)
        case fate, Inline() as source:
            known = fate.mime if isinstance(fate, Shown) and fate.mime else source.declared
            part = _image(known, standard(source))
        case _, source:
            assert isinstance(source, Link), "the rest stays"
            part = {"type": "image", "image": source.url}
    return [*lead, {**part, **beside}]


def _run_end(message: int, tree: Json) -> int:
    """The index just after the run of tool messages in which this one stands."""
    end = message
    while at(tree, ITEMS, end, "role") == "tool":
        end += 1
    return end


def _in_call_order(sights: list[Sight], tree: Json) -> list[Sight]:
    start = sights[0].message
    while start > 0 and at(tree, ITEMS, start, "role") == "tool":
        start -= 1
    calls = (part for _, part in entries(at(tree, ITEMS, start, "content")) if part.get("type") == "tool-call")
    order = {text_in(call, "toolCallId"): index for index, call in enumerate(calls)}
    return sorted(sights, key=lambda sight: order.get(sight.call.id if sight.call else "", len(order)))
