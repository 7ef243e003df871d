"""Boxes in a rotated image, there and back, and the reading of one."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.reader.describe import describe_rotation
from sightline.reader.examine import examine_image, rotate_pixels
from sightline.reader.headings import find_titles
from sightline.reader.ocr.page import read_page
from sightline.reader.ocr.weights import open_engine
from sightline.reader.reading import ImageReading, Pixels, TextLine
from sightline.reader.rectangles import rotate_box
from sightline.vision.seers.local import run_local_task
from tests.reader.pictures import sample, saved
from tests.reader.sketch import Sketch
from tests.reader.statements import find_statement
from tests.requirements import requirement

QUARTERS = st.sampled_from([0, 90, 180, 270])


@given(st.builds(Box, *[st.integers(0, 9)] * 2, *[st.integers(1, 9)] * 2), QUARTERS)
def test_a_box_is_rotated_like_its_pixels_and_back(box: Box, degrees: int) -> None:
    pixels = np.zeros((24, 20, 3), np.uint8)
    pixels[box.y : box.bottom, box.x : box.right] = 255
    turned = rotate_pixels(pixels, degrees)
    size = Size(turned.shape[1], turned.shape[0])
    there = rotate_box(box, Size(20, 24), degrees)
    assert turned[there.y : there.bottom, there.x : there.right].min() == 255
    assert int((turned > 0).sum()) == int((pixels > 0).sum()) == 3 * there.width * there.height
    assert rotate_box(there, size, 360 - degrees) == box


@requirement("read.turned")
@pytest.mark.parametrize("turned", [90, 180, 270])
def test_a_rotated_page_is_read_as_an_upright_one(turned: int) -> None:
    whole = Sketch((700, 400))
    for column in (30, 380):
        for row in range(8):
            whole.write(column, 40 + row * 24, f"line {row} of the prose of column {column}")
    straight = examine_image(whole.pixels, whole.lines)
    size = Size(whole.pixels.shape[1], whole.pixels.shape[0])
    lines = [TextLine(line.text, rotate_box(line.box, size, 360 - turned)) for line in whole.lines]
    seen = examine_image(rotate_pixels(whole.pixels, 360 - turned), lines, (), turned)
    assert seen.text == straight.text
    assert [line.text for line in seen.lines] == [line.text for line in straight.lines]
    assert [line.box for line in seen.lines] == [line.box for line in straight.lines]
    assert seen.size == size
    assert seen.rotation == turned


@requirement("read.turned")
@pytest.mark.parametrize("turned", [90, 180, 270])
def test_a_rotated_dialog_has_its_buttons_and_text_in_order(turned: int) -> None:
    engine = open_engine()
    assert not isinstance(engine, Refusal), engine

    def looked(pixels: Pixels) -> ImageReading:
        page = read_page(pixels, engine)
        return examine_image(pixels, page.lines, (), page.turned)

    pixels = np.asarray(sample("dialog"))
    straight, seen = looked(pixels), looked(rotate_pixels(pixels, 360 - turned))
    assert seen.rotation == turned
    assert seen.text == straight.text
    buttons = [part.box for part in straight.parts if part.kind == "button"]
    assert [part.box for part in seen.parts if part.kind == "button"] == buttons
    title = find_titles(seen).bar
    assert title is not None
    assert (title.text, title.box) == ("Backup Manager", Box(255, 162, 97, 12))


@requirement("read.turned")
@pytest.mark.parametrize("turned", [90, 180, 270])
def test_boxes_are_in_pixels_of_the_original_orientation(turned: int) -> None:
    def asked(pixels: Pixels, question: str) -> tuple[str, dict[str, Box]]:
        data = saved(Image.fromarray(pixels))
        told = {"question": question, "schema": None, "folder": "", "seconds": 60.0}
        found = run_local_task(data, {**told, "images": [[hashlib.sha256(data).hexdigest(), len(data)]]})
        assert not isinstance(found, Refusal), found
        return found[0]["text"], {label: Box(*box) for label, box, _ in found[0]["spots"] if label != "icon"}

    pixels = np.asarray(sample("dialog"))
    size = Size(pixels.shape[1], pixels.shape[0])
    _, straight = asked(pixels, "")
    words, spots = asked(rotate_pixels(pixels, 360 - turned), "")
    assert spots == {label: rotate_box(box, size, 360 - turned) for label, box in straight.items()}
    note = describe_rotation(ImageReading(size, rotation=turned))
    assert note in words
    words, _ = asked(rotate_pixels(pixels, 360 - turned), "Give the positions.")
    assert note in words
    assert find_statement(words, '"Backup Manager"', "[255, 162, 352, 174]")
    said, _ = asked(rotate_pixels(pixels, 360 - turned), "Where is the Cancel button?")
    assert note in said
