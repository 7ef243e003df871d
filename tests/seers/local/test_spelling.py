"""Letters and ink put together."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sightline.seers.local import ink
from sightline.seers.local.recognise import Letter, _spelt
from sightline.seers.local.spelling import Piece, pieces

WIDTH, HEIGHT = 400, 20


def told(text: str, strokes: list[tuple[int, int]]) -> list[Piece]:
    """A letter over the middle of each stroke; a space of the text stands where the next letter is."""
    letters, place = [], 0
    for letter in text:
        if letter == " ":
            letters.append(Letter(" ", (strokes[place][0] - 1) / WIDTH, 0.6))
        else:
            start, end = strokes[place]
            letters.append(Letter(letter, (start + end) / 2 / WIDTH, 1.0))
            place += 1
    return list(pieces(letters, strokes, WIDTH, HEIGHT))


def test_a_wide_blank_is_a_space_though_the_network_saw_none() -> None:
    assert told("ab", [(10, 16), (26, 32)]) == [Piece("a b", 10, 32, 1.0)]


def test_a_low_line_is_one_only_where_there_is_ink() -> None:
    """The reader takes the blank between two words of a dark terminal for one."""
    inked = [(10, 16), (18, 24), (26, 32)]
    assert told("a_b", inked) == [Piece("a_b", 10, 32, 1.0)]
    blank = [Letter("a", 13 / WIDTH, 1.0), Letter("_", 22 / WIDTH, 0.97), Letter("b", 31 / WIDTH, 1.0)]
    assert list(pieces(blank, [(10, 16), (28, 34)], WIDTH, HEIGHT)) == [Piece("a b", 10, 34, 1.0)]


def test_where_nothing_is_blank_there_is_no_space_though_the_network_saw_one() -> None:
    assert told("a b", [(10, 16), (17, 23)]) == [Piece("ab", 10, 23, 1.0)]


def test_between_the_two_the_network_is_believed() -> None:
    strokes = [(10, 16), (20, 26)]
    assert [told("a b", strokes)[0].text, told("ab", strokes)[0].text] == ["a b", "ab"]


def test_letters_of_the_far_east_stand_wide_apart() -> None:
    assert told("トリ", [(10, 20), (30, 40)])[0].text == "トリ"
    assert told("トリ", [(10, 20), (36, 46)])[0].text == "ト リ"


def test_a_line_that_runs_over_a_very_wide_blank_is_two() -> None:
    found = told("abcd", [(10, 16), (18, 24), (60, 66), (68, 74)])
    assert found == [Piece("ab", 10, 24, 1.0), Piece("cd", 60, 74, 1.0)]


def test_a_tick_beside_a_number_is_not_part_of_it() -> None:
    letters = [Letter("1", 14 / WIDTH, 1.0), Letter("0", 22 / WIDTH, 1.0)]
    (found,) = pieces(letters, [(12, 16), (18, 26), (32, 36)], WIDTH, HEIGHT)
    assert (found.left, found.right) == (12, 26)


def test_no_letters_are_no_pieces() -> None:
    assert list(pieces([Letter(" ", 0.5, 1.0)], [(10, 16)], WIDTH, HEIGHT)) == []


@given(st.lists(st.tuples(st.sampled_from("abcト字 "), st.floats(0, 1), st.floats(0, 1)), max_size=30), st.data())
def test_no_letter_is_lost_or_moved(drawn: list[tuple[str, float, float]], data: st.DataObject) -> None:
    places = sorted(place for _, place, _ in drawn)
    letters = [Letter(text, place, sure) for (text, _, sure), place in zip(drawn, places, strict=True)]
    edges = data.draw(st.lists(st.integers(0, WIDTH), unique=True, max_size=20).map(sorted))
    strokes = list(pairwise(edges))[::2]
    found = list(pieces(letters, strokes, WIDTH, HEIGHT))
    assert "".join(each.text for each in found).replace(" ", "") == "".join(text for text, _, _ in drawn if text != " ")
    assert all(each.left < each.right and each.text == each.text.strip() for each in found)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_strips_become_letters(best: list[int]) -> None:
    """A letter that goes on is one letter; the same letter after a strip with none is another."""
    strips = np.full((len(best), 4), 0.1, np.float32)
    strips[np.arange(len(best)), best] = 0.7
    found = _spelt(strips, ("", "a", "b", " "), 1 / len(best))
    wanted = "".join(" ab "[now] for before, now in pairwise([0, *best]) if now and now != before)
    assert "".join(letter.text for letter in found) == wanted
    assert all(letter.text and 0 < letter.place < 1 and letter.sure == pytest.approx(0.7) for letter in found)
    assert [letter.place for letter in found] == sorted(letter.place for letter in found)


def picture(rows: list[str]) -> NDArray[np.uint8]:
    """Dots are a blue ground, hashes white."""
    dots = np.array([[letter == "#" for letter in row] for row in rows])
    return np.where(dots[:, :, None], np.uint8(255), np.array([0, 90, 190], np.uint8)).astype(np.uint8)


def test_ink_is_what_stands_out_from_the_commonest_colour() -> None:
    rows = ["........", "..##.#..", "..#..#..", "........"]
    mask = ink.mask_of(picture(rows))
    assert ["".join(".#"[cell] for cell in row) for row in mask.astype(int)] == rows
    assert ink.strokes(mask, 0, 4) == [(2, 4), (5, 6)]


def test_the_band_takes_the_dot_of_an_i_and_leaves_the_neighbour() -> None:
    rows = ["#.......", "........", "..#.....", "........", "..#.##..", "..#.#...", "........", "........", "######.."]
    assert ink.band(ink.mask_of(picture(rows)), (1, 4, 7, 6)) == (2, 6)
    rows[-2:] = [".####...", ".####..."]  # as near as the dot, and cut off by the edge
    assert ink.band(ink.mask_of(picture(rows)), (1, 4, 7, 6)) == (2, 6)


def test_a_rule_under_the_text_is_no_ink_of_it() -> None:
    rows = ["........", "........", "..#.##..", "..#.#...", "########", "........"]
    assert ink.band(ink.mask_of(picture(rows)), (0, 2, 8, 3)) == (2, 4)


def test_a_core_without_ink_has_no_band() -> None:
    mask = np.zeros((10, 10), bool)
    assert ink.band(mask, (2, 2, 8, 8)) == (2, 2)
