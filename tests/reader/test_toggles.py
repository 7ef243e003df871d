"""Check boxes, radio buttons and switches, by their shape and at any scale."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from PIL import Image, ImageDraw

from sightline.model.geometry import Box
from sightline.reader.interface_parts import find_parts
from sightline.reader.reading import InterfacePart, TextLine
from sightline.reader.regions import segment_image
from sightline.reader.toggle_features import propose_toggles
from sightline.reader.toggles import find_toggles, remove_toggle_glyphs
from tests.reader.sketch import Sketch
from tests.requirements import requirement

FINE = 8  # shapes are drawn this many times as large, then made smaller, as a browser draws them


def look_for_toggles(sketch: Sketch, lines: list[TextLine]) -> list[InterfacePart]:
    return find_toggles(sketch.pixels, lines, segment_image(sketch.pixels))


def paste_shape(sketch: Sketch, place: tuple[int, int], size: tuple[int, int], look: str) -> None:
    """Draw one toggle: what it is and how it looks."""
    wide, high = size[0] * FINE, size[1] * FINE
    big = Image.new("RGB", (wide, high), sketch.ground)
    pen = ImageDraw.Draw(big)
    line, blue, white, grey = high // 14, "#0d6efd", "#ffffff", "#adb5bd"
    everything = (0, 0, wide - 1, high - 1)
    tick = [(0.22 * wide, 0.52 * high), (0.42 * wide, 0.72 * high), (0.78 * wide, 0.28 * high)]
    match look:
        case "empty box" | "old box, ticked":
            pen.rounded_rectangle(everything, high // 6, white, grey, line)
            if look != "empty box":
                pen.line(tick, "#202020", 2 * line, "curve")
        case "ticked box" | "pale ticked box" | "dashed box":
            pen.rounded_rectangle(everything, high // 6, "#cccccc" if look == "pale ticked box" else blue)
            dash = (0.25 * wide, 0.43 * high, 0.75 * wide, 0.57 * high)
            pen.rectangle(dash, white) if look == "dashed box" else pen.line(tick, white, 2 * line, "curve")
        case "swatch":
            pen.rounded_rectangle(everything, high // 6, blue)
        case "ring" | "ring with a dot" | "pale ring with a dot":
            pale = look == "pale ring with a dot"
            pen.ellipse(everything, white, "#cccccc" if pale else "#666666", line)
            if look != "ring":
                pen.ellipse((0.28 * wide, 0.28 * high, 0.72 * wide, 0.72 * high), "#cccccc" if pale else blue)
        case "disc with a dot" | "disc with a ring" | "disc":
            pen.ellipse(everything, blue)
            if look == "disc with a ring":
                pen.ellipse((0.09 * wide, 0.09 * high, 0.91 * wide, 0.91 * high), white)
                pen.ellipse((0.18 * wide, 0.18 * high, 0.82 * wide, 0.82 * high), blue)
            elif look != "disc":
                pen.ellipse((0.25 * wide, 0.25 * high, 0.75 * wide, 0.75 * high), white)
        case "on" | "off":
            pen.rounded_rectangle(everything, high // 2, blue if look == "on" else white, grey, line)
            left = wide - 0.85 * high if look == "on" else 0.15 * high
            pen.ellipse((left, 0.15 * high, left + 0.7 * high, 0.85 * high), white if look == "on" else grey)
    sketch.image.paste(big.resize(size, Image.Resampling.LANCZOS), place)


@requirement("reader.toggles")
@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize("ground", ["#ffffff", "#1f2430"])
@pytest.mark.parametrize(
    ("look", "kind", "checked"),
    [
        ("empty box", "check", False),
        ("old box, ticked", "check", True),
        ("ticked box", "check", True),
        ("dashed box", "check", None),
        ("ring", "radio", False),
        ("ring with a dot", "radio", True),
        ("disc with a dot", "radio", True),
        ("disc with a ring", "radio", True),
        ("pale ring with a dot", "radio", True),
        ("on", "switch", True),
        ("off", "switch", False),
    ],
)
def test_a_toggle_is_read_at_the_scale_of_its_screen(
    look: str, kind: str, checked: bool | None, ground: str, scale: int
) -> None:
    sketch = Sketch((400 * scale, 100 * scale), ground, "#888888")
    size = (28 * scale, 16 * scale) if kind == "switch" else (16 * scale, 16 * scale)
    paste_shape(sketch, (20 * scale, 30 * scale), size, look)
    sketch.write(60 * scale, 38 * scale, "Send a copy", 14 * scale)
    (toggle,) = look_for_toggles(sketch, sketch.lines)
    assert (toggle.kind, toggle.checked, toggle.lines) == (kind, checked, (0,))
    assert abs(toggle.box.x - 20 * scale) <= 1
    assert abs(toggle.box.width - size[0]) <= 2


@requirement("reader.toggles")
@pytest.mark.parametrize("scale", [1, 2])
def test_a_pale_tick_is_read_on_a_light_page_and_never_misread_on_a_dark_one(scale: int) -> None:
    for ground, known in (("#ffffff", [("check", True)]), ("#1f2430", [])):
        sketch = Sketch((400 * scale, 100 * scale), ground, "#888888")
        paste_shape(sketch, (20 * scale, 30 * scale), (16 * scale, 16 * scale), "pale ticked box")
        sketch.write(60 * scale, 38 * scale, "Send a copy", 14 * scale)
        found = [(part.kind, part.checked) for part in look_for_toggles(sketch, sketch.lines)]
        assert found in (known, [("check", True)])


@requirement("reader.toggles")
@pytest.mark.parametrize("size", [16, 20, 24])
def test_a_doubtful_check_box_counts_in_line_with_sure_ones_of_its_size(size: int) -> None:
    sketch = Sketch((300, 220), "#1f2430", "#cccccc")
    for row, look in enumerate(("ticked box", "pale ticked box", "empty box", "ticked box")):
        y = 30 + round(1.6 * row * size)
        paste_shape(sketch, (20, y), (size, size), look)
        sketch.write(28 + size, y + size / 2, ("Send a copy", "Round corners", "Keep a log", "Spell check")[row], 14)
    found = [(part.kind, part.checked) for part in look_for_toggles(sketch, sketch.lines)]
    assert found == [("check", True), ("check", True), ("check", False), ("check", True)]


@requirement("reader.toggles")
@pytest.mark.parametrize("look", ["swatch", "disc"])
def test_a_patch_of_colour_is_no_toggle(look: str) -> None:
    sketch = Sketch((300, 80))
    paste_shape(sketch, (20, 30), (16, 16), look)
    sketch.write(46, 38, "Online")
    assert look_for_toggles(sketch, sketch.lines) == []


@requirement("reader.toggles")
def test_a_shape_without_a_text_or_others_like_it_is_not_reported() -> None:
    sketch = Sketch((300, 200))
    paste_shape(sketch, (20, 30), (16, 16), "empty box")
    assert look_for_toggles(sketch, []) == []
    for y in (60, 90, 120):
        paste_shape(sketch, (20, y), (16, 16), "empty box")
    assert [part.box.y for part in look_for_toggles(sketch, [])] == [30, 60, 90, 120]


def test_a_ring_that_was_read_as_a_letter_is_a_radio_button() -> None:
    sketch = Sketch((300, 80))
    paste_shape(sketch, (20, 30), (16, 16), "ring")
    sketch.write(46, 38, "Manual")
    read = [TextLine("O", Box(20, 30, 16, 16)), *sketch.lines]
    (mark,) = look_for_toggles(sketch, read)
    assert (mark.kind, mark.checked, mark.lines) == ("radio", False, (1,))
    assert remove_toggle_glyphs(read, [mark]) == sketch.lines
    assert [part.kind for part in find_parts(sketch.pixels, sketch.lines)] == ["radio"]


def test_a_letter_before_a_text_is_no_radio_button() -> None:
    sketch = Sketch((300, 80))
    sketch.write(20, 38, "O", 16)
    sketch.write(46, 38, "Automatic", 16)
    assert look_for_toggles(sketch, sketch.lines) == []


@requirement("reader.toggles")
@pytest.mark.parametrize("glyph", ["i", "B", "?", "3"])
def test_a_glyph_in_a_box_or_ring_is_an_icon_and_no_toggle(glyph: str) -> None:
    sketch = Sketch((300, 120))
    for y, look in ((20, "empty box"), (70, "ring")):
        paste_shape(sketch, (20, y), (20, 20), look)
        sketch.pen.text((30, y + 10), glyph, "#202020", anchor="mm", font_size=14)
        sketch.write(50, y + 10, "Details")
    assert look_for_toggles(sketch, sketch.lines) == []


@requirement("reader.toggles")
def test_the_mark_of_a_list_is_no_radio_button() -> None:
    sketch = Sketch((400, 300))
    for y in (40, 90, 140):
        paste_shape(sketch, (20, y), (13, 13), "ring")
        sketch.write(50, y + 6, "List item", 28)
    assert look_for_toggles(sketch, sketch.lines) == []


@requirement("reader.toggles")
@pytest.mark.parametrize("place", [(20, 68), (20, 18), (300, 43)])
def test_the_text_of_a_switch_may_be_below_it_above_it_or_where_its_row_begins(place: tuple[int, int]) -> None:
    sketch = Sketch((500, 120))
    left = 20 if place[0] == 20 else 440
    paste_shape(sketch, (left, 30), (44, 24), "on")
    sketch.write(20 if left == 440 else place[0], place[1], "Weekly summary")
    (mark,) = look_for_toggles(sketch, sketch.lines)
    assert (mark.kind, mark.checked, mark.lines) == ("switch", True, (0,))


@requirement("reader.toggles")
@pytest.mark.parametrize("on", [True, False])
def test_a_knob_with_a_track_is_one_place_though_a_text_touches_it(*, on: bool) -> None:
    sketch = Sketch((300, 80))
    track = (30, 33, 74, 47)
    for at in range(70, 190):  # strokes that touch each other and the switch
        sketch.box((at, 36, at + 1, 46), ("#555555", "#888888")[at % 2])
    sketch.box(track, "#9fa8da" if on else "#cccccc")
    knob = 64 if on else 40
    sketch.pen.ellipse((knob - 10, 30, knob + 10, 50), "#3949ab" if on else "#f1f1f1")
    places = propose_toggles(segment_image(sketch.pixels))
    edges = (30, 30, 75, 51)
    assert any(max(abs(a - b) for a, b in zip(place, edges, strict=True)) <= 1 for place in places.tolist())


@requirement("reader.toggles")
def test_knobs_without_end_are_looked_at_in_bounded_time() -> None:
    pixels = np.full((1400, 1400, 3), 255, np.uint8)
    for y in range(0, 1400, 12):
        for x in range(0, 1400, 12):
            pixels[y : y + 10, x : x + 10] = (x % 251, y % 251, 90)
    start = process_time()
    propose_toggles(segment_image(pixels))
    assert process_time() - start < 5
