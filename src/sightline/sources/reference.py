"""References to images as a model or a person writes them: an image of the record, a web address, or a path."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sightline.model.geometry import Box
from sightline.model.refusal import Refusal

_DIGITS = 64
_FEWEST_DIGITS = 12
_LONGEST = 8192
_STORED = re.compile(r"sha256:([0-9a-f]*)(?:#crop:(.*))?", re.IGNORECASE | re.ASCII | re.DOTALL)
_CROP = re.compile(r"([0-9]{1,7}),([0-9]{1,7}),([0-9]{1,7}),([0-9]{1,7})", re.ASCII)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE | re.ASCII)
_REMEDY = "write sha256: and at least 12 hex digits"


@dataclass(frozen=True, slots=True)
class Stored:
    """An image of the record, by the beginning of its hash, and perhaps the part of it that is meant."""

    sha256: str  # 12 to 64 hex digits, lower case
    crop: Box | None = None

    @property
    def exact(self) -> bool:
        return len(self.sha256) == _DIGITS


@dataclass(frozen=True, slots=True)
class Named:
    """A path, not looked at yet."""

    path: str


@dataclass(frozen=True, slots=True)
class Address:
    """A web address, not looked at yet."""

    url: str


Reference = Stored | Named | Address


def parse(text: str) -> Reference | Refusal:
    bare = text.strip()
    if not bare or len(text) > _LONGEST:
        return Refusal("invalid_input", "that is no reference to an image", "give a path, or sha256: of an image")
    if bare[:5].lower() == "data:":
        return Refusal("invalid_input", "an image itself is no reference to one", "give a path, or sha256: of an image")
    if bare[:7].lower() == "sha256:":
        return _stored(bare)
    if _ADDRESS.match(bare):
        return Address(bare)
    return Named(text)


def only(stored: Stored, found: Sequence[str]) -> str | Refusal:
    """The one image that a reference means, among those of the record that it fits."""
    images = sorted(set(found))
    if len(images) == 1:
        return images[0]
    if not images:
        return Refusal(
            "not_found", f"the record holds no image sha256:{stored.sha256[:_FEWEST_DIGITS]}…", "view its source again"
        )
    return Refusal("invalid_input", f"sha256:{stored.sha256} fits {len(images)} images", "write more of its digits")


def _stored(text: str) -> Stored | Refusal:
    match = _STORED.fullmatch(text)
    if match is None:
        return Refusal("invalid_input", "after sha256: stand hex digits, and perhaps #crop:x,y,w,h", _REMEDY)
    digits, crop = match[1].lower(), match[2]
    if not _FEWEST_DIGITS <= len(digits) <= _DIGITS:
        return Refusal("invalid_input", f"an image is not named by {len(digits)} hex digits", _REMEDY)
    if crop is None:
        return Stored(digits)
    sides = _CROP.fullmatch(crop)
    if sides is None or not int(sides[3]) or not int(sides[4]):
        return Refusal("invalid_input", "the crop of the reference is none", "write #crop:X,Y,WIDTH,HEIGHT in pixels")
    x, y, width, height = map(int, sides.groups())
    return Stored(digits, Box(x, y, width, height))
