"""Siblings of an item are in its panel, and it is compared with those of them that look alike."""

from __future__ import annotations

import tracemalloc

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours
from sightline.reader.control_features import Floats, list_boxes, list_lines
from sightline.reader.examine import examine_image
from sightline.reader.item_features import measure_items
from sightline.reader.item_siblings import find_siblings
from sightline.reader.reading import TextLine
from sightline.reader.states import MOST_LINES
from tests.reader.sketch import Sketch
from tests.requirements import requirement


def list_column_siblings(sketch: Sketch, holders: list[Box], name: str) -> set[str]:
    """Return the texts of the siblings of an item in its column."""
    lines = add_colours(sketch.pixels, sketch.lines)
    column, _ = find_siblings(sketch.pixels, list_lines(lines), list_boxes(holders))
    at = [line.text for line in lines].index(name)
    return {lines[mate].text for mate, known in zip(column.at[at], column.known[at], strict=True) if known}


def draw_nested_menu() -> Sketch:
    """Draw a menu, with the items of one of its items in a panel of their own."""
    sketch = Sketch((400, 420), "#3b5bdb", "#dbe4ff")
    sketch.box((20, 130, 220, 270), "#ffffff")
    for at, name in enumerate(("Home", "Parts", "Alerts", "Cards", "Badges", "Charts", "Tables")):
        inner = 2 <= at <= 4
        sketch.write(40, 50 + 50 * at, name, 14, "#212529" if inner else "#ffffff" if name == "Parts" else "")
    return sketch


@requirement("reader.states")
def test_items_of_a_panel_in_a_menu_are_no_siblings_of_the_items_around_it() -> None:
    sketch = draw_nested_menu()
    panels = [Box(0, 0, 400, 420), Box(20, 130, 200, 140)]
    assert list_column_siblings(sketch, panels, "Cards") == {"Alerts", "Badges"}
    assert list_column_siblings(sketch, panels, "Parts") == {"Home", "Charts", "Tables"}


@requirement("reader.states")
def test_a_selected_item_that_cuts_a_menu_in_two_has_siblings_in_both_parts() -> None:
    sketch = Sketch((400, 420), "#f8f9fa", "#212529")
    sketch.box((0, 0, 240, 420), "#343a40")
    sketch.box((0, 180, 240, 220), "#0d6efd")
    names = ("Home", "Orders", "Users", "Reports", "Plans", "Help", "About")
    for at, name in enumerate(names):
        sketch.write(30, 50 + 50 * at, name, 14, "#ffffff")
    panels = [Box(0, 0, 240, 180), Box(0, 180, 240, 40), Box(0, 220, 240, 200)]
    assert list_column_siblings(sketch, panels, "Reports") == set(names) - {"Reports"}


@requirement("reader.states")
def test_a_bold_item_of_a_menu_in_a_gradient_is_perhaps_selected() -> None:
    sketch = Sketch((640, 420), "#ffffff", "#d5dcf7")
    for y in range(420):
        sketch.box((0, y, 240, y + 1), f"#{78 - y // 14:02x}{115 - y // 10:02x}{223 - y // 14:02x}")
    for at, name in enumerate(("Dashboard", "Orders", "Users", "Reports", "Charts", "Tables", "Settings")):
        for shift in (0, 1) if name == "Reports" else (0,):  # drawn twice, its strokes are thicker
            sketch.write(40 + shift, 40 + 50 * at, name, 15, "#ffffff" if name == "Reports" else "")
    del sketch.lines[4]
    states = examine_image(sketch.pixels, sketch.lines).states
    assert [state.box for state in states if state.kind == "selected"] == [sketch.lines[3].box]


def test_as_many_lines_as_are_compared_take_little_memory() -> None:
    pixels = np.full((1200, 1600, 3), 255, np.uint8)
    lines = [TextLine("item", Box(20 + 190 * (at % 8), 5 + 11 * (at // 8), 40, 9)) for at in range(MOST_LINES)]
    page = list_lines(add_colours(pixels, lines))
    tracemalloc.start()
    rows: Floats = measure_items(pixels, page, list_boxes([]), [], range(len(lines)))[0]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert rows.shape[:2] == (2, MOST_LINES)
    assert np.isfinite(rows).all()
    assert most < 250_000_000
