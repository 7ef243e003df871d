"""PDFs in requests: where they are on each wire, and the edits that put other blocks in their place.

Pure: no I/O. Addresses and ids of uploaded files are left alone: only the provider can read those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from sightline.model.profile import WireName
from sightline.model.scene import InlineSource, Json, JsonPath, Rebuild
from sightline.wire import anthropic, gemini, openai_chat, openai_responses
from sightline.wire.base64_images import build_inline
from sightline.wire.json_tree import Block, Texts, enumerate_objects, get_at, get_text, get_value
from sightline.wire.lowering import BlockFormat

_PDF = "application/pdf"
_CONTENT_KEYS = ("content", "parts", "output")  # of a message: its blocks
_MAX_NAME = 100  # characters


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """A PDF in a request."""

    place: JsonPath  # of its block
    source: InlineSource = field(repr=False)
    name: str  # of the file; empty: unknown


def find_documents(wire: WireName, tree: Json, texts: Texts) -> list[DocumentBlock]:
    """Return the PDFs in the messages of a request, also in tool results."""
    find = _FINDERS[wire][0]
    return [
        DocumentBlock((*place, index), build_inline(_PDF, found[0], texts), " ".join(found[1].split())[:_MAX_NAME])
        for place in _list_contents(_FINDERS[wire][1], tree)
        for index, block in enumerate_objects(get_at(tree, *place))
        if (found := find(block)) is not None
    ]


def replace_documents(
    wire: WireName, tree: Json, blocks: Mapping[JsonPath, Sequence[str | tuple[str, str]]]
) -> list[Rebuild]:
    """Return the edits that replace blocks, by their places, by texts and images (each a media type and base64)."""
    write = _FINDERS[wire][2]
    edits = []
    for place in dict.fromkeys(each[:-1] for each in blocks):
        elements: list[int | Block] = []
        for index, block in enumerate(cast("list[Json]", get_at(tree, *place))):
            new = [
                write.build_text(part) if isinstance(part, str) else write.build_image(*part)
                for part in blocks.get((*place, index), ())
            ]
            if new and isinstance(mark := get_value(block, "cache_control"), dict):
                new[-1] = {**new[-1], "cache_control": mark}
            elements += new or [index]
        edits.append(Rebuild(place, tuple(elements)))
    return edits


def _list_contents(messages_key: str, tree: Json) -> Iterator[JsonPath]:
    """Yield the places of all lists of blocks: of each message, and of each tool result in one."""
    for i, message in enumerate_objects(get_at(tree, messages_key)):
        for key in _CONTENT_KEYS:
            if not isinstance(message.get(key), list):
                continue
            yield (messages_key, i, key)
            for j, block in enumerate_objects(message[key]):
                if block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                    yield (messages_key, i, key, j, "content")


def _find_in_messages(block: Block) -> tuple[str, str] | None:
    source = block.get("source")
    if block.get("type") != "document" or get_value(source, "type") != "base64":
        return None
    return (get_text(source, "data"), get_text(block, "title")) if get_text(source, "media_type") == _PDF else None


def _find_in_chat(block: Block) -> tuple[str, str] | None:
    return _read_file(block.get("file")) if block.get("type") == "file" else None


def _find_in_responses(block: Block) -> tuple[str, str] | None:
    return _read_file(block) if block.get("type") == "input_file" else None


def _read_file(file: Json) -> tuple[str, str] | None:
    """Return the base64 and the name of a file that is given as a data URL."""
    head, comma, data = get_text(file, "file_data").partition(",")
    is_pdf = head.lower().startswith(f"data:{_PDF}") and head.lower().endswith(";base64")
    return (data, get_text(file, "filename")) if comma and is_pdf else None


def _find_in_gemini(part: Block) -> tuple[str, str] | None:
    blob = part.get("inlineData") or part.get("inline_data")
    mime = get_text(blob, "mimeType") or get_text(blob, "mime_type")
    return (get_text(blob, "data"), get_text(blob, "displayName")) if mime == _PDF else None


_FINDERS: Mapping[WireName, tuple[Callable[[Block], tuple[str, str] | None], str, BlockFormat]] = {
    "anthropic": (_find_in_messages, anthropic.MESSAGES_KEY, anthropic.BLOCKS),
    "openai_chat": (_find_in_chat, openai_chat.MESSAGES_KEY, openai_chat.BLOCKS),
    "openai_responses": (_find_in_responses, openai_responses.MESSAGES_KEY, openai_responses.BLOCKS),
    "gemini": (_find_in_gemini, gemini.MESSAGES_KEY, gemini.BLOCKS),
}
