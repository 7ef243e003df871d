"""Complete readings of screens whose words and boxes are known."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sightline.model.geometry import Box, Size
from sightline.reader.describe import quote_line
from sightline.reader.examine import examine_image
from sightline.reader.reading import ImageReading, TextLine
from tests.reader.sketch import Sketch, bar_chart
from tests.reader.statements import describe_reading

SAMPLES = Path(__file__).parents[2] / "bench" / "samples"


def seen(name: str) -> ImageReading:
    """Return a kept screen with its words as its lines, in no order."""
    said: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text())
    lines = [TextLine(word["t"], _tight(word["t"], word["i"])) for word in said["words"]]
    random.Random(3).shuffle(lines)
    return examine_image(np.asarray(Image.open(SAMPLES / f"{name}.png").convert("RGB")), lines)


def _tight(text: str, edges: list[int]) -> Box:
    """Return the box of a word; text in a field has the box of the field."""
    left, top, right, bottom = edges
    return (
        Box(left + 13, top + 6, 7 * len(text), 12)
        if right - left == 504
        else Box(left, top, right - left, bottom - top)
    )


def test_every_bar_of_the_chart_has_its_value() -> None:
    (chart,) = seen("chart").charts
    told = {(mark.category, mark.series): mark.value for mark in chart.marks}
    names = ("NorthAmerica", "Europe", "AsiaPacific")
    values = {"Q1": (42, 31, 18), "Q2": (48, 29, 27), "Q3": (51, 38, 35), "Q4": (63, 44, 52)}
    assert told == {(quarter, name): v for quarter, row in values.items() for name, v in zip(names, row, strict=True)}
    assert chart.title == "Quarterlyrevenuebyregion,fiscalyear2025"
    assert chart.doubts == ""


def test_the_parts_of_the_dialog_are_found_in_place() -> None:
    dialog = seen("dialog")
    buttons = [part for part in dialog.parts if part.kind == "button"]
    assert [part.box for part in buttons] == [Box(450, 404, 100, 32), Box(560, 404, 104, 32), Box(676, 404, 104, 32)]
    texts = [" ".join(dialog.lines[place].text for place in part.lines) for part in buttons]
    assert texts == ["Try again", "Free up space", "Cancel"]
    assert [part.box for part in dialog.parts if part.kind == "bar"] == [Box(240, 150, 560, 34), Box(240, 390, 560, 60)]
    assert dialog.text.index("Manager") < dialog.text.index("destination") < dialog.text.index("Cancel")
    assert not dialog.photograph


def test_the_form_is_read_by_panel_with_its_fields_and_tick() -> None:
    form = seen("form")
    places = [form.text.index(text) for text in ("ParcelDesk", "GB294837106", "Postcode", "terms", "Business")]
    assert places == sorted(places)
    checks = [part for part in form.parts if part.kind == "check"]
    assert [(part.box, part.checked) for part in checks] == [(Box(112, 629, 13, 13), True)]
    fields = [part.box for part in form.parts if part.kind == "field"]
    assert fields == [Box(108, y, 504, 40) for y in (189, 262, 335, 408, 499, 572)]


def test_parts_and_tables_refer_to_reordered_lines() -> None:
    sketch = bar_chart()
    whole = examine_image(sketch.pixels, sketch.lines)
    assert whole.size == Size(640, 480)
    assert len(whole.charts) == 1
    assert whole.parts == ()
    assert whole.tables == ()
    assert whole.lines[0].text == "Orders by channel"
    assert all(line.ink is not None for line in whole.lines)


@pytest.mark.parametrize("size", [(1, 1), (1, 300), (300, 1), (40, 40)])
def test_the_smallest_images_are_examined(size: tuple[int, int]) -> None:
    blank = examine_image(np.zeros((size[1], size[0], 3), dtype=np.uint8), [])
    assert (blank.lines, blank.text, blank.charts) == ((), "", ())
    assert blank.colours == (((0, 0, 0), 1.0),)


def test_noise_is_only_a_picture() -> None:
    noise = np.random.default_rng(5).integers(0, 256, (300, 400, 3)).astype(np.uint8)
    whole = examine_image(noise, [TextLine("7", Box(10, 10, 8, 12))])
    assert whole.photograph
    assert (whole.parts, whole.charts, whole.tables) == ((), (), ())


def test_a_lost_minus_sign_is_restored_and_another_dash_is_not() -> None:
    sketch = Sketch()
    for y, dash, gap in ((60, 0, 0), (140, 16, 4), (220, 16, 20), (300, 60, 4)):
        sketch.write(200, y, "7", 48)
        left = sketch.lines[-1].box.x - gap
        if dash:
            sketch.box((left - dash, y, left, y + 4), "#202020")
    sketch.write(196, 380, "Seven", 48)
    told = examine_image(sketch.pixels, sketch.lines)
    assert [line.text for line in told.lines] == ["7", "-7", "7", "7", "Seven"]
    assert told.lines[1].box.x < sketch.lines[1].box.x - 16
    assert quote_line(told.lines[1]) in describe_reading(told, positions=True).text
    assert '"‹-›7"' in quote_line(told.lines[1])
