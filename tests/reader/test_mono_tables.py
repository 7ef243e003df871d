"""Tables in letters of one width, as programs in terminals show them."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import ImageFont

from sightline.model.geometry import Box
from sightline.reader.examine import examine_image
from sightline.reader.reading import ImageReading, TextLine
from sightline.reader.tables import join_cell
from tests.reader.sketch import Sketch
from tests.requirements import requirement

LETTER, PITCH, LEFT, TOP = 10, 20, 20, 30  # pixels
STARTS = (0, 16, 32)  # columns of characters where cells begin
CITIES = (
    ("Country", "Capital", "Code"),
    ("South Sudan", "Juba", "SSD"),
    ("France", "Paris", "FRA"),
    ("Guernsey", "St. Peter Port", "GGY"),
    ("Ivory Coast", "Yamoussoukro", "CIV"),
    ("Zimbabwe", "Harare", "ZWE"),
)


def write_letters(sketch: Sketch, column: int, row: int, text: str, ink: str) -> TextLine:
    """Draw letters that are equally wide from a column of a row, and return their line."""
    left, middle = LEFT + LETTER * column, TOP + PITCH * row
    font = ImageFont.load_default(13)
    for at, letter in enumerate(text):
        sketch.pen.text((left + LETTER * (at + 0.5), middle), letter, ink, font, "mm")
    box = Box(left + 1, middle - 7, LETTER * len(text) - 2, 14)
    return TextLine(text, box, middles=(left + LETTER / 2, left + LETTER * (len(text) - 0.5)))


def draw_screen(rows: Sequence[Sequence[str]], bars: Sequence[int] = (), *, joined: bool = False) -> Sketch:
    """Draw rows on a dark ground, those in `bars` on another; each row is read as one line if they are `joined`."""
    sketch = Sketch((560, 220), "#181818")
    for at, row in enumerate(rows):
        if at in bars:
            sketch.box((0, TOP + PITCH * (at - 0.5), 560, TOP + PITCH * (at + 0.5)), "#5f0087")
        ink = "#ffffff" if at in bars else "#d0d0d0"
        own = [write_letters(sketch, *cell, ink=ink) for cell in list_places(row, at)]
        if joined:
            text = "".join(cell.ljust(STARTS[1]) for cell in row).rstrip()
            box = Box(own[0].box.x, own[0].box.y, own[-1].box.right - own[0].box.x, 14)
            own = [TextLine(text, box, middles=(LEFT + LETTER / 2, LEFT + LETTER * (len(text) - 0.5)))]
        sketch.lines += own
    return sketch


def list_places(row: Sequence[str], at: int) -> list[tuple[int, int, str]]:
    return [(column, at, text) for column, text in zip(STARTS, row, strict=True) if text]


def list_tables(reading: ImageReading) -> list[list[tuple[str, ...]]]:
    return [[tuple(join_cell(reading, cell) for cell in row) for row in table.rows] for table in reading.tables]


@requirement("reader.mono")
def test_columns_below_a_bar_with_heads_are_a_table_with_its_selected_row() -> None:
    sketch = draw_screen(CITIES, bars=(0, 3))
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [list(CITIES)]
    assert reading.code == ()


@requirement("reader.mono")
def test_rows_that_were_read_as_one_line_are_split_at_their_columns() -> None:
    sketch = draw_screen(CITIES, bars=(0,), joined=True)
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [list(CITIES)]


@requirement("reader.mono")
def test_columns_below_heads_that_look_the_same_are_a_listing() -> None:
    sketch = draw_screen(CITIES)
    reading = examine_image(sketch.pixels, sketch.lines)
    assert reading.tables == ()
    assert len(reading.code) == 1


@requirement("reader.mono")
def test_columns_in_a_text_with_other_lines_are_no_table() -> None:
    rows = (*CITIES[:3], ("Two more rows a", "re not shown now", " again."), *CITIES[3:])
    sketch = draw_screen(rows, bars=(0,))
    reading = examine_image(sketch.pixels, sketch.lines)
    assert reading.tables == ()
