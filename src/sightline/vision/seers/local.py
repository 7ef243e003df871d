"""The seer that reads images on this machine, in processes of its own. Nothing leaves the machine."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from sightline.model.asking import LOCAL, Answer, Question, Spot, Usage
from sightline.model.geometry import Box, Size
from sightline.model.image import HELD_BYTES
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.pixels.worker import Limits as WorkerLimits
from sightline.pixels.worker import Workers
from sightline.vision.lru_cache import LruCache
from sightline.vision.seers.wire_seer import no_place

if TYPE_CHECKING:
    from sightline.reader.ocr.weights import OcrEngine
    from sightline.reader.reading import ImageReading
    from sightline.reader.regions import Pixels
    from sightline.reader.report import ReadImage


TASK_NAME = "local"
_MOST_BYTES = 200 * 1024 * 1024  # of all images of a question together
_FORMATS = tuple(
    f"image/{kind}" for kind in "png jpeg webp gif bmp tiff avif x-icon vnd.adobe.photoshop".split()
)  # originals go in: a smaller copy is only harder to read
_HEAVY = Refusal("too_large", "the images are too many bytes to be read at once", "ask about fewer of them")
_NO_IMAGE = Refusal("invalid_input", "there is no image to read", "give one")


@dataclass(frozen=True, slots=True)
class LocalSeer:
    work: Workers = field(repr=False)  # a cancelled question ends its process
    folder: str = ""  # of the user's data, in which weights may lie
    name: str = LOCAL
    limits: Limits = field(default_factory=lambda: Limits(formats=_FORMATS))

    async def ask(self, question: Question) -> Answer | Refusal:
        if question.documents:
            return no_place(self.name, question.documents[0])
        if not question.images:
            return _NO_IMAGE
        if sum(len(image.data) for image in question.images) > _MOST_BYTES:
            return _HEAVY
        words = question.words if question.asked is None else question.asked
        found = await self.work.run(TASK_NAME, b"".join(image.data for image in question.images), {
            "question": words,
            "schema": question.schema,
            "images": [[image.sha256, len(image.data)] for image in question.images],
            "folder": self.folder,
            "described": question.described,
        })  # fmt: skip
        if isinstance(found, Refusal):
            return found
        spots = tuple(Spot(label, Box(*box), image) for label, box, image in found.facts["spots"])
        return Answer(found.facts["text"], Usage(0, 0), self.name, spots=spots)


SECONDS = 60.0  # from the asking to the answer, whoever else is asked about meanwhile
_READING = 0.75  # of what is left of them: then no more is read, and what there is by then is said
_AT_ONCE = 2
_IDLE = 30.0  # seconds after which a process that nobody asks leaves, and its memory with it
_MEMORY = 6 * 1024**3  # bytes, of which a fraction is ever used
_HELD = 2 * HELD_BYTES  # of one image: it may have to be turned
_REMEMBERED = 8  # images of which a second question is answered at once
_BEHIND = 2  # how far it steps back behind whoever else needs the processor

_NO_READER = Refusal("unavailable", "local is not installed", "pip install 'sightline[local]'")

TASKS = {TASK_NAME: "sightline.vision.seers.local:local_task"}


def readers() -> Workers:
    """The processes; none is started before somebody asks."""
    return Workers(TASKS, count=_AT_ONCE, limits=WorkerLimits(SECONDS, _MEMORY, waiting=True), idle=_IDLE)


def local_seer(folder: Path, work: Workers) -> LocalSeer | Refusal:
    """The seer, where it is installed; else what to type. Nothing of it is loaded for that."""
    from sightline.reader.ocr.weights import PAIRS, find_pair, is_runtime_installed

    ready = is_runtime_installed() and any(find_pair(pair, folder) for pair in PAIRS)
    return LocalSeer(work, str(folder)) if ready else _NO_READER


def local_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """One question, for a worker."""
    try:
        engine = _engine(arguments["folder"])
    except ImportError:
        return _NO_READER
    if isinstance(engine, Refusal):
        return engine
    if no := engine.unable():  # what was not looked at is not empty
        return no
    from sightline.reader.ocr.weights import release_memory

    try:
        return _replied(data, arguments, engine)
    finally:
        release_memory()


def _replied(data: bytes, arguments: dict[str, Any], engine: OcrEngine) -> tuple[dict[str, Any], bytes] | Refusal:
    from sightline.reader.report import report_images

    until = monotonic() + _READING * arguments["seconds"]
    images = []
    for digest, piece in _pieces(data, arguments["images"]):
        image = _page(digest, piece, engine, until)
        if isinstance(image, Refusal):
            return image
        images.append(image)
    report = report_images(
        arguments["question"], arguments["schema"], images, described=arguments.get("described", False)
    )
    spots = [[each.label, _placed(each.box, images[each.image].reading), each.image] for each in report.spots]
    return {"text": report.text, "spots": spots}, b""


def _placed(box: Box, seen: ImageReading) -> list[int]:
    """In the pixels of the image as it came."""
    from sightline.reader.rectangles import rotate_box

    box = rotate_box(box, seen.size, 360 - seen.turned)
    return [box.x, box.y, box.width, box.height]


def _pieces(data: bytes, images: list[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    start = 0
    for digest, length in images:
        yield digest, data[start : start + length]
        start += length


@functools.cache
def _engine(folder: str) -> OcrEngine | Refusal:
    import numpy  # noqa: F401 - all that the seer needs is there, or what to install is said
    import onnxruntime  # noqa: F401

    from sightline.reader.ocr.weights import open_engine

    os.nice(_BEHIND)
    return open_engine(Path(folder) if folder else None)


_seen: LruCache[ImageReading] = LruCache(_REMEMBERED)


def _page(digest: str, data: bytes, engine: OcrEngine, until: float) -> ReadImage | Refusal:
    from sightline.reader.examine import rotate_pixels
    from sightline.reader.report import ReadImage

    pixels = _decoded(data)
    if isinstance(pixels, Refusal):
        return pixels
    seen = _seen.get(digest) or _looked(pixels, engine, until)
    if seen.searched and not seen.late:  # with more time there would be more
        _seen.put(digest, seen)
    return ReadImage(seen, rotate_pixels(pixels, seen.turned))


def _looked(pixels: Pixels, engine: OcrEngine, until: float) -> ImageReading:
    from dataclasses import replace

    from sightline.reader.examine import examine_image, read_barcodes
    from sightline.reader.ocr.page import read_page
    from sightline.reader.rectangles import rotate_box

    page = read_page(pixels, engine, lambda: monotonic() < until)
    seen = examine_image(pixels, page.lines, read_barcodes(pixels), page.turned)
    size = Size(pixels.shape[1], pixels.shape[0])
    unread, late = (tuple(rotate_box(box, size, page.turned) for box in boxes) for boxes in (page.unread, page.late))
    return replace(seen, unread=unread, late=late, searched=page.searched)


def _decoded(data: bytes) -> Pixels | Refusal:
    """Red, green and blue of every pixel. What is clear stands on white; where its own colours are light, on black."""
    import numpy as np

    from sightline.pixels.bitmap import all_of, decode_part, scaled
    from sightline.pixels.decode_limits import within_bounds

    picture = within_bounds(data)
    found = picture if isinstance(picture, Refusal) else decode_part(data, picture, all_of, most=_HELD)
    if isinstance(found, Refusal):
        return found
    image = scaled(found.bitmap, found.whole)  # what is said of it is said in its own pixels, also of the few too large
    if image.hasalpha():
        alpha = image[image.bands - 1]
        weight = max(alpha.avg(), 1e-9)
        light = (image.extract_band(0, n=image.bands - 1).bandmean() * alpha).avg() / weight
        image = image.flatten(background=0 if light > 170 else 255)
    if image.bands < 3:
        image = image.bandjoin([image, image])
    return np.frombuffer(image.write_to_memory(), np.uint8).reshape(image.height, image.width, 3)
