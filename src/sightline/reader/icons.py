"""Tell icons from letters: a mark that stands alone, as wide as high, and is read with doubt or as another script."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.model.geometry import Box
from sightline.reader.ocr.recognizer import has_cjk
from sightline.reader.reading import ImageReading, TextLine
from sightline.reader.rectangles import are_level, contains_centre

WIDE = (0.75, 2.7)  # ratio of an icon's width to its height
SURE = 0.985  # a letter that stands alone and is less certain is an icon
DRAWN = frozenset("QXV×✓√")  # what magnifiers, crosses and ticks are read as
GLYPH = 1.3  # the largest ratio of width to height of a single letter
FLAT = 3  # a mark is this many times as flat as a line
SIGNS = frozenset("+-*")  # of monospaced text, where they are no icons: what was added or removed, and comments
APART = 0.6  # heights of a line: a letter nearer to a text belongs to it


def separate_icons(lines: Sequence[TextLine]) -> tuple[list[TextLine], tuple[Box, ...]]:
    """Return the lines without those that are icons, and the boxes of the icons."""
    script = sum(has_cjk(line.text) for line in lines if len(line.text) > 1) > 0
    icons = {at for at, line in enumerate(lines) if _is_icon(line, lines, chinese=script)}
    rest = [line for at, line in enumerate(lines) if at not in icons]
    return rest, tuple(lines[at].box for at in sorted(icons))


def _is_icon(line: TextLine, lines: Sequence[TextLine], *, chinese: bool) -> bool:
    text, box = line.text, line.box
    if line.middles and text in SIGNS:
        return False
    if len(text) > 2 or (len(text) == 2 and text[0] not in "√×") or not WIDE[0] <= box.width / box.height <= WIDE[1]:
        return False
    if has_cjk(text):
        return not chinese
    if text[0] not in DRAWN and (line.confidence >= SURE or (text.isdigit() and line.confidence >= 0.95)):
        return False
    return not any(other is not line and _is_near(box, other.box) for other in lines)


def _is_near(one: Box, other: Box) -> bool:
    gap = max(other.x - one.right, one.x - other.right)
    return are_level(one, other) and gap < APART * min(one.height, other.height)


def find_icons(reading: ImageReading) -> list[Box]:
    """Return the icons, and what could not be read and is as small as one, outside of programs."""
    high = max((line.box.height for line in reading.lines), default=0)
    small = [
        box for box in reading.unread
        if _is_mark(box, high) and not any(contains_centre(area, box) for area in reading.code)
    ]  # fmt: skip
    return sorted([*reading.icons, *small], key=lambda box: (box.y, box.x))


def _is_mark(box: Box, high: int) -> bool:
    """Return whether a place that could not be read is no line of text: the highest line is that high."""
    return box.height <= 2 * high and (box.width <= GLYPH * box.height or box.height * FLAT < high)
