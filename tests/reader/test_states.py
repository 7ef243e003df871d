"""What is selected or disabled, by contrast with its siblings."""

from __future__ import annotations

import tracemalloc

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.control_features import list_lines
from sightline.reader.describe import find_controls, list_findings
from sightline.reader.examine import examine_image
from sightline.reader.paleness import measure_paleness
from sightline.reader.reading import InterfacePart, TextLine
from sightline.reader.rectangles import enclose_boxes
from sightline.reader.states import MOST_LINES
from tests.reader.sketch import Sketch
from tests.reader.test_toggles import paste_shape
from tests.requirements import requirement


def draw_menu(selected: int | None) -> Sketch:
    sketch = Sketch((400, 300), "#f96332", "#ffffff")
    for at, name in enumerate(("Dashboard", "Icons", "Maps", "Tables")):
        if at == selected:
            sketch.box((10, 30 + 50 * at, 220, 70 + 50 * at), "#ffffff")
        sketch.write(40, 50 + 50 * at, name, 13, "#f96332" if at == selected else "#ffffff")
    return sketch


@requirement("reader.states")
def test_a_menu_item_on_another_background_is_perhaps_selected() -> None:
    sketch = draw_menu(2)
    reading = examine_image(sketch.pixels, sketch.lines)
    assert [(state.kind, state.box) for state in reading.states] == [("selected", sketch.lines[2].box)]
    assert '"Maps"' in list_findings(reading)


@requirement("reader.states")
def test_a_menu_item_is_selected_beside_more_lines_than_can_be_cut_into_items() -> None:
    """In pieces they would be too many to compare, so each line is taken as one item."""
    sketch = Sketch((900, 200 + 14 * MOST_LINES // 2), "#ffffff", "#212529")
    for at, name in enumerate(("Overview", "Orders", "Customers", "Reports", "Settings", "Help")):
        if at == 2:
            sketch.box((0, 40 + 36 * at, 200, 76 + 36 * at), "#0d6efd")
        sketch.write(20, 58 + 36 * at, name, 15, "#ffffff" if at == 2 else "")
    for at in range(MOST_LINES // 2 + 10):
        sketch.write(400, 20 + 14 * at, "ab", 11)
        sketch.write(425 + 7 * at % 23, 20 + 14 * at, "cd", 11)
        box = enclose_boxes(line.box for line in sketch.lines[-2:])
        sketch.lines[-2:] = [TextLine("ab cd", box)]
    states = examine_image(sketch.pixels, sketch.lines).states
    assert [state.box for state in states] == [sketch.lines[2].box]


@requirement("reader.states")
def test_an_item_and_the_one_around_it_are_perhaps_selected() -> None:
    sketch = Sketch((400, 420), "#343a40", "#c2c7d0")
    backs = {"Forms": "#007bff", "Editors": "#ececec"}
    for at, name in enumerate(("Dashboard", "Widgets", "Forms", "General", "Editors", "Tables", "Calendar")):
        if name in backs:
            sketch.box((10, 14 + 50 * at, 220, 54 + 50 * at), backs[name], radius=4)
        sketch.write(40, 34 + 50 * at, name, 15, {"Forms": "#ffffff", "Editors": "#16181b"}.get(name, ""))
    states = examine_image(sketch.pixels, sketch.lines).states
    assert [state.box.y // 50 for state in states if state.kind == "selected"] == [2, 4]


@requirement("reader.states")
def test_pale_text_in_a_box_beside_a_menu_is_not_selected() -> None:
    sketch = Sketch((700, 100), "#0d4f8b", "#ffffff")
    for at, name in enumerate(("Home", "Guide", "Examples")):
        sketch.write(40 + 110 * at, 50, name, 15)
    sketch.box((370, 30, 560, 70), "#ffffff")
    sketch.write(384, 50, "Enter keywords", 15, "#a0a0a0")
    assert examine_image(sketch.pixels, sketch.lines).states == ()


@requirement("reader.states")
def test_no_item_of_an_even_menu_is_selected() -> None:
    sketch = draw_menu(None)
    assert examine_image(sketch.pixels, sketch.lines).states == ()


@requirement("reader.states")
def test_a_toggle_with_a_paler_text_is_perhaps_disabled() -> None:
    sketch = Sketch((300, 200))
    for at, ink in enumerate(("#202020", "#202020", "#aaaaaa")):
        paste_shape(sketch, (20, 30 + 40 * at), (16, 16), "empty box")
        sketch.write(46, 38 + 40 * at, f"Option {'abc'[at]}", ink=ink)
    reading = examine_image(sketch.pixels, sketch.lines)
    assert [(state.kind, state.box.y) for state in reading.states] == [("disabled", 110)]
    first, _, last = (each.sentence for each in find_controls(reading))
    assert len(last) > len(first)


@requirement("reader.states")
def test_a_toggle_that_is_paler_than_others_in_its_state_is_perhaps_disabled() -> None:
    sketch = Sketch((300, 200))
    for at, look in enumerate(("ticked box", "ticked box", "pale ticked box", "empty box")):
        paste_shape(sketch, (20, 20 + 40 * at), (16, 16), look)
        sketch.write(46, 28 + 40 * at, f"Option {'abcd'[at]}")
    reading = examine_image(sketch.pixels, sketch.lines)
    assert [part.checked for part in reading.parts] == [True, True, True, False]
    assert [(state.kind, state.box.y) for state in reading.states] == [("disabled", 100)]


@requirement("reader.states")
def test_paler_texts_of_another_kind_of_toggle_are_not_disabled() -> None:
    sketch = Sketch((500, 200))
    for at in range(3):
        paste_shape(sketch, (20, 20 + 40 * at), (16, 16), "empty box")
        sketch.write(46, 28 + 40 * at, f"Option {'abc'[at]}", ink="#606266")
        paste_shape(sketch, (250, 20 + 40 * at), (28, 16), "on")
        sketch.write(290, 28 + 40 * at, f"Choice {'abc'[at]}", ink="#000000")
    assert examine_image(sketch.pixels, sketch.lines).states == ()


@requirement("reader.states")
def test_a_tab_in_another_ink_with_a_line_below_it_is_perhaps_selected() -> None:
    sketch = Sketch((500, 200))
    for at, name in enumerate(("Music", "Playlists", "Radio")):
        sketch.write(40 + 120 * at, 60, name, ink="#3070d0" if at == 1 else "")
    sketch.box((150, 78, 226, 81), "#3070d0")
    reading = examine_image(sketch.pixels, sketch.lines)
    assert [(state.kind, state.box) for state in reading.states] == [("selected", sketch.lines[1].box)]


@requirement("reader.states")
def test_a_button_in_another_colour_is_not_selected() -> None:
    sketch = Sketch((500, 200))
    for at, (name, colour) in enumerate((("Cancel", "#dddddd"), ("Apply", "#dddddd"), ("Save all", "#3070d0"))):
        sketch.box((40 + 120 * at, 40, 140 + 120 * at, 76), colour, radius=5)
        sketch.write(90 + 120 * at, 58, name, 14, anchor="mm")
    assert examine_image(sketch.pixels, sketch.lines).states == ()


@requirement("reader.states")
def test_the_page_in_another_colour_is_perhaps_selected() -> None:
    sketch = Sketch((500, 120))
    for at, name in enumerate(("Previous", "1", "2", "3", "4", "Next")):
        left = 30 + (0 if at == 0 else 70 + 40 * at)
        sketch.box((left, 40, left + (90 if len(name) > 1 else 36), 72), "#0d6efd" if name == "2" else "#ffffff")
        ink = "#ffffff" if name == "2" else "#0d6efd"
        sketch.write(left + (45 if len(name) > 1 else 18), 56, name, 14, ink, anchor="mm")
    states = examine_image(sketch.pixels, sketch.lines).states
    assert [state.box for state in states if state.kind == "selected"] == [sketch.lines[2].box]


@requirement("reader.states")
def test_every_cell_of_a_row_on_another_background_is_perhaps_selected() -> None:
    sketch = Sketch((620, 360))
    for row in range(8):
        top = 20 + 40 * row
        if row == 4:
            sketch.box((20, top, 600, top + 40), "#b7dcfb")
        sketch.box((20, top + 39, 600, top + 40), "#dddddd")
        for at, name in enumerate((f"Item {row + 1}", f"{17 * (row + 3)}.5", ("Open", "Closed")[row % 2])):
            sketch.write(40 + 190 * at, top + 20, name, 14)
    states = examine_image(sketch.pixels, sketch.lines).states
    assert {(state.box.y - 20) // 40 for state in states if state.kind == "selected"} == {4}
    assert len(states) == 3


@requirement("reader.states")
def test_badges_in_several_colours_are_not_selected() -> None:
    sketch = Sketch((620, 320))
    for row, name in enumerate(("Paid", "Paid", "Failed", "Paid", "Paid")):
        top, colour = 20 + 44 * row, "#16a34a" if name == "Paid" else "#dc2626"
        sketch.write(40, top + 20, f"Order {row + 11}", 14)
        sketch.box((230, top + 8, 290, top + 32), colour, radius=10)
        sketch.write(260, top + 20, name, 12, "#ffffff", anchor="mm")
        sketch.write(400, top + 20, f"{31 * (row + 2)}.00", 14)
    assert [state for state in examine_image(sketch.pixels, sketch.lines).states if state.kind == "selected"] == []


def test_thousands_of_controls_are_compared_within_a_bound() -> None:
    pixels = np.full((800, 1200, 3), 255, np.uint8)
    places = [Box(10 + 14 * (at % 80), 10 + 14 * (at // 80), 10, 10) for at in range(4000)]
    parts = [InterfacePart("check", box, (0, 0, 0), (), False) for box in places]
    tracemalloc.start()
    rows = measure_paleness(pixels, parts, list_lines([]))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rows) == 4000
    assert most < 300_000_000
