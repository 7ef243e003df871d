"""Descriptions of screens in which everything was read."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sightline.model.geometry import Box, Size
from sightline.reader.describe import NOTE, describe_image
from sightline.reader.examine import examine_image
from sightline.reader.ocr.page import replace_lone_strokes
from sightline.reader.page_text import find_heading
from sightline.reader.reading import Barcode, ImageReading, InterfacePart, Table
from sightline.reader.rectangles import format_box
from tests.reader import screens
from tests.reader.screens import GREY, ORANGE, WHITE, line
from tests.reader.sketch import Sketch
from tests.requirements import requirement


@requirement("seer.local.says")
@pytest.mark.parametrize("screen", screens.ALL)
def test_a_description_begins_with_every_line_and_has_one_note(screen: str) -> None:
    reading = screens.ALL[screen]()
    report = describe_image(reading)
    assert report.text.startswith("\n".join(line.text for line in reading.lines))
    assert report.text.count(NOTE) == 1
    assert report.text.endswith(NOTE)
    assert [(spot.label, spot.box) for spot in report.spots] == [(line.text, line.box) for line in reading.lines]


def test_a_description_lists_every_part_with_its_box() -> None:
    text = describe_image(screens.form()).text
    for sentence in (
        'The largest text, a heading or title, is "Create your account" at [108, 129, 317, 151].',
        'A field "Full name" at [108, 189, 612, 229] contains "Marguerite O\'Connell".',
        'A field "Company (optional)" at [108, 358, 612, 398] is empty.',
        'A check box "I agree to the terms" at [112, 420, 125, 433]: checked.',
        'A blue button "Create account" at [108, 450, 261, 490], white text.',
        'In red: "Enter a valid VAT number: 9 digits after GB" at [108, 308, 366, 320].',
        "The image is 1280 pixels wide and 900 pixels high, mostly white (#ffffff) 80%.",
    ):
        assert sentence in text
    assert 'The title bar at [254, 160, 338, 172] says "Backup Manager".' in describe_image(screens.dialog()).text


def test_a_description_gives_every_value_of_a_chart() -> None:
    text = describe_image(screens.chart()).text
    values = "Q1, Europe 31; Q1, Asia 18; Q2, Europe 29; Q2, Asia 52"
    assert f'A bar chart "Revenue by region" at [30, 10, 930, 570], in million USD: {values}.' in text
    assert "Its colours: Europe blue, Asia orange." in text


def test_unknown_states_are_reported() -> None:
    parts = (InterfacePart("picture", Box(0, 0, 9, 9), (1, 2, 3)),)
    codes = (Barcode("QRCode", "hello", Box(1, 2, 3, 4)),)
    text = describe_image(ImageReading(Size(640, 480), parts=parts, codes=codes, photograph=True, rotation=90)).text
    assert text.startswith("No text was found in this image.")
    for words in ("photograph", "rotation of 90 degrees", 'QRCode code at [1, 2, 4, 6] contains "hello"'):
        assert words in text


@pytest.mark.parametrize(
    ("checked", "state"),
    [(True, "selected"), (False, "not selected"), (None, "could not tell whether it is selected")],
)
def test_a_radio_button_has_its_label_and_state(checked: bool | None, state: str) -> None:
    part = InterfacePart("radio", Box(20, 30, 16, 16), (1, 2, 3), (0,), checked)
    text = describe_image(ImageReading(Size(200, 90), (line("Manual", 46, 32),), parts=(part,))).text
    assert f'A radio button "Manual" at [20, 30, 36, 46]: {state}.' in text


def test_a_pale_button_may_be_disabled() -> None:
    lines = (line("Save", 30, 30), line("Next", 130, 30, ink=(190, 190, 190)))
    parts = tuple(InterfacePart("button", Box(20 + 100 * at, 20, 80, 30), WHITE, (at,)) for at in range(2))
    text = describe_image(ImageReading(Size(300, 90), lines, parts=parts)).text
    assert 'button "Next" at [120, 20, 200, 50], light grey text, paler than other buttons, perhaps disabled.' in text
    assert 'button "Save" at [20, 20, 100, 50], black text.' in text


def test_lines_that_were_not_read_are_listed_with_their_boxes() -> None:
    one, other, last = Box(10, 20, 90, 12), Box(10, 50, 80, 12), Box(10, 80, 70, 12)
    text = describe_image(ImageReading(Size(640, 480), unread=(one, other), late=(last,), searched=False)).text
    assert text.startswith("No text could be read in this image.")
    for words in (
        "2 lines that look like text could not be read, perhaps handwriting or an unknown script",
        ": at [10, 20, 100, 32]; [10, 50, 90, 62].",
        "1 more line was not read because time ran out: at [10, 80, 80, 92].",
        "Time ran out before the whole image was searched",
    ):
        assert words in text
    many = describe_image(ImageReading(Size(640, 480), unread=tuple(Box(0, y, 9, 9) for y in range(100)))).text
    assert "[0, 39, 9, 48] and 60 more places." in many
    assert (
        "1 place that looks like text could not be read: at [10, 20, 100, 32]."
        in describe_image(ImageReading(Size(640, 480), (line("Read", 1, 1),), unread=(one,))).text
    )
    glyph = describe_image(ImageReading(Size(640, 480), unread=(Box(114, 194, 20, 24),))).text
    assert "1 place that looks like a letter or an icon could not be read: at [114, 194, 134, 218]." in glyph


@requirement("seer.local.doubt")
@pytest.mark.parametrize(
    ("text", "mean", "doubtful", "marked"),
    [
        ("Il1l", 0.96, (), "Il1l"),
        ("0", 0.96, (), ""),
        ("a long line", 0.99, (3, 4), "a l‹on›g line"),
        ("INF0 ready", 0.99, (3, 9), "INF‹0› read‹y›"),
        ("plain", 0.98, (), ""),
    ],
)
def test_doubtful_characters_and_lines_are_marked(
    text: str, mean: float, doubtful: tuple[int, ...], marked: str
) -> None:
    doubted = replace(line(text, 1, 1), confidence=mean, doubtful=doubtful)
    written = describe_image(ImageReading(Size(90, 90), (doubted,))).text
    sentence = f'Hard to read, perhaps misread: "{marked}" at {format_box(doubted.box)}.'
    assert (sentence in written) is bool(marked)
    assert ("Characters between ‹ and › may be wrong." in written) is bool(doubtful)
    assert written.startswith(marked or text)


def test_text_that_was_not_read_is_neither_empty_nor_missing() -> None:
    form = replace(screens.form(), unread=(Box(120, 370, 80, 12),))  # in the field of the company
    sentence = '"Company (optional)" at [108, 358, 612, 398] contains something that could not be read.'
    assert sentence in describe_image(form).text


def test_a_password_field_is_not_empty_but_one_with_an_arrow_or_a_caret_is() -> None:
    sketch = Sketch()
    for y, name in ((60, "Password"), (140, "Country"), (220, "City")):
        sketch.write(60, y, name)
        sketch.pen.rectangle((60, y + 14, 400, y + 50), "#ffffff", "#909090")
    for dot in range(8):
        sketch.pen.ellipse((72 + 11 * dot, 88, 78 + 11 * dot, 94), "#202020")
    sketch.pen.polygon([(376, 168), (390, 168), (383, 176)], "#505050")
    sketch.pen.line([(70, 242), (70, 262)], "#202020")
    text = describe_image(examine_image(sketch.pixels, sketch.lines)).text
    fields = [line.partition(" at ") for line in text.splitlines() if line.startswith("- A field")]
    assert [(name[11:-1], rest.partition("] ")[2]) for name, _, rest in fields] == [
        ("Password", "contains something that could not be read."),
        ("Country", "is empty."),
        ("City", "is empty."),
    ]


def test_pale_text_in_a_field_may_be_a_placeholder() -> None:
    labels = tuple(line(name, 80, 36 + 60 * at, ink=(68, 68, 68)) for at, name in enumerate(("Name", "Street")))
    typed = (line("Ingrid", 90, 60), line("e.g. 12 Baker Street", 90, 120, ink=(170, 170, 170)))
    parts = tuple(InterfacePart("field", Box(80, 52 + 60 * at, 300, 28), WHITE, (2 + at,)) for at in range(2))
    text = describe_image(ImageReading(Size(500, 300), (*labels, *typed), parts=parts)).text
    assert 'contains "e.g. 12 Baker Street" in pale text, perhaps a placeholder.' in text
    assert 'contains "Ingrid".' in text


def test_articles_fit_their_colours() -> None:
    parts = (InterfacePart("panel", Box(20, 92, 84, 92), ORANGE, (0,)),)
    assert (
        "An orange panel" in describe_image(ImageReading(Size(400, 400), (line("7", 58, 128, 20),), parts=parts)).text
    )


def test_lone_strokes_are_chinese_only_beside_other_chinese() -> None:
    read = [line("Cork", 20, 20), line("一", 80, 20), line("二", 80, 60)]
    assert [each.text for each in replace_lone_strokes(read)] == ["Cork", "—", "="]
    beside = [line("会議", 20, 20), line("一", 80, 20)]
    assert [each.text for each in replace_lone_strokes(beside)] == ["会議", "一"]


def test_a_heading_is_larger_than_the_cells_below_it() -> None:
    names = ("Item", "12", "Laptops", "30", "Sofia", "42")
    cells = [line(name, 40 + 200 * (at % 2), 80 + 40 * (at // 2), 14 if name == "Sofia" else 12)
             for at, name in enumerate(names)]  # fmt: skip
    table = Table(Box(30, 74, 500, 120), tuple(((at,), (at + 1,)) for at in range(0, 6, 2)))
    head = line("Budget", 40, 20, 20)
    assert find_heading(ImageReading(Size(600, 300), tuple(cells), tables=(table,))) is None
    assert find_heading(ImageReading(Size(600, 300), (*cells, head), tables=(table,))) == head


def test_only_the_largest_text_is_called_largest() -> None:
    lines = (line("42", 40, 40, 60), line("Orders today", 40, 120, 24), *(line(each, 40, 200, 12) for each in "abc"))
    assert 'A heading or title is "Orders today"' in describe_image(ImageReading(Size(800, 600), lines)).text


def test_colours_of_text_in_a_photograph_are_not_reported() -> None:
    reading = ImageReading(Size(90, 90), (line("STOP", 9, 9, ink=(210, 47, 47), ground=GREY),), photograph=True)
    assert "In red" not in describe_image(reading).text
    assert "In red" in describe_image(replace(reading, photograph=False)).text
