"""Questions that are easily answered wrongly: whose, of which row, of what was not looked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.seers.local.answer import answer
from sightline.seers.local.noes import NO, UNLOOKED
from sightline.seers.local.say import describe
from sightline.seers.local.seen import Chart, Mark, Part, Seen, Table
from sightline.seers.local.subjects import Said
from tests.requirements import requirement
from tests.seers.local import screens
from tests.seers.local.screens import BLUE, ORANGE, WHITE, line

PALE = (160, 160, 160)


def grid(*rows: Sequence[str]) -> Seen:
    """A table whose cells stand 200 pixels apart."""
    cells = [(text, x, y) for y, row in enumerate(rows) for x, text in enumerate(row)]
    lines = tuple(line(text, 40 + 200 * x, 80 + 40 * y) for text, x, y in cells if text)
    places = {(x, y): at for at, (x, y) in enumerate((x, y) for text, x, y in cells if text)}
    held = tuple(
        tuple((places[x, y],) if (x, y) in places else () for x in range(len(row))) for y, row in enumerate(rows)
    )
    return Seen(Size(960, 480), lines, "", tables=(Table(Box(30, 74, 900, 40 * len(rows)), held),))


def lines(*texts: str) -> Seen:
    return Seen(Size(800, 600), tuple(line(text, 40, 40 + 22 * at) for at, text in enumerate(texts)))


def words_of(question: str, seen: Seen) -> str:
    said = answer(question, seen)
    return "no" if isinstance(said, Refusal) else said.text


PEOPLE = grid(
    ("Name", "Email", "Phone"), ("Bob Smith", "bob@example.org", "555 0101"), ("Ann Lee", "ann@example.org", "")
)
PLANS = grid(("Plan", "Price", "Storage"), ("Storage plus", "$12", "500 GB"), ("Basic", "$3", "5 GB"))


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("seen", "question", "said"),
    [
        (screens.form(), "What is Bob's VAT number?", "no"),
        (screens.form(), "What is Bob Miller's full name?", "no"),
        (screens.form(), "What is the customer's VAT number?", '"GB 294 8371 06" (field "VAT number")'),
        (lines("Customer email: a@example.org", "Supplier email: b@example.org"), "What is the supplier's email?",
         '"b@example.org" (in "Supplier email: b@example.org")'),
        (PEOPLE, "What is Bob's email?", "bob@example.org (Email of Bob Smith)"),
        (PEOPLE, "What is the email of Ann Lee?", "ann@example.org (Email of Ann Lee)"),
        (PEOPLE, "What is Carl's email?", "no"),
        (PEOPLE, "What is Lee Smith's email?", "no"),
        (lines("Space: 12 GB", "Used: 9 GB"), "How much space is free?", "no"),
        (lines("Space: 12 GB"), "How much space is there?", '"12 GB" (in "Space: 12 GB")'),
    ],
)  # fmt: skip
def test_what_belongs_to_another_is_not_given(seen: Seen, question: str, said: str) -> None:
    assert words_of(question, seen) == said


@pytest.mark.parametrize(
    ("seen", "question", "said"),
    [
        (PLANS, "What is the price of Storage plus?", "$12 (Price of Storage plus)"),
        (PLANS, "How much storage does Basic have?", "5 GB (Storage of Basic)"),
        (PLANS, "What is the price and the storage of Basic?", "no"),
        (grid(("Item", "Price"), ("Price", "$4"), ("Lamp", "$5")), "What is the price of Price?", "no"),
        (PEOPLE, "What is the phone of Ann Lee?", "nothing (Phone of Ann Lee)"),
        (grid(("Item", "Size"), ("Log", "900 B"), ("Dump", "2 KB")), "Which item has the highest size?", "no"),
        (grid(("Item", "Price"), ("Lamp", "$5"), ("Desk", "$5"), ("Pen", "$1")), "Which item has the highest price?",
         "Lamp ($5); Desk ($5)"),
        (grid(("Item", "Price"), ("Lamp", "$5"), ("Desk", "?"), ("Pen", "$1")), "Which item has the highest price?",
         "Lamp ($5), of the 2 rows of 3 that have a number there"),
    ],
)  # fmt: skip
def test_a_cell_is_told_by_its_row_and_its_head(seen: Seen, question: str, said: str) -> None:
    assert words_of(question, seen) == said


def test_a_row_of_one_cell_heads_no_table_and_a_row_of_values_is_no_head() -> None:
    titled = grid(("Open orders", "", ""), ("Item", "Price", "Quantity"), ("Lamp", "$5", "3"), ("Desk", "$9", "4"))
    assert words_of("What is the price of the Desk?", titled) == "$9 (Price of Desk)"
    assert words_of("How many rows does the table have?", titled) == "2, below its head"
    bare = grid(("Lamp", "$5", "3"), ("Desk", "$9", "4"))
    assert words_of("How many rows does the table have?", bare) == "2"
    assert words_of("What columns are there?", bare) == "no"


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the size of the file?", '"4 MB" (in "Size of the file: 4 MB")'),
        ("What is the size of the image?", "800 pixels wide and 600 high"),
        ("How big is the file?", "no"),
    ],
)
def test_a_file_that_is_spoken_of_is_not_the_image(question: str, said: str) -> None:
    assert words_of(question, lines("Size of the file: 4 MB")) == said


def test_what_stands_below_with_a_label_of_its_own_is_not_the_value_of_another() -> None:
    assert words_of("What is the discount?", lines("Discount", "12 items: 40")) == "no"
    row = (line("Discount", 40, 40), line("£417.60", 40, 62), line("Total", 20, 62))
    assert words_of("What is the discount?", Seen(Size(800, 600), (*row[:2], line("due", 140, 62)))) == "no"
    assert words_of("What is the total?", lines("Total", "£417.60")) == '"£417.60" (stands for "Total")'
    assert words_of("What is the Business plan?", lines("Business plan", "£29.00 per month, billed annually")) == "no"
    field = Part("field", Box(36, 58, 200, 20), WHITE, (1,))
    other = replace(lines("Discount", "12"), parts=(field,))
    assert words_of("What is the discount?", other).startswith('"12"')


def _lined(kind: str) -> Chart:
    marks = [Mark(month, series, 3.0, Box(1, 1, 9, 9), BLUE) for month in ("Jan", "Feb") for series in ("A", "B", "C")]
    return Chart("line" if kind == "line" else "bar", Box(0, 0, 400, 300), "Visits", tuple(marks))


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("kind", "question", "said"),
    [
        ("line", "How many lines are in the chart?", "3"),
        ("line", "How many lines does the graph have?", "3"),
        ("bar", "How many lines are in the chart?", "No line chart was read."),
        ("bar", "How many lines of text are there?", "2"),
        ("bar", "How many lines are there?", "2 lines of text"),
        ("line", "How many lines are there?", "2 lines of text; the line chart has 3 lines"),
        ("none", "How many lines are there?", "2 lines of text"),
        ("none", "How many charts are there?", "No bar chart and no line chart was read; others are not looked for."),
        ("bar", "How many charts are there?", "1 that was read; only bar charts and line charts are looked for"),
        ("bar", "How many slices does the pie have?", "no"),
        ("none", "How many slices are there?", "no"),
        ("line", "How many bars are there?", "No bar chart was read."),
        ("bar", "What kind of chart is it?", "a bar chart"),
        ("bar", "Is this a bar chart or a pie chart?", "a bar chart"),
        ("bar", "Is this a line chart?", "No: a bar chart"),
        ("line", "Is this a line graph?", "Yes: a line chart"),
        ("none", "What kind of chart is it?", "no"),
        ("bar", "What is this chart about?", 'Its title is "Visits".'),
        ("bar", "What is in the legend?", "A, B, C"),
    ],
)
def test_what_is_counted_in_a_chart_is_what_it_has(kind: str, question: str, said: str) -> None:
    seen = replace(lines("Visits", "Jan"), charts=() if kind == "none" else (_lined(kind),))
    assert words_of(question, seen) == said


@requirement("seer.local.no")
@pytest.mark.parametrize(
    "question",
    ["How many buttons are there?", "Which buttons are there?", "Is there a button?", "Where is the OK button?",
     "How many tables are there?", "How many charts are there?", "Which fields are empty?", "How many check boxes?"],
)  # fmt: skip
def test_parts_that_were_not_looked_for_are_not_said_to_be_missing(question: str) -> None:
    photograph = Seen(Size(640, 480), (line("EXIT", 40, 40),), photograph=True)
    assert answer(question, photograph) == UNLOOKED


def test_the_colour_of_letters_in_a_photograph_is_not_told() -> None:
    photograph = Seen(Size(640, 480), (line("EXIT", 40, 40, ink=BLUE),), photograph=True)
    assert answer("What colour is the text EXIT?", photograph) == NO


def test_charts_that_both_answer_are_both_told_and_doubts_go_along() -> None:
    one, other = screens.chart().charts[0], replace(screens.chart().charts[0], title="Costs by region")
    two = replace(screens.chart(), charts=(one, other))
    assert words_of("What was Europe in Q1?", two) == (
        "Revenue by region: 31 million USD (Q1, Europe)\nCosts by region: 31 million USD (Q1, Europe)"
    )
    doubtful = replace(screens.chart(), charts=(replace(one, doubts="2 bars are too small to be seen"),))
    assert words_of("What is the sum of Asia?", doubtful).endswith("(2 bars are too small to be seen)")
    assert words_of("Which region has the highest total?", screens.chart()) == "no"


@pytest.mark.parametrize(
    ("screen", "question", "said"),
    [
        ("form", "Which fields are empty?", '"Company (optional)"'),
        ("form", "Which fields are filled in?", '"Full name", "VAT number"'),
        ("form", "list all the fields", '"Full name": "Marguerite O\'Connell", "VAT number": "GB'),
        ("form", "What is the dominant colour?", "white (#ffffff) 80%"),
        ("dialog", "what's the main color", "dark blue (#163e5f) 60%"),
        ("dialog", "Is there any text?", "Yes: 7 lines"),
        ("dialog", "Is there text in this image?", "Yes: 7 lines"),
        ("dialog", "What does the error say?", '"Backup could not be completed"\n"required. Error code:'),
        ("dialog", "Which button is blue?", '"Try again"'),
        ("dialog", "Which buttons are red?", "No button is red."),
        ("dialog", "what buttons can I click", '"Try again", "Cancel"'),
        ("dialog", "What's on the blue button?", '"Try again"'),
        ("dialog", "What does the button say?", '"Try again", "Cancel"'),
        ("dialog", "whats the error code", '"0x80070070 (DISK_FULL)"'),
        ("dialog", "How much space is required?", 'It says: "The drive (E:) has only 1.7 GB free, but 12.4 GB is req'),
        ("dialog", "What's the name of the program?", 'The title bar says "Backup Manager".'),
        ("form", "How much do I have to pay today?", 'It says: "Total due today £417.60"'),
        ("form", "What's the total?", 'It says: "Total due today £417.60"'),
    ],
)  # fmt: skip
def test_what_people_ask_most_is_answered_where_it_is_there(screen: str, question: str, said: str) -> None:
    assert words_of(question, screens.ALL[screen]()).startswith(said)


def _buttons(*looks: tuple[str, tuple[int, int, int], tuple[int, int, int]]) -> Seen:
    texts = tuple(line(name, 40 + 120 * at, 40, ink=ink, ground=fill) for at, (name, fill, ink) in enumerate(looks))
    parts = tuple(Part("button", Box(30 + 120 * at, 30, 100, 32), look[1], (at,)) for at, look in enumerate(looks))
    return Seen(Size(800, 300), texts, "", parts)


@requirement("seer.local.no")
def test_a_button_that_stands_out_is_told_by_what_is_seen_of_it() -> None:
    three = _buttons(("Try again", BLUE, WHITE), ("Free up", WHITE, (0, 0, 0)), ("Cancel", WHITE, PALE))
    said = words_of("Which button is highlighted?", three)
    assert said == '"Try again" is the only one in blue (#1d5fd1); the others are white (#ffffff).'
    said = words_of("Which button is greyed out?", three)
    assert (
        said == '"Cancel" has paler text than the others: grey (#a0a0a0) on white (#ffffff). Nothing says more of it.'
    )
    assert words_of("Is the Cancel button disabled?", three) == "no"
    alike = _buttons(("One", WHITE, (0, 0, 0)), ("Two", WHITE, (0, 0, 0)), ("Three", WHITE, (0, 0, 0)))
    assert words_of("Which button is highlighted?", alike) == "no"
    assert words_of("Which button is disabled?", alike) == "no"
    assert words_of("Which button is highlighted?", _buttons(("One", BLUE, WHITE), ("Two", ORANGE, WHITE))) == "no"


def test_a_row_without_heads_is_quoted_and_what_it_does_not_name_is_said() -> None:
    seen = grid(("005", "user_151262", "pending"), ("006", "user_609851", "active"))
    said = words_of("What is the status of user_151262?", seen)
    spoken = 'Nothing that was read says "status"; where it is spoken of, it says:'
    assert said == f'{spoken} "005 | user_151262 | pending"'
    assert words_of("What is the status of user_000001?", seen) == "no"
    loose = lines("005 user_151262 pending", "006 user_609851 active")
    assert words_of("What is the status of user_609851?", loose) == f'{spoken} "006 user_609851 active"'
    twice = lines("user_609851 active", "user_609851 suspended")
    assert words_of("What is the status of user_609851?", twice) == "no"


def test_the_largest_text_is_called_so_only_where_it_is() -> None:
    big = Seen(Size(800, 600), (line("42", 40, 40, 60), line("Orders today", 40, 120, 24), *lines("a", "b", "c").lines))
    said = answer("What is the heading?", big)
    assert isinstance(said, Said)
    assert said.text == '"Orders today" (larger than most of the text)'


@requirement("seer.local.no")
def test_what_could_not_be_read_is_neither_empty_nor_missing() -> None:
    form = replace(screens.form(), unread=(Box(120, 370, 80, 12),))  # within the field of the company
    assert words_of("Which fields are empty?", form) == "No field is empty; in 1 place text could not be read."
    assert words_of("What is in the Company field?", form) == (
        'What stands in the field "Company (optional)" could not be read.'
    )
    assert words_of("How many empty fields are there?", form) == "0; in 1 place text could not be read"
    assert '"Company (optional)" at [108, 358, 612, 398] holds something that could not be read.' in describe(form).text
    late = replace(screens.dialog(), late=(Box(9, 9, 9, 9), Box(9, 30, 9, 9)))
    assert words_of("How many buttons are there?", late) == "2; in 2 places text could not be read"
    assert words_of('How many times does "backup" appear?', late) == "3; in 2 places text could not be read"
    assert words_of("How many lines of text are there?", late) == "7; in 2 places text could not be read"
    assert (
        words_of("Is there any text?", replace(late, lines=(), parts=())) == "Yes: in 2 places text could not be read"
    )
    assert words_of("Is there any text?", Seen(Size(9, 9))) == "No text was found."


def test_the_mark_in_a_check_box_is_no_text_that_could_not_be_read() -> None:
    assert words_of("how many boxes are checked", replace(BOXES, unread=(Box(42, 42, 9, 9),))) == "2"


def test_a_cell_that_could_not_be_read_is_not_said_to_be_empty() -> None:
    assert words_of("What is the phone of Ann Lee?", replace(PEOPLE, unread=(Box(440, 160, 50, 12),))) == (
        "something that could not be read (Phone of Ann Lee)"
    )
    assert words_of("What is the phone of Ann Lee?", replace(PEOPLE, unread=(Box(440, 300, 50, 12),))) == (
        "nothing (Phone of Ann Lee)"
    )


def test_the_end_of_a_chart_is_told_by_name_where_only_the_word_for_its_bars_is_unknown() -> None:
    marks = tuple(Mark(name, "", value, Box(1, 1, 9, 9), BLUE) for name, value in (("Peru", 5.0), ("Oman", 9.0)))
    seen = replace(lines("Bags sold"), charts=(Chart("bar", Box(0, 0, 99, 99), "Bags sold", marks),))
    assert words_of("Which country sold the least?", seen) == 'Of all in the chart, "Peru" is lowest: 5'
    assert words_of("Which country sold the most?", seen) == 'Of all in the chart, "Oman" is highest: 9'
    assert words_of("Which country sold the most apples?", seen).startswith("The chart says nothing of country, apples")


def _boxes(**states: bool | None) -> Seen:
    names = tuple(line(name.replace("_", " "), 60, 40 + 30 * at) for at, name in enumerate(states))
    parts = tuple(
        Part("check", Box(40, 40 + 30 * at, 13, 13), WHITE, (at,), on) for at, on in enumerate(states.values())
    )
    return Seen(Size(400, 300), names, "", parts)


BOXES = _boxes(Dark_mode=True, Email_alerts=False, Auto_update=True)


@pytest.mark.parametrize(
    ("seen", "question", "said"),
    [
        (BOXES, "is dark mode turned on?", "Yes: it is checked"),
        (BOXES, "Is email alerts enabled?", "No: it is not checked"),
        (BOXES, "Is email alerts switched off", "Yes: it is not checked"),
        (BOXES, "is bluetooth turned on?", "no"),
        (_boxes(Dark_mode=None), "is dark mode on?", "no"),
        (BOXES, "which boxes are ticked?", '"Dark mode", "Auto update"'),
        (BOXES, "what's checked?", '"Dark mode", "Auto update"'),
        (BOXES, "Which options are off?", '"Email alerts"'),
        (BOXES, "how many boxes are checked", "2"),
        (BOXES, "How many are unchecked?", "1"),
        (_boxes(One=True, Two=None), "how many boxes are checked", "1, and of 1 it cannot be told"),
        (_boxes(One=True, Two=None), "Which boxes are unchecked?", "None is unchecked; of 1 it cannot be told."),
        (lines("Language: Polski"), "what's the language set to", '"Polski" (in "Language: Polski")'),
        (lines("Language: Polski"), "which language is selected?", '"Polski" (in "Language: Polski")'),
        (lines("Billed to: Ann Lee"), "who is it billed to?", '"Ann Lee" (in "Billed to: Ann Lee")'),
        (lines("Invoice no.: 77", "Grand total: $5"), "what's the invoice number", '"77" (in "Invoice no.: 77")'),
        (lines("Invoice no.: 77", "Grand total: $5"), "how much is the total?", '"$5" (in "Grand total: $5")'),
        (lines("Net total: $4", "Grand total: $5"), "What is the total?",
         'It says: "Net total: $4"\nIt says: "Grand total: $5"'),
        (lines("Discount code: ABC"), "what's the discount?", "no"),
        (lines("The page /users could not be found here today."), "which page could not be found",
         'It says: "The page /users could not be found here today."'),
        (PEOPLE, "whose number is 555 0101", "Bob Smith (Name)"),
        (PEOPLE, "who has the email bob@example.org", "Bob Smith (Name)"),
        (_buttons(("Report a problem", BLUE, WHITE)), "Is there a button to report a problem?",
         'Yes: button "Report a problem"'),
        (screens.chart(), "what color are the bars", "Europe blue (#1d5fd1), Asia orange (#f08a1c)"),
        (screens.chart(), "who has the highest revenue?", "52 million USD (Q2, Asia)"),
        (screens.dialog(), "What colour are the bars?", "no"),
    ],
)  # fmt: skip
def test_plain_words_of_people_are_understood(seen: Seen, question: str, said: str) -> None:
    assert words_of(question, seen) == said


@requirement("seer.local.no")
@pytest.mark.parametrize(
    ("seen", "question", "said"),
    [
        (_buttons(("Free up space", WHITE, (0, 0, 0))), "What is the free space?", "no"),
        (screens.dialog(), "What is the title bar colour?", "no"),
        (screens.dialog(), "What is the heading colour?", "no"),
        (lines("Email address: a@example.org", "Street adress: 4 Quay Lane"), "What is the address?",
         'It says: "Email address: a@example.org"'),
        (lines("Enter a valid VAT number: 9 digits"), "What is the valid VAT number?",
         'It says: "Enter a valid VAT number: 9 digits"'),
        (lines("47 Quay Lane, Unit 3B"), "What is the unit?", 'It says: "47 Quay Lane, Unit 3B"'),
        (screens.chart(), "What colour is Q1?", "Europe blue (#1d5fd1), Asia orange (#f08a1c)"),
        (screens.chart(), "What is the value of the orange bar in Q1?", "18 million USD (Q1, Asia)"),
        (screens.chart(), "What is the value of the purple bar in Q1?",
         "The chart says nothing of purple. It has: Q1, Q2; Europe, Asia."),
        (screens.chart(), "How many orange bars are there?", "2"),
        (screens.chart(), "How many tall bars are there?", "no"),
        (screens.chart(), "What is the maximum of the y axis?", "no"),
        (lines("self.base = strip(x)", "self.timeout = timeout * 3 + 4"), "What is the timeout?",
         'It says: "self.timeout = timeout * 3 + 4"'),
    ],
)  # fmt: skip
def test_what_only_looks_like_an_answer_is_none(seen: Seen, question: str, said: str) -> None:
    assert words_of(question, seen) == said


def test_a_series_is_known_by_a_word_that_no_other_has() -> None:
    names = {"Europe": "North America", "Asia": "Asia Pacific"}
    chart = screens.chart().charts[0]
    marks = tuple(replace(mark, series=names[mark.series]) for mark in chart.marks)
    seen = replace(lines("North America", "Asia Pacific", "Q1"), charts=(replace(chart, marks=marks),))
    assert words_of("What was the revenue of America in Q1?", seen) == "31 million USD (Q1, North America)"


@pytest.mark.parametrize(
    ("seen", "question", "said"),
    [
        (grid(("Item", "Price", "Stock"), ("Lamp", "$5", "3"), ("Desk", "$9", "4")), "How much is the Desk?",
         "$9 (Price of Desk)"),
        (grid(("Item", "Net", "Gross"), ("Lamp", "$5", "$6"), ("Desk", "$9", "$10")), "How much is the Desk?", "no"),
        (lines("Last attempt: 6 May 2026"), "When was the last attempt made?",
         '"6 May 2026" (in "Last attempt: 6 May 2026")'),
        (lines("Billed to: Ann Lee"), "billed to whom?", '"Ann Lee" (in "Billed to: Ann Lee")'),
        (lines("Business plan", "Other things"), "What plan is it?", 'It says: "Business plan"'),
        (lines("Questions? Call 555-0199."), "what number do I call?", 'It says: "Questions? Call 555-0199."'),
        (lines("Your account was made 5 days ago"), "What is the account number?", "no"),
    ],
)  # fmt: skip
def test_what_is_meant_is_found_by_its_kind(seen: Seen, question: str, said: str) -> None:
    assert words_of(question, seen) == said
