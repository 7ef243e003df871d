"""Images in a body: base64 text, bare or as a data URL, and the blocks in which APIs and libraries put an image.

A client may pass on a block of another API or library than that of its upstream, which rejects it. So every wire reads
its own blocks itself, and all others with `find_foreign_source`. When it lowers those, it writes blocks of its own.
"""

from __future__ import annotations

import pybase64

from sightline.model.image import STANDARD_ALPHABET, URLSAFE_TO_STANDARD
from sightline.model.scene import InlineSource, Json, LinkSource, OpaqueSource, Source
from sightline.wire.json_tree import Block, Buffer, Texts, get_text, get_value

_POSSIBLE_IMAGE_TYPES = ("image/", "application/octet-stream")
_ORDINARY_HEADS = {f"data:image/{name};base64": f"image/{name}" for name in ("png", "jpeg", "webp", "gif")}
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
    head, comma, payload = url.partition(",")
    if comma and (ordinary := _ORDINARY_HEADS.get(head)):
        return InlineSource(ordinary, texts.expand_text(payload), payload)
    head = head.lstrip()
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


_WEB = ("https://", "http://")
_UNKNOWN_TYPES = ("", "application/octet-stream")  # media types that tell nothing
_MIME_KEYS = ("mimeType", "mime_type", "mediaType", "media_type")  # over all APIs, libraries and their versions
_FILE_TYPES = frozenset({"media", "image-data", "file-data", "file"})
_URL_TYPES = frozenset({"image_url", "input_image", "image-url"})
_RESOURCE_TYPES = frozenset({"resource", "resource_link"})
_UNTYPED_KEYS = frozenset({"inlineData", "inline_data", "image"})
_FOREIGN_TYPES = _FILE_TYPES | _URL_TYPES | _RESOURCE_TYPES | {"image"}


def find_foreign_source(block: Block, texts: Texts) -> Source | None:
    """Return the image of a block of any API or library; None for other blocks, and for files that a provider keeps."""
    kind = block.get("type")
    if kind == "text":  # as most blocks
        return None
    if kind is None:
        return _find_untyped_source(block, texts)
    if not isinstance(kind, str) or kind not in _FOREIGN_TYPES:
        return None
    if kind in _URL_TYPES:
        return _find_url_source(block, texts)
    if kind in _FILE_TYPES:
        return find_file_source(block, texts)
    found = find_base64_source(block, texts) or find_mcp_source(block, texts) or _find_library_source(block, texts)
    return None if isinstance(found, OpaqueSource) else found


def _find_untyped_source(block: Block, texts: Texts) -> Source | None:
    """Return the image of a block of Gemini (`inlineData`) or Bedrock (`image`): these have no type."""
    if block.keys().isdisjoint(_UNTYPED_KEYS):  # nearly always
        return None
    match block:
        case {"inlineData": {"data": str(data)} as blob} | {"inline_data": {"data": str(data)} as blob}:
            return build_inline(mime, data, texts) if (mime := get_mime(blob)).startswith("image/") else None
        case {"image": {"source": {"bytes": str(data)}} as image}:
            return build_inline(f"image/{get_text(image, 'format').lower()}", data, texts)
        case _:
            return None


def find_base64_source(block: Block, texts: Texts) -> Source | None:
    """Return the image of a block of the Messages API, whose `source` is an object."""
    # Lookups, not a pattern: a pattern takes several times as long, and this runs for every image.
    source = block.get("source")
    if not isinstance(source, dict):
        return None
    kind = source.get("type")
    if kind == "base64" and isinstance(data := source.get("data"), str):
        return build_inline(get_text(source, "media_type"), data, texts)
    if kind == "url" and isinstance(url := source.get("url"), str):
        return LinkSource(url)
    if kind == "file" and isinstance(reference := source.get("file_id"), str):
        return OpaqueSource(reference)
    return None


def find_mcp_source(block: Block, texts: Texts) -> Source | None:
    """Return the image of a block of MCP or ACP.

    Links to files don't count: the receiver opens them with its own permissions.
    """
    match block:
        case {"type": "image", "data": str(data)} if data:
            return _read_data(data, get_mime(block), texts)
        case {"type": "image", "uri": str(uri)} if uri.startswith(_WEB):
            return LinkSource(uri)
        case {"type": "resource", "resource": {"blob": str(blob)} as resource}:
            if (mime := get_mime(resource)).startswith("image/"):
                return _read_data(blob, mime, texts)
            return parse_image_string(blob, texts)
        case {"type": "resource_link", "uri": str(uri)} if uri.startswith(_WEB):
            return LinkSource(uri) if get_mime(block).startswith("image/") else None
        case _:
            return None


def find_file_source(block: Block, texts: Texts) -> Source | None:
    """Return the image of a file of the AI SDK or LangChain: its media type says so, or tells nothing."""
    mime = get_mime(block)
    source = read_file_data(block.get("data", block.get("base64")), mime, texts)
    if mime.startswith("image/"):
        return source
    return (
        parse_image_string(source.leaf, texts) if mime in _UNKNOWN_TYPES and isinstance(source, InlineSource) else None
    )


def read_file_data(data: Json, mime: str, texts: Texts) -> Source | None:
    """Return the source in a field that is base64, a data URL or an address; newer versions say which."""
    match data:
        case {"type": "data", "data": str(text)}:
            return build_inline(mime, text, texts)
        case {"type": "url", "url": str(text)} | str(text):
            return _read_data(text, mime, texts)
        case _:  # raw bytes of a program, which aren't JSON
            return None


def get_mime(holder: Json) -> str:
    """Return the media type that a block declares; SDKs have their own names for the field."""
    return next((found for key in _MIME_KEYS if (found := get_text(holder, key))), "").strip().lower()


def _find_url_source(block: Block, texts: Texts) -> Source | None:
    """Return the image of a block with an address: a string, or an object with one."""
    holder = block.get("image_url", block.get("url"))
    url = get_value(holder, "url") if isinstance(holder, dict) else holder
    return read_image_url(url, texts) if isinstance(url, str) and _is_url(url) else None


def _find_library_source(block: Block, texts: Texts) -> Source | None:
    """Return the image of a block of LangChain (`base64`, `url`) or of the AI SDK (`image`)."""
    for key in ("base64", "url", "image"):
        if isinstance(data := block.get(key), str) and data:
            return _read_data(data, get_mime(block), texts)
    return None


def _read_data(data: str, mime: str, texts: Texts) -> Source | None:
    """Read base64, or a URL, which some programs write instead."""
    return read_image_url(data, texts) if _is_url(data) else build_inline(mime, data, texts)


def _is_url(text: str) -> bool:
    return text.startswith(_WEB) or text[:5].lower() == "data:"
