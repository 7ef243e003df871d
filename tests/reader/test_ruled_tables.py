"""Tables whose rows are separated by lines or backgrounds."""

from __future__ import annotations

import pytest

from sightline.model.geometry import Box
from sightline.reader.examine import examine_image
from sightline.reader.page_text import find_titles
from sightline.reader.reading import ImageReading, TextLine
from sightline.reader.tables import join_cell
from tests.reader.sketch import Sketch
from tests.requirements import requirement

ROWS = (("Name", "Role", "Since"), ("Ada", "Author", "May"), ("Grace", "Editor", "June"), ("Edsger", "Reader", "July"))


def draw_table(look: str) -> Sketch:
    """Draw four rows with lines between them, or on alternate backgrounds, beside a menu."""
    sketch = Sketch((700, 320))
    for at, name in enumerate(("Home", "Reports", "Settings")):
        sketch.write(20, 60 + 52 * at, name)
    for at, row in enumerate(ROWS):
        top = 40 + 44 * at
        if look == "lines":
            sketch.box((160, top + 43, 660, top + 44), "#dee2e6")
        elif at % 2:
            sketch.box((160, top, 660, top + 44), "#f2f2f2")
        for x, text in zip((176, 340, 500), row, strict=True):
            sketch.write(x, top + 22, text)
    return sketch


def list_tables(reading: ImageReading) -> list[list[list[str]]]:
    return [[[join_cell(reading, cell) for cell in row] for row in table.rows] for table in reading.tables]


@requirement("reader.rules")
@pytest.mark.parametrize("look", ["lines", "backgrounds"])
def test_rows_between_lines_or_on_backgrounds_are_a_table(look: str) -> None:
    sketch = draw_table(look)
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in ROWS]]
    assert [part.kind for part in reading.parts if part.kind in ("field", "button")] == []


@requirement("reader.rules")
def test_a_line_over_two_columns_is_split_between_them() -> None:
    sketch = draw_table("lines")
    at = next(place for place, line in enumerate(sketch.lines) if line.text == "Grace")
    first, second = sketch.lines[at], sketch.lines[at + 1]
    joined = Box(first.box.x, first.box.y, second.box.right - first.box.x, first.box.height)
    sketch.lines[at : at + 2] = [TextLine("Grace Editor", joined)]
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in ROWS]]


@requirement("reader.rules")
def test_texts_that_are_only_level_are_no_table() -> None:
    sketch = Sketch((700, 320))
    for at in range(4):
        for x, text in ((40, "About us"), (240, "Press"), (440, "Contact")):
            sketch.write(x, 60 + 40 * at, f"{text} {'abcd'[at]}")
    assert examine_image(sketch.pixels, sketch.lines).tables == ()


@requirement("reader.window")
def test_a_bar_at_the_top_of_a_page_is_no_title_bar() -> None:
    sketch = Sketch((640, 400), "#f4f6fa")
    sketch.box((0, 0, 640, 48), "#204060")
    sketch.write(20, 24, "Admin", ink="#ffffff")
    sketch.write(40, 100, "Dashboard", 22)
    sketch.write(40, 160, "Everything is fine")
    assert find_titles(examine_image(sketch.pixels, sketch.lines)).bar is None
