"""Questions about charts and tables, answered from the values that were read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.seers.local.amounts import amounts
from sightline.seers.local.amounts import number as amount
from sightline.seers.local.finding import around, cell_text, tables, words
from sightline.seers.local.seen import Chart, Mark, Seen, Table
from sightline.seers.local.subjects import Asked, Said

_most = re.compile(
    r"\b(?:highest|largest|greatest|biggest|most|maximum|max|tallest|top|best|longest|higher|larger|greater|bigger|more|taller)\b"
)
_least = re.compile(r"\b(?:lowest|smallest|least|minimum|min|fewest|shortest|worst|lower|smaller|less|fewer|shorter)\b")
_sum = re.compile(r"\b(?:sum|total|altogether|combined|add up)\b")
_about = re.compile(r"\b(?:charts?|bars?|graphs?|plots?|diagram|values?|data|series|points?|axis)\b")
_TALK = frozenset(
    """highest largest greatest biggest most maximum max tallest top best longest lowest smallest least minimum min
    fewest shortest worst sum total altogether combined add up chart charts bar bars graph graphs plot diagram data
    series point points axis category categories quarter year month column columns row rows cell table header
    number amount figure figures high low size all every list record entry line higher larger greater bigger more
    taller lower smaller less fewer shorter""".split()
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")


def charted(asked: Asked) -> Said | None:
    for chart in asked.seen.charts:
        if chart.marks and (said := _of_chart(asked, chart)):
            return said
    return None


def _of_chart(asked: Asked, chart: Chart) -> Said | None:
    series = _mentioned(asked.low, [mark.series for mark in chart.marks])
    categories = _mentioned(asked.low, [mark.category for mark in chart.marks])
    extreme, total = _extreme(asked.low), bool(_sum.search(asked.low))
    all_of_it = extreme or total or re.search(r"\b(?:list|values?|data)\b", asked.low)
    if not (series or categories or (all_of_it and _about.search(asked.low))):
        return None
    named = frozenset(word for text in (chart.title, chart.unit, *series, *categories) for word in words(text))
    if strange := asked.strangers(asked.low, _TALK | named):
        return _no_such(chart, strange)
    marks = [
        mark for mark in chart.marks
        if (not series or mark.series in series) and (not categories or mark.category in categories)
    ]  # fmt: skip
    return _figures(chart, marks, extreme, total=total and not extreme)


def _no_such(chart: Chart, strange: Sequence[str]) -> Said:
    kinds = "; ".join(", ".join(dict.fromkeys(filter(None, each))) for each in (
        [mark.category for mark in chart.marks], [mark.series for mark in chart.marks]))  # fmt: skip
    return Said(f"The chart says nothing of {', '.join(strange)}. It has: {kinds.strip('; ')}.")


def _figures(chart: Chart, marks: Sequence[Mark], extreme: int, *, total: bool) -> Said | None:
    if not marks:
        return None
    if extreme:
        marks = [max(marks, key=lambda mark: extreme * mark.value)]
    if total:
        return Said(
            f"{number(sum(mark.value for mark in marks), chart)}{_unit(chart)}, the sum of {len(marks)} values",
            _spots(marks, chart),
        )
    if len(marks) == 1:
        return Said(f"{number(marks[0].value, chart)}{_unit(chart)} ({mark_name(marks[0])})", _spots(marks, chart))
    listed = (f"{mark_name(mark)}: {number(mark.value, chart)}" for mark in marks)
    return Said("\n".join(listed), _spots(marks, chart))


def _spots(marks: Iterable[Mark], chart: Chart) -> tuple[Spot, ...]:
    return tuple(Spot(f"{mark_name(mark)}: {number(mark.value, chart)}", mark.box) for mark in marks)


def mark_name(mark: Mark) -> str:
    return ", ".join(filter(None, (mark.category, mark.series))) or "bar"


def number(value: float, chart: Chart) -> str:
    """As exact as it can be seen in its chart: a five-hundredth of the greatest value there, and no more."""
    greatest = max((abs(mark.value) for mark in chart.marks), default=0.0) or abs(value) or 1.0
    places = max(-12, min(12, math.ceil(-math.log10(greatest / 500))))
    rounded = round(value, places)
    return f"{rounded:.0f}" if rounded.is_integer() else f"{rounded:.{max(places, 0)}f}".rstrip("0").rstrip(".")


def _unit(chart: Chart) -> str:
    return f" {chart.unit}" if chart.unit else ""


def _extreme(low: str) -> int:
    return 1 if _most.search(low) else -1 if _least.search(low) else 0


def _mentioned(low: str, names: Iterable[str]) -> list[str]:
    """The names that a question has in it, the longest of those that overlap."""
    asked = f" {' '.join(words(low.replace(chr(39) + 's', '')))} "
    there = [name for name in dict.fromkeys(names) if words(name) and f" {' '.join(words(name))} " in asked]
    return [name for name in there if not any(name != other and _inside(name, other) for other in there)]


def _inside(name: str, other: str) -> bool:
    return f" {' '.join(words(name))} " in f" {' '.join(words(other))} " and len(words(other)) > len(words(name))


@dataclass(frozen=True, slots=True)
class _Grid:
    """A table in words."""

    cells: tuple[tuple[str, ...], ...]
    boxes: tuple[tuple[Box | None, ...], ...]

    @staticmethod
    def of(seen: Seen, table: Table) -> _Grid:
        cells = tuple(tuple(cell_text(seen, cell) for cell in row) for row in table.rows)
        boxes = tuple(
            tuple(around(seen.lines[at].box for at in cell) if cell else None for cell in row) for row in table.rows
        )
        return _Grid(cells, boxes)

    @property
    def headed(self) -> bool:
        """Whether its first row names its columns: no value stands there."""
        return not any(amount(cell) is not None for cell in self.cells[0])

    def said(self, row: int, column: int) -> Said | None:
        if not (row < len(self.cells) and column < len(self.cells[row])):
            return None
        text, box = self.cells[row][column], self.boxes[row][column]
        head = self.cells[0][column] if self.headed and column < len(self.cells[0]) else ""
        name = " of ".join(filter(None, (head, self.cells[row][0]))) if column else head or text
        return Said(f"{text or 'nothing'} ({name})", (Spot(name, box),) if box else ())


def tabled(asked: Asked) -> Said | None:
    for table in tables(asked.seen):
        if said := _of_table(asked, _Grid.of(asked.seen, table)):
            return said
    return None


def _of_table(asked: Asked, grid: _Grid) -> Said | None:
    said_where = words(" ".join(re.findall(r"\b(?:row|column) \d+\b|\blast row\b", asked.low)))
    if len(grid.cells) < 2 or asked.strangers(asked.low, _TALK | frozenset((*_ORDINALS, *said_where))):
        return None
    column = _head(asked, grid)
    row = _row(asked, grid, anywhere=column is not None)
    if column is not None and row is None and (extreme := _extreme(asked.low)):
        return _extreme_row(grid, column, extreme)
    if column is None and row is not None and row < len(grid.cells) and len(grid.cells[row]) == 2:
        column = 1
    said = grid.said(row, column) if row is not None and column is not None else None
    return said if said and asked.wants(said.text) else None


def _head(asked: Asked, grid: _Grid) -> int | None:
    heads = _mentioned(asked.low, grid.cells[0]) if grid.headed else []
    if not heads:
        place = re.search(r"\bcolumn (\d+)\b", asked.low)
        return int(place[1]) - 1 if place else None
    places = [grid.cells[0].index(head) for head in heads]
    return max(places)  # the first column is what a row is called by


def _row(asked: Asked, grid: _Grid, *, anywhere: bool) -> int | None:
    if place := re.search(r"\brow (\d+)\b", asked.low):
        return int(place[1])
    for at, ordinal in enumerate(_ORDINALS, 1):
        if f"{ordinal} row" in asked.low:
            return at
    if "last row" in asked.low:
        return len(grid.cells) - 1
    for column in range(max(map(len, grid.cells)) if anywhere else 1):  # by its first cell, else by one there once
        names = [row[column] if column < len(row) else "" for row in grid.cells]
        names[0] = "" if grid.headed else names[0]
        there = _mentioned(asked.low, names)
        if len(there) == 1 and names.count(there[0]) == 1:
            return names.index(there[0])
    return None


def _extreme_row(grid: _Grid, column: int, extreme: int) -> Said | None:
    texts = [row[column] if column < len(row) else "" for row in grid.cells[1:]]
    valued = [(at, value) for at, value in enumerate(amounts(texts), 1) if value is not None]
    if not valued:
        return None
    at = max(valued, key=lambda each: extreme * each[1])[0]
    box = grid.boxes[at][0]
    return Said(f"{grid.cells[at][0]} ({grid.cells[at][column]})", (Spot(grid.cells[at][0], box),) if box else ())
