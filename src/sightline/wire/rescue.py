"""Images that a library has written into the text of a tool's result.

Only whole values count: a leaf of JSON, of one value or of several on lines of their own, or a text that is nothing
else. A data URL inside a page or a program that an agent reads stays where it is: the agent may be about to edit it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise

from sightline.model.edit import Edit, Replace
from sightline.model.fate import Repeated
from sightline.model.marks import SEE_BELOW
from sightline.model.scene import Json, Path, Sight
from sightline.model.source import Inline
from sightline.wire.inline import picture_in
from sightline.wire.jsonedits import Again, dumps, patched
from sightline.wire.jsonsize import is_oversized
from sightline.wire.shape import Texts, at, entries, text_in

HERE = "[image]"  # in the place of JSON that was an image
DEEPEST = 12  # steps into what a tool says
# The content parts in which libraries hold an image, and what may stand in one that says nothing beside it.
_HOLDERS = frozenset(
    {"media", "image-data", "file-data", "image-url", "file-url", "file", "image", "image_url", "input_image"}
)
_BARE = frozenset(
    {"type", "mediaType", "media_type", "mimeType", "mime_type", "mime", "detail", "filename", "encoding",
     "annotations", "cache_control", "providerOptions"}
)  # fmt: skip
# How base64 begins for the kinds of image that there are, at the start of a JSON string or of a data URL in one.
# A slash may be escaped, once for each text that the text stands in: some libraries do so.
_SLASH = r"(?:\\{0,15}/|\\{1,15}u002[fF]|_)"
_KNOWN = "data:|iVBORw0KGg|R0lGOD|UklGR|SUkqA|TU0AK|Qk[0-3]|AAABAA"
_signs = re.compile(rf'(?:["\s,]|\\[nrt])(?:{_KNOWN}|{_SLASH}9j{_SLASH}|AAAA(?:[A-Za-z0-9+-]|{_SLASH}){{2}})').search
# Wherever it stands, and each of them with a letter first: found in a quarter of the time, and nearly never there.
_sign = re.compile(rf"{_KNOWN}|9j[/\\_]|AAAA[A-Za-z0-9+/\\_-]").search

_blanks = re.compile(r"[ \t\n\r]*").match


def pictures(leaf: str, texts: Texts) -> Iterator[tuple[Path, Inline]]:
    """The images in a tool's text, each with the way to it through the JSON that the text holds."""
    if whole := picture_in(leaf, texts):
        yield (), whole
        return
    value = _promising(leaf, texts)
    if value is None:
        return
    found = list(_leaves(value, (), texts))
    holders = [_holder(value, way) for way, _ in found]
    crowds = Counter(holders)
    for (way, source), holder in zip(found, holders, strict=True):
        yield holder if holder and crowds[holder] == 1 else way, source


def _promising(leaf: str, texts: Texts) -> Json:
    """The JSON that a text is, if anything in it can be an image."""
    return _parsed(leaf) if _opens(leaf) and (texts.token in leaf or (_sign(leaf) and _signs(leaf))) else None


def _opens(leaf: str) -> bool:
    """Does it begin as JSON does? Most texts do not, and need not be searched."""
    return leaf.lstrip()[:1] in ("[", "{", '"')


def _parsed(leaf: str) -> Json:
    try:
        return _loads(leaf) if _opens(leaf) and not is_oversized(leaf) else None
    except (ValueError, RecursionError):
        return None


def _loads(leaf: str) -> Json:
    """The value; where several stand one after another, as in lines of JSON, the list of them."""
    values = [value for _, _, value in _values(leaf)]
    return values[0] if len(values) == 1 else values


def _values(leaf: str) -> list[tuple[int, int, Json]]:
    """The values that a text is made of, each with its beginning and its end.

    Several are objects or lists that begin on lines of their own: a log may hold values, and is none.
    """
    found: list[tuple[int, int, Json]] = []
    at = _past_blanks(leaf, 0)
    while at < len(leaf):
        value, end = _decode(leaf, at)
        found.append((at, end, value))
        at = _past_blanks(leaf, end)
    apart = all("\n" in leaf[end:start] for (_, end, _), (start, _, _) in pairwise(found))
    if len(found) > 1 and not (apart and all(isinstance(value, dict | list) for _, _, value in found)):
        raise ValueError("words beside a value")
    return found


def _past_blanks(leaf: str, at: int) -> int:
    found = _blanks(leaf, at)
    return found.end() if found else at


def _every(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """An object with what stands under a repeated key, too: a model reads all of it."""
    last = dict(pairs)
    if len(last) == len(pairs):
        return last
    totals, passed = Counter(key for key, _ in pairs), Counter[str]()
    found: dict[str, Json] = {}
    for key, value in pairs:
        found[Again(key, passed[key]) if passed[key] < totals[key] - 1 else key] = value
        passed[key] += 1
    return found


_decode = json.JSONDecoder(object_pairs_hook=_every).raw_decode


def strings(value: Json, way: Path = ()) -> Iterator[tuple[Path, str]]:
    """The texts of a JSON value, each with the way to it."""
    match value:
        case str():
            yield way, value
        case list() if len(way) < DEEPEST:
            for index, item in enumerate(value):
                yield from strings(item, (*way, index))
        case dict() if len(way) < DEEPEST:
            for key, item in value.items():
                yield from strings(item, (*way, key))


def _leaves(value: Json, way: Path, texts: Texts) -> Iterator[tuple[Path, Inline]]:
    """Of a text inside the JSON that is JSON again, too."""
    if len(way) > DEEPEST:
        return
    match value:
        case str():
            if found := picture_in(value, texts):
                yield way, found
            else:
                yield from _leaves(_promising(value, texts), way, texts)
        case list():
            for index, item in enumerate(value):
                yield from _leaves(item, (*way, index), texts)
        case dict():
            for key, item in value.items():
                yield from _leaves(item, (*way, key), texts)


def _holder(value: Json, way: Path) -> Path:
    """The content part of an image that a leaf belongs to, where it stands in a list of parts; else nothing.

    And nothing where the part says more than the image: that stays.
    """
    for end in (1, 2):
        if len(way) > end and isinstance(way[end - 1], int) and at(value, *way[:end], "type") in _HOLDERS:
            return way[:end] if _is_bare(at(value, *way[:end]), way[end:]) else ()
    return ()


def _is_bare(part: Json, way: Path) -> bool:
    """Does a part hold nothing of weight beside what a way leads to?"""
    for step in way:
        if not isinstance(part, dict) or not part.keys() <= _BARE | {step}:
            return False
        part = at(part, step)
    return True


def pieces(leaf: str, sights: Sequence[Sight]) -> list[str | Sight]:
    """A tool's text taken apart: the words that it kept, and its sights, in their order."""
    if any(sight.within == () for sight in sights):
        return list(sights)
    values = _values(leaf)
    by_way = {sight.within: sight for sight in sights}
    lead, parts = _parts(values[0][2]) if len(values) == 1 else ((), None)
    if parts is not None and all(way and way[:-1] == lead for way in by_way):
        return [by_way.get((*lead, index)) or _words(part) for index, part in enumerate(parts) if part is not None]
    said = _worded(leaf, values, {way: HERE for way in by_way if way})
    return [said, *(sight for sight in sights if not isinstance(sight.fate, Repeated))]


def worded(leaf: str, words: Mapping[Path, str]) -> str:
    """A tool's text with these words in the places of its images."""
    return words[()] if () in words else _worded(leaf, _values(leaf), words)


def _worded(leaf: str, values: Sequence[tuple[int, int, Json]], words: Mapping[Path, str]) -> str:
    if len(values) > 1:
        return _each_worded(leaf, values, words)
    value = values[0][2]
    edits: list[Edit] = []
    for outer, group in groupby(words, key=lambda way: _text_on(value, way)):
        inner = {way[len(outer) :]: words[way] for way in group}
        text = at(value, *outer)
        if isinstance(text, str):  # the image, or JSON again
            edits.append(Replace(outer, worded(text, inner)))
        else:
            edits.append(Replace(outer, {"type": "text", "text": inner[()]}))
    return patched(leaf, edits)


def _each_worded(leaf: str, values: Sequence[tuple[int, int, Json]], words: Mapping[Path, str]) -> str:
    """Of a text of several values: what stands between them stays."""
    inner: dict[str | int, dict[Path, str]] = {}
    for way, said in words.items():
        inner.setdefault(way[0], {})[way[1:]] = said
    pieces: list[str] = []
    at = 0
    for number, (start, end, value) in enumerate(values):
        one = leaf[start:end]
        pieces += [leaf[at:start], _worded(one, [(0, end - start, value)], inner[number]) if number in inner else one]
        at = end
    return "".join([*pieces, leaf[at:]])


def _text_on(value: Json, way: Path) -> Path:
    """How far a way leads before it enters a text; all of it, if it enters none."""
    return next((way[:end] for end in range(len(way)) if isinstance(at(value, *way[:end]), str)), way)


def is_data(text: str) -> bool:
    """Is the text a JSON value of its own, beside which nothing may be written?"""
    return isinstance(_parsed(text), dict | list)


def announces(leaf: str) -> bool:
    """Does a tool's result say that its images follow? In a line of its own: else it only speaks of such words."""
    if SEE_BELOW not in leaf:
        return False
    texts = (leaf, *(text_in(part, "text") for _, part in entries(_parsed(leaf))))
    return any(line.strip() == SEE_BELOW for text in texts for line in text.splitlines())


def _parts(value: Json) -> tuple[Path, list[Json] | None]:
    """The list of content parts that a text is, alone or as the content of a tool's result."""
    lead: Path = ("content",) if isinstance(value, dict) and _is_content(value) else ()
    parts = at(value, *lead)
    if isinstance(parts, list) and all(part is None or isinstance(at(part, "type"), str) for part in parts):
        return lead, parts
    return (), None


def _is_content(value: dict[str, Json]) -> bool:
    """Is it a result that says nothing beside its content, not even that the tool has failed?"""
    return all(key == "content" or (key in ("isError", "_meta") and not held) for key, held in value.items())


def _words(part: Json) -> str:
    text = at(part, "text")
    return text if isinstance(text, str) and at(part, "type") == "text" else dumps(part)
