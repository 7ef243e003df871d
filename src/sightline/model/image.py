"""Pictures: what a header tells, and bytes ready to be sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from sightline.model.geometry import Size


@dataclass(frozen=True, slots=True)
class Picture:
    """What the first bytes of an image say about it."""

    mime: str  # from the bytes, never from a name or a declaration
    size: Size  # as a person sees it: orientation applied
    bytes: int  # of the file, decoded
    turned: bool = False  # the header asks for a rotation or a mirror


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it can be sent to a provider."""

    sha256: str  # of the file's bytes, 64 hex digits
    mime: str
    size: Size
    data: bytes = field(compare=False, repr=False)  # the file's bytes
    turned: bool = False  # the header asks for a rotation or a mirror, and `size` has it applied


@dataclass(frozen=True, slots=True)
class Target:
    """What an image has to become: the limits of whoever will look at it."""

    formats: tuple[str, ...]  # media types, the preferred ones first
    encoded_bytes: int | None = None  # of the base64 text
    edge: int | None = None

    def admits(self, picture: Picture, encoded: int) -> bool:
        return (
            picture.mime in self.formats
            and (self.encoded_bytes is None or encoded <= self.encoded_bytes)
            and (self.edge is None or picture.size.edge <= self.edge)
        )
