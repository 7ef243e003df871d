"""Tables without lines, whose rows begin their cells at the same places."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from PIL import ImageFont

from sightline.model.geometry import Box
from sightline.reader.examine import examine_image
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import enclose_boxes
from sightline.reader.table_columns import LineWords, find_columns
from sightline.reader.table_finder import RowBlock, make_candidate
from tests.reader.sketch import Sketch
from tests.reader.test_ruled_tables import list_tables
from tests.requirements import requirement

ROWS = (
    ("Haley Kennedy", "Senior Designer", "London", "43"),
    ("Michael Silva", "Marketing", "San Francisco", "66"),
    ("Paul Byrd", "Finance", "New York", "64"),
    ("Gloria Little", "Administrator", "Edinburgh", "59"),
    ("Bradley Greer", "Engineer", "San Francisco", "41"),
    ("Dai Rios", "Personnel Lead", "Tokyo", "35"),
)
PLACES = (40, 150, 270, 362)


def draw_rows(places: tuple[int, ...] = PLACES) -> Sketch:
    sketch = Sketch((640, 320))
    for at, row in enumerate(ROWS):
        for x, text in zip(places, row, strict=True):
            sketch.write(x, 60 + 26 * at, text)
    return sketch


@requirement("reader.aligned")
def test_cells_that_begin_at_the_same_places_are_a_table() -> None:
    sketch = draw_rows()
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in ROWS]]


@requirement("reader.aligned")
def test_a_row_that_was_read_as_one_line_is_split_at_its_cells() -> None:
    sketch = draw_rows()
    at = 4 * len(PLACES)
    box: Box = enclose_boxes(line.box for line in sketch.lines[at : at + 4])
    sketch.lines[at : at + 4] = [TextLine("Bradley Greer Engineer San Francisco 41", box)]
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in ROWS]]


@requirement("reader.aligned")
def test_columns_of_links_with_wide_blanks_are_no_table() -> None:
    sketch = Sketch((900, 320))
    for at, row in enumerate(ROWS):
        for x, text in zip((40, 340, 640), row, strict=False):
            sketch.write(x, 60 + 26 * at, text)
    assert examine_image(sketch.pixels, sketch.lines).tables == ()


@requirement("reader.aligned")
def test_columns_that_nearly_touch_are_told_by_where_their_cells_begin() -> None:
    sketch = Sketch((640, 320))
    rows = (
        ("Office", "Age"),
        ("San Francisco", "66"),
        ("Edinburgh", "61"),
        ("Tokyo", "63"),
        ("London", "59"),
        ("Oslo", "41"),
    )
    wide = 40 + 82
    for at, row in enumerate(rows):
        sketch.write(40, 60 + 26 * at, row[0])
        sketch.write(wide + 6, 60 + 26 * at, row[1])
        sketch.write(wide + 60, 60 + 26 * at, f"${at + 1},{at}20")
    reading = examine_image(sketch.pixels, sketch.lines)
    assert [[row[:2] for row in table] for table in list_tables(reading)] == [[list(row) for row in rows]]


@requirement("reader.aligned")
def test_words_of_one_line_are_one_column_unless_the_blank_is_wide() -> None:
    def place(blank: int, last: int) -> list[list[tuple[int, int, int]]]:
        return [[(10, 30, at), (30 + blank, 60 + blank, at + last)] for at in range(8)]

    assert len(find_columns(place(10, 0), 10.0)) == 1
    assert len(find_columns(place(10, 9), 10.0)) == 2
    assert len(find_columns(place(20, 0), 10.0)) == 2


@requirement("reader.aligned")
def test_a_head_tells_a_narrow_blank_between_columns_from_one_between_words() -> None:
    body = [[(10, 50, at), (55, 80, at)] for at in range(1, 9)]
    assert len(find_columns([[(10, 50, 0), (55, 70, 0)], *body], 10.0)) == 1
    assert len(find_columns([[(10, 20, 0), (26, 51, 0), (54, 90, 0)], *body], 10.0)) == 2


@requirement("reader.aligned")
def test_bold_heads_in_the_middle_of_their_columns_belong_to_the_table() -> None:
    sketch = draw_rows()
    heads = ("Name", "Occupation", "Town", "Age")
    for x, right, text in zip(PLACES, (*PLACES[1:], 390), heads, strict=True):
        sketch.write((x + right) / 2 - 6, 34, text, anchor="mm")
        sketch.pen.text(((x + right) / 2 - 5, 34), text, sketch.ink, ImageFont.load_default(13), "mm")
    reading = examine_image(sketch.pixels, sketch.lines)
    assert list_tables(reading) == [[list(row) for row in (heads, *ROWS)]]


@requirement("reader.aligned")
def test_texts_above_that_head_no_column_are_not_in_the_table() -> None:
    sketch = draw_rows()
    for x, text in ((40, "Export"), (560, "Search")):
        sketch.write(x, 34, text)
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [[list(row) for row in ROWS]]


@requirement("reader.aligned")
def test_an_amount_of_money_after_another_value_begins_a_column() -> None:
    dates = [f"2012/0{at}/18 $3{at},500" for at in range(1, 7)]
    words = [f"About day{at} in 500xy" for at in range(1, 7)]
    rows = [[(40, 120, at), (124, 188, at)] for at in range(len(dates))]
    for texts, columns in ((dates, 2), (words, 1)):
        lines = [TextLine(text, Box(40, 20 + 26 * at, 148, 12)) for at, text in enumerate(texts)]
        assert len(find_columns(rows, 12.0, LineWords(Sketch().pixels, lines))) == columns


@requirement("reader.aligned")
def test_a_word_in_few_rows_after_an_ordinary_blank_is_in_the_cell_before_it() -> None:
    rows = [[(10, 60, at), (200, 220, at + 20)] for at in range(10)]
    rows[3] = [(10, 110, 3), (116, 140, 3), (200, 220, 23)]
    rows[7] = [(10, 110, 7), (116, 140, 7), (200, 220, 27)]
    assert find_columns(rows, 10.0) == [(10, 140), (200, 220)]


@requirement("reader.aligned")
def test_letters_of_a_spaced_head_do_not_tell_columns() -> None:
    body = [[(10, 31, at), (35, 48, at)] for at in range(1, 9)]
    assert len(find_columns([[(10, 15, 0), (17, 23, 0), (25, 31, 0), (33, 38, 0)], *body], 10.0)) == 1


@requirement("reader.aligned")
def test_a_head_without_texts_below_it_has_a_column_of_its_own() -> None:
    sketch = draw_rows((40, 150, 270, 460))
    heads = ("Name", "Occupation", "Town", "Progress", "Age")
    for x, text in zip((40, 150, 270, 380, 460), heads, strict=True):
        sketch.write(x, 34, text)
    (table,) = list_tables(examine_image(sketch.pixels, sketch.lines))
    assert table == [list(heads), *([*row[:3], "", row[3]] for row in ROWS)]


@requirement("reader.aligned")
def test_words_below_one_head_are_one_column_though_they_are_equally_wide() -> None:
    body = [[(10, 30, at), (35, 60 + at % 3 * 3, at), (120, 150, at + 20)] for at in range(1, 9)]
    for head, columns in (([(10, 40, 0), (120, 140, 20)], 2), ([(10, 25, 0), (36, 58, 0), (120, 140, 20)], 3)):
        assert len(find_columns([head, *body], 10.0)) == columns


STATIONS = (
    ("Station", "Opened", "Platforms", "Daily users"),
    ("Haarlem", "1839", "6", "39,400"),
    ("Estoril", "1889", "2", "9,850"),
    ("Delft", "1847", "4", "36,100"),
    ("Fribourg", "1862", "5", "31,200"),
)


def draw_tight_rows(blank: int = 1) -> Sketch:
    """Draw rows whose columns are as wide as their heads, a few pixels apart; some cells are read as one line."""
    sketch = Sketch((640, 320))
    font = ImageFont.truetype("DejaVuSans.ttf", 13)
    widths = [max(font.getlength(row[at]) for row in STATIONS) for at in range(4)]
    for y, row in enumerate(STATIONS):
        x, first = 40.0, len(sketch.lines)
        for text, width in zip(row, widths, strict=True):
            sketch.write(round(x), 60 + 20 * y, text)
            x += width + blank
        joined = {0: 4, 1: 2, 4: 2}.get(y, 1)
        box = enclose_boxes(line.box for line in sketch.lines[first : first + joined])
        sketch.lines[first : first + joined] = [TextLine(" ".join(row[:joined]), box)]
    return sketch


@requirement("reader.aligned")
def test_heads_that_were_read_as_one_line_are_above_their_columns() -> None:
    sketch = draw_tight_rows()
    sketch.write(480, 60, "Another card")
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [[list(row) for row in STATIONS]]


@requirement("reader.aligned")
def test_a_table_is_not_divided_within_its_numbers() -> None:
    sketch = Sketch((640, 320))
    rows = [(f"2009-07-{day}", f"{day}.{day + 3}") for day in range(10, 18)]
    for at, row in enumerate((("Day", "Closed"), *rows)):
        for x, text in zip((40, 200), row, strict=True):
            sketch.write(x, 40 + 26 * at, text)
    words = LineWords(sketch.pixels, sketch.lines)
    assert not words.may_divide(5, sketch.lines[5].box.x + sketch.lines[5].box.width / 2)
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [[["Day", "Closed"], *map(list, rows)]]


@requirement("reader.aligned")
def test_a_head_over_a_blank_is_above_one_column() -> None:
    def count_columns(head: str, end: int) -> int:
        lines = [TextLine(head if at == 0 else "May Oct 13", Box(20, 20 * at, 80, 10)) for at in range(12)]
        words = LineWords(np.zeros((240, 200, 3), np.uint8), lines)
        body = [[(20, 40, at), (60, 78, at), (86, 98, at)] for at in range(1, 12)]
        return len(find_columns([[(20, 45, 0), (60, end, 0), (end + 4, 102, 0)], *body], 10.0, words))

    assert count_columns("Name Age Start", 84) == 3
    assert count_columns("Name Modified on", 92) == 2
    assert count_columns("Name 2 2013$5", 92) == 3


@requirement("reader.aligned")
def test_round_letters_of_a_large_text_begin_at_one_place_with_straight_ones() -> None:
    rows = [[(20 + 5 * at, 100, at), (116 + 4 * (at % 3 == 1), 150 + 12 * (at % 4), at)] for at in range(9)]
    assert len(find_columns(rows, 30.0)) == 2
    assert len(find_columns([[(20, 100, at), other] for at, (_, other) in enumerate(rows)], 30.0)) == 1
    assert len(find_columns(rows[:3], 30.0)) == 1
    dates = [[(20, 100, at), (116 + 4 * (at % 3 == 1), 150, at)] for at in range(1, 9)]
    assert len(find_columns([[(66, 100, 0), (116, 190, 0)], *dates], 30.0)) == 1


@requirement("reader.aligned")
def test_dates_whose_digits_are_equally_wide_are_no_terminal() -> None:
    sketch = Sketch((640, 320))
    rows = [("Paul", f"2009-07-{day}", f"${day},{day + 3}0") for day in range(10, 18)]
    for at, row in enumerate(rows):
        for x, text in zip((40, 140, 260), row, strict=True):
            sketch.write(x, 40 + 26 * at, text)
    dates = {at: line for at, line in enumerate(sketch.lines) if at % 3 == 1}
    for at, line in dates.items():
        sketch.lines[at] = replace(line, box=Box(line.box.x, line.box.y, 70, line.box.height))
    block = RowBlock(tuple((at, at + 1, at + 2) for at in range(0, 3 * len(rows), 3)))
    assert make_candidate(LineWords(sketch.pixels, sketch.lines), block, 10.0)
    for at in dates:
        sketch.lines[at] = replace(sketch.lines[at], middles=(143.5, 206.5))
    assert make_candidate(LineWords(sketch.pixels, sketch.lines), block, 10.0) is None


@requirement("reader.aligned")
def test_names_that_end_at_one_place_are_in_rows_of_their_own() -> None:
    sketch = Sketch((640, 320))
    rows = [
        ["annotation:", "left out"],
        ["at:", "where it is"],
        ["drawing:", "the reference"],
        ["event:", "of a mouse"],
    ]
    for at, (name, text) in enumerate(rows):
        sketch.write(140, 40 + 16 * at, name, anchor="rm")
        sketch.write(150, 40 + 16 * at, text)
    assert list_tables(examine_image(sketch.pixels, sketch.lines)) == [rows]
