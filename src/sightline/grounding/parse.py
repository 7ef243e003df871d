"""From an answer to places in the image as the model saw it. Never raises, whatever the answer is."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from sightline.grounding.formats import FORMATS, Format
from sightline.grounding.readers import Mark
from sightline.model.fence import attribute, one_line, sound
from sightline.model.geometry import Box, Map, Rect, Size
from sightline.model.scene import Json

Flag = Literal[
    "",
    "clamped",  # a little outside: taken for the edge
    "doubtful",  # it fits, but another value of the same answer does not: the whole may be meant in another space
    "misfit",  # its values do not fit the space of the format: it has no place
    "no_image",  # there are several images, and it is not said which one is meant
    "left_out",  # it lies where nothing of the original stands
]


class Found(NamedTuple):
    """What an answer points at."""

    image: int | None  # which of the images, from 0
    label: str
    values: tuple[float, ...]  # as they were written
    at: tuple[float, ...] | None  # x, y or x1, y1, x2, y2 in pixels of that image as it was seen
    flag: Flag = ""


def parse(text: str, name: str, seen: Sequence[Size]) -> list[Found]:
    """All that an answer in the format `name` points at; `seen` are the sizes in which the model saw its images, which
    is what was sent where that was sized for it."""
    form = FORMATS.get(name)
    if form is None or not seen:
        return []
    marks, rest = _read(text, form)
    prefixes = list(_prefixes(rest)) if "mage" in rest or "MAGE" in rest else []
    bounds = _bounds(form)
    said = _said(rest, marks, prefixes, len(seen))
    return _doubted([_found(form, bounds, mark, label, image, seen) for mark, label, image in said], form, seen)


def _read(text: str, form: Format) -> tuple[list[Mark], str]:
    """The marks in their order, and the text with all of them blotted out: what they say is said."""
    marks: list[Mark] = []
    for read in form.readers:
        new = list(read(text))
        text = _blotted(text, new)
        marks += new
    return sorted(marks, key=lambda mark: mark.start), text


def _blotted(text: str, marks: Iterable[Mark]) -> str:
    pieces, end = [], 0
    for start, stop in sorted({(mark.start, mark.end) for mark in marks}):
        if start >= end:
            pieces += [text[end:start], "\n" * (stop - start)]
            end = stop
    return "".join([*pieces, text[end:]])


# Which image is spoken of: Image-2: and, as the joint prompt has it, Image 2 (after.png):
_prefix = re.compile(r"[Ii](?<!\w[Ii])(?:mage|MAGE)[- ]?#?(?P<image>[0-9]{1,4})(?:\s?\([^()\n]{0,200}\))?[*_`]{0,3}:")


def _prefixes(text: str) -> Iterator[tuple[int, int, int]]:
    for found in _prefix.finditer(text):
        yield found.start(), found.end(), int(found["image"])


def _said(
    text: str, marks: list[Mark], prefixes: list[tuple[int, int, int]], images: int
) -> Iterator[tuple[Mark, str, int | None]]:
    """Each mark with what it is called and the number of the image that is meant, from 1."""
    starts = [start for start, _, _ in prefixes]
    end, words = 0, ""
    for mark in marks:
        last = bisect_right(starts, mark.start) - 1
        _, begin, image = prefixes[last] if last >= 0 else (0, 0, 1 if images == 1 else None)
        if mark.start >= end:  # else it is another one of the same list, and is called what that is called
            words = "" if mark.label else _words(text[max(begin, end, mark.start - _REACH) : mark.start])
        label = (words if mark.label is None else mark.label).lstrip()
        if label[:1] in ("I", "i") and (own := _prefix.match(label)):
            image, label = int(own["image"]), label[own.end() :]
        yield mark, _tidy(label), image if mark.image is None else mark.image
        end = mark.end


_REACH, _LONGEST = 300, 120
_sentence = re.compile(r"\n|[.!?;]\s|\*\*|`")
_ORNAMENT = " \t\r\n,:;=|*_`#>()[]{}-–—•\"'"


def _words(before: str) -> str:
    """What the words before some coordinates call the thing: the sentence so far."""
    return _sentence.split(before.rstrip(_ORNAMENT))[-1].strip(_ORNAMENT)


def _tidy(label: str) -> str:
    whole = " ".join(sound(label).split())
    return whole if len(whole) <= _LONGEST else "…" + whole[1 - _LONGEST :]


def _found(form: Format, bounds: _Bounds, mark: Mark, label: str, image: int | None, seen: Sequence[Size]) -> Found:
    if image is None or not 1 <= image <= len(seen):
        return Found(None, label, mark.values, None, "no_image")
    size = seen[image - 1]
    values = mark.values if form.order == "xy" else _swapped(mark.values)
    flag = _fit(form.scale, bounds, values, size)
    if flag == "misfit":
        return Found(image - 1, label, mark.values, None, flag)
    return Found(image - 1, label, mark.values, _placed(values, form.scale, size), flag)


def _swapped(values: tuple[float, ...]) -> tuple[float, ...]:
    if len(values) == 2:
        return values[::-1]
    y1, x1, y2, x2 = values
    return x1, y1, x2, y2


def _placed(values: tuple[float, ...], scale: float | None, size: Size) -> tuple[float, ...]:
    """Values in pixels, whichever scale they were written in."""
    if scale is None:
        return values
    wide, high = size.width, size.height
    if len(values) == 2:
        return values[0] * wide / scale, values[1] * high / scale
    x1, y1, x2, y2 = values
    return x1 * wide / scale, y1 * high / scale, x2 * wide / scale, y2 * high / scale


def _shares(values: tuple[float, ...], size: Size) -> tuple[float, ...]:
    """Pixels as fractions of the image's sides."""
    wide, high = size.width, size.height
    if len(values) == 2:
        return values[0] / wide, values[1] / high
    x1, y1, x2, y2 = values
    return x1 / wide, y1 / high, x2 / wide, y2 / high


class _Bounds(NamedTuple):
    """Of the values of a format: in its own scale, and of pixels in sides of the image."""

    least: float
    top: float
    most: float


def _bounds(form: Format) -> _Bounds:
    scale = form.scale or 1
    top = form.top or scale
    return _Bounds(-form.slack * scale, top, top + form.slack * scale)


def _fit(scale: float | None, bounds: _Bounds, values: tuple[float, ...], size: Size) -> Flag:
    """Whether the values lie within the image, and if not, whether they can be clamped to it."""
    written = _shares(values, size) if scale is None else values
    low, high = min(written), max(written)
    least, top, most = bounds
    if low < least or high > most:
        return "misfit"
    return "" if low >= 0 and high <= top else "clamped"


def _doubted(found: list[Found], form: Format, seen: Sequence[Size]) -> list[Found]:
    """One value that does not fit makes the others doubtful; an answer in fractions of one fits nowhere else."""
    if form.whole and found and _in_fractions(found) and max(size.edge for size in seen) > 1:
        return [each._replace(at=None, flag=each.flag or "misfit") for each in found]
    if not any(each.flag == "misfit" for each in found):
        return found
    return [
        Found(each.image, each.label, each.values, each.at, "doubtful") if each.flag in ("", "clamped") else each
        for each in found
    ]


def _in_fractions(found: Sequence[Found]) -> bool:
    """No box of a whole answer is larger than one; a point at 0, 0 or 1, 1 may well be meant."""
    small = all(0 <= value <= 1 for each in found for value in each.values)
    return small and any(len(each.values) == 4 or any(v % 1 for v in each.values) for each in found)


@dataclass(frozen=True, slots=True)
class Placed:
    """What an answer points at, in whole pixels of the original image."""

    image: int | None  # which of the images, from 0
    label: str
    values: tuple[float, ...]  # as the model wrote them
    at: tuple[int, ...] | None  # x, y or x1, y1, x2, y2, corners sorted; None where that cannot be said
    flag: Flag = ""

    def as_dict(self) -> dict[str, Json]:
        if self.at is None:
            place: dict[str, Json] = {"values": [_written(value) for value in self.values]}
        else:
            place = {"box" if len(self.at) == 4 else "point": list(self.at)}
        return {"label": one_line(self.label), **place, **({"flag": self.flag} if self.flag else {})}


def shown(original: Size, seen: Size, crop: Box | None = None) -> Map:
    """How an image, or a crop of it, was shown: what it needs to be cut out and then scaled."""
    if crop is None:
        return Map.scaled(original, seen)
    return Map.cropped(original, crop).then(Map.scaled(crop.size, seen))


def to_original(found: Found, view: Map) -> Placed:
    """Where something lies in the original, whose way to what the model saw is `view`."""
    if found.at is None:
        return Placed(found.image, found.label, found.values, None, found.flag)
    rect = _within(found.at, view.result)
    source = _carried(rect, view)
    if source is None:
        return Placed(found.image, found.label, found.values, None, "left_out")
    left, top = _clamped(source.x, view.source.width), _clamped(source.y, view.source.height)
    if len(found.at) == 2:
        return Placed(found.image, found.label, found.values, (left, top), found.flag)
    right = _clamped(source.x + source.width, view.source.width)
    bottom = _clamped(source.y + source.height, view.source.height)
    return Placed(found.image, found.label, found.values, (left, top, right, bottom), found.flag)


def boxes_block(image: str, size: Size, placed: Iterable[Placed]) -> str:
    """The block behind a fence; empty where there is nothing to say. `image` is the id of the original, sha256:…"""
    rows = [json.dumps(each.as_dict(), ensure_ascii=False) for each in placed]
    if not rows:
        return ""
    head = f'<vision_proxy_boxes image="{attribute(image)}" width="{size.width}" height="{size.height}">'
    return "\n".join([head, "[" + ",\n".join(rows) + "]", "</vision_proxy_boxes>"])


def _within(at: tuple[float, ...], size: Size) -> Rect:
    xs = sorted(min(max(x, 0.0), size.width) for x in at[0::2])
    ys = sorted(min(max(y, 0.0), size.height) for y in at[1::2])
    return Rect(xs[0], ys[0], xs[-1] - xs[0], ys[-1] - ys[0])


def _carried(rect: Rect, view: Map) -> Rect | None:
    """Around every part of it that comes from the source; a line or a point is where it is first seen."""
    parts = []
    for piece in view.pieces:
        if rect.width and rect.height:
            if part := rect.shared(piece.result):
                parts.append(part.carried(piece.result, piece.source))
        elif piece.result.holds(rect.x, rect.y) and piece.result.holds(rect.x + rect.width, rect.y + rect.height):
            return rect.carried(piece.result, piece.source)
    if not parts:
        return None
    x, y = min(part.x for part in parts), min(part.y for part in parts)
    right, bottom = max(part.x + part.width for part in parts), max(part.y + part.height for part in parts)
    return Rect(x, y, right - x, bottom - y)


def _written(value: float) -> Json:
    if not math.isfinite(value):
        return None  # JSON has no word for it
    return int(value) if float(value).is_integer() else value


def _clamped(value: float, top: int) -> int:
    return min(max(round(value), 0), top)
