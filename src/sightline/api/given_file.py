"""The one file of a `vision_analyze` or `video_analyze` call: read from a path, fetched, or decoded from base64."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from sightline.api.session import Door
from sightline.model.base64_text import decoded_size
from sightline.model.fence import sound
from sightline.model.image import MAX_BYTES
from sightline.model.refusal import Refusal
from sightline.pixels.probe import Kind, kind_of
from sightline.sources import file as files
from sightline.sources import inline
from sightline.vision.bridge import wait

MIB = 1024 * 1024
_OPENING = 4096  # bytes that tell what a file is
_DOCUMENT_BYTES = 32 * MIB
_ONE = Refusal("invalid_input", "exactly one file is asked about", "give one of its path, its address and its base64")


@dataclass(frozen=True, slots=True)
class File:
    """A file as it came."""

    data: bytes = field(repr=False)
    name: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def kind(self) -> Kind:
        return kind_of(self.data[:_OPENING])


def read_file(door: Door, path: object, url: object, base64: object = None) -> File | Refusal:
    """Return the one file of a call, read under the rules of the way in which it is given."""
    match [path, url, base64]:
        case [str() | PurePath() as named, None, None]:
            return _read_path(door, str(named))
        case [None, str(address), None]:
            return _fetch(door, address)
        case [None, None, str(text)]:
            return _decode(text)
        case [_, None, None] | [None, _, None] | [None, None, _] if (path, url, base64) != (None, None, None):
            return Refusal("invalid_input", "the file is not given as text", "give its path, address or base64 as text")
        case _:
            return _ONE


def _read_path(door: Door, path: str) -> File | Refusal:
    if not PurePath(path).is_absolute():
        return Refusal("invalid_input", "file_path is not absolute", "write the whole path")
    file = files.read(path, door.policy)
    return replace(file, stage="file") if isinstance(file, Refusal) else File(file.data, sound(file.name))


def _fetch(door: Door, url: str) -> File | Refusal:
    """Fetch the address that was given as `file_url`.

    Naming it is the permission for that one address, also with the network off.
    """
    from sightline.sources import web

    page = wait(web.read(url, door.network or web.Grant(), most=_DOCUMENT_BYTES))
    return replace(page, stage="address") if isinstance(page, Refusal) else File(page.data, sound(page.name))


def _decode(text: str) -> File | Refusal:
    """Return the file that base64 text stands for."""
    raw = text.encode("utf-8", "replace")
    if decoded_size(raw) > MAX_BYTES:
        what = f"the file is larger than {MAX_BYTES // MIB} MiB"
        return Refusal("too_large", what, "give a smaller one", stage="file")
    data = inline.decode(raw)
    if isinstance(data, Refusal):
        return replace(data, stage="file")
    return File(data) if data else refuse_kind("the file is empty", "give its bytes")


def refuse_kind(what: str, remedy: str) -> Refusal:
    """Return the refusal of a file for what it is."""
    return Refusal("unsupported_type", what, remedy, stage="file")


def check_size(file: File) -> File | Refusal:
    """Return a PDF or video, or refuse one that is too large to be sent."""
    if len(file.data) > _DOCUMENT_BYTES:
        what = f"{file.kind.name} of more than 32 MiB is not sent"
        return Refusal("too_large", what, "give a smaller one", stage="file")
    return file
