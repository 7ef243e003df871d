"""Text runs: the network's letters combined with the ink."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sightline.reader.ocr import line_image
from sightline.reader.ocr.recognizer import (
    REGULAR,
    Character,
    TextRun,
    _decode_strips,
    fits_pitch,
    measure_pitch,
    split_runs,
)
from tests.requirements import requirement

WIDTH, HEIGHT = 400, 20


def told(text: str, strokes: list[tuple[int, int]]) -> list[TextRun]:
    """Return a letter over the middle of each stroke; a space has the place of the next letter."""
    letters, place = [], 0
    for letter in text:
        if letter == " ":
            letters.append(Character(" ", (strokes[place][0] - 1) / WIDTH, 0.6))
        else:
            start, end = strokes[place]
            letters.append(Character(letter, (start + end) / 2 / WIDTH, 1.0))
            place += 1
    return list(split_runs(letters, strokes, WIDTH, HEIGHT))


@requirement("seer.local.doubt")
def test_doubtful_characters_are_known_by_their_index_in_the_text() -> None:
    strokes = [(10, 16), (26, 32), (34, 40), (100, 106)]
    letters = [
        Character(text, (start + end) / 2 / WIDTH, sure)
        for text, sure, (start, end) in zip("aabO", (0.9, 0.5, 0.99, 0.59), strokes, strict=True)
    ]
    assert list(split_runs(letters, strokes, WIDTH, HEIGHT)) == [
        TextRun("a ab", 10, 40, pytest.approx(0.7966, abs=0.001), (2,)),  # type: ignore[arg-type]
        TextRun("O", 100, 106, 0.59, (0,)),
    ]


def test_a_wide_gap_is_a_space_even_if_the_network_saw_none() -> None:
    assert told("ab", [(10, 16), (26, 32)]) == [TextRun("a b", 10, 32, 1.0)]


def test_an_underscore_needs_ink() -> None:
    """The network reads the blank between two words of a dark terminal as an underscore."""
    inked = [(10, 16), (18, 24), (26, 32)]
    assert told("a_b", inked) == [TextRun("a_b", 10, 32, 1.0)]
    blank = [Character("a", 13 / WIDTH, 1.0), Character("_", 22 / WIDTH, 0.97), Character("b", 31 / WIDTH, 1.0)]
    assert list(split_runs(blank, [(10, 16), (28, 34)], WIDTH, HEIGHT)) == [TextRun("a b", 10, 34, 1.0)]


def test_a_space_needs_a_gap_even_if_the_network_saw_one() -> None:
    assert told("a b", [(10, 16), (17, 23)]) == [TextRun("ab", 10, 23, 1.0)]


def test_the_network_decides_about_medium_gaps() -> None:
    strokes = [(10, 16), (20, 26)]
    assert [told("a b", strokes)[0].text, told("ab", strokes)[0].text] == ["a b", "ab"]


def test_cjk_characters_need_a_wider_gap_for_a_space() -> None:
    assert told("トリ", [(10, 20), (30, 40)])[0].text == "トリ"
    assert told("トリ", [(10, 20), (36, 46)])[0].text == "ト リ"


def test_a_line_with_a_very_wide_gap_is_two_lines() -> None:
    found = told("abcd", [(10, 16), (18, 24), (60, 66), (68, 74)])
    assert found == [TextRun("ab", 10, 24, 1.0), TextRun("cd", 60, 74, 1.0)]


def test_a_tick_beside_a_number_is_not_part_of_it() -> None:
    letters = [Character("1", 14 / WIDTH, 1.0), Character("0", 22 / WIDTH, 1.0)]
    (found,) = split_runs(letters, [(12, 16), (18, 26), (32, 36)], WIDTH, HEIGHT)
    assert (found.left, found.right) == (12, 26)


def test_no_letters_give_no_pieces() -> None:
    assert list(split_runs([Character(" ", 0.5, 1.0)], [(10, 16)], WIDTH, HEIGHT)) == []


@given(st.lists(st.tuples(st.sampled_from("abcト字 "), st.floats(0, 1), st.floats(0, 1)), max_size=30), st.data())
def test_no_letter_is_lost_or_moved(drawn: list[tuple[str, float, float]], data: st.DataObject) -> None:
    places = sorted(place for _, place, _ in drawn)
    letters = [Character(text, place, sure) for (text, _, sure), place in zip(drawn, places, strict=True)]
    edges = data.draw(st.lists(st.integers(0, WIDTH), unique=True, max_size=20).map(sorted))
    strokes = list(pairwise(edges))[::2]
    found = list(split_runs(letters, strokes, WIDTH, HEIGHT))
    assert "".join(each.text for each in found).replace(" ", "") == "".join(text for text, _, _ in drawn if text != " ")
    assert all(each.left < each.right and each.text == each.text.strip() for each in found)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=40))
def test_strips_become_letters(best: list[int]) -> None:
    """Repeats are one letter; the same letter after an empty strip is another."""
    strips = np.full((len(best), 4), 0.1, np.float32)
    strips[np.arange(len(best)), best] = 0.7
    found = _decode_strips(strips, ("", "a", "b", " "), 1 / len(best))
    wanted = "".join(" ab "[now] for before, now in pairwise([0, *best]) if now and now != before)
    assert "".join(letter.text for letter in found) == wanted
    assert all(letter.text and 0 < letter.place < 1 and letter.confidence == pytest.approx(0.7) for letter in found)
    assert [letter.place for letter in found] == sorted(letter.place for letter in found)


def picture(rows: list[str]) -> NDArray[np.uint8]:
    """Draw dots in blue and hashes in white."""
    dots = np.array([[letter == "#" for letter in row] for row in rows])
    return np.where(dots[:, :, None], np.uint8(255), np.array([0, 90, 190], np.uint8)).astype(np.uint8)


def test_ink_differs_from_the_most_common_colour() -> None:
    rows = ["........", "..##.#..", "..#..#..", "........"]
    mask = line_image.find_ink(picture(rows))
    assert ["".join(".#"[cell] for cell in row) for row in mask.astype(int)] == rows
    assert line_image.find_ink_columns(mask, 0, 4) == [(2, 4), (5, 6)]


def test_the_band_takes_the_dot_of_an_i_and_leaves_the_neighbour() -> None:
    rows = ["#.......", "........", "..#.....", "........", "..#.##..", "..#.#...", "........", "........", "######.."]
    assert line_image.find_ink_rows(line_image.find_ink(picture(rows)), (1, 4, 7, 6)) == (2, 6)
    rows[-2:] = [".####...", ".####..."]  # as near as the dot, and cut off by the edge
    assert line_image.find_ink_rows(line_image.find_ink(picture(rows)), (1, 4, 7, 6)) == (2, 6)


def test_a_rule_under_the_text_is_not_its_ink() -> None:
    rows = ["........", "........", "..#.##..", "..#.#...", "########", "........"]
    assert line_image.find_ink_rows(line_image.find_ink(picture(rows)), (0, 2, 8, 3)) == (2, 4)


def test_a_core_without_ink_has_no_band() -> None:
    mask = np.zeros((10, 10), bool)
    assert line_image.find_ink_rows(mask, (2, 2, 8, 8)) == (2, 2)


def place_letters(text: str, strokes: list[tuple[int, int]], spaces: dict[int, float]) -> list[Character]:
    """Return a letter over the middle of each stroke, with the probability of a space before it."""
    return [
        Character(letter, (start + end) / 2 / WIDTH, 1.0, spaces.get(at, 0.0))
        for at, (letter, (start, end)) in enumerate(zip(text, strokes, strict=True))
    ]


def test_a_certain_space_needs_no_gap_where_an_underline_fills_it() -> None:
    letters = [Character("a", 13 / WIDTH, 1.0), Character("b", 25 / WIDTH, 1.0, 0.98)]
    (found,) = split_runs(letters, [(10, 28)], WIDTH, HEIGHT)
    assert found.text == "a b"


def test_a_possible_space_needs_a_clear_gap() -> None:
    near, far = [(10, 16), (19, 25)], [(10, 16), (21, 27)]
    assert [next(split_runs(place_letters("ab", strokes, {1: 0.2}), strokes, WIDTH, HEIGHT)).text
            for strokes in (near, far)] == ["ab", "a b"]  # fmt: skip


def test_a_dot_between_words_stands_alone() -> None:
    strokes = [(10, 16), (21, 23), (28, 34)]
    assert [next(split_runs(place_letters(text, strokes, {}), strokes, WIDTH, HEIGHT)).text
            for text in ("a·b", "a.b")] == ["a · b", "a.b"]  # fmt: skip


def make_columns(text: str, pitch: int = 8) -> tuple[str, list[tuple[int, int]]]:
    """Return the letters of a monospaced line, narrow and wide ones, each in the middle of its column."""
    widths = {letter: 2 + 2 * (at % 3) for at, letter in enumerate(sorted(set(text)))}
    middles = {at: 10 + pitch * at for at, letter in enumerate(text) if letter != " "}
    strokes = [(middle - widths[text[at]] // 2, middle + widths[text[at]] // 2) for at, middle in middles.items()]
    return text.replace(" ", ""), strokes


def test_spaces_of_a_monospaced_line_are_its_empty_columns() -> None:
    text = "if (a[i] == '.') b = a  .c;"
    letters, strokes = make_columns(text)
    characters = place_letters(letters, strokes, {})
    pitch = measure_pitch(characters, strokes, WIDTH, HEIGHT)
    assert pitch is not None
    assert pitch[0] == pytest.approx(8, abs=0.2)
    assert pitch[1] > REGULAR
    (found,) = split_runs(characters, strokes, WIDTH, HEIGHT, pitch[0])
    assert found.text == text


def test_letters_of_different_widths_fit_no_columns() -> None:
    edges, letters = 10, []
    for width in (2, 10, 6, 3, 11, 7, 2, 9, 5, 12, 4, 8, 3, 10):
        letters.append((edges, edges + width))
        edges += width + 2
    pitch = measure_pitch(place_letters("imaliwoneugrtm", letters, {}), letters, WIDTH, HEIGHT)
    assert pitch is not None
    assert pitch[1] < REGULAR


@requirement("reader.mono")
def test_letters_beside_the_middle_of_their_columns_still_fit_most_of_them() -> None:
    generator = np.random.default_rng(4)
    beside = [at * 12 + 6 + float(generator.choice([-3, 0, 0, 2])) for at in range(24)]
    across = np.cumsum(generator.choice([5, 8, 9, 11, 14, 15], 24)).tolist()
    for places, fits in ((beside, True), (across, False)):
        strokes = [(round(place) - 2, round(place) + 2) for place in places]
        letters = [Character("a", place / WIDTH, 1.0) for place in places]
        assert fits_pitch(letters, strokes, WIDTH, 12.1) is fits


def test_a_narrow_letter_far_behind_the_others_keeps_its_own_ink() -> None:
    """In a wide monospaced font, a bracket after a space is further away than stray ink would be."""
    strokes = [(0, 12), (12, 24), (24, 36), (62, 66)]
    (run,) = split_runs([Character(letter, sum(strokes[at]) / 2 / WIDTH, 1.0) for at, letter in enumerate("get{")],
                        strokes, WIDTH, 40)  # fmt: skip
    assert (run.left, run.right, run.middles) == (0, 66, (6.0, 64.0))
