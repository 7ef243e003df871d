"""Programs and terminals that are told by letters of one width, without line numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sightline.model.geometry import Box
from sightline.reader.examine import examine_image
from sightline.reader.mono_areas import find_mono_areas
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import enclose_boxes
from tests.reader.sketch import Sketch
from tests.reader.statements import describe_reading, find_statement
from tests.requirements import requirement

PROGRAM = (
    "for name in names:",
    "    if name:",
    "        seen.append(name)",
    "",
    "",
    "def show_all(seen):",
    "    print(seen, sep=', ')",
    "}",
)
LISTING = (
    "drwxr-xr-x  2 ana  staff   4096 Jan 12 assets",
    "-rw-r--r--  1 ana  staff    812 Feb  3 Makefile",
    "-rw-r--r--  1 ana  staff  11024 Feb  3 README.md",
    "drwxr-xr-x 11 ana  staff   4096 Mar 21 src",
)
LETTER, PITCH, LEFT, TOP = 8, 20, 60, 40  # pixels


def write_line(text: str, row: int, left: float = LEFT) -> TextLine:
    """Return a line of equally wide letters at its column."""
    x = left + LETTER * (len(text) - len(text.lstrip()))
    own = text.strip()
    box = Box(round(x) + 1, TOP + PITCH * row, LETTER * len(own) - 2, 13)
    return TextLine(own, box, middles=(x + LETTER / 2, x + LETTER * (len(own) - 0.5)))


def write_rows(texts: Sequence[str], first: int = 0) -> list[TextLine]:
    return [write_line(text, first + at) for at, text in enumerate(texts) if text]


@requirement("reader.mono")
def test_a_program_without_line_numbers_is_one_area_to_its_last_bracket() -> None:
    prose = TextLine("The names are shown one by one, as they come.", Box(40, 5, 330, 14))
    after = TextLine("Everything else is in the manual of the tool.", Box(40, 260, 330, 14))
    program = write_rows(PROGRAM)
    assert find_mono_areas([prose, *program, after]) == [enclose_boxes(line.box for line in program)]


@requirement("reader.mono")
def test_a_program_keeps_its_columns_after_a_line_that_was_read_badly() -> None:
    program = write_rows(PROGRAM)
    bad = program[2]
    program[2] = TextLine("seen . append (name )", bad.box)
    reading = examine_image(Sketch((500, 260)).pixels, program)
    written = reading.text.splitlines()
    assert (written[0], written[-1]) == ("```", "```")
    starts = [(line.strip()[:4], len(line) - len(line.lstrip())) for line in written[1:-1] if line]
    assert starts == [("for ", 0), ("if n", 4), ("seen", 8), ("def ", 0), ("prin", 4), ("}", 0)]


@requirement("reader.mono")
def test_a_sign_that_is_high_or_low_is_in_the_row_of_its_line() -> None:
    rows = write_rows(["first = [1, 2, 3]", "* second point here", "third = [4, 5, 6]"])
    star, text = write_line("*", 1), write_line("  second point here", 1)
    high = TextLine("*", Box(star.box.x, star.box.y - 1, 6, 6), middles=star.middles)
    reading = examine_image(Sketch((500, 160)).pixels, [rows[0], high, text, rows[2]])
    assert "* second point here" in reading.text.splitlines()


@requirement("reader.mono")
def test_the_listing_of_a_terminal_is_no_table() -> None:
    rows = [line for at, text in enumerate(LISTING) for line in (write_line(text[:24], at), write_line(
        " " * 24 + text[24:], at))]  # fmt: skip
    sketch = Sketch((600, 160))
    for at in range(len(LISTING)):
        sketch.box((40, TOP + PITCH * at - 4, 560, TOP + PITCH * at - 3), "#dddddd")
    reading = examine_image(sketch.pixels, rows)
    assert reading.tables == ()
    assert reading.text.splitlines()[1:-1] == list(LISTING)


@requirement("reader.mono")
def test_a_column_of_a_table_in_letters_of_one_width_is_no_program() -> None:
    rows = []
    for at in range(6):
        rows.append(write_line(f"7f3a9c{at}", at))
        rows.append(TextLine("Merged a branch", Box(240, TOP + PITCH * at, 100, 13)))
    assert find_mono_areas(rows) == []


@requirement("reader.mono")
def test_text_beside_a_program_is_not_in_its_columns() -> None:
    menu = [write_line(text, at, left=60) for at, text in enumerate(["Overview", "Settings", "Reference"])]
    program = [write_line(text, at, left=208) for at, text in enumerate(PROGRAM) if text]
    areas = find_mono_areas([*menu, *program])
    assert enclose_boxes(line.box for line in program) in areas


@requirement("reader.mono")
def test_the_colour_of_a_line_in_a_terminal_is_reported() -> None:
    texts = (
        "$ make all the tests",
        "first of them passed",
        "second of them failed",
        "third of them passed",
        "$ exit 1",
    )
    sketch = Sketch((500, 160))
    rows = write_rows(texts)
    for row in rows:
        red = "failed" in row.text
        sketch.pen.text((row.box.x, row.box.y), row.text, "#d01010" if red else "#202020")
    reading = examine_image(sketch.pixels, rows)
    assert len(reading.code) == 1
    assert find_statement(describe_reading(reading).text, '"second of them failed"', "red")


@requirement("reader.mono")
def test_a_last_line_that_was_read_badly_belongs_to_its_program() -> None:
    program = [replace(line, ground=(250, 250, 250)) for line in write_rows(PROGRAM[:7])]
    wide = program[2]
    bad = replace(
        program[-1], text="print ( seen . sep = . . )", box=replace(program[-1].box, width=wide.box.width), middles=None
    )
    area = enclose_boxes(line.box for line in program)
    assert find_mono_areas([*program[:-1], bad]) == [area]
    other = replace(bad, ground=(255, 255, 255))
    assert find_mono_areas([*program[:-1], other]) == [enclose_boxes(line.box for line in program[:-1])]


@requirement("reader.mono")
def test_programs_in_two_panels_side_by_side_are_two_areas() -> None:
    left, right = (
        [write_line(text, at, left=side) for at, text in enumerate(PROGRAM) if text] for side in (60, 60 + 40 * LETTER)
    )
    panels = [Box(50, 30, 280, 180), Box(50 + 40 * LETTER, 30, 280, 180)]
    areas = [enclose_boxes(line.box for line in lines) for lines in (left, right)]
    assert sorted(find_mono_areas([*left, *right], panels), key=lambda box: box.x) == areas


@requirement("reader.mono")
def test_a_heading_between_two_panels_is_in_neither_program() -> None:
    heading = TextLine("Names again", Box(60, TOP + 9 * PITCH, 88, 13), middles=(64.0, 144.0))
    above, below = write_rows(PROGRAM), write_rows(PROGRAM, 11)
    panels = [Box(50, 30, 280, 170), Box(50, 250, 280, 170), Box(40, 20, 300, 410)]
    areas = [enclose_boxes(line.box for line in lines) for lines in (above, below)]
    assert sorted(find_mono_areas([*above, heading, *below], panels), key=lambda box: box.y) == areas


@requirement("reader.mono")
def test_a_first_line_before_the_others_belongs_to_the_program_of_its_panel() -> None:
    program = write_rows(["else:", "        names.append(name)", "        return sorted(names)", "        # all"])
    assert find_mono_areas(program, [Box(50, 30, 280, 100)]) == [enclose_boxes(line.box for line in program)]


@requirement("reader.mono")
def test_a_program_above_a_table_with_lines_stays_one() -> None:
    """Values of a table may be about as wide as the letters of the program, so that they seem to go on with it."""
    sketch = Sketch((500, 330))
    values = [("#1000", "14.62", "2023-03-10"), ("#1007", "26.49", "2020-06-16"), ("#1014", "29.84", "2015-05-27")]
    program = write_rows(PROGRAM)
    rows = []
    for at, row in enumerate((("Key", "Rate", "Day"), *values)):
        y = 220 + 26 * at
        sketch.box((50, y - 8, 400, y - 7), "#888888")
        rows += [write_line(" " * 14 * place + text, 9 + at) for place, text in enumerate(row)]
        rows[-3:] = [replace(line, box=Box(line.box.x, y, line.box.width, 10)) for line in rows[-3:]]
    sketch.box((50, 316, 400, 317), "#888888")
    reading = examine_image(sketch.pixels, [*program, *rows])
    assert reading.code == (enclose_boxes(line.box for line in program),)
    assert [len(table.rows) for table in reading.tables] == [4]
