"""Tables whose columns have lines between them, and whose cells have several lines."""

from __future__ import annotations

from itertools import pairwise

import pytest

from sightline.model.geometry import Box
from sightline.reader.cell_edges import CellEdges
from sightline.reader.examine import examine_image
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import enclose_boxes
from sightline.reader.regions import ColourRegion
from tests.reader.sketch import Sketch
from tests.reader.test_ruled_tables import list_tables
from tests.requirements import requirement

PLACES = (40, 160, 250)
ROWS = (
    ("Order", "Growth", "Owner"),
    ("INV-0027", "26.3%", "Ferdinand Kim"),
    ("INV-0769", "14.8%", "Nora Ueda"),
    ("INV-0462", "49.8%", "Diego Ueda"),
    ("INV-0210", "75.6%", "Hugo Quinn"),
)


def draw_grid() -> Sketch:
    """Draw a table with lines around all cells; the text of one column ends where the next one begins."""
    sketch = Sketch((480, 300))
    for at in range(len(ROWS) + 1):
        sketch.box((30, 40 + 36 * at, 440, 41 + 36 * at), "#c0c0c0")
    for x in (30, 148, 244, 439):
        sketch.box((x, 40, x + 1, 40 + 36 * len(ROWS)), "#c0c0c0")
    for at, row in enumerate(ROWS):
        for x, text in zip(PLACES, row, strict=True):
            sketch.write(x, 58 + 36 * at, text)
    return sketch


@requirement("reader.rules")
def test_texts_on_both_sides_of_a_line_are_in_two_columns_though_read_as_one() -> None:
    sketch = draw_grid()
    for row in reversed(range(1, len(ROWS))):
        texts = ROWS[row][1:]
        at = len(PLACES) * row + 1
        box = enclose_boxes(line.box for line in sketch.lines[at : at + 2])
        sketch.lines[at : at + 2] = [TextLine("".join(texts), box)]
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in ROWS]]


def test_lines_between_cells_are_where_most_rows_have_cells_that_touch() -> None:
    rows = [Box(10, 10 + 30 * at, 180, 12) for at in range(3)]
    cells = [
        ColourRegion(Box(x, 2 + 30 * at, 99, 29), (255, 255, 255), 99 * 29, 1.0, 1.0)
        for at in range(3) for x in (0, 100) if at or not x
    ]  # fmt: skip
    assert CellEdges(cells).find_bars(rows, 12) == [(99, frozenset({1, 2}))]
    assert CellEdges().find_bars(rows, 12) == []


@requirement("reader.rules")
def test_a_cell_in_the_middle_of_its_row_is_beside_the_two_lines_of_the_next_cell() -> None:
    sketch = Sketch((700, 560))
    people = (
        ("Diego Abbott", "Vera Garcia"), ("Ada Jansen", "Hugo Rossi"), ("Elif Haddad", "Lena Fischer"),
        ("Farid Tanaka", "Kaya Ivanov"), ("Rosa Vargas", "Oskar Ueda"), ("Grace Kim", "Quentin Moreau"),
    )  # fmt: skip
    sketch.write(50, 40, "Owner", ink="#8a8a8a")
    sketch.write(340, 40, "Member", ink="#8a8a8a")
    for at, (owner, member) in enumerate(people):
        top = 60 + 75 * at
        sketch.box((30, top, 670, top + 1), "#dee2e6")
        sketch.write(50, top + 38, owner)
        sketch.write(340, top + 25, member)
        sketch.write(340, top + 51, f"{member.split()[0].lower()}@example.com")
    sketch.box((30, 510, 670, 511), "#dee2e6")
    found = list_tables(examine_image(sketch.pixels, sketch.lines))
    assert found == [
        [["Owner", "Member"], *([owner, f"{who} {who.split()[0].lower()}@example.com"] for owner, who in people)]
    ]


@requirement("reader.aligned")
@pytest.mark.parametrize("mark", [":", ""])
def test_names_that_end_with_a_colon_and_their_values_are_a_table(mark: str) -> None:
    sketch = Sketch((640, 320))
    values = (
        ("Author", "Engelbert Gruber"), ("Contact", "docutils at example"), ("Licence", "Public Domain"),
        ("Status", "Experimental"), ("Copyright", "Everybody"),
    )  # fmt: skip
    for at, (name, value) in enumerate(values):
        sketch.write(40, 60 + 24 * at, name + mark)
        sketch.write(150, 60 + 24 * at, value)
    found = list_tables(examine_image(sketch.pixels, sketch.lines))
    assert found == ([[[f"{name}:", value] for name, value in values]] if mark else [])


@requirement("reader.rules")
def test_a_narrow_column_of_numbers_on_another_ground_belongs_to_the_table() -> None:
    sketch = Sketch((520, 300))
    rows = (("", *ROWS[0]), *((str(at + 1), *row) for at, row in enumerate(ROWS[1:])))
    edges = (30, 56, 180, 280, 440)
    for at, row in enumerate(rows):
        for (left, right), text in zip(pairwise(edges), row, strict=True):
            ground = "#f3f3f3" if left == edges[0] or not at else "#ffffff"
            sketch.box((left + 1, 40 + 26 * at, right, 65 + 26 * at), ground)
            sketch.box((left, 65 + 26 * at, right - 1, 66 + 26 * at), "#cccccc")
            if text:
                sketch.write((left + right) / 2, 53 + 26 * at, text, anchor="mm")
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [list(map(list, rows))]
