"""How many texts are compared where a page may have tables without lines."""

from __future__ import annotations

import cProfile
import pstats

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.aligned_rows import MOST_PIECES, list_aligned_blocks
from sightline.reader.reading import TextLine
from sightline.reader.table_columns import LineWords


def draw_words(rows: int, columns: int) -> LineWords:
    """Draw lines of words that are all below each other."""
    pixels = np.full((20 * rows, 30 * columns, 3), 255, np.uint8)
    for column in range(columns):
        pixels[:, 30 * column + 2 : 30 * column + 16] = 0
    pixels.reshape(rows, 20, 30 * columns, 3)[:, 12:] = 255
    text = " ".join(["ab"] * columns)
    return LineWords(pixels, [TextLine(text, Box(0, 20 * row, 30 * columns, 12)) for row in range(rows)])


def test_columns_whose_cells_begin_and_end_at_one_place_are_compared_once() -> None:
    words = draw_words(20, 40)
    profile = cProfile.Profile()
    with profile:
        blocks = list(list_aligned_blocks((), words, 12, ()))
    assert [len(block.rows) for block in blocks] == [20]
    compared = pstats.Stats(profile).get_stats_profile().func_profiles["_is_linked"]
    assert compared.ncalls == str(40 * 39 // 2)


def test_more_pieces_than_a_page_of_text_has_are_not_compared() -> None:
    words = draw_words(MOST_PIECES // 100 + 1, 100)
    assert list(list_aligned_blocks((), words, 12, ())) == []
