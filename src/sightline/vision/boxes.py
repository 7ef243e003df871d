"""What an answer points at, in pixels of the original images; and the blocks in which an agent reads that."""

from __future__ import annotations

from collections.abc import Sequence

from sightline.grounding.parse import Found, parse
from sightline.grounding.place import Placed, boxes_block, shown, to_original
from sightline.model.asking import Spot
from sightline.model.facts import Member


def placed(text: str, form: str, images: Sequence[Member]) -> tuple[Placed, ...]:
    """All that the words of an answer point at."""
    found = parse(text, form, [each.seen for each in images])
    views = [shown(each.size, each.seen, each.box) for each in images]
    lost = (Placed(None, each.label, each.values, None, each.flag) for each in found if each.image is None)
    return (*(to_original(each, views[each.image]) for each in found if each.image is not None), *lost)


def measured(spots: Sequence[Spot], images: Sequence[Member]) -> tuple[Placed, ...]:
    """All that a seer has told beside its words."""
    views = [shown(each.size, each.seen, each.box) for each in images]
    found = []
    for spot in spots:
        corners = (float(spot.box.x), float(spot.box.y), float(spot.box.right), float(spot.box.bottom))
        found.append(to_original(Found(spot.image, spot.label, corners, corners), views[spot.image]))
    return tuple(found)


def blocks(images: Sequence[Member], found: Sequence[Placed], room: int) -> str:
    """The boxes of each image; those of none stand with the first. So many as there is room for."""
    while len(whole := _blocks(images, found)) > room and found:
        found = found[: len(found) * 3 // 4]
    return whole


def _blocks(images: Sequence[Member], found: Sequence[Placed]) -> str:
    return "\n".join(
        boxes_block(f"sha256:{each.sha256}", each.size, own)
        for index, each in enumerate(images)
        if (own := [one for one in found if one.image == index or (one.image is None and index == 0)])
    )
