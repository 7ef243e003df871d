"""The columns of a line of monospaced text: what is drawn in each of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.reader.ocr.mono_grid import LineStrip, MonoGrid, MonoLine
from sightline.reader.ocr.signs import name_sign

Floats = NDArray[np.float32]

_ABOVE, _BELOW = 1.3, 0.45  # heights of a capital: what belongs to a line above and below that line
_SUNK = 0.35  # the same: how far below a line its underscores end
_PIXELS = 10  # the width of a column in pixels, about, when shapes are compared
_SHADE = 0.3  # share of the strongest contrast of a line that is ink
_SOLID = 0.5  # share of a letter's own contrast that is ink where its height is measured
_CORE = 0.16  # share of a column at each side where ink may be that of a neighbour
STILL = 4  # the index of the shape that is not moved


@dataclass(frozen=True, slots=True)
class MonoCells:
    """The columns of a line with ink in them: where each is, and its shape, moved a little to all sides."""

    columns: list[int]
    starts: list[float]
    pitch: float
    underlined: list[bool]  # whether there is nothing but a bar below the letters, which ends there
    shapes: Floats  # columns x moves x values; each has the length 1
    signs: list[str | None]  # what the ink of each shows, whatever the others on the page look like
    ruled: list[bool]  # whether a line is drawn through it, from above the letters to below them
    highs: list[float]  # how high its ink is: 0 is as high as an x, 1 as a capital

    def select(self, first: int, last: int) -> MonoCells:
        """Return some of the columns, which follow each other."""
        kept = slice(first, last)
        return MonoCells(
            self.columns[kept], self.starts[kept], self.pitch, self.underlined[kept],
            self.shapes[kept], self.signs[kept], self.ruled[kept], self.highs[kept],
        )  # fmt: skip


def cut_cells(grid: MonoGrid, strip: LineStrip, line: MonoLine, base: int) -> MonoCells:
    """Return the columns of a line whose letters stand on the row `base`."""
    scale = max(1, round(grid.pitch / _PIXELS))
    up, down, wide = round(_ABOVE * grid.capital), round(_BELOW * grid.capital), math.ceil(grid.pitch)
    if grid.step:  # underscores of the line above end there
        up = min(up, max(grid.capital, round(grid.step - _SUNK * grid.capital)))
    edge = max(up + down, wide) + 3 * scale
    shades = np.pad(strip.shades, edge)
    top = base - up - strip.top + edge
    first, last = (math.floor((end - grid.phase) / grid.pitch) for end in line.span)
    every = [(column, grid.phase + column * grid.pitch) for column in range(first, last + 1)]
    lefts = np.array([round(start) - strip.left + edge for _, start in every])
    if top < scale or top + up + down + 2 * scale > len(shades):
        return MonoCells([], [], grid.pitch, [], np.zeros((0, 9, 1), np.float32), [], [], [])
    core = round(_CORE * grid.pitch)
    inner = shades[top : top + up + down, lefts[:, None] + np.arange(core, wide - core)].swapaxes(0, 1)
    inked = inner >= _SHADE
    rows = (inner[:, : up + 1] > _SOLID * inner.max((1, 2), keepdims=True)).any(2)
    kept = np.flatnonzero(inked.any((1, 2)))
    low, high = inked[kept, up:], inked[kept, :up]
    bars = [(bool(below.any()), not above.any() and _is_bar(below)) for below, above in zip(low, high, strict=True)]
    return MonoCells(
        [every[at][0] for at in kept],
        [every[at][1] for at in kept],
        grid.pitch,
        [bar and _ends_beside(bars, place) for place, (_, bar) in enumerate(bars)],
        _cut_moved(shades, lefts[kept], top, (wide // scale, (up + down) // scale), scale),
        [name_sign(inked[at], up, grid.capital, grid.pitch) for at in kept],
        [bool(inked[at].all(0).any()) for at in kept],
        [(_measure_height(rows[at]) - grid.small) / max(1.0, grid.capital - grid.small) for at in kept],
    )


def _measure_height(inked: NDArray[np.bool_]) -> int:
    """Return how many rows are between the first ink and the last, both included."""
    rows = np.flatnonzero(inked)
    return int(rows[-1] - rows[0]) + 1 if len(rows) else 0


def _cut_moved(shades: Floats, lefts: NDArray[np.intp], top: int, size: tuple[int, int], scale: int) -> Floats:
    """Return columns of a line, each at nine places around its own, with the length 1."""
    wide, high = size
    down = np.arange(top - scale, top + (high + 1) * scale)
    across = lefts[:, None] + np.arange(-scale, (wide + 1) * scale)
    pieces = shades[down[None, :, None], across[:, None, :]]
    small = pieces.reshape(len(lefts), high + 2, scale, wide + 2, scale).mean((2, 4))
    moved = np.stack([small[:, y : y + high, x : x + wide] for y in range(3) for x in range(3)], 1)
    flat = moved.reshape(len(lefts), 9, high * wide)
    shapes: Floats = flat / np.maximum(1e-6, np.linalg.norm(flat, axis=2, keepdims=True))
    return shapes


def _is_bar(inked: NDArray[np.bool_]) -> bool:
    """Return whether all ink is in rows that it fills."""
    rows = inked[inked.any(1)]
    return bool(len(rows)) and bool(rows.all())


def _ends_beside(bars: Sequence[tuple[bool, bool]], place: int) -> bool:
    """Return whether a letter before or after a bar has no ink there: a line below a text goes on."""
    before = next((low for low, bar in bars[:place][::-1] if not bar), False)
    after = next((low for low, bar in bars[place + 1 :] if not bar), False)
    return not (before and after)
