"""Lines as the labels of a chart."""

from __future__ import annotations

from sightline.model.geometry import Box
from sightline.reader.charts.axes import read_labels
from sightline.reader.reading import TextLine
from tests.reader.sketch import BLUE, Sketch


def test_numbers_read_as_one_line_are_split_into_labels() -> None:
    sketch = Sketch()
    for place, text in enumerate(("0", "$500", "$1,000")):
        sketch.write(40 + place * 80, 100, text, 14)
    first, last = sketch.lines[0].box, sketch.lines[-1].box
    line = TextLine("0 $500 $1,000", Box(first.x, first.y, last.right - first.x, last.height + 2))
    found = read_labels(sketch.pixels, [line])
    assert [text.number for text in found] == [0, 500, 1000]
    assert all(abs(text.box.x - true.box.x) <= 2 for text, true in zip(found, sketch.lines, strict=True))
    assert {text.place for text in found} == {0}


def test_a_number_with_spaced_thousands_stays_one_label() -> None:
    sketch = Sketch()
    sketch.write(40, 100, "1 000", 14)
    (only,) = read_labels(sketch.pixels, sketch.lines)
    assert only.number == 1000


def test_a_swatch_read_as_a_letter_is_removed_from_its_label() -> None:
    sketch = Sketch()
    sketch.box((40, 94, 52, 106), BLUE)
    sketch.write(62, 100, "Online", 14)
    name = sketch.lines[0].box
    (only,) = read_labels(sketch.pixels, [TextLine("■ Online", Box(40, name.y, name.right - 40, name.height))])
    assert only.text == "Online"
    assert abs(only.box.x - name.x) <= 2


def test_an_axis_tick_read_as_a_dash_is_removed() -> None:
    (only,) = read_labels(Sketch().pixels, [TextLine("Vienna-", Box(10, 10, 50, 12))])
    assert only.text == "Vienna"


def test_an_axis_tick_after_a_number_is_removed() -> None:
    sketch = Sketch()
    sketch.write(40, 100, "200k", 14)
    number = sketch.lines[0].box
    sketch.box((number.right + 4, 100, number.right + 12, 101), "#202020")
    for text in ("200k", "200k -", "200k-"):
        (only,) = read_labels(
            sketch.pixels, [TextLine(text, Box(number.x, number.y, number.width + 12, number.height))]
        )
        assert only.number == 200_000
        assert abs(only.box.right - number.right) <= 2


def test_numbers_read_without_their_spaces_are_split_into_labels() -> None:
    sketch = Sketch()
    for place in range(3):
        sketch.write(60 + place * 56, 100, f"{place + 1}0000%", 14)
    first, last = sketch.lines[0].box, sketch.lines[-1].box
    line = TextLine("10000%20000%30000%", Box(first.x, first.y, last.right - first.x, last.height))
    found = read_labels(sketch.pixels, [line])
    assert [text.number for text in found] == [10_000, 20_000, 30_000]
    middles = [
        (text.middle[0], true.box.x + true.box.width / 2) for text, true in zip(found, sketch.lines, strict=True)
    ]
    assert all(abs(one - other) <= 3 for one, other in middles)


def test_names_read_as_one_line_are_split_into_labels() -> None:
    sketch = Sketch()
    sketch.write(40, 100, "New York", 14)
    sketch.write(140, 100, "Oslo", 14)
    first, last = sketch.lines[0].box, sketch.lines[-1].box
    found = read_labels(
        sketch.pixels, [TextLine("New York Oslo", Box(first.x, first.y, last.right - first.x, first.height + 2))]
    )
    assert [text.text for text in found] == ["New York", "Oslo"]
    assert all(abs(text.box.x - true.box.x) <= 2 for text, true in zip(found, sketch.lines, strict=True))
