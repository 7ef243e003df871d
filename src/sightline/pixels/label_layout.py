"""Find places for the labels of boxes where they cover neither another box nor another label.

Pure: rectangles in, rectangles out. A label is placed next to its box. If a single label has no room there, every box
gets a number instead, which is small enough to stay close to it, and a legend below the image says what it means.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

Corners = tuple[int, int, int, int]  # left, top, right, bottom; the last two are outside
Extent = tuple[int, int]  # width and height

_CELL = 64  # pixels of a cell of the index
_RINGS = 16  # around a box, in which a free place for its number is searched for


class OccupiedPlaces:
    """The rectangles that are taken, indexed by cells, so that hundreds of boxes don't take seconds."""

    def __init__(self, places: Sequence[Corners], size: Extent) -> None:
        self._size = size
        self._cells: dict[Extent, list[Corners]] = {}
        for place in places:
            self.add(place)

    def add(self, place: Corners) -> None:
        for cell in _iter_cells(place):
            self._cells.setdefault(cell, []).append(place)

    def is_free(self, place: Corners, around: Corners | None = None) -> bool:
        """Return whether a place is on the image and free. Boxes that contain `around` don't count."""
        if min(place) < 0 or place[2] > self._size[0] or place[3] > self._size[1]:
            return False
        taken = (each for cell in _iter_cells(place) for each in self._cells.get(cell, ()) if _overlap(place, each))
        return all(around is not None and _contains(each, around) for each in taken)


def place_labels(
    frames: Sequence[Corners], sizes: Sequence[Extent | None], image: Extent
) -> list[Corners | None] | None:
    """Return a free place for each label next to its frame; None if one has none. A label without a size is empty."""
    occupied = OccupiedPlaces(frames, image)
    places: list[Corners | None] = []
    for frame, size in zip(frames, sizes, strict=True):
        place = _find_beside(frame, size, occupied) if size else None
        if size and not place:
            return None
        if place:
            occupied.add(place)
        places.append(place)
    return places


def place_numbers(frames: Sequence[Corners], sizes: Sequence[Extent | None], image: Extent) -> list[Corners | None]:
    """Return a place for each number: beside its frame, inside it, or as near as there is room.

    If there is no room at all, the place is in a corner of the frame, and may be larger than the frame.
    """
    occupied = OccupiedPlaces(frames, image)
    places: list[Corners | None] = []
    for frame, size in zip(frames, sizes, strict=True):
        place = _find_for_number(frame, size, occupied) if size else None
        if place:
            occupied.add(place)
        places.append(place)
    return places


def _find_for_number(frame: Corners, size: Extent, occupied: OccupiedPlaces) -> Corners:
    inside = (each for each in _iter_inside(frame, size) if occupied.is_free(each, around=frame))
    place = _find_beside(frame, size, occupied) or next(inside, None)
    place = place or next(filter(occupied.is_free, _iter_rings(frame, size)), None)
    return place or (frame[0], frame[1], frame[0] + size[0], frame[1] + size[1])


def _find_beside(frame: Corners, size: Extent, occupied: OccupiedPlaces) -> Corners | None:
    """Return a free place next to a frame; one inside a box around the frame only if there is no other."""
    places = list(_iter_beside(frame, size))
    free = next(filter(occupied.is_free, places), None)
    return free or next((each for each in places if occupied.is_free(each, around=frame)), None)


def _iter_beside(frame: Corners, size: Extent) -> Iterator[Corners]:
    """Yield the places above, below, right and left of a frame."""
    (left, top, right, bottom), (width, height) = frame, size
    for x, y in (
        (left, top - height), (right - width, top - height), (left, bottom), (right - width, bottom),
        (right, top), (right, bottom - height), (left - width, top), (left - width, bottom - height),
    ):  # fmt: skip
        yield x, y, x + width, y + height


def _iter_inside(frame: Corners, size: Extent) -> Iterator[Corners]:
    """Yield places inside a frame, along its top and bottom, if most of it stays visible."""
    (left, top, right, bottom), (width, height) = frame, size
    if right - left < 3 * width or bottom - top < 2 * height:
        return
    for y in (top, bottom - height):
        for x in range(left, right - width + 1, width):
            yield x, y, x + width, y + height


def _iter_rings(frame: Corners, size: Extent) -> Iterator[Corners]:
    """Yield places around a frame, the nearest first."""
    width, height = size
    for ring in range(1, _RINGS + 1):
        away = ring * height // 2
        left, top = frame[0] - away - width, frame[1] - away - height
        right, bottom = frame[2] + away, frame[3] + away
        across, down = range(left, right + 1, max(1, width // 2)), range(top, bottom + 1, max(1, height // 2))
        for x, y in (*((x, y) for x in across for y in (top, bottom)), *((x, y) for y in down for x in (right, left))):
            yield x, y, x + width, y + height


def flow(sizes: Sequence[Extent], width: int, gap: int, max_height: int) -> tuple[list[Extent], Extent]:
    """Arrange entries in rows of at most `width`, or of the widest entry; return their corners and the size of all.

    Entries that would end below `max_height` are left out.
    """
    width = max([width, *(entry[0] + 2 * gap for entry in sizes)])
    corners: list[Extent] = []
    x, y, row = gap, gap, 0
    for entry in sizes:
        if x > gap and x + entry[0] + gap > width:
            x, y, row = gap, y + row + gap, 0
        if corners and y + entry[1] + gap > max_height:
            break
        corners.append((x, y))
        x, row = x + entry[0] + gap, max(row, entry[1])
    return corners, (width, y + row + gap)


def _iter_cells(place: Corners) -> Iterator[Extent]:
    left, top, right, bottom = place
    for column in range(left // _CELL, right // _CELL + 1):
        for line in range(top // _CELL, bottom // _CELL + 1):
            yield column, line


def _overlap(one: Corners, other: Corners) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _contains(outer: Corners, inner: Corners) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]
