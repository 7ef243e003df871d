"""Where the bytes of an image come from: a local file, the web, or the record; and references, which name an image.

Models and people write a reference as `sha256:` of an image in the record, as a URL, or as a path.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from sightline.model.geometry import Box
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

_DIGITS = 64
_MIN_DIGITS = 12
_MAX_LENGTH = 8192
# Patterns as text: most processes import this module and read no reference.
_STORED = r"(?ias)sha256:([0-9a-f]*)(?:#crop:(.*))?"
_CROP = r"([0-9]{1,7}),([0-9]{1,7}),([0-9]{1,7}),([0-9]{1,7})"
_ADDRESS = r"(?ia)[a-z][a-z0-9+.-]*://"
_REMEDY = "write sha256: and at least 12 hex digits"


@value_class
class RecordReference:
    """An image in the record, by the first digits of its hash, and optionally a crop of it."""

    sha256: str  # 12 to 64 hex digits, lower case
    crop: Box | None = None

    @property
    def is_exact(self) -> bool:
        return len(self.sha256) == _DIGITS


@value_class
class PathReference:
    """A path that has not been checked."""

    path: str


@value_class
class UrlReference:
    """A web address that has not been checked."""

    url: str


Reference = RecordReference | PathReference | UrlReference


def parse_reference(text: str) -> Reference | Refusal:
    bare = text.strip()
    if not bare or len(text) > _MAX_LENGTH:
        return Refusal(
            "invalid_input", "that is not a reference to an image", "give a path, or sha256: and the hash of an image"
        )
    if bare[:5].lower() == "data:":
        return Refusal(
            "invalid_input",
            "a data URL is not a reference to an image",
            "give a path, or sha256: and the hash of an image",
        )
    if bare[:7].lower() == "sha256:":
        return _parse_record_reference(bare)
    if re.match(_ADDRESS, bare):
        return UrlReference(bare)
    return PathReference(text)


def parse_file_url(url: str) -> str:
    """Return the path that a `file:` address names on this machine; empty: it is another address."""
    from urllib.request import url2pathname  # imports HTTP and email, too

    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    is_local = parts.scheme == "file" and parts.netloc in ("", "localhost")
    return url2pathname(parts.path) if is_local else ""


def choose_image(reference: RecordReference, candidates: Sequence[str]) -> str | Refusal:
    """Return the image that a reference means; `candidates` are the images in the record whose hash starts with it."""
    images = sorted(set(candidates))
    if len(images) == 1:
        return images[0]
    if not images:
        return Refusal(
            "not_found", f"the record has no image sha256:{reference.sha256[:_MIN_DIGITS]}…", "view its source again"
        )
    return Refusal(
        "invalid_input", f"sha256:{reference.sha256} matches {len(images)} images", "write more of its digits"
    )


def _parse_record_reference(text: str) -> RecordReference | Refusal:
    match = re.fullmatch(_STORED, text)
    if match is None:
        return Refusal("invalid_input", "sha256: must be followed by hex digits, and optionally #crop:x,y,w,h", _REMEDY)
    digits, crop = match[1].lower(), match[2]
    if not _MIN_DIGITS <= len(digits) <= _DIGITS:
        return Refusal("invalid_input", f"sha256: must be followed by 12 to 64 hex digits, not {len(digits)}", _REMEDY)
    if crop is None:
        return RecordReference(digits)
    sides_match = re.fullmatch(_CROP, crop)
    if sides_match is None or not int(sides_match[3]) or not int(sides_match[4]):
        return Refusal(
            "invalid_input", "the crop of the reference is invalid", "write #crop:X,Y,WIDTH,HEIGHT in pixels"
        )
    x, y, width, height = map(int, sides_match.groups())
    return RecordReference(digits, Box(x, y, width, height))
