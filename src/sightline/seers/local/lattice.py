"""Tables that are drawn: boxes that share their edges across and down are cells, not buttons and fields."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sightline.model.geometry import Box
from sightline.seers.local.boxes import inside, union
from sightline.seers.local.seen import Line, Part, PartKind, Table

_KINDS: frozenset[PartKind] = frozenset({"field", "button", "panel", "bar", "check"})
_SLACK = 3  # pixels: a rule between two cells belongs to both
_TILE = 8  # pixels, more than twice as many
_CELLS = 6  # of a table at least: four tiles are a window in four parts
_LINES = 4  # of text in a cell; more is a part of a page


@dataclass(frozen=True, slots=True)
class Lattice:
    """The cells of one table, as places in a list of parts, and where its columns and its rows begin."""

    box: Box
    cells: frozenset[int]
    columns: tuple[int, ...]
    rows: tuple[int, ...]


def lattices(parts: Sequence[Part]) -> tuple[Lattice, ...]:
    places = [at for at, part in enumerate(parts) if part.kind in _KINDS and len(part.lines) <= _LINES]
    found = (_lattice(parts, group) for group in _groups(parts, places))
    return tuple(lattice for lattice in found if lattice)


def _groups(parts: Sequence[Part], places: Sequence[int]) -> list[list[int]]:
    """Parts that hang together by whole edges; only what begins where another one ends is compared with it."""
    begin: dict[tuple[int, int], list[int]] = {}
    for place in places:
        begin.setdefault(_tile(parts[place].box.x, parts[place].box.y), []).append(place)
    group = {place: [place] for place in places}
    for place in places:
        box = parts[place].box
        for x, y in (*_tiles(box.right, box.y), *_tiles(box.x, box.bottom)):
            for other in begin.get((x, y), ()):
                if group[other] is not group[place] and _joins(box, parts[other].box):
                    small, large = sorted((group[place], group[other]), key=len)
                    large += small
                    group.update(dict.fromkeys(small, large))
    return list({id(each): each for each in group.values()}.values())


def _tile(x: int, y: int) -> tuple[int, int]:
    return x // _TILE, y // _TILE


def _tiles(x: int, y: int) -> Iterable[tuple[int, int]]:
    """All in which something that begins there may be found."""
    return {_tile(x + right, y + down) for right in (-_SLACK, _SLACK) for down in (-_SLACK, _SLACK)}


def _lattice(parts: Sequence[Part], group: Sequence[int]) -> Lattice | None:
    boxes = [parts[place].box for place in group]
    columns, rows = _starts(box.x for box in boxes), _starts(box.y for box in boxes)
    if len(group) < _CELLS or len(columns) < 2 or len(rows) < 2:
        return None
    own, whole = frozenset(group), union(boxes)
    wide = [at for at, part in enumerate(parts) if at not in own and _spans(part, whole, boxes)]
    held = [*boxes, *(parts[at].box for at in wide)]
    return Lattice(union(held), own.union(wide), columns, _starts(box.y for box in held))


def _joins(one: Box, other: Box) -> bool:
    """Whether the other is as high and stands right behind it, or is as wide and stands right below."""
    level = _same(one.y, other.y) and _same(one.height, other.height) and _same(one.right, other.x)
    stacked = _same(one.x, other.x) and _same(one.width, other.width) and _same(one.bottom, other.y)
    return level or stacked


def _spans(part: Part, whole: Box, boxes: Sequence[Box]) -> bool:
    """Whether it is a cell over several columns or beside several rows: it ends where cells begin."""
    box = part.box
    if part.kind not in _KINDS or len(part.lines) > _LINES or any(inside(box, each) for each in boxes):
        return False
    wide = inside(Box(box.x, 0, box.width, 0), Box(whole.x, 0, whole.width, 0), _SLACK)
    high = inside(Box(0, box.y, 0, box.height), Box(0, whole.y, 0, whole.height), _SLACK)
    over = any(_same(box.bottom, each.y) or _same(each.bottom, box.y) for each in boxes)
    beside = any(_same(box.right, each.x) or _same(each.right, box.x) for each in boxes)
    return (wide and over) or (high and beside)


def _same(one: int, other: int) -> bool:
    return abs(one - other) <= _SLACK


def _starts(edges: Iterable[int]) -> tuple[int, ...]:
    """Edges, those that are the same but for a rule only once."""
    starts: list[int] = []
    for edge in sorted(edges):
        if not starts or edge - starts[-1] > 2 * _SLACK:
            starts.append(edge)
    return tuple(starts)


def ruled(lattice: Lattice, lines: Sequence[Line]) -> Table | None:
    """The table, each line in the cell in which its middle lies; rows and columns without any are left out."""
    cells: dict[tuple[int, int], list[int]] = {}
    for at, line in enumerate(lines):
        if inside(line.box, lattice.box):
            row = bisect_right(lattice.rows, line.box.y + line.box.height / 2)
            cells.setdefault((row, bisect_right(lattice.columns, line.box.x + line.box.width / 2)), []).append(at)
    rows, columns = sorted({row for row, _ in cells}), sorted({column for _, column in cells})
    if len(rows) < 2 or len(columns) < 2:
        return None
    return Table(lattice.box, tuple(tuple(tuple(cells.get((row, at), ())) for at in columns) for row in rows))
