"""Overlays: where boxes and labels are drawn, and that no label or number breaks them."""

from __future__ import annotations

import io
import subprocess
import sys
from ast import literal_eval
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sightline.model.refusal import Refusal
from sightline.pixels.overlay import COLOURS, LabelWriter, overlay_task
from sightline.pixels.workers import WorkerPool
from tests.requirements import requirement
from tests.scripted.pictures import encode

PAPER = (240, 240, 240)


def drawn(boxes: list[list[object]], size: tuple[int, int] = (400, 300), mode: str = "RGB") -> Image.Image:
    """Return the image with its boxes, and its legend below if it needs one."""
    made = overlay_task(encode(Image.new("RGB", size, PAPER).convert(mode)), {"boxes": boxes})
    assert not isinstance(made, Refusal)
    facts, data = made
    picture = Image.open(io.BytesIO(data))
    assert picture.size == (facts["width"], facts["height"])
    assert (picture.size == size) is not facts["numbered"]
    assert picture.width >= size[0]
    assert facts["has_font"]
    return picture.convert("RGB")


def is_clear(picture: Image.Image, box: list[object]) -> bool:
    """Return whether nothing is drawn inside a box. The frame of a box at an edge of the image is inside the box."""
    x1, y1, x2, y2 = (int(str(each)) for each in box[:4])
    inner = (x1 + 3 * (x1 == 0), y1 + 3 * (y1 == 0), x2 - 3 * (x2 == 400), y2 - 3 * (y2 == 300))
    return set(picture.crop(inner).get_flattened_data()) == {PAPER}


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


@requirement("cli.overlay", "cli.overlay.labels")
def test_a_label_covers_no_box_while_there_is_room() -> None:
    boxes: list[list[object]] = [[100, y, 200, y + 14, "a label"] for y in range(60, 200, 20)]
    picture = drawn(boxes)
    assert picture.size == (400, 300)
    assert all(is_clear(picture, box) for box in boxes)
    assert any(pixel(picture, x, y) == (255, 255, 255) for x in range(204, 300) for y in range(100, 114)), "behind it"


CROWDS: dict[str, list[list[object]]] = {
    "icons": [[x, y, x + 14, y + 14, f"icon {x} {y}"] for y in range(20, 280, 40) for x in range(20, 380, 40)],
    "a stack": [[20, y, 380, y + 12, "a label"] for y in range(20, 270, 25)],
    "edges": [[0, 0, 40, 30, "a"], [360, 0, 400, 30, "b"], [0, 270, 40, 300, "c"], [360, 270, 400, 300, "d" * 50]],
    "points": [[x, 150, x, 150, "a point"] for x in range(40, 360, 20)],
}


@requirement("cli.overlay.labels")
@pytest.mark.parametrize("name", CROWDS)
def test_boxes_are_numbered_if_there_is_no_room_for_labels(name: str) -> None:
    boxes = CROWDS[name]
    picture = drawn(boxes)
    assert picture.height > 300
    large = [box for box in boxes if box[0] != box[2]]
    assert all(is_clear(picture, box) for box in large)
    legend = set(picture.crop((0, 300, *picture.size)).get_flattened_data())
    assert legend >= {(255, 255, 255), *COLOURS[: len(boxes)]}


@requirement("cli.overlay.labels")
def test_a_number_inside_its_own_box_covers_no_box_in_it() -> None:
    small = CROWDS["edges"]
    picture = drawn([*small, [0, 0, 400, 300, "everything"]])
    assert all(is_clear(picture, box) for box in small)


@requirement("cli.overlay.labels")
def test_boxes_without_room_between_them_cover_no_neighbour() -> None:
    boxes: list[list[object]] = [[x, y, x + 18, y + 18, "key"] for y in range(0, 290, 25) for x in range(0, 390, 25)]
    unlabelled = [[*box[:4], "" if number % 2 else "key"] for number, box in enumerate(boxes)]
    picture = drawn(unlabelled)
    assert all(is_clear(picture, box) for box in unlabelled if not box[4])


def test_boxes_have_no_labels_without_a_font(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fonts.conf").write_text(f"<fontconfig><dir>{tmp_path}</dir></fontconfig>")
    monkeypatch.setenv("FONTCONFIG_FILE", str(tmp_path / "fonts.conf"))
    code = (
        "import sys; from sightline.pixels.overlay import overlay_task;"
        "facts, data = overlay_task(sys.stdin.buffer.read(), {'boxes': [[100, 80, 200, 160, 'dialog']]});"
        "sys.stdout.buffer.write(repr(facts).encode() + b'|' + data)"
    )
    paper = encode(Image.new("RGB", (400, 300), PAPER))
    ended = subprocess.run([sys.executable, "-c", code], input=paper, capture_output=True, check=True)
    facts, _, data = ended.stdout.partition(b"|")
    assert literal_eval(facts.decode()) == {"width": 400, "height": 300, "numbered": False, "has_font": False}
    bare = overlay_task(paper, {"boxes": [[100, 80, 200, 160, ""]]})
    assert not isinstance(bare, Refusal)
    assert data == bare[1]


@given(st.text(max_size=70))
@settings(max_examples=40)
def test_any_text_can_be_a_label(label: str) -> None:
    assert LabelWriter(2).has_font()
    drawn([[20, 40, 60, 60, label]])


@requirement("cli.overlay")
@pytest.mark.parametrize("label", ["<b>&", "a\nb", "x" * 500, "\u0000", "日本", "  ", "\u200b", "\udcff", "\u0301"])
@pytest.mark.parametrize("box", [[0, 0, 0, 0], [399, 299, 400, 300], [0, 0, 400, 300], [390, 290, 390, 290]])
def test_any_label_and_any_box_can_be_drawn(label: str, box: list[object]) -> None:
    drawn([[*box, label]])


@pytest.mark.parametrize("mode", ["L", "P", "RGBA", "LA"])
def test_every_kind_of_bitmap_is_drawn_on_in_colour(mode: str) -> None:
    assert pixel(drawn([[10, 10, 60, 60, "x"]], mode=mode), 7, 7) == COLOURS[0]
    assert drawn([[0, 0, 1, 1, "wide"]], (5, 5)).height > 5


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
