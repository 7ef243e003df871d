"""Read monospaced text by the shapes of its letters, where the network lost or confused some.

Each letter of a program or a terminal has a column of its own. Letters that were read with certainty show what each
looks like on this page. Ink in a column without a letter, or with one that looks otherwise, is compared with them.
A column that looks like none of them is left as it was read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from sightline.reader.ocr.line_image import measure_contrast
from sightline.reader.reading import Pixels

Floats = NDArray[np.float32]

_LINES = 3  # lines of a grid, at least
_SAME_PITCH, _SAME_PHASE = 0.03, 0.2  # shares of the width of a column by which lines of one grid may differ
_FAR = 12  # heights: how far a line may be from the others of its grid
_SURE, _LIKELY = 0.98, 0.9  # how certain a letter is that shows its shape, alone or where several agree
_FLAT = "acemnorsuvwxziklhdbtfEFHIKLMNTXYZ1247"  # letters that end at the line on which they are written
_TALL = "hkldbfEFHIKLMNTXYZ1247"  # and those that are as high as capitals
_ABOVE, _BELOW = 1.3, 0.45  # heights of a capital: what belongs to a line above and below that line
_PIXELS = 10  # the width of a column in pixels, about, when shapes are compared
_SHADE = 0.3  # share of the strongest contrast of a line that is ink
_FAINT = 24  # shades: a weaker contrast is none
_CORE = 0.16  # share of a column at each side where ink may be that of a neighbour
_ALIKE, _CLEAR = 0.94, 0.03  # similarity of two shapes that are the same letter, and how much less all others are
_OTHER, _UNLIKE = 0.97, 0.08  # the same where the network read another letter, and how much less alike that one is
_UNFIT = 0.65  # a letter that is less alike than this is not the one that was read
_DOUBTFUL = 0.6  # a letter that was read with less certainty need not have been seen elsewhere
_AKIN, _EQUAL = 0.8, 0.97  # similarity of shapes that show one letter, and of those of which one is enough
_LAST = "\u024f"  # the last Latin letter; signs after it may be drawings
_TWINS = {"0": "O", "O": "0", "1": "l", "l": "1", "I": "l1", "5": "S", "S": "5", "8": "B", "B": "8", "2": "Z", "Z": "2"}
UNREAD, _MISSING = "?", 0.05  # stands for a letter that could not be read, and the share of such letters, at most
_SAMPLES = 16  # shapes of one letter that are compared, at most
_STILL = 4  # the index of the shape that is not moved
_RUN, _AGREED = 6, 0.9  # columns of one shape that need no other to compare with, and share of letters read alike


@dataclass(frozen=True, slots=True)
class MonoLine:
    """Letters of a line of monospaced text, where they are, and how certain the line is."""

    texts: tuple[str, ...]
    centres: tuple[float, ...]
    span: tuple[float, float]  # where its ink begins and ends
    rows: tuple[float, float]  # the same from top to bottom
    certain: tuple[float, ...]  # how certain each letter is
    pitch: float | None = None  # the width of a column; None if it is unknown


@dataclass(frozen=True, slots=True)
class ShapedLetter:
    """A letter at a place, and whether the network read it, or how alike the shape is that it has."""

    text: str
    centre: float
    likeness: float
    spaced: bool  # whether a blank column is before it
    source: int | None = None  # index of the letter that the network read there


@dataclass(frozen=True, slots=True)
class _Strip:
    """The contrast of a line with its background, and where that piece of the image begins."""

    shades: Floats  # 0 to 1
    left: int
    top: int


@dataclass(frozen=True, slots=True)
class _Grid:
    """Lines in the same columns."""

    pitch: float
    phase: float  # where a column begins
    bases: dict[int, int]  # one past the last row of letters without a descender, of the lines that have any
    capital: int  # the height of a capital
    step: float  # from one line to the next


def read_by_shape(pixels: Pixels, lines: Sequence[MonoLine]) -> dict[int, list[ShapedLetter]]:
    """Return the letters of lines that read otherwise by the shapes of their letters, by index.

    Lines without a pitch are those that could not be read.
    """
    found: dict[int, list[ShapedLetter]] = {}
    strips = {at: _cut_strip(pixels, line) for at, line in enumerate(lines)}
    for grid in _find_grids(lines, strips):
        cells = {at: _cut_cells(grid, strips[at], lines[at], base) for at, base in grid.bases.items()}
        unread = [at for at, line in enumerate(lines) if line.pitch is None and at not in found]
        bases = {at: _predict_base(grid, lines[at]) for at in unread}
        cells |= {at: _cut_cells(grid, strips[at], lines[at], base) for at, base in bases.items() if base is not None}
        shapes = _learn_shapes(lines, cells)
        for at, each in cells.items():
            if at not in found and (new := _reconcile(lines[at], each, shapes)):
                found[at] = new
    return found


def _cut_strip(pixels: Pixels, line: MonoLine) -> _Strip:
    """Return a line with what is around it; its contrast is relative to the strongest one."""
    high, wide = line.rows[1] - line.rows[0], line.pitch or line.rows[1] - line.rows[0]
    top, left = max(0, math.floor(line.rows[0] - high)), max(0, math.floor(line.span[0] - wide))
    part = pixels[top : math.ceil(line.rows[1] + high), left : math.ceil(line.span[1] + wide)]
    contrast = measure_contrast(part).astype(np.float32)
    inner = contrast[round(line.rows[0]) - top : round(line.rows[1]) - top]
    strong = float(np.percentile(inner, 98)) if inner.size else 0.0
    return _Strip(contrast / max(_FAINT, strong), left, top)


def _find_grids(lines: Sequence[MonoLine], strips: Mapping[int, _Strip]) -> Iterator[_Grid]:
    groups: list[list[int]] = []
    for at in sorted((at for at, line in enumerate(lines) if line.pitch), key=lambda at: lines[at].rows):
        home = next((group for group in groups if _is_like(lines[group[-1]], lines[at])), None)
        if home is None:
            groups.append([at])
        else:
            home.append(at)
    for group in groups:
        long = [at for at in group if len(lines[at].texts) > 1]
        if len(long) >= _LINES:
            yield from _split_by_phase(lines, strips, group, _fit_pitch([lines[at] for at in long]))


def _is_like(one: MonoLine, other: MonoLine) -> bool:
    high = one.rows[1] - one.rows[0]
    near = one.pitch and other.pitch and abs(one.pitch / other.pitch - 1) <= _SAME_PITCH
    return bool(near) and other.rows[0] - one.rows[1] <= _FAR * high


def _number_columns(line: MonoLine, pitch: float) -> list[int]:
    """Return the column of each letter, counted from the first."""
    places = [0]
    for before, after in pairwise(line.centres):
        places.append(places[-1] + round((after - before) / pitch))
    return places


def _fit_pitch(lines: Sequence[MonoLine]) -> float:
    """Return the width of a column by the longest lines, to a fraction of a pixel: an error adds up along a line."""
    usual = median(line.pitch for line in lines if line.pitch)
    fitted = []
    for line in sorted(lines, key=lambda each: each.centres[0] - each.centres[-1])[: max(_LINES, len(lines) // 2)]:
        places = np.array(_number_columns(line, usual))
        if places[-1]:
            fitted.append(float(np.polyfit(places, line.centres, 1)[0]))
    near = [each for each in fitted if abs(each / usual - 1) <= _SAME_PITCH]
    return median(near) if near else usual


def _split_by_phase(
    lines: Sequence[MonoLine], strips: Mapping[int, _Strip], group: Sequence[int], pitch: float
) -> Iterator[_Grid]:
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
    """Return where a column of a line begins, between 0 and the width of one."""
    starts = [centre - at * pitch for centre, at in zip(line.centres, _number_columns(line, pitch), strict=True)]
    return (median(starts) - pitch / 2) % pitch


def _measure_turn(one: float, other: float, pitch: float) -> float:
    apart = abs(one - other) % pitch
    return min(apart, pitch - apart)


def _make_grid(
    lines: Sequence[MonoLine], strips: Mapping[int, _Strip], pitch: float, phase: float, own: Sequence[int]
) -> _Grid | None:
    bases, highs = dict[int, int](), list[int]()
    for at in own:
        ends = [_find_rows(strips[at], lines[at], place, pitch) for place in range(len(lines[at].texts))]
        named = [(text, end) for text, end in zip(lines[at].texts, ends, strict=True) if end and text in _FLAT]
        if named:
            bases[at] = round(median(end[1] for _, end in named))
            highs += [bases[at] - end[0] for text, end in named if text in _TALL]
    if len(bases) < _LINES or not highs:
        return None
    capital = round(median(highs))
    steps = [below - above for above, below in pairwise(sorted(bases.values())) if below - above > capital]
    step = median([each for each in steps if each <= 1.5 * min(steps)]) if steps else 0
    return _Grid(pitch, phase, bases, capital, step)


def _find_rows(strip: _Strip, line: MonoLine, place: int, pitch: float) -> tuple[int, int] | None:
    """Return the first row of a letter and one past its last."""
    left, right = (round(line.centres[place] + side * 0.4 * pitch) - strip.left for side in (-1, 1))
    top, bottom = round(line.rows[0]) - strip.top, round(line.rows[1]) - strip.top
    inked = np.flatnonzero((strip.shades[top:bottom, max(0, left) : right] > 0.5).any(1))
    return (strip.top + top + int(inked[0]), strip.top + top + int(inked[-1]) + 1) if len(inked) else None


def _predict_base(grid: _Grid, line: MonoLine) -> int | None:
    """Return where the letters of a line end that lie a whole number of rows away from the others; None elsewhere."""
    middle, high = (line.rows[0] + line.rows[1]) / 2, line.rows[1] - line.rows[0]
    near = min(grid.bases.values(), key=lambda base: abs(base - grid.capital / 2 - middle))
    away = middle - (near - grid.capital / 2)
    if not grid.step or abs(away) > _FAR * grid.step or high > 2 * grid.step:
        return None
    return round(near + grid.step * round(away / grid.step))


@dataclass(frozen=True, slots=True)
class _Cells:
    """The columns of a line with ink in them: where each is, and its shape, moved a little to all sides."""

    columns: list[int]
    starts: list[float]
    pitch: float
    underlined: list[bool]  # whether there is nothing but a bar below the letters, which ends there
    shapes: Floats  # columns x moves x values; each has the length 1


def _cut_cells(grid: _Grid, strip: _Strip, line: MonoLine, base: int) -> _Cells:
    scale = max(1, round(grid.pitch / _PIXELS))
    up, down, wide = round(_ABOVE * grid.capital), round(_BELOW * grid.capital), math.ceil(grid.pitch)
    shades = np.pad(strip.shades, ((up + 2 * scale,) * 2, (wide + 2 * scale,) * 2))
    top = base - up - strip.top + up + 2 * scale
    first = math.floor((line.span[0] - grid.phase) / grid.pitch)
    core = round(_CORE * grid.pitch)
    columns, starts, shapes, bars = list[int](), list[float](), list[Floats](), list[tuple[bool, bool]]()
    for column in range(first, math.ceil((line.span[1] - grid.phase) / grid.pitch)):
        start = grid.phase + column * grid.pitch
        left = round(start) - strip.left + wide + 2 * scale
        if left < 2 * scale or top < 2 * scale or left + wide + 2 * scale > shades.shape[1]:
            continue
        inked = shades[top : top + up + down, left + core : left + wide - core] >= _SHADE
        if not inked.any():
            continue
        columns.append(column)
        starts.append(start)
        bars.append((bool(inked[up:].any()), not inked[:up].any() and _is_bar(inked[up:])))
        shapes.append(_cut_moved(shades, (left, top), (wide, up + down), scale))
    under = [bar and _ends_beside(bars, place) for place, (_, bar) in enumerate(bars)]
    return _Cells(columns, starts, grid.pitch, under, np.stack(shapes) if shapes else np.zeros((0, 9, 1), np.float32))


def _is_bar(inked: NDArray[np.bool_]) -> bool:
    """Return whether all ink is in rows that it fills."""
    rows = inked[inked.any(1)]
    return bool(len(rows)) and bool(rows.all())


def _ends_beside(bars: Sequence[tuple[bool, bool]], place: int) -> bool:
    """Return whether a letter before or after a bar has no ink there: a line below a text goes on."""
    before = next((low for low, bar in bars[:place][::-1] if not bar), False)
    after = next((low for low, bar in bars[place + 1 :] if not bar), False)
    return not (before and after)


def _cut_moved(shades: Floats, corner: tuple[int, int], size: tuple[int, int], scale: int) -> Floats:
    """Return a piece of a line at nine places around its own, each with the length 1."""
    (x, y), wide, high = corner, size[0] // scale, size[1] // scale
    moved = []
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            top, left = y + down * scale, x + right * scale
            piece = shades[top : top + high * scale, left : left + wide * scale]
            piece = np.pad(piece, ((0, high * scale - piece.shape[0]), (0, wide * scale - piece.shape[1])))
            small = piece.reshape(high, scale, wide, scale).mean((1, 3)).ravel()
            moved.append(small / max(1e-6, float(np.linalg.norm(small))))
    return np.stack(moved)


def _assign_letters(line: MonoLine, cells: _Cells) -> dict[int, list[int]]:
    """Return the indexes of the letters that are in each column."""
    homes: dict[int, list[int]] = defaultdict(list)
    for at, centre in enumerate(line.centres if cells.columns else ()):
        homes[cells.columns[0] + math.floor((centre - cells.starts[0]) / cells.pitch)].append(at)
    return homes


def _learn_shapes(lines: Sequence[MonoLine], cells: Mapping[int, _Cells]) -> dict[str, Floats]:
    """Return what each letter looks like, by those that are certain and alone in their column."""
    samples: dict[str, list[tuple[float, Floats]]] = defaultdict(list)
    for at, each in cells.items():
        line, homes = lines[at], _assign_letters(lines[at], each)
        for place, column in enumerate(each.columns if line.pitch else ()):
            own = homes.get(column, [])
            if len(own) == 1 and line.certain[own[0]] >= _LIKELY and line.texts[own[0]] <= _LAST:
                samples[line.texts[own[0]]].append((line.certain[own[0]], each.shapes[place]))
    shapes = {text: shape for text, own in samples.items() if (shape := _choose_shapes(own)) is not None}
    for at, each in cells.items():
        for text, place in _find_repeated(lines[at], each):
            shapes.setdefault(text, each.shapes[place, _STILL][None])
    return shapes


def _choose_shapes(known: Sequence[tuple[float, Floats]]) -> Floats | None:
    """Return the shapes that most samples are like, each once; None if they are not like each other."""
    best_first = sorted(known, key=lambda each: -each[0])
    if len(known) == 1 and best_first[0][0] < _SURE:
        return None
    samples = [moved for _, moved in best_first[:_SAMPLES]]
    still = np.stack([moved[_STILL] for moved in samples])
    likeness = np.einsum("amv,bv->abm", np.stack(samples), still).max(2)
    best = int((likeness >= _AKIN).sum(0).argmax())
    agreed = np.flatnonzero(likeness[:, best] >= _AKIN)
    if 2 * len(agreed) <= len(samples):
        return None
    kept: list[int] = []
    for at in agreed.tolist():
        if all(likeness[at, other] < _EQUAL for other in kept):
            kept.append(at)
    return still[kept]


def _find_repeated(line: MonoLine, cells: _Cells) -> Iterator[tuple[str, int]]:
    """Yield the letter of columns of one shape that follow each other, and one of them, if they were read alike."""
    still, homes = cells.shapes[:, _STILL], _assign_letters(line, cells)
    start = 0
    for end in range(1, len(still) + 1):
        if end < len(still) and float((cells.shapes[end] @ still[end - 1]).max()) >= _ALIKE:
            continue
        read = [line.texts[at] for place in range(start, end) for at in homes.get(cells.columns[place], [])]
        usual = max(set(read), key=read.count, default="")
        if end - start >= _RUN and len(read) >= _RUN and read.count(usual) >= _AGREED * len(read):
            yield usual, start
        start = end


def _reconcile(line: MonoLine, cells: _Cells, shapes: Mapping[str, Floats]) -> list[ShapedLetter] | None:
    """Return the letters of a line by its columns; None if nothing changes or a column could not be read."""
    if not cells.columns or not shapes:
        return None
    alike = {text: np.einsum("cmv,tv->cmt", cells.shapes, known).max((1, 2)) for text, known in shapes.items()}
    homes = _assign_letters(line, cells)
    letters: list[ShapedLetter] = []
    for place, column in enumerate(cells.columns):
        likeness = {text: float(each[place]) for text, each in alike.items()}
        found = _choose_letter(line, homes.get(column, []), likeness)
        if found is None or (cells.underlined[place] and found[0] != "_"):
            found = ("_", _ALIKE, None) if cells.underlined[place] else (UNREAD, 0.0, None)
        spaced = place > 0 and column - cells.columns[place - 1] > 1
        letters.append(ShapedLetter(found[0], cells.starts[place] + cells.pitch / 2, found[1], spaced, found[2]))
    unread = sum(letter.text == UNREAD for letter in letters)
    if unread and (line.pitch is not None or unread > _MISSING * len(letters)):
        return None
    same = [letter.text for letter in letters] == list(line.texts)
    return None if same and line.pitch is not None else letters


def _choose_letter(
    line: MonoLine, own: Sequence[int], alike: Mapping[str, float]
) -> tuple[str, float, int | None] | None:
    """Return the letter of a column: the one that was read unless the shape is clearly that of another."""
    ranked = sorted(alike.items(), key=lambda each: -each[1])
    (best, like), second = ranked[0], ranked[1][1] if len(ranked) > 1 else 0.0
    known = line.texts[own[0]] if len(own) == 1 else None
    if known is not None and line.pitch is not None:
        usual = alike.get(known, 1.0 if line.certain[own[0]] >= _DOUBTFUL else 0.0)
        unfit = known in alike and usual < _UNFIT
        if like >= (_ALIKE if unfit else _OTHER) and like - usual >= _UNLIKE and _is_apart(best, alike):
            return best, like, None
        return None if unfit else (known, 1.0, own[0])
    certain = like >= _ALIKE and like - second >= _CLEAR and _is_apart(best, alike)
    return (best, like, None) if certain else None


def _is_apart(best: str, alike: Mapping[str, float]) -> bool:
    """Return whether letters that look like one are known, and look otherwise."""
    twins = [alike[twin] for twin in _TWINS.get(best, "") if twin in alike]
    return all(alike[best] - like >= _CLEAR for like in twins) if twins else best not in _TWINS
