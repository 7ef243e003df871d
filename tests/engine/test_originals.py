"""The reader of this machine gets an image as it is: it turns and decodes it itself, and nothing is sent anywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from sightline.model.facts import NO_FORM
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.pixels.worker import Limits, Workers
from sightline.vision.fitting import fit_images
from sightline.vision.results import VisionImage
from sightline.vision.seers.local import LocalSeer
from tests.pixels import large
from tests.pixels.bitmaps import exif, photo, saved
from tests.requirements import requirement


@pytest.fixture
def workers() -> Iterator[Workers]:
    with Workers(count=1, limits=Limits(seconds=120, patience=600)) as made:
        yield made


def image_of(data: bytes, size: Size, *, turned: bool) -> Image:
    return Image(hashlib.sha256(data).hexdigest(), "image/jpeg", size, data, turned)


@requirement("seer.local.originals")
async def test_the_reader_gets_an_image_that_lies_on_its_side_as_it_is(workers: Workers) -> None:
    image = image_of(saved(photo(300, 200), "image/jpeg", exif=exif(6)), Size(200, 300), turned=True)
    (sent,) = await sent_to_reader(workers, image)
    assert sent.data is image.data


@requirement("seer.local.originals")
async def test_the_reader_gets_a_very_large_image_smaller(workers: Workers) -> None:
    image = image_of(large.jpeg(12_000, 10_000), Size(12_000, 10_000), turned=False)
    (sent,) = await sent_to_reader(workers, image)
    assert 47_000_000 < sent.size.pixels <= 48_000_000


async def sent_to_reader(workers: Workers, image: Image) -> list[Image]:
    sent = await fit_images(workers, [VisionImage(image)], LocalSeer(workers), NO_FORM, decoded=False)
    assert isinstance(sent, list), sent
    return sent
