"""Where the bytes of a sight come from, before anybody has read them."""

from __future__ import annotations

from dataclasses import dataclass, field

from blake3 import blake3

from sightline.model.value import value

_SAMPLE = 32
_HASHED_WHOLE = 4096  # letters: many short ones may come at once, and be alike at both ends


@dataclass(frozen=True, eq=False)
class Inline:
    """Base64 text that stands in the body, not decoded yet. Two inlines are equal when their text is."""

    declared: str  # the media type as the client declares it; it may lie, or be empty
    text: bytes | bytearray | memoryview = field(repr=False)
    leaf: str = field(default="", repr=False)  # how the text stands in the tree of the body, perhaps lifted out

    # Both are found out once. `functools.cached_property` would take a lock for it on Python 3.11, for each image.
    @property
    def key(self) -> str:
        """Names the image across requests, without a decode. Taken only when somebody asks: it reads every byte."""
        known: str | None = self.__dict__.get("_key")
        if known is None:
            known = self.__dict__["_key"] = blake3(self.text).hexdigest()
        return known

    @property
    def is_named(self) -> bool:
        return "_key" in self.__dict__

    def named(self, key: str) -> None:
        """By somebody who holds the same text, and its key."""
        self.__dict__["_key"] = key

    def __hash__(self) -> int:
        known: int | None = self.__dict__.get("_sample")
        if known is None:
            known = self.__dict__["_sample"] = hash(_sample(self.text))
        return known

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return isinstance(other, Inline) and (self.declared, self.key) == (other.declared, other.key)


def _sample(text: bytes | bytearray | memoryview) -> tuple[int | bytes, ...]:
    """Return what two images that are not the same hardly ever share."""
    length = len(text)
    if length <= _HASHED_WHOLE:
        return length, bytes(text)
    middle = length // 2
    return length, bytes(text[:_SAMPLE]), bytes(text[middle : middle + _SAMPLE]), bytes(text[-_SAMPLE:])


@value
class Link:
    """An address that the provider is meant to fetch. Never fetched to be measured."""

    url: str


@value
class Opaque:
    """A reference that only the provider can resolve, such as the id of an uploaded file."""

    reference: str


Source = Inline | Link | Opaque
