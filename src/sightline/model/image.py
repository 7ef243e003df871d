"""Pictures: what a header tells, bytes ready to be sent, and the limits that they are made to fit."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pybase64

from sightline.model.geometry import Map, Size
from sightline.model.sizing import Sizing, seen, tokens
from sightline.model.value import value

MAX_BYTES = 64 * 1024 * 1024  # of a file
MAX_EDGE = 65_535
MAX_PIXELS = 300_000_000  # of an image that is decoded row by row, or shrunk by its decoder
MAX_WHOLE_PIXELS = 120_000_000  # of an image whose decoder holds all of it

WORKER_MEMORY = 528 * 1024 * 1024  # bytes of data; with the code of its libraries a worker stays below 600 MB
HELD_BYTES = 192_000_000  # of one bitmap


def base64_length(size: int) -> int:
    """The length of so many bytes as base64: what a limit on bytes means on a wire."""
    return 4 * -(-size // 3)


@value
class Picture:
    """What the first bytes of an image say about it."""

    mime: str  # from the bytes, never from a name or a declaration
    size: Size  # as a person sees it: orientation applied
    bytes: int  # of the file, decoded
    turned: bool = False  # the header asks for a rotation or a mirror
    moving: bool = False  # it has more than one frame


@dataclass(frozen=True, slots=True)
class Image:
    """An image as it can be sent to a provider."""

    sha256: str  # of the file's bytes, 64 hex digits
    mime: str
    size: Size
    data: bytes = field(compare=False, repr=False)  # the file's bytes
    turned: bool = False  # the header asks for a rotation or a mirror, and `size` has it applied

    @property
    def base64(self) -> str:
        return pybase64.b64encode_as_string(self.data)

    @property
    def data_url(self) -> str:
        return f"data:{self.mime};base64,{self.base64}"


@dataclass(frozen=True, slots=True)
class Kept:
    """An image of the record, without its bytes."""

    sha256: str
    mime: str
    size: Size
    bytes: int
    path: str = ""  # where it was found last; empty: it came by another way


@dataclass(frozen=True, slots=True)
class Part:
    """One of the images that stand for a picture, and where its pixels were."""

    image: Image
    map: Map
    words: str = ""  # what was done, for whoever looks at it; empty where it is the whole picture, perhaps smaller


@dataclass(frozen=True, slots=True)
class Fitted:
    """A picture made to fit: one image, or several in reading order."""

    parts: tuple[Part, ...]

    @property
    def words(self) -> str:
        return "; ".join(part.words for part in self.parts if part.words)


@dataclass(frozen=True, slots=True)
class Target:
    """What an image has to become: the limits of whoever will look at it."""

    formats: tuple[str, ...]  # media types, the preferred ones first
    encoded_bytes: int | None = None  # of the base64 text of one image
    edge: int | None = None
    pixels: int | None = None
    sizing: Sizing | None = None  # what the provider will do to an image; here it finds nothing left to do
    tokens: int | None = None  # for all images together
    images: int = 1  # how many may be sent in its place
    still: bool = False  # an animation becomes its first frame
    plain: bool = False  # nothing is cut away or moved: for whoever answers with coordinates

    def admits(self, picture: Picture, encoded: int) -> bool:
        return (
            picture.mime in self.formats
            and not (self.still and picture.moving)
            and (self.encoded_bytes is None or encoded <= self.encoded_bytes)
            and self.takes(picture.size)
        )

    def takes(self, size: Size) -> bool:
        """Whether an image of this size is within all limits and reaches the model pixel for pixel."""
        return (
            (self.edge is None or size.edge <= self.edge)
            and (self.pixels is None or size.pixels <= self.pixels)
            and (self.sizing is None or seen(size, self.sizing) == size)
            and (self.tokens is None or self.sizing is None or tokens(size, self.sizing) <= self.tokens)
        )

    def largest(self, size: Size) -> Size:
        """The largest size of the same shape that is taken; a single pixel where even that is too much."""
        if self.takes(size):
            return size
        low, high = 1, size.edge
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.takes(size.within(middle)) else (low, middle)
        return size.within(low)

    def shared(self, images: int) -> Target:
        """The limits of each one, when so many are sent."""
        return replace(self, images=1, tokens=None if self.tokens is None else max(1, self.tokens // images))
