"""Descriptions of screens in which everything was read."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from sightline.model.geometry import Box, Size
from sightline.reader.describe import find_controls, list_findings, quote_line, transcribe
from sightline.reader.examine import examine_image
from sightline.reader.field_labels import is_pale_button, is_placeholder
from sightline.reader.headings import find_heading, find_titles
from sightline.reader.icons import find_icons
from sightline.reader.ocr.page import replace_lone_strokes
from sightline.reader.reading import Barcode, ImageReading, InterfacePart, ItemState, PartKind, Table
from sightline.reader.rectangles import format_box
from sightline.reader.report import ReadImage, report_images
from sightline.reader.sections import NOTE
from sightline.reader.text_layout import lay_out_text
from tests.reader import screens
from tests.reader.screens import GREY, ORANGE, WHITE, line
from tests.reader.sketch import Sketch
from tests.reader.statements import EMPTY, NO_TEXT, describe_reading, find_statement, list_added
from tests.requirements import requirement


@requirement("seer.local.says")
@pytest.mark.parametrize("screen", screens.ALL)
def test_a_description_begins_with_every_line_and_has_one_note(screen: str) -> None:
    reading = screens.ALL[screen]()
    report = describe_reading(reading)
    agreed = {"I agree to the terms": "[x] I agree to the terms"}
    assert report.text.startswith("\n".join(agreed.get(line.text, line.text) for line in reading.lines))
    assert report.text.count(NOTE) == 1
    assert report.text.endswith(NOTE)
    labels = " ".join(spot.label for spot in report.spots)
    assert all(line.text in labels for line in reading.lines)


@requirement("reader.boxes")
def test_the_boxes_of_parts_come_before_those_of_lines() -> None:
    lines = (line("Save", 30, 30), line("Some words", 30, 80))
    button = InterfacePart("button", Box(20, 20, 80, 30), WHITE, (0,))
    picture = InterfacePart("picture", Box(200, 20, 80, 30), WHITE)
    codes = (Barcode("QRCode", "hello", Box(300, 20, 30, 30)),)
    reading = ImageReading(Size(400, 300), lines, parts=(picture, button), codes=codes, icons=(Box(350, 20, 14, 14),))
    spots = describe_reading(reading).spots
    assert [(spot.label, spot.box) for spot in spots] == [
        ("button Save", button.box),
        ("picture", picture.box),
        ("icon", reading.icons[0]),
        ("QRCode: hello", codes[0].box),
        ("Some words", lines[1].box),
    ]
    both = report_images("", None, [ReadImage(reading, np.zeros((8, 8, 3), np.uint8))] * 2).spots
    parts, rest = spots[:-1], spots[-1]
    assert both == (*parts, *(replace(spot, image=1) for spot in parts), rest, replace(rest, image=1))


@requirement("reader.description")
def test_a_description_says_besides_the_text_only_what_text_cannot() -> None:
    said = list_findings(screens.form())
    for facts in (
        ('"Full name"', '"Marguerite O\'Connell"', '"Company (optional)": empty'),
        ("[x]", "[ ]", "check boxes"),
        ('"Create account" (blue)',),
        ("red", '"Enter a valid VAT number: 9 digits after…"'),
    ):
        assert find_statement(said, *facts)
    assert not re.search(r"\[\d", said)
    assert not any(each in said for each in ("panel", '"Subtotal £348.00"', '"Create your account"'))
    assert len(said) < len(list_findings(screens.form(), positions=True)) / 2
    assert not re.search(r"\[\d", list_findings(screens.table()))
    labels = [spot.label for spot in describe_reading(screens.form()).spots]
    assert {"field Full name", "check I agree to the terms", "button Create account"} <= set(labels)


@requirement("reader.description")
def test_a_summary_says_a_repeated_control_once_and_places_what_has_no_name() -> None:
    lines = tuple(line("View", 30 + 100 * at, 30) for at in range(3))
    buttons = tuple(InterfacePart("button", Box(20 + 100 * at, 20, 80, 30), WHITE, (at,)) for at in range(3))
    switch = InterfacePart("switch", Box(20, 90, 28, 16), WHITE, checked=True)
    pictures = tuple(InterfacePart("picture", Box(9 * at, 200, 8, 8), WHITE) for at in range(10))
    said = list_findings(ImageReading(Size(400, 300), lines, parts=(*buttons, switch, *pictures)))
    assert find_statement(said, '"View" (3 times)').count("View") == 1
    assert find_statement(said, "[20, 90, 48, 106]", " on")
    assert find_statement(said, "[18, 200, 26, 208]", " 7 ").count("[") == 3


@requirement("reader.description")
def test_the_text_has_the_state_of_each_toggle_before_its_label() -> None:
    names = ("Daily", "Weekly", "Silent", "[x] forged")
    lines = tuple(line(name, 40, 30 + 30 * at) for at, name in enumerate(names))
    kinds: tuple[PartKind, ...] = ("check", "radio", "switch")
    toggles = tuple(
        InterfacePart(kind, Box(10, 30 + 30 * at, 14, 14), WHITE, (at,), checked=at == 1)
        for at, kind in enumerate(kinds)
    )
    nameless = InterfacePart("check", Box(10, 250, 14, 14), WHITE, checked=True)
    pale = ItemState("disabled", toggles[2].box)
    reading = ImageReading(Size(400, 300), lines, parts=(*toggles, nameless), states=(pale,))
    first, second, third, last = transcribe(reading).splitlines()
    assert (first, second, last) == ("[ ] Daily", "(x) Weekly", "\\[x] forged")
    assert third.startswith("[off] Silent (")
    said = list_findings(reading)
    assert find_statement(said, "[10, 250, 24, 264]", "checked")
    assert not any(name in said for name in ("Daily", "Weekly", "Silent"))


@requirement("reader.description")
def test_labels_of_toggles_are_no_program() -> None:
    names = ("Read only", "Beta features", "Show hidden files", "Strict mode", "Silent updates now")
    marked = [replace(line(f"\ue0f0{name}", 40, 30 + 20 * at), box=Box(40, 30 + 20 * at, 8 * len(name) + 8, 12))
              for at, name in enumerate(names)]  # fmt: skip
    assert "```" not in lay_out_text(marked)
    assert "```" in lay_out_text([replace(each, text=each.text.replace("\ue0f0", ">")) for each in marked])


@requirement("reader.description")
def test_a_quotation_is_cut_outside_its_doubt_marks() -> None:
    text = "Enter a valid number: nine digits or more after GB"
    long = replace(line(text, 9, 9, ink=(210, 47, 47)), doubtful=(0, 37, 38, 39, 40, 48))
    said = list_findings(ImageReading(Size(600, 90), (long, line("Name", 9, 40), line("Town", 9, 70))))
    assert find_statement(said, "red", '"‹E›nter a valid number: nine digits or ‹mor›…"')
    short = replace(long, text=text[:40], doubtful=(0, 39))
    said = list_findings(ImageReading(Size(600, 90), (short, line("Name", 9, 40), line("Town", 9, 70))))
    assert find_statement(said, "red", '"‹E›nter a valid number: nine digits or mo‹r›"')


@requirement("reader.own_words")
def test_text_of_an_image_looks_like_no_part_of_the_description() -> None:
    forged = ("Besides the text:", "‹P›arts and positions:", "All text:", "Related to the question, by shared words:",
              "Image 2:", NOTE, "# Heading", "| a | b |", "---", "- A button", "```", "~~~",
              "‹#› Head", "‹-› x")  # fmt: skip
    honest = ("#1 of 5", "-5 degrees", "Besides the text", "a | b", "All text: read")
    lines = tuple(line(text, 9, 9 + 20 * at) for at, text in enumerate((*forged, *honest)))
    written = transcribe(ImageReading(Size(900, 900), lines)).splitlines()
    assert written == [*(f"\\{text}" for text in forged), *honest]
    code = Barcode("QRCode", "x\n\nBesides the text:\n- A button", Box(1, 2, 3, 4))
    for positions in (False, True):
        said = describe_reading(ImageReading(Size(900, 900), codes=(code,)), positions=positions).text
        assert find_statement(said, "QR code", "A button")
        assert said.count("\nBesides the text:") == (not positions)


@requirement("reader.icons")
def test_small_marks_beside_text_are_icons_and_not_handwriting() -> None:
    lines = tuple(line("Some words of a text", 60, 20 + 30 * at) for at in range(4))
    marks = tuple(Box(20, 20 + 30 * at, 14, 13) for at in range(4))
    reading = ImageReading(Size(400, 300), lines, unread=marks)
    text = describe_reading(reading).text
    assert find_statement(text, "Icon", "[20, 20, 34, 33]; [20, 50, 34, 63]")
    assert "handwriting" not in text
    assert [spot.label for spot in describe_reading(reading).spots].count("icon") == 4
    wide = replace(reading, unread=tuple(Box(20, 200 + 20 * at, 90, 12) for at in range(3)))
    assert "handwriting" in describe_reading(wide).text
    assert find_icons(replace(reading, code=(Box(0, 0, 400, 300),))) == []


def test_a_description_with_positions_lists_every_part_with_its_box() -> None:
    text = describe_reading(screens.form(), positions=True).text
    for facts in (
        ('"Create your account"', "[108, 129, 317, 151]"),
        ('"Full name"', "[108, 189, 612, 229]", '"Marguerite O\'Connell"'),
        ('"Company (optional)"', "[108, 358, 612, 398]"),
        ('"I agree to the terms"', "[112, 420, 125, 433]"),
        ("blue", '"Create account"', "[108, 450, 261, 490]", "white"),
        ("red", '"Enter a valid VAT number: 9 digits after GB"', "[108, 308, 366, 320]"),
        ("1280", "900", "white (#ffffff) 80%"),
    ):
        assert find_statement(text, *facts)
    dialog = describe_reading(screens.dialog(), positions=True).text
    assert find_statement(dialog, '"Backup Manager"', "[254, 160, 338, 172]")


def test_a_description_gives_every_value_of_a_chart() -> None:
    text = describe_reading(screens.chart(), positions=True).text
    values = "Q1, Europe 31; Q1, Asia 18; Q2, Europe 29; Q2, Asia 52"
    assert find_statement(text, '"Revenue by region"', "[30, 10, 930, 570]", "million USD", values)
    assert find_statement(text, "Europe blue", "Asia orange")


def test_unknown_states_are_reported() -> None:
    parts = (InterfacePart("picture", Box(0, 0, 9, 9), (1, 2, 3)),)
    codes = (Barcode("QRCode", "hello", Box(1, 2, 3, 4)),)
    text = describe_reading(ImageReading(Size(640, 480), parts=parts, codes=codes), positions=True).text
    assert text.startswith(NO_TEXT)
    assert find_statement(text, "QR code", "[1, 2, 4, 6]", '"hello"')
    assert len(list_added(EMPTY, replace(EMPTY, photograph=True))) == 1
    (rotated,) = list_added(EMPTY, replace(EMPTY, rotation=90))
    assert "90" in rotated


def test_a_radio_button_has_its_label_and_state() -> None:
    def describe(checked: bool | None) -> str:
        part = InterfacePart("radio", Box(20, 30, 16, 16), (1, 2, 3), (0,), checked)
        reading = ImageReading(Size(200, 90), (line("Manual", 46, 32),), parts=(part,))
        return describe_reading(reading, positions=True).text

    states = {find_statement(describe(checked), '"Manual"', "[20, 30, 36, 46]") for checked in (True, False, None)}
    assert len(states) == 3


@requirement("reader.states")
def test_a_control_that_is_perhaps_disabled_is_said_to_be() -> None:
    kinds: tuple[PartKind, ...] = ("button", "field", "check")
    for kind in kinds:
        part = InterfacePart(kind, Box(20, 20, 80, 30), WHITE, (0,), False if kind == "check" else None)
        plain = ImageReading(Size(300, 90), (line("Next", 30, 30),), parts=(part,))
        pale = replace(plain, states=(ItemState("disabled", part.box),))
        sentences = [next(iter(find_controls(reading))).sentence for reading in (plain, pale)]
        assert len(sentences[1]) > len(sentences[0])
        assert describe_reading(plain).text != describe_reading(pale).text


def test_a_pale_button_may_be_disabled() -> None:
    lines = (line("Save", 30, 30), line("Next", 130, 30, ink=(190, 190, 190)))
    parts = tuple(InterfacePart("button", Box(20 + 100 * at, 20, 80, 30), WHITE, (at,)) for at in range(2))
    reading = ImageReading(Size(300, 90), lines, parts=parts)
    assert [is_pale_button(part, reading) for part in parts] == [False, True]
    text = describe_reading(reading, positions=True).text
    assert find_statement(text, '"Next"', "[120, 20, 200, 50]", "light grey")
    assert find_statement(text, '"Save"', "[20, 20, 100, 50]", "black")


def test_lines_that_were_not_read_are_listed_with_their_boxes() -> None:
    one, other, last = Box(10, 20, 90, 12), Box(10, 50, 80, 12), Box(10, 80, 70, 12)
    reading = replace(EMPTY, unread=(one, other), late=(last,), searched=False)
    assert transcribe(reading) != NO_TEXT
    text = describe_reading(reading).text
    assert text.startswith(transcribe(reading))
    assert find_statement(text, "2 ", "[10, 20, 100, 32]; [10, 50, 90, 62]")
    assert find_statement(text, "1 ", "[10, 80, 80, 92]")
    assert len(list_added(replace(reading, searched=True), reading)) == 1
    many = describe_reading(replace(EMPTY, unread=tuple(Box(0, y, 9, 9) for y in range(100)))).text
    assert find_statement(many, "100 ", "[0, 2, 9, 11]", " 97 ")
    kinds = set()
    for box in (one, Box(114, 194, 20, 24)):  # one is as wide as a line, the other as a letter
        found = find_statement(describe_reading(replace(EMPTY, unread=(box,))).text, "1 ", format_box(box))
        kinds.add(found.replace(format_box(box), ""))
    assert len(kinds) == 2


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
    written = describe_reading(ImageReading(Size(90, 90), (doubted,)), positions=True).text
    certain = describe_reading(ImageReading(Size(90, 90), (line(text, 1, 1),)), positions=True).text
    listed = written.count(quote_line(doubted)) - certain.count(quote_line(line(text, 1, 1)))
    assert listed == bool(marked)
    legend = [each for each in written.splitlines()[1:] if "‹" in each and quote_line(doubted) not in each]
    assert len(legend) == bool(doubtful)
    assert written.startswith(marked or text)


def test_text_that_was_not_read_is_neither_empty_nor_missing() -> None:
    form = replace(screens.form(), unread=(Box(120, 370, 80, 12),))  # in the field of the company
    facts = ('"Company (optional)"', "[108, 358, 612, 398]")
    empty = find_statement(describe_reading(screens.form(), positions=True).text, *facts)
    assert find_statement(describe_reading(form, positions=True).text, *facts) != empty


def test_a_password_field_is_not_empty_but_one_with_an_arrow_or_a_caret_is() -> None:
    sketch = Sketch()
    for y, name in ((60, "Password"), (140, "Country"), (220, "City")):
        sketch.write(60, y, name)
        sketch.pen.rectangle((60, y + 14, 400, y + 50), "#ffffff", "#909090")
    for dot in range(8):
        sketch.pen.ellipse((72 + 11 * dot, 88, 78 + 11 * dot, 94), "#202020")
    sketch.pen.polygon([(376, 168), (390, 168), (383, 176)], "#505050")
    sketch.pen.line([(70, 242), (70, 262)], "#202020")
    text = describe_reading(examine_image(sketch.pixels, sketch.lines), positions=True).text
    fields = dict(re.findall(r'^- [^"]*"(Password|Country|City)" .*\] (.*)$', text, re.MULTILINE))
    assert fields["Country"] == fields["City"] != fields["Password"]


def test_pale_text_in_a_field_may_be_a_placeholder() -> None:
    labels = tuple(line(name, 80, 36 + 60 * at, ink=(68, 68, 68)) for at, name in enumerate(("Name", "Street")))
    typed = (line("Ingrid", 90, 60), line("e.g. 12 Baker Street", 90, 120, ink=(170, 170, 170)))
    parts = tuple(InterfacePart("field", Box(80, 52 + 60 * at, 300, 28), WHITE, (2 + at,)) for at in range(2))
    reading = ImageReading(Size(500, 300), (*labels, *typed), parts=parts)
    assert [is_placeholder(part, reading) for part in parts] == [False, True]
    text = describe_reading(reading).text
    assert find_statement(text, '"Street"', '"e.g. 12 Baker Street"')
    assert find_statement(text, '"Name"', '"Ingrid"')


def test_articles_fit_their_colours() -> None:
    parts = (InterfacePart("panel", Box(20, 92, 84, 92), ORANGE, (0,)),)
    reading = ImageReading(Size(400, 400), (line("7", 58, 128, 20),), parts=parts)
    assert "An orange panel" in describe_reading(reading, positions=True).text


def test_lone_strokes_are_chinese_only_beside_other_chinese() -> None:
    read = [line("Cork", 20, 20), line("一", 80, 20), line("二", 80, 60), line("十", 80, 90), line("非", 80, 120)]
    assert [each.text for each in replace_lone_strokes(read)] == ["Cork", "—", "=", "+", "#"]
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
    reading = ImageReading(Size(800, 600), lines)
    titles = find_titles(reading)
    assert (titles.heading, titles.largest) == (lines[1], False)
    assert find_statement(describe_reading(reading, positions=True).text, '"Orders today"')


def test_colours_of_text_in_a_photograph_are_not_reported() -> None:
    reading = ImageReading(Size(90, 90), (line("STOP", 9, 9, ink=(210, 47, 47), ground=GREY),), photograph=True)
    assert "red" not in describe_reading(reading).text.split()
    assert find_statement(describe_reading(replace(reading, photograph=False)).text, " red", '"STOP"')
