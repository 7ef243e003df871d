"""Bars put together again: thin ones out of strips, others where a line or a label has cut them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from sightline.model.geometry import Box
from sightline.seers.local.boxes import union
from sightline.seers.local.colours import distance
from sightline.seers.local.regions import Pixels, Region

THIN = 3  # pixels, the least width of a bar
SAME_BAR = 30  # what a strip of a bar may differ by from the rest, where an edge or a line is mixed into it


def thickened(regions: Sequence[Region], em: float) -> list[Region]:
    """Strips of one thin bar put together: its edges are softer than what lies between them."""
    strips = sorted(
        (region for region in regions if region.box.width <= THIN and region.box.height > 2 * em),
        key=lambda region: region.box.x,
    )
    joined: list[list[Region]] = []
    for strip in strips:
        beside = next((each for each in joined if _continues(each[-1], strip)), None)
        if beside is None:
            joined.append([strip])
        else:
            beside.append(strip)
    thick = [each for each in joined if len(each) > 1]
    used = {id(region) for each in thick for region in each}
    whole = [
        replace(max(each, key=lambda region: (region.area, -each.index(region))), area=sum(one.area for one in each),
                box=union(region.box for region in each))
        for each in thick
    ]  # fmt: skip
    return [*(region for region in regions if id(region) not in used), *whole]


def _continues(one: Region, other: Region) -> bool:
    level = abs(one.box.y - other.box.y) <= 2 and abs(one.box.bottom - other.box.bottom) <= 2
    return level and other.box.x == one.box.right and distance(one.colour, other.colour) <= SAME_BAR


def mended(candidates: Iterable[Region]) -> list[Region]:
    """Pieces of one bar that a grid line or a label has cut, put together."""
    mended: list[Region] = []
    for region in sorted(candidates, key=lambda each: each.box.y):
        for place, above in enumerate(mended):
            if 0 <= region.box.y - above.box.bottom <= 3 and _one(above, region):
                thicker = max(above, region, key=lambda each: each.box.height)
                y = above.box.y
                whole = Box(thicker.box.x, y, thicker.box.width, region.box.bottom - y)
                mended[place] = replace(thicker, box=whole, area=above.area + region.area)
                break
        else:
            mended.append(region)
    return mended


def _one(above: Region, below: Region) -> bool:
    """Whether two pieces are of one bar: the same colour and width, or one of them just its edge."""
    one, other = above.box, below.box
    low = min(one.height, other.height)
    level = abs(one.x - other.x) <= 1 and abs(one.right - other.right) <= 1
    within = abs(one.x - other.x) <= 3 and abs(one.right - other.right) <= 3
    same = distance(above.colour, below.colour) <= (SAME_BAR if low <= THIN + 2 else 8)  # a line mixes its colour
    return (level and same) or (low <= 2 and within)


def widened(pixels: Pixels, pieces: Sequence[Region]) -> list[Region]:
    """Halves of one bar that a grid line has cut along, put together: the line goes on beyond the bar."""
    whole: list[Region] = []
    for region in sorted(pieces, key=lambda each: (each.box.x, each.box.y)):
        for place, left in enumerate(whole):
            gap = region.box.x - left.box.right
            if (
                0 < gap <= 3
                and distance(left.colour, region.colour) <= 8
                and abs(left.box.y - region.box.y) <= 1
                and abs(left.box.bottom - region.box.bottom) <= 1
                and _line_beyond(pixels, Box(left.box.right, left.box.y, gap, left.box.height))
            ):
                whole[place] = replace(left, box=union([left.box, region.box]), area=left.area + region.area)
                break
        else:
            whole.append(region)
    return whole


def _line_beyond(pixels: Pixels, gap: Box) -> bool:
    """Whether what parts two halves is also drawn outside of them."""
    x = gap.x + gap.width // 2
    if x < 4 or x + 5 > pixels.shape[1]:
        return False
    above, below = pixels[max(0, gap.y - 14) : max(0, gap.y - 2)], pixels[gap.bottom + 2 : gap.bottom + 14]
    rows = np.concatenate([above, below])[:, x - 4 : x + 5].astype(np.int16)  # some, for it may be dashed
    apart = np.minimum(np.abs(rows[:, 4] - rows[:, 0]).max(axis=1), np.abs(rows[:, 4] - rows[:, 8]).max(axis=1))
    return bool((apart > 4).sum() >= 2)
