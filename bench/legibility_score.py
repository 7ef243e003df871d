"""How much of a page was read: what a reader found in each image, mapped back to the page and compared with it."""

from collections.abc import Iterator
from dataclasses import dataclass

from pages import Line, Page

from sightline.model.geometry import PixelMap

Found = tuple[str, list[list[float]]]  # a text and the four corners around it


@dataclass(frozen=True)
class LegibilityScore:
    characters: float  # per cent
    lines: float  # per cent, read without a fault


@dataclass(frozen=True)
class _Character:
    """Characters read at one stretch that belong to one line."""

    left: float
    right: float
    text: str


def score_page(page: Page, readings: list[tuple[PixelMap, list[Found]]]) -> LegibilityScore:
    """Return how much of a page was read, without spaces. Of a line in two tiles, the better reading counts."""
    bits: dict[int, list[_Character]] = {number: [] for number in range(len(page.lines))}
    for where, found in readings:
        for text, corners in found:
            for number, bit in _split_characters(page.lines, where, text, corners):
                bits[number].append(bit)
    total = faults = whole = 0
    for number, line in enumerate(page.lines):
        truth = line.text.replace(" ", "")
        wrong = min((_count_edits(truth, text) for text in _join_characters(bits[number])), default=len(truth))
        total, faults, whole = total + len(truth), faults + min(wrong, len(truth)), whole + (wrong == 0)
    return LegibilityScore(100 * (1 - faults / total), 100 * whole / len(page.lines))


def _split_characters(
    lines: list[Line], where: PixelMap, text: str, corners: list[list[float]]
) -> Iterator[tuple[int, _Character]]:
    """Yield the characters of a text with their places on the page, and the index of the line of each."""
    (left, top), right, bottom = corners[0], corners[1][0], corners[2][1]
    letters = text.replace(" ", "")
    parts: dict[int, list[tuple[float, str]]] = {}
    for place, letter in enumerate(letters):
        x = left + (right - left) * (place + 0.5) / len(letters)
        point = where.to_source(x, (top + corners[3][1] + corners[1][1] + bottom) / 4)
        number = None if point is None else _find_line(lines, *point)
        if point is not None and number is not None:
            parts.setdefault(number, []).append((point[0], letter))
    for number, part in parts.items():
        yield number, _Character(part[0][0], part[-1][0], "".join(letter for _, letter in part))


def _find_line(lines: list[Line], x: float, y: float) -> int | None:
    best = None
    for number, line in enumerate(lines):
        left, top, right, bottom = line.box
        reach = (bottom - top) / 2 + 2
        away = abs(y - (top + bottom) / 2)
        if left - 3 * reach <= x <= right + 3 * reach and away <= reach and (best is None or away < best[0]):
            best = away, number
    return best[1] if best else None


def _join_characters(bits: list[_Character]) -> list[str]:
    """Join the characters of a line; characters that overlap belong to different readings."""
    runs: list[list[_Character]] = []
    for bit in sorted(bits, key=lambda bit: bit.left):
        run = next(
            (run for run in runs if bit.left > (run[-1].left + run[-1].right) / 2 and bit.right > run[-1].right), None
        )
        if run is None:
            runs.append([bit])
        else:
            run.append(bit)
    return ["".join(bit.text for bit in run) for run in runs]


def _count_edits(one: str, other: str) -> int:
    """Characters to be put in, left out or changed."""
    row = list(range(len(other) + 1))
    for above, letter in enumerate(one, 1):
        last, row[0] = row[0], above
        for at, sign in enumerate(other, 1):
            last, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, last + (letter != sign))
    return row[-1]
