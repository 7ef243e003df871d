"""Tables whose rows are separated by lines or backgrounds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.geometry import Box, Size
from sightline.reader.examine import examine_image
from sightline.reader.headings import find_titles
from sightline.reader.reading import ImageReading, InterfacePart, TextLine
from sightline.reader.tables import join_cell
from tests.reader.screens import line
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


@requirement("reader.rules")
def test_tables_below_each_other_with_a_blank_between_are_two_tables() -> None:
    sketch = Sketch((700, 500))
    for start in (20, 260):
        for at, row in enumerate(ROWS):
            top = start + 44 * at
            if at < len(ROWS) - 1:
                sketch.box((160, top + 43, 660, top + 44), "#dee2e6")
            for x, text in zip((176, 340, 500), row, strict=True):
                sketch.write(x, top + 22, text)
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in ROWS]] * 2


@requirement("reader.rules")
def test_a_row_whose_other_cells_have_icons_stays_in_its_table() -> None:
    sketch = Sketch((700, 360))
    rows = (("Plan", "Free", "Team"), ("Users", "3", "50"), ("Backups",), ("Support",), ("Price", "$0", "$49"))
    for at, row in enumerate(rows):
        sketch.box((160, 83 + 44 * at, 660, 84 + 44 * at), "#dee2e6")
        for x, text in zip((176, 340, 500), row, strict=False):
            sketch.write(x, 62 + 44 * at, text)
    (table,) = list_tables(examine_image(sketch.pixels, sketch.lines))
    assert [[cell for cell in row if cell] for row in table] == [list(row) for row in rows]


@requirement("reader.rules")
def test_a_list_with_counts_is_no_table() -> None:
    sketch = Sketch((500, 320))
    for at, (name, count) in enumerate((("Inbox", "12"), ("Drafts", "3"), ("Sent", "128"), ("Spam", "7"))):
        sketch.box((40, 83 + 44 * at, 440, 84 + 44 * at), "#dee2e6")
        sketch.write(56, 62 + 44 * at, name)
        sketch.write(420, 62 + 44 * at, count, anchor="rm")
    assert examine_image(sketch.pixels, sketch.lines).tables == ()


@requirement("reader.window")
def test_a_bar_below_another_bar_is_no_title_bar() -> None:
    sketch = Sketch((700, 500), "#e8e8e8")
    sketch.box((40, 40, 540, 80), "#3883fa")
    sketch.write(60, 60, "Tree", ink="#ffffff")
    sketch.box((40, 80, 540, 108), "#d0d0d0")
    sketch.write(52, 94, "Select a node")
    sketch.box((40, 108, 540, 460), "#ffffff")
    sketch.write(60, 140, "object")
    assert find_titles(examine_image(sketch.pixels, sketch.lines)).bar is None


@requirement("reader.rules")
def test_a_table_whose_rows_are_numbered_is_no_program() -> None:
    sketch = Sketch((700, 320))
    names = ("Ada", "Grace", "Edsger", "Barbara", "Donald")
    rows = (("#", "Name", "Salary"), *((str(at + 1), name, f"${at + 3}6,738") for at, name in enumerate(names)))
    for at, row in enumerate(rows):
        sketch.box((40, 83 + 44 * at, 660, 84 + 44 * at), "#dee2e6")
        for x, text in zip((56, 200, 420), row, strict=True):
            sketch.write(x, 62 + 44 * at, text)
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in rows]]


@requirement("reader.rules")
def test_a_row_across_the_columns_at_the_end_is_left_out() -> None:
    sketch = draw_table("lines")
    sketch.write(176, 40 + 44 * 4 + 22, "Showing 3 of 12 authors and readers, page 1")
    sketch.write(620, 40 + 44 * 4 + 22, "Next")
    sketch.box((160, 40 + 44 * 4 + 43, 660, 40 + 44 * 4 + 44), "#dee2e6")
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in ROWS]]


@requirement("reader.rules")
def test_the_days_of_a_month_are_no_table() -> None:
    sketch = Sketch((500, 320))
    for week in range(5):
        sketch.box((40, 63 + 36 * week, 440, 64 + 36 * week), "#dee2e6")
        for day in range(7):
            sketch.write(60 + 56 * day, 46 + 36 * week, str(7 * week + day + 1) if week < 4 else str(day + 29))
    assert examine_image(sketch.pixels, sketch.lines).tables == ()


@requirement("reader.window")
def test_the_head_of_a_card_on_a_page_is_no_title_bar() -> None:
    bar = InterfacePart("bar", Box(100, 150, 400, 34), (248, 249, 252), (1,))
    card = InterfacePart("panel", Box(100, 184, 400, 206), (255, 255, 255), (2,))
    lines = (line("Dashboard", 20, 20), line("Bar chart", 114, 160), line("Orders of the week", 120, 240))
    page = ImageReading(Size(800, 600), lines, parts=(bar, card))
    assert find_titles(page).bar is None
    assert find_titles(replace(page, lines=(lines[2], *lines[1:]))).bar == lines[1]
    assert find_titles(replace(page, icons=(Box(478, 162, 10, 10),))).bar == lines[1]


@requirement("reader.rules")
def test_a_title_in_the_band_of_the_heads_is_not_in_their_cells() -> None:
    sketch = Sketch((700, 360))
    sketch.box((160, 10, 660, 11), "#dee2e6")
    sketch.write(176, 26, "Members of the project")
    sketch.write(176, 44, "All of them since the first year")
    for at, row in enumerate(ROWS):
        top = 56 + 44 * at
        sketch.box((160, top + 43, 660, top + 44), "#dee2e6")
        for x, text in zip((176, 340, 500), row, strict=True):
            sketch.write(x, top + 22, text)
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [[list(row) for row in ROWS]]


@requirement("reader.rules")
def test_a_first_row_with_several_lines_in_a_cell_belongs_to_the_table_below_it() -> None:
    sketch = Sketch((700, 360))
    for at, row in enumerate(ROWS):
        top = 40 + 44 * at
        sketch.box((160, top + 43, 660, top + 44), "#dee2e6")
        for x, text in zip((176, 340, 500), row, strict=True):
            if at or x != 340:
                sketch.write(x, top + 22, text)
    sketch.write(340, 55, "Role in")
    sketch.write(340, 68, "the project")
    heads = ["Name", "Role in the project", "Since"]
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [[heads, *map(list, ROWS[1:])]]


@requirement("reader.rules")
def test_rows_without_lines_beside_a_selected_one_are_rows_of_their_own() -> None:
    sketch = Sketch((700, 320))
    rows = (*ROWS, ("Alan", "Author", "August"))
    for at, row in enumerate(rows):
        if at in (0, 3, 4):
            sketch.box((160, 40 + 30 * at, 660, 70 + 30 * at), "#d0e0f0" if at != 4 else "#e8f0f8")
        for x, text in zip((176, 340, 500), row, strict=True):
            sketch.write(x, 55 + 30 * at, text)
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [list(map(list, rows))]


@requirement("reader.rules")
def test_heads_of_two_lines_that_are_higher_than_the_rows_below_belong_to_the_table() -> None:
    sketch = Sketch((700, 360))
    sketch.write(160, 20, "Members", size=18)
    for at, row in enumerate(ROWS):
        top = 60 + 26 * at
        sketch.box((160, top + 25, 660, top + 26), "#dee2e6")
        for x, text in zip((176, 340, 500), row, strict=True):
            if at or x != 340:
                sketch.write(x, top + 13 - 6 * (at == 0), text)
    sketch.write(340, 59, "Role in")
    sketch.write(340, 74, "the project")
    heads = ["Name", "Role in the project", "Since"]
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [[heads, *map(list, ROWS[1:])]]
