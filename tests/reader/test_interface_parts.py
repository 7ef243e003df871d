"""Buttons, fields, check boxes, bars, panels and pictures, by their shape."""

from __future__ import annotations

import numpy as np
import pytest

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours
from sightline.reader.interface_parts import find_parts
from sightline.reader.reading import InterfacePart, Pixels
from sightline.reader.regions import MOST_SPLIT, find_regions, segment_image
from tests.reader.sketch import Sketch
from tests.requirements import requirement

LIGHT = {"ground": "#f3f3f3", "card": "#ffffff", "line": "#bbbbbb", "ink": "#202020"}
DARK = {"ground": "#1e1e1e", "card": "#2b2b2b", "line": "#6a6a6a", "ink": "#dddddd"}


def dialog(look: dict[str, str]) -> Sketch:
    sketch = Sketch(ground=look["ground"], ink=look["ink"])
    sketch.box((40, 40, 600, 440), look["card"], radius=8)
    sketch.write(60, 70, "Sign in", 20)
    sketch.write(60, 112, "Name")
    sketch.box((60, 124, 400, 160), look["card"], look["line"], 5)
    sketch.write(72, 142, "Ada Byron")
    sketch.box((60, 184, 400, 220), look["card"], look["line"], 5)
    for y, ticked in ((250, True), (280, False)):
        sketch.box((60, y - 8, 76, y + 8), look["card"], look["line"])
        if ticked:
            sketch.pen.line([(63, y), (67, y + 4), (73, y - 5)], look["ink"], 2)
        sketch.write(84, y, "Stay signed in" if ticked else "Send me news")
    sketch.box((60, 330, 180, 364), "#0067c0", radius=5)
    sketch.write(120, 347, "Go on", 14, "#ffffff", "mm")
    sketch.box((200, 330, 320, 364), look["card"], look["line"], 17)
    sketch.write(260, 347, "Cancel", 14, anchor="mm")
    return sketch


def of(found: tuple[InterfacePart, ...], kind: str) -> list[InterfacePart]:
    return [part for part in found if part.kind == kind]


@pytest.mark.parametrize("look", [LIGHT, DARK], ids=["light", "dark"])
def test_the_parts_of_a_dialog_are_found_with_their_text(look: dict[str, str]) -> None:
    sketch = dialog(look)
    found = find_parts(sketch.pixels, sketch.lines)
    texts = {kind: [[sketch.lines[place].text for place in part.lines] for part in of(found, kind)] for kind in KINDS}
    assert texts["button"] == [["Go on"], ["Cancel"]]
    assert texts["field"] == [["Ada Byron"], []]
    assert texts["check"] == [["Stay signed in"], ["Send me news"]]
    assert [part.checked for part in of(found, "check")] == [True, False]
    assert [part.box for part in of(found, "panel")] == [Box(40, 40, 560, 400)]
    assert of(found, "button")[0].box == Box(60, 330, 120, 34)
    assert of(found, "button")[0].colour == (0, 103, 192)
    assert of(found, "field")[0].box == Box(60, 124, 340, 36)


def test_a_strip_of_labels_and_values_is_not_a_button() -> None:
    sketch = Sketch()
    for y, text in ((100, "exit code 3, trace 7f3a-c41e"), (180, "View log")):
        sketch.box((60, y - 18, 560, y + 18), "#e4e7ec", radius=6)
        sketch.write(310, y, text, 14, anchor="mm")
    found = find_parts(sketch.pixels, sketch.lines)
    assert [(part.kind, part.lines) for part in found] == [("panel", (0,)), ("button", (1,))]


@requirement("reader.controls")
def test_a_label_with_its_value_is_not_a_button() -> None:
    sketch = Sketch((640, 120))
    for at, text in enumerate(("Use: dovecot", "Type: string", "Save")):
        sketch.box((40 + 140 * at, 30, 160 + 140 * at, 62), "#dddddd")
        sketch.write(100 + 140 * at, 46, text, 14, anchor="mm")
    assert [part.lines for part in of(find_parts(sketch.pixels, sketch.lines), "button")] == [(2,)]


KINDS = ("button", "field", "check", "panel")


@pytest.mark.parametrize(
    ("fill", "outline", "height", "gap"),
    [
        ("#ffffff", "#888888", 30, 2),
        ("#fdfdfd", "#adadad", 26, 2),
        ("#0067c0", "", 48, 8),
        ("#ffffff", "#888888", 48, 2),
    ],
)
@pytest.mark.parametrize("down", [False, True])
def test_equal_buttons_close_together_are_all_found(
    fill: str, outline: str, height: int, gap: int, *, down: bool
) -> None:
    sketch = Sketch((500, 300))
    boxes = []
    for place in range(3):
        x, y = (40, 40 + place * (height + gap)) if down else (40 + place * (90 + gap), 40)
        sketch.box((x, y, x + 90, y + height), fill, outline, 4)
        sketch.write(x + 45, y + height / 2, "Delete", anchor="mm")
        boxes.append(Box(x, y, 90, height))
    assert [part.box for part in of(find_parts(sketch.pixels, sketch.lines), "button")] == boxes


def test_a_full_width_strip_is_a_bar() -> None:
    sketch = Sketch(ground="#204060")
    sketch.box((0, 0, 640, 40), "#ffffff")
    sketch.write(20, 20, "File   Edit")
    sketch.box((100, 120, 500, 150), "#ffffff")
    sketch.write(112, 135, "Backup Manager")
    sketch.box((100, 150, 500, 400), "#f0f0f0")
    sketch.write(120, 200, "Backup could not be completed")
    found = find_parts(sketch.pixels, sketch.lines)
    assert [part.box for part in of(found, "bar")] == [Box(0, 0, 640, 40), Box(100, 120, 400, 30)]
    assert [part.box for part in of(found, "panel")] == [Box(100, 150, 400, 250)]


def test_letter_interiors_and_swatches_are_not_parts() -> None:
    sketch = Sketch()
    sketch.write(40, 100, "OOD 80", 90)
    sketch.box((40, 300, 54, 314), "#1f77b4")
    sketch.write(62, 307, "Online")
    assert find_parts(sketch.pixels, sketch.lines) == ()


def test_a_picture_on_a_page_is_found() -> None:
    sketch = Sketch()
    pixels = sketch.pixels.copy()
    pixels[100:260, 200:420] = np.random.default_rng(2).integers(0, 256, (160, 220, 3))
    (picture,) = find_parts(pixels, ())
    assert picture.kind == "picture"
    assert abs(picture.box.x - 200) <= 2
    assert abs(picture.box.bottom - 260) <= 2


def test_a_border_separates_regions_and_a_gradient_does_not() -> None:
    pixels = np.full((60, 200, 3), 255, dtype=np.uint8)
    pixels[:, 100] = 0
    assert sorted((region.box for region in find_regions(pixels)), key=lambda box: box.x) == [
        Box(0, 0, 100, 60),
        Box(101, 0, 99, 60),
    ]
    slope: Pixels = np.repeat(np.linspace(60, 160, 200).astype(np.uint8)[None, :, None], 60, axis=0).repeat(3, axis=2)
    (only,) = find_regions(np.ascontiguousarray(slope))
    assert only.box == Box(0, 0, 200, 60)


@requirement("reader.controls")
@pytest.mark.parametrize("radius", [0, 6, 18])
def test_buttons_of_one_colour_that_touch_are_each_found(radius: int) -> None:
    sketch = Sketch((400, 200))
    places = [(40, 40, 160, 76, "Duplicate"), (40, 76, 130, 112, "Apply")]
    for x0, y0, x1, y1, text in places:
        sketch.box((x0, y0, x1, y1), "#0066cc", radius=radius)
        sketch.write((x0 + x1) / 2, (y0 + y1) / 2, text, 14, "#ffffff", anchor="mm")
    found = of(find_parts(sketch.pixels, sketch.lines), "button")
    assert [part.lines for part in found] == [(0,), (1,)]
    assert [part.box for part in found] == [Box(x0, y0, x1 - x0, y1 - y0) for x0, y0, x1, y1, _ in places]


def test_only_regions_whose_width_changes_have_pieces() -> None:
    pixels = np.full((200, 300, 3), 255, dtype=np.uint8)
    pixels[20:50, 20:140] = 90
    pixels[60:90, 20:140] = pixels[90:130, 20:200] = 120
    assert segment_image(pixels).pieces == (Box(20, 60, 120, 30), Box(20, 90, 180, 40))


def test_a_comb_has_a_bounded_number_of_pieces() -> None:
    pixels = np.full((400, 3000, 3), 255, dtype=np.uint8)
    for x in range(0, 3000, 24):
        for y in range(0, 400, 40):
            pixels[y : y + 18, x : x + 22] = pixels[y + 18 : y + 36, x : x + 19] = 60
    assert len(segment_image(pixels).pieces) == 2 * MOST_SPLIT


def test_a_pixel_has_no_parts() -> None:
    assert find_parts(np.zeros((1, 1, 3), dtype=np.uint8), ()) == ()


def list_kinds(sketch: Sketch) -> list[str]:
    return [part.kind for part in find_parts(sketch.pixels, sketch.lines) if part.kind in ("button", "field")]


@requirement("reader.controls")
def test_a_badge_a_letter_in_a_tile_and_a_sentence_are_no_buttons() -> None:
    sketch = Sketch()
    sketch.box((60, 40, 110, 60), "#d63939", radius=6)
    sketch.write(85, 50, "New", 12, "#ffffff", "mm")
    sketch.box((60, 100, 94, 134), "#3883fa", radius=6)
    sketch.write(77, 117, "A", 16, "#ffffff", "mm")
    sketch.box((60, 180, 420, 216), "#e4e7ec", radius=6)
    sketch.write(240, 198, "All changes were saved automatically", 14, anchor="mm")
    assert list_kinds(sketch) == []


@requirement("reader.controls")
def test_a_button_may_have_an_icon_before_its_text() -> None:
    sketch = Sketch()
    sketch.box((60, 40, 260, 76), "#ffffff", "#bbbbbb", 5)
    sketch.pen.ellipse((80, 50, 96, 66), "#202020")
    sketch.write(112, 58, "Sign in with a key", 14)
    assert list_kinds(sketch) == ["button"]


@requirement("reader.controls")
def test_pale_text_in_a_box_is_that_of_an_empty_field() -> None:
    sketch = Sketch()
    sketch.box((60, 40, 172, 76), "#ffffff", "#bbbbbb", 3)
    sketch.write(72, 58, "Search docs", 14, "#bcc3ce")
    sketch.lines = list(add_colours(sketch.pixels, sketch.lines))
    assert list_kinds(sketch) == ["field"]


@requirement("reader.controls")
def test_cells_in_a_row_and_filled_strips_are_no_fields() -> None:
    sketch = Sketch()
    for at, name in enumerate(("Top", "Middle", "Bottom")):
        sketch.box((60 + 159 * at, 40, 220 + 159 * at, 80), "#ffffff", "#bbbbbb")
        sketch.write(72 + 159 * at, 60, name)
    sketch.box((60, 140, 460, 180), "#61a0ff", "#3070d0")
    sketch.write(72, 160, "Create account", ink="#ffffff")
    assert list_kinds(sketch) == []


@requirement("reader.controls")
def test_a_field_may_end_with_a_button_that_has_an_icon() -> None:
    sketch = Sketch((500, 120), "#343a40", "#ffffff")
    sketch.box((20, 30, 260, 68), "#3f474e", "#56606a")
    sketch.box((259, 30, 298, 68), "#3f474e", "#56606a")
    sketch.write(32, 49, "Search", 15, "#989da2")
    assert list_kinds(sketch) == ["field"]


@requirement("reader.controls")
def test_empty_boxes_of_one_size_in_a_row_are_fields() -> None:
    sketch = Sketch((700, 120))
    for x in (20, 260):
        sketch.box((x, 30, x + 180, 68), "#ffffff", "#d0d0d0")
    assert list_kinds(sketch) == ["field", "field"]
