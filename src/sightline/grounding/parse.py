"""Find the places that an answer mentions, and map them to the original image. Never raises."""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from sightline.grounding import FORMATS, GroundingFormat
from sightline.model.fence import escape_attribute, replace_surrogates, to_one_line
from sightline.model.geometry import Box, PixelMap, Rect, Size
from sightline.model.scene import Json
from sightline.model.value import value_class

if TYPE_CHECKING:
    from sightline.grounding.readers import CoordinateMark

Flag = Literal[
    "",
    "clamped",  # slightly outside, and moved to the edge
    "doubtful",  # it fits, but another place of the same answer does not, so another space may be meant
    "misfit",  # its values do not fit the space of the format
    "no_image",  # there are several images, and the answer does not say which one it means
    "left_out",  # it is where the model saw no part of the original
]


class SeenPlace(NamedTuple):
    """A place that an answer mentions, in the image as the model saw it."""

    image: int | None  # index of the image
    label: str
    values: tuple[float, ...]  # as they were written
    coordinates: tuple[float, ...] | None  # x, y or x1, y1, x2, y2 in pixels of that image as it was seen
    flag: Flag = ""


def parse_places(text: str, name: str, sizes: Sequence[Size]) -> list[SeenPlace]:
    """Return the places in an answer in the format `name`; `sizes` are those in which the model saw its images."""
    form = FORMATS.get(name)
    if form is None or not sizes:
        return []
    marks, rest = _read_marks(text, form)
    prefixes = list(_find_prefixes(rest)) if "mage" in rest or "MAGE" in rest else []
    bounds = _compute_bounds(form)
    named_marks = _name_marks(rest, marks, prefixes, len(sizes))
    return _flag_doubts(
        [_place_mark(form, bounds, mark, label, image, sizes) for mark, label, image in named_marks], form, sizes
    )


def _read_marks(text: str, form: GroundingFormat) -> tuple[list[CoordinateMark], str]:
    """Return the marks in their order, and the text with all of them blanked out."""
    from sightline.grounding.readers import READERS  # many patterns, and few answers have coordinates

    marks: list[CoordinateMark] = []
    for name in form.readers:
        new = list(READERS[name](text))
        text = _blank_out(text, new)
        marks += new
    return sorted(marks, key=lambda mark: mark.start), text


def _blank_out(text: str, marks: Iterable[CoordinateMark]) -> str:
    pieces, end = [], 0
    for start, stop in sorted({(mark.start, mark.end) for mark in marks}):
        if start >= end:
            pieces += [text[end:start], "\n" * (stop - start)]
            end = stop
    return "".join([*pieces, text[end:]])


# Which image is meant: `Image-2:` and, as the joint prompt says, `Image 2 (after.png):`
_prefix = re.compile(r"[Ii](?<!\w[Ii])(?:mage|MAGE)[- ]?#?(?P<image>[0-9]{1,4})(?:\s?\([^()\n]{0,200}\))?[*_`]{0,3}:")


def _find_prefixes(text: str) -> Iterator[tuple[int, int, int]]:
    for found in _prefix.finditer(text):
        yield found.start(), found.end(), int(found["image"])


def _name_marks(
    text: str, marks: list[CoordinateMark], prefixes: list[tuple[int, int, int]], images: int
) -> Iterator[tuple[CoordinateMark, str, int | None]]:
    """Yield each mark with its label and the number of its image, from 1."""
    starts = [start for start, _, _ in prefixes]
    end, words = 0, ""
    for mark in marks:
        last = bisect_right(starts, mark.start) - 1
        _, begin, image = prefixes[last] if last >= 0 else (0, 0, 1 if images == 1 else None)
        if mark.start >= end:  # otherwise it is in the same list as the last mark, and has its label
            words = "" if mark.label else _find_name(text[max(begin, end, mark.start - _REACH) : mark.start])
        label = (words if mark.label is None else mark.label).lstrip()
        if label[:1] in ("I", "i") and (own := _prefix.match(label)):
            image, label = int(own["image"]), label[own.end() :]
        yield mark, _tidy_label(label), image if mark.image is None else mark.image
        end = mark.end


_REACH, _MAX_LABEL = 300, 120
_sentence = re.compile(r"\n|[.!?;]\s|\*\*|`")
_ORNAMENT = " \t\r\n,:;=|*_`#>()[]{}-–—•\"'"


def _find_name(before: str) -> str:
    """Return the label in the text before coordinates: the sentence so far."""
    return _sentence.split(before.rstrip(_ORNAMENT))[-1].strip(_ORNAMENT)


def _tidy_label(label: str) -> str:
    tidy = " ".join(replace_surrogates(label).split())
    return tidy if len(tidy) <= _MAX_LABEL else "…" + tidy[1 - _MAX_LABEL :]


def _place_mark(
    form: GroundingFormat, bounds: _Bounds, mark: CoordinateMark, label: str, image: int | None, seen: Sequence[Size]
) -> SeenPlace:
    if image is None or not 1 <= image <= len(seen):
        return SeenPlace(None, label, mark.values, None, "no_image")
    size = seen[image - 1]
    values = mark.values if form.order == "xy" else _swap_axes(mark.values)
    flag = _check_bounds(form.scale, bounds, values, size)
    if flag == "misfit":
        return SeenPlace(image - 1, label, mark.values, None, flag)
    return SeenPlace(image - 1, label, mark.values, _to_pixels(values, form.scale, size), flag)


def _swap_axes(values: tuple[float, ...]) -> tuple[float, ...]:
    if len(values) == 2:
        return values[::-1]
    y1, x1, y2, x2 = values
    return x1, y1, x2, y2


def _to_pixels(values: tuple[float, ...], scale: float | None, size: Size) -> tuple[float, ...]:
    """Return values in pixels."""
    if scale is None:
        return values
    wide, high = size.width, size.height
    if len(values) == 2:
        return values[0] * wide / scale, values[1] * high / scale
    x1, y1, x2, y2 = values
    return x1 * wide / scale, y1 * high / scale, x2 * wide / scale, y2 * high / scale


def _to_fractions(values: tuple[float, ...], size: Size) -> tuple[float, ...]:
    """Return pixels as fractions of the image's sides."""
    wide, high = size.width, size.height
    if len(values) == 2:
        return values[0] / wide, values[1] / high
    x1, y1, x2, y2 = values
    return x1 / wide, y1 / high, x2 / wide, y2 / high


class _Bounds(NamedTuple):
    """The bounds of a format's values: in its own scale, or for pixels in sides of the image."""

    lowest: float
    top: float
    highest: float


def _compute_bounds(form: GroundingFormat) -> _Bounds:
    scale = form.scale or 1
    top = form.max_value or scale
    return _Bounds(-form.tolerance * scale, top, top + form.tolerance * scale)


def _check_bounds(scale: float | None, bounds: _Bounds, values: tuple[float, ...], size: Size) -> Flag:
    """Return whether the values are within the image, can be clamped to it, or do not fit."""
    written = _to_fractions(values, size) if scale is None else values
    low, high = min(written), max(written)
    lowest, top, highest = bounds
    if low < lowest or high > highest:
        return "misfit"
    return "" if low >= 0 and high <= top else "clamped"


def _flag_doubts(found: list[SeenPlace], form: GroundingFormat, seen: Sequence[Size]) -> list[SeenPlace]:
    """Flag places as doubtful if another one does not fit, and as misfits if integers were expected."""
    if form.is_integer and found and _has_only_fractions(found) and max(size.edge for size in seen) > 1:
        return [each._replace(coordinates=None, flag=each.flag or "misfit") for each in found]
    if not any(each.flag == "misfit" for each in found):
        return found
    return [
        SeenPlace(each.image, each.label, each.values, each.coordinates, "doubtful")
        if each.flag in ("", "clamped")
        else each
        for each in found
    ]


def _has_only_fractions(found: Sequence[SeenPlace]) -> bool:
    """Return whether all values are fractions of one. Points at 0, 0 or 1, 1 alone are not evidence of that."""
    small = all(0 <= value <= 1 for each in found for value in each.values)
    return small and any(len(each.values) == 4 or any(v % 1 for v in each.values) for each in found)


@value_class
class OriginalPlace:
    """A place that an answer mentions, in pixels of the original image."""

    image: int | None  # index of the image
    label: str
    values: tuple[float, ...]  # as the model wrote them
    coordinates: tuple[int, ...] | None  # x, y or x1, y1, x2, y2, corners sorted; None if unknown
    flag: Flag = ""

    def as_dict(self) -> dict[str, Json]:
        if self.coordinates is None:
            place: dict[str, Json] = {"values": [_to_json_number(value) for value in self.values]}
        else:
            place = {"box" if len(self.coordinates) == 4 else "point": list(self.coordinates)}
        return {"label": to_one_line(self.label), **place, **({"flag": self.flag} if self.flag else {})}


def build_view_map(original: Size, seen: Size, crop: Box | None = None) -> PixelMap:
    """Return the map from an image to what the model saw: the image or a crop of it, scaled."""
    if crop is None:
        return PixelMap.from_scaling(original, seen)
    return PixelMap.from_crop(original, crop).then(PixelMap.from_scaling(crop.size, seen))


def map_to_original(place: SeenPlace, view: PixelMap) -> OriginalPlace:
    """Map a place to the original image; `view` maps the original to what the model saw."""
    if place.coordinates is None:
        return OriginalPlace(place.image, place.label, place.values, None, place.flag)
    rect = _clamp_to_image(place.coordinates, view.result)
    source = _map_rect(rect, view)
    if source is None:
        return OriginalPlace(place.image, place.label, place.values, None, "left_out")
    left, top = _clamp(source.x, view.source.width), _clamp(source.y, view.source.height)
    if len(place.coordinates) == 2:
        return OriginalPlace(place.image, place.label, place.values, (left, top), place.flag)
    right = _clamp(source.x + source.width, view.source.width)
    bottom = _clamp(source.y + source.height, view.source.height)
    return OriginalPlace(place.image, place.label, place.values, (left, top, right, bottom), place.flag)


def build_boxes_block(image: str, size: Size, places: Iterable[OriginalPlace]) -> str:
    """Return the block of places behind a fence, or an empty string; `image` is the original's id, sha256:…"""
    rows = [json.dumps(each.as_dict(), ensure_ascii=False) for each in places]
    if not rows:
        return ""
    head = f'<vision_proxy_boxes image="{escape_attribute(image)}" width="{size.width}" height="{size.height}">'
    return "\n".join([head, "[" + ",\n".join(rows) + "]", "</vision_proxy_boxes>"])


def _clamp_to_image(at: tuple[float, ...], size: Size) -> Rect:
    xs = sorted(min(max(x, 0.0), size.width) for x in at[0::2])
    ys = sorted(min(max(y, 0.0), size.height) for y in at[1::2])
    return Rect(xs[0], ys[0], xs[-1] - xs[0], ys[-1] - ys[0])


def _map_rect(rect: Rect, view: PixelMap) -> Rect | None:
    """Return the rectangle around all parts of `rect` that come from the source; a line or point has one part."""
    parts = []
    for piece in view.pieces:
        if rect.width and rect.height:
            if part := rect.intersect(piece.result):
                parts.append(part.transform(piece.result, piece.source))
        elif piece.result.contains(rect.x, rect.y) and piece.result.contains(rect.x + rect.width, rect.y + rect.height):
            return rect.transform(piece.result, piece.source)
    if not parts:
        return None
    x, y = min(part.x for part in parts), min(part.y for part in parts)
    right, bottom = max(part.x + part.width for part in parts), max(part.y + part.height for part in parts)
    return Rect(x, y, right - x, bottom - y)


def _to_json_number(value: float) -> Json:
    if not math.isfinite(value):
        return None  # JSON has no infinity
    return int(value) if float(value).is_integer() else value


def _clamp(value: float, top: int) -> int:
    return min(max(round(value), 0), top)
