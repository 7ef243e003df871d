"""Lines as the labels of a chart: numbers read as one line are several, and a swatch before a name is no letter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from sightline.model.geometry import Box
from sightline.seers.local.amounts import number
from sightline.seers.local.axes import Text
from sightline.seers.local.boxes import inside, union
from sightline.seers.local.colours import apart, commonest, cut
from sightline.seers.local.regions import Pixels
from sightline.seers.local.seen import Line

INKED = 60  # so far from the ground is ink, in the channel that differs most
WIDE, WIDER = 0.6, 1.2  # heights of a line: the least blank between two labels, and where it could mark thousands
_SWATCH = re.compile(r"^[●•■▪◼▲◆○□—–\-_~]+\s*(?=\w)")
APART = 0.8  # heights of a line: a blank between two names
CLOSE = 0.3  # heights of a line: a minus is nearer to its number, other dashes are not
LOW = 6  # pixels: a line that is lower is no line of letters
_SIGNED = re.compile(r"\d[\d.,]*[%kKM]")
_TICK = re.compile(r"(?<=[\w%‰$€£¥°)])\s*[-–—_|]+$")


def labels(pixels: Pixels, lines: Sequence[Line]) -> tuple[Text, ...]:
    return tuple(text for place, line in enumerate(lines) for text in _labels(pixels, place, line))


def _labels(pixels: Pixels, place: int, line: Line) -> Iterator[Text]:
    words, blank = _numbers(line.text)
    if words:
        boxes = _pieces(pixels, line.box, len(words), blank) if blank else _shares(line.box, words)
        if boxes:
            yield from (Text(place, word, box, number(word)) for word, box in zip(words, boxes, strict=True))
            return
    bare = _TICK.sub("", line.text)
    if (value := number(bare)) is not None:
        yield Text(place, bare, _unticked(pixels, line.box), value, value > 0 and dashed(pixels, line.box))
        return
    bare = _TICK.sub("", _SWATCH.sub("", line.text))
    box = line.box
    if _SWATCH.match(line.text):
        spans = _spans(pixels, box)
        if len(spans) > 1 and spans[0][1] - spans[0][0] <= 3 * box.height:
            box = Box(spans[1][0], box.y, box.right - spans[1][0], box.height)
        yield Text(place, bare, box, None)
        return
    yield from (Text(place, name, box, None) for name, box in _names(pixels, bare, box))


def signed(pixels: Pixels, lines: Iterable[Line], plots: Sequence[Box]) -> tuple[Line, ...]:
    """Lines beside charts, and with each number the minus before it that the reader lost; it is not sure then."""
    return tuple(
        replace(line, text=f"-{line.text}", box=_with_minus(line.box), least=0.0)
        if (number(line.text) or 0) > 0 and line.text[:1].isdigit() and dashed(pixels, line.box, CLOSE)
        and not any(inside(line.box, plot) for plot in plots)
        else line
        for line in lines
    )  # fmt: skip


def _with_minus(box: Box) -> Box:
    left = max(0, box.x - round(0.7 * box.height))
    return Box(left, box.y, box.right - left, box.height)


def dashed(pixels: Pixels, box: Box, near: float = 0.5) -> bool:
    """Whether a dash stands right before a number: a minus that the reader lost, or a mark of an axis."""
    wide = round(1.2 * box.height)
    part = cut(pixels, Box(max(0, box.x - wide), box.y, min(wide, box.x), box.height))
    if not part.size or box.height < LOW:
        return False
    inked = apart(part, commonest(part.reshape(-1, 3))) > INKED
    rows, columns = np.flatnonzero(inked.any(axis=1)), np.flatnonzero(inked.any(axis=0))
    if not len(rows):
        return False
    low = rows[-1] - rows[0] < max(LOW / 2, 0.25 * box.height) and 0.3 <= rows.mean() / box.height <= 0.8
    length = columns[-1] - columns[0] + 1
    return bool(low and 0.2 <= length / box.height <= 0.9 and part.shape[1] - columns[-1] - 1 <= near * box.height)


def _names(pixels: Pixels, text: str, box: Box) -> list[tuple[str, Box]]:
    """The names that one line is read as: the blank between two of them is wider than one between words."""
    words = text.split()
    found: list[tuple[str, Box]] = []
    for word, place in zip(words, _pieces(pixels, box, len(words), 0.0), strict=False):
        if found and place.x - found[-1][1].right < APART * box.height:
            name, left = found[-1]
            found[-1] = f"{name} {word}", union([left, place])
        else:
            found.append((word, place))
    return found if len(found) > 1 else [(text, box)]


def _numbers(text: str) -> tuple[list[str], float]:
    """The numbers that one line is read as, and the blank that must part them; no blank: they touch."""
    words = text.split()
    if len(words) > 1 and all(number(word) is not None for word in words):
        return words, WIDE if number(text) is None else WIDER
    run = [match[0] for match in _SIGNED.finditer(text)] if number(text) is None else []
    signed = len(run) > 2 and "".join(run) == text and len({each[-1] for each in run}) == 1
    return (run, 0.0) if signed else ([], 0.0)


def _shares(box: Box, words: Sequence[str]) -> list[Box]:
    """The room of a line, parted among its words by their letters."""
    each = box.width / sum(map(len, words))
    ends = [round(each * sum(map(len, words[:count]))) for count in range(len(words) + 1)]
    return [Box(box.x + start, box.y, end - start, box.height) for start, end in pairwise(ends)]


def _unticked(pixels: Pixels, box: Box) -> Box:
    """Without the mark of the axis behind a number: ink in its last columns that is no higher than a line."""
    part = cut(pixels, box)
    spans = _spans(pixels, box)
    if len(spans) < 2 or box.height < LOW:
        return box
    last = part[:, spans[-1][0] - box.x : spans[-1][1] - box.x]
    rows = np.flatnonzero((apart(last, commonest(part.reshape(-1, 3))) > INKED).any(axis=1))
    thin = rows[-1] - rows[0] < LOW / 2 and abs(rows.mean() + 0.5 - box.height / 2) <= box.height / 4
    return Box(box.x, box.y, spans[-2][1] - box.x, box.height) if thin else box


def _pieces(pixels: Pixels, box: Box, count: int, blank: float) -> list[Box]:
    """The boxes of so many labels, parted where the blank is widest; none where it is not wide enough."""
    spans = _spans(pixels, box)
    gaps = sorted(range(1, len(spans)), key=lambda place: spans[place - 1][1] - spans[place][0])[: count - 1]
    if len(gaps) < max(count - 1, 1) or any(spans[gap][0] - spans[gap - 1][1] < blank * box.height for gap in gaps):
        return []
    edges = [0, *sorted(gaps), len(spans)]
    parts = [(spans[start][0], spans[end - 1][1]) for start, end in pairwise(edges)]
    return [Box(left, box.y, right - left, box.height) for left, right in parts]


def _spans(pixels: Pixels, box: Box) -> list[tuple[int, int]]:
    """Where there is ink in a line, from left to right."""
    part = cut(pixels, box)
    if not part.size:
        return []
    inked = np.flatnonzero((apart(part, commonest(part.reshape(-1, 3))) > INKED).any(axis=0))
    groups = np.split(inked, np.flatnonzero(np.diff(inked) > 1) + 1) if len(inked) else []
    return [(box.x + int(group[0]), box.x + int(group[-1]) + 1) for group in groups]
