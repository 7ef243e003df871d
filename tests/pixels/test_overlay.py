"""Overlays: where boxes and labels are drawn, and that no label or number breaks them."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from sightline.model.refusal import Refusal
from sightline.pixels.overlay import COLOURS, overlay_task
from sightline.pixels.workers import WorkerPool
from tests.requirements import requirement
from tests.scripted.pictures import encode

PAPER = (240, 240, 240)


def drawn(boxes: list[list[object]], size: tuple[int, int] = (400, 300), mode: str = "RGB") -> Image.Image:
    made = overlay_task(encode(Image.new("RGB", size, PAPER).convert(mode)), {"boxes": boxes})
    assert not isinstance(made, Refusal)
    facts, data = made
    picture = Image.open(io.BytesIO(data))
    assert picture.size == size == (facts["width"], facts["height"])
    return picture.convert("RGB")


def pixel(picture: Image.Image, x: int, y: int) -> object:
    return picture.getpixel((x, y))


@requirement("cli.overlay")
def test_a_box_is_a_frame_of_its_own_colour_and_nothing_inside_is_touched() -> None:
    picture = drawn([[100, 80, 200, 160, ""], [220, 80, 320, 160, ""]])
    for corner in ((97, 77), (202, 162), (150, 78), (98, 120)):
        assert pixel(picture, *corner) == COLOURS[0]
    assert pixel(picture, 217, 77) == COLOURS[1]
    for clear in ((150, 120), (96, 76), (203, 163), (210, 100)):
        assert pixel(picture, *clear) == PAPER
    assert {pixel(picture, x, y) for x in range(99, 201) for y in range(79, 161)} == {PAPER}


@requirement("cli.overlay")
def test_a_label_is_above_its_box_or_below_if_there_is_no_room() -> None:
    above = drawn([[100, 80, 200, 160, "dialog"]])
    assert pixel(above, 101, 75) == COLOURS[0]
    assert any(pixel(above, x, y) == (255, 255, 255) for x in range(100, 200) for y in range(50, 77))
    below = drawn([[100, 0, 200, 60, "dialog"]])
    assert pixel(below, 101, 64) == COLOURS[0]


@requirement("cli.overlay")
def test_a_label_covers_no_box_while_there_is_room() -> None:
    boxes: list[list[object]] = [[100, y, 200, y + 14, "a label"] for y in range(60, 200, 20)]
    picture = drawn(boxes)
    for _, top, *_ in boxes:
        assert {pixel(picture, x, y) for x in range(99, 201) for y in range(int(str(top)), int(str(top)) + 14)} == {
            PAPER
        }
    assert any(pixel(picture, x, 110) == (255, 255, 255) for x in range(204, 300)), "it stands behind its box"


@requirement("cli.overlay")
@pytest.mark.parametrize("label", ["<b>&", "a\nb", "x" * 500, "\u0000", "日本", "  "])
@pytest.mark.parametrize("box", [[0, 0, 0, 0], [399, 299, 400, 300], [0, 0, 400, 300], [390, 290, 390, 290]])
def test_any_label_and_any_box_can_be_drawn(label: str, box: list[object]) -> None:
    drawn([[*box, label]])


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA"])
def test_every_kind_of_bitmap_is_drawn_on_in_colour(mode: str) -> None:
    assert pixel(drawn([[10, 10, 60, 60, "x"]], mode=mode), 7, 7) == COLOURS[0]
    drawn([[0, 0, 1, 1, "wide"]], (5, 5))


def test_a_file_that_is_not_an_image_is_refused() -> None:
    assert isinstance(overlay_task(b"nothing", {"boxes": []}), Refusal)


@requirement("cli.overlay")
def test_hundreds_of_boxes_on_a_large_image_are_drawn_in_time() -> None:
    paper = encode(Image.new("RGB", (3840, 2160), PAPER))
    boxes = [[x, y, x + 150, y + 60, f"number {x} {y}"] for x in range(0, 3800, 160) for y in range(40, 2000, 240)]
    workers = WorkerPool()
    try:
        made = workers.run_sync("overlay", paper, {"boxes": boxes})
    finally:
        workers.shut_down()
    assert not isinstance(made, Refusal), made
    assert len(boxes) > 200


@requirement("cli.overlay.format")
@pytest.mark.parametrize("mime", ["image/png", "image/jpeg", "image/webp"])
def test_the_overlay_has_the_requested_type(mime: str) -> None:
    made = overlay_task(encode(Image.new("RGB", (90, 60), PAPER)), {"boxes": [[9, 9, 50, 40, ""]], "mime": mime})
    assert not isinstance(made, Refusal)
    with Image.open(io.BytesIO(made[1])) as drawn:
        assert (drawn.format, drawn.size) == (mime[6:].upper(), (90, 60))
        red, green, blue = drawn.convert("RGB").crop((7, 20, 8, 21)).tobytes()
        assert max(abs(red - COLOURS[0][0]), abs(green - COLOURS[0][1]), abs(blue - COLOURS[0][2])) < 25
