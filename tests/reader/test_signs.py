"""Signs of monospaced text by their ink alone."""

from __future__ import annotations

import numpy as np
import pytest

from sightline.reader.ocr.signs import name_sign

PITCH, CAPITAL, BASE, ROWS = 9, 11, 14, 19  # pixels: the size of a column, and the row on which letters stand


def name_drawing(*drawing: str, top: int) -> str | None:
    """Return the sign that is drawn so, from a row on."""
    inked = np.zeros((ROWS, PITCH), bool)
    for row, line in enumerate(drawing, top):
        inked[row, 1 : 1 + len(line)] = [mark == "#" for mark in line]
    return name_sign(inked, BASE, CAPITAL, PITCH)


def test_a_backtick_goes_to_the_right_and_a_quote_goes_straight_down() -> None:
    assert name_drawing("##", ".##", "..##", top=1) == "`"
    assert name_drawing("..##", "..##", "..##", "..##", top=3) == "'"
    assert name_drawing("..##", ".##", "##", top=1) is None


def test_a_backtick_is_raised() -> None:
    assert name_drawing("##", ".##", "..##", top=10) is None


@pytest.mark.parametrize("beside", [2, 3])
def test_a_plus_is_two_strokes_across_each_other(beside: int) -> None:
    stroke = "." * beside + "##" + "..."
    plus = [stroke] * 4 + ["#" * len(stroke)] + [stroke] * 4
    assert name_drawing(*plus, top=5) == "+"
    assert name_drawing(*plus[4:], top=5) is None
    assert name_drawing(*plus[:4], "#######", *["##" + stroke[2:]] * 4, top=5) is None


def test_a_vertical_bar_goes_below_the_line_on_which_letters_stand() -> None:
    stroke = ["...##"]
    assert name_drawing(*stroke * 14, top=3) == "|"
    assert name_drawing(*stroke * 11, top=3) is None
    assert name_drawing(*stroke * 13, "..###", top=3) is None
    assert name_drawing(*stroke * ROWS, top=0) is None
