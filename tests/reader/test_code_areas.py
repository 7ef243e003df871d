"""Programs in editors, and icons beside texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sightline.model.geometry import Box
from sightline.reader.code_areas import find_code_areas, restore_line_numbers
from sightline.reader.examine import examine_image
from sightline.reader.icons import separate_icons
from sightline.reader.page_text import is_gutter
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import enclose_boxes
from tests.reader.sketch import Sketch
from tests.reader.statements import describe_reading
from tests.requirements import requirement

PROGRAM = ("def read(path):", "    if path:", "        return open(path)", "    return None", "", "print(read(name))")
LONG_PROGRAM = (*PROGRAM[:4], ".class { margin: 0 }", "    .other { color: red }", "        return value", *PROGRAM[5:])
LETTER, PITCH, TOP = 9, 22, 20  # pixels


def long_program() -> list[TextLine]:
    return write_program(program=LONG_PROGRAM)


def write_program(first: int = 8, program: Sequence[str] = PROGRAM) -> list[TextLine]:
    """Return a program beside its line numbers, as a perfect reader finds it, in any order."""
    lines = []
    for at, text in enumerate(program):
        number, y = str(first + at), TOP + PITCH * at
        lines.append(TextLine(number, Box(40 - LETTER * len(number), y, LETTER * len(number), 12)))
        if text:
            indent = len(text) - len(text.lstrip())
            lines.append(TextLine(text.strip(), Box(70 + LETTER * indent, y, LETTER * len(text.strip()), 12)))
    return sorted(lines, key=lambda line: line.box.x)


@requirement("reader.code")
def test_a_program_keeps_its_indentation_and_each_line_its_number() -> None:
    lines = write_program()
    (area,) = find_code_areas(lines)
    assert (area.x, area.y) == (22, TOP)
    reading = examine_image(Sketch((500, 200)).pixels, lines)
    numbered = [f"{at:>2}   {text}".rstrip() for at, text in enumerate(PROGRAM, 8)]
    fence, *written, end = reading.text.splitlines()
    assert (fence, end) == ("```", "```")
    assert [line[:2] + line[2:].replace(" ", "") for line in written] == [
        line[:2] + line[2:].replace(" ", "") for line in numbered
    ]
    columns = [len(line) - len(line[2:].lstrip()) for line in written if line[2:].strip()]
    assert [column - columns[0] for column in columns] == [0, 4, 8, 4, 0]


@requirement("reader.code")
def test_numbers_read_as_one_or_not_at_all_are_restored_beside_their_lines() -> None:
    lines = sorted(write_program(program=LONG_PROGRAM * 2), key=lambda line: line.box.y)
    by_number = {line.text: line for line in lines if line.text.isdigit()}
    stack = TextLine("9 10 11", Box(22, by_number["9"].box.y, 18, 2 * PITCH + 12))
    lost = [by_number[number] for number in ("9", "10", "11", "14")]
    read = [*(line for line in lines if line not in lost), stack]
    restored = restore_line_numbers(read)
    numbers = {line.text: line for line in restored if line.text.isdigit()}
    assert numbers.keys() == by_number.keys()
    assert all(abs(numbers[text].box.y - line.box.y) <= 1 for text, line in by_number.items())
    assert [text for text, line in numbers.items() if line.doubtful] == ["14"]
    assert stack not in restored
    assert restore_line_numbers(lines) == lines
    assert restore_line_numbers([]) == []


@requirement("reader.code")
def test_the_first_number_is_restored_above_the_second() -> None:
    lines = write_program(1, LONG_PROGRAM)
    restored = restore_line_numbers([line for line in lines if line.text != "1"])
    assert [(line.text, line.box.y) for line in restored if line.doubtful] == [("1", TOP)]
    scrolled = [line for line in write_program(7, LONG_PROGRAM) if line.text != "7"]
    assert restore_line_numbers(scrolled) == scrolled


@requirement("reader.code")
def test_lines_that_were_read_with_their_numbers_are_at_their_columns() -> None:
    program = ("    load(name)", "def read(path):", "    if path:", "        return open(path)", "    return None",
               "def show(name):", "    print(name, path)", "    return name")  # fmt: skip
    lines = write_program(program=program)
    joined = [
        TextLine(f"{number.text} {line.text}", enclose_boxes([number.box, line.box]))
        for number in lines if number.text.isdigit()
        for line in lines if line.box.y == number.box.y and line.box.x == 70
    ]  # fmt: skip
    rest = [line for line in lines if not any(line.box.y == each.box.y for each in joined)]
    written = examine_image(Sketch((500, 300)).pixels, [*rest, *joined]).text.splitlines()[1:-1]
    assert [line[4:] for line in written] == list(program)


@requirement("reader.code")
@pytest.mark.parametrize("last", ["20261117", "2026111", "9" * 5000, "²"])
def test_a_large_number_below_a_program_is_not_counted_up_to(last: str) -> None:
    lines = [line for line in long_program() if line.text != "14"]
    below = TextLine(last, Box(40 - LETTER, TOP + PITCH * len(LONG_PROGRAM), LETTER, 12))
    restored = restore_line_numbers([*lines, below])
    assert [line.text for line in restored if line.doubtful] == ["14"]
    assert below in restored
    assert find_code_areas([*lines, below])
    assert not is_gutter([last] * 3)


@requirement("reader.code")
@pytest.mark.parametrize(("text", "row"), [("7", 0), ("6 7", 0), ("9 25", 4), ("9 10", 7)])
def test_a_large_number_that_is_none_of_the_missing_ones_is_kept(text: str, row: int) -> None:
    """The program begins at row 3; 9 and 10 are missing in rows 4 and 5."""
    lines = [line for line in write_program(program=LONG_PROGRAM * 2) if line.text not in ("9", "10")]
    lines = [replace(line, box=replace(line.box, y=line.box.y + 3 * PITCH)) for line in lines]
    other = TextLine(text, Box(22, TOP + PITCH * row, 18, PITCH + 12))
    assert other in restore_line_numbers([*lines, other])
    stack = TextLine("910", Box(22, TOP + PITCH * 4, 18, PITCH + 12))
    restored = restore_line_numbers([*lines, stack])
    assert stack not in restored
    assert {line.text for line in restored if not line.doubtful} >= {"9", "10"}


@requirement("reader.code")
def test_a_doubtful_number_does_not_move_the_line_beside_it() -> None:
    lines = [line for line in long_program() if line.text != "14"]
    written = examine_image(Sketch((500, 400)).pixels, lines).text.splitlines()[1:-1]
    assert "‹14›" in written[6]
    plain = [line.replace("‹", "").replace("›", "") for line in written]
    assert [line[4:] for line in plain] == [line.rstrip() for line in LONG_PROGRAM]


@requirement("reader.code")
def test_a_line_that_was_read_together_with_its_number_stays_at_its_column() -> None:
    lines = write_program(program=LONG_PROGRAM * 2)
    number, text = (next(line for line in lines if line.text == each) for each in ("10", "return open(path)"))
    joined = TextLine(f"10 {text.text}", enclose_boxes([number.box, text.box]))
    read = [joined, *(line for line in lines if line not in (number, text))]
    whole, torn = (examine_image(Sketch((500, 400)).pixels, each).text for each in (lines, read))
    assert torn == whole


@requirement("reader.code")
def test_monospaced_lines_that_were_read_with_their_numbers_are_apart_from_these() -> None:
    """A rule between them may have been read as a sign."""
    lines = []
    for at, text in enumerate(LONG_PROGRAM):
        mark = "?" if at in (2, 3) else " "
        joined = f"{at + 11}{mark} {text}".rstrip()
        box = Box(22, TOP + PITCH * at, LETTER * len(joined), 12)
        middles = (22 + LETTER / 2, 22 + LETTER * (len(joined) - 0.5))
        lines.append(TextLine(joined, box, doubtful=(2,) if mark == "?" else (), middles=middles))
    written = examine_image(Sketch((500, 400)).pixels, lines).text.splitlines()[1:-1]
    assert [line[:2] for line in written] == [str(at + 11) for at in range(len(LONG_PROGRAM))]
    assert [line[4:].rstrip() for line in written] == list(LONG_PROGRAM)


@requirement("reader.code")
def test_a_pale_number_that_was_read_into_a_line_is_apart_from_it() -> None:
    lines = long_program()
    number, text = (next(line for line in lines if line.text == each) for each in ("10", "return open(path)"))
    whole = examine_image(Sketch((500, 400)).pixels, lines).text
    joined = replace(text, text=f"10 {text.text}")
    read = [joined, *(line for line in lines if line not in (number, text))]
    assert examine_image(Sketch((500, 400)).pixels, read).text == whole


@requirement("reader.code")
def test_numbers_above_the_first_one_that_was_read_are_restored() -> None:
    lines = [line for line in write_program(1, LONG_PROGRAM) if line.text not in ("1", "2", "3")]
    restored = {line.text for line in restore_line_numbers(lines) if line.doubtful}
    assert restored == {"1", "2", "3"}


@requirement("reader.code")
def test_a_program_whose_lines_are_all_short_is_code() -> None:
    lines = write_program(program=('"a",', '  "b",', '"cd",', "", '"ef"', '"g"'))
    written = examine_image(Sketch((500, 400)).pixels, lines).text.splitlines()
    assert (written[0], written[-1]) == ("```", "```")
    assert written[2].index('"b"') == written[1].index('"a"') + 2


def test_numbers_that_count_nothing_are_no_program() -> None:
    prices = [TextLine(text, Box(20, 20 + 22 * at, 27, 12)) for at, text in enumerate(("300", "120", "125", "90", "7"))]
    assert find_code_areas([*prices, *(TextLine("item", Box(80, 20 + 22 * at, 40, 12)) for at in range(5))]) == []


@requirement("reader.icons")
def test_a_doubtful_mark_that_stands_alone_is_an_icon() -> None:
    text = TextLine("Search the site", Box(60, 20, 120, 14), 0.999)
    magnifier, menu, letter = (
        TextLine("Q", Box(20, 20, 14, 14), 0.97),
        TextLine("品", Box(300, 20, 14, 14), 0.998),
        TextLine("A", Box(400, 20, 10, 12), 0.999),
    )
    rest, icons = separate_icons([magnifier, text, menu, letter])
    assert rest == [text, letter]
    assert icons == (magnifier.box, menu.box)
    reading = replace(examine_image(Sketch((500, 60)).pixels, [text]), icons=icons)
    assert "[20, 20, 34, 34]" in describe_reading(reading).text


@pytest.mark.parametrize(("text", "box"), [("+", Box(20, 20, 10, 10)), ("-", Box(23, 24, 4, 2))])
def test_a_sign_before_a_line_of_a_program_is_no_icon(text: str, box: Box) -> None:
    sign = TextLine(text, box, 0.97, middles=(25.0, 25.0))
    added = TextLine("return names", Box(80, 18, 110, 14), 0.99, middles=(85.0, 185.0))
    assert separate_icons([sign, added]) == ([sign, added], ())
    assert separate_icons([replace(sign, middles=None), added])[1] == (sign.box,)


@requirement("reader.code")
def test_numbers_in_the_lines_of_a_program_are_not_its_line_numbers() -> None:
    lines = [TextLine(f"#define SIZE_{at}", Box(20, 20 + 20 * at, 130, 12)) for at in range(6)]
    lines += [TextLine(str(266 + at), Box(170, 20 + 20 * at, 30, 12)) for at in range(6)]
    lines += [TextLine("another program", Box(400, 20 + 20 * at, 150, 12)) for at in range(6)]
    texts = [Box(20, 20, 180, 112), Box(400, 20, 150, 112)]
    assert find_code_areas(lines, texts) == texts


@requirement("reader.markdown")
def test_a_table_is_written_in_markdown() -> None:
    sketch = Sketch((600, 240))
    rows = (("Name", "Age", "Town"), ("Ada", "36", "Bath"), ("Bob|by", "40", "York"), ("Cleo", "22", "Hull"))
    for at, row in enumerate(rows):
        sketch.box((20, 58 + 40 * at, 560, 59 + 40 * at), "#cccccc")
        for x, text in zip((40, 220, 400), row, strict=True):
            sketch.write(x, 38 + 40 * at, text, 14)
    assert examine_image(sketch.pixels, sketch.lines).text.splitlines() == [
        "| Name | Age | Town |",
        "|---|---|---|",
        "| Ada | 36 | Bath |",
        "| Bob\\|by | 40 | York |",
        "| Cleo | 22 | Hull |",
    ]


@requirement("reader.code")
def test_text_of_a_program_that_could_not_be_read_is_marked_at_its_line() -> None:
    lines = write_program(program=LONG_PROGRAM * 2)
    lost = next(line for line in lines if line.text == "return open(path)")
    beside = Box(300, lost.box.y, 8, lost.box.height)  # right of all lines
    rest = [line for line in lines if line is not lost]
    reading = examine_image(Sketch((500, 400)).pixels, rest, unread=[lost.box, beside])
    whole = examine_image(Sketch((500, 400)).pixels, lines)
    assert reading.text == whole.text.replace("return open(path)", "‹?›", 1)
    assert "‹?› is text that could not be read" in describe_reading(reading).text


@requirement("reader.code")
def test_marks_that_fold_a_program_are_no_text() -> None:
    program = (*LONG_PROGRAM, *LONG_PROGRAM)
    lines = write_program(program=program)
    marked = [
        replace(line, text=f"{line.text}v", box=replace_width(line.box, 20)) if line.text == "9" else line
        for line in lines
    ]
    marked.append(TextLine("v", Box(45, TOP + PITCH * 4 + 4, 8, 6)))
    found = restore_line_numbers(marked)
    assert sorted(line.text for line in found) == sorted(line.text for line in lines)
    joined = [
        replace(line, text=f"9- {PROGRAM[1].strip()}", box=Box(31, line.box.y, 84 + LETTER * 12, 12))
        if line.text == "9"
        else line
        for line in lines
        if line.text != PROGRAM[1].strip() or line.box.y > TOP + PITCH
    ]
    assert sorted(line.text for line in restore_line_numbers(joined)) == sorted(line.text for line in lines)


@requirement("reader.code")
def test_a_mark_after_the_first_line_number_is_no_text() -> None:
    lines = write_program(program=LONG_PROGRAM)
    marked = [replace(line, text="8v", box=replace_width(line.box, 20)) if line.text == "8" else line for line in lines]
    assert sorted(line.text for line in restore_line_numbers(marked)) == sorted(line.text for line in lines)


@requirement("reader.code")
def test_signs_of_what_was_added_and_removed_are_kept() -> None:
    lines = write_program(program=LONG_PROGRAM)
    signs = [TextLine(sign, Box(45, TOP + PITCH * at + 5, 8, 2)) for at, sign in ((2, "-"), (4, "-"))]
    assert {"-"} <= {line.text for line in restore_line_numbers([*lines, *signs])}


def replace_width(box: Box, width: int) -> Box:
    return Box(box.x, box.y, width, box.height)


def test_narrow_text_after_a_fold_mark_stays_in_the_box_of_its_line() -> None:
    numbers = [TextLine(str(at), Box(5, 20 * at, 14, 12)) for at in range(10, 20) if at != 14]
    program = [TextLine("x" * 20, Box(40, 20 * at, 200, 12), middles=(45.0, 235.0)) for at in range(10, 20) if at != 14]
    narrow = TextLine("14 v " + "y" * 60, Box(5, 280, 300, 12))
    found = restore_line_numbers([*numbers, *program, narrow])
    text = next(line for line in found if line.text.startswith("y"))
    assert narrow.box.x <= text.box.x < text.box.right == narrow.box.right
