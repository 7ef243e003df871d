"""The one file that a question is about: read under the rules of its way here, and known by its bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Literal

from sightline.look.ask_envelope import Unanswered
from sightline.look.doors import NATIVE, Door
from sightline.look.loop import wait
from sightline.model.base64_text import decoded_size
from sightline.model.fence import sound
from sightline.model.image import MAX_BYTES, Image, Target, base64_length
from sightline.model.refusal import Refusal
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.fit import fitted, task
from sightline.pixels.probe import PDF, Kind, kind_of
from sightline.sources import file as files
from sightline.sources import inline

Fit = Literal["auto", "never"]
MIB = 1024 * 1024
_OPENING = 4096  # bytes that tell what a file is
_IMAGE_BYTES = 5 * MIB  # of an image that is sent as it is
_DOCUMENT_BYTES = 32 * MIB
_TAKEN = "give a PNG, JPEG, GIF, WEBP or PDF"
_FILMED = "give an MP4, MOV or WebM"
_ONE = Unanswered("INVALID_INPUT", "exactly one file is asked about (give one of its path, its address and its base64)")


@dataclass(frozen=True, slots=True)
class Taken:
    """A file as it came."""

    data: bytes = field(repr=False)
    name: str = ""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def kind(self) -> Kind:
        return kind_of(self.data[:_OPENING])


def taken(door: Door, path: object, url: object, base64: object = None) -> Taken | Unanswered:
    match [path, url, base64]:
        case [str() | PurePath() as named, None, None]:
            return _read(door, str(named))
        case [None, str(address), None]:
            return _fetched(door, address)
        case [None, None, str(text)]:
            return _decoded(text)
        case [_, None, None] | [None, _, None] | [None, None, _] if (path, url, base64) != (None, None, None):
            return Unanswered("INVALID_INPUT", "the file is not given as text")
        case _:
            return _ONE


def _read(door: Door, path: str) -> Taken | Unanswered:
    if not PurePath(path).is_absolute():
        return Unanswered("INVALID_INPUT", "file_path is not absolute (write the whole path)")
    file = files.read(path, door.policy)
    return Unanswered.of_file(file) if isinstance(file, Refusal) else Taken(file.data, sound(file.name))


def _fetched(door: Door, url: str) -> Taken | Unanswered:
    """Fetch the address that was given as `file_url`, which is the permission for that one address, also with the
    network off."""
    from sightline.sources import web

    page = wait(web.read(url, door.network or web.Grant(), most=_DOCUMENT_BYTES))
    return Unanswered.of_address(page) if isinstance(page, Refusal) else Taken(page.data, sound(page.name))


def _decoded(text: str) -> Taken | Unanswered:
    raw = text.encode("utf-8", "replace")
    if decoded_size(raw) > MAX_BYTES:
        return Unanswered("FILE_TOO_LARGE", f"the file is larger than {MAX_BYTES // MIB} MiB (give a smaller one)")
    data = inline.decode(raw)
    if isinstance(data, Refusal):
        return Unanswered.of_file(data)
    return Taken(data) if data else Unanswered("UNSUPPORTED_FILE_TYPE", "the file is empty (give its bytes)")


def judged(door: Door, file: Taken, fit: Fit) -> Image | Taken | Unanswered:
    """An image with all its pixels, or a PDF as it is."""
    if file.kind is PDF:
        return _within(file)
    if file.kind.family != "bitmap":
        return Unanswered("UNSUPPORTED_FILE_TYPE", f"this is {file.kind.name} ({_TAKEN})")
    picture = within_bounds(file.data)
    if isinstance(picture, Refusal):
        return Unanswered.of_file(picture)
    if fit == "never" and (no := _untaken(file)) is not None:
        return no
    checked = door.workers.ask("check", file.data)
    if isinstance(checked, Refusal):
        return Unanswered.of_file(checked)
    return Image(file.sha256, picture.mime, picture.size, file.data, picture.turned)


def _untaken(file: Taken) -> Unanswered | None:
    """Why an image cannot be sent as it is."""
    if file.kind.mime not in NATIVE:
        return Unanswered("UNSUPPORTED_FILE_TYPE", f"this is {file.kind.name} (with fit auto it is converted)")
    if len(file.data) > _IMAGE_BYTES:
        return Unanswered("FILE_TOO_LARGE", "the image is larger than 5 MiB (with fit auto it is made smaller)")
    return None


def filmed(file: Taken) -> Taken | Unanswered:
    """A file that is a video, within its limits."""
    if file.kind.family != "video":
        return Unanswered("UNSUPPORTED_FILE_TYPE", f"this is {file.kind.name}, not a video ({_FILMED})")
    return _within(file)


def _within(file: Taken) -> Taken | Unanswered:
    if len(file.data) > _DOCUMENT_BYTES:
        return Unanswered("FILE_TOO_LARGE", f"{file.kind.name} of more than 32 MiB is not sent (give a smaller one)")
    return file


def as_taken(door: Door, image: Image, goal: Target) -> Image | Unanswered:
    """The image as who looks takes it, and never more than 5 MiB of it: the very same where that will do."""
    picture = within_bounds(image.data)
    if isinstance(picture, Refusal):
        return Unanswered.of_file(picture)
    light = len(image.data) <= _IMAGE_BYTES and not image.turned
    if light and goal.admits(picture, base64_length(len(image.data))):
        return image
    most = _IMAGE_BYTES // 3 * 4
    tight = replace(goal, encoded_bytes=min(goal.encoded_bytes or most, most), plain=True)
    made = door.workers.ask("fit", image.data, task(tight))
    return Unanswered.of_file(made) if isinstance(made, Refusal) else fitted(made.facts, made.data).parts[0].image
