"""Places in an image that lies on its side, there and back; and all that is seen in one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.seers.local.engine import open_engine
from sightline.seers.local.looking import see
from sightline.seers.local.reading import read_page
from sightline.seers.local.seen import Line, Seen
from sightline.seers.local.turning import turned_box, turned_pixels
from tests.requirements import requirement
from tests.seers.local.pictures import sample
from tests.seers.local.sketch import Sketch

QUARTERS = st.sampled_from([0, 90, 180, 270])


@given(st.builds(Box, *[st.integers(0, 9)] * 2, *[st.integers(1, 9)] * 2), QUARTERS)
def test_a_box_stands_where_its_pixels_go_and_comes_back(box: Box, degrees: int) -> None:
    pixels = np.zeros((24, 20, 3), np.uint8)
    pixels[box.y : box.bottom, box.x : box.right] = 255
    turned = turned_pixels(pixels, degrees)
    size = Size(turned.shape[1], turned.shape[0])
    there = turned_box(box, Size(20, 24), degrees)
    assert turned[there.y : there.bottom, there.x : there.right].min() == 255
    assert int((turned > 0).sum()) == int((pixels > 0).sum()) == 3 * there.width * there.height
    assert turned_box(there, size, 360 - degrees) == box


@requirement("read.turned")
@pytest.mark.parametrize("turned", [90, 180, 270])
def test_a_turned_page_is_seen_as_it_is_upright_and_told_in_its_own_pixels(turned: int) -> None:
    whole = Sketch((700, 400))
    for column in (30, 380):
        for row in range(8):
            whole.write(column, 40 + row * 24, f"line {row} of the prose of column {column}")
    straight = see(whole.pixels, whole.lines)
    size = Size(whole.pixels.shape[1], whole.pixels.shape[0])
    lines = [Line(line.text, turned_box(line.box, size, 360 - turned)) for line in whole.lines]
    seen = see(turned_pixels(whole.pixels, 360 - turned), lines, (), turned)
    assert seen.text == straight.text
    assert [line.text for line in seen.lines] == [line.text for line in straight.lines]
    assert [turned_box(line.box, seen.size, turned) for line in seen.lines] == [line.box for line in straight.lines]
    assert seen.turned == turned


@requirement("read.turned")
@pytest.mark.parametrize("turned", [90, 180, 270])
def test_the_dialog_on_its_side_has_its_buttons_and_its_text_in_order(turned: int) -> None:
    engine = open_engine()
    assert not isinstance(engine, Refusal), engine

    def looked(pixels: np.typing.NDArray[np.uint8]) -> Seen:
        page = read_page(pixels, engine)
        return see(pixels, page.lines, (), page.turned)

    pixels = np.asarray(sample("dialog"))
    straight, seen = looked(pixels), looked(turned_pixels(pixels, 360 - turned))
    assert seen.turned == turned
    assert seen.text == straight.text
    buttons = [part.box for part in straight.parts if part.kind == "button"]
    assert [turned_box(part.box, seen.size, turned) for part in seen.parts if part.kind == "button"] == buttons
