"""Text recognition on kept screens with known words, and on pages that are hard or hopeless."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont, ImageOps

from sightline.model.geometry import Box
from sightline.model.refusal import Refusal
from sightline.reader.ocr import page as ocr_page
from sightline.reader.ocr import weights
from sightline.reader.ocr.line_attempt import LineAttempt
from sightline.reader.ocr.line_image import TextArea, cut_line_image
from sightline.reader.ocr.page import OcrPage, read_lines, read_page
from sightline.reader.ocr.recognizer import Character
from sightline.reader.ocr.weights import OcrEngine, open_engine
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import is_inside
from tests.reader.pictures import SAMPLES, noise, page, photograph, sample
from tests.requirements import requirement

Pixels = NDArray[np.uint8]
TEXTS = ["Harvest the apples before noon", "Every ledger has two columns", "Nothing leaves this machine"]


@cache
def engine(*names: weights.PairName) -> OcrEngine:
    opened = open_engine()
    assert not isinstance(opened, Refusal), opened
    assert set(names) <= set(opened.names), "weights are missing: make setup"
    return OcrEngine({name: found for name in names if (found := weights.find_pair(name))}) if names else opened


def pixels(image: Image.Image) -> Pixels:
    return np.asarray(image.convert("RGB"))


def words(name: str) -> Iterator[tuple[str, Box]]:
    """Return the words of a kept screen, and the ink of each."""
    known = json.loads((SAMPLES / f"{name}.json").read_text("utf-8"))
    for word in known["words"]:
        left, top, right, bottom = word["i"]
        if word["b"][2] <= known["w"]:
            yield word["t"], Box(left, top, right - left, bottom - top)


def missing(name: str, lines: tuple[TextLine, ...]) -> list[str]:
    """Return the words of a screen that are in no line at their place."""
    return [text for text, ink in words(name) if not any(_says(line, text, ink) for line in lines)]


def _says(line: TextLine, text: str, ink: Box) -> bool:
    x, y = ink.x + ink.width / 2, ink.y + ink.height / 2
    across = line.box.x - 2 <= x <= line.box.right + 2 or ink.x <= line.box.x <= ink.right
    return across and line.box.y - 2 <= y <= line.box.bottom + 2 and text in line.text.replace(" ", "")


@requirement("read.screens")
@pytest.mark.parametrize("names", [(), ("tiny",), ("small",)])
@pytest.mark.parametrize(("name", "share"), [("dialog", 0.03), ("form", 0.03), ("chart", 0.0), ("small9", 0.06)])
def test_stored_screens_are_read_with_both_pairs_and_with_each_alone(
    name: str, share: float, names: tuple[weights.PairName, ...]
) -> None:
    lost = missing(name, read_lines(pixels(sample(name)), engine(*names)))
    assert len(lost) <= share * len(list(words(name))), lost


@requirement("read.boxes")
def test_boxes_are_tight_around_the_ink() -> None:
    lines = read_lines(pixels(sample("dialog")), engine())
    by_text = {line.text: line.box for line in lines}
    assert by_text["Backup Manager"] == Box(255, 162, 97, 12)
    assert by_text["Cancel"] == Box(707, 414, 42, 11)
    assert by_text["Try again"] == Box(471, 414, 57, 14)


def test_a_check_box_is_not_part_of_its_label() -> None:
    (line,) = (line for line in read_lines(pixels(sample("form")), engine()) if "I agree" in line.text)
    assert line.text == "I agree to the terms of service and privacy policy"
    assert line.box.x >= 132


def test_a_radio_button_is_not_part_of_its_label() -> None:
    image = Image.new("RGB", (420, 120), "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(15)
    for row, text in enumerate(("Automatic", "Off", "O negative")):
        y = 14 + row * 34
        if row < 2:
            pen.ellipse((20, y, 36, y + 16), "white", "#666666", 2)
        pen.text((46, y + 8), text, "black", font, "lm")
    lines = read_lines(pixels(image), engine())
    assert [line.text for line in lines] == ["Automatic", "Off", "O negative"]
    assert [line.box.x for line in lines] == [46, 47, 47]
    assert all(line.box.height <= 14 for line in lines)


def test_the_name_of_an_axis_is_read_from_bottom_to_top() -> None:
    (line,) = (line for line in read_lines(pixels(sample("chart")), engine()) if "million" in line.text)
    assert line.text == "Revenue (million USD)"
    assert line.box.height > 10 * line.box.width


def test_lines_come_from_top_to_bottom() -> None:
    assert [line.text for line in read_lines(pixels(page(TEXTS)), engine())] == TEXTS


@requirement("read.turned")
@pytest.mark.parametrize(("quarters", "turned"), [(0, 0), (1, 90), (2, 180), (3, 270)])
def test_a_rotated_page_is_read(quarters: int, turned: int) -> None:
    """Rotated counterclockwise, so it must be rotated clockwise by as much."""
    upright = pixels(page(TEXTS))
    found = read_page(np.ascontiguousarray(np.rot90(upright, quarters)), engine())
    assert [line.text for line in found.lines] == TEXTS
    assert (found.turned, found.unread) == (turned, ())
    height, width = upright.shape[:2]
    for line, plain in zip(found.lines, read_lines(upright, engine()), strict=True):
        box = plain.box
        assert (
            line.box
            == {
                0: box,
                90: Box(box.y, width - box.right, box.height, box.width),
                180: Box(width - box.right, height - box.bottom, box.width, box.height),
                270: Box(height - box.bottom, box.x, box.height, box.width),
            }[turned]
        )


@requirement("read.turned")
def test_a_tilted_page_is_read() -> None:
    askew = page([*TEXTS, *TEXTS], (900, 400)).rotate(7, Image.Resampling.BICUBIC, fillcolor="white")
    assert [line.text for line in read_lines(pixels(askew), engine())] == [*TEXTS, *TEXTS]


@requirement("read.unknown")
def test_unknown_letters_are_not_invented() -> None:
    """Mirrored letters take the place of an unknown script."""
    mirrored = ImageOps.mirror(page(TEXTS))
    boxes = [
        Box(900 - line.box.right, line.box.y, *_sides(line.box)) for line in read_lines(pixels(page(TEXTS)), engine())
    ]
    assert read_page(pixels(mirrored), engine()) == OcrPage((), unread=tuple(boxes))


def _sides(box: Box) -> tuple[int, int]:
    return box.width, box.height


def test_short_words_far_apart_are_read_with_their_boxes() -> None:
    """Both are found as one wide line, most of which is blank."""
    image = Image.new("RGB", (420, 80), "white")
    pen = ImageDraw.Draw(image)
    for x in (40, 202):
        pen.rounded_rectangle((x, 30, x + 159, 55), 3, "#ebebeb")
        pen.text((x + 80, 43), "No", "#202020", ImageFont.load_default(14), "mm")
    found = read_page(pixels(image), engine())
    assert [line.text for line in found.lines] == ["No", "No"]
    assert found.unread == ()


@requirement("read.nothing")
@pytest.mark.parametrize(
    "image",
    [
        Image.new("RGB", (640, 480), "white"),
        Image.new("RGB", (1, 1)),
        Image.new("RGB", (1, 900), "red"),
        noise(),
        photograph(),
    ],
    ids=["blank", "1x1", "1x900", "noise", "photograph"],
)
def test_an_image_without_text_has_no_lines(image: Image.Image) -> None:
    assert read_lines(pixels(image), engine()) == ()


@requirement("read.bounds")
@pytest.mark.parametrize("size", [(16_384, 120), (240, 16_384)])
def test_a_very_long_image_is_read_to_its_end(size: tuple[int, int]) -> None:
    image = Image.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(image), ImageFont.load_default(20)
    ends = [(20, 20), (size[0] - 220, size[1] - 60)]
    for place, text in zip(ends, ("Beginning", "The very end"), strict=True):
        pen.text(place, text, "black", font)
    assert [line.text for line in read_lines(pixels(image), engine())] == ["Beginning", "The very end"]


def test_a_huge_image_is_not_copied() -> None:
    """It is searched in tiles at a bounded size, and large letters are read."""
    image = Image.new("RGB", (9_000, 9_000), "white")
    ImageDraw.Draw(image).text((4_000, 4_500), "In the middle", "black", ImageFont.load_default(120))
    assert [line.text for line in read_lines(pixels(image), engine())] == ["In the middle"]


@requirement("read.bounds")
def test_unread_lines_are_reported_when_time_runs_out() -> None:
    asked = iter([True, True, True])  # one tile, two lines
    found = read_page(pixels(page(TEXTS)), engine(), lambda: next(asked, False))
    assert [line.text for line in found.lines] == TEXTS[:2]
    (late,) = found.late
    (last,) = (line for line in read_lines(pixels(page(TEXTS)), engine()) if line.text == TEXTS[2])
    assert is_inside(last.box, late)
    assert found.searched


@requirement("read.bounds")
def test_nothing_is_read_without_time_and_that_is_reported() -> None:
    assert read_page(pixels(page(TEXTS)), engine(), lambda: False) == OcrPage((), searched=False)


def test_a_line_in_grain_is_less_certain() -> None:
    """Draw grain over small letters, so that some are hard to read."""
    image = page(["Fifteen illegible lilies lie still in the mill"], (500, 60), 11)
    grain = np.random.default_rng(5).normal(0, 55, (60, 500, 1))
    lines = read_lines(np.clip(pixels(image) + grain, 0, 255).astype(np.uint8), engine())
    assert lines
    assert all(0 < line.confidence < 1 for line in lines)
    assert all(set(line.doubtful) <= set(range(len(line.text))) for line in lines)


def test_a_second_reading_is_the_same() -> None:
    picture = pixels(sample("dialog"))
    assert read_lines(picture, engine()) == read_lines(picture, engine())


def test_what_is_beside_an_unreadable_mark_is_read_alone() -> None:
    """Only the certain piece becomes a line; the mark stays unread."""
    image = Image.new("RGB", (120, 40), "white")
    pen = ImageDraw.Draw(image)
    pen.rectangle((8, 8, 30, 30), outline="black", width=2)
    pen.ellipse((13, 13, 21, 21), fill="gray")
    pen.line((8, 30, 22, 18, 30, 26), fill="black", width=2)
    pen.text((60, 8), "512", "black", ImageFont.load_default(20))
    area = TextArea(60, 20, 118, 38, 0.0, 6, 1.0)
    small = engine().get_model("small")
    assert small is not None
    spoilt = [Character("卜", 0.2, 0.3), Character("5", 0.6, 0.6)]
    attempt = LineAttempt(area, 0, cut_line_image(pixels(image), area), spoilt, small)
    pieces = ocr_page._read_pieces(attempt, small, lambda: True)
    assert ["".join(letter.text for letter in piece.letters) for piece in pieces] == ["", "512"]
    assert pieces[1].frame.origin[0] > 40
