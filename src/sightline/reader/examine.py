"""Build the `ImageReading` of an image from its pixels and its recognised lines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sightline.model.geometry import Box, Size
from sightline.reader.charts import find_charts
from sightline.reader.charts.axes import restore_minus_signs
from sightline.reader.code_areas import find_code_areas, restore_line_numbers
from sightline.reader.colours import add_colours, find_dominant_colours, is_photograph
from sightline.reader.describe import mark_toggles
from sightline.reader.headings import rank_headings
from sightline.reader.icons import separate_icons
from sightline.reader.interface_parts import (
    find_parts,
    renumber_lines,
    select_parts_outside,
)
from sightline.reader.mono_areas import find_mono_areas
from sightline.reader.mono_tables import find_mono_tables
from sightline.reader.ocr.line_image import find_ink, find_ink_columns
from sightline.reader.page_text import contains_line, measure_line_height, order_lines
from sightline.reader.reading import TOGGLES, Barcode, Chart, ImageReading, InterfacePart, Pixels, Table, TextLine
from sightline.reader.rectangles import enclose_boxes, is_inside, rotate_box
from sightline.reader.regions import Segments, segment_image
from sightline.reader.sections import write_marks
from sightline.reader.states import find_states
from sightline.reader.table_rows import find_aligned_tables, find_ruled_tables
from sightline.reader.tables import CellGrid, fill_cell_grid, find_cell_grids, find_tables, renumber_table
from sightline.reader.text_layout import lay_out_text
from sightline.reader.toggles import find_toggles, remove_toggle_glyphs, remove_toggle_marks

_SEARCHED = 16_000_000  # pixels searched for barcodes; of a larger image only every second, third, ... pixel
_CORNERS = ("top_left", "top_right", "bottom_right", "bottom_left")
_EDGE = 4  # pixels: the border of a field
_LONG_TEXT, _FEW_TEXTS = 20, 5  # characters, and texts of that length in a chart, at most
_CODE_COLUMNS = 2  # of a program that looks like a table: its line numbers and its lines
_WHOLE = 0.7  # share of the width of a table that a column has which may be a program
_MONO = 0.75  # share of the lines of a program that are monospaced, at least
_PANEL = (8, 3)  # heights of a line: the width and height of what is drawn around a program, at least
_FIGURE = 0.6  # share of the picture's width and height that a chart has which is all of it
_MANY_MARKS = 60  # a chart has fewer values
_FORM = 2  # columns of a form: names, and fields
_PRESSED = 0.6  # share of the cells of a table that are buttons, at most
_MARKS = 3  # dots of a password, at least
_CONTAINERS = ("panel", "bar", "field")  # parts whose text is read as one


def examine_image(
    pixels: Pixels,
    lines: Sequence[TextLine],
    codes: Sequence[Barcode] = (),
    rotation: int = 0,
    unread: Sequence[Box] = (),
) -> ImageReading:
    """Read everything else in an image whose lines are known: colours, parts, charts, tables, one text.

    `lines` may be in any order. Positions in the result are those after a clockwise rotation by `rotation` degrees.
    `unread` is what looks like text and could not be read.
    """
    size = Size(pixels.shape[1], pixels.shape[0])
    upright = [replace(line, box=rotate_box(line.box, size, rotation)) if rotation else line for line in lines]
    barcodes = [replace(code, box=rotate_box(code.box, size, rotation)) for code in codes]
    dark = [rotate_box(box, size, rotation) for box in unread]
    return replace(_examine_upright(rotate_pixels(pixels, rotation), upright, barcodes, dark), rotation=rotation)


def rotate_pixels(pixels: Pixels, degrees: int) -> Pixels:
    """Return the image rotated clockwise by quarter turns."""
    return np.ascontiguousarray(np.rot90(pixels, -(degrees // 90))) if degrees else pixels


@dataclass(frozen=True, slots=True)
class _PageContents:
    """What was found in a picture, before its lines are in reading order."""

    lines: list[TextLine]
    icons: tuple[Box, ...]
    parts: tuple[InterfacePart, ...]
    grids: tuple[CellGrid, ...]
    tables: list[Table]
    charts: tuple[Chart, ...]
    code: list[Box]

    @property
    def chart_boxes(self) -> list[Box]:
        return [chart.box for chart in self.charts]

    @property
    def plots(self) -> list[Box]:
        """Where lines have an order of their own."""
        tables = (table.box for table in self.tables)
        return [*self.chart_boxes, *(grid.box for grid in self.grids), *tables, *self.code]


def _examine_upright(
    pixels: Pixels, lines: Sequence[TextLine], codes: Sequence[Barcode], unread: Sequence[Box]
) -> ImageReading:
    size = Size(pixels.shape[1], pixels.shape[0])
    photograph = is_photograph(pixels)
    segments = Segments() if photograph else segment_image(pixels)
    found = _find_contents(pixels, lines, segments, is_page=not photograph)
    parts, plots = found.parts, found.plots
    unread = remove_toggle_marks(unread, parts)
    containers = [part.box for part in parts if part.kind in _CONTAINERS]
    order = order_lines(
        found.lines, containers, plots, {at for part in parts if part.kind in TOGGLES for at in part.lines}
    )
    ordered = tuple(found.lines[place] for place in order)
    new_places = {old: new for new, old in enumerate(order)}
    plotted = frozenset(place for place, line in enumerate(ordered) if any(is_inside(line.box, plot) for plot in plots))
    drawn_tables = [table for grid in found.grids if (table := fill_cell_grid(grid, ordered))]
    drawn_tables += [renumber_table(table, new_places) for table in found.tables]
    numbered = tuple(renumber_lines(part, new_places) for part in parts)
    loose = find_tables(ordered, containers, plotted)
    tables = sorted((table for table in (*loose, *drawn_tables) if not _has_buttons(table, numbered)), key=_sort_key)
    cells_of_tables = {at for table in tables for row in table.rows for cell in row for at in cell}
    controls = {at for part in numbered if part.kind not in ("panel", "bar", "picture") for at in part.lines}
    headings = rank_headings(ordered, plotted | cells_of_tables | controls)
    cards = [part.box for part in numbered if part.kind == "panel" and len(part.lines) > 1]
    reading = ImageReading(
        size,
        ordered,
        "",
        numbered,
        tuple(tables),
        found.charts,
        tuple(codes),
        find_dominant_colours(pixels),
        photograph,
        unread=unread,
        icons=remove_toggle_marks(found.icons, parts),
        headings=tuple(headings),
        code=tuple(found.code),
        states=tuple(find_states(pixels, ordered, numbered, found.chart_boxes + found.code, segments.regions)),
        marked=tuple(
            part.box for part in parts if part.kind == "field" and not part.lines and _has_marks(pixels, part)
        ),
    )
    text = lay_out_text(mark_toggles(reading), tables, found.chart_boxes, found.code, headings, cards, unread)
    return replace(reading, text=write_marks(text))


def _find_contents(pixels: Pixels, lines: Sequence[TextLine], segments: Segments, *, is_page: bool) -> _PageContents:
    """Find charts, code, tables and controls. A photograph, which is no page, has no controls or aligned tables."""
    size = Size(pixels.shape[1], pixels.shape[0])
    toggles = find_toggles(pixels, lines, segments)
    texts, icons = separate_icons(remove_toggle_glyphs(lines, toggles))
    restored = restore_line_numbers(list(add_colours(pixels, texts)))
    code, coloured, ruled = _separate_code(pixels, segments, restored, toggles)
    charts = tuple(
        chart
        for chart in find_charts(pixels, coloured, segments.regions)
        if _is_plot(chart, coloured, ruled) and not _is_cut_off(chart, size, coloured)
    )
    chart_boxes = [chart.box for chart in charts]
    coloured = list(restore_minus_signs(pixels, coloured, chart_boxes))
    ruled = [table for table in ruled if not any(_overlap(table.box, box) for box in chart_boxes)]
    drawn = [table.box for table in ruled]
    if is_page:
        coloured, ruled = _add_aligned_tables(pixels, segments, coloured, ruled, [*chart_boxes, *code], toggles)
    parts = find_parts(pixels, coloured, segments, toggles) if is_page else ()
    parts = select_parts_outside(parts, [*chart_boxes, *code])
    ruled = [table for table in ruled if table.box in drawn or not _has_boxes(table, parts)]
    grids = find_cell_grids(parts)
    cells = {at for grid in grids for at in grid.cells}
    ruled = [table for table in ruled if table.box in drawn or not any(_is_more_of(grid, table) for grid in grids)]
    taken = [*(table.box for table in ruled), *code]
    grids = tuple(grid for grid in grids if not any(_overlap(grid.box, box) for box in taken))
    parts = tuple(
        part for at, part in enumerate(parts)
        if at not in cells and not any(_is_row(part, table) for table in ruled)
    )  # fmt: skip
    return _PageContents(coloured, icons, parts, grids, ruled, charts, code)


def _is_more_of(grid: CellGrid, table: Table) -> bool:
    """Return whether drawn cells are a table of which another one, without lines, is a part."""
    return len(grid.rows) > len(table.rows) and _overlap(grid.box, table.box)


def _separate_code(
    pixels: Pixels, segments: Segments, lines: Sequence[TextLine], toggles: Sequence[InterfacePart]
) -> tuple[list[Box], list[TextLine], list[Table]]:
    """Return the areas of programs and terminals, the lines, and the tables with lines between their rows.

    Monospaced text in a table is in its cells, unless it is nearly all of it: rows of a program are no table.
    """
    panels = _list_panels(segments, lines)
    texts = find_mono_areas(lines, panels)
    areas = find_code_areas(lines, texts) if segments.regions else []  # a photograph has no regions, and no tables
    whole, known = find_mono_tables(pixels, lines, areas)
    drawn = [table.box for table in known]
    split, tables = find_ruled_tables(pixels, segments.regions, whole, toggles, drawn)
    lines = [line for line in whole if not any(contains_line(box, line.box) for box in drawn)]
    texts = find_mono_areas(lines, panels) if known else texts
    wide = [_enclose_cells(table, split) for table in tables if not _may_be_code(table, split, texts)]
    if any(_overlap(area, box) for area in texts for box in wide):
        outside = [line for line in lines if not any(_overlap(line.box, box) for box in wide)]
        texts = find_mono_areas(outside, panels)
    code = [area for area in find_code_areas(lines, texts) if not any(_overlap(area, box) for box in wide)]
    if any(_overlap(table.box, area) for table in tables for area in code):
        split, tables = find_ruled_tables(pixels, segments.regions, whole, toggles, [*drawn, *code])
    return code, split, [*tables, *_renumber_tables(known, whole, split)]


def _list_panels(segments: Segments, lines: Sequence[TextLine]) -> list[Box]:
    """Return what may be drawn around a program: a region with room for several lines."""
    em = measure_line_height(lines) if lines else 0.0
    boxes = {region.box for region in segments.regions}
    return [box for box in boxes if box.width >= _PANEL[0] * em and box.height >= _PANEL[1] * em]


def _enclose_cells(table: Table, lines: Sequence[TextLine]) -> Box:
    """Return the box around the texts of a table, which may be narrower than its rows."""
    return enclose_boxes(lines[at].box for row in table.rows for cell in row for at in cell)


def _may_be_code(table: Table, lines: Sequence[TextLine], texts: Sequence[Box]) -> bool:
    """Return whether a table may be a program or a listing: nearly all of it, or two columns, are monospaced."""
    columns = [[lines[at].box for row in table.rows for at in row[place]] for place in range(len(table.rows[0]))]
    whole = _WHOLE * _enclose_cells(table, lines).width
    wide = [boxes for boxes in columns if boxes and enclose_boxes(boxes).width >= whole]
    if len(columns) <= _CODE_COLUMNS:
        wide.append([box for boxes in columns for box in boxes])
    return any(sum(any(is_inside(box, text) for text in texts) for box in boxes) > _MONO * len(boxes) for boxes in wide)


def _add_aligned_tables(
    pixels: Pixels,
    segments: Segments,
    lines: Sequence[TextLine],
    tables: Sequence[Table],
    plots: Sequence[Box],
    toggles: Sequence[InterfacePart],
) -> tuple[list[TextLine], list[Table]]:
    """Return the lines, split at the columns of tables without lines, and all tables."""
    taken = [*plots, *(table.box for table in tables)]
    split, aligned = find_aligned_tables(pixels, segments.regions, lines, taken, toggles)
    return split, [*_renumber_tables(tables, lines, split), *aligned]


def _renumber_tables(tables: Sequence[Table], lines: Sequence[TextLine], split: Sequence[TextLine]) -> list[Table]:
    """Return the tables after other lines were split."""
    places = {line.box: at for at, line in enumerate(split)}
    moved = {at: places[line.box] for at, line in enumerate(lines) if line.box in places}
    return [renumber_table(table, moved) for table in tables]


def _is_plot(chart: Chart, lines: Sequence[TextLine], tables: Sequence[Table]) -> bool:
    """Return whether a chart is one: no table is in it, little text, and every series has a name."""
    long = [line for line in lines if len(line.text) >= _LONG_TEXT and is_inside(line.box, chart.box)]
    return (
        len(long) <= _FEW_TEXTS
        and len(chart.marks) <= _MANY_MARKS
        and not any(_overlap(table.box, chart.box) for table in tables)
    )


def _is_cut_off(chart: Chart, size: Size, lines: Sequence[TextLine]) -> bool:
    """Return whether a chart in a larger page reaches its upper or lower edge: a part of it may be missing."""
    box, em = chart.box, measure_line_height(lines)
    fills = box.width >= _FIGURE * size.width and box.height >= _FIGURE * size.height
    return not fills and (box.y < em or box.bottom > size.height - em)


def _overlap(one: Box, other: Box) -> bool:
    """Return whether two boxes overlap."""
    return one.x < other.right and other.x < one.right and one.y < other.bottom and other.y < one.bottom


def _is_row(part: InterfacePart, table: Table) -> bool:
    """Return whether a part is a row or a cell of a table, not something in a cell."""
    if part.kind not in ("panel", "field", "bar", "button"):
        return False
    if not part.lines:
        return is_inside(part.box, table.box, slack=8)
    cells = [set(cell) for row in table.rows for cell in row if cell]
    own = {at for at in part.lines if any(at in cell for cell in cells)}
    return (
        bool(own)
        and (part.kind != "button" or sum(bool(own & cell) for cell in cells) > 1)
        and len(own) == len(part.lines)
    )


def _has_boxes(table: Table, parts: Sequence[InterfacePart]) -> bool:
    """Return whether most cells, or most of the second column of two, have a box of their own: a form or cards."""
    boxed = {part.lines for part in parts if part.kind in ("field", "button", "panel")}
    columns = [[row[-1] for row in table.rows]] if len(table.rows[0]) == _FORM else []
    return any(
        sum(cell in boxed for cell in cells) > _PRESSED * sum(map(bool, cells))
        for cells in ([cell for row in table.rows for cell in row], *columns)
    )


def _has_buttons(table: Table, parts: Sequence[InterfacePart]) -> bool:
    """Return whether most cells are buttons: those are no table."""
    pressed = {at for part in parts if part.kind == "button" for at in part.lines}
    cells = [cell for row in table.rows for cell in row if cell]
    return sum(pressed.issuperset(cell) for cell in cells) > _PRESSED * len(cells)


def _sort_key(table: Table) -> tuple[int, int]:
    return table.box.y, table.box.x


def _has_marks(pixels: Pixels, part: InterfacePart) -> bool:
    """Return whether several marks are in a row in a field: a caret or an arrow is only one."""
    box = part.box
    inner = pixels[box.y + _EDGE : box.bottom - _EDGE, box.x + _EDGE : box.right - _EDGE]
    if not inner.size:
        return False
    return len(find_ink_columns(find_ink(inner), 0, len(inner))) >= _MARKS


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
