"""Lines that hold several items are cut where items are selected or not; texts aren't."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours
from sightline.reader.item_pieces import LONGEST_ROW, cut_items
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import enclose_boxes
from tests.reader.sketch import Sketch
from tests.requirements import requirement


def join_lines(sketch: Sketch) -> TextLine:
    """Return all lines of a sketch as one."""
    text = " ".join(line.text for line in sketch.lines)
    return TextLine(text, enclose_boxes(line.box for line in sketch.lines))


def cut_sketch(sketch: Sketch, line: TextLine) -> list[tuple[str, Box]]:
    pieces, places = cut_items(sketch.pixels, add_colours(sketch.pixels, [line]))
    assert places == [0] * len(pieces)
    return [(piece.text, piece.box) for piece in pieces]


@requirement("reader.states")
def test_items_that_were_read_as_one_line_are_cut_where_they_are_apart() -> None:
    sketch = Sketch((700, 60), "#ffffff", "#111111")
    for at, name in enumerate(("Getting started", "Guide", "Examples")):
        sketch.write(20 + 170 * at, 30, name, 15)
    found = cut_sketch(sketch, join_lines(sketch))
    assert [text for text, _ in found] == ["Getting started", "Guide", "Examples"]
    assert all(abs(box.x - line.box.x) <= 2 for (_, box), line in zip(found, sketch.lines, strict=True))


@requirement("reader.states")
def test_the_words_of_a_text_are_not_cut() -> None:
    sketch = Sketch((700, 60), "#ffffff", "#111111")
    sketch.write(20, 30, "Read the guide before you change something", 15)
    assert cut_sketch(sketch, sketch.lines[0]) == [(sketch.lines[0].text, sketch.lines[0].box)]


@requirement("reader.states")
def test_a_long_line_or_one_without_colours_is_not_cut() -> None:
    sketch = Sketch((700, 60), "#ffffff", "#111111")
    for at in range(3):
        sketch.write(20 + 170 * at, 30, "Guide", 15)
    line = join_lines(sketch)
    assert len(cut_items(sketch.pixels, [line])[0]) == 1
    long = replace(line, text=" ".join(["Guide"] * LONGEST_ROW))
    assert len(cut_sketch(sketch, long)) == 1


@requirement("reader.states")
def test_letters_that_may_be_wrong_are_marked_in_the_piece_that_has_them() -> None:
    sketch = Sketch((700, 60), "#ffffff", "#111111")
    for at, name in enumerate(("Getting started", "Guide", "Examples")):
        sketch.write(20 + 170 * at, 30, name, 15)
    line = replace(join_lines(sketch), doubtful=(0, 16, 20, 22))
    pieces, _ = cut_items(sketch.pixels, add_colours(sketch.pixels, [line]))
    assert [piece.marked_text for piece in pieces] == ["‹G›etting started", "‹G›uid‹e›", "‹E›xamples"]


def test_a_line_that_begins_outside_the_image_is_cut_where_its_ink_is() -> None:
    sketch = Sketch((700, 60), "#ffffff", "#111111")
    for at, name in enumerate(("Guide", "Examples")):
        sketch.write(20 + 170 * at, 30, name, 15)
    line = join_lines(sketch)
    beyond = replace(line, box=Box(-9, line.box.y, line.box.right + 9, line.box.height))
    assert [box.x for _, box in cut_sketch(sketch, beyond)] == [box.x for _, box in cut_sketch(sketch, line)]


@requirement("reader.states")
def test_a_line_is_not_cut_where_a_stroke_below_words_hides_the_blank_between_them() -> None:
    sketch = Sketch((700, 60), "#ffffff", "#111111")
    for x, word in ((20, "File"), (190, "Edit"), (224, "View")):
        sketch.write(x, 30, word, 15)
    sketch.box((190, 37, 260, 39), "#111111")
    line = join_lines(sketch)
    assert [text for text, _ in cut_sketch(sketch, line)] == ["File", "Edit View"]
    around = replace(line, box=Box(line.box.x, line.box.y, line.box.width, 15))
    assert [text for text, _ in cut_sketch(sketch, around)] == ["File Edit View"]
