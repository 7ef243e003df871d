"""All that can be seen in an image once its lines have been read: colours, parts, charts, tables, one text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sightline.model.geometry import Size
from sightline.seers.local.boxes import inside
from sightline.seers.local.charts import charts
from sightline.seers.local.colours import coloured, dominant, is_photograph
from sightline.seers.local.ink import mask_of, strokes
from sightline.seers.local.labels import signed
from sightline.seers.local.lattice import lattices, ruled
from sightline.seers.local.layout import laid_out
from sightline.seers.local.order import order
from sightline.seers.local.parts import moved, outside, parts
from sightline.seers.local.regions import Pixels, regions
from sightline.seers.local.seen import Code, Line, Part, Seen
from sightline.seers.local.tabled import tables
from sightline.seers.local.toggles import toggles, without_glyphs
from sightline.seers.local.turning import turned_box, turned_pixels

_EDGE = 4  # pixels: the border of a field
_MARKS = 3
HOMES = ("panel", "bar", "field")  # parts that are read as one


def see(pixels: Pixels, lines: Sequence[Line], codes: Sequence[Code] = (), turned: int = 0) -> Seen:
    """The image as it was seen; its lines come in any order and leave in that of reading.

    An image that has to be turned to be read is seen, and has its places, as it stands then.
    """
    size = Size(pixels.shape[1], pixels.shape[0])
    upright = [replace(line, box=turned_box(line.box, size, turned)) for line in lines]
    marked = [replace(code, box=turned_box(code.box, size, turned)) for code in codes]
    return replace(_seen(turned_pixels(pixels, turned), upright, marked), turned=turned)


def _seen(pixels: Pixels, lines: Sequence[Line], codes: Sequence[Code]) -> Seen:
    size = Size(pixels.shape[1], pixels.shape[0])
    photograph = is_photograph(pixels)
    inked = coloured(pixels, lines if photograph else without_glyphs(lines, toggles(pixels, lines)))
    known = () if photograph else regions(pixels)
    drawn = charts(pixels, inked, known)
    inked = signed(pixels, inked, [chart.box for chart in drawn])
    shapes = () if photograph else outside(parts(pixels, inked, known), [chart.box for chart in drawn])
    ruling = lattices(shapes)
    cells = {at for lattice in ruling for at in lattice.cells}
    shapes = tuple(part for at, part in enumerate(shapes) if at not in cells)
    homes = [part.box for part in shapes if part.kind in HOMES]
    plots = [*(chart.box for chart in drawn), *(lattice.box for lattice in ruling)]
    places = order(inked, homes, plots)
    read = tuple(inked[place] for place in places)
    where = {old: new for new, old in enumerate(places)}
    charted = frozenset(place for place, line in enumerate(read) if any(inside(line.box, plot) for plot in plots))
    gridded = [table for lattice in ruling if (table := ruled(lattice, read))]
    rows = tuple(sorted((*tables(read, homes, charted), *gridded), key=lambda table: (table.box.y, table.box.x)))
    return Seen(
        size,
        read,
        laid_out(read, rows, [chart.box for chart in drawn]),
        tuple(moved(part, where) for part in shapes),
        rows,
        drawn,
        tuple(codes),
        dominant(pixels),
        photograph,
        marked=tuple(part.box for part in shapes if part.kind == "field" and not part.lines and _dotted(pixels, part)),
    )


def _dotted(pixels: Pixels, part: Part) -> bool:
    """Whether several marks stand in a row in it: a caret or an arrow is one."""
    box = part.box
    inner = pixels[box.y + _EDGE : box.bottom - _EDGE, box.x + _EDGE : box.right - _EDGE]
    if not inner.size:
        return False
    return len(strokes(mask_of(inner), 0, len(inner))) >= _MARKS
