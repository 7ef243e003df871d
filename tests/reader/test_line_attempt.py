"""Which lines are monospaced, and how wide their columns are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sightline.model.refusal import Refusal
from sightline.reader.ocr.line_attempt import LineAttempt, LineInk, _find_pitches
from sightline.reader.ocr.line_image import UPRIGHT, LineImage, TextArea, find_ink_columns
from sightline.reader.ocr.recognizer import Character
from sightline.reader.ocr.weights import OcrModel, open_engine

WIDE, HIGH, STEP, LEFT = 9, 22, 20, 5  # pixels: a column, the image of a line, two rows, and where rows begin


def get_model() -> OcrModel:
    engine = open_engine()
    assert not isinstance(engine, Refusal)
    model = engine.get_model("tiny")
    assert model is not None
    return model


def make_ink(
    row: float, text: str, beside: Sequence[float] = (), high: float = HIGH, widths: Sequence[int] = (WIDE,)
) -> LineInk:
    """Return a line of letters of these widths, in turn; the network saw each `beside` its place, in columns."""
    wide = [widths[at % len(widths)] for at in range(len(text))]
    width = sum(wide) + 2 * LEFT
    mask = np.zeros((HIGH, width), bool)
    letters = []
    for at, letter in enumerate(text):
        if letter.strip():
            left = LEFT + sum(wide[:at])
            mask[6:16, left + 1 : left + wide[at] - 1] = True
            aside = beside[at % len(beside)] if beside else 0.0
            letters.append(Character(letter, (left + 0.5 * wide[at] + aside * WIDE) / width, 0.99))
    picture = np.where(mask[:, :, None], 0, 255).astype(np.uint8).repeat(3, 2)
    area = TextArea(width / 2, STEP * (row + 0.5), width, high, 0.0, 5, 1.0)
    frame = LineImage(picture, (0, STEP * row), (1, 0), (5, 5, width - 5, HIGH - 5))
    attempt = LineAttempt(area, UPRIGHT, frame, letters, get_model())
    return LineInk(attempt, mask, (6, 16), find_ink_columns(mask, 6, 16))


INEXACT = (0.0, 0.55, -0.55, 0.6)  # where letters take the strokes of their neighbours
LONG = "return number of columns"
PROSE_WIDTHS = (9, 4, 12, 7, 5, 10, 13, 6, 8, 4, 11)


def make_prose() -> list[LineInk]:
    """Return lines in a proportional font, above and below what is tested."""
    rows = (-4, -3, -2, -1, 6, 7, 8, 9)
    return [make_ink(row, LONG, widths=PROSE_WIDTHS[turn:]) for turn, row in enumerate(rows)]


def find_pitches(inks: Sequence[LineInk]) -> list[bool]:
    return [pitch is not None and abs(pitch - WIDE) < 0.5 for pitch in _find_pitches(inks)]


def test_lines_tell_the_width_of_a_column_to_others_which_tell_it_further() -> None:
    regular = [make_ink(row, LONG) for row in range(4)]
    inexact = [make_ink(row, LONG, INEXACT) for row in (4, 5.2, 6.4, 7.6)]
    assert all(find_pitches([*regular, *inexact]))


def test_a_line_whose_area_is_half_as_high_again_is_in_the_columns_of_others() -> None:
    inks = [make_ink(row, LONG) for row in range(5)]
    assert find_pitches([*inks, make_ink(5, "short", high=1.45 * HIGH)]) == [True] * 6
    assert find_pitches([*inks, make_ink(5, "short", high=1.6 * HIGH)]) == [True] * 5 + [False]


def test_short_lines_in_the_columns_of_each_other_are_monospaced_between_prose() -> None:
    rows = ["<root>", "  <properties>", "    <name>value</name>", "  </properties>", "</root>"]
    inks = [make_ink(row, text) for row, text in enumerate(rows)]
    assert find_pitches([*inks, *make_prose()]) == [True] * 5 + [False] * 8
    far = [make_ink(row * 5, text) for row, text in enumerate(rows)]
    assert not any(find_pitches([*far, *make_prose()]))


def test_rows_of_numbers_between_prose_are_not_monospaced() -> None:
    """Digits are equally wide in most fonts."""
    inks = [make_ink(row, text) for row, text in enumerate(("2017-12-05", "2017-12-12", "2018-01-09"))]
    assert not any(find_pitches([*inks, *make_prose()]))
