"""Images that a library has written into the text of a tool's result: found, and taken out again.

Images are found in four forms: the text is an image as base64, or JSON with images in its strings or byte lists; words
with an image in a form that libraries write (`embedded_images`); or the bytes of a file as characters (`image_bytes`).
A string of JSON may again have any of these forms.

A *way* is the path from a text to an image in it, through the JSON that the text holds, through JSON in strings of that
JSON, and through a `TextSlice` to characters among words. The empty way is the whole text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Self

from sightline.model.scene import DamagedSource, Edit, InlineSource, Json, JsonPath, Repeated, Replace, Sight
from sightline.wire.embedded_images import find_embedded_images
from sightline.wire.image_blocks import is_image_data, parse_image_string
from sightline.wire.image_bytes import (
    FORMAT_NAMES,
    ZERO_BYTE,
    build_from_bytes,
    find_image_bytes,
    has_number_run,
    may_have_stripped_image,
)
from sightline.wire.json_edits import RepeatedKey, dump_json, patch_text
from sightline.wire.json_tree import Block, Texts, get_at, is_oversized

PLACEHOLDER = "[image]"  # in the place of JSON that was an image
MAX_DEPTH = 12  # steps into what a tool returns
# The content parts in which libraries put an image, and the keys of a part that say nothing beside it.
_HOLDER_TYPES = frozenset(
    {"media", "image-data", "file-data", "image-url", "file-url", "file", "image", "image_url", "input_image"}
)
_INSIGNIFICANT_KEYS = frozenset(
    {"type", "mediaType", "media_type", "mimeType", "mime_type", "mime", "detail", "filename", "encoding",
     "annotations", "cache_control", "providerOptions"}
)  # fmt: skip
# How base64 begins for each image format, at the start of a JSON string or of a data URL in one. A slash may be
# escaped once for each text that the text is in: some libraries do so.
_SLASH = r"(?:\\{0,15}/|\\{1,15}u002[fF]|_)"
_KNOWN = "data:|iVBORw0KGg|R0lGOD|UklGR|SUkqA|TU0AK|Qk[0-3]|AAABAA"
_find_image_start = re.compile(
    rf'(?:["\s,]|\\[nrt])(?:{_KNOWN}|{_SLASH}9j{_SLASH}|AAAA(?:[A-Za-z0-9+-]|{_SLASH}){{2}})'
).search
# The same at any place, each with a letter first: four times as fast, and nearly never found.
_find_image_letters = re.compile(rf"{_KNOWN}|9j[/\\_]|AAAA[A-Za-z0-9+/\\_-]").search

# The first bytes of an image as numbers, as values of an object with their indexes, and as Node prints them.
_NEXT = r'\s*,\s*(?:\\*"1\\*"\s*:\s*)?'
_find_byte_list = re.compile(
    rf'(?:[\[:"]|\\n)\s*(?:137{_NEXT}80|255{_NEXT}216|71{_NEXT}73|82{_NEXT}73|66{_NEXT}77)\s*,'
    r"|<Buffer |Contents\]: <|(?:Array|Buffer)\(\d+\) \["
    r"|[\s\"nx](?:89504[eE]47|[fF]{2}[dD]8[fF]{2}|47494638|52494646|424[dD])[0-9a-fA-F]{32}"
).search
_MIN_BYTES = 48
_QUOTES = ("'", '"')

_match_blanks = re.compile(r"[ \t\n\r]*").match


class TextSlice(int):
    """A step into a text: to the characters from its value up to `end`."""

    end: int

    def __new__(cls, start: int, end: int) -> Self:
        step = super().__new__(cls, start)
        step.end = end
        return step


# Finding images


TextImage = tuple[JsonPath, InlineSource | DamagedSource]
"""An image in a text, and the way to it."""


def find_byte_images(leaf: str, path: str | None) -> Iterator[TextImage]:
    """Yield the image of which a text has the bytes as characters, with the way to it."""
    if found := find_image_bytes(leaf, path):
        start, end, source = found
        yield (() if (start, end) == (0, len(leaf)) else (TextSlice(start, end),)), source


def find_text_images(leaf: str, texts: Texts, path: str | None = None) -> Iterator[TextImage]:
    """Yield the images that libraries have written into a text, each with the way to it.

    `path` is that of the file that the tool has read, if it is known.
    """
    if may_have_stripped_image(leaf) and (written := [*find_byte_images(leaf, path)]):
        yield from written
        return
    if image := parse_image_string(leaf, texts):
        yield (), image
        return
    value = _parse_if_promising(leaf, texts)
    if value is None:
        for start, end, source in find_embedded_images(leaf, texts, path):
            yield (() if (start, end) == (0, len(leaf)) else (TextSlice(start, end),)), source
        return
    found = list(_find_leaf_images(value, (), texts, path))
    holders = [_find_holder(value, way) for way, _ in found]
    images_by_holder = Counter(holders)
    for (way, source), holder in zip(found, holders, strict=True):
        yield holder if holder and images_by_holder[holder] == 1 else way, source


def _parse_if_promising(leaf: str, texts: Texts) -> Json:
    """Return the JSON that a text is, if anything in it can be an image."""
    if not _begins_as_json(leaf):  # as most texts: they aren't searched
        return None
    may_hold_image = texts.token in leaf or (_find_image_letters(leaf) and _find_image_start(leaf))
    return _parse_json(leaf) if may_hold_image or _may_hold_bytes(leaf) or _may_hold_characters(leaf) else None


def _may_hold_bytes(leaf: str) -> bool:
    """Return whether a text may have the bytes of an image as a program prints them. The fast searches come first."""
    raw = leaf.encode("utf-8", "surrogatepass")
    has_literal = "\\" in leaf and ZERO_BYTE in raw
    return has_literal or (has_number_run(raw) and _find_byte_list(leaf) is not None)


def _may_hold_characters(leaf: str) -> bool:
    """Return whether a string may have the bytes of an image as characters: some are escaped, or were replaced."""
    has_others = ("\\" in leaf and "\\u" in leaf) or "\ufffd" in leaf
    return has_others and ("\\u0000" in leaf or any(name in leaf for name in FORMAT_NAMES))


def _begins_as_json(leaf: str) -> bool:
    return leaf.lstrip()[:1] in ("[", "{", '"')


def _parse_json(leaf: str) -> Json:
    try:
        return _load_values(leaf) if _begins_as_json(leaf) and not is_oversized(leaf) else None
    except (ValueError, RecursionError):
        return None


def _load_values(leaf: str) -> Json:
    """Return the value that a text is; a list of them for several one after another, as in JSON Lines."""
    values = [value for _, _, value in _decode_values(leaf)]
    return values[0] if len(values) == 1 else values


def _decode_values(leaf: str) -> list[tuple[int, int, Json]]:
    """Return the values that a text consists of, each with its start and end.

    Several values must be objects or lists that begin on lines of their own: a log may contain values among words.
    """
    found: list[tuple[int, int, Json]] = []
    at = _skip_blanks(leaf, 0)
    while at < len(leaf):
        value, end = _decode(leaf, at)
        found.append((at, end, value))
        at = _skip_blanks(leaf, end)
    apart = all("\n" in leaf[end:start] for (_, end, _), (start, _, _) in pairwise(found))
    if len(found) > 1 and not (apart and all(isinstance(value, dict | list) for _, _, value in found)):
        raise ValueError("words beside a value")
    return found


def _skip_blanks(leaf: str, at: int) -> int:
    found = _match_blanks(leaf, at)
    return found.end() if found else at


def _keep_repeated_keys(pairs: list[tuple[str, Json]]) -> Block:
    """Return an object that has the values under repeated keys, too: a model reads all of them."""
    last = dict(pairs)
    if len(last) == len(pairs):
        return last
    totals, passed = Counter(key for key, _ in pairs), Counter[str]()
    found: Block = {}
    for key, value in pairs:
        found[RepeatedKey(key, passed[key]) if passed[key] < totals[key] - 1 else key] = value
        passed[key] += 1
    return found


_decode = json.JSONDecoder(object_pairs_hook=_keep_repeated_keys).raw_decode


def walk_strings(value: Json, way: JsonPath = ()) -> Iterator[tuple[JsonPath, str]]:
    """Yield the strings of a JSON value, each with the way to it."""
    match value:
        case str():
            yield way, value
        case list() if len(way) < MAX_DEPTH:
            for index, item in enumerate(value):
                yield from walk_strings(item, (*way, index))
        case dict() if len(way) < MAX_DEPTH:
            for key, item in value.items():
                yield from walk_strings(item, (*way, key))


def _find_leaf_images(value: Json, way: JsonPath, texts: Texts, path: str | None) -> Iterator[TextImage]:
    """Yield the strings of a JSON value that are images, also in strings that are JSON again."""
    if len(way) > MAX_DEPTH:
        return
    match value:
        case str():
            found = [*find_byte_images(value, path)] if "\0" in value else []
            for within, source in found or find_text_images(value, texts, path):
                yield (*way, *within), source
        case list() | dict() if data := _read_byte_values(value):
            yield way, build_from_bytes(data)
        case list():
            for index, item in enumerate(value):
                yield from _find_leaf_images(item, (*way, index), texts, path)
        case dict():
            for key, item in value.items():
                yield from _find_leaf_images(item, (*way, key), texts, path)


def _read_byte_values(value: list[Json] | Block) -> bytes | None:
    """Return the bytes that a list of numbers is, or a Buffer or Uint8Array of Node, if they begin like an image."""
    if isinstance(value, dict):
        numbers = value.get("data") if value.get("type") == "Buffer" else _list_indexed(value)
    else:
        numbers = value
    if not isinstance(numbers, list) or len(numbers) < _MIN_BYTES or not isinstance(numbers[0], int):
        return None
    try:
        data = bytes(numbers)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    return data if is_image_data(data) else None


def _list_indexed(value: Block) -> list[Json] | None:
    """Return the values of an object whose keys are 0, 1, 2 …, as JSON has an array of bytes."""
    in_order = "0" in value and all(key == str(index) for index, key in enumerate(value))
    return [*value.values()] if in_order else None


def _find_holder(value: Json, way: JsonPath) -> JsonPath:
    """Return the path to the content part of an image, if it is in a list of parts and has nothing else; else ()."""
    for end in (1, 2):
        if len(way) > end and isinstance(way[end - 1], int) and get_at(value, *way[:end], "type") in _HOLDER_TYPES:
            return way[:end] if _holds_nothing_else(get_at(value, *way[:end]), way[end:]) else ()
    return ()


def _holds_nothing_else(part: Json, way: JsonPath) -> bool:
    """Return whether a part holds nothing significant beside the value at the end of `way`."""
    for step in way:
        if not isinstance(part, dict) or not part.keys() <= _INSIGNIFICANT_KEYS | {step}:
            return False
        part = get_at(part, step)
    return True


# Taking images out


def split_at_images(leaf: str, sights: Sequence[Sight]) -> list[str | Sight]:
    """Split a tool's text into the words that it keeps and its sights, in their order."""
    if any(sight.path_in_text == () for sight in sights):
        return list(sights)
    if any(_get_slice(sight.path_in_text or ()) is not None for sight in sights):
        return _split_at_slices(leaf, sights)
    values = _decode_values(leaf)
    by_way = {sight.path_in_text: sight for sight in sights}
    lead, parts = _find_content_parts(values[0][2]) if len(values) == 1 else ((), None)
    if parts is not None and all(way and way[:-1] == lead for way in by_way):
        return [by_way.get((*lead, index)) or _write_part(part) for index, part in enumerate(parts) if part is not None]
    text = _replace_in_values(leaf, values, {way: PLACEHOLDER for way in by_way if way})
    return [text, *(sight for sight in sights if not isinstance(sight.fate, Repeated))]


def _split_at_slices(leaf: str, sights: Sequence[Sight]) -> list[str | Sight]:
    """Split a text at the images among its words. One that is a value of something follows the text."""
    pieces: list[str | Sight] = []
    quoted: list[Sight] = []
    words, at = "", 0
    for sight in sorted(sights, key=lambda sight: sight.path_in_text or ()):
        step = _get_slice(sight.path_in_text or ())
        assert step is not None, "a text is either JSON or words"
        words += leaf[at:step]
        is_value = leaf[step - 1 : step] in _QUOTES or leaf[:step].rstrip()[-2:] == '":'
        if isinstance(sight.fate, Repeated) or is_value:
            words += PLACEHOLDER
            quoted += [] if isinstance(sight.fate, Repeated) else [sight]
        else:
            pieces += [words.strip(), sight]
            words = ""
        at = step.end
    return [*pieces, words + leaf[at:] if not pieces else (words + leaf[at:]).strip(), *quoted]


def replace_text_images(leaf: str, words: Mapping[JsonPath, str]) -> str:
    """Return a tool's text with these words in the places of its images."""
    if () in words:
        return words[()]
    if any(_get_slice(way) is not None for way in words):
        return _replace_slices(leaf, words)
    return _replace_in_values(leaf, _decode_values(leaf), words)


def _get_slice(way: JsonPath) -> TextSlice | None:
    """Return the first step of a way, if that is a slice of the text."""
    return way[0] if way and isinstance(way[0], TextSlice) else None


def _replace_slices(leaf: str, words: Mapping[JsonPath, str]) -> str:
    """Replace images among words; everything around them stays."""
    pieces: list[str] = []
    at = 0
    for way in sorted(words, key=lambda way: way[0]):
        step = way[0]
        assert isinstance(step, TextSlice), "a text is either JSON or words"
        pieces += [leaf[at:step], words[way]]
        at = step.end
    return "".join([*pieces, leaf[at:]])


def _replace_in_values(leaf: str, values: Sequence[tuple[int, int, Json]], words: Mapping[JsonPath, str]) -> str:
    if len(values) > 1:
        return _replace_in_each(leaf, values, words)
    value = values[0][2]
    edits: list[Edit] = []
    for outer, group in groupby(words, key=lambda way: _find_outer_text(value, way)):
        inner = {way[len(outer) :]: words[way] for way in group}
        text = get_at(value, *outer)
        if isinstance(text, str):  # the image, or JSON again
            edits.append(Replace(outer, replace_text_images(text, inner)))
        else:
            edits.append(Replace(outer, {"type": "text", "text": inner[()]}))
    return patch_text(leaf, edits)


def _replace_in_each(leaf: str, values: Sequence[tuple[int, int, Json]], words: Mapping[JsonPath, str]) -> str:
    """Replace the images in a text of several values; the text between them stays."""
    inner: dict[str | int, dict[JsonPath, str]] = {}
    for way, text in words.items():
        inner.setdefault(way[0], {})[way[1:]] = text
    pieces: list[str] = []
    at = 0
    for index, (start, end, value) in enumerate(values):
        one = leaf[start:end]
        new = _replace_in_values(one, [(0, end - start, value)], inner[index]) if index in inner else one
        pieces += [leaf[at:start], new]
        at = end
    return "".join([*pieces, leaf[at:]])


def _find_outer_text(value: Json, way: JsonPath) -> JsonPath:
    """Return the part of a way before it enters a string; all of it, if it enters none."""
    return next((way[:end] for end in range(len(way)) if isinstance(get_at(value, *way[:end]), str)), way)


def is_json_container(text: str) -> bool:
    """Return whether a text is a JSON object or list: nothing may be written beside it."""
    return isinstance(_parse_json(text), dict | list)


def is_content(text: str) -> bool:
    """Return whether a text is as a whole what a library writes for the content of a result: parts, or a Buffer."""
    value = _parse_json(text)
    parts = _find_content_parts(value)[1] or [value]
    return any(get_at(part, "type") in _HOLDER_TYPES | {"Buffer"} for part in parts)


def _find_content_parts(value: Json) -> tuple[JsonPath, list[Json] | None]:
    """Return the list of content parts that a text is, and the way to it: alone, or as the content of a result."""
    lead: JsonPath = ("content",) if isinstance(value, dict) and _says_nothing_else(value) else ()
    parts = get_at(value, *lead)
    if isinstance(parts, list) and all(part is None or isinstance(get_at(part, "type"), str) for part in parts):
        return lead, parts
    return (), None


def _says_nothing_else(value: Block) -> bool:
    """Return whether a result says nothing beside its content, not even that the tool has failed."""
    return all(key == "content" or (key in ("isError", "_meta") and not field) for key, field in value.items())


def _write_part(part: Json) -> str:
    text = get_at(part, "text")
    return text if isinstance(text, str) and get_at(part, "type") == "text" else dump_json(part)
