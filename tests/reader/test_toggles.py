"""Check boxes, radio buttons and switches, by their shape and at any scale."""

from __future__ import annotations

from time import process_time

import numpy as np
import pytest
from PIL import Image, ImageDraw

from sightline.model.geometry import Box
from sightline.reader.control_features import list_boxes, list_lines
from sightline.reader.examine import examine_image
from sightline.reader.interface_parts import find_parts
from sightline.reader.reading import TOGGLES, InterfacePart, TextLine
from sightline.reader.regions import segment_image
from sightline.reader.toggle_features import find_letters, measure_asymmetry, propose_toggles
from sightline.reader.toggles import Limits, find_toggles, remove_toggle_glyphs
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
        ("on", "switch", True),
        ("off", "switch", False),
    ],
)
def test_a_toggle_is_read_at_the_scale_of_its_screen(
    look: str, kind: str, checked: bool | None, ground: str, scale: int
) -> None:
    sketch = Sketch((400 * scale, 130 * scale), ground, "#888888")
    size = (28 * scale, 16 * scale) if kind == "switch" else (16 * scale, 16 * scale)
    looks = ["ring with a dot", look] if kind == "radio" else [look]  # radio buttons come in groups
    for at, each in enumerate(looks):
        paste_shape(sketch, (20 * scale, (30 + 40 * at) * scale), size, each)
        sketch.write(60 * scale, (38 + 40 * at) * scale, ("Send a copy", "Keep a log")[at], 14 * scale)
    found = look_for_toggles(sketch, sketch.lines)
    assert [(part.kind, part.lines) for part in found] == [(kind, (at,)) for at in range(len(looks))]
    assert found[-1].checked == checked
    assert all(abs(part.box.x - 20 * scale) <= 1 and abs(part.box.width - size[0]) <= 2 for part in found)


@requirement("reader.toggles")
@pytest.mark.parametrize("scale", [1, 2])
@pytest.mark.parametrize(("look", "kind"), [("pale ticked box", "check"), ("pale ring with a dot", "radio")])
def test_a_pale_mark_is_read_on_a_light_page_and_never_misread_on_a_dark_one(look: str, kind: str, scale: int) -> None:
    for ground, known in (("#ffffff", [(kind, True)] * 2), ("#1f2430", [])):
        sketch = Sketch((400 * scale, 130 * scale), ground, "#888888")
        for at, text in enumerate(("Send a copy", "Keep a log")):
            paste_shape(sketch, (20 * scale, (30 + 40 * at) * scale), (16 * scale, 16 * scale), look)
            sketch.write(60 * scale, (38 + 40 * at) * scale, text, 14 * scale)
        found = [(part.kind, part.checked) for part in look_for_toggles(sketch, sketch.lines)]
        assert found in (known, [(kind, True)] * 2)


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
def test_a_doubtful_radio_button_counts_in_line_with_a_sure_one_of_its_size() -> None:
    sketch = draw_pair("ring")
    segments, high = segment_image(sketch.pixels), dict.fromkeys(TOGGLES, 1.01)
    assert find_toggles(sketch.pixels, sketch.lines, segments, (high, high, high)) == []
    paste_shape(sketch, (60, 120), (16, 16), "ring with a dot")
    sketch.write(100, 128, "Round corners", 14)
    sure = {**high, "radio": 0.99}  # the one with a dot is
    found = find_toggles(sketch.pixels, sketch.lines, segment_image(sketch.pixels), (sure, high, high))
    assert [(part.kind, part.checked) for part in found] == [("radio", False), ("radio", False), ("radio", True)]


@requirement("reader.toggles")
def test_a_row_of_switches_without_texts_must_be_surer() -> None:
    sketch = Sketch((300, 200))
    for y in (30, 60, 90):
        paste_shape(sketch, (20, y), (28, 16), "on")
    segments, low, high = segment_image(sketch.pixels), dict.fromkeys(TOGGLES, 0.6), dict.fromkeys(TOGGLES, 1.01)
    assert find_toggles(sketch.pixels, [], segments, (low, high, high)) == []
    assert len(find_toggles(sketch.pixels, [], segments, (low, low, high))) == 3


@requirement("reader.toggles")
@pytest.mark.parametrize("look", ["swatch", "disc"])
def test_a_patch_of_colour_is_no_toggle(look: str) -> None:
    sketch = Sketch((300, 80))
    paste_shape(sketch, (20, 30), (16, 16), look)
    sketch.write(46, 38, "Online")
    assert look_for_toggles(sketch, sketch.lines) == []


@requirement("reader.toggles")
@pytest.mark.parametrize("is_sheet", [False, True])
def test_a_box_with_the_edges_of_another_one_behind_it_is_an_icon(*, is_sheet: bool) -> None:
    sketch = Sketch((300, 80))
    paste_shape(sketch, (24, 30), (16, 16), "ticked box")
    sketch.write(56, 38, "Send a copy", 14)
    if is_sheet:
        ImageDraw.Draw(sketch.image).line([(21, 33), (21, 49), (37, 49)], "#0d6efd", 2)
    low = dict.fromkeys(TOGGLES, 0.1)
    found = find_toggles(sketch.pixels, sketch.lines, segment_image(sketch.pixels), (low, low, low))
    assert [part.kind for part in found] == ([] if is_sheet else ["check"])


@requirement("reader.toggles")
def test_the_tick_of_a_check_box_is_no_text_that_was_not_read() -> None:
    sketch = draw_pair("ticked box")
    tick, other = Box(62, 44, 14, 8), Box(300, 44, 14, 8)
    reading = examine_image(sketch.pixels, sketch.lines, unread=[tick, other])
    assert [part.kind for part in reading.parts if part.kind in TOGGLES] == ["check", "check"]
    assert reading.unread == (other,)


@requirement("reader.toggles")
def test_a_shape_without_a_text_or_others_like_it_is_not_reported() -> None:
    sketch = Sketch((300, 200))
    paste_shape(sketch, (20, 30), (16, 16), "empty box")
    assert look_for_toggles(sketch, []) == []
    for y in (60, 90, 120):
        paste_shape(sketch, (20, y), (16, 16), "empty box")
    assert [part.box.y for part in look_for_toggles(sketch, [])] == [30, 60, 90, 120]


def draw_pair(look: str) -> Sketch:
    """Return a picture of two toggles in a column, each before a text."""
    sketch = Sketch((400, 300))
    for y, text in ((40, "Send a copy"), (80, "Keep a log")):
        paste_shape(sketch, (60, y), (28 if look in ("on", "off") else 16, 16), look)
        sketch.write(100, y + 8, text, 14)
    return sketch


@requirement("reader.toggles")
@pytest.mark.parametrize("look", ["ticked box", "ring with a dot", "on"])
def test_something_against_a_toggle_asks_for_a_higher_score_and_more_for_an_even_higher_one(look: str) -> None:
    sketch = draw_pair(look)
    segments = segment_image(sketch.pixels)
    low, high = dict.fromkeys(TOGGLES, 0.6), dict.fromkeys(TOGGLES, 1.01)

    def count(lines: list[TextLine], limits: Limits) -> int:
        return len(find_toggles(sketch.pixels, lines, segments, limits))

    assert count(sketch.lines, (low, high, high)) == 2
    assert count([], (low, high, high)) == 0  # neither has a text
    assert count([], (low, low, high)) == 2
    alone = sketch.pixels.copy()
    alone[75:] = 255
    assert find_toggles(alone, sketch.lines[:1], segment_image(alone), (low, high, high)) == []
    assert len(find_toggles(alone, sketch.lines[:1], segment_image(alone), (low, low, high))) == 1
    assert find_toggles(alone, [], segment_image(alone), (low, low, high)) == []  # alone, and without a text


@requirement("reader.toggles")
@pytest.mark.parametrize("against", ["a line across it", "the edge of the picture", "a large text", "icons"])
def test_what_speaks_against_a_toggle(against: str) -> None:
    sketch = draw_pair("ticked box")
    pixels, lines = sketch.pixels, sketch.lines
    match against:
        case "a line across it":
            lines = [
                TextLine("Copies? Send a copy", Box(4, 38, 200, 20)),
                TextLine("Logs? Keep a log", Box(4, 78, 200, 20)),
            ]
        case "the edge of the picture":
            pixels, lines = pixels[:, 60:], [TextLine(each.text, Box(40, each.box.y, 80, 14)) for each in lines]
        case "a large text":
            lines = [TextLine(each.text, Box(100, each.box.y - 14, 250, 40)) for each in lines]
        case "icons":
            for x, y in ((55, 118), (55, 158), (55, 198)):
                sketch.pen.polygon([(x + 5, y + 14), (x + 12, y), (x + 20, y + 14)], "#202020")
            pixels = sketch.pixels
    low, high = dict.fromkeys(TOGGLES, 0.6), dict.fromkeys(TOGGLES, 1.01)
    segments = segment_image(pixels)
    assert find_toggles(pixels, lines, segments, (low, high, high)) == []
    assert [part.kind for part in find_toggles(pixels, lines, segments, (low, low, high))] == ["check", "check"]


def test_a_shape_differs_from_itself_turned_or_upside_down_unless_it_is_even() -> None:
    rows, columns = np.mgrid[:20, :20] - 9.5
    ring = np.abs(np.hypot(rows, columns) - 7) < 1.5
    drop = ring | ((rows < 0) & (np.abs(columns) < 3))
    bar = np.abs(rows) < 4
    small = np.stack([ring, drop, bar]).astype(np.float32)[..., None]
    turned, mirrored = measure_asymmetry(small)
    assert turned[0] == mirrored[0] == 0
    assert min(turned[1], mirrored[1]) > 0.1
    assert (turned[2] > 0.3, mirrored[2]) == (True, 0)


def test_the_knob_of_a_likely_switch_is_no_radio_button() -> None:
    sketch = draw_pair("off")
    found = find_toggles(sketch.pixels, sketch.lines, segment_image(sketch.pixels), [dict.fromkeys(TOGGLES, 0.01)] * 3)
    assert {part.kind for part in found} == {"switch"}


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
def test_a_toggle_between_two_texts_of_a_line_is_told_from_letters_by_its_size() -> None:
    page = list_lines([TextLine("Copies Send a copy", Box(10, 40, 200, 20))])
    boxes = list_boxes(
        [Box(11, 42, 16, 16), Box(90, 42, 16, 16), Box(90, 44, 12, 12), Box(90, 42, 8, 16), Box(90, 90, 16, 16)]
    )
    in_text, letters = find_letters(boxes, page)
    assert in_text.tolist() == [False, True, True, True, False]
    assert letters.tolist() == [False, False, True, True, False]


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
