"""What was read of one image: lines, interface parts, tables, charts and barcodes, in its own pixels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sightline.model.geometry import Box, Size
from sightline.reader.phrases import EXACT, match_phrase
from sightline.reader.rectangles import contains_centre

Colour = tuple[int, int, int]
Pixels: TypeAlias = NDArray[np.uint8]  # height x width x RGB
PartKind = Literal["button", "field", "check", "radio", "switch", "panel", "bar", "picture"]

TOGGLES: tuple[PartKind, ...] = ("check", "radio", "switch")


@dataclass(frozen=True, slots=True)
class TextLine:
    """A run of text in the image; `box` is tight around its ink."""

    text: str
    box: Box
    confidence: float = 1.0  # mean over its characters, 0 to 1
    ink: Colour | None = None  # the colour of the text
    ground: Colour | None = None  # the colour of its background
    doubtful: tuple[int, ...] = ()  # indexes of characters in `text` that may be wrong
    middles: tuple[float, float] | None = None  # of its first and last character, where all are equally wide

    @property
    def marked_text(self) -> str:
        """Return the text with its doubtful characters between ‹ and ›."""
        doubtful = set(self.doubtful)
        pieces = []
        for at, letter in enumerate(self.text):
            opening = "‹" if at in doubtful and at - 1 not in doubtful else ""
            closing = "›" if at in doubtful and at + 1 not in doubtful else ""
            pieces.append(f"{opening}{letter}{closing}")
        return "".join(pieces)


@dataclass(frozen=True, slots=True)
class InterfacePart:
    """A piece of an interface that can be recognised by its shape alone."""

    kind: PartKind
    box: Box
    colour: Colour
    lines: tuple[int, ...] = ()  # in it, or beside a toggle: indexes of `ImageReading.lines`
    checked: bool | None = None  # only for check boxes, radio buttons and switches; None: unknown
    contrast: int = 0  # the same: how much it differs from its background


@dataclass(frozen=True, slots=True)
class ChartMark:
    """One value of a chart: a bar, a segment of a stacked bar, or a point of a line."""

    category: str
    series: str
    value: float
    box: Box
    colour: Colour
    tolerance: float = 0.0  # possible error, where the bar ends with a whole pixel


@dataclass(frozen=True, slots=True)
class Chart:
    kind: Literal["bar", "line"]
    box: Box
    title: str = ""
    marks: tuple[ChartMark, ...] = ()
    unit: str = ""
    doubts: str = ""  # what could not be read, in words
    between: str = ""  # where lines are higher or lower than at all labels, in words


@dataclass(frozen=True, slots=True)
class Table:
    box: Box
    rows: tuple[tuple[tuple[int, ...], ...], ...]  # the lines of each cell: indexes of `ImageReading.lines`


@dataclass(frozen=True, slots=True)
class Barcode:
    """A QR or bar code."""

    kind: str
    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class ItemState:
    """What an item differs from its siblings by, as far as colours show it."""

    kind: Literal["selected", "disabled"]
    box: Box
    item: TextLine | None = None  # which may be a part of a line; None for a control


@dataclass(frozen=True, slots=True)
class ImageReading:
    """Everything that was read of one image, in that image's own pixels."""

    size: Size
    lines: tuple[TextLine, ...] = ()  # in reading order
    text: str = ""  # the same lines laid out: columns, rows of tables, indented code; doubtful characters marked
    parts: tuple[InterfacePart, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    codes: tuple[Barcode, ...] = ()
    colours: tuple[tuple[Colour, float], ...] = ()  # the most common ones, with their shares
    photograph: bool = False  # not a screen or a page
    rotation: int = 0  # degrees clockwise by which it was rotated for reading; size and boxes are as after that
    unread: tuple[Box, ...] = ()  # looks like text and could not be read
    marked: tuple[Box, ...] = ()  # fields with marks that are not text, such as the dots of a password
    late: tuple[Box, ...] = ()  # lines that there was no time to read
    icons: tuple[Box, ...] = ()  # marks that are no letters
    states: tuple[ItemState, ...] = ()  # of menu items, tabs and toggles
    searched: bool = True  # whether all of the image was searched for lines
    headings: tuple[int, ...] = ()  # indexes of the lines that are written as headings
    code: tuple[Box, ...] = ()  # areas of programs and terminals


def find_lines(reading: ImageReading, phrase: str) -> list[TextLine]:
    """Return the lines that match a phrase; only the best matches are returned."""
    ranked = [(rank, line) for line in reading.lines if (rank := match_phrase(line.text, phrase)) is not None]
    best = min((rank for rank, _ in ranked), default=EXACT)
    return [line for rank, line in ranked if rank == best]


def find_lines_within(reading: ImageReading, box: Box) -> Iterator[TextLine]:
    """Yield the lines whose centre lies in a box."""
    yield from (line for line in reading.lines if contains_centre(box, line.box))


def select_parts(reading: ImageReading, *kinds: PartKind) -> list[InterfacePart]:
    """Return the parts of the given kinds, in their order."""
    return [part for part in reading.parts if part.kind in kinds]


def join_part_text(part: InterfacePart, reading: ImageReading) -> str:
    """Return the text inside a part."""
    return " ".join(reading.lines[at].text for at in part.lines)


def has_unread_text(reading: ImageReading, box: Box) -> bool:
    """Return whether a box holds something that could not be read."""
    return any(contains_centre(box, each) for each in (*reading.unread, *reading.late, *reading.marked))
