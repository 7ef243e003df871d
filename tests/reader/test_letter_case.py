"""Small letters and capitals of one shape, by the height of their ink."""

from __future__ import annotations

import numpy as np
import pytest

from sightline.reader.ocr.letter_case import correct_case
from sightline.reader.ocr.line_image import find_ink_columns
from sightline.reader.ocr.recognizer import Character

WIDE, SMALL, TALL, BASE = 10, 8, 12, 20  # pixels: of a letter, a small one and a capital; and where all end


def read_word(text: str, said: str, sure: float = 0.8) -> str:
    """Return what comes out where the ink is `text`, in blocks as high as its letters, and `said` was read."""
    mask = np.zeros((24, WIDE * len(text)), bool)
    for at, letter in enumerate(text):
        if letter != " ":
            high = SMALL if letter in "acemnorsuvwxz" else TALL
            mask[BASE - high : BASE, WIDE * at + 1 : WIDE * at + 8] = True
    width = mask.shape[1]
    letters = [Character(letter, (at + 0.5) * WIDE / width, sure) for at, letter in enumerate(said)]
    return "".join(letter.text for letter in correct_case(letters, find_ink_columns(mask, 0, len(mask)), mask))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SET CONSTRAINTS", "sET coNSTRAINTs"),
        ("referenceWidth", "referencewidth"),
        ("open the box", "open the bOx"),
        ("circle and o", "circle and 0"),
        ("names and COS", "names and cos"),
    ],
)
def test_ink_tells_the_case_of_letters(text: str, said: str) -> None:
    assert read_word(text, said) == text


def test_letters_that_were_read_with_certainty_stay() -> None:
    assert read_word("SET CONSTRAINTS", "sET coNSTRAINTs", sure=0.999) == "sET coNSTRAINTs"


def test_letters_stay_where_nothing_tells_their_height() -> None:
    for word in ("cos", "SOS", "0 x"):
        assert read_word(word, word) == word
    assert read_word("SOS", "sos") == "sos"
