"""A view that was given: its result as text, and the pixels that stood beside it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from sightline.model.image import Image


@dataclass(frozen=True, slots=True)
class Perception:
    result: str  # the JSON object that the caller got, as `json.dumps` writes it with sorted keys
    image: str  # sha256 of the whole image that was looked at
    pixels: Image  # what was shown of it
    words: str = ""  # that stood beside them

    @property
    def id(self) -> str:
        return perception_id(self.result)


def perception_id(result: str) -> str:
    """The result names its perception: whoever has kept the one finds the other."""
    return hashlib.sha256(result.encode("utf-8", "surrogatepass")).hexdigest()
