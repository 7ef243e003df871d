"""What a seer is sent of an image: within its limits, and for one that gives coordinates in the size in which it sees.

Then nothing is resized on its way, and a place in the answer is at that place of what was sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sightline.grounding.families import GRIDS
from sightline.model.asking import LOCAL
from sightline.model.facts import NO_FORM
from sightline.model.geometry import Box, Size
from sightline.model.image import HELD_BYTES, Image, Picture, Target, base64_length
from sightline.model.ports import Seer
from sightline.model.refusal import Refusal
from sightline.passes.fit import target
from sightline.pixels.fit import fitted, task
from sightline.pixels.headers import animated
from sightline.pixels.part import AS_IT_IS
from sightline.pixels.worker import Workers
from sightline.profiles.families import family
from sightline.vision.results import VisionImage

_UNLIMITED = 1 << 40
_READ_PIXELS = HELD_BYTES // 4  # of an image that is read on this machine


def goal(seer: Seer, form: str, weights: Sequence[int]) -> Target:
    """What each of several images, of so many bytes, has to be: nothing of it is trimmed or moved."""
    each = replace(target(seer.limits, len(weights), sum(map(base64_length, weights))), plain=True)
    if seer.name == LOCAL:
        each = replace(each, pixels=_READ_PIXELS)
    return each if form == NO_FORM else replace(each, sizing=family(seer.name).sizing)


def takes_original(seer: Seer, goal: Target, mime: str, size: Size) -> bool:
    """Whether a seer is given the file as it is. The reader of this machine is: it turns and decodes images itself.

    To encode an image anew for it would only cost time, and may make the file heavier than any that is read.
    """
    return seer.name == LOCAL and mime in goal.formats and goal.takes(size)


def exactly(seer: Seer, form: str, size: Size, box: Box | None = None) -> dict[str, Any] | None:
    """The work of making it one size and no other; None: this way of writing coordinates does not ask for that."""
    grid = GRIDS.get(form)
    if grid is None:
        return None
    seen = grid.seen(size)
    return {
        "box": [box.x, box.y, box.width, box.height] if box else None,
        "size": [seen.width, seen.height],
        "formats": list(seer.limits.formats),
        "bytes": (seer.limits.encoded_bytes or _UNLIMITED) // 4 * 3,
    }


async def fit_images(
    workers: Workers, images: Sequence[VisionImage], seer: Seer, form: str, *, decoded: bool
) -> list[Image] | Refusal:
    """Return the images as a seer takes them: nothing of the parts that are meant is trimmed or moved.

    `decoded`: every image is decoded before it is sent, and only the first frame of an animation is sent.
    """
    each, made = goal(seer, form, [len(one.image.data) for one in images]), []
    for one in images:
        work = exactly(seer, form, one.size, one.box)
        if one.box is None and takes_original(seer, each, one.image.mime, one.size):
            fitted_one: Image | Refusal = one.image
        elif work is not None:
            fitted_one = await _fit_exactly(workers, one.image, work)
        else:
            fitted_one = await _fit_within(workers, one, each, decoded=decoded)
        if isinstance(fitted_one, Refusal):
            return fitted_one
        made.append(fitted_one)
    return made


async def _fit_exactly(workers: Workers, image: Image, work: dict[str, Any]) -> Image | Refusal:
    made = await workers.run("exact", image.data, work)
    if isinstance(made, Refusal):
        return made
    return Image(hashlib.sha256(made.data).hexdigest(), made.facts["mime"], Size(*made.facts["size"]), made.data)


async def _fit_within(workers: Workers, one: VisionImage, goal: Target, *, decoded: bool) -> Image | Refusal:
    """Return the very bytes where they will do: upright, since not every seer reads what a header says of that."""
    image, box = one.image, one.box
    light = not decoded or (len(image.data) <= AS_IT_IS and not animated(image.data))
    admitted = goal.admits(Picture(image.mime, image.size, len(image.data)), base64_length(len(image.data)))
    if box is None and light and admitted and not image.turned:
        checked = await workers.run("check", image.data) if decoded else None
        return checked if isinstance(checked, Refusal) else image
    work = task(replace(goal, images=1, plain=True))
    if box is None:
        made = await workers.run("fit", image.data, work)
    else:
        sides = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
        made = await workers.run("part", image.data, {**work, "crop": {"pixels": sides}})
    return made if isinstance(made, Refusal) else fitted(made.facts, made.data).parts[0].image
