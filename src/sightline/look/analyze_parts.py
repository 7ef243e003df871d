"""The images of a look: found, what of each is meant, and the pixels of it that a seer is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from sightline.look.analyze_asking import Asking
from sightline.look.doors import Door
from sightline.look.views import Found, bitmap, shown_of
from sightline.model.crop import Crop, Pixels, resolve
from sightline.model.geometry import Box, Size
from sightline.model.image import Image, Picture
from sightline.model.ports import Seer
from sightline.model.refusal import Refusal
from sightline.pixels.decode_limits import within_bounds
from sightline.vision.fitting import exact, exactly, goal, takes_original


@dataclass(frozen=True, slots=True)
class Part:
    """An image that was found, and what of it is meant."""

    found: Found
    picture: Picture
    sha256: str
    box: Box | None = None

    @property
    def id(self) -> str:
        return f"{self.sha256}#{self.box}" if self.box else self.sha256

    @property
    def size(self) -> Size:
        return self.box.size if self.box else self.picture.size

    @property
    def whole(self) -> Image:
        return Image(self.sha256, self.picture.mime, self.picture.size, self.found.data, self.picture.turned)


def parts_of(door: Door, asking: Asking) -> list[Part] | Refusal:
    parts = []
    for index, reference in enumerate(asking.images):
        part = _part(door, reference, asking.crops.get(index))
        if isinstance(part, Refusal):
            return part if len(asking.images) == 1 else replace(part, what=f"image {index}: {part.what}")
        parts.append(part)
    return parts


def _part(door: Door, reference: object, crop: Crop | None) -> Part | Refusal:
    """What is meant, in pixels: equal crops are equal here, in whatever form they were asked for."""
    found = bitmap(door, reference, crop, None, None)
    picture = found if isinstance(found, Refusal) else within_bounds(found.data)
    if isinstance(found, Refusal) or isinstance(picture, Refusal):
        return cast("Refusal", picture)
    box = resolve(found.crop, picture.size) if found.crop else None
    if isinstance(box, Refusal):
        return box
    return Part(found, picture, hashlib.sha256(found.data).hexdigest(), box)


def sent_to(door: Door, seer: Seer, form: str, parts: Sequence[Part]) -> list[Image] | Refusal:
    """The pixels that are meant, as the seer takes them: nothing of them is trimmed or moved."""
    fitting = replace(door, target=goal(seer, form, [len(each.found.data) for each in parts]))
    sent = []
    for part in parts:
        work = exactly(seer, form, part.size, part.box)
        if part.box is None and takes_original(seer, fitting.target, part.picture.mime, part.size):
            one: Image | Refusal = part.whole
        else:
            one = _fitting(fitting, part) if work is None else _made(door, part, work)
        if isinstance(one, Refusal):
            return one
        sent.append(one)
    return sent


def _fitting(door: Door, part: Part) -> Image | Refusal:
    box = part.box
    cropped = replace(part.found, crop=Pixels(box.x, box.y, box.width, box.height) if box else None)
    shown = shown_of(door, cropped, part.picture)
    if isinstance(shown, Refusal):
        return shown
    return shown.image or Image(part.sha256, part.picture.mime, shown.whole, part.found.data)


def _made(door: Door, part: Part, work: Mapping[str, Any]) -> Image | Refusal:
    made = door.workers.ask("exact", part.found.data, dict(work))
    return made if isinstance(made, Refusal) else exact(made)
