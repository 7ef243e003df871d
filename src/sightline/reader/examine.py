"""Build a `ImageReading` of an image from its pixels and its recognised lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sightline.model.geometry import Box, Size
from sightline.reader.charts.axes import restore_minus_signs
from sightline.reader.charts.find_charts import find_charts
from sightline.reader.colours import add_colours, find_dominant_colours, is_photograph
from sightline.reader.interface.parts import find_parts, parts_outside, renumber_lines
from sightline.reader.interface.toggles import find_toggles, remove_toggle_glyphs
from sightline.reader.layout.page_text import lay_out_text, order_lines
from sightline.reader.layout.tables import fill_cell_grid, find_cell_grids, find_tables
from sightline.reader.ocr.line_image import ink_columns, ink_mask
from sightline.reader.reading import Barcode, ImageReading, InterfacePart, TextLine
from sightline.reader.rectangles import is_inside, rotate_box
from sightline.reader.regions import Pixels, find_regions

_SEARCHED = 16_000_000  # pixels searched for barcodes; of a larger image only every second, third, ... pixel
_CORNERS = ("top_left", "top_right", "bottom_right", "bottom_left")
_EDGE = 4  # pixels: the border of a field
_MARKS = 3  # dots of a password, at least
_CONTAINERS = ("panel", "bar", "field")  # parts whose text is read as one


def examine_image(
    pixels: Pixels, lines: Sequence[TextLine], codes: Sequence[Barcode] = (), turned: int = 0
) -> ImageReading:
    """Read everything else in an image whose lines are known: colours, parts, charts, tables, one text.

    `lines` may be in any order. An image that must be rotated to be read gets its places as they are after that.
    """
    size = Size(pixels.shape[1], pixels.shape[0])
    upright = [replace(line, box=rotate_box(line.box, size, turned)) for line in lines]
    marked = [replace(code, box=rotate_box(code.box, size, turned)) for code in codes]
    return replace(_examine_upright(rotate_pixels(pixels, turned), upright, marked), turned=turned)


def rotate_pixels(pixels: Pixels, degrees: int) -> Pixels:
    """Return the image rotated clockwise by quarter turns."""
    return np.ascontiguousarray(np.rot90(pixels, -(degrees // 90))) if degrees else pixels


def _examine_upright(pixels: Pixels, lines: Sequence[TextLine], codes: Sequence[Barcode]) -> ImageReading:
    size = Size(pixels.shape[1], pixels.shape[0])
    photograph = is_photograph(pixels)
    inked = add_colours(pixels, lines if photograph else remove_toggle_glyphs(lines, find_toggles(pixels, lines)))
    known = () if photograph else find_regions(pixels)
    drawn = find_charts(pixels, inked, known)
    inked = restore_minus_signs(pixels, inked, [chart.box for chart in drawn])
    shapes = () if photograph else parts_outside(find_parts(pixels, inked, known), [chart.box for chart in drawn])
    ruling = find_cell_grids(shapes)
    cells = {at for lattice in ruling for at in lattice.cells}
    shapes = tuple(part for at, part in enumerate(shapes) if at not in cells)
    homes = [part.box for part in shapes if part.kind in _CONTAINERS]
    plots = [*(chart.box for chart in drawn), *(lattice.box for lattice in ruling)]
    places = order_lines(inked, homes, plots)
    read = tuple(inked[place] for place in places)
    where = {old: new for new, old in enumerate(places)}
    charted = frozenset(place for place, line in enumerate(read) if any(is_inside(line.box, plot) for plot in plots))
    gridded = [table for lattice in ruling if (table := fill_cell_grid(lattice, read))]
    rows = tuple(sorted((*find_tables(read, homes, charted), *gridded), key=lambda table: (table.box.y, table.box.x)))
    return ImageReading(
        size,
        read,
        lay_out_text(read, rows, [chart.box for chart in drawn]),
        tuple(renumber_lines(part, where) for part in shapes),
        rows,
        drawn,
        tuple(codes),
        find_dominant_colours(pixels),
        photograph,
        marked=tuple(
            part.box for part in shapes if part.kind == "field" and not part.lines and _has_marks(pixels, part)
        ),
    )


def _has_marks(pixels: Pixels, part: InterfacePart) -> bool:
    """Return whether several marks are in a row in a field: a caret or an arrow is only one."""
    box = part.box
    inner = pixels[box.y + _EDGE : box.bottom - _EDGE, box.x + _EDGE : box.right - _EDGE]
    if not inner.size:
        return False
    return len(ink_columns(ink_mask(inner), 0, len(inner))) >= _MARKS


def read_barcodes(pixels: Pixels) -> tuple[Barcode, ...]:
    """Return the barcodes of an image, or none where the library for them is missing."""
    try:
        import zxingcpp
    except ImportError:
        return ()
    height, width = pixels.shape[:2]
    step = math.ceil(math.sqrt(height * width / _SEARCHED))
    seen = np.ascontiguousarray(pixels[::step, ::step])
    found = []
    for each in zxingcpp.read_barcodes(seen):  # it expects BGR, which makes no difference to a barcode
        corners = [getattr(each.position, corner) for corner in _CORNERS]
        xs = sorted(min(width, max(0, corner.x * step)) for corner in corners)
        ys = sorted(min(height, max(0, corner.y * step)) for corner in corners)
        box = Box(xs[0], ys[0], max(1, xs[-1] - xs[0]), max(1, ys[-1] - ys[0]))
        found.append(Barcode(str(each.format), each.text, box))
    return tuple(sorted(found, key=lambda code: (code.box.y, code.box.x)))
