"""Questions about tables: a cell by its row and the head of its column, and the row with the most."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.seers.local.amounts import amounts, number
from sightline.seers.local.boxes import union
from sightline.seers.local.figures import TALK, extreme_of, mentioned
from sightline.seers.local.finding import unread_in
from sightline.seers.local.headed import cell_text, tables
from sightline.seers.local.phrases import key, words
from sightline.seers.local.seen import Seen, Table
from sightline.seers.local.subjects import STOP, Asked, Said

_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
SUMS = frozenset({"total", "subtotal", "sum", "balance", "due"})  # what such a row says is no row's own
_value = re.compile(r"\d|@")


@dataclass(frozen=True, slots=True)
class Grid:
    """A table in words."""

    cells: tuple[tuple[str, ...], ...]
    boxes: tuple[tuple[Box | None, ...], ...]
    unread: frozenset[tuple[int, int]] = frozenset()  # cells in which something stands that could not be read

    @staticmethod
    def of(seen: Seen, table: Table) -> Grid:
        cells = tuple(tuple(cell_text(seen, cell) for cell in row) for row in table.rows)
        boxes = tuple(
            tuple(union(seen.lines[at].box for at in cell) if cell else None for cell in row) for row in table.rows
        )
        return Grid(cells, boxes, frozenset(_unread(seen, boxes)))

    @property
    def width(self) -> int:
        return max(map(len, self.cells), default=0)

    @property
    def headed(self) -> bool:
        """Whether its first row names its columns, as far as can be told: no number stands there."""
        first = [cell for cell in self.cells[0] if cell] if self.cells else []
        if len(first) < max(2, self.width / 2) or any(number(cell) is not None for cell in first):
            return False
        return self.width > 2 or self.surely_headed

    @property
    def surely_headed(self) -> bool:
        """Whether values stand below words in one of its columns at least."""
        pairs = [(head, row[at]) for row in self.cells[1:] for at, head in enumerate(self.cells[0]) if at < len(row)]
        return any(
            (_value.search(cell) and not _value.search(head)) or (number(cell) is not None and number(head) is None)
            for head, cell in pairs
        )

    @property
    def body(self) -> tuple[tuple[str, ...], ...]:
        return self.cells[1:] if self.headed else self.cells

    def heads(self) -> tuple[str, ...]:
        return self.cells[0] if self.headed else ()

    def names(self) -> list[str]:
        """What each row is called by: its first cell."""
        return ["" if self.headed and not at else row[0] if row else "" for at, row in enumerate(self.cells)]

    def said(self, row: int, column: int) -> Said | None:
        if not (row < len(self.cells) and column < len(self.cells[row])):
            return None
        text, box = self.cells[row][column], self.boxes[row][column]
        head = self.heads()[column] if column < len(self.heads()) else ""
        name = " of ".join(filter(None, (head, self.cells[row][0]))) if column else head or text
        blank = "something that could not be read" if (row, column) in self.unread else "nothing"
        return Said(f"{text or blank} ({name})", (Spot(name, box),) if box else ())


def _unread(seen: Seen, boxes: Sequence[Sequence[Box | None]]) -> Iterator[tuple[int, int]]:
    """The empty cells, each where its row and its column cross, in which there is something all the same."""
    for y, row in enumerate(boxes):
        for x, cell in enumerate(row):
            level = [box for box in row if box]
            below = [each[x] for each in boxes if x < len(each)]
            over = [box for box in below if box]
            if cell is None and level and over:
                wide, high = union(over), union(level)
                if unread_in(seen, Box(wide.x, high.y, wide.width, high.height)):
                    yield y, x


def grids(seen: Seen) -> list[Grid]:
    return [Grid.of(seen, table) for table in tables(seen)]


def tabled(asked: Asked) -> Said | None:
    return next((said for grid in grids(asked.seen) if (said := _of_table(asked, grid))), None)


def _of_table(asked: Asked, grid: Grid) -> Said | None:
    said_where = words(" ".join(re.findall(r"\b(?:row|column) \d+\b|\blast row\b", asked.low)))
    if len(grid.cells) < 2 or asked.strangers(asked.low, TALK | frozenset((*_ORDINALS, *said_where))):
        return None
    names = mentioned(asked.low, [*grid.heads(), *grid.names()])
    if set(names) & set(grid.heads()) & set(grid.names()):
        return None  # a row and a column of one name
    column = _column(asked, grid, [name for name in names if name in grid.heads()])
    if column is None and len(set(names) & set(grid.heads())) > 1:
        return None
    row = _row(asked, grid, [name for name in names if name in grid.names()], anywhere=column is not None)
    if column is not None and row is None and (extreme := extreme_of(asked.low)):
        return _extreme_row(grid, column, extreme)
    if re.match(r"who(?:se)?\b", asked.low) and not mentioned(asked.low, grid.names()):
        column, row = 0, _row_by_a_cell(asked, grid)  # by what they have
    if column is None and row is not None and row < len(grid.cells):
        column = 1 if len(grid.cells[row]) == 2 else _of_money(asked, grid)
    said = grid.said(row, column) if row is not None and column is not None else None
    return said if said and asked.wants(said.text) else None


def _column(asked: Asked, grid: Grid, heads: Sequence[str]) -> int | None:
    """The one column that is asked for; that of the names may be spoken of beside it."""
    if not heads:
        place = re.search(r"\bcolumn (\d+)\b", asked.low)
        return int(place[1]) - 1 if place else None
    places = [at for at, head in enumerate(grid.heads()) if head in heads]
    others = [at for at in places if at] or places
    return others[0] if len(others) == 1 else None


def _of_money(asked: Asked, grid: Grid) -> int | None:
    """The one column of money, where it is asked how much something is."""
    columns = [[row[at] for row in grid.body if at < len(row)] for at in range(grid.width)]
    money = [at for at, cells in enumerate(columns) if any(re.search(r"[$€£¥]", cell) for cell in cells)]
    return money[0] if re.match(r"how much\b", asked.low) and len(money) == 1 else None


def _row(asked: Asked, grid: Grid, named: Sequence[str], *, anywhere: bool) -> int | None:
    if place := re.search(r"\brow (\d+)\b", asked.low):
        return int(place[1]) if grid.headed else int(place[1]) - 1
    for at, ordinal in enumerate(_ORDINALS, 1 if grid.headed else 0):
        if f"{ordinal} row" in asked.low:
            return at
    if "last row" in asked.low:
        return len(grid.cells) - 1
    names = grid.names()
    if named:
        return names.index(named[0]) if len(named) == 1 and names.count(named[0]) == 1 else None
    if not anywhere:
        return None
    by_cell = _row_by_a_cell(asked, grid)
    return _row_by_a_word(asked, grid) if by_cell is None else by_cell


def _row_by_a_cell(asked: Asked, grid: Grid) -> int | None:
    """By a cell behind its name that is there once."""
    for column in range(1, grid.width):
        others = [row[column] if column < len(row) else "" for row in grid.cells]
        others[0] = "" if grid.headed else others[0]
        there = mentioned(asked.low, others)
        if len(there) == 1 and others.count(there[0]) == 1:
            return others.index(there[0])
    return None


def _row_by_a_word(asked: Asked, grid: Grid) -> int | None:
    """The only row whose name has all the words of the question that are in such names: "Bob" for "Bob Smith"."""
    names = [words(name) for name in grid.names()]
    known = {word for name in names for word in name}
    heads = {word for head in grid.heads() for word in words(head)}
    asked_for = {word for word in words(asked.low.replace("'s", "")) if word in known - heads and word not in STOP}
    there = [at for at, name in enumerate(names) if asked_for and asked_for <= set(name)]
    return there[0] if len(there) == 1 else None


def _extreme_row(grid: Grid, column: int, extreme: int) -> Said | None:
    """The row with the most in a column, or with the least; of equals all."""
    body = range(len(grid.cells) - len(grid.body), len(grid.cells))
    rows = [at for at in body if not SUMS & set(words(grid.cells[at][0]))]
    values = amounts([grid.cells[at][column] if column < len(grid.cells[at]) else "" for at in rows])
    valued = [(at, value) for at, value in zip(rows, values, strict=True) if value is not None]
    if not valued:
        return None
    most = max(extreme * value for _, value in valued)
    there = [at for at, value in valued if extreme * value == most]
    left = len(rows) - len(valued)
    only = f", of the {len(valued)} rows of {len(rows)} that have a number there" if left else ""
    spots = tuple(Spot(grid.cells[at][0], box) for at in there if (box := grid.boxes[at][0]))
    return Said("; ".join(f"{grid.cells[at][0]} ({grid.cells[at][column]})" for at in there) + only, spots)


def rowed(asked: Asked) -> Said | None:
    """All that a row says, where nothing but its name is asked for."""
    wanted = [word for word in words(asked.low) if word not in STOP]
    if not re.match(r"(?:what|which|(?:(?:the|a|my|our|and) )?\S+$)", asked.low) or not wanted:
        return None
    there = [
        (grid, at) for grid in grids(asked.seen) if grid.headed
        for at, name in enumerate(grid.names()) if words(name) == wanted
    ]  # fmt: skip
    if len(there) != 1:
        return None
    (grid, row), *_ = there
    said = [grid.said(row, at) for at, text in enumerate(grid.cells[row]) if at and text]
    told = [each for each in said if each and each.spots]
    return Said("; ".join(each.text for each in told), tuple(each.spots[0] for each in told)) if told else None


def row_of(asked: Asked) -> Said | None:
    """The one row, or line, with a name that is asked for, where what is asked of it is a word that nothing says."""
    strange = [word for word in asked.strangers(asked.low, TALK) if not re.search(r"\d", word)]
    wanted = {key(word) for word in asked.low.split() if re.search(r"\d", word) and len(key(word)) > 3}
    if not strange or not wanted:
        return None
    rows = [row for grid in grids(asked.seen) if not grid.headed for row in zip(grid.cells, grid.boxes, strict=True)]
    held = {cell for grid in grids(asked.seen) for row in grid.cells for cell in row}
    rows += [((line.text,), (line.box,)) for line in asked.seen.lines if line.text not in held]
    there = [(cells, boxes) for cells, boxes in rows if wanted & {key(word) for cell in cells for word in cell.split()}]
    if len(there) != 1:
        return None
    cells, boxes = there[0]
    row = " | ".join(filter(None, cells))
    if key(row) in wanted:
        return None  # it says no more than the question
    return Said(
        f'Nothing that was read says "{strange[0]}"; where it is spoken of, it says: "{row}"',
        (Spot(row, union(box for box in boxes if box)),),
    )
