"""Tell icons from letters: a mark that stands alone, as wide as high, and is read with doubt or as another script."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.model.geometry import Box
from sightline.reader.ocr.recognizer import has_cjk
from sightline.reader.reading import TextLine
from sightline.reader.rectangles import are_level

WIDE = (0.75, 2.7)  # ratio of an icon's width to its height
SURE = 0.985  # a letter that stands alone and is less certain is an icon
DRAWN = frozenset("QXV×✓√")  # what magnifiers, crosses and ticks are read as
APART = 0.6  # heights of a line: a letter nearer to a text belongs to it


def separate_icons(lines: Sequence[TextLine]) -> tuple[list[TextLine], tuple[Box, ...]]:
    """Return the lines without those that are icons, and the boxes of the icons."""
    script = sum(has_cjk(line.text) for line in lines if len(line.text) > 1) > 0
    icons = {at for at, line in enumerate(lines) if _is_icon(line, lines, chinese=script)}
    rest = [line for at, line in enumerate(lines) if at not in icons]
    return rest, tuple(lines[at].box for at in sorted(icons))


def _is_icon(line: TextLine, lines: Sequence[TextLine], *, chinese: bool) -> bool:
    text, box = line.text, line.box
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
