"""The images and files of a call, as programs give them: paths, bytes, file objects, addresses, and other objects."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

from sightline.api.session import ToolContext
from sightline.disk import LargeFile
from sightline.model.fence import replace_surrogates
from sightline.model.image import MAX_FILE_BYTES, Image, compute_decoded_size, decode_base64
from sightline.model.refusal import Refusal
from sightline.pixels.file_types import FileType, identify_file
from sightline.sources import files
from sightline.vision.background_loop import run_blocking

if TYPE_CHECKING:
    from PIL.Image import Image as PilImage

MIB = 1024 * 1024
_OPENING = 4096  # bytes that tell the kind of a file
_DOCUMENT_BYTES = 32 * MIB
ONE_FILE = Refusal("invalid_input", "give exactly one file", "as file_path, file_url or file_base64")
_TOO_LARGE = Refusal("too_large", f"the file is larger than {MAX_FILE_BYTES // MIB} MiB", "give a smaller one")
_NOT_AN_IMAGE = Refusal(
    "invalid_input",
    "this is not an image",
    "give a path, bytes, a file object, a PIL image or a sha256: reference",
)
_NOT_PIXELS = Refusal("invalid_input", "this array is not an image", "give rows of pixels, each 1, 3 or 4 times uint8")
_NO_IMAGE_INSIDE = Refusal("invalid_input", "there is no image in this result", "give a result that has one")


class ReadableFile(Protocol):
    """A file object, opened for reading bytes."""

    def read(self, size: int, /) -> bytes: ...


class PixelArray(Protocol):
    """An array of numpy: rows of pixels."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class BlockWithImage(Protocol):
    """A block of MCP."""

    @property
    def data(self) -> str: ...


class ResultWithImage(Protocol):
    """The result of a tool of MCP."""

    @property
    def content(self) -> Sequence[Any]: ...


class PageState(Protocol):
    """The state of a page in browser-use."""

    @property
    def screenshot(self) -> str | None: ...


class BrowserStep(Protocol):
    """A step in the history of browser-use."""

    @property
    def state(self) -> Any: ...


if TYPE_CHECKING:
    _ObjectWithImage = BlockWithImage | ResultWithImage | PageState | BrowserStep | Mapping[str, Any]
    _Bytes = bytes | bytearray | memoryview
    ImageInput = str | PurePath | _Bytes | ReadableFile | Image | PilImage | PixelArray | _ObjectWithImage
    """An image as a program gives it: a path, an address, a `sha256:` reference, the image, or an object with it."""


@dataclass(frozen=True, slots=True)
class GivenImage:
    """The bytes of an image that a program gave itself. A model's arguments never become one."""

    data: bytes = field(repr=False)
    name: str = ""


def read_image_input(value: object) -> object:
    """Return a reference as text, an image as `GivenImage`, or a Refusal. Other values are returned as they are."""
    match value:
        case str():
            return _decode_text(value) if value[:5].lower() == "data:" else value
        case PurePath():
            return str(value)
        case Image():
            return GivenImage(value.data)
        case bytes() | bytearray() | memoryview():
            return _check_bytes(bytes(value))
        case _:
            return _read_object(value)


def _read_object(value: object) -> object:
    """Return the image of a file object, a picture of PIL, an array of numpy or a result; another value as it is."""
    if callable(read := getattr(value, "read", None)):
        return _read_file_object(read, getattr(value, "name", ""))
    if callable(getattr(value, "save", None)) and hasattr(value, "mode"):
        return _encode_pil_image(value)
    if hasattr(value, "__array_interface__"):
        return _encode_array(value)
    return _open_object(value)


def _open_object(value: object) -> object:
    """Return the image in an object of MCP or browser-use, or the value itself if it is none of them."""
    read: Callable[[str], Any] = value.get if isinstance(value, Mapping) else lambda name: getattr(value, name, None)
    if read("type") == "image" and isinstance(data := read("data"), str):  # a block of MCP
        return _decode_text(data)
    if isinstance(blocks := read("content"), list):  # a result of MCP
        found = (_open_object(block) for block in blocks)
        return next((each for each in found if isinstance(each, GivenImage | Refusal)), _NO_IMAGE_INSIDE)
    state = read("state") or value  # a step of browser-use has a state; the summary of a page is one
    if callable(load := getattr(state, "get_screenshot", None)):
        return _decode_text(encoded) if isinstance(encoded := load(), str) else _NO_IMAGE_INSIDE
    if hasattr(state, "screenshot") and hasattr(state, "url"):
        return _decode_text(state.screenshot) if isinstance(state.screenshot, str) else _NO_IMAGE_INSIDE
    return value


def _decode_text(text: str) -> GivenImage | Refusal:
    """Return an image that is given as base64, or as a data URL."""
    raw = text.encode("utf-8", "replace")
    if compute_decoded_size(raw) > MAX_FILE_BYTES:
        return _TOO_LARGE
    data = decode_base64(raw)
    return data if isinstance(data, Refusal) else _check_bytes(data)


def _check_bytes(data: bytes, name: str = "") -> GivenImage | Refusal:
    if not data:
        return Refusal("corrupt", "the image has no bytes", "give all of its bytes")
    return _TOO_LARGE if len(data) > MAX_FILE_BYTES else GivenImage(data, name)


def _read_file_object(read: Any, name: object) -> GivenImage | Refusal:
    try:
        data = read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # a closed file is a ValueError
        return Refusal("not_found", f"the file object cannot be read: {error}", "open it again")
    if not isinstance(data, bytes):
        return Refusal("invalid_input", "the file object does not read bytes", 'open the file with mode "rb"')
    return _check_bytes(data, os.path.basename(name) if isinstance(name, str) else "")  # noqa: PTH119, any text


def _encode_pil_image(image: Any) -> GivenImage | Refusal:
    """Return a PIL image as PNG. A mode that PNG doesn't have, such as CMYK, is converted."""
    out = BytesIO()
    try:
        try:
            image.save(out, "PNG", compress_level=1)
        except OSError:
            out = BytesIO()
            image.convert("RGB").save(out, "PNG", compress_level=1)
    except (OSError, ValueError, TypeError):
        return _NOT_AN_IMAGE
    return _check_bytes(out.getvalue())


def _encode_array(array: Any) -> GivenImage | Refusal:
    """Return an array of numpy as PNG."""
    from PIL import Image as pil  # noqa: N813, a module

    try:
        return _encode_pil_image(pil.fromarray(array))
    except (TypeError, ValueError, KeyError):
        return _NOT_PIXELS


@dataclass(frozen=True, slots=True)
class InputFile:
    """The one file of a call, as it came."""

    data: bytes = field(repr=False)  # of a large file, only the beginning
    name: str = ""
    large: LargeFile | None = None  # the file, if it is too large for memory

    @property
    def sha256(self) -> str:
        return self.large.compute_sha256() if self.large else hashlib.sha256(self.data).hexdigest()

    @property
    def size(self) -> int:
        return self.large.size if self.large else len(self.data)

    @property
    def kind(self) -> FileType:
        return identify_file(self.data[:_OPENING])


def is_video(head: bytes) -> bool:
    """Return whether a file is a video, by its beginning."""
    return identify_file(head).family == "video"


def read_input_file(
    context: ToolContext, path: object = None, url: object = None, base64: object = None, *, open_videos: bool = False
) -> InputFile | Refusal:
    """Return the one file of a call, read by the rules of the argument that gives it.

    open_videos: a video on disk that is too large for memory is returned open; otherwise it is refused.
    """
    match [path, url, base64]:
        case [str() | PurePath() as named, None, None]:
            return _read_path(context, str(named), open_videos=open_videos)
        case [None, str(address), None]:
            return _fetch(context, address)
        case [None, None, str(text)]:
            return _decode(text)
        case [_, None, None] | [None, _, None] | [None, None, _] if (path, url, base64) != (None, None, None):
            return Refusal("invalid_input", "the file must be given as a string", "give its path, address or base64")
        case _:
            return ONE_FILE


def _read_path(context: ToolContext, path: str, *, open_videos: bool) -> InputFile | Refusal:
    if not PurePath(path).is_absolute():
        return Refusal("invalid_input", "file_path is not absolute", "give the absolute path")
    file = files.read_permitted_file(path, context.policy, may_stay_open=is_video if open_videos else None)
    return (
        replace(file, stage="file")
        if isinstance(file, Refusal)
        else InputFile(file.data, replace_surrogates(file.name), file.large)
    )


def _fetch(context: ToolContext, url: str) -> InputFile | Refusal:
    """Fetch the address of `file_url`. Naming it permits fetching it, even with the network off."""
    from sightline.net import WebGrant, fetch_web_file

    page = run_blocking(fetch_web_file(url, context.network or WebGrant(), max_bytes=_DOCUMENT_BYTES))
    return (
        replace(page, stage="address")
        if isinstance(page, Refusal)
        else InputFile(page.data, replace_surrogates(page.name))
    )


def _decode(text: str) -> InputFile | Refusal:
    raw = text.encode("utf-8", "replace")
    if compute_decoded_size(raw) > MAX_FILE_BYTES:
        return replace(_TOO_LARGE, stage="file")
    data = decode_base64(raw)
    if isinstance(data, Refusal):
        return replace(data, stage="file")
    return InputFile(data) if data else refuse_kind("the file is empty", "give its bytes")


def refuse_kind(what: str, remedy: str) -> Refusal:
    """Return the refusal of a file because of its kind."""
    return Refusal("unsupported_type", what, remedy, stage="file")


def check_size(file: InputFile) -> InputFile | Refusal:
    """Return a PDF or video, or refuse one that is too large to send."""
    if file.size > _DOCUMENT_BYTES:
        what = f"{file.kind.name} is larger than 32 MiB"
        return Refusal("too_large", what, "give a smaller one", stage="file")
    return file
