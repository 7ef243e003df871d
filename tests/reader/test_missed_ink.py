"""Ink that the detector missed: punctuation beside lines, rows without a line, numbers below each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sightline.reader.ocr.line_image import TextArea
from sightline.reader.ocr.missed_ink import _find_row_middle, add_missed_ink

Canvas = NDArray[np.uint8]
PITCH, GROWTH = 20, 5


def make_page(rows: int = 8) -> Canvas:
    return np.full((rows * PITCH, 400, 3), 255, np.uint8)


def draw(page: Canvas, row: int, left: int, right: int, height: int = 12) -> None:
    """Draw the outline of a letter: ink that is not solid."""
    top = row * PITCH + 4
    page[top : top + height, left:right] = 0
    page[top + 1 : top + height - 1, left + 1 : right - 1] = 255


def write(page: Canvas, row: int, left: int, right: int) -> None:
    for start in range(left, right, 8):
        draw(page, row, start, min(start + 6, right))


def area(row: int, left: int, right: int, rows: int = 1) -> TextArea:
    """Return an area whose core is those columns."""
    high = rows * PITCH - 8 + 2 * GROWTH
    return TextArea(
        (left + right) / 2, row * PITCH + rows * PITCH / 2, right - left + 2 * GROWTH, high, 0.0, GROWTH, 1.0
    )


def list_cores(areas: list[TextArea], row: int) -> list[tuple[int, int]]:
    return sorted(
        (round(each.x - each.width / 2 + each.growth), round(each.x + each.width / 2 - each.growth))
        for each in areas
        if row * PITCH <= each.y < (row + 1) * PITCH
    )


def test_marks_beside_a_line_belong_to_it() -> None:
    page = make_page()
    for row in range(8):
        write(page, row, 100, 250)
    draw(page, 3, 90, 93, height=3)
    draw(page, 3, 262, 266)
    found = add_missed_ink(page, [area(row, 100, 250) for row in range(8)])
    assert list_cores(found, 3) == [(90, 266)]
    assert list_cores(found, 4) == [(100, 250)]


def test_a_row_without_a_line_gets_one_where_ink_is() -> None:
    page = make_page()
    for row in (0, 1, 2, 4, 5, 6):
        write(page, row, 100, 250)
    draw(page, 3, 116, 124)
    found = add_missed_ink(page, [area(row, 100, 250) for row in (0, 1, 2, 4, 5, 6)])
    assert list_cores(found, 3) == [(116, 124)]


def test_a_lone_dash_in_a_row_is_text_and_a_lone_dot_is_none() -> None:
    """What is removed by a change has a dash at the left, however far its line is indented."""
    page = make_page()
    for row in range(8):
        write(page, row, 40 if row == 0 else 100, 250)
    page[2 * PITCH + 9 : 2 * PITCH + 11, 40:44] = 0
    page[4 * PITCH + 8 : 4 * PITCH + 12, 40:44] = 0
    page[6 * PITCH + 2 : 6 * PITCH + 4, 40:44] = 0
    found = add_missed_ink(page, [area(row, 40 if row == 0 else 100, 250) for row in range(8)])
    assert list_cores(found, 2) == [(40, 44), (100, 250)]
    assert list_cores(found, 4) == list_cores(found, 6) == [(100, 250)]


def test_rules_and_patches_of_colour_are_not_letters() -> None:
    page = make_page()
    for row in range(8):
        write(page, row, 100, 250)
    page[:, 92:93] = 0
    page[2 * PITCH + 4 : 2 * PITCH + 16, 258:272] = 90
    found = add_missed_ink(page, [area(row, 100, 250) for row in range(8)])
    assert [list_cores(found, row) for row in range(8)] == [[(100, 250)]] * 8


def test_line_numbers_stay_apart_from_their_lines() -> None:
    page = make_page()
    for row in range(8):
        draw(page, row, 80, 87)
        write(page, row, 100, 250)
    joined = [area(3, 80, 250)]
    found = add_missed_ink(page, [area(row, 100, 250) for row in range(8) if row != 3] + joined)
    assert [list_cores(found, row) for row in (2, 3)] == [[(80, 87), (100, 250)]] * 2


def test_an_area_of_several_numbers_below_each_other_is_divided() -> None:
    page = make_page()
    for row in range(8):
        draw(page, row, 20, 27)
        write(page, row, 100, 250)
    stack = area(2, 20, 27, rows=3)
    found = add_missed_ink(page, [stack, *(area(row, 100, 250) for row in range(8))])
    assert all((20, 27) in list_cores(found, row) for row in (2, 3, 4))
    assert all(each.height < 2 * PITCH for each in found)


def test_texts_far_apart_are_left_as_they_are() -> None:
    page = make_page(30)
    for row in range(0, 30, 3):
        write(page, row, 100, 250)
        draw(page, row, 262, 266)
    areas = [area(row, 100, 250) for row in range(0, 30, 3)]
    assert add_missed_ink(page, areas) == areas


def test_a_program_of_mostly_short_lines_is_a_text() -> None:
    page = make_page(12)
    for row in range(12):
        write(page, row, 100, 250 if row % 3 == 0 else 124)
    draw(page, 5, 90, 93, height=3)
    found = add_missed_ink(page, [area(row, 100, 250 if row % 3 == 0 else 124) for row in range(12)])
    assert list_cores(found, 5)[0][0] == 90


def test_a_tall_area_beside_the_rows_keeps_its_ink() -> None:
    page = make_page()
    for row in range(8):
        write(page, row, 100, 250)
    draw(page, 1, 262, 266)
    tall = TextArea(264, 4 * PITCH, 14, 8 * PITCH, 0.1, 0, 1.0)
    found = add_missed_ink(page, [tall, *(area(row, 100, 250) for row in range(8))])
    assert list_cores([each for each in found if not each.tilt], 1) == [(100, 250)]
    assert tall in found


def test_more_areas_than_the_limit_are_left_as_they_are() -> None:
    rows = 300
    page = make_page(rows)
    for row in range(rows):
        write(page, row, 100, 250)
        draw(page, row, 262, 266)
    few = [area(row, 100, 250) for row in range(rows)]
    many = sorted((each for each in few for _ in range(6)), key=lambda each: each.y)
    assert list_cores(add_missed_ink(page, few), 3) == [(100, 266)]
    assert add_missed_ink(page, many) == many


def test_ink_that_goes_on_with_a_line_belongs_to_it_and_a_frame_around_it_does_not() -> None:
    page = make_page()
    for row in range(8):
        write(page, row, 100, 250)
    page[3 * PITCH + 14 : 3 * PITCH + 16, 66:104] = 0  # underscores that touch the first letter
    page[5 * PITCH + 1, 80:270] = page[5 * PITCH + 18, 80:270] = 0
    page[5 * PITCH + 1 : 5 * PITCH + 19, (80, 269)] = 0
    found = add_missed_ink(page, [area(row, 100, 250) for row in range(8)])
    assert list_cores(found, 3) == [(66, 250)]
    assert list_cores(found, 5) == [(100, 250)]


def test_words_below_each_other_that_were_found_as_one_are_separated() -> None:
    page = make_page()
    for row in range(8):
        write(page, row, 60, 250)
    for row in (3, 4):
        draw(page, row, 64, 72)
    lines = [area(row, 60 if row not in (3, 4) else 92, 250) for row in range(8)]
    found = add_missed_ink(page, [replace(area(3, 64, 82, rows=2), y=3.8 * PITCH), *lines])
    assert [list_cores(found, row) for row in (3, 4)] == [[(60, 250)]] * 2


def test_underscores_below_the_letters_belong_to_their_line() -> None:
    page = make_page()
    for row in range(8):
        write(page, row, 100, 250)
    page[3 * PITCH + 19 : 3 * PITCH + 21, 80:97] = 0
    found = add_missed_ink(page, [area(row, 100, 250) for row in range(8)])
    assert list_cores(found, 3) == [(80, 250)]
    assert list_cores(found, 4) == [(100, 250)]


def test_the_end_of_a_letter_of_the_row_above_is_no_text() -> None:
    page = make_page()
    for row in range(8):
        write(page, row, 100, 250 if row != 4 else 150)
    page[3 * PITCH + 16 : 3 * PITCH + 22, 200:206] = 0
    found = add_missed_ink(page, [area(row, 100, 250 if row != 4 else 150) for row in range(8)])
    assert list_cores(found, 4) == [(100, 150)]


def test_a_row_that_the_edge_of_the_page_cuts_is_left_alone() -> None:
    page = make_page()
    for row in range(8):
        write(page, row, 100, 250)
    cut = page[: 7 * PITCH + 10]
    found = add_missed_ink(cut, [area(row, 100, 250) for row in range(8)])
    assert list_cores(found, 6) == [(100, 250)]


def test_a_program_below_a_text_with_other_distances_has_rows_of_its_own() -> None:
    """The rows of the text are a sixth further apart: its distances would miss the prompts of the program."""
    page = np.full((500, 400, 3), 255, np.uint8)
    areas = []
    for tops, left in (([24 * row for row in range(8)], 60), ([200 + 18 * row for row in range(9)], 116)):
        for top in tops:
            for start in range(left, 300, 8):
                page[top : top + 9, start : start + 6] = 0
                page[top + 1 : top + 8, start + 1 : start + 5] = 255
            areas.append(TextArea((left + 298) / 2, top + 4.5, 308 - left, 19, 0.0, GROWTH, 1.0))
    for row in range(1, 9):
        for start in (84, 92, 100):
            page[200 + 18 * row + 6 : 200 + 18 * row + 9, start : start + 3] = 0
    found = [each for each in add_missed_ink(page, areas) if each.y > 195]
    starts = [round(each.x - each.width / 2 + each.growth) for each in sorted(found, key=lambda one: one.y)]
    assert starts.count(84) == 8


def test_high_signs_do_not_move_their_row() -> None:
    """Quotes alone are above the middle of their row; letters, such as a line number, tell where it is."""
    number = area(1, 20, 32)
    quotes = [replace(area(1, left, left + 5), y=PITCH + 5, height=4 + 2 * GROWTH) for left in (100, 180)]
    assert _find_row_middle([number, *quotes], 12.0) == number.y
    assert _find_row_middle(quotes, 12.0) == PITCH + 5
