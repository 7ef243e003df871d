"""Questions: what was read answers them, and what was not is a plain no."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.seers.local.amounts import amounts, whole
from sightline.seers.local.amounts import number as amount
from sightline.seers.local.answer import answer
from sightline.seers.local.figures import number
from sightline.seers.local.noes import NO
from sightline.seers.local.phrases import words
from sightline.seers.local.seen import Chart, Code, Line, Mark, Part, Seen, Table
from sightline.seers.local.subjects import Said
from tests.requirements import requirement
from tests.seers.local import screens

QUESTIONS = [
    ("dialog", "What is the title of the dialog?", '"Backup Manager" (in the title bar; the largest', (254, 160)),
    ("dialog", "What is the heading?", '"Backup could not be completed"', (333, 209)),
    ("dialog", "What is the error code?", '"0x80070070 (DISK_FULL)"', (333, 270)),
    ("dialog", "When was the last successful backup?", '"11 March 2026, 22:40"', (333, 310)),
    ("dialog", "How many buttons are there?", "2", (450, 404)),
    ("dialog", "How many blue buttons does the dialog have?", "1", (450, 404)),
    ("dialog", "Which buttons are there?", '"Try again", "Cancel"', (450, 404)),
    ("dialog", "What colour is the Try again button?", "blue (#1d5fd1), with white (#ffffff) text", (450, 404)),
    ("dialog", 'What is the text colour of the "Cancel" button?', "grey (#787878)", (676, 404)),
    ("dialog", "Where is the Cancel button?", 'button "Cancel" at [676, 404, 780, 436], bottom right', (676, 404)),
    ("dialog", "Is there a Cancel button?", 'Yes: button "Cancel"', (676, 404)),
    ("dialog", 'How many times does "backup" appear?', "3", (254, 160)),
    ("dialog", "What is the error message?", '"Backup could not be completed"', (333, 209)),
    ("dialog", "What text is below the heading?", '"The drive (E:) has only 1.7 GB free', (332, 250)),
    ("dialog", "Read the text in the top left corner", "Backup Manager\nBackup could not be completed", (254, 160)),
    ("dialog", "What is the size of the image?", "1040 pixels wide and 600 high", None),
    ("dialog", "What are the main colours?", "dark blue (#163e5f) 60%, white (#ffffff) 20%", None),
    ("form", "What is the value of the VAT number field?", '"GB 294 8371 06" (field "VAT number")', (108, 262)),
    ("form", "What is written in the VAT number field?", '"GB 294 8371 06" (field "VAT number")', (108, 262)),
    ("chart", "What text is in the image?", "Revenue by region\nEurope\nAsia", (300, 15)),
    ("chart", "Transcribe everything", "Revenue by region\nEurope\nAsia", (300, 15)),
    ("form", "What is entered in Full name?", '"Marguerite O\'Connell" (field "Full name")', (108, 189)),
    ("form", "What is the user's full name?", '"Marguerite O\'Connell" (field "Full name")', (108, 189)),
    ("form", "What is in the Company field?", 'The field "Company (optional)" is empty.', (108, 358)),
    ("form", "What is the value of the field VAT?", '"GB 294 8371 06" (field "VAT number")', (108, 262)),
    ("form", "What is written in the VAT numberr field?", '"GB 294 8371 06" (field "VAT number")', (108, 262)),
    ("form", "How much is the subtotal?", '"£348.00"', (700, 176)),
    ("form", "What is the total due today?", '"£417.60"', (700, 200)),
    ("form", "Is the box 'I agree to the terms' checked?", "Yes: it is checked", (112, 420)),
    ("form", "Is I agree to the terms unchecked?", "No: it is checked", (112, 420)),
    ("form", "How many empty fields are there?", "1", (108, 358)),
    ("form", "What is wrong?", '"Enter a valid VAT number: 9 digits after GB"', (108, 308)),
    ("form", "What colour is the text 'Enter a valid VAT number'?", "red (#d22f2f) on white (#ffffff)", (108, 308)),
    ("chart", "What was Europe's revenue in Q1?", "31 million USD (Q1, Europe)", (100, 345)),
    ("chart", "Which quarter has the highest value for Asia?", "52 million USD (Q2, Asia)", (280, 240)),
    ("chart", "List all values of the chart", "Q1, Europe: 31\nQ1, Asia: 18\nQ2, Europe: 29\nQ2, Asia: 52", (100, 345)),
    ("chart", "What is the sum of Asia?", "70 million USD, the sum of 2 values", (160, 410)),
    ("chart", "What colour are the Europe bars?", "blue (#1d5fd1)", (100, 345)),
    ("chart", "How many bars are there?", "4", None),
    ("chart", "What is the title of the chart?", '"Revenue by region"', (300, 15)),
    ("table", "What is the price of the Floor lamp?", "$134.16 (Price of Floor lamp)", (240, 120)),
    ("table", "What is the quantity in row 2?", "44 (Quantity of Side table)", (440, 160)),
    ("table", "What is the price in the last row?", "$83.60 (Price of Coat stand)", (240, 200)),
    ("table", "Which item has the highest price?", "Side table ($348.52)", (40, 160)),
    ("table", "How many rows does the table have?", "3, below its head", (30, 74)),
    ("table", "What columns are there?", "Item, Price, Quantity", None),
]  # fmt: skip


@pytest.mark.parametrize(("screen", "question", "wanted", "place"), QUESTIONS)
def test_what_was_read_answers(screen: str, question: str, wanted: str, place: tuple[int, int] | None) -> None:
    said = answer(question, screens.ALL[screen]())
    assert isinstance(said, Said), said
    assert said.text.startswith(wanted)
    if place is None:
        assert all(spot.label == "table" for spot in said.spots)
    else:
        assert (said.spots[0].box.x, said.spots[0].box.y) == place


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("screen", "question"),
    [
        ("dialog", "Why is the cat sad?"),
        ("dialog", "What breed is the dog?"),
        ("dialog", "How many people are there?"),
        ("dialog", "What colour is the car?"),
        ("dialog", "Where is the dog?"),
        ("dialog", "Is there a person?"),
        ("dialog", "What will happen when I click Try again?"),
        ("dialog", "Is the Cancel button broken?"),
        ("dialog", "Which button should I press?"),
        ("dialog", "What does Try again do?"),
        ("dialog", "What is the title of the song?"),
        ("dialog", "How many disabled buttons are there?"),
        ("form", "What is the phone number?"),
        ("form", "What is Shipments?"),
        ("form", "What is create your account?"),
        ("form", "When is the subtotal?"),
        ("table", "What is the price of the bookshelf?"),
        ("table", "What is the weight of the Floor lamp?"),
        ("table", "What is the price?"),
        ("table", "What was the price of the Side table last year?"),
        ("chart", "What is the trend?"),
        ("dialog", "🤷"),
        ("dialog", "?" * 3000),
    ],
)
def test_what_reading_does_not_answer_is_a_no_that_names_what_would_help(screen: str, question: str) -> None:
    no = answer(question, screens.ALL[screen]())
    assert no == NO
    assert "sightline vision-proxy model PROVIDER/MODEL" in NO.remedy


@pytest.mark.parametrize(
    ("screen", "question", "said"),
    [
        ("dialog", "Where is the Delete button?", 'Nothing that was read says "delete".'),
        ("dialog", 'Is there a "Delete" button?', 'No. Nothing that was read says "Delete".'),
        ("dialog", "Is there a checkbox?", "No. No check was found."),
        ("dialog", "What does the QR code say?", "No QR code and no bar code was found."),
        ("chart", "How high was Africa in Q1?", "The chart says nothing of africa. It has: Q1, Q2; Europe, Asia."),
        ("dialog", "What colour is the pixel at 5000, 10?", "There is no pixel at 5000, 10: the image is 1040x600."),
    ],
)  # fmt: skip
def test_what_is_not_there_is_said_to_be_absent(screen: str, question: str, said: str) -> None:
    assert answer(question, screens.ALL[screen]()) == Said(said)


def test_a_pixel_and_a_code_are_told() -> None:
    seen = Seen(Size(9, 9), codes=(Code("QRCode", "https://example.org/a", Box(1, 1, 7, 7)),))
    at = answer("What colour is at (3, 4)?", seen, lambda x, y: (x, y, 255))
    assert isinstance(at, Said)
    assert at.text == "blue (#0304ff)"
    code = answer("What does the QR code say?", seen)
    assert isinstance(code, Said)
    assert code.text == 'QRCode: "https://example.org/a"'


def test_a_key_and_its_value_in_columns_are_found_and_words_of_a_menu_are_not() -> None:
    rows = [("Status", "Overdue"), ("Owner", "Priya Raman")]
    pairs = tuple(
        screens.line(text, 40 + 300 * x, 50 + 40 * y) for y, row in enumerate(rows) for x, text in enumerate(row)
    )
    said = answer("What is the status?", Seen(Size(600, 300), pairs))
    assert isinstance(said, Said)
    assert said.text == '"Overdue" (stands for "Status")'
    menu = tuple(screens.line(text, 40 + 200 * x, 20) for x, text in enumerate(("Status", "Owner")))
    assert answer("What is the status?", Seen(Size(600, 300), menu)) == NO


def test_heads_that_were_found_apart_from_their_table_belong_to_it() -> None:
    whole = screens.table()
    apart = replace(whole, tables=(Table(Box(30, 120, 900, 100), whole.tables[0].rows[1:]),))
    assert answer("What is the price of the Floor lamp?", apart) == answer(
        "What is the price of the Floor lamp?", whole
    )
    said = answer("How many rows does the table have?", apart)
    assert isinstance(said, Said)
    assert said.text == "3, below its head"


_texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=30)
_boxes = st.builds(Box, st.integers(0, 500), st.integers(0, 500), st.integers(1, 300), st.integers(1, 40))
_lines = st.lists(st.builds(Line, _texts, _boxes), max_size=8).map(tuple)
_kinds = st.sampled_from(["button", "field", "check", "panel", "bar"])


@st.composite
def _seen(draw: st.DrawFn) -> Seen:
    lines = draw(_lines)
    held = st.sets(st.integers(0, len(lines) - 1), max_size=2).map(tuple) if lines else st.just(())
    parts = draw(st.lists(st.builds(Part, _kinds, _boxes, st.just((9, 9, 9)), held), max_size=5))
    return Seen(Size(600, 600), lines, "", tuple(parts))


_FRAMES = [question for _, question, *_ in QUESTIONS]


@requirement("seer.local.no")
@given(seen=_seen(), question=st.one_of(_texts, st.sampled_from(_FRAMES)), word=_texts)
def test_nothing_is_quoted_that_was_neither_read_nor_asked(seen: Seen, question: str, word: str) -> None:
    asked = question.replace("VAT number", word) if word else question
    said = answer(asked, seen)
    if isinstance(said, Refusal):
        return
    known = set(words(" ".join(each.text for each in seen.lines))) | set(words(asked)) | {"button", "field", "check"}
    for quote in re.findall(r'"([^"]*)"', said.text):
        assert set(words(quote)) <= known | {word[:-1] for word in known}


@pytest.mark.parametrize(
    ("text", "value"),
    [("$1,234.50", 1234.5), ("12 %", 12.0), ("-3", -3.0), ("1.234,5 €", 1234.5), ("3,5", 3.5), ("£69.60", 69.6),
     ("12 GB", 12.0), ("1.200.000", 1.2e6), ("1.2M", 1.2e6), ("$3k", 3000.0), ("64 B", 64.0), ("12,34,567", 1234567.0),
     ("(5)", -5.0), ("1 234,5", 1234.5), ("1e999", None),
     ("v1.2.3", None), ("", None), ("Paid", None), ("11 March 2026", None)],
)  # fmt: skip
def test_an_amount_is_read_and_nothing_else_is_taken_for_one(text: str, value: float | None) -> None:
    assert amount(text) == value


@given(_texts)
def test_an_amount_is_a_number_or_nothing(text: str) -> None:
    assert amount(text) is None or re.search(r"\d", text)


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ((0.034, 0.012, 0.047, 0.0255), ["0.034", "0.012", "0.047", "0.0255"]),
        ((1.204, 1.231), ["1.204", "1.231"]),
        ((42.03, 63.0), ["42", "63"]),
        ((1240854.0, 980321.0), ["1241000", "980000"]),
    ],
)
def test_a_value_is_said_as_exactly_as_its_chart_shows_it(values: tuple[float, ...], said: list[str]) -> None:
    marks = tuple(Mark(f"Q{n}", "", value, Box(0, 0, 9, 9), (0, 0, 255)) for n, value in enumerate(values))
    chart = Chart("bar", Box(0, 0, 99, 99), marks=marks)
    assert [number(mark.value, chart) for mark in marks] == said


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("screen", "question"),
    [
        ("form", "How many fields are not empty?"),
        ("form", "Are there more than 3 fields?"),
        ("form", "How many fields aren't filled in?"),
        ("dialog", "How many buttons are at the top?"),
        ("chart", "How much more is Europe than Asia in Q1?"),
        ("chart", "Is Europe higher than Asia in Q1?"),
        ("chart", "What is the difference between Europe and Asia in Q1?"),
        ("chart", "What is the average of Asia?"),
    ],
)
def test_a_word_that_makes_another_question_of_it_leads_to_a_no(screen: str, question: str) -> None:
    assert answer(question, screens.ALL[screen]()) == NO


def test_marks_of_thousands_are_told_by_their_column() -> None:
    assert amounts(["1.250", "980", "12.400", "75"]) == [1250, 980, 12400, 75]
    assert amounts(["1.250", "0.98", "12.4"]) == [1.25, 0.98, 12.4]
    assert amounts(["1.250 kg", "", "Bolt", "80 kg"]) == [1250, None, None, 80]
    assert amounts(["1.250", "2.400"]) == [1.25, 2.4]
    assert amounts(["900 B", "2 KB"]) == [None, None]


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.200", 1200), ("1.200.000", 1_200_000), ("1,200", 1200), ("12", 12), ("1.5", None), ("0.125", None)],
)
def test_a_whole_number_keeps_its_marks_of_thousands_to_itself(text: str, value: int | None) -> None:
    assert whole(text) == value


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("Is Manual selected?", "No: it is not chosen"),
        ("Is the Automatic radio button chosen?", "Yes: it is chosen"),
        ("How many radio buttons are there?", "2"),
        ("Which radio buttons are there?", '"Automatic", "Manual"'),
        ("Which option is selected?", '"Automatic"'),
        ("How many check boxes are there?", "0"),
        ("What is the value of Manual?", "not chosen (Manual)"),
        ("Where is the radio button Manual?", "[20, 50, 36, 66]"),
    ],
)
def test_the_state_of_radio_buttons_is_told(question: str, wanted: str) -> None:
    lines = tuple(screens.line(text, 46, y) for text, y in (("Automatic", 22), ("Manual", 52)))
    marks = [Part("radio", Box(20, 20, 16, 16), (0, 0, 200), (0,), checked=True)]
    marks += [Part("radio", Box(20, 50, 16, 16), (255, 255, 255), (1,), checked=False)]
    said = answer(question, Seen(Size(300, 90), lines, parts=tuple(marks)))
    assert isinstance(said, Said), said
    assert wanted in said.text
