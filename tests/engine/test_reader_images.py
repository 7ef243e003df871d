"""The local reader gets images unchanged: it rotates and decodes them itself."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from sightline.model.facts import NO_COORDINATES
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.pixels.workers import WorkerLimits, WorkerPool
from sightline.vision.seers.local import LocalSeer
from sightline.vision.vision_request import VisionImage, fit_images
from tests.pixels import large
from tests.pixels.bitmaps import exif, photo, saved
from tests.requirements import requirement


@pytest.fixture
def workers() -> Iterator[WorkerPool]:
    with WorkerPool(count=1, limits=WorkerLimits(seconds=120, max_wall_seconds=600)) as made:
        yield made


def image_of(data: bytes, size: Size, *, turned: bool) -> Image:
    return Image(hashlib.sha256(data).hexdigest(), "image/jpeg", size, data, turned)


@requirement("seer.local.originals")
async def test_the_reader_gets_a_rotated_image_unchanged(workers: WorkerPool) -> None:
    image = image_of(saved(photo(300, 200), "image/jpeg", exif=exif(6)), Size(200, 300), turned=True)
    (sent,) = await sent_to_reader(workers, image)
    assert sent.data is image.data


@requirement("seer.local.originals")
async def test_the_reader_gets_a_smaller_copy_of_a_very_large_image(workers: WorkerPool) -> None:
    image = image_of(large.jpeg(12_000, 10_000), Size(12_000, 10_000), turned=False)
    (sent,) = await sent_to_reader(workers, image)
    assert 47_000_000 < sent.size.pixels <= 48_000_000


async def sent_to_reader(workers: WorkerPool, image: Image) -> list[Image]:
    sent = await fit_images(workers, [VisionImage(image)], LocalSeer(workers), NO_COORDINATES, check_pixels=False)
    assert isinstance(sent, list), sent
    return sent
