"""What the reader returns to a question: related lines and parts first, then everything, and no reasoning."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box, Size
from sightline.reader.compare import compare_images
from sightline.reader.describe import describe_rotation
from sightline.reader.reading import Barcode, ImageReading, InterfacePart, TextLine
from sightline.reader.report import ReadImage, find_related_items, report_images
from sightline.reader.sections import ALL_TEXT, HINT, NOTE, RELATED
from tests.reader import screens
from tests.reader.screens import RED, line
from tests.reader.statements import describe_reading
from tests.reader.test_schema_lookup import grid, lines_of
from tests.requirements import requirement


def read(reading: ImageReading, edge: int = 8) -> ReadImage:
    return ReadImage(reading, np.zeros((edge, 8, 3), np.uint8))


def first_related(question: str, reading: ImageReading) -> str:
    found = find_related_items(question, reading)
    return found[0].sentence if found else ""


@requirement("seer.local.related")
@pytest.mark.parametrize(
    ("reading", "question", "facts"),
    [
        (screens.dialog(), "What is the error code?", ['"required. Error code: 0x80070070 (DISK_FULL)."']),
        (screens.dialog(), "What is the title of the dialog?", ['"Backup Manager"', "[254, 160, 338, 172]"]),
        (screens.dialog(), "Where is the Cancel button?", ['"Cancel"', "[676, 404, 780, 436]"]),
        (screens.form(), "What is entered in Full name?", ['"Full name"', "[108, 189, 612, 229]", '"Marguerite']),
        (screens.form(), "Are the terms agreed to?", ['"I agree to the terms"', "[112, 420, 125, 433]"]),
        (screens.form(), "What does the message in red say?", ['"Enter a valid VAT number: 9 digits after GB"']),
        (screens.chart(), "How did Asia do in Q2?", ['"Revenue by region"', "Q2, Asia: 52 million USD"]),
        (screens.table(), "What does the floor lamp cost?", ["Floor lamp", "$134.16"]),
        (lines_of("Fullname", "Ann Lee"), "What is the full name?", ['"Fullname"']),
        (lines_of("3 migrations failed", "Ready"), "Which migration failed?", ['"3 migrations failed"']),
        (lines_of("設定", "エラーコード: 42", "閉じる"), "エラーのコードは何ですか?", ['"エラーコード: 42"']),
        (lines_of("文件", "错误代码 0x80", "关闭"), "错误是什么?", ['"错误代码 0x80"']),
        (lines_of("설정", "오류 코드 42", "닫기"), "오류 코드가 뭐예요?", ['"오류 코드 42"']),
        (lines_of("Einstellungen", "Fehlercode: 17", "Schließen"), "Wie lautet der FEHLERCODE?", ['"Fehlercode: 17"']),
        (lines_of("Ｃｏｄｅ １７", "Ok"), "code 17?", ['"Ｃｏｄｅ １７"']),
    ],
)
def test_lines_that_share_words_with_the_question_come_first(
    reading: ImageReading, question: str, facts: list[str]
) -> None:
    found = first_related(question, reading)
    assert [fact for fact in facts if fact not in found] == []


def test_a_table_row_is_quoted_with_its_heads_and_a_line_with_its_row() -> None:
    people = grid(("Name", "Email", "Phone"), ("Ann Lee", "ann@x.org", "5501"), ("Bob Ray", "bob@x.org", "5502"))
    assert first_related("What is Bob's email?", people).endswith(": Name: Bob Ray | Email: bob@x.org | Phone: 5502")
    row = ImageReading(Size(800, 300), (line("Owner", 30, 60), line("Ann Lee", 400, 60), line("Other", 30, 120)))
    owner = first_related("Who is the owner?", row)
    assert re.findall(r'"[^"]*"|\[.*?\]', owner) == ['"Owner"', "[30, 60, 60, 72]", '"Ann Lee"']


@requirement("seer.local.related", "seer.local.says")
@pytest.mark.parametrize("screen", screens.ALL)
@pytest.mark.parametrize("question", ["A backup, a price, a VAT number or a region?", "Why is the dog sad?", ""])
def test_every_question_gets_everything_that_was_read(screen: str, question: str) -> None:
    reading = screens.ALL[screen]()
    report = report_images(question, None, [read(reading)])
    related, _, rest = report.text.partition(f"{NOTE}\n\n{ALL_TEXT}\n")
    assert report.text.count(NOTE) == 1
    if rest:
        assert related.startswith(f"{RELATED}\n- ")
        assert f"{rest}\n\n{NOTE}" == describe_reading(reading).text
        assert all(str([spot.box.x, spot.box.y, spot.box.right, spot.box.bottom]) in related for spot in report.spots)
    else:
        assert report == describe_reading(reading)


@pytest.mark.parametrize(
    "question", ["", "Describe this image.", "What do you see?", "What is this?", "What’s shown here?"]
)
def test_a_question_without_words_of_the_image_gets_the_description(question: str) -> None:
    assert report_images(question, None, [read(screens.form())]) == describe_reading(screens.form())


def test_text_in_a_photograph_is_never_refused() -> None:
    reading = ImageReading(Size(640, 480), (line("STOP", 40, 40, ink=RED),), photograph=True)
    report = report_images("What breed is the dog?", None, [read(reading)])
    assert report.text.startswith("STOP\n")
    assert report == describe_reading(reading)


def test_the_related_lines_of_a_rotated_image_say_so() -> None:
    reading = ImageReading(Size(640, 480), (line("STOP", 40, 40),), rotation=90)
    related, _, _ = report_images("Where is the stop sign?", None, [read(reading)]).text.partition(NOTE)
    assert describe_rotation(reading) in related


@requirement("seer.local.related")
def test_a_long_report_has_its_note_and_a_hint_to_crop_before_its_text() -> None:
    reading = ImageReading(
        Size(900, 9000), tuple(line(f"Row {at} of the long report", 40, 20 * at) for at in range(400))
    )
    for question in ("Which is row 399?", ""):
        text = report_images(question, None, [read(reading)]).text
        assert len(text) > 8_000
        assert text.index(f"{NOTE} {HINT}") < 2_000
        assert text.count(NOTE) == 1
    assert report_images("Which is row 399?", None, [read(reading)]).text.startswith(f'{RELATED}\n- "Row 399 of')


@requirement("seer.local.compare")
def test_several_images_are_related_compared_and_read() -> None:
    one, other = read(screens.dialog()), read(screens.form(), 9)
    report = report_images("What is the VAT number?", None, [one, other])
    related, _, rest = report.text.partition(NOTE)
    heading, first = related.splitlines()[:2]
    assert heading.startswith(RELATED[:-1])
    assert heading.endswith(" 2:")
    assert '"VAT number"' in first
    assert compare_images(one.reading, other.reading, None).text in related
    assert rest.startswith(f"\n\n{ALL_TEXT}\nImage 1:\nBackup Manager\n")
    assert "\n\nImage 2:\nShipments\n" in rest
    assert {spot.image for spot in report.spots} == {1}
    described = report_images("What is the VAT number?", None, [one, other], described=True)
    assert described.text == f"{related.rstrip()}\n\n{NOTE}"


_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)
_boxes = st.builds(Box, st.integers(0, 500), st.integers(0, 500), st.integers(1, 300), st.integers(1, 40))
_kinds = st.sampled_from(["button", "field", "check", "radio", "panel", "bar", "picture"])


@st.composite
def _readings(draw: st.DrawFn) -> ImageReading:
    lines = draw(st.lists(st.builds(TextLine, _texts, _boxes), max_size=8).map(tuple))
    held = st.sets(st.integers(0, len(lines) - 1), max_size=2).map(tuple) if lines else st.just(())
    parts = draw(st.lists(st.builds(InterfacePart, _kinds, _boxes, st.just((9, 9, 9)), held), max_size=5))
    codes = draw(st.lists(st.builds(Barcode, st.just("QRCode"), _texts, _boxes), max_size=1))
    return ImageReading(Size(600, 600), lines, "", tuple(parts), codes=tuple(codes))


@requirement("seer.local.related")
@given(reading=_readings(), question=_texts)
def test_nothing_is_reported_that_was_not_read(reading: ImageReading, question: str) -> None:
    report = report_images(question, None, [read(reading)])
    assert all(line.text in report.text for line in reading.lines)
    known = " ".join([*(line.text for line in reading.lines), *(code.text for code in reading.codes)])
    for quote in re.findall(r'"([^"\n]*)"', report.text.partition(NOTE)[0]):
        assert set(quote.split()) <= set(known.split()) or '"' in known
