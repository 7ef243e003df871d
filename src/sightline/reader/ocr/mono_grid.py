"""The columns and rows of monospaced text: where each letter of a program or a terminal has its place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sightline.reader.ocr.line_image import measure_contrast
from sightline.reader.reading import Pixels

Floats = NDArray[np.float32]

_LINES = 3  # lines of a grid, at least
_SAME_PITCH, _SAME_PHASE = 0.03, 0.2  # shares of the width of a column by which lines of one grid may differ
_INEXACT, _SHORT = 0.3, 8  # columns by which the length of a line may be wrong, and columns of a short one
_FINE, _FINE_STEPS = 0.012, 49  # share by which a width may be refined, and how many are tried
_BETTER = 1.02  # times as well as the first one such a width must fit
_LONGEST, _MOST_STROKES = 12, 120  # lines, and strokes of each, that tell it
_DIGITS = 6  # of a width in pixels: further ones differ between processors, and 12.000000000000002 would take 13 pixels
_ASIDE = 8  # columns: how far before the others of its grid a line may begin
_FAR = 12  # heights: how far a line may be from the others of its grid
_FLAT = "acemnorsuvwxziklhdbtfEFHIKLMNTXYZ1247"  # letters that end at the line on which they are written
_TALL = "hkldbfEFHIKLMNTXYZ1247"  # and those that are as high as capitals
_SMALL = "acemnorsuvwxz"  # and those that are as high as an x
_X_HEIGHT = 0.73  # share of the height of a capital that it has where none of them was read
_TELLING = 3  # such letters that tell it alone: one may have been read wrongly
_NEAREST = 5  # lines that tell it for others
_FAINT = 24  # shades: a weaker contrast is none


@dataclass(frozen=True, slots=True)
class MonoLine:
    """Letters of a line of monospaced text, where they are, and how certain the line is."""

    texts: tuple[str, ...]
    centres: tuple[float, ...]
    span: tuple[float, float]  # where its ink begins and ends
    rows: tuple[float, float]  # the same from top to bottom
    certain: tuple[float, ...]  # how certain each letter is
    pitch: float | None = None  # the width of a column; None if it is unknown
    inked: tuple[float, ...] = ()  # the middles of its strokes that are no wider than a letter


@dataclass(frozen=True, slots=True)
class LineStrip:
    """The contrast of a line with its background, and where that piece of the image begins."""

    shades: Floats  # 0 to 1
    left: int
    top: int


@dataclass(frozen=True, slots=True)
class MonoGrid:
    """Lines in the same columns."""

    pitch: float
    phase: float  # where a column begins
    bases: dict[int, int]  # one past the last row of letters without a descender, of the lines that have any
    capital: int  # the height of a capital
    small: float  # the height of an x
    step: float  # from one line to the next
    span: tuple[float, float]  # where its first line begins and its last one ends


def cut_strip(pixels: Pixels, line: MonoLine) -> LineStrip:
    """Return a line with what is around it; its contrast is relative to the strongest one."""
    high, wide = line.rows[1] - line.rows[0], line.pitch or line.rows[1] - line.rows[0]
    top, left = max(0, math.floor(line.rows[0] - high)), max(0, math.floor(line.span[0] - wide))
    part = pixels[top : math.ceil(line.rows[1] + high), left : math.ceil(line.span[1] + wide)]
    contrast = measure_contrast(part).astype(np.float32)
    inner = contrast[round(line.rows[0]) - top : round(line.rows[1]) - top]
    strong = float(np.percentile(inner, 98)) if inner.size else 0.0
    return LineStrip(contrast / max(_FAINT, strong), left, top)


def find_grids(lines: Sequence[MonoLine], strips: Mapping[int, LineStrip]) -> Iterator[MonoGrid]:
    groups: list[list[int]] = []
    longest: list[MonoLine] = []  # of each group
    for at in sorted((at for at, line in enumerate(lines) if line.pitch), key=lambda at: lines[at].rows):
        line = lines[at]
        near = (each for each, group in enumerate(groups) if _is_near(lines[group[-1]], line))
        home = next((each for each in near if _is_as_wide(longest[each], line)), None)
        if home is None:
            groups.append([at])
            longest.append(line)
        else:
            groups[home].append(at)
            longest[home] = max(longest[home], line, key=lambda each: len(each.texts))
    for group in groups:
        long = [at for at in group if len(lines[at].texts) > 1]
        if len(long) >= _LINES:
            yield from _split_by_phase(lines, strips, group, _fit_pitch([lines[at] for at in long]))


def _is_near(last: MonoLine, line: MonoLine) -> bool:
    return line.rows[0] - last.rows[1] <= _FAR * (last.rows[1] - last.rows[0])


def _is_as_wide(one: MonoLine, other: MonoLine) -> bool:
    slack = _SAME_PITCH + _INEXACT / max(_SHORT, min(len(one.texts), len(other.texts)))
    return bool(one.pitch and other.pitch and abs(one.pitch / other.pitch - 1) <= slack)


def _number_columns(line: MonoLine, pitch: float) -> list[int]:
    """Return the column of each letter, counted from the first."""
    places = [0]
    for before, after in pairwise(line.centres):
        places.append(places[-1] + round((after - before) / pitch))
    return places


def _fit_pitch(lines: Sequence[MonoLine]) -> float:
    """Return the width of a column by the longest lines, to a fraction of a pixel: an error adds up along a line."""
    long = sorted(lines, key=lambda each: each.centres[0] - each.centres[-1])[: max(_LINES, len(lines) // 2)]
    usual = median(line.pitch for line in long if line.pitch)
    fitted = []
    for line in long:
        places = np.array(_number_columns(line, usual))
        if places[-1]:
            fitted.append(float(np.polyfit(places, line.centres, 1)[0]))
    near = [each for each in fitted if abs(each / usual - 1) <= _SAME_PITCH]
    return round(_refine_pitch(lines, median(near) if near else usual), _DIGITS)


def _refine_pitch(lines: Sequence[MonoLine], pitch: float) -> float:
    """Return the width of a column near this one whose columns the strokes of the longest lines fit best."""
    own = [line for line in lines if line.pitch and abs(line.pitch / pitch - 1) <= _SAME_PITCH]
    long = sorted(own, key=lambda each: -len(each.inked))[:_LONGEST]
    steps = np.linspace(1 - _FINE, 1 + _FINE, _FINE_STEPS)
    fit = np.zeros(len(steps))
    for line in long:
        middles = np.array(line.inked[:_MOST_STROKES])
        if len(middles) >= _SHORT:
            turns = np.exp(2j * np.pi * np.outer(1 / (pitch * steps), middles - middles.mean()))
            fit += np.abs(turns.sum(1))
    clear = fit.max() >= _BETTER * fit[_FINE_STEPS // 2] and fit.any()
    return pitch * float(steps[int(fit.argmax())]) if clear else pitch


def _split_by_phase(
    lines: Sequence[MonoLine], strips: Mapping[int, LineStrip], group: Sequence[int], pitch: float
) -> Iterator[MonoGrid]:
    """Yield the lines of a group whose columns begin at the same places."""
    homes: list[tuple[float, list[int]]] = []
    for at in group:
        phase = _find_phase(lines[at], pitch)
        home = next((each for each in homes if _measure_turn(each[0], phase, pitch) <= _SAME_PHASE * pitch), None)
        if home is None:
            homes.append((phase, [at]))
        else:
            home[1].append(at)
    for phase, own in homes:
        turns = [(_find_phase(lines[at], pitch) - phase + pitch / 2) % pitch for at in own]
        usual = phase - pitch / 2 + median(turns)
        if len(own) >= _LINES and (grid := _make_grid(lines, strips, pitch, usual, own)):
            yield grid


def _find_phase(line: MonoLine, pitch: float) -> float:
    """Return where a column of a line begins, between 0 and the width of one.

    Strokes tell it, whatever the network read there: where it lost a letter, the places of others are wrong.
    """
    middles = np.array(line.inked or line.centres)
    turns = np.exp(2j * np.pi * middles / pitch)
    usual = float(np.angle(turns.mean())) / (2 * np.pi) * pitch
    apart = (middles - usual + pitch / 2) % pitch - pitch / 2
    return (usual + float(np.median(apart)) - pitch / 2) % pitch


def _measure_turn(one: float, other: float, pitch: float) -> float:
    apart = abs(one - other) % pitch
    return min(apart, pitch - apart)


def _make_grid(
    lines: Sequence[MonoLine], strips: Mapping[int, LineStrip], pitch: float, phase: float, own: Sequence[int]
) -> MonoGrid | None:
    bases, highs, smalls, few = dict[int, int](), list[int](), list[int](), list[int]()
    for at in own:
        ends = [_find_rows(strips[at], lines[at], place, pitch) for place in range(len(lines[at].texts))]
        named = [(text, end) for text, end in zip(lines[at].texts, ends, strict=True) if end and text in _FLAT]
        if named:
            bases[at] = round(median(end[1] for _, end in named))
            highs += [bases[at] - end[0] for text, end in named if text in _TALL]
            smalls += [bases[at] - end[0] for text, end in named if text in _SMALL]
            few += [at] if len(named) < _TELLING else []
    if len(bases) < _LINES or not highs:
        return None
    capital = round(median(highs))
    small = median(smalls) if smalls else _X_HEIGHT * capital
    steps = [below - above for above, below in pairwise(sorted(bases.values())) if below - above > capital]
    step = median([each for each in steps if each <= 1.5 * min(steps)]) if steps else 0
    starts, ends_of_lines = zip(*(lines[at].span for at in own), strict=True)
    grid = MonoGrid(pitch, phase, bases, capital, small, step, (min(starts), max(ends_of_lines)))
    known = replace(grid, bases={at: base for at, base in bases.items() if at not in few})
    if len(known.bases) < _LINES:
        return grid
    return replace(grid, bases=bases | {at: predict_base(known, lines[at]) or bases[at] for at in few})


def _find_rows(strip: LineStrip, line: MonoLine, place: int, pitch: float) -> tuple[int, int] | None:
    """Return the first row of a letter and one past its last."""
    left, right = (round(line.centres[place] + side * 0.4 * pitch) - strip.left for side in (-1, 1))
    top, bottom = round(line.rows[0]) - strip.top, round(line.rows[1]) - strip.top
    inked = np.flatnonzero((strip.shades[top:bottom, max(0, left) : right] > 0.5).any(1))
    return (strip.top + top + int(inked[0]), strip.top + top + int(inked[-1]) + 1) if len(inked) else None


def predict_base(grid: MonoGrid, line: MonoLine) -> int | None:
    """Return where the letters of a line end that lie a whole number of rows away from the others; None elsewhere."""
    middle, high = (line.rows[0] + line.rows[1]) / 2 + grid.capital / 2, line.rows[1] - line.rows[0]
    near = sorted(grid.bases.values(), key=lambda base: abs(base - middle))[:_NEAREST]
    beside = not grid.span[0] - _ASIDE * grid.pitch <= line.span[0] <= grid.span[1]
    if line.pitch and _measure_turn(_find_phase(line, grid.pitch), grid.phase, grid.pitch) > _SAME_PHASE * grid.pitch:
        return None
    if not grid.step or abs(near[0] - middle) > _FAR * grid.step or high > 2 * grid.step or beside:
        return None
    return round(median(base + grid.step * round((middle - base) / grid.step) for base in near))
