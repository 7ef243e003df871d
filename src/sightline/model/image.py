"""Images: the base64 text of their bytes, how providers resize them, their tokens, and limits that they must meet."""

from __future__ import annotations

import binascii
import json
import math
import re
from dataclasses import field, replace
from functools import lru_cache
from typing import assert_never

import pybase64

from sightline.model.geometry import PixelMap, Size
from sightline.model.refusal import Refusal
from sightline.model.value import value_class

STANDARD_ALPHABET = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
BASE64_CHARACTERS = STANDARD_ALPHABET + b"=_-"
"""All characters of base64 text."""

URLSAFE_TO_STANDARD = bytes.maketrans(b"-_", b"+/")
"""Translates the URL-safe alphabet into the standard one."""

BASE64_RUN_TABLE = bytes(0x41 if character in BASE64_CHARACTERS else 0x20 for character in range(256))
"""Translates base64 characters to `A` and all others to a space, so that long runs can be found fast."""

CHARACTERS_PER_TOKEN = 4
"""Characters of text per token, roughly, for every model."""


BytesLike = bytes | bytearray | memoryview
_PREFIX = re.compile(rb"data:[^,]*;base64,", re.IGNORECASE)
_MAX_PREFIX = 512
_WHITESPACE = b" \t\r\n\f\v"
_BREAKS = _WHITESPACE + b"\\"
_SAMPLE_LENGTH = 1024  # characters that show whether a text has line breaks or escapes


def strip_data_prefix(text: BytesLike) -> BytesLike:
    """Return the text without a data URL prefix, which some clients write where bare base64 belongs."""
    if not text or text[0] not in b"dD" or bytes(text[:5]).lower() != b"data:":
        return text
    prefix = _PREFIX.match(bytes(text[:_MAX_PREFIX]))
    return text[prefix.end() :] if prefix else text


def normalize_base64(text: bytes) -> bytes:
    """Return the text in the standard alphabet, without whitespace and with padding."""
    if b"\\" in text:
        text = _unescape_json(text)
    text = text.translate(URLSAFE_TO_STANDARD, _WHITESPACE)
    unpadded = text.rstrip(b"=")
    return unpadded + b"=" * (-len(unpadded) % 4)


def compute_base64_length(size: int) -> int:
    """Return the length of `size` bytes as base64, to convert a limit on bytes."""
    return 4 * -(-size // 3)


def compute_decoded_size(text: BytesLike) -> int:
    """Return how many bytes the text decodes to. Whitespace and escapes do not count."""
    text = strip_data_prefix(text)
    last = bytes(text[-4:])
    sample = bytes(text[:_SAMPLE_LENGTH]) + last
    if len(sample.translate(None, _BREAKS)) < len(sample):
        return len(normalize_base64(bytes(text)).rstrip(b"=")) * 3 // 4
    return (len(text) - len(last) + len(last.rstrip(b"="))) * 3 // 4


def decode_base64(text: BytesLike) -> bytes | Refusal:
    """Decode base64 text in either alphabet, with or without padding, line breaks and a data URL prefix."""
    return _decode_payload(strip_data_prefix(text))


def _decode_payload(text: BytesLike) -> bytes | Refusal:
    try:
        return pybase64.b64decode(text, validate=True)
    except binascii.Error:
        standard = normalize_base64(bytes(text))
    try:
        return pybase64.b64decode(standard, validate=True)
    except binascii.Error:
        return Refusal("corrupt", "the base64 text of the image is invalid", "send the image again")


def decode_head(text: BytesLike, size: int) -> bytes:
    """Decode at most the first `size` bytes, without decoding the rest; return b"" if the text is invalid."""
    text, quads = strip_data_prefix(text), 4 * -(-size // 3)
    found = _decode_payload(text[:quads])
    if isinstance(found, Refusal):  # line breaks and escapes take room: read more, and drop the incomplete end
        standard = normalize_base64(bytes(text[: 2 * quads])).rstrip(b"=")
        found = _decode_payload(standard[: len(standard) // 4 * 4][:quads])
    return b"" if isinstance(found, Refusal) else found[:size]


def _unescape_json(text: bytes) -> bytes:
    """Undo JSON escapes, since the text is taken from the body unparsed and some clients escape `/` and `+`."""
    try:
        value = json.loads(b'"%b"' % text, strict=False)
    except ValueError:
        return text
    return str(value).encode("ascii", "replace")


@value_class
class PaddedSizing:
    """Anthropic: each side, rounded up to a multiple of `patch`, within `edge`; and at most `max_tokens` patches."""

    edge: int = 1568
    max_tokens: int = 1568
    patch: int = 28


@value_class
class PatchSizing:
    """OpenAI's patch models: at most `max_patches` patches of 32 pixels and `edge` on the longer side."""

    max_patches: int | None = 1536
    edge: int | None = 2048
    multiplier: float = 1.0
    patch: int = 32


@value_class
class TileSizing:
    """OpenAI's tile models: within 2048 on each side, then the shorter side to 768, in tiles of 512."""

    base_tokens: int = 85
    tile_tokens: int = 170
    max_side: int = 2048
    short_side: int = 768
    tile_side: int = 512


@value_class
class CropSizing:
    """Gemini 2: one unit for a small image, else tiles whose side follows the shorter side."""

    tile_tokens: int = 258
    small_side: int = 384


@value_class
class FlatSizing:
    """A fixed price for any size; `edge` if the longer side is known to be reduced."""

    tokens: int
    edge: int | None = None


Sizing = PaddedSizing | PatchSizing | TileSizing | CropSizing | FlatSizing


def compute_seen_size(size: Size, rule: Sizing) -> Size:
    """Return the size in which the model sees an image of a given size."""
    match rule:
        case PaddedSizing():
            return _fit_to_padding(size, rule)
        case PatchSizing():
            return _fit_patches(size, rule)
        case TileSizing():
            inner = size.fit_within(rule.max_side)
            short = min(inner.width, inner.height)
            return inner if short <= rule.short_side else inner.scale(rule.short_side / short)
        case CropSizing():
            return size
        case FlatSizing():
            return size if rule.edge is None else size.fit_within(rule.edge)
        case _:
            assert_never(rule)


@lru_cache(4096)  # a conversation has many images of few sizes
def count_image_tokens(size: Size, rule: Sizing) -> int:
    """Return what an image of this size costs, in tokens."""
    inner = compute_seen_size(size, rule)
    match rule:
        case PaddedSizing():
            return _count_cells(inner, rule.patch)
        case PatchSizing():
            return math.ceil(_count_cells(inner, rule.patch) * rule.multiplier)
        case TileSizing():
            return rule.base_tokens + rule.tile_tokens * _count_cells(inner, rule.tile_side)
        case CropSizing():
            if inner.edge <= rule.small_side:
                return rule.tile_tokens
            unit = max(256, min(768, min(inner.width, inner.height) * 2 // 3))
            return rule.tile_tokens * math.ceil(inner.width / unit) * math.ceil(inner.height / unit)
        case FlatSizing():
            return rule.tokens
        case _:
            assert_never(rule)


def _count_cells(size: Size, side: int) -> int:
    return math.ceil(size.width / side) * math.ceil(size.height / side)


def _fit_to_padding(size: Size, rule: PaddedSizing) -> Size:
    """Return the largest size of the same shape that the rule admits, searching by the longer side."""

    def admits(one: Size) -> bool:
        sides = (math.ceil(one.width / rule.patch) * rule.patch, math.ceil(one.height / rule.patch) * rule.patch)
        return max(sides) <= rule.edge and _count_cells(one, rule.patch) <= rule.max_tokens

    if admits(size):
        return size
    low, high = 1, size.edge
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admits(_scale_to_edge(size, middle)) else (low, middle)
    return _scale_to_edge(size, low)


def _scale_to_edge(size: Size, edge: int) -> Size:
    if size.width >= size.height:
        return Size(edge, max(1, round(edge * size.height / size.width)))
    return Size(max(1, round(edge * size.width / size.height)), edge)


def _fit_patches(size: Size, rule: PatchSizing) -> Size:
    inner = size if rule.edge is None else size.fit_within(rule.edge)
    if rule.max_patches is None or _count_cells(inner, rule.patch) <= rule.max_patches:
        return inner
    scale = math.sqrt(rule.patch**2 * rule.max_patches / inner.pixels)
    across, down = inner.width * scale / rule.patch, inner.height * scale / rule.patch
    scale *= min(math.floor(across) / across, math.floor(down) / down)
    return Size(max(1, int(inner.width * scale)), max(1, int(inner.height * scale)))


LONG_RATIO = 2.0  # a page is long when its sides differ by this factor
LEGIBLE_SCALE = 0.7  # below it small text begins to be lost


def is_illegibly_tall(size: Size, rule: Sizing) -> bool:
    """Return whether the provider reduces a tall page so far that its small text is lost."""
    is_tall = size.height >= LONG_RATIO * size.width
    return is_tall and compute_seen_size(size, rule).height < LEGIBLE_SCALE * size.height


MAX_FILE_BYTES = 64 * 1024 * 1024  # of a file
MAX_UNCHANGED_BYTES = 8 * 1024 * 1024  # of a file that is shown or sent unchanged
MAX_EDGE = 65_535
MAX_PIXELS = 300_000_000  # of an image that is decoded row by row, or shrunk by its decoder
MAX_DECODED_PIXELS = 120_000_000  # of an image whose decoder holds all of it

WORKER_MEMORY = 528 * 1024 * 1024  # bytes of data; with its libraries a worker stays below 600 MB
MAX_BITMAP_BYTES = 192_000_000  # of one bitmap


@value_class
class ImageInfo:
    """What the header of an image says."""

    mime: str  # from the bytes, never from a file name or a declaration
    size: Size  # with the orientation applied
    bytes: int  # of the file, decoded
    is_rotated: bool = False  # the header asks for a rotation or a mirror
    is_animated: bool = False  # it has more than one frame


@value_class
class Image:
    """An image as it can be sent to a provider. Don't change it: it may be in a cache, under its sha256."""

    sha256: str  # of the file's bytes, 64 hex digits
    mime: str
    size: Size
    data: bytes = field(compare=False, repr=False)  # the file's bytes
    is_rotated: bool = False  # the header asks for a rotation or a mirror, and `size` has it applied

    @property
    def base64(self) -> str:
        return pybase64.b64encode_as_string(self.data)

    @property
    def data_url(self) -> str:
        return f"data:{self.mime};base64,{self.base64}"


@value_class
class PageOrigin:
    """What a picture of a page was made by, and which page of how many it is."""

    by: str  # the name of the renderer
    page: int
    pages: int
    has_text: bool | None = None  # whether the page has a text layer; None: such files have none


@value_class
class ImageSummary:
    """An image in the record, without its bytes."""

    sha256: str
    mime: str
    size: Size
    bytes: int
    path: str = ""  # where it was found last; empty: it did not come from a file


@value_class
class FitPart:
    """One of the images made from an original, and where its pixels were."""

    image: Image
    map: PixelMap
    note: str = ""  # what was done, for the model; empty if it is the whole image, perhaps smaller


@value_class
class FitResult:
    """An image made to fit: one image, or several in reading order."""

    parts: tuple[FitPart, ...]

    @property
    def note(self) -> str:
        return "; ".join(part.note for part in self.parts if part.note)


@value_class
class ImageTarget:
    """What an image must become: the limits of the model that will get it."""

    formats: tuple[str, ...]  # media types, the preferred ones first
    encoded_bytes: int | None = None  # of the base64 text of one image
    edge: int | None = None
    pixels: int | None = None
    sizing: Sizing | None = None  # how the provider resizes; the image is made so that it has nothing left to do
    tokens: int | None = None  # for all images together
    images: int = 1  # how many may replace it
    still: bool = False  # an animation becomes its first frame
    keeps_geometry: bool = False  # no trimming or moving, so that coordinates stay valid

    def accepts(self, picture: ImageInfo, encoded: int) -> bool:
        size, edge = picture.size, self.edge
        return (
            picture.mime in self.formats
            and (self.encoded_bytes is None or encoded <= self.encoded_bytes)
            and (edge is None or (size.width <= edge and size.height <= edge))
            and ((self.pixels is None and self.sizing is None) or self.accepts_size(size))  # the former nearly always
            and not (self.still and picture.is_animated)
        )

    def accepts_size(self, size: Size) -> bool:
        """Return whether an image of this size meets all limits and reaches the model without resizing."""
        return (
            (self.edge is None or size.edge <= self.edge)
            and (self.pixels is None or size.pixels <= self.pixels)
            and (self.sizing is None or compute_seen_size(size, self.sizing) == size)
            and (self.tokens is None or self.sizing is None or count_image_tokens(size, self.sizing) <= self.tokens)
        )

    def find_largest_size(self, size: Size) -> Size:
        """Return the largest size of the same shape that is accepted, or a single pixel."""
        if self.accepts_size(size):
            return size
        low, high = 1, size.edge
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.accepts_size(size.fit_within(middle)) else (low, middle)
        return size.fit_within(low)

    def split_between(self, images: int) -> ImageTarget:
        """Return the target of each image if several are sent."""
        return replace(self, images=1, tokens=None if self.tokens is None else max(1, self.tokens // images))
