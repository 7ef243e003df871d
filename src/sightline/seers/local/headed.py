"""Tables with their heads, which may stand on a ground of their own and are then found apart."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.model.geometry import Box
from sightline.seers.local.boxes import in_row, overlap_across, union
from sightline.seers.local.phrases import begins_value
from sightline.seers.local.seen import Seen, Table


def tables(seen: Seen) -> list[Table]:
    """The tables, each with its heads: where they stand on a ground of their own, they are found apart."""
    return [_headed(_untitled(table), seen) for table in seen.tables]


def _untitled(table: Table) -> Table:
    """Without a first row of one cell over several columns: that is a title."""
    wide = max(map(len, table.rows), default=0) > 2 and len(table.rows) > 2
    return Table(table.box, table.rows[1:]) if wide and sum(map(bool, table.rows[0])) == 1 else table


def _headed(table: Table, seen: Seen) -> Table:
    held = {at for row in table.rows for cell in row for at in cell}
    if not table.rows or not any(begins_value(cell_text(seen, cell)) for cell in table.rows[0]):
        return table  # its first row is no row of values
    height = max(seen.lines[at].box.height for at in held)
    above = [
        at for at, line in enumerate(seen.lines)
        if at not in held and 0 <= table.box.y - line.box.bottom <= 3 * height
        and table.box.x - height <= line.box.x < table.box.right
    ]  # fmt: skip
    last = max(above, key=lambda at: seen.lines[at].box.bottom, default=None)
    row = [at for at in above if last is not None and in_row(seen.lines[at].box, seen.lines[last].box)]
    heads = tuple(tuple(at for at in row if overlap_across(seen.lines[at].box, span)) for span in _spans(table, seen))
    if sum(map(bool, heads)) < max(2, len(heads) / 2):
        return table
    return Table(union([table.box, *(seen.lines[at].box for at in row)]), (heads, *table.rows))


def _spans(table: Table, seen: Seen) -> list[Box]:
    """The rectangle around each column."""
    columns = range(max(map(len, table.rows)))
    cells = [[at for row in table.rows if column < len(row) for at in row[column]] for column in columns]
    return [union(seen.lines[at].box for at in cell) if cell else Box(0, 0, 0, 0) for cell in cells]


def cell_text(seen: Seen, cell: Sequence[int]) -> str:
    return " ".join(seen.lines[at].text for at in cell)
