"""Which regions are bars: those that stand on a common base, or on each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from sightline.model.geometry import Box
from sightline.seers.local.axes import Axis, Picture, Text
from sightline.seers.local.boxes import flipped, inside
from sightline.seers.local.captions import SAME, SEEN
from sightline.seers.local.colours import apart, commonest, cut, distance
from sightline.seers.local.mending import THIN, mended, thickened, widened
from sightline.seers.local.regions import Pixels, Region
from sightline.seers.local.seen import Colour

NEAR = 4.0  # pixels: edges that meet, with a border or an axis between them; more where letters are large


@dataclass(frozen=True, slots=True)
class Bar:
    box: Box
    colour: Colour
    base: float  # where it begins,
    tip: float  # and where it ends


def bars_of(picture: Picture, axis: Axis, plot: Box) -> list[Bar]:
    """The bars in a plot, on the side of the axis where its labels let one expect them, else on the other."""
    grounds = _grounds(picture, axis)
    labels = axis.box
    candidates = [
        region
        for region in thickened(picture.regions, picture.em)
        if inside(region.box, plot, slack=0)
        and region.filled >= 0.72
        and min(region.sides, region.ends) >= 0.6
        and region.box.width >= THIN
        and all(distance(region.colour, ground) >= SEEN for ground in grounds)
        and not labels.x - 2 <= region.box.x + region.box.width / 2 <= labels.right + 2
        and not any(inside(region.box, text.box, slack=1) or _swatch(picture, region, text) for text in picture.texts)
    ]
    pieces = mended(widened(picture.pixels, mended(candidates)))
    near = max(NEAR, 0.4 * picture.em)
    after = [piece for piece in pieces if piece.box.x >= labels.right]
    before = [piece for piece in pieces if piece.box.right <= labels.x]
    for side in (before, after) if picture.turned else (after, before):  # labels stand at the left, or below
        base = _base(axis, side, near)
        if base is not None and (bars := _stacked(side, base, near)):
            return bars
    return []


def _swatch(picture: Picture, region: Region, text: Text) -> bool:
    """A small square right before a name belongs to the legend."""
    box, word = (flipped(region.box), flipped(text.box)) if picture.turned else (region.box, text.box)
    small = max(box.width, box.height) <= 1.6 * picture.em and text.number is None
    return small and 0 <= word.x - box.right <= 1.5 * picture.em and word.y <= box.y + box.height / 2 <= word.bottom


def _grounds(picture: Picture, axis: Axis) -> set[Colour]:
    """What the labels stand on, and what the plot is drawn on: a colour of the margin that is no rarer at the tips."""
    box = axis.box
    found = {commonest(cut(picture.pixels, box, more=2).reshape(-1, 3))}
    tips, feet = _bands(picture, axis)
    for away in (8, 13, 18, 23):
        for start in (box.right + away, box.x - away - 4):
            strip = cut(picture.pixels, Box(max(0, start), box.y, 4, box.height)).reshape(-1, 3)
            if start < 0 or not len(strip) or (colour := commonest(strip)) in found:
                continue
            if _share(strip, colour) < 0.6 or not _crosses(picture, axis, colour):
                continue
            if _share(tips, colour) >= _share(feet, colour) - 0.02:
                found.add(colour)
    return found


def _crosses(picture: Picture, axis: Axis, colour: Colour) -> bool:
    """Whether a colour goes all along the axis somewhere: the ground does between bars, and a piece of one does not."""
    low, high = axis.span
    zero = axis.at(0.0)
    if zero is not None and low - 1.3 * axis.pitch <= zero <= high + 1.3 * axis.pitch:
        low, high = min(low, zero), max(high, zero)
    rows = picture.pixels[max(0, int(low)) : int(high) + 1 : 2, ::2]
    return bool(((apart(rows.reshape(-1, 3), colour) <= 4).reshape(rows.shape[:2]).mean(axis=0) >= 0.85).any())


def _bands(picture: Picture, axis: Axis) -> tuple[Pixels, Pixels]:
    """Pixels where only the longest bars reach, and where nearly all do."""
    low, high = axis.span
    zero = axis.at(0.0)
    if zero is None or not low - axis.pitch <= zero <= high + axis.pitch:
        zero = high if axis.slope < 0 else low
    far, inward = (low, 1) if abs(low - zero) > abs(high - zero) else (high, -1)
    near = -inward
    ends = ((far, inward), (zero, near))
    bands = []
    for end, step in ends:
        one, other = sorted((int(end + step * 0.15 * axis.pitch), int(end + step * 0.35 * axis.pitch)))
        bands.append(picture.pixels[max(0, one) : max(0, other) + 1].reshape(-1, 3))
    return bands[0], bands[1]


def _share(flat: Pixels, colour: Colour) -> float:
    return float((apart(flat, colour) <= 4).mean()) if len(flat) else 0.0


def _base(axis: Axis, pieces: Sequence[Region], near: float) -> float | None:
    """Where the bars begin: at nought when the axis has it, else where most of them do."""
    low, high = axis.span
    zero = axis.at(0.0)
    if zero is not None and low - 1.3 * axis.pitch <= zero <= high + 1.3 * axis.pitch:
        return zero if any(_meets(piece, zero, near) for piece in pieces) else None
    far = high if axis.slope < 0 else low
    ends = [piece.box.bottom if axis.slope < 0 else piece.box.y for piece in pieces]
    last = [end for end in ends if abs(end - far) <= 0.8 * axis.pitch]
    if len(last) < 2:
        return None
    counted = [(sum(abs(end - other) <= 2 for other in last), end) for end in last]
    count, end = max(counted)
    return float(end) if count >= 2 else None


def _stacked(pieces: Sequence[Region], base: float, near: float) -> list[Bar]:
    """The pieces that stand on the base or on each other, both ways from it, all as wide as most."""
    on_it = [piece for piece in pieces if _meets(piece, base, near)]
    wide = [piece.box.width for piece in on_it if piece.box.height > 2]  # anything lower may be a line
    if not wide:
        return []
    width = median(wide)
    left = [piece for piece in pieces if abs(piece.box.width - width) <= max(3, 0.15 * width)]
    bars: list[Bar] = []
    for up in (True, False):
        tips: list[tuple[float, Box | None]] = [(base, None)]
        while tips:
            level, below = tips.pop()
            for piece in _next(left, level, below, near, up=up):
                left.remove(piece)
                tip = float(piece.box.y if up else piece.box.bottom)
                bars.append(Bar(piece.box, piece.colour, level, tip))
                tips.append((tip, piece.box))
    thick = [bar.colour for bar in bars if bar.box.height > NEAR]
    shown = [bar for bar in bars if not thick or any(distance(bar.colour, colour) <= SAME for colour in thick)]
    return sorted(shown, key=lambda bar: (bar.box.x, -bar.box.y))


def _next(pieces: Sequence[Region], level: float, below: Box | None, near: float, *, up: bool) -> list[Region]:
    """The pieces that begin at a level, on top of another if there is one; of two in one place, the nearer."""

    def away(piece: Region) -> tuple[bool, float]:
        return piece.box.height <= 2, abs((piece.box.bottom if up else piece.box.y) - level)  # lines come last

    found: list[Region] = []
    for piece in sorted(pieces, key=away):
        start, end = (piece.box.bottom, piece.box.y) if up else (piece.box.y, piece.box.bottom)
        aligned = below is None or (abs(piece.box.x - below.x) <= 2 and abs(piece.box.right - below.right) <= 2)
        free = all(piece.box.x >= other.box.right or piece.box.right <= other.box.x for other in found)
        if abs(start - level) <= near and (end < level) == up and aligned and free:
            found.append(piece)
    return found


def _meets(piece: Region, base: float, near: float) -> bool:
    return min(abs(piece.box.bottom - base), abs(piece.box.y - base)) <= near
