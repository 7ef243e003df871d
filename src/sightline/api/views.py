"""`view`: a source as pixels, or a typed no. Never text."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import cast, final

from sightline.api.results import Refused, View, written
from sightline.api.session import ANYONE, SEEN_BY_ALL, Door
from sightline.model.crop import Crop, Pixels, resolve
from sightline.model.fence import json_line, sound
from sightline.model.geometry import Box, Size
from sightline.model.image import Image, Kept, Picture, Target, base64_length
from sightline.model.records import Perception, perception_id
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.fit import fitted, task
from sightline.pixels.headers import animated
from sightline.pixels.part import crop_of, written_crop
from sightline.pixels.probe import Kind, kind_of
from sightline.sources import file as files
from sightline.sources import reference
from sightline.sources.reference import Address, Named, Reference, Stored
from sightline.vision.bridge import wait

_OPENING = 4096  # bytes that tell what a file is
_BITMAP_NAMES = frozenset(
    ".png .apng .jpg .jpeg .jpe .jfif .webp .gif .avif .heic .heif .tif .tiff .bmp .dib .ico .psd .jxl .jp2".split()
)
_RENDERED = frozenset({"vector", "document", "text", "video"})
_FIRST_FRAME = "the first frame of an animation"
_NOT_KEPT = "not kept: the record cannot be written, and this sha256 will not be found there"
_NO_PLACE = Refusal("invalid_input", "an image has one page and no moments", "leave page and at out")


@dataclass(frozen=True, slots=True)
class Found:
    """The bytes behind a reference."""

    data: bytes
    source: str  # the reference
    name: str = ""  # of the file
    crop: Crop | None = None
    path: str = ""  # where the file really is


def view(door: Door, path: object, *, crop: object = None, page: object = None, at: object = None) -> View | Refused:
    found = bitmap(door, path, crop, page, at)
    seen = found if isinstance(found, Refusal) else _seen(door, found)
    return Refused(seen) if isinstance(seen, Refusal) else seen


def recall(door: Door, result: dict[str, Json]) -> View | Refused:
    """A view that was given before, by its result alone: the same pixels, however the source has changed."""
    try:
        kept = door.record.images.read_view(door.scope, perception_id(written(_as_read(result))))
    except (AttributeError, TypeError, ValueError, RecursionError):
        return Refused(
            Refusal("invalid_input", "that is no result of a view", "give what as_dict() of a view returned")
        )
    if kept is None:
        return Refused(Refusal("not_found", "the record holds no such view", "call view_image again"))
    return _again(kept)


def _as_read(result: Mapping[str, Json]) -> dict[str, Json]:
    """A result as a model read it, without what stands beside it there."""
    found = {name: value for name, value in result.items() if name != "words"}
    if isinstance(shown := found.get("shown"), dict):
        found["shown"] = {name: value for name, value in shown.items() if name != "mime"}
    return found


def bitmap(door: Door, path: object, crop: object, page: object, at: object) -> Found | Refusal:
    """The bitmap that is meant, with the part of it that is."""
    wanted = crop_of(crop)
    if isinstance(wanted, Refusal):
        return wanted
    if not (_from(1, page) and _from(0, at)):
        return Refusal("invalid_input", "page counts from 1, at is in seconds from 0", "leave them out for an image")
    found = _found(door, path)
    if isinstance(found, Refusal):
        return found
    kind = kind_of(found.data[:_OPENING])
    if kind.family != "bitmap":
        return _no_bitmap(found.name, kind)
    return _one_crop(found, wanted) if page in (None, 1) and at is None else _NO_PLACE


def _from(low: int, value: object) -> bool:
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value is None or (numeric and low <= cast("float", value) < math.inf)


def _one_crop(found: Found, wanted: Crop | None) -> Found | Refusal:
    if found.crop and wanted:
        return Refusal("invalid_input", "the reference names a crop, and another is asked for", "give one of the two")
    return replace(found, crop=found.crop or wanted)


def _found(door: Door, path: object) -> Found | Refusal:
    asked = reference_of(path)
    match asked:
        case Stored():
            return _stored(door, asked, named(path))
        case Named(path=name):
            file = files.read(name, door.policy)
            return file if isinstance(file, Refusal) else _of_file(file, named(path))
        case Address(url=url):
            return _fetched(door, url)
        case Refusal():
            return asked


def _of_file(file: files.File, source: str) -> Found:
    return Found(file.data, source, sound(file.name), path=named(file.path))


def _fetched(door: Door, url: str) -> Found | Refusal:
    """From the web, where the host grants it. A server that does not answer has nothing there, as far as we know."""
    from sightline.sources import web

    page = wait(web.read(url, door.network))
    if isinstance(page, Refusal):
        return replace(page, code="not_found") if page.code == "unavailable" else page
    return Found(page.data, named(url), sound(page.name))


def _stored(door: Door, asked: Stored, source: str) -> Found | Refusal:
    sha256 = reference.only(asked, door.record.images.find_by_prefix(door.reach, asked.sha256))
    if isinstance(sha256, Refusal):
        return door.record.find_trouble() or sha256  # where nothing can be read, nobody knows what is there
    kept = door.record.images.read(door.reach, sha256)
    if kept is None:
        return Refusal("not_found", "the record has lost that image", "view its source again")
    box = asked.crop
    crop = Pixels(box.x, box.y, box.width, box.height) if box else None
    return Found(kept.data, source, crop=crop)


def _no_bitmap(name: str, kind: Kind) -> Refusal:
    """A name that claims a bitmap over other bytes: whoever wrote it was wrong, and nothing is drawn from it."""
    if PurePath(name).suffix.lower() in _BITMAP_NAMES:
        return Refusal("unsupported_type", f"its name claims an image, and it is {kind.name}", "give a real image")
    if kind.family in _RENDERED:
        remedy = "call read_file" if kind.family in ("vector", "text") else "convert it to an image"
        return Refusal("render_unavailable", f"this is {kind.name}, and nothing here draws it", remedy)
    return Refusal("unsupported_type", f"this is {kind.name}, not an image", "give an image")


def _seen(door: Door, found: Found) -> View | Refusal:
    """The bitmap decoded, cut, made to fit, and kept before anybody hears of it."""
    picture = within_bounds(found.data)
    if isinstance(picture, Refusal):
        return picture
    shown = shown_of(door, found, picture)
    if isinstance(shown, Refusal):
        return shown
    sha256 = hashlib.sha256(found.data).hexdigest()
    pixels = shown.image or Image(sha256, picture.mime, shown.whole, found.data)
    seen = View(picture.mime, shown.whole, picture.bytes, sha256, found.source, pixels, shown.box, shown.words)
    source = Image(sha256, picture.mime, shown.whole, found.data, picture.turned)
    view = Perception(written(seen.result()), sha256, pixels, seen.words)
    kept = keep(door, source, found.path) and door.record.images.keep_view(door.scope, view)
    return seen if kept else replace(seen, words=_together(seen.words, _NOT_KEPT))


def keep(door: Door, image: Image, path: str) -> bool:
    """Its bytes, and where they were found: whoever works there is told of it again."""
    kept = door.record.images.keep(door.scope, image)
    if kept and path:
        door.record.images.note_place(door.scope, image.sha256, path)
    return kept


@dataclass(frozen=True, slots=True)
class Shown:
    whole: Size
    image: Image | None = None  # None: the very bytes of the source
    box: Box | None = None
    words: str = ""


def shown_of(door: Door, found: Found, picture: Picture) -> Shown | Refusal:
    """The very bytes wherever they will do; else the most legible that the target takes."""
    moving = animated(found.data)
    light = picture.bytes <= door.as_it_is and not picture.turned and not moving
    untouched = light and door.target.admits(picture, base64_length(picture.bytes))
    if found.crop is None and untouched:
        answer = door.workers.ask("check", found.data)
        return answer if isinstance(answer, Refusal) else Shown(Size(answer.facts["width"], answer.facts["height"]))
    goal = task(replace(_goal(door.target, found.crop, picture.size), images=1))
    if found.crop is None:
        answer = door.workers.ask("fit", found.data, goal)
    else:
        answer = door.workers.ask("part", found.data, {**goal, "crop": written_crop(found.crop)})
    if isinstance(answer, Refusal):
        return answer
    (part,) = fitted(answer.facts, answer.data).parts
    words = _together(_FIRST_FRAME if moving else "", part.words)
    if found.crop is None:
        return Shown(part.map.source, part.image, words=words)
    return Shown(Size(*answer.facts["whole"]), part.image, Box(*answer.facts["box"]), words)


def _goal(target: Target, crop: Crop | None, whole: Size) -> Target:
    """Where nobody knows who will look, what is too large for some is made as large as all of them take."""
    part = resolve(crop, whole) if crop else whole
    size = part.size if isinstance(part, Box) else part
    if target != ANYONE or isinstance(size, Refusal) or target.takes(size):
        return target
    return replace(target, edge=SEEN_BY_ALL)


def _together(*words: str) -> str:
    return ", ".join(filter(None, words))


def _again(kept: Perception) -> View:
    result = json.loads(kept.result)
    box = Box(*result["crop"]) if "crop" in result else None
    size = Size(result["width"], result["height"])
    return View(result["mime"], size, result["bytes"], kept.image, result["source"], kept.pixels, box, kept.words)


_LONGEST = 4000  # characters of JSON, so that every result has room for the reference that it repeats


def reference_of(path: object) -> Reference | Refusal:
    if not isinstance(path, str):
        return Refusal("invalid_input", "the path is not text", "give the path of a file")
    if len(path) > _LONGEST or len(json_line(named(path))) > _LONGEST:
        return Refusal("invalid_input", "the path is too long", "give a shorter one, from the working folder")
    return reference.parse(path)


def named(path: object) -> str:
    """As it can be written in JSON, also where it holds bytes that are no text."""
    return str(path).encode("utf-8", "backslashreplace").decode()


_MOST = 50
_CHARACTERS = 7_800  # of all that is listed, which leaves room for the words around it


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """Images of the record, the newest first."""

    images: tuple[Kept, ...]
    more: bool = False  # there are older ones

    def as_dict(self) -> dict[str, Json]:
        return {"ok": True, "images": [_entry(each) for each in self.images], "more": self.more}

    def content(self) -> list[Json]:
        return [{"type": "text", "text": json_line(self.as_dict())}]


def list_images(door: Door) -> Listed:
    """The images that may be listed, as many as one result may hold."""
    found = images_of(door, _MOST + 1)
    fitting = _fitting(found[:_MOST])
    return Listed(tuple(fitting), more=len(fitting) < len(found))


def images_of(door: Door, most: int) -> list[Kept]:
    """Those of the folders that its user works in; where no folder is meant, those of the same scope."""
    folders = None if door.here is None else [os.path.realpath(folder) for folder in door.here]
    return [_seen_from(door, each) for each in door.record.images.list_newest(door.reach, folders, most)]


def _seen_from(door: Door, kept: Kept) -> Kept:
    """Without a place at which whoever asks may not look."""
    return kept if kept.path and door.policy.holds(Path(kept.path)) else replace(kept, path="")


def _fitting(found: list[Kept]) -> list[Kept]:
    left = _CHARACTERS
    for index, each in enumerate(found):
        left -= len(json_line(_entry(each))) + 2
        if left < 0:
            return found[:index]
    return found


def _entry(kept: Kept) -> Json:
    sides: dict[str, Json] = {"width": kept.size.width, "height": kept.size.height}
    entry: dict[str, Json] = {"image": f"sha256:{kept.sha256}", "mime": kept.mime, **sides, "bytes": kept.bytes}
    return {**entry, "path": kept.path} if kept.path else entry
