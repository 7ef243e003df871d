"""Images that are base64 text in a body: bare, or as a data URL."""

from __future__ import annotations

import pybase64

from sightline.model.base64_text import STANDARD_ALPHABET, URLSAFE_TO_STANDARD
from sightline.model.scene import InlineSource, Json, LinkSource, Source
from sightline.wire.json_tree import Buffer, Texts

_POSSIBLE_IMAGE_TYPES = ("image/", "application/octet-stream")
_SIGNATURE_LETTERS = 32  # base64 letters that tell the format of an image
MIN_BASE64 = 64  # a shorter text is no image
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_FIRST_LETTERS = frozenset("dDi/_RSTUAQ")  # with which a data URL or the base64 of any of these begins
_BRANDS = (b"avif", b"avis", b"heic", b"heix", b"mif1", b"heif")
_MAX_LINE = 128
_SPACES = b" \t\r\n"


def build_inline(declared: str, leaf: str, texts: Texts) -> InlineSource:
    return InlineSource(declared.strip().lower(), texts.expand_text(leaf), leaf)


def read_image_url(url: str, texts: Texts) -> Source | None:
    """Return the image that a URL contains or points to; None for data that isn't an image."""
    head, comma, payload = url.lstrip().partition(",")
    if comma and head[:5].lower() == "data:":
        declared = head[5:].partition(";")[0].strip().lower()
        may_be_image = declared.startswith(_POSSIBLE_IMAGE_TYPES) or not declared
        return InlineSource(declared, texts.expand_text(payload), payload) if may_be_image else None
    return LinkSource(url)


def read_image_data_url(url: Json, texts: Texts) -> Source | None:
    """Return the image of a file whose data URL declares one."""
    return read_image_url(url, texts) if isinstance(url, str) and url[:11].lower() == "data:image/" else None


def parse_image_string(leaf: str, texts: Texts) -> InlineSource | None:
    """Return the image if the whole string is one: base64 or a data URL that decodes to the first bytes of an image."""
    if leaf.lstrip()[:1] not in _FIRST_LETTERS and not leaf.lstrip().startswith(texts.token):
        return None
    head, comma, payload = leaf.lstrip().partition(",")
    declared = ""
    if comma and head[:5].lower() == "data:" and head.lower().endswith((";base64", ";")):  # semantic-kernel: no name
        declared, leaf = head[5:].partition(";")[0], payload
    elif texts.token not in leaf and len(leaf) < MIN_BASE64:
        return None
    found = build_inline(declared, leaf, texts)
    return found if is_image_base64(found, min_length=0) else None


def is_image_base64(source: InlineSource, min_length: int = MIN_BASE64) -> bool:
    """Return whether a source is base64 of bytes that begin like an image."""
    long_enough = len(source.text) >= min_length
    return long_enough and _has_image_signature(source.text) and _is_base64(bytes(source.text))


def _is_base64(text: bytes) -> bool:
    """Return whether a text is base64, in either alphabet, on one line or wrapped.

    Words that follow are letters, too. But they don't make lines of one length.
    """
    lines = text.strip(_SPACES).splitlines()
    lengths = {len(line) for line in lines[:-1]}
    wrapped = not lengths or (len(lengths) == 1 and len(lines[-1]) <= max(lengths) <= _MAX_LINE)
    return wrapped and not b"".join(lines).rstrip(b"=").translate(None, STANDARD_ALPHABET + b"-_")


def _has_image_signature(text: Buffer) -> bool:
    try:
        letters = bytes(text[: 2 * _SIGNATURE_LETTERS]).translate(URLSAFE_TO_STANDARD, _SPACES)[:_SIGNATURE_LETTERS]
        head = pybase64.b64decode(letters[: len(letters) // 4 * 4], validate=True)
    except ValueError:
        return False
    return is_image_data(head)


def is_image_data(head: bytes) -> bool:
    """Return whether bytes begin like an image."""
    return (
        head.startswith(_SIGNATURES)
        or (head.startswith(b"RIFF") and head[8:12] == b"WEBP")
        or (head[4:8] == b"ftyp" and head[8:12] in _BRANDS)
        or (head.startswith(b"BM") and head[6:10] == b"\0\0\0\0")
        or head.startswith(b"\0\0\1\0\1\0")
    )


def to_standard_base64(source: InlineSource) -> str:
    """Return the payload in the alphabet that every wire accepts, as an edit can contain it."""
    if not bytes(source.text).translate(None, STANDARD_ALPHABET + b"="):
        return source.leaf
    bare = b"".join(bytes(source.text).translate(URLSAFE_TO_STANDARD).split()).rstrip(b"=")
    return (bare + b"=" * (-len(bare) % 4)).decode("ascii", "replace")
