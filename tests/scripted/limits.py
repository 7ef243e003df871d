"""What providers refuse about a picture's bytes and pixels, in their own words."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.scripted.eye import Seen, look
from tests.scripted.talk import No, Picture

MB = 1024 * 1024

_ENUM = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
_DIMENSIONS = "{where}.data: At least one of the image dimensions exceed max allowed size"

ANTHROPIC_WORDS = {
    "format": "{where}.media_type: " + _ENUM,
    "base64": "{where}: invalid base64 data",
    "bytes": "{where}: image exceeds {limit_mb} MB maximum: {size} bytes > {limit} bytes",
    "pixels": "Could not process image",
    "mismatch": "{where}.data: Image does not match the provided media type {declared}",
    "edge": _DIMENSIONS + ": {limit} pixels",
    "many": _DIMENSIONS + " for many-image requests: {limit} pixels",
    "count": "request contains {size} images, exceeding the maximum of {limit} allowed per request",
    "request": "Request exceeds the maximum size",
}
CHAT_WORDS = {
    "format": "Invalid '{where}'. Expected a base64-encoded data URL with an image MIME type "
    "(e.g. 'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU='), but got unsupported MIME type '{declared}'.",
    "base64": "Invalid '{where}'. Expected a valid base64 value.",
    "bytes": "Invalid '{where}': the image is {size} bytes, more than the {limit} bytes allowed.",
    "pixels": "You uploaded an unsupported image. Please make sure your image is valid.",
    "mismatch": "Invalid '{where}': declared as {declared}, but it is {actual}.",
    "edge": "Invalid '{where}': the image is larger than {limit} pixels.",
    "many": "Invalid '{where}': with this many images none may be larger than {limit} pixels.",
    "count": ANTHROPIC_WORDS["count"],
    "request": "The request body is too large.",
}
GEMINI_WORDS = {
    "format": "Unsupported MIME type: {declared}",
    "base64": "Invalid value at '{where}.data' (TYPE_BYTES), Base64 decoding failed",
    "bytes": "Image exceeds the limit of {limit} bytes: {size}",
    "pixels": "Unable to process input image. Please retry or report in the troubleshooting guide.",
    "mismatch": "Provided image is not valid.",
    "edge": "Image dimensions exceed {limit} pixels.",
    "many": "Image dimensions exceed {limit} pixels.",
    "count": "Too many images in the request: {size}, up to {limit} are allowed.",
    "request": "Request payload size exceeds the limit.",
}
# The other wording that Anthropic gives for a wrong media type.
APPEARS_TO_BE = (
    "{where}: The image was specified using the {declared} media type, but the image appears to be a {actual} image"
)

_ALL = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


@dataclass(frozen=True, slots=True)
class Limits:
    """What one provider accepts; a limit of None is not checked."""

    encoded: int | None = None  # of one image, in characters of base64
    edge: int | None = None
    many: int = 20  # more images than this lower the edge to `many_edge`
    many_edge: int | None = None
    count: int | None = None
    request: int | None = None
    formats: frozenset[str] = _ALL
    trusts_media_type: bool = False  # False: what was declared must be what the bytes are
    words: Mapping[str, str] = field(default_factory=lambda: ANTHROPIC_WORDS)

    def no(self, which: str, status: int = 400, **blanks: object) -> No:
        kind = "request_too_large" if status == 413 else "invalid_request_error"
        return No(status, self.words[which].format(**blanks), kind)


ANTHROPIC = Limits(encoded=10 * MB, edge=8000, many_edge=2000, count=100, request=32 * MB)
BEDROCK = Limits(encoded=5 * MB, edge=8000, many_edge=2000, count=100, request=32 * MB)
OPENAI = Limits(count=1500, request=512 * MB, trusts_media_type=True, words=CHAT_WORDS)
RESPONSES = Limits(count=1500, request=512 * MB, words=CHAT_WORDS)
GEMINI = Limits(
    count=3600, request=100 * MB, words=GEMINI_WORDS,
    formats=frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
)  # fmt: skip
DEEPSEEK_CHAT = Limits(
    encoded=32 * MB, edge=8192, many=14, many_edge=4096, count=600, request=48 * MB,
    trusts_media_type=True, words=CHAT_WORDS,
)  # fmt: skip
DEEPSEEK_MESSAGES = Limits(
    encoded=32 * MB, edge=8192, many=14, many_edge=4096, count=600, request=48 * MB, trusts_media_type=True
)


def inspect(pictures: Sequence[Picture], limits: Limits) -> list[Seen] | No:
    """What every picture shows, or the first thing that the provider does not accept."""
    if limits.count is not None and len(pictures) > limits.count:
        return limits.no("count", size=len(pictures), limit=limits.count)
    seen = []
    for picture in pictures:
        one = _inspect_one(picture, limits, many=len(pictures) > limits.many)
        if isinstance(one, No):
            return one
        seen.append(one)
    return seen


def _inspect_one(picture: Picture, limits: Limits, *, many: bool) -> Seen | No:
    where, declared, size = picture.where, picture.media_type, len(picture.base64)
    if declared not in limits.formats:
        return limits.no("format", where=where, declared=declared)
    if limits.encoded is not None and size > limits.encoded:
        return limits.no("bytes", where=where, size=size, limit=limits.encoded, limit_mb=limits.encoded // MB)
    try:
        data = base64.b64decode(picture.base64, validate=True)
    except binascii.Error:
        return limits.no("base64", where=where)
    seen = look(data)
    if seen is None:
        return limits.no("pixels")
    actual = f"image/{seen.format}"
    if actual not in limits.formats:
        return limits.no("pixels")
    if actual != declared and not limits.trusts_media_type:
        return limits.no("mismatch", where=where, declared=declared, actual=actual)
    for which, limit in (("edge", limits.edge), ("many", limits.many_edge if many else None)):
        if limit is not None and max(seen.width, seen.height) > limit:
            return limits.no(which, where=where, limit=limit)
    return seen
