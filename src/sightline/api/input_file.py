"""The images and files of a call, as programs give them: paths, bytes, file objects, PIL images, addresses, base64."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from io import BytesIO
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Protocol

from sightline.api.session import ToolContext
from sightline.model.base64_text import compute_decoded_size, decode_base64
from sightline.model.fence import replace_surrogates
from sightline.model.image import MAX_FILE_BYTES, Image
from sightline.model.refusal import Refusal
from sightline.pixels.probe import FileType, identify_file
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


class ReadableFile(Protocol):
    """A file object, opened for reading bytes."""

    def read(self, size: int, /) -> bytes: ...


if TYPE_CHECKING:
    ImageInput = str | PurePath | bytes | bytearray | memoryview | ReadableFile | Image | PilImage
    """An image as a program gives it: a path, a web address, a `sha256:` reference, or the image itself."""


@dataclass(frozen=True, slots=True)
class GivenImage:
    """The bytes of an image that a program gave itself. A model's arguments never become one."""

    data: bytes = field(repr=False)
    name: str = ""


def read_image_input(value: object) -> object:
    """Return a reference as text, an image as `GivenImage`, or a Refusal. Other values are returned as they are."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, Image):
        return GivenImage(value.data)
    if isinstance(value, bytes | bytearray | memoryview):
        return _check_bytes(bytes(value))
    if callable(read := getattr(value, "read", None)):
        return _read_object(read, getattr(value, "name", ""))
    if callable(getattr(value, "save", None)) and hasattr(value, "mode"):
        return _encode_pil_image(value)
    return value


def _check_bytes(data: bytes, name: str = "") -> GivenImage | Refusal:
    if not data:
        return Refusal("corrupt", "the image has no bytes", "give all of its bytes")
    return _TOO_LARGE if len(data) > MAX_FILE_BYTES else GivenImage(data, name)


def _read_object(read: Any, name: object) -> GivenImage | Refusal:
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


@dataclass(frozen=True, slots=True)
class InputFile:
    """The one file of a call, as it came."""

    data: bytes = field(repr=False)
    name: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def kind(self) -> FileType:
        return identify_file(self.data[:_OPENING])


def read_input_file(
    context: ToolContext, path: object = None, url: object = None, base64: object = None
) -> InputFile | Refusal:
    """Return the one file of a call, read by the rules of the argument that gives it."""
    match [path, url, base64]:
        case [str() | PurePath() as named, None, None]:
            return _read_path(context, str(named))
        case [None, str(address), None]:
            return _fetch(context, address)
        case [None, None, str(text)]:
            return _decode(text)
        case [_, None, None] | [None, _, None] | [None, None, _] if (path, url, base64) != (None, None, None):
            return Refusal("invalid_input", "the file must be given as a string", "give its path, address or base64")
        case _:
            return ONE_FILE


def _read_path(context: ToolContext, path: str) -> InputFile | Refusal:
    if not PurePath(path).is_absolute():
        return Refusal("invalid_input", "file_path is not absolute", "give the absolute path")
    file = files.read_permitted_file(path, context.policy)
    return (
        replace(file, stage="file")
        if isinstance(file, Refusal)
        else InputFile(file.data, replace_surrogates(file.name))
    )


def _fetch(context: ToolContext, url: str) -> InputFile | Refusal:
    """Fetch the address of `file_url`. Naming it permits fetching it, even with the network off."""
    from sightline.sources import web

    page = run_blocking(web.fetch_web_file(url, context.network or web.WebGrant(), max_bytes=_DOCUMENT_BYTES))
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
    if len(file.data) > _DOCUMENT_BYTES:
        what = f"{file.kind.name} is larger than 32 MiB"
        return Refusal("too_large", what, "give a smaller one", stage="file")
    return file
