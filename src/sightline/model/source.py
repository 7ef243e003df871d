"""Where the bytes of a sight come from, before anybody has read them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Inline:
    """Base64 text that stands in the body, not decoded yet. Two inlines are equal when their text is."""

    key: str  # a cryptographic hash of `text`: an image that is sent again costs no second decode
    declared: str  # the media type as the client declares it; it may lie, or be empty
    text: bytes | bytearray | memoryview = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Link:
    """An address that the provider is meant to fetch. Never fetched to be measured."""

    url: str


@dataclass(frozen=True, slots=True)
class Opaque:
    """A reference that only the provider can resolve, such as the id of an uploaded file."""

    reference: str


Source = Inline | Link | Opaque
