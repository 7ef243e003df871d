"""Tables whose cells are drawn: they are cells, and neither buttons nor fields."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box
from sightline.reader.examine import examine_image
from sightline.reader.reading import ImageReading, InterfacePart
from sightline.reader.rectangles import enclose_boxes
from sightline.reader.tables import fill_cell_grid, find_cell_grids, read_tables
from tests.reader.screens import WHITE, line
from tests.reader.sketch import Sketch

ROWS = (
    ("Item", "Owner", "Planned", "Spent"),
    ("Laptops", "Sofia", "12,000", "9,450"),
    ("Licences", "Marek", "4,800", ""),
    ("Travel", "Sofia", "6,500", "7,120"),
)


def sheet(gap: int = 0) -> ImageReading:
    """Draw a table with a rule around every cell, or buttons with gaps between them, and a button below."""
    sketch = Sketch()
    for (y, row), x in product(enumerate(ROWS), range(4)):
        left, top = 40 + 130 * x, 60 + 30 * y
        sketch.pen.rectangle((left, top, left + 130 - gap, top + 30 - gap), "#ffffff", "#a0a0a0")
        if row[x]:
            sketch.write(left + 8, top + 15, row[x])
    sketch.box((40, 300, 160, 334), "#0067c0", radius=5)
    sketch.write(100, 317, "Save", 14, "#ffffff", "mm")
    return examine_image(sketch.pixels, sketch.lines)


def test_a_ruled_table_is_read_by_row_and_its_cells_are_not_parts() -> None:
    seen = sheet()
    assert [part.kind for part in seen.parts] == ["button"]
    head, *rows = [f"| {' | '.join(row)} |" for row in ROWS]
    assert seen.text.splitlines()[:5] == [head, "|---|---|---|---|", *rows]
    (table,) = read_tables(seen)
    assert table.get_heads() == ROWS[0]
    assert table.body == ROWS[1:]


def test_boxes_with_a_gap_between_them_are_separate_parts() -> None:
    assert len(sheet(gap=8).parts) == 17


def test_a_head_over_two_columns_is_a_cell_of_its_table() -> None:
    cells = [InterfacePart("panel", Box(100 + 80 * x, 100 + 40 * y, 81, 41), WHITE) for x in range(4) for y in range(3)]
    heads = [InterfacePart("button", Box(100 + 160 * x, 70, 161, 31), WHITE) for x in range(2)]
    chip = InterfacePart("panel", Box(104, 130, 72, 9), WHITE)
    (lattice,) = find_cell_grids([*cells, *heads, chip])
    assert lattice.cells == frozenset(range(14))
    assert lattice.box == Box(100, 70, 321, 151)
    lines = [line("2023", 150, 80), line("410", 110, 112), line("398", 190, 112), line("97", 350, 190)]
    table = fill_cell_grid(lattice, lines)
    assert table is not None
    assert table.rows == (((0,), (), ()), ((1,), (2,), ()), ((), (), (3,)))


def test_tabs_stacked_fields_and_split_windows_are_not_tables() -> None:
    tabs = [InterfacePart("button", Box(80 * x, 0, 81, 30), WHITE) for x in range(8)]
    stack = [InterfacePart("field", Box(0, 100 + 40 * y, 300, 41), WHITE) for y in range(8)]
    quarters = [
        InterfacePart("panel", Box(400 + 200 * x, 100 + 200 * y, 201, 201), WHITE) for x in range(2) for y in range(2)
    ]
    assert find_cell_grids([*tabs, *stack, *quarters]) == ()


boxes = st.builds(Box, *(st.integers(0, 40) for _ in range(2)), *(st.integers(1, 20) for _ in range(2)))


@given(
    st.lists(
        st.builds(InterfacePart, st.sampled_from(("field", "button", "check")), boxes, st.just(WHITE)), max_size=40
    )
)
def test_a_table_always_encloses_its_cells(parts: list[InterfacePart]) -> None:
    for lattice in find_cell_grids(parts):
        assert len(lattice.cells) >= 6
        assert enclose_boxes(parts[at].box for at in lattice.cells) == lattice.box
