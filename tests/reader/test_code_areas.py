"""Programs in editors, and icons beside texts."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.geometry import Box
from sightline.reader.code_areas import find_code_areas
from sightline.reader.describe import describe_image
from sightline.reader.examine import examine_image
from sightline.reader.icons import separate_icons
from sightline.reader.reading import TextLine
from tests.reader.sketch import Sketch
from tests.requirements import requirement

PROGRAM = ("def read(path):", "    if path:", "        return open(path)", "    return None", "", "print(read(name))")
LETTER, PITCH, TOP = 9, 22, 20  # pixels


def write_program(first: int = 8) -> list[TextLine]:
    """Return a program beside its line numbers, as a perfect reader finds it, in any order."""
    lines = []
    for at, text in enumerate(PROGRAM):
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
    assert "[20, 20, 34, 34]" in describe_image(reading).text


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
