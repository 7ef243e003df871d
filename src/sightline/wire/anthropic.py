"""The Anthropic Messages wire: where images stand in a request, and how their fates are written there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from sightline.model.edit import Edit, Replace
from sightline.model.fate import Refitted, Refused, Shown, Told
from sightline.model.profile import Profile
from sightline.model.scene import Call, Json, Path, Scene, Sight
from sightline.model.source import Inline, Link, Opaque, Source
from sightline.wire.shape import TextOf, at, entries, filename_in, text_in, word_in

PATHS = ("/v1/messages", "/v1/messages/count_tokens")


def read(tree: Json, text_of: TextOf) -> Scene:
    sights: list[Sight] = []
    calls: dict[str, tuple[Call, str | None]] = {}
    for i, message in entries(at(tree, "messages")):
        for j, block in entries(message.get("content")):
            match block.get("type"):
                case "tool_use":
                    call = Call(word_in(block, "id", text_of), word_in(block, "name", text_of))
                    calls[call.id] = call, filename_in(block.get("input"), text_of)
                case "image" if message.get("role") != "assistant":
                    if source := _source(block, text_of):
                        sights.append(Sight(("messages", i, "content", j), source, "user"))
                case "tool_result":
                    sights.extend(_in_result(("messages", i, "content", j), block, calls, text_of))
    return Scene(word_in(tree, "model", text_of), tuple(sights), at(tree, "stream") is True)


def _in_result(
    place: Path, result: dict[str, Json], calls: dict[str, tuple[Call, str | None]], text_of: TextOf
) -> Iterator[Sight]:
    name = word_in(result, "tool_use_id", text_of)
    call, filename = calls.get(name, (Call(name), None))
    for k, block in entries(result.get("content")):
        if block.get("type") == "image" and (source := _source(block, text_of)):
            yield Sight((*place, "content", k), source, "tool", call, filename)


def _source(block: dict[str, Json], text_of: TextOf) -> Source | None:
    match block.get("source"):
        case {"type": "base64", "data": str(data)} as source:
            return Inline(text_in(source, "media_type").lower(), text_of(data))
        case {"type": "url", "url": str(url)}:
            return Link(url)
        case {"type": "file", "file_id": str(reference)}:
            return Opaque(reference)
        case _:
            return None


def lower(scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
    return [edit for sight in scene.sights if (edit := _lowered(sight, tree))]


def _lowered(sight: Sight, tree: Json) -> Edit | None:
    match sight.fate:
        case None | Shown(mime=None):
            return None
        case Shown(mime=mime):
            declared = at(tree, *sight.place, "source")
            assert isinstance(declared, dict)
            return Replace((*sight.place, "source"), {**declared, "media_type": mime})
        case Refitted(image=image):
            source: Json = {"type": "base64", "media_type": image.mime, "data": image.base64}
            return Replace((*sight.place, "source"), source)
        case Told(words=words) | Refused(words=words):
            block: dict[str, Json] = {"type": "text", "text": words}
            if mark := at(tree, *sight.place, "cache_control"):
                block["cache_control"] = mark
            return Replace(sight.place, block)
        case fate:
            assert_never(fate)
