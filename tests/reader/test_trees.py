"""Trees: rows that are as far to the right as they are deep."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.geometry import Box
from sightline.reader.reading import TextLine
from sightline.reader.text_layout import lay_out_text
from tests.requirements import requirement

HIGH, STEP = 12, 24


def write_rows(rows: list[tuple[int, str]], top: int = 40) -> list[TextLine]:
    """Return rows of text that begin at a place."""
    return [TextLine(text, Box(x, top + STEP * at, 7 * len(text), HIGH)) for at, (x, text) in enumerate(rows)]


@requirement("reader.markdown")
def test_a_tree_is_written_as_nested_lists() -> None:
    rows = [(40, "src"), (60, "reader"), (81, "page.py"), (80, "tables.py"), (60, "wire"), (40, "tests"), (60, "kit")]
    assert lay_out_text(write_rows(rows)).splitlines() == [
        "- src",
        "  - reader",
        "    - page.py",
        "    - tables.py",
        "  - wire",
        "- tests",
        "  - kit",
    ]


def test_a_text_before_a_tree_stays_a_paragraph() -> None:
    title = TextLine("All files of the project that were changed", Box(40, 0, 260, HIGH))
    rows = [(60, "src"), (80, "reader"), (80, "wire"), (60, "tests"), (80, "kit")]
    written = lay_out_text([title, *write_rows(rows, top=40)]).splitlines()
    assert written[0] == title.text
    assert "  - reader" in written


def test_centred_and_equal_rows_are_no_tree() -> None:
    for rows in (
        [(40, "Home"), (40, "Profile"), (40, "Messages"), (40, "Settings")],
        [(60, "Sign in"), (40, "to your account"), (72, "today"), (50, "or register")],
        [(40, "Name"), (160, "Ada"), (40, "Town"), (160, "Bath")],
        [(40, "Name"), (52, "Ada"), (40, "Town"), (52, "Bath")],
    ):
        assert "- " not in lay_out_text(write_rows(rows))


def test_sentences_with_an_indented_first_line_are_no_tree() -> None:
    rows = [
        (60, "The first line of a paragraph is indented,"),
        *[(40, "and what follows begins at the margin again.")] * 5,
    ]
    assert "- " not in lay_out_text(write_rows(rows))


def test_rows_of_a_program_are_no_tree() -> None:
    rows = [
        (40, "call("),
        (60, "id: 10,"),
        (60, "tags: ["),
        (80, "mmm,"),
        (80, "illi"),
        (60, "limit: 2"),
        (40, "done()"),
    ]
    narrow = [
        replace(line, box=replace(line.box, width=sum(3 if letter in ' .,:"[]{}ilt1' else 9 for letter in line.text)))
        for line in write_rows(rows)
    ]  # as in a proportional font
    assert "- " not in lay_out_text(narrow)
