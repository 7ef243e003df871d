"""Base64 as wires write it: bare, or behind the prefix of a data URL; and whether it begins as an image does."""

from __future__ import annotations

import pybase64

from sightline.model.base64_text import PLAIN, STANDARD
from sightline.model.scene import Json
from sightline.model.source import Inline, Link, Source
from sightline.wire.jsontext import Buffer
from sightline.wire.shape import Texts

_MAY_BE_IMAGES = ("image/", "application/octet-stream")
_HEAD = 32  # base64 letters that tell the kind of an image
_SHORTEST = 64
_SIGNATURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"II*\0", b"MM\0*")
_FIRST = frozenset("dDi/_RSTUAQ")  # letters with which a data URL or the base64 of any of these begins
_BRANDS = (b"avif", b"avis", b"heic", b"heix", b"mif1", b"heif")
_LONGEST_LINE = 128
_SPACES = b" \t\r\n"


def inline(declared: str, leaf: str, texts: Texts) -> Inline:
    return Inline(declared.strip().lower(), texts.text_of(leaf), leaf)


def address(url: str, texts: Texts) -> Source | None:
    """What an image's URL points at: data that stands right there, or somewhere else; None for what is no image."""
    head, comma, payload = url.lstrip().partition(",")
    if comma and head[:5].lower() == "data:":
        declared = head[5:].partition(";")[0].strip().lower()
        may_be = declared.startswith(_MAY_BE_IMAGES) or not declared
        return Inline(declared, texts.text_of(payload), payload) if may_be else None
    return Link(url)


def pictured(url: Json, texts: Texts) -> Source | None:
    """The image that a file is, whose data URL says so."""
    return address(url, texts) if isinstance(url, str) and url[:11].lower() == "data:image/" else None


def picture_in(leaf: str, texts: Texts) -> Inline | None:
    """The image that a whole string is, when it is nothing else: base64 or a data URL, with an image's first bytes."""
    if leaf.lstrip()[:1] not in _FIRST and not leaf.lstrip().startswith(texts.token):
        return None
    head, comma, payload = leaf.lstrip().partition(",")
    declared = ""
    if comma and head[:5].lower() == "data:" and head[-7:].lower() == ";base64":
        declared, leaf = head[5:].partition(";")[0], payload
    elif texts.token not in leaf and len(leaf) < _SHORTEST:
        return None
    found = inline(declared, leaf, texts)
    return found if _begins_as_image(found.text) and _is_base64(bytes(found.text)) else None


def _is_base64(text: bytes) -> bool:
    """In either alphabet, on one line or wrapped; words after it would be letters too, but not lines of one length."""
    lines = text.strip(_SPACES).splitlines()
    lengths = {len(line) for line in lines[:-1]}
    wrapped = not lengths or (len(lengths) == 1 and len(lines[-1]) <= max(lengths) <= _LONGEST_LINE)
    return wrapped and not b"".join(lines).rstrip(b"=").translate(None, PLAIN + b"-_")


def _begins_as_image(text: Buffer) -> bool:
    try:
        letters = bytes(text[: 2 * _HEAD]).translate(STANDARD, _SPACES)[:_HEAD]
        head = pybase64.b64decode(letters[: len(letters) // 4 * 4], validate=True)
    except ValueError:
        return False
    return (
        head.startswith(_SIGNATURES)
        or (head.startswith(b"RIFF") and head[8:12] == b"WEBP")
        or (head[4:8] == b"ftyp" and head[8:12] in _BRANDS)
        or (head.startswith(b"BM") and head[6:10] == b"\0\0\0\0")
        or head.startswith(b"\0\0\1\0\1\0")
    )


def standard(source: Inline) -> str:
    """The payload in the alphabet that every wire takes, as it can stand in an edit."""
    if not bytes(source.text).translate(None, PLAIN + b"="):
        return source.leaf
    bare = b"".join(bytes(source.text).translate(STANDARD).split()).rstrip(b"=")
    return (bare + b"=" * (-len(bare) % 4)).decode("ascii", "replace")
