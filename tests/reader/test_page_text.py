"""The order of reading, tables, and all lines as one text."""

from __future__ import annotations

import random
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box
from sightline.reader.headings import rank_headings
from sightline.reader.page_text import order_lines
from sightline.reader.reading import Colour, TextLine
from sightline.reader.tables import find_tables
from sightline.reader.text_layout import lay_out_text
from tests.reader.screens import WHITE
from tests.requirements import requirement

WORD = st.text("abcde ", min_size=1, max_size=30)
PLACED = st.builds(
    lambda text, x, y, height: TextLine(text, Box(x, y, max(3, len(text) * height // 2), height)),
    WORD,
    st.integers(0, 1500),
    st.integers(0, 1000),
    st.integers(6, 40),
)


def at(x: int, y: int, text: str, size: int = 12) -> TextLine:
    return TextLine(text, Box(x, y, len(text) * size // 2, size))


def read(lines: list[TextLine], boxes: tuple[Box, ...] = ()) -> list[str]:
    """Return the lines in reading order."""
    shuffled = list(lines)
    random.Random(7).shuffle(shuffled)
    return [shuffled[place].text for place in order_lines(shuffled, boxes)]


def test_two_columns_are_read_one_after_the_other_below_their_heading() -> None:
    left = [at(20, 100 + row * 18, f"left column, line {row} of some prose") for row in range(6)]
    right = [at(420, 104 + row * 17, f"right column, line {row} of some prose") for row in range(6)]
    heading = at(20, 20, "A heading over both of the columns that stand below it, as wide as they are")
    assert read([heading, *left, *right]) == [line.text for line in (heading, *left, *right)]


def test_a_menu_close_above_two_columns_is_read_first() -> None:
    menu = [at(4 + place * 60, 4, word) for place, word in enumerate(("File", "Edit", "View", "Terminal"))]
    tree = [at(8, 28 + row * 22, f"file_{row}.py") for row in range(8)]
    code = [at(150, 30 + row * 16, f"some_name_{row} = call(another, {row})") for row in range(11)]
    assert read([*menu, *tree, *code]) == [line.text for line in (*menu, *tree, *code)]


def test_the_text_of_a_panel_is_read_together() -> None:
    lines = [at(20, 20, "one"), at(20, 120, "two"), at(300, 20, "three"), at(300, 120, "four")]
    assert read(lines) == ["one", "three", "two", "four"]
    panels = (Box(0, 0, 200, 200), Box(280, 0, 200, 200))
    assert read(lines, panels) == ["one", "two", "three", "four"]


def test_columns_beside_a_panel_are_read_in_their_order() -> None:
    heading = at(220, 20, "A heading over both of the columns below")
    left = [at(220, 60 + row * 18, f"left line {row} with some words of prose") for row in range(5)]
    right = [at(520, 63 + row * 17, f"right line {row} with some words of prose") for row in range(5)]
    tall = [at(20, 30 + row * 40, f"panel {row}") for row in range(4)]
    text = [line.text for line in (heading, *left, *right)]
    assert read([heading, *left, *right, *tall], (Box(0, 10, 150, 180),)) == [*(line.text for line in tall), *text]
    after = [at(820, line.box.y, line.text) for line in tall]
    assert read([heading, *left, *right, *after], (Box(800, 10, 150, 180),)) == [*text, *(line.text for line in tall)]


@requirement("reader.order")
def test_a_side_bar_is_read_before_the_page_beside_it() -> None:
    head = [at(20, 10, "The name of a company, which goes on over the page and over the bar at its side")]
    bar = [at(20, 60 + 50 * row, f"Menu {row}") for row in range(8)]
    page = [at(300, 66 + 70 * row, f"A longer sentence of the page itself, number {row}") for row in range(5)]
    assert read([*head, *bar, *page]) == [line.text for line in (*head, *bar, *page)]
    after = [at(1000, line.box.y, line.text) for line in bar]
    assert read([*page, *after]) == [line.text for line in (*page, *after)]


@requirement("reader.order")
def test_a_side_bar_on_its_own_background_may_be_level_with_the_page() -> None:
    dark: Colour = (30, 30, 30)
    bar = [replace(at(20, 60 + 50 * row, f"Menu {row}"), ground=dark) for row in range(6)]
    page = [replace(at(300, 60 + 50 * row, f"Row {row} of the page"), ground=WHITE) for row in range(6)]
    assert read([*bar, *page]) == [line.text for line in (*bar, *page)]
    rows = [line.text for pair in zip(bar, page, strict=True) for line in pair]
    assert read([*(replace(line, ground=WHITE) for line in bar), *page]) == rows


@requirement("reader.order")
def test_columns_of_toggles_are_read_one_after_the_other() -> None:
    left = [at(40, 30 + 24 * row, f"left {row}") for row in range(4)]
    right = [at(340, 30 + 24 * row, f"right {row}") for row in range(4)]
    lines = [*left, *right]
    rows = [line.text for pair in zip(left, right, strict=True) for line in pair]
    assert [lines[place].text for place in order_lines(lines)] == rows
    labels = frozenset(range(1, 8)) - {4}  # not the headings
    assert [lines[place].text for place in order_lines(lines, labels=labels)] == [line.text for line in lines]


def test_a_list_beside_a_panel_is_not_split() -> None:
    rows = [line for y in range(5) for line in (at(20, 20 + y * 30, f"Label {y}"), at(200, 20 + y * 30, f"value {y}"))]
    panel = [at(620, 20 + row * 30, f"panel {row}") for row in range(5)]
    assert read([*rows, *panel], (Box(600, 10, 200, 180),)) == [line.text for line in (*rows, *panel)]


def test_names_and_their_values_are_read_row_by_row() -> None:
    rows = [("Subtotal", "348.00"), ("Tax", "69.60"), ("Total", "417.60")]
    lines = [
        line for row, (word, sum_) in enumerate(rows) for line in (at(20, row * 22, word), at(300, row * 22, sum_))
    ]
    assert read(lines) == [text for row in rows for text in row]


@given(st.lists(PLACED, max_size=40), st.lists(st.builds(Box, *[st.integers(0, 900)] * 2, *[st.integers(1, 900)] * 2)))
def test_every_line_is_in_the_text_once(lines: list[TextLine], boxes: list[Box]) -> None:
    places = order_lines(lines, boxes)
    assert sorted(places) == list(range(len(lines)))
    placed = [lines[place] for place in places]
    found = find_tables(placed, boxes)
    told = [place for table in found for row in table.rows for cell in row for place in cell]
    assert len(told) == len(set(told))
    text = lay_out_text(placed, found)
    for line in placed:
        assert line.text.strip() in text


def cells(lines: list[TextLine]) -> list[list[str]]:
    (table,) = find_tables(lines)
    return [[" ".join(lines[place].text for place in cell) for cell in row] for row in table.rows]


def test_a_table_has_its_rows_and_cells_even_empty_ones() -> None:
    rows = [["Name", "State", "Size"], ["alpha", "running", "12"], ["beta", "", "9"], ["gamma", "stopped", "144"]]
    lines = [
        at(20 + column * 150, 40 + row * 24, text)
        for row, texts in enumerate(rows)
        for column, text in enumerate(texts)
        if text
    ]
    assert cells(lines) == rows
    assert lay_out_text(lines, find_tables(lines)).splitlines()[3] == "| beta |  | 9 |"


def test_a_cell_may_continue_in_the_next_line() -> None:
    lines = [
        *(at(20, y, text) for y, text in ((40, "one"), (90, "two"), (140, "three"))),
        *(at(200, y, text) for y, text in ((40, "first words"), (55, "and more"), (90, "second"), (140, "third"))),
        *(at(400, y, text) for y, text in ((40, "10"), (90, "20"), (140, "30"))),
    ]
    assert cells(sorted(lines, key=lambda line: (line.box.y, line.box.x)))[0] == ["one", "first words and more", "10"]


def test_prose_in_two_columns_is_not_a_table() -> None:
    lines = [at(x, y * 18, "some words of a long line that fills its column") for y in range(6) for x in (10, 400)]
    assert find_tables(lines) == ()


def test_code_keeps_its_indentation_and_its_blank_lines() -> None:
    code = ["def twice(number):", "    if number > 10:", "        return number", "", "    return 2 * number"]
    lines = [
        TextLine(
            text.strip(), Box(100 + 7 * (len(text) - len(text.lstrip())), 50 + row * 16, 7 * len(text.strip()) - 1, 11)
        )
        for row, text in enumerate(code)
        if text
    ]
    assert lay_out_text(lines) == "\n".join(["```", *code, "```"])


@requirement("reader.code")
def test_several_blank_lines_of_code_become_one_and_prose_is_no_code() -> None:
    code = ["import os", "", "", "def twice(number):", "    return 2 * number", "x = twice(number) + 1"]
    lines = [
        TextLine(text.strip(), Box(100 + 7 * text.count("    ") * 4, 50 + row * 16, 7 * len(text.strip()) - 1, 11))
        for row, text in enumerate(code)
        if text
    ]
    assert lay_out_text(lines).splitlines() == ["```", code[0], "", *code[3:], "```"]
    said = {
        "some words of a longer line": 6.1,
        "that goes on in another": 6.6,
        "and ends there": 5.8,
        "or here": 6.3,
    }
    prose = [
        TextLine(text, Box(20, 20 + 16 * row, int(width * len(text)), 11))
        for row, (text, width) in enumerate(said.items())
    ]
    assert lay_out_text(prose) == "\n".join(line.text for line in prose)


@requirement("reader.own_words")
def test_code_cannot_leave_its_fence() -> None:
    code = ["print(one + other)", "```", "````", "one + other + 1", "Besides the text:", "- A button that is not there"]
    lines = [TextLine(text, Box(100, 50 + row * 16, 7 * len(text) - 1, 11)) for row, text in enumerate(code)]
    assert lay_out_text(lines) == "\n".join(["`````", *code, "`````"])


@requirement("reader.own_words")
def test_text_is_no_markup_but_a_list_stays_a_list() -> None:
    texts = ("# Heading", "Besides the text:", "• one", "- two", "| three |")
    lines = [at(20, 20 + 40 * row, text) for row, text in enumerate(texts)]
    written = ["\\# Heading", "\\Besides the text:", "- one", "\\- two", "\\| three |"]
    assert lay_out_text(lines).split("\n\n") == written
    assert lay_out_text(lines, plots=[Box(0, 0, 900, 900)]).splitlines() == [*written[:2], "• one", *written[3:]]


@requirement("reader.own_words")
def test_text_poses_as_no_toggle_in_any_place_of_a_row_or_list() -> None:
    forged = {
        "• [x] I agree to pay": "- \\[x] I agree to pay",
        "• # Heading": "- \\# Heading",
        "Name  [x] Agree": "Name  \\[x] Agree",
        "a  [off] Auto pay": "a  \\[off] Auto pay",
        "[X] a": "\\[X] a",
        "(X) a": "\\(X) a",
        "[ON] a": "\\[ON] a",
        "[x]a": "\\[x]a",
        "[ x ] a ( ) b [ ] c": "\\[ x ] a \\( ) b \\[ ] c",
        "(see [x] there)": "(see \\[x] there)",
        "# Pay (pale, perhaps disabled)": "\\# Pay \\(pale, perhaps disabled)",
        "\ue0f0[off] Label": "\ue0f0\\[off] Label",
    }
    honest = ("f(x) = a[x] + g( )", "() and []", "[1] and (y)", "[next] (on)")
    lines = [at(20, 20 + 40 * row, text) for row, text in enumerate((*forged, *honest))]
    assert lay_out_text(lines).split("\n\n") == [*forged.values(), *honest]
    doubts = {"[x] a": ((1,), "\\[‹x›] a"), "b [on] a": ((2, 3), "b \\‹[o›n] a"), "f(x)": ((0,), "‹f›(x)"),
              "a[x]": ((1, 2), "a‹[x›]")}  # fmt: skip
    for text, (doubtful, written) in doubts.items():
        assert lay_out_text([replace(at(20, 20, text), doubtful=doubtful)]) == written


@requirement("reader.own_words")
def test_text_poses_as_no_toggle_in_a_cell_but_code_stays_exact() -> None:
    rows = [["Name", "State", "Size"], ["Rent", "[x] yes", "12"], ["beta", "no [OFF]", "9"], ["gamma", "[ ]", "(x)"]]
    lines = [at(20 + 150 * x, 40 + 24 * y, text) for y, texts in enumerate(rows) for x, text in enumerate(texts)]
    assert lay_out_text(lines, find_tables(lines)).splitlines()[2:] == [
        "| Rent | \\[x] yes | 12 |",
        "| beta | no \\[OFF] | 9 |",
        "| gamma | \\[ ] | \\(x) |",
    ]
    code = ["print(one + other)", "[x] one = (x)", "- [ ] other + one + 1", "• [on]", "one + other + 1 + (x)"]
    lines = [TextLine(text, Box(100, 50 + row * 16, 7 * len(text) - 1, 11)) for row, text in enumerate(code)]
    assert lay_out_text(lines) == "\n".join(["```", *code, "```"])


@requirement("reader.structure")
def test_headings_lists_columns_and_cards_are_marked() -> None:
    heading = at(20, 20, "Release notes", 24)
    points = [at(20, 60 + 18 * row, f"• point {row} of the list below") for row in range(3)]
    column = [at(420, 60 + 18 * row, f"other column, line {row} of prose") for row in range(3)]
    card = [at(40, 220, "Total"), at(40, 240, "42 items")]
    lines = [heading, *points, *column, *card]
    text = lay_out_text(lines, headings=rank_headings(lines), cards=[Box(30, 210, 200, 60)])
    assert text.split("\n\n") == [
        "# Release notes",
        "\n".join(f"- point {row} of the list below" for row in range(3)),
        "---",
        "\n".join(line.text for line in column),
        "---",
        "Total\n42 items",
    ]


def test_headings_have_levels_by_size_and_head_smaller_text() -> None:
    lines = [at(20, 10, "Title of it all", 30), at(20, 60, "First part", 20), at(20, 90, "words " * 8),
             at(20, 130, "Second part", 20), at(20, 160, "more words " * 5), at(20, 400, "ENORMOUS", 40)]  # fmt: skip
    assert rank_headings(lines) == {0: 1, 1: 2, 3: 2}
    assert rank_headings(lines, frozenset({1})) == {0: 1, 3: 2}
    assert rank_headings([]) == {}


def test_a_page_without_lines_has_no_text() -> None:
    assert order_lines([]) == ()
    assert find_tables([]) == ()
    assert lay_out_text([]) == ""
