"""What the local seer found in an image: lines of text, parts of an interface, charts and codes, in its own pixels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sightline.model.geometry import Box, Size

Colour = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Line:
    """A run of text as it stands in the image; `box` is tight around its ink."""

    text: str
    box: Box
    confidence: float = 1.0  # mean over its characters, 0 to 1
    ink: Colour | None = None  # the colour of the text,
    ground: Colour | None = None  # and of what it stands on
    least: float = 1.0  # how sure its least sure character is


PartKind = Literal["button", "field", "check", "radio", "panel", "bar", "picture"]


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of an interface that can be told by its shape alone."""

    kind: PartKind
    box: Box
    colour: Colour
    lines: tuple[int, ...] = ()  # what stands in it, or beside a check box, as places in `Seen.lines`
    checked: bool | None = None  # of a check box or a radio button


@dataclass(frozen=True, slots=True)
class Mark:
    """One value of a chart: a bar, a piece of a stacked bar, or a point of a line."""

    category: str
    series: str
    value: float
    box: Box
    colour: Colour
    slack: float = 0.0  # so much it may be off, where its bar ends with a whole pixel


@dataclass(frozen=True, slots=True)
class Chart:
    kind: Literal["bar", "line"]
    box: Box
    title: str = ""
    marks: tuple[Mark, ...] = ()
    unit: str = ""
    doubts: str = ""  # what could not be read, in words; empty: everything was


@dataclass(frozen=True, slots=True)
class Table:
    box: Box
    rows: tuple[tuple[tuple[int, ...], ...], ...]  # cells of rows: the lines in each, as places in `Seen.lines`


@dataclass(frozen=True, slots=True)
class Code:
    """A QR or bar code."""

    kind: str
    text: str
    box: Box


@dataclass(frozen=True, slots=True)
class Seen:
    size: Size
    lines: tuple[Line, ...] = ()  # in reading order
    text: str = ""  # the same lines laid out: columns, rows of tables, indented code
    parts: tuple[Part, ...] = ()
    tables: tuple[Table, ...] = ()
    charts: tuple[Chart, ...] = ()
    codes: tuple[Code, ...] = ()
    colours: tuple[tuple[Colour, float], ...] = ()  # the commonest, with their share of the image
    photograph: bool = False  # its pixels are a picture's, not a screen's or a page's
    turned: int = 0  # degrees clockwise by which it was turned to be read: size and places are as it stands then
    unread: tuple[Box, ...] = ()  # what looks like lines of text and could not be read
    marked: tuple[Box, ...] = ()  # fields with marks in them that are no text, as the dots of a password
    late: tuple[Box, ...] = ()  # lines that were left for lack of time
    searched: bool = True  # whether there was time to look for lines everywhere
