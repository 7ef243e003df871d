"""Everyday screens on which a question finds words that do not answer it."""

from __future__ import annotations

import pytest

from sightline.model.geometry import Box, Size
from sightline.seers.local.looking import see
from sightline.seers.local.reading import without_strokes
from sightline.seers.local.say import describe
from sightline.seers.local.seen import Part, Seen, Table
from sightline.seers.local.titles import heading
from tests.requirements import requirement
from tests.seers.local.screens import ORANGE, WHITE, line
from tests.seers.local.sketch import Sketch
from tests.seers.local.test_questions import grid, lines, words_of

FACTS = grid(("Invoice no.", "2026-1188"), ("Issue date", "2 November 2026"), ("Customer no.", "40071"))
FILES = grid(("Name", "Type", "Size"), ("photos.zip", "Archive", "1.3 GB"), ("readme.txt", "Text", "2 KB"))
BOARD = grid(("14:12", "Lyon", "On time"), ("14:20", "Geneva", "On time"))


BALANCES = Seen(Size(800, 300), (line("Balance", 30, 60), line("Available", 400, 60),
                                 line("$2,310.55", 30, 84, 24), line("$1,980.00", 400, 84, 24)))  # fmt: skip
PLAIN_WORDS = Seen(Size(800, 300), (line("Status", 30, 60), line("Paid", 400, 60),
                                    line("Owner", 30, 84), line("Ann Lee", 400, 84)))  # fmt: skip


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("seen", "question", "said"),
    [
        (FACTS, "Who is the customer?", "no"),
        (FILES, "How big is photos.zip?", "no"),
        (FILES, "How big is the image?", "960 pixels wide and 480 high"),
        (FILES, "What is the size of the screenshot in pixels?", "960 pixels wide and 480 high"),
        (BALANCES, "What is the balance?", '"$2,310.55" (stands for "Balance")'),
        (PLAIN_WORDS, "What is the status?", '"Paid" (stands for "Status")'),
        (BOARD, "What time is it?", "no"),
        (lines("The picnic time is 14:00"), "What time is the picnic?", 'It says: "The picnic time is 14:00"'),
        (lines("budget_q4.xlsx", "Travel", "Licences"), "Which item is over budget?", "no"),
        (lines("Budget", "Travel", "Licences"), "Which item is under budget?", "no"),
        (lines("Budget", "Travel", "Licences"), "What stands under Budget?", '"Travel"'),
        (lines("2024", "Bilbao", "1,077"), "What did Espoo produce in 2024?", "no"),
        (lines("Test Suites: 1 failed, 2 passed, 3 total"), "How many tests passed?", "no"),
        (lines("Testspassed:41 of 42"), "How many tests passed?", 'It says: "Testspassed:41 of 42"'),
        (lines("def __init__(self, number: int, lines: list) -> None:"), "What is the number?", "no"),
        (lines('"account": {', '"limit": 1000,'), "What is the account?", "no"),
        (lines('"account": {', '"limit": 1000,'), "What is the limit?", '"1000" (in ""limit": 1000,")'),
        (lines("Needed: 48.2 GB Free: 11.7 GB"), "What is needed?", '"48.2 GB" (in "Needed: 48.2 GB Free: 11.7 GB")'),
    ],
)  # fmt: skip
def test_words_that_only_look_like_an_answer_are_none(seen: Seen, question: str, said: str) -> None:
    assert words_of(question, seen) == said


@requirement("seer.local.no")
def test_a_field_with_dots_in_it_is_not_empty_and_one_with_an_arrow_or_a_caret_is() -> None:
    sketch = Sketch()
    for y, name in ((60, "Password"), (140, "Country"), (220, "City")):
        sketch.write(60, y, name)
        sketch.pen.rectangle((60, y + 14, 400, y + 50), "#ffffff", "#909090")
    for dot in range(8):
        sketch.pen.ellipse((72 + 11 * dot, 88, 78 + 11 * dot, 94), "#202020")
    sketch.pen.polygon([(376, 168), (390, 168), (383, 176)], "#505050")
    sketch.pen.line([(70, 242), (70, 262)], "#202020")
    seen = see(sketch.pixels, sketch.lines)
    assert words_of("What is the password?", seen) == 'What stands in the field "Password" could not be read.'
    assert words_of("Which fields are empty?", seen) == '"Country", "City"'
    assert words_of("How many fields are there?", seen) == "3"
    assert "holds something that could not be read" in describe(seen).text


def test_a_hint_at_what_to_type_is_said_to_be_perhaps_no_more_than_that() -> None:
    names, held = (
        ("Name", "Street"),
        (line("Ingrid", 90, 60), line("e.g. 12 Baker Street", 90, 120, ink=(170, 170, 170))),
    )
    labels = tuple(line(name, 80, 36 + 60 * at, ink=(68, 68, 68)) for at, name in enumerate(names))
    parts = tuple(Part("field", Box(80, 52 + 60 * at, 300, 28), WHITE, (2 + at,)) for at in range(2))
    seen = Seen(Size(500, 300), (*labels, *held), parts=parts)
    pale = "; in pale letters, perhaps no more than a hint"
    assert words_of("What is entered in Street?", seen) == f'"e.g. 12 Baker Street" (field "Street"{pale})'
    assert words_of("What is entered in Name?", seen) == '"Ingrid" (field "Name")'
    empty = 'No field is empty; pale text, perhaps no more than a hint, stands in "Street".'
    assert words_of("Which fields are empty?", seen) == empty
    more = '0; pale text, perhaps no more than a hint, stands in "Street"'
    assert words_of("How many fields are empty?", seen) == more
    assert words_of("How many fields are there?", seen) == "2"
    assert f'holds "e.g. 12 Baker Street"{pale}.' in describe(seen).text


def test_cards_within_columns_are_counted_with_them_and_that_is_said() -> None:
    columns = [Part("panel", Box(30 + 390 * x, 70, 370, 500), WHITE) for x in range(2)]
    cards = [Part("panel", Box(40 + 390 * x, 116 + 100 * y, 350, 88), WHITE) for x in range(2) for y in range(3)]
    seen = Seen(Size(900, 620), parts=(*columns, *cards))
    assert words_of("How many cards are there?", seen) == "8, 6 of them within others"
    assert words_of("How many cards are there?", Seen(Size(900, 620), parts=tuple(cards))) == "6"


def test_keys_that_are_too_high_for_buttons_are_counted_as_what_may_be_some() -> None:
    keys = tuple(line(str(key), 58 + 92 * key, 128, 20) for key in range(3))
    card = (line("Total", 40, 240), line("127", 40, 264))
    parts = tuple(Part("panel", Box(20 + 92 * key, 92, 84, 92), WHITE, (key,)) for key in range(3))
    seen = Seen(Size(400, 400), (*keys, *card), parts=(*parts, Part("panel", Box(20, 220, 300, 80), WHITE, (3, 4))))
    more = "0; 3 panels with one text in the middle may be large buttons"
    assert words_of("How many buttons are there?", seen) == more
    assert words_of("How many panels are there?", seen) == "4"
    orange = Seen(Size(400, 400), keys, parts=(Part("panel", Box(20, 92, 84, 92), ORANGE, (0,)),))
    assert "An orange panel" in describe(orange).text


def test_strokes_are_letters_of_chinese_only_beside_others() -> None:
    read = [line("Cork", 20, 20), line("一", 80, 20), line("二", 80, 60)]
    assert [each.text for each in without_strokes(read)] == ["Cork", "—", "="]
    beside = [line("会議", 20, 20), line("一", 80, 20)]
    assert [each.text for each in without_strokes(beside)] == ["会議", "一"]


def test_a_heading_is_larger_than_the_cells_below_it_and_no_cell_is_one() -> None:
    names = ("Item", "12", "Laptops", "30", "Sofia", "42")
    cells = [line(name, 40 + 200 * (at % 2), 80 + 40 * (at // 2), 14 if name == "Sofia" else 12)
             for at, name in enumerate(names)]  # fmt: skip
    table = Table(Box(30, 74, 500, 120), tuple(((at,), (at + 1,)) for at in range(0, 6, 2)))
    head = line("Budget", 40, 20, 20)
    assert heading(Seen(Size(600, 300), tuple(cells), tables=(table,))) is None
    assert heading(Seen(Size(600, 300), (*cells, head), tables=(table,))) == head
