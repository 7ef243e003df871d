"""Sizes, boxes, and the map from the pixels of a result back to those of its source."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sightline.model.value import value


@value
class Size:
    width: int
    height: int

    @property
    def edge(self) -> int:
        """The longer side."""
        return max(self.width, self.height)

    @property
    def pixels(self) -> int:
        return self.width * self.height

    def within(self, edge: int) -> Size:
        """The largest size of the same shape whose longer side is at most `edge`; never larger than itself."""
        return self if self.edge <= edge else self.scaled(edge / self.edge)

    def scaled(self, scale: float) -> Size:
        return Size(max(1, round(self.width * scale)), max(1, round(self.height * scale)))

    def __str__(self) -> str:
        return f"{self.width}x{self.height}"


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of whole pixels."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def size(self) -> Size:
        return Size(self.width, self.height)

    def __str__(self) -> str:
        return f"{self.x},{self.y},{self.width},{self.height}"


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle between pixels."""

    x: float
    y: float
    width: float
    height: float

    @staticmethod
    def of(box: Box) -> Rect:
        return Rect(box.x, box.y, box.width, box.height)

    def holds(self, x: float, y: float) -> bool:
        return self.x <= x <= self.x + self.width and self.y <= y <= self.y + self.height

    def shared(self, other: Rect) -> Rect | None:
        """What lies in both, if anything does."""
        x, y = max(self.x, other.x), max(self.y, other.y)
        right = min(self.x + self.width, other.x + other.width)
        bottom = min(self.y + self.height, other.y + other.height)
        return Rect(x, y, right - x, bottom - y) if right > x and bottom > y else None

    def carried(self, start: Rect, end: Rect) -> Rect:
        """This rectangle inside `start`, where it stands when `start` becomes `end`."""
        across, down = end.width / start.width, end.height / start.height
        x, y = end.x + (self.x - start.x) * across, end.y + (self.y - start.y) * down
        return Rect(x, y, self.width * across, self.height * down)


@dataclass(frozen=True, slots=True)
class Piece:
    """A rectangle of the source stands, perhaps scaled, at a rectangle of the result."""

    source: Rect
    result: Rect


@dataclass(frozen=True, slots=True)
class Map:
    """Where each part of a result comes from. What lies in no piece was drawn, or left out."""

    source: Size
    result: Size
    pieces: tuple[Piece, ...]

    @staticmethod
    def scaled(source: Size, result: Size) -> Map:
        whole = Rect(0, 0, source.width, source.height)
        return Map(source, result, (Piece(whole, Rect(0, 0, result.width, result.height)),))

    @staticmethod
    def cropped(source: Size, box: Box) -> Map:
        return Map(source, box.size, (Piece(Rect.of(box), Rect(0, 0, box.width, box.height)),))

    @staticmethod
    def placed(source: Size, result: Size, moves: Iterable[tuple[Box, Box]]) -> Map:
        """Boxes of the source that were moved to boxes of the result."""
        return Map(source, result, tuple(Piece(Rect.of(start), Rect.of(end)) for start, end in moves))

    def then(self, later: Map) -> Map:
        """Both steps as one."""
        pieces = []
        for first in self.pieces:
            for second in later.pieces:
                if between := first.result.shared(second.source):
                    source = between.carried(first.result, first.source)
                    pieces.append(Piece(source, between.carried(second.source, second.result)))
        return Map(self.source, later.result, tuple(pieces))

    def to_source(self, x: float, y: float) -> tuple[float, float] | None:
        """The point of the source that is seen at a point of the result; None where nothing of it stands."""
        return _moved(x, y, ((piece.result, piece.source) for piece in self.pieces))

    def to_result(self, x: float, y: float) -> tuple[float, float] | None:
        """Where a point of the source is seen; None where it was left out."""
        return _moved(x, y, ((piece.source, piece.result) for piece in self.pieces))


def _moved(x: float, y: float, moves: Iterable[tuple[Rect, Rect]]) -> tuple[float, float] | None:
    for start, end in moves:
        if start.holds(x, y):
            moved = Rect(x, y, 0, 0).carried(start, end)
            return moved.x, moved.y
    return None
