"""Readers for the notations in which models write coordinates. A reader finds numbers; it does not interpret them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple


class CoordinateMark(NamedTuple):
    """Two or four numbers in a text, in the order of the text."""

    start: int
    end: int
    values: tuple[float, ...]
    label: str | None = None  # None: the text before it is the label
    image: int | None = None  # from 1, if the notation has a number for the image


MarkReader = Callable[[str], Iterator[CoordinateMark]]

_N = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_STRING = r"""(?:"[^"\\\n]*(?:\\.[^"\\\n]*)*"|'[^'\\\n]*(?:\\.[^'\\\n]*)*')"""
_numbers = re.compile(_N).findall
_BRACKETS = "[]() \t\r\n"


def _parse_groups(written: str, size: int = 4) -> list[tuple[float, ...]]:
    """Parse numbers into a point if there are two, else into boxes; return none if their count does not fit."""
    values = _parse_list(written.strip(_BRACKETS))
    return _split_groups(tuple(map(float, _numbers(written))) if values is None else values, size)


def _parse_list(written: str) -> tuple[float, ...] | None:
    """Parse numbers separated by commas, the usual case; return None if they are not."""
    try:
        return tuple(map(float, written.split(",")))
    except ValueError:
        return None


def _split_groups(values: tuple[float, ...], size: int = 4) -> list[tuple[float, ...]]:
    count = len(values)
    if count in (2, size):
        return [values]
    return [values[at : at + size] for at in range(0, count, size)] if count % size == 0 else []


# [x1, y1, x2, y2] in running text, and [x, y] or (x, y) for families that write points like that.
_LIST = r"([\s0-9.,+-]{1,2000}+)"  # no four numbers are longer
_box = re.compile(rf"\[{_LIST}\]").match
_point = re.compile(rf"[\[(]{_LIST}[\])]").match


def read_inline_boxes(text: str) -> Iterator[CoordinateMark]:
    return _read_brackets(text, "[", _box, 4)


def read_inline_points(text: str) -> Iterator[CoordinateMark]:
    yield from _read_brackets(text, "[", _point, 2)
    yield from _read_brackets(text, "(", _point, 2)


def _read_brackets(
    text: str, bracket: str, match: Callable[[str, int], re.Match[str] | None], size: int
) -> Iterator[CoordinateMark]:
    """Read lists in brackets. In a long text, finding a bracket is much faster than searching for a pattern."""
    start = text.find(bracket)
    while start >= 0:
        found = match(text, start)
        end = found.end() if found else start + 1
        values = _parse_list(found[1]) if found else None
        if values is not None and len(values) == size:
            yield CoordinateMark(start, end, values)
        start = text.find(bracket, end)


# "bbox_2d": [x1, y1, x2, y2], "label": "…" and the like. It is read from the key on and not as a JSON document, so that
# a truncated answer, or JSON in running text, loses at most its last box.
_KEYS = "bbox_2d|box_2d|bounding_box|bbox|box|point_2d|point|coordinate"
# The search is for the first letter only, which is much faster than for words that may begin anywhere.
_keyed = re.compile(
    r"[bpc](?<!\w[bpc])(?:(?P<box>(?<=b)(?:box_2d|ox_2d|ounding_box|box|ox))|(?<=p)oint(?:_2d)?|(?<=c)oordinate)"
    r"""["'`]?\s*[:=]\s*(?P<values>\[[\[\]\s0-9.,+-]*\])"""
    # Nearly always the label comes next and ends its object; then nothing else has to be searched.
    rf"""(?:\s*,\s*["'](?:label|name|text)["']\s*:\s*(?P<label>{_STRING})(?=\s*\}}))?"""
)
_more = re.compile(
    rf"""(?:\s*,\s*(?!["'](?:{_KEYS})["']){_STRING}\s*:\s*(?:{_STRING}|\[[^\[\]{{}}"]*\]|[^\s"'{{}}\[\],]+))*"""
)
_label = re.compile(rf"""["'](?:label|name|text)["']\s*:\s*(?P<label>{_STRING})""")


_QUOTES = ('"', "'", "`")


def read_json_keys(text: str) -> Iterator[CoordinateMark]:
    end = 0
    for found in _keyed.finditer(text):
        start, after = found.span()
        start -= text[start - 1 : start] in _QUOTES
        box, written, label = found.groups()
        if label is None:
            pairs = _more.match(text, after)
            other = _label.search(text, after, pairs.end()) if pairs else None
            after = pairs.end() if pairs else after
            if (
                other is None
                and (before := _find_last_label(text, end, start))
                and not _crosses_object(text, before.end(), start)
            ):
                start, other = before.start(), before
            label = other["label"] if other else '""'
        name = _unquote(label)
        for values in _parse_groups(written, 4 if box else 2):
            yield CoordinateMark(start, after, values, name)
        end = after


def _find_last_label(text: str, start: int, end: int) -> re.Match[str] | None:
    return max(_label.finditer(text, start, end), key=lambda found: found.start(), default=None)


def _crosses_object(text: str, start: int, end: int) -> bool:
    """Return whether a JSON object begins or ends between two positions."""
    return any(bracket in text[start:end] for bracket in "{}")


def _unquote(string: str) -> str:
    if "\\" not in string:
        return string[1:-1]
    try:
        return str(json.loads(string))
    except ValueError:
        return string[1:-1]


# {"x_min": 0.1, "y_min": …}, {"x": 0.5, "y": 0.5}
_object = re.compile(r"\{[^{}]*+\}").match
_side = re.compile(rf"""["']([xy](?:_m(?:in|ax))?)["']\s*:\s*({_N})""")
_CORNERS = ("x_min", "y_min", "x_max", "y_max")
# Nearly always they are in this order, with nothing but a label before or after them.
_named_so = r""""(?:label|name|text)"\s*+:\s*+("[^"\\\n]*+")"""
_in_order = re.compile(
    rf"""\{{\s*+(?:{_named_so}\s*+,\s*+)?"""
    + r"\s*+,\s*+".join(rf'"{name}"\s*+:\s*+([0-9.]++)' for name in _CORNERS)
    + rf"""\s*+(?:,\s*+{_named_so}\s*+)?\}}"""
).match
_PLACES = [(names, frozenset(names)) for names in (_CORNERS, ("x", "y"))]


_Named = tuple[tuple[float, ...], str]
"""Two or four sides, and their label in quotes."""


def read_named_sides(text: str) -> Iterator[CoordinateMark]:
    if not _side.search(text):
        return
    start = text.find("{")
    while start >= 0:
        found = _in_order(text, start) or _object(text, start)
        if found is None:
            start = text.find("{", start + 1)
            continue
        values, label = _read_in_order(*found.groups()) if found.re.groups else ((), '""')
        if not values:
            values, label = _read_any_order(found[0])
        if values:
            yield CoordinateMark(start, found.end(), values, _unquote(label))
        start = text.find("{", found.end())


def _read_in_order(before: str | None, x1: str, y1: str, x2: str, y2: str, behind: str | None) -> _Named:
    return _parse_list(f"{x1},{y1},{x2},{y2}") or (), before or behind or '""'


def _read_any_order(written: str) -> _Named:
    sides = {name: float(number) for name, number in _side.findall(written)}
    names = next((names for names, each in _PLACES if sides.keys() >= each), ())
    label = _label.search(written) if names else None
    return tuple(sides[name] for name in names), label["label"] if label else '""'


# <ref>label</ref><box>[[…]]</box>, <|object_ref_start|>…<|box_start|>(x1,y1),(x2,y2)<|box_end|>, <|det|>…, and
# <|begin_of_box|>…, which may also contain a plain answer: without brackets it is not a box.
_tagged = re.compile(  # it begins with a single letter, which is faster to search for
    r"<(?:(?:ref>|\|ref\|>|\|object_ref_start\|>)(?P<label>[^<]*)(?:</ref>|<\|/ref\|>|<\|object_ref_end\|>)\s*<)?"
    r"(?:box>|\|det\|>|\|box_start\|>|\|begin_of_box\|>)(?P<values>\s*[\[(][\[\]()\s0-9.,;+-]*)"
    r"(?:(?P<end></box>|<\|/det\|>|<\|box_end\|>|<\|end_of_box\|>)|\Z)"
)


def read_box_tags(text: str) -> Iterator[CoordinateMark]:
    for found in _tagged.finditer(text):
        start, end = found.span()
        label, written, closed = found.groups()
        whole = written if closed else written[: written.rfind("]") + 1]  # truncated: the last box is incomplete
        for values in _parse_groups(whole):
            yield CoordinateMark(start, end, values, label)


# click(start_box='(197,525)'), drag(…, end_box='…'), point='<point>197 525</point>', <point>197 525</point>
_acted = re.compile(
    r"(?P<key>start_box|end_box|start_point|end_point|point)\s*=\s*(?P<quote>['\"])(?P<values>[^'\"\n]*)(?P=quote)"
    rf"|<point>\s*(?P<x>{_N})[\s,]+(?P<y>{_N})\s*</point>"
)
_ACT = "abcdefghijklmnopqrstuvwxyz_"  # the letters of an action's name
_MAX_ACTION_LENGTH = 40


def read_actions(text: str) -> Iterator[CoordinateMark]:
    if "=" not in text and "<" not in text:
        return
    for found in _acted.finditer(text):
        start, end = found.span()
        key, _, written, x, y = found.groups()
        if key is None:
            yield CoordinateMark(start, end, (float(x), float(y)))
            continue
        act = _find_action(text[max(0, start - _MAX_ACTION_LENGTH) : start])
        for values in _parse_groups(written):
            yield CoordinateMark(start, end, values, act or key)


def _find_action(before: str) -> str:
    """Return the name of the action if its first argument comes next, else an empty string."""
    head = before.rstrip()
    if not head.endswith("("):
        return ""
    return head[len(head[:-1].rstrip(_ACT)) : -1]


# <point x="10.0" y="83.8" alt="…">, <points x1= y1= x2= y2=>, <points coords="1 1 308 305 2 752 377">, <tracks …>
_pointed = re.compile(
    r"<(?:points?|tracks?)(?P<attributes>(?:\s++\w++\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'))++)\s*+/?>"
    r"(?:(?P<label>[^<]*+)</(?:points?|tracks?)>)?"
)
_attribute = re.compile(r"(\w++)\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)')").findall
_number = re.compile(rf"\s*{_N}\s*").fullmatch


_separated = re.compile(r"[;:,\t]").split
_plain = re.compile(r"(?: *+[0-9]++(?:\.[0-9]*+)?(?= |\Z))* *").fullmatch


def read_point_tags(text: str) -> Iterator[CoordinateMark]:
    for found in _pointed.finditer(text):
        start, end = found.span()
        written, inner = found.groups()
        attributes = {name: one or other for name, one, other in _attribute(written)}
        label = attributes.get("alt") or attributes.get("label") or inner or ""
        for values in _read_attributes(attributes):
            yield CoordinateMark(start, end, values, label)
        if coords := attributes.get("coords"):
            for image, values in _read_coords(coords):
                yield CoordinateMark(start, end, values, label, image)


def _read_attributes(attributes: dict[str, str]) -> list[tuple[float, ...]]:
    named = [(attributes[name], attributes.get("y" + name[1:], "")) for name in attributes if name[0] == "x"]
    return [(float(x), float(y)) for x, y in named if _number(x) and _number(y)]


def _read_coords(coords: str) -> Iterator[tuple[int | None, tuple[float, ...]]]:
    """Yield points from groups of an image's number and then, for each point, its number, x and y.

    Numbers may have any length: they are not always padded with zeros.
    """
    for group in _separated(coords):
        written = group.split()
        numbers = list(map(float, written if _plain(group) else filter(_number, written)))
        image = None if len(numbers) % 3 == 0 else int(min(numbers[0], 1e6))
        points = numbers if image is None else numbers[1:]
        for at in range(0, len(points) - 2, 3):
            yield image, (points[at + 1], points[at + 2])


# label<loc_1><loc_2><loc_3><loc_4>: boxes, or the four corners of a line of text
_located = re.compile(r"(?:<loc_[0-9]+>)+")


def read_loc_tokens(text: str) -> Iterator[CoordinateMark]:
    for found in _located.finditer(text):
        boxes = _split_groups(tuple(map(float, found[0][5:-1].split("><loc_"))))
        if len(boxes) == 2 and boxes[1][0] > boxes[1][2]:  # the four corners of a line of text, not two boxes
            values = boxes[0] + boxes[1]
            xs, ys = values[0::2], values[1::2]
            boxes = [(min(xs), min(ys), max(xs), max(ys))]
        for box in boxes:
            yield CoordinateMark(*found.span(), box)


# <loc0012><loc0034><loc0512><loc0640> label ; …
_binned = re.compile(r"(?P<values>(?:<loc[0-9]{4}>){4})(?:<seg[0-9]{3}>)*(?P<label>[^<;\n]*)")


def read_bin_tokens(text: str) -> Iterator[CoordinateMark]:
    for found in _binned.finditer(text):
        start, end = found.span()
        written, label = found.groups()
        yield CoordinateMark(start, end, tuple(map(float, written[4:-1].split("><loc"))), label)


# <phrase>…</phrase><object><patch_index_0044><patch_index_0863></object>: cells of a grid of 32 by 32
_patched = re.compile(
    r"(?:<phrase>(?P<label>[^<]*)</phrase>\s*)?"
    r"<object>(?P<values>(?:<patch_index_[0-9]+>|</delimiter_of_multi_objects/>)*)</object>"
)
_cells = re.compile(r"[0-9]+").findall
_GRID = 32


def read_patch_tokens(text: str) -> Iterator[CoordinateMark]:
    """Read cells of a grid as fractions of the image: the only notation whose numbers are not coordinates."""
    for found in _patched.finditer(text):
        start, end = found.span()
        label, written = found.groups()
        cells = [int(min(float(number), 1e6)) for number in _cells(written)]
        for first, last in zip(cells[0::2], cells[1::2], strict=False):
            yield CoordinateMark(start, end, _cells_to_box(first, last), label)


def _cells_to_box(first: int, last: int) -> tuple[float, ...]:
    (top, left), (bottom, right) = divmod(first, _GRID), divmod(last, _GRID)
    if left == right or top == bottom:
        return left / _GRID, top / _GRID, (right + 1) / _GRID, (bottom + 1) / _GRID
    return (left + 0.5) / _GRID, (top + 0.5) / _GRID, (right + 0.5) / _GRID, (bottom + 0.5) / _GRID


READERS: Mapping[str, MarkReader] = {
    "actions": read_actions,
    "bin_tokens": read_bin_tokens,
    "box_tags": read_box_tags,
    "inline_boxes": read_inline_boxes,
    "inline_points": read_inline_points,
    "json_keys": read_json_keys,
    "loc_tokens": read_loc_tokens,
    "named_sides": read_named_sides,
    "patch_tokens": read_patch_tokens,
    "point_tags": read_point_tags,
}
