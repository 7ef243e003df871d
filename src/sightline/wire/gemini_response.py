"""Function responses on Gemini's wire whose images become words, leave, or come out of texts: parts hold data alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from sightline.model import marks
from sightline.model.edit import Edit, Insert, Rebuild, Remove, Replace
from sightline.model.fate import Refused, Repeated, Retired, Told
from sightline.model.scene import Json, Path, Sight
from sightline.wire import rescue
from sightline.wire.gemini_names import DATA, NAME, key_of, under
from sightline.wire.jsontree import graft
from sightline.wire.lowering import Block, Dialect, as_sent, block, has_pixels
from sightline.wire.shape import at, items, text_in

_WORDS = "image"  # the key of a tool's response for words about images that had a part of their own


def _name(part: Json) -> str:
    blob = under(part, DATA)
    return text_in(blob, key_of(blob, NAME))


def nameless(part: Json) -> Json:
    """A part of a content has no name to be referred to by; only one inside a response has."""
    blob = under(part, DATA)
    if not isinstance(part, dict) or not isinstance(blob, dict) or under(blob, NAME) is None:
        return part
    return {**part, key_of(part, DATA): {key: value for key, value in blob.items() if key not in NAME}}


def rebuilt(place: Path, sights: Sequence[Sight], tree: Json, dialect: Dialect, *, hoist: bool) -> list[Edit]:
    """Edits for a function response whose images become words, leave it, or come out of its texts."""
    old = at(tree, *place)
    assert isinstance(old, dict)
    names = [_name(part) for part in items(old, "parts")]
    references = _references(old.get("response")) if any(names) else {}
    gone: dict[Path, list[str]] = {}  # what is said where a part that is gone was referred to
    parts: list[int | Block] = []
    loose: list[str] = []  # words for which the response has no place yet
    standing = {sight.place: sight for sight in sights if sight.within is None}
    for k, name in enumerate(names):
        sight = standing.get((*place, "parts", k))
        if sight is None or (has_pixels(sight) and not hoist):
            parts.append(k if sight is None or as_sent(sight) else block(sight, tree, dialect))
            continue
        told = _told(sight)
        ways = references.get(name, [])
        for way in ways:
            gone.setdefault(way, []).append(told or rescue.HERE)
        loose += [told] if told and (not ways or () in ways) else []
    inner: list[Edit] = [Replace(way, "\n".join(said)) for way, said in gone.items() if way]
    for leaf, group in groupby((s for s in sights if s.within is not None), key=lambda s: s.place):
        here = list(group)
        kept, beside = _apart(at(tree, *leaf), here)
        inner.append(Replace(leaf[len(place) + 1 :], kept))
        loose += beside
        parts += [block(sight, tree, dialect) for sight in here if has_pixels(sight) and not hoist]
    if hoist and any(map(has_pixels, sights)):
        loose.append(marks.BESIDE)
    spoken = _instead(place, loose) if () in gone else _spoken(place, old, inner, loose)
    return [*spoken, *_parts(place, old, parts)]


def _instead(place: Path, words: Sequence[str]) -> list[Edit]:
    """What a tool says was nothing but a reference to a part that is gone."""
    return [Replace((*place, "response"), {_WORDS: _listed(words)})]


def _parts(place: Path, old: Block, parts: list[int | Block]) -> list[Edit]:
    """The data of a function response."""
    before = old.get("parts")
    if isinstance(before, list):
        if not parts and len(old) > 1:
            return [Remove((*place, "parts"))] if before else []
        return [Rebuild((*place, "parts"), tuple(parts))] if parts != [*range(len(before))] else []
    written = [each for each in parts if isinstance(each, dict)]
    if not written:
        return []
    value: list[Json] = [*written]
    return [Replace((*place, "parts"), value) if "parts" in old else Insert((*place, "parts"), value)]


def _told(sight: Sight) -> str:
    """The words that a sight became; none, if it has pixels still."""
    return sight.fate.words if isinstance(sight.fate, Told | Retired | Refused) else ""


def _apart(leaf: Json, sights: Sequence[Sight]) -> tuple[str, list[str]]:
    """A text of a response without the images that were written into it; and words that must stand outside of it."""
    assert isinstance(leaf, str)
    pieces = rescue.pieces(leaf, sights)
    first = pieces[0]
    met = [sight for sight in sights if not isinstance(sight.fate, Repeated)]
    if isinstance(first, str) and pieces[1:] == met and rescue.is_data(first):
        return first, [told for sight in met if (told := _told(sight))]
    return "\n".join(each if isinstance(each, str) else _told(each) or rescue.HERE for each in pieces), []


def _spoken(place: Path, old: Block, inner: Sequence[Edit], words: Sequence[str]) -> list[Edit]:
    """A part of a function response can only be data, so words stand in what the tool says, under a key of their own.

    That is any object: a key more is always legal there, and what the tool itself says stays as it is.
    """
    here: Path = (*place, "response")
    answer = old.get("response")
    said = _listed(words) if words else None
    if isinstance(answer, dict) or said is None:
        edits: list[Edit] = [replace(edit, place=(*here, *edit.place)) for edit in inner]
        return [*edits, Insert((*here, _free(answer)), said)] if said is not None else edits
    if "response" not in old:
        return [Insert(here, {_WORDS: said})]
    return [Replace(here, {_WORDS: said} if answer is None else {"output": graft(answer, inner), _WORDS: said})]


def _listed(words: Sequence[str]) -> Json:
    return words[0] if len(words) == 1 else list[Json](words)


def _free(said: Json) -> str:
    key = _WORDS
    while isinstance(said, dict) and key in said:
        key += "_"
    return key


def _references(value: Json) -> dict[str, list[Path]]:
    """Where a response refers to its parts, by their names: nothing may refer to what is gone."""
    found: dict[str, list[Path]] = {}
    for way, name in _referring(value, ()):
        found.setdefault(name, []).append(way)
    return found


def _referring(value: Json, way: Path) -> Iterator[tuple[Path, str]]:
    match value:
        case {"$ref": str(name), **others} if name and not others:
            yield way, name
        case list() if len(way) < rescue.DEEPEST:
            for index, item in enumerate(value):
                yield from _referring(item, (*way, index))
        case dict() if len(way) < rescue.DEEPEST:
            for key, item in value.items():
                yield from _referring(item, (*way, key))
