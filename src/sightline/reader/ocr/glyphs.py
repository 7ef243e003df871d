"""Read monospaced text by the shapes of its letters, where the network lost or confused some.

Each letter of a program or a terminal has a column of its own. Letters that were read with certainty show what each
looks like on this page. Ink in a column without a letter, or with one that looks otherwise, is compared with them.
A column that looks like none of them is left as it was read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from sightline.reader.ocr.letter_case import choose_case_of_share
from sightline.reader.ocr.mono_cells import STILL, MonoCells, cut_cells
from sightline.reader.ocr.mono_grid import MonoLine, cut_strip, find_grids, predict_base
from sightline.reader.reading import Pixels

Floats = NDArray[np.float32]

_SURE, _LIKELY = 0.98, 0.9  # how certain a letter is that shows its shape, alone or where several agree
_WEAK = 0.3  # how much one that is only likely counts for what its letter looks like
_ALIKE, _CLEAR = 0.94, 0.03  # similarity of two shapes that are the same letter, and how much less all others are
_CLOSE = 0.015  # the same for a digit among letters that may be one of them
_OTHER, _UNLIKE = 0.97, 0.08  # the same where the network read another letter, and how much less alike that one is
_UNFIT = 0.65  # a letter that is less alike than this is not the one that was read
_AKIN, _EQUAL = 0.8, 0.97  # similarity of shapes that show one letter, and of those of which one is enough
_BESIDE = 0.5  # columns by which a stroke may be beside the middle of its letter
_UNEVEN = 0.25  # columns by which the distance of two letters may differ from that of their columns
_MAJORITY = 3  # times as many letters of one kind as of another that have a shape: the others were read wrongly
_LAST = "\u024f"  # the last Latin letter; signs after it may be drawings
_TWINS = {"0": "O", "O": "0", "1": "l", "l": "1", "I": "l1", "5": "S", "S": "5", "8": "B", "B": "8", "2": "Z", "Z": "2"}
_POINTS = frozenset(".,:;，；：")  # signs that their ink tells: the network confuses them
_BRACKETS = frozenset("[]")
_TICKS = frozenset("'`‘’´′")
_STROKES = frozenset("lI1i!|¯丨｜")
UNREAD, _MISSING = "?", 0.05  # stands for a letter that could not be read, and the share of such letters, at most
_STRANGE, _GUESSED = 0.1, 0.3  # the same in a line that was read, and how certain a letter is that looks like none
_SAMPLES = 16  # shapes of one letter that are compared, at most
_RUN, _AGREED = 6, 0.9  # columns of one shape that need no other to compare with, and share of letters read alike


@dataclass(frozen=True, slots=True)
class ShapedLetter:
    """A letter at a place, and whether the network read it, or how alike the shape is that it has."""

    text: str
    centre: float
    likeness: float
    spaced: bool  # whether a blank column is before it
    source: int | None = None  # index of the letter that the network read there


def read_by_shape(pixels: Pixels, lines: Sequence[MonoLine]) -> dict[int, list[ShapedLetter]]:
    """Return the letters of lines that read otherwise by the shapes of their letters, by index.

    Lines without a pitch are those that could not be read.
    """
    found: dict[int, list[ShapedLetter]] = {}
    strips = {at: cut_strip(pixels, line) for at, line in enumerate(lines)}
    grids = list(find_grids(lines, strips))
    placed = {at for grid in grids for at in grid.bases}
    for grid in grids:
        cells = {at: cut_cells(grid, strips[at], lines[at], base) for at, base in grid.bases.items()}
        bases = {at: predict_base(grid, line) for at, line in enumerate(lines) if at not in placed and at not in found}
        cells |= {at: cut_cells(grid, strips[at], lines[at], base) for at, base in bases.items() if base is not None}
        shapes = _learn_shapes(lines, cells)
        for at, each in cells.items():
            if at not in found and (new := _reconcile(lines[at], each, shapes)):
                found[at] = new
    return found


def _assign_letters(line: MonoLine, cells: MonoCells) -> dict[int, list[int]]:
    """Return the indexes of the letters that are in each column."""
    places = [(centre - cells.starts[0]) / cells.pitch for centre in line.centres] if cells.columns else []
    columns = [cells.columns[0] + math.floor(place) for place in places]
    if any(column not in cells.columns for column in columns) or len(set(columns)) < len(columns):
        middles = [cells.columns[0] + place - 0.5 for place in places]
        columns = _align_letters(middles, columns, set(cells.columns)) or columns
    homes: dict[int, list[int]] = defaultdict(list)
    for at, column in enumerate(columns):
        homes[column].append(at)
    return homes


def _align_letters(middles: Sequence[float], columns: Sequence[int], inked: AbstractSet[int]) -> list[int] | None:
    """Return a column with ink for each letter, in their order; None if there are too few.

    Where the network saw a letter is inexact by up to a column, as `middles` are, and `columns` by them.
    """
    ways: dict[int, tuple[float, list[int]]] = {-1_000_000: (0.0, [])}  # the best one to each column of the last letter
    for middle, column in zip(middles, columns, strict=True):
        further: dict[int, tuple[float, list[int]]] = {}
        for near in (column - 1, column, column + 1):
            before = [way for last, way in ways.items() if last < near] if near in inked else []
            if before:
                cost, path = min(before, key=lambda way: way[0])
                further[near] = (cost + (near - middle) ** 2, [*path, near])
        if not further:
            return None
        ways = further
    return min(ways.values(), key=lambda way: way[0])[1]


@dataclass(frozen=True, slots=True)
class _Shapes:
    """What letters look like: the shapes of each, one letter after the other."""

    names: dict[str, int]
    shapes: Floats
    starts: list[int]

    @classmethod
    def collect(cls, shapes: Mapping[str, Floats]) -> _Shapes:
        starts = np.cumsum([0, *(len(each) for each in shapes.values())])[:-1].tolist()
        whole = np.concatenate(list(shapes.values())) if shapes else np.zeros((0, 1), np.float32)
        return cls({text: at for at, text in enumerate(shapes)}, whole, starts)

    def compare(self, cells: MonoCells) -> Floats:
        """Return how alike each column is to each letter; columns are moved where they are like none."""
        likeness: Floats = self._compare_shapes(cells.shapes[:, STILL])
        for place in np.flatnonzero(likeness.max(1) < _OTHER).tolist():
            likeness[place] = self._compare_shapes(cells.shapes[place]).max(0)
        return likeness

    def _compare_shapes(self, shapes: Floats) -> Floats:
        # Not by @, whose threads wait for each other on a busy machine.
        likeness: Floats = np.maximum.reduceat(np.einsum("cv,tv->ct", shapes, self.shapes), self.starts, axis=1)
        return likeness


def _learn_shapes(lines: Sequence[MonoLine], cells: Mapping[int, MonoCells]) -> _Shapes:
    """Return what each letter looks like, by those that are certain and alone in their column."""
    samples: dict[str, list[tuple[float, Floats]]] = defaultdict(list)
    for at, each in cells.items():
        line, homes = lines[at], _assign_letters(lines[at], each)
        for place, column in enumerate(each.columns):
            own = homes.get(column, [])
            if len(own) != 1 or _is_caret(line.texts[own[0]], each.signs[place]):
                continue
            if line.certain[own[0]] >= _LIKELY and _may_show_shape(line, own[0]):
                samples[line.texts[own[0]]].append((line.certain[own[0]], each.shapes[place]))
    shapes = {text: shape for text, own in samples.items() if (shape := _choose_shapes(own)) is not None}
    shapes = _remove_foreign_shapes(shapes, samples)
    for at, each in cells.items():
        for text, place in _find_repeated(lines[at], each):
            shapes.setdefault(text, each.shapes[place, STILL][None])
    return _Shapes.collect(shapes)


def _choose_shapes(known: Sequence[tuple[float, Floats]]) -> Floats | None:
    """Return the shapes that most samples are like, each once; None if they are not like each other."""
    best_first = sorted(known, key=lambda each: -each[0])
    if len(known) == 1 and best_first[0][0] < _SURE:
        return None
    samples = [moved for _, moved in best_first[:_SAMPLES]]
    still = np.stack([moved[STILL] for moved in samples])
    likeness = np.einsum("amv,bv->abm", np.stack(samples), still).max(2)
    weights = np.array([1.0 if certain >= _SURE else _WEAK for certain, _ in best_first[:_SAMPLES]])
    best = int((weights[:, None] * (likeness >= _AKIN)).sum(0).argmax())
    agreed = np.flatnonzero(likeness[:, best] >= _AKIN)
    if 2 * float(weights[agreed].sum()) <= float(weights.sum()):
        return None
    kept: list[int] = []
    for at in agreed.tolist():
        if all(likeness[at, other] < _EQUAL for other in kept):
            kept.append(at)
    return still[kept]


def _remove_foreign_shapes(
    shapes: Mapping[str, Floats], samples: Mapping[str, Sequence[tuple[float, Floats]]]
) -> dict[str, Floats]:
    """Return the shapes of each letter without those that are clearly another's: a few of it were read wrongly."""
    names = list(shapes)
    owners = np.repeat(np.arange(len(names)), [len(shapes[name]) for name in names])
    every = np.concatenate([shapes[name] for name in names]) if names else np.zeros((0, 1), np.float32)
    same = np.einsum("av,bv->ab", every, every) >= _EQUAL
    same &= owners[:, None] != owners[None]
    foreign = np.zeros(len(every), bool)
    for place in np.flatnonzero(same.any(1)).tolist():
        own = _count_alike(every[place], samples[names[owners[place]]])
        others = {names[owners[other]] for other in np.flatnonzero(same[place]).tolist()}
        foreign[place] = any(_count_alike(every[place], samples[other]) >= _MAJORITY * own for other in others)
    return {
        name: kept for at, name in enumerate(names) if len(kept := every[(owners == at) & ~foreign])
    }  # fmt: skip


def _count_alike(shape: Floats, samples: Sequence[tuple[float, Floats]]) -> int:
    """Return how many samples are nearly equal to a shape."""
    still = np.stack([moved[STILL] for _, moved in samples])
    return int((still @ shape >= _EQUAL).sum())


def _find_repeated(line: MonoLine, cells: MonoCells) -> Iterator[tuple[str, int]]:
    """Yield the letter of columns of one shape that follow each other, and one of them, if they were read alike.

    The network may know a sign only as a letter that looks like it.
    """
    still, homes = cells.shapes[:, STILL], _assign_letters(line, cells)
    start = 0
    for end in range(1, len(still) + 1):
        if end < len(still) and float((cells.shapes[end] @ still[end - 1]).max()) >= _ALIKE:
            continue
        read = [line.texts[at] for place in range(start, end) for at in homes.get(cells.columns[place], [])]
        usual = max(set(read), key=read.count, default="")
        if end - start >= _RUN and len(read) >= _RUN and read.count(usual) >= _AGREED * len(read):
            yield cells.signs[start] or usual, start
        start = end


def _reconcile(line: MonoLine, cells: MonoCells, shapes: _Shapes) -> list[ShapedLetter] | None:
    """Return the letters of a line by its columns; None if nothing changes or a column could not be read."""
    cells = _remove_outer_rules(line, cells)
    homes = _assign_letters(line, cells)
    if not cells.columns or not shapes.names or not _fit_columns(homes, cells.columns):
        return None
    likeness = shapes.compare(cells)
    letters: list[ShapedLetter] = []
    for place, column in enumerate(cells.columns):
        alike = _Likeness(shapes.names, likeness[place])
        found = _choose_letter(line, homes.get(column, []), alike)
        if found and _is_contradicted(found[0], cells.signs[place], alike):
            found = (cells.signs[place] or found[0], _ALIKE, None)
        if found and found[2] is not None and line.certain[found[2]] < _SURE:
            found = (choose_case_of_share(found[0], cells.highs[place]), found[1], found[2])
        if found is None or (cells.underlined[place] and found[0] != "_"):
            sign = "_" if cells.underlined[place] else cells.signs[place]
            found = (sign, _ALIKE, None) if sign else _mark_doubt(line, homes.get(column, []))
        spaced = place > 0 and column - cells.columns[place - 1] > 1
        letters.append(ShapedLetter(found[0], cells.starts[place] + cells.pitch / 2, found[1], spaced, found[2]))
    if line.pitch and any(letter.text == UNREAD and not letter.likeness for letter in letters) and _is_complete(line):
        return None
    unread = sum(letter.likeness <= _GUESSED for letter in letters)
    if unread > (_MISSING if line.pitch is None else _STRANGE) * len(letters):
        return None
    same = [letter.text for letter in letters] == list(line.texts)
    return None if same and line.pitch is not None and _are_steps_whole(line, cells.columns) else letters


def _is_complete(line: MonoLine) -> bool:
    """Return whether no letter of a line can be lost: as many were read as there are strokes, or each has its own."""
    reach, more = _BESIDE * (line.pitch or 0.0), len(line.texts) - len(line.inked)
    if not line.inked or more < 0:
        return False
    return not more or all(any(abs(stroke - centre) <= reach for centre in line.centres) for stroke in line.inked)


def _remove_outer_rules(line: MonoLine, cells: MonoCells) -> MonoCells:
    """Return the columns without those before and after all letters through which the edge of a box is drawn.

    One that begins in the first row is not drawn through it, nor is a cursor.
    """
    before, after = bool(cells.ruled) and (cells.ruled[0] or cells.signs[0] == "|"), any(cells.ruled[-1:])
    if not before and not after:
        return cells
    homes = _assign_letters(line, cells)
    first, last = before and not homes.get(cells.columns[0]), after and not homes.get(cells.columns[-1])
    return cells.select(int(first), len(cells.columns) - int(last))


def _is_contradicted(text: str, sign: str | None, alike: _Likeness) -> bool:
    """Return whether the ink of a column shows another sign than the letter that was chosen."""
    if sign is None or text == sign:
        return False
    alike_signs = any(text in kind and sign in kind for kind in (_POINTS, _TICKS))
    raised = sign in _TICKS and text.isalnum() and alike.get(text, 0.0) < _UNFIT
    bracket = sign in _BRACKETS and alike.get(text, 0.0) < _ALIKE
    return alike_signs or raised or bracket or _is_caret(text, sign) or (sign == "|" and text in _STROKES)


def _is_caret(text: str, sign: str | None) -> bool:
    """Return whether a letter that was read is a caret by its ink: no letter is only as high as that."""
    return sign == "^" and text.isalnum()


def _fit_columns(homes: Mapping[int, list[int]], columns: Sequence[int]) -> bool:
    """Return whether all letters are where ink is, or beside ink that has no other letter."""
    return all(
        column in columns or any(near in columns and not homes.get(near) for near in (column - 1, column + 1))
        for column, own in homes.items() if own
    )  # fmt: skip


def _mark_doubt(line: MonoLine, own: Sequence[int]) -> tuple[str, float, int | None]:
    """Return the letter of a column that looks like none: what was read there, as a guess."""
    return (line.texts[own[0]], _GUESSED, None) if len(own) == 1 and line.pitch else (UNREAD, 0.0, None)


def _are_steps_whole(line: MonoLine, columns: Sequence[int]) -> bool:
    """Return whether letters are as far from each other as their columns: else blanks would be miscounted."""
    steps = zip(pairwise(line.centres), pairwise(columns), strict=True)
    pitch = line.pitch or 1.0
    return all(abs((end - start) / pitch - (after - before)) < _UNEVEN for (start, end), (before, after) in steps)


@dataclass(frozen=True, slots=True)
class _Likeness:
    """How alike a column is to each letter."""

    names: dict[str, int]
    values: Floats

    def get(self, text: str, default: float) -> float:
        place = self.names.get(text)
        return default if place is None else float(self.values[place])


def _choose_letter(line: MonoLine, own: Sequence[int], alike: _Likeness) -> tuple[str, float, int | None] | None:
    """Return the letter of a column: the one that was read unless the shape is clearly that of another."""
    place = int(alike.values.argmax())
    best, like = next(text for text, at in alike.names.items() if at == place), float(alike.values[place])
    known = line.texts[own[0]] if len(own) == 1 else None
    if known is not None and line.pitch is not None:
        if best == known:
            return known, 1.0, own[0]
        sure = line.certain[own[0]]
        if best in _TWINS.get(known, "") and sure < _SURE and like >= _OTHER:
            beside = _is_beside_letters(line, own[0])
            if like - alike.get(known, 0.0) >= (_CLOSE if beside else _CLEAR) and (known in alike.names or beside):
                return best, like, None
        usual = alike.get(known, 1.0 if sure >= _LIKELY else 0.0)
        unfit = known in alike.names and usual < _UNFIT
        strange = known not in alike.names and sure < _LIKELY
        if (
            like >= (_ALIKE if unfit or strange else _OTHER)
            and like - usual >= _UNLIKE
            and _is_apart(best, like, alike)
        ):
            return best, like, None
        return None if unfit else (known, 1.0, own[0])
    if known is not None and line.certain[own[0]] >= _LIKELY and like < _ALIKE:
        return known, line.certain[own[0]], own[0]
    second = float(np.delete(alike.values, place).max(initial=0.0))
    certain = like >= _ALIKE and like - second >= _CLEAR and _is_apart(best, like, alike)
    return (best, like, None) if certain else None


def _list_beside(line: MonoLine, at: int) -> list[str]:
    """Return the letters directly before and after one."""
    reach = 1.5 * (line.pitch or 0.0)
    return [
        line.texts[other] for other in (at - 1, at + 1)
        if 0 <= other < len(line.texts) and abs(line.centres[other] - line.centres[at]) < reach
    ]  # fmt: skip


def _is_beside_letters(line: MonoLine, at: int) -> bool:
    """Return whether a digit has letters beside it, and no other digit."""
    beside = _list_beside(line, at)
    return line.texts[at].isdigit() and any(map(str.isalpha, beside)) and not any(map(str.isdigit, beside))


def _may_show_shape(line: MonoLine, at: int) -> bool:
    """Return whether a letter shows what it looks like: one that is easily confused needs others of its kind."""
    text = line.texts[at]
    if text not in _TWINS:
        return text <= _LAST
    beside = _list_beside(line, at)
    return not any(map(str.isalpha if text.isdigit() else str.isdigit, beside))


def _is_apart(best: str, like: float, alike: _Likeness) -> bool:
    """Return whether letters that look like one are known, and look otherwise."""
    twins = [alike.get(twin, 0.0) for twin in _TWINS.get(best, "") if twin in alike.names]
    return all(like - other >= _CLEAR for other in twins) if twins else best not in _TWINS
