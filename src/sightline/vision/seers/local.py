"""The local seer: reads images on this machine, in its own processes. Nothing leaves the machine."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from sightline.model.geometry import Box, Size
from sightline.model.image import MAX_BITMAP_BYTES
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER, LabelledBox, Question, SeerAnswer, Usage
from sightline.model.value import value_class
from sightline.pixels.workers import WorkerLimits, WorkerPool
from sightline.vision.concurrency import LruCache
from sightline.vision.seers import refuse_document

if TYPE_CHECKING:
    from sightline.reader.ocr.weights import OcrEngine
    from sightline.reader.reading import ImageReading, Pixels
    from sightline.reader.report import ReadImage


TASK_NAME = "local"
TASKS = {TASK_NAME: "sightline.vision.seers.local:run_local_task"}
SECONDS = 60.0  # from question to answer, including the wait for other questions
_READING_SHARE = 0.75  # of the remaining time: then reading stops, and what has been read is reported
_PROCESSES = 2
_IDLE_SECONDS = 30.0  # after which an idle process ends and frees its memory
_MEMORY_BYTES = 6 * 1024**3  # a bound; only a fraction of it is used
_DECODED_BYTES = 2 * MAX_BITMAP_BYTES  # of one image: it may have to be rotated
_READINGS_KEPT = 8  # images whose readings are cached for further questions
_NICENESS = 2  # other programs come first
_MAX_BYTES = 200 * 1024 * 1024  # of all images of a question together
_FORMATS = tuple(
    f"image/{kind}" for kind in "png jpeg webp gif bmp tiff avif x-icon vnd.adobe.photoshop".split()
)  # it gets the originals: a smaller copy is only harder to read
_TOO_LARGE = Refusal("too_large", "the images have too many bytes to be read at once", "ask about fewer of them")
_NO_IMAGE = Refusal("invalid_input", "there is no image to read", "give one")
_NO_READER = Refusal("unavailable", "local is not installed", "pip install 'sightline[local]'")


@value_class
class LocalSeer:
    """The local reader, with the interface of a seer."""

    workers: WorkerPool = field(repr=False)  # cancelling a question ends its process
    folder: str = ""  # of the user's data, which may hold weights
    name: str = LOCAL_SEER
    limits: ImageLimits = field(default_factory=lambda: ImageLimits(formats=_FORMATS))

    async def ask(self, question: Question) -> SeerAnswer | Refusal:
        if question.attachments:
            return refuse_document(self.name, question.attachments[0])
        if not question.images:
            return _NO_IMAGE
        if sum(len(image.data) for image in question.images) > _MAX_BYTES:
            return _TOO_LARGE
        text = question.text if question.user_question is None else question.user_question
        result = await self.workers.run(TASK_NAME, b"".join(image.data for image in question.images), {
            "question": text,
            "schema": question.schema,
            "images": [[image.sha256, len(image.data)] for image in question.images],
            "folder": self.folder,
            "described": question.has_descriptions,
        })  # fmt: skip
        if isinstance(result, Refusal):
            return result
        spots = tuple(LabelledBox(label, Box(*box), image) for label, box, image in result.facts["spots"])
        return SeerAnswer(result.facts["text"], Usage(0, 0), self.name, boxes=spots)


def start_readers() -> WorkerPool:
    """Return the pool of reading processes; each starts with its first question."""
    limits = WorkerLimits(SECONDS, _MEMORY_BYTES, wall_clock=True)
    return WorkerPool(TASKS, count=_PROCESSES, limits=limits, idle_seconds=_IDLE_SECONDS)


def find_local_seer(folder: Path, workers: WorkerPool) -> LocalSeer | Refusal:
    """Return the seer if the reader is installed, without loading it; else a refusal that says how to install it."""
    from sightline.reader.ocr.weights import PAIRS, find_pair, is_runtime_installed

    ready = is_runtime_installed() and any(find_pair(pair, folder) for pair in PAIRS)
    return LocalSeer(workers, str(folder)) if ready else _NO_READER


def run_local_task(data: bytes, arguments: dict[str, Any]) -> tuple[dict[str, Any], bytes] | Refusal:
    """Answer one question; runs in a worker."""
    try:
        engine = _open_engine(arguments["folder"])
    except ImportError:
        return _NO_READER
    if isinstance(engine, Refusal):
        return engine
    if refusal := engine.check_models():  # an image that could not be read must not be reported as empty
        return refusal
    from sightline.reader.ocr.weights import release_memory

    try:
        return _report(data, arguments, engine)
    finally:
        release_memory()


def _report(data: bytes, arguments: dict[str, Any], engine: OcrEngine) -> tuple[dict[str, Any], bytes] | Refusal:
    from sightline.reader.report import report_images

    deadline = monotonic() + _READING_SHARE * arguments["seconds"]
    images = []
    for digest, image_data in _split_images(data, arguments["images"]):
        image = _read_image(digest, image_data, engine, deadline)
        if isinstance(image, Refusal):
            return image
        images.append(image)
    report = report_images(
        arguments["question"], arguments["schema"], images, described=arguments.get("described", False)
    )
    spots = [[each.label, _rotate_back(each.box, images[each.image].reading), each.image] for each in report.spots]
    return {"text": report.text, "spots": spots}, b""


def _rotate_back(box: Box, reading: ImageReading) -> list[int]:
    """Return a box in the pixels of the image as it was sent."""
    from sightline.reader.rectangles import rotate_box

    box = rotate_box(box, reading.size, 360 - reading.rotation)
    return [box.x, box.y, box.width, box.height]


def _split_images(data: bytes, images: list[tuple[str, int]]) -> Iterator[tuple[str, bytes]]:
    start = 0
    for digest, length in images:
        yield digest, data[start : start + length]
        start += length


@functools.cache
def _open_engine(folder: str) -> OcrEngine | Refusal:
    import numpy  # noqa: F401, raises here if the extra is not fully installed
    import onnxruntime  # noqa: F401

    from sightline.reader.ocr.weights import open_engine

    os.nice(_NICENESS)
    return open_engine(Path(folder) if folder else None)


_readings: LruCache[ImageReading] = LruCache(_READINGS_KEPT)


def _read_image(digest: str, data: bytes, engine: OcrEngine, deadline: float) -> ReadImage | Refusal:
    from sightline.reader.examine import rotate_pixels
    from sightline.reader.report import ReadImage

    pixels = _decode(data)
    if isinstance(pixels, Refusal):
        return pixels
    reading = _readings.get(digest) or _examine(pixels, engine, deadline)
    if reading.searched and not reading.late:  # else there may be more to read, given more time
        _readings.put(digest, reading)
    return ReadImage(reading, rotate_pixels(pixels, reading.rotation))


def _examine(pixels: Pixels, engine: OcrEngine, deadline: float) -> ImageReading:
    from dataclasses import replace

    from sightline.reader.examine import examine_image, read_barcodes
    from sightline.reader.ocr.page import read_page
    from sightline.reader.rectangles import rotate_box

    page = read_page(pixels, engine, lambda: monotonic() < deadline)
    reading = examine_image(pixels, page.lines, read_barcodes(pixels), page.turned, page.unread)
    size = Size(pixels.shape[1], pixels.shape[0])
    late = tuple(rotate_box(box, size, page.turned) for box in page.late)
    return replace(reading, late=late, searched=page.searched)


def _decode(data: bytes) -> Pixels | Refusal:
    """Return an array of RGB pixels. Transparent pixels become white, or black if the image is light."""
    import numpy as np

    from sightline.pixels.bitmaps import resize_bitmap
    from sightline.pixels.decode import choose_whole, decode_part
    from sightline.pixels.probe import probe_within_limits

    info = probe_within_limits(data)
    decoded = info if isinstance(info, Refusal) else decode_part(data, info, choose_whole, max_bytes=_DECODED_BYTES)
    if isinstance(decoded, Refusal):
        return decoded
    image = resize_bitmap(decoded.bitmap, decoded.full_size)  # back to full size: boxes are in the image's own pixels
    if image.hasalpha():
        alpha = image[image.bands - 1]
        weight = max(alpha.avg(), 1e-9)
        light = (image.extract_band(0, n=image.bands - 1).bandmean() * alpha).avg() / weight
        image = image.flatten(background=0 if light > 170 else 255)
    if image.bands < 3:
        image = image.bandjoin([image, image])
    return np.frombuffer(image.write_to_memory(), np.uint8).reshape(image.height, image.width, 3)
