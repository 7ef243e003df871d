"""What a seer is sent of an image: within its limits, and for one that gives coordinates in the size in which it sees.

Then nothing is resized on its way, and a place in the answer is at that place of what was sent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sightline.grounding.size import GRIDS
from sightline.model.asking import LOCAL
from sightline.model.facts import NO_FORM
from sightline.model.geometry import Box, Size
from sightline.model.image import Image, Target, base64_length
from sightline.model.limits import HELD_BYTES
from sightline.model.ports import Seer
from sightline.passes.fit import target
from sightline.pixels.worker import Reply
from sightline.profiles.families import family

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


def exact(made: Reply) -> Image:
    """The image that a worker has made."""
    return Image(hashlib.sha256(made.data).hexdigest(), made.facts["mime"], Size(*made.facts["size"]), made.data)
