"""Images that are base64 text in a body: in a field of their own, or written into the text of a tool's result.

In a tool's text only whole values count: a leaf of JSON (of one value, or of several on lines of their own), or a text
that is nothing else. A data URL inside a page or a program that an agent reads stays where it is: the agent may be
about to edit that file.

A *way* is the path from a tool's text to an image in it, through the JSON that the text holds, and through JSON in
strings of that JSON. The empty way is the whole text.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import pybase64

from sightline.model.base64_text import STANDARD_ALPHABET, URLSAFE_TO_STANDARD
from sightline.model.scene import Edit, InlineSource, Json, JsonPath, LinkSource, Repeated, Replace, Sight, Source
from sightline.wire.json_edits import RepeatedKey, dump_json, patch_text
from sightline.wire.json_tree import Block, Buffer, Texts, get_at, is_oversized

# One string

_POSSIBLE_IMAGE_TYPES = ("image/", "application/octet-stream")
_SIGNATURE_LETTERS = 32  # base64 letters that tell the format of an image
_MIN_LENGTH = 64
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_FIRST_LETTERS = frozenset("dDi/_RSTUAQ")  # with which a data URL or the base64 of any of these begins
_BRANDS = (b"avif", b"avis", b"heic", b"heix", b"mif1", b"heif")
_MAX_LINE = 128
_SPACES = b" \t\r\n"


def build_inline(declared: str, leaf: str, texts: Texts) -> InlineSource:
    return InlineSource(declared.strip().lower(), texts.expand_text(leaf), leaf)


def read_image_url(url: str, texts: Texts) -> Source | None:
    """Return the image that a URL contains or points to; None for data that isn't an image."""
    head, comma, payload = url.lstrip().partition(",")
    if comma and head[:5].lower() == "data:":
        declared = head[5:].partition(";")[0].strip().lower()
        may_be_image = declared.startswith(_POSSIBLE_IMAGE_TYPES) or not declared
        return InlineSource(declared, texts.expand_text(payload), payload) if may_be_image else None
    return LinkSource(url)


def read_image_data_url(url: Json, texts: Texts) -> Source | None:
    """Return the image of a file whose data URL declares one."""
    return read_image_url(url, texts) if isinstance(url, str) and url[:11].lower() == "data:image/" else None


def parse_image_string(leaf: str, texts: Texts) -> InlineSource | None:
    """Return the image if the whole string is one: base64 or a data URL that decodes to the first bytes of an image."""
    if leaf.lstrip()[:1] not in _FIRST_LETTERS and not leaf.lstrip().startswith(texts.token):
        return None
    head, comma, payload = leaf.lstrip().partition(",")
    declared = ""
    if comma and head[:5].lower() == "data:" and head[-7:].lower() == ";base64":
        declared, leaf = head[5:].partition(";")[0], payload
    elif texts.token not in leaf and len(leaf) < _MIN_LENGTH:
        return None
    found = build_inline(declared, leaf, texts)
    return found if _has_image_signature(found.text) and _is_base64(bytes(found.text)) else None


def _is_base64(text: bytes) -> bool:
    """Return whether a text is base64, in either alphabet, on one line or wrapped.

    Words that follow are letters, too. But they don't make lines of one length.
    """
    lines = text.strip(_SPACES).splitlines()
    lengths = {len(line) for line in lines[:-1]}
    wrapped = not lengths or (len(lengths) == 1 and len(lines[-1]) <= max(lengths) <= _MAX_LINE)
    return wrapped and not b"".join(lines).rstrip(b"=").translate(None, STANDARD_ALPHABET + b"-_")


def _has_image_signature(text: Buffer) -> bool:
    try:
        letters = bytes(text[: 2 * _SIGNATURE_LETTERS]).translate(URLSAFE_TO_STANDARD, _SPACES)[:_SIGNATURE_LETTERS]
        head = pybase64.b64decode(letters[: len(letters) // 4 * 4], validate=True)
    except ValueError:
        return False
    return (
        head.startswith(_SIGNATURES)
        or (head.startswith(b"RIFF") and head[8:12] == b"WEBP")
        or (head[4:8] == b"ftyp" and head[8:12] in _BRANDS)
        or (head.startswith(b"BM") and head[6:10] == b"\0\0\0\0")
        or head.startswith(b"\0\0\1\0\1\0")
    )


def to_standard_base64(source: InlineSource) -> str:
    """Return the payload in the alphabet that every wire accepts, as an edit can contain it."""
    if not bytes(source.text).translate(None, STANDARD_ALPHABET + b"="):
        return source.leaf
    bare = b"".join(bytes(source.text).translate(URLSAFE_TO_STANDARD).split()).rstrip(b"=")
    return (bare + b"=" * (-len(bare) % 4)).decode("ascii", "replace")


# The text of a tool's result: finding images

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

_match_blanks = re.compile(r"[ \t\n\r]*").match


def find_text_images(leaf: str, texts: Texts) -> Iterator[tuple[JsonPath, InlineSource]]:
    """Yield the images in a tool's text, each with the way to it."""
    if image := parse_image_string(leaf, texts):
        yield (), image
        return
    value = _parse_if_promising(leaf, texts)
    if value is None:
        return
    found = list(_find_leaf_images(value, (), texts))
    holders = [_find_holder(value, way) for way, _ in found]
    images_by_holder = Counter(holders)
    for (way, source), holder in zip(found, holders, strict=True):
        yield holder if holder and images_by_holder[holder] == 1 else way, source


def _parse_if_promising(leaf: str, texts: Texts) -> Json:
    """Return the JSON that a text is, if anything in it can be an image."""
    if not _begins_as_json(leaf):  # as most texts: they aren't searched
        return None
    may_hold_image = texts.token in leaf or (_find_image_letters(leaf) and _find_image_start(leaf))
    return _parse_json(leaf) if may_hold_image else None


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


def _find_leaf_images(value: Json, way: JsonPath, texts: Texts) -> Iterator[tuple[JsonPath, InlineSource]]:
    """Yield the strings of a JSON value that are images, also in strings that are JSON again."""
    if len(way) > MAX_DEPTH:
        return
    match value:
        case str():
            if found := parse_image_string(value, texts):
                yield way, found
            else:
                yield from _find_leaf_images(_parse_if_promising(value, texts), way, texts)
        case list():
            for index, item in enumerate(value):
                yield from _find_leaf_images(item, (*way, index), texts)
        case dict():
            for key, item in value.items():
                yield from _find_leaf_images(item, (*way, key), texts)


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


# The text of a tool's result: taking images out of it


def split_at_images(leaf: str, sights: Sequence[Sight]) -> list[str | Sight]:
    """Split a tool's text into the words that it keeps and its sights, in their order."""
    if any(sight.path_in_text == () for sight in sights):
        return list(sights)
    values = _decode_values(leaf)
    by_way = {sight.path_in_text: sight for sight in sights}
    lead, parts = _find_content_parts(values[0][2]) if len(values) == 1 else ((), None)
    if parts is not None and all(way and way[:-1] == lead for way in by_way):
        return [by_way.get((*lead, index)) or _write_part(part) for index, part in enumerate(parts) if part is not None]
    text = _replace_in_values(leaf, values, {way: PLACEHOLDER for way in by_way if way})
    return [text, *(sight for sight in sights if not isinstance(sight.fate, Repeated))]


def replace_text_images(leaf: str, words: Mapping[JsonPath, str]) -> str:
    """Return a tool's text with these words in the places of its images."""
    return words[()] if () in words else _replace_in_values(leaf, _decode_values(leaf), words)


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


def _find_content_parts(value: Json) -> tuple[JsonPath, list[Json] | None]:
    """Return the list of content parts that a text is, and the way to it: alone, or as the content of a result."""
    lead: JsonPath = ("content",) if isinstance(value, dict) and _is_content(value) else ()
    parts = get_at(value, *lead)
    if isinstance(parts, list) and all(part is None or isinstance(get_at(part, "type"), str) for part in parts):
        return lead, parts
    return (), None


def _is_content(value: Block) -> bool:
    """Return whether a result says nothing beside its content, not even that the tool has failed."""
    return all(key == "content" or (key in ("isError", "_meta") and not field) for key, field in value.items())


def _write_part(part: Json) -> str:
    text = get_at(part, "text")
    return text if isinstance(text, str) and get_at(part, "type") == "text" else dump_json(part)
