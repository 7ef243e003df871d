"""The memory of a worker: it stays below 600 MB, and an image that needs more is refused as too large."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sightline.api.session import ANY_PROVIDER, SAFE_EDGE
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo, ImageTarget
from sightline.model.refusal import Refusal
from sightline.pixels import pack_target, unpack_fit_result
from sightline.pixels.probe import probe_within_limits
from sightline.pixels.workers import WorkerLimits, WorkerPool, WorkerReply
from tests.pixels import hostile, large
from tests.pixels.bitmaps import flag, saved
from tests.requirements import requirement

MOST = 600_000_000
PLENTY = WorkerLimits(seconds=120, max_wall_seconds=600)  # of time: how long it takes is not the question here

VIEW = pack_target(replace(ANY_PROVIDER, edge=SAFE_EDGE))
WORK: dict[str, tuple[str, dict[str, Any]]] = {
    "check": ("check", {}),
    "view": ("fit", VIEW),
    "refit": ("fit", pack_target(ImageTarget(("image/png", "image/jpeg"), 5 << 20, 1568, keeps_geometry=True))),
    "convert": ("fit", pack_target(ImageTarget(("image/jpeg",), keeps_geometry=True))),
    "crop": ("part", {**VIEW, "crop": {"pixels": {"x": 100, "y": 4000, "width": 1500, "height": 900}}}),
    "half": ("part", {**VIEW, "crop": {"region": "bottom"}}),
    "exact": ("exact", {"box": None, "size": [1092, 1092], "formats": ["image/png"], "bytes": 1 << 40}),
    "hash": ("hash", {}),
    "overlay": ("overlay", {"boxes": [[10, 10, 900, 900, "a"]], "mime": "image/jpeg"}),
}

FILES: dict[str, tuple[Callable[[], bytes], tuple[str, ...]]] = {
    "png": (lambda: large.png(20_000, 15_000), ("view", "refit", "convert", "crop")),
    "wide png": (lambda: large.png(65_535, 4_500), ("view",)),
    "deep png": (lambda: large.png(9_000, 9_000, depth=16, colour=6), ("refit", "crop")),
    "interlaced png": (lambda: large.png(12_000, 10_000, interlaced=True), ("view",)),
    "jpeg": (lambda: large.jpeg(20_000, 15_000), tuple(WORK)),
    "turned jpeg": (lambda: large.jpeg(20_000, 15_000, turn=6), ("view", "half")),
    "cmyk jpeg": (lambda: large.jpeg(12_000, 10_000, "CMYK"), ("refit",)),
    "lossless webp": (lambda: large.lossless_webp(10_000, 10_000), ("check", "view")),
    "gif": (lambda: large.gif(12_000, 10_000), ("view", "overlay")),
    "avif": (lambda: saved(flag(6_000, 5_000), "image/avif", speed=10), ("view",)),
    "packed bmp": (lambda: large.bmp(12_000, 10_000, 8, packed=True), ("check", "view", "half")),
    "bmp of two colours": (lambda: large.bmp(12_000, 10_000, 1), ("convert",)),
    "photoshop": (lambda: large.psd(12_000, 10_000), ("view",)),
    "icon": (lambda: large.icon(large.png(10_000, 10_000)), ("check",)),
    "deep tiff": (lambda: large.tiff(15_000, 12_000, sample=2), ("view", "crop")),
    "tiff of one strip": (lambda: large.tiff(9_000, 8_000, rows=8_000), ("view",)),
    "tiff in tiles": (lambda: large.tiff(15_000, 12_000, tile=256), ("half",)),
    "real tiff": (lambda: large.tiff(9_000, 8_000, sample=4), ("view",)),
}


def peak_of(workers: WorkerPool) -> int:
    """Return the peak memory of the only worker, in bytes."""
    (worker,) = workers._workers
    lines = Path(f"/proc/{worker._process.pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


# Those that take little time. tests/e2e/test_large_images.py does all the work on all the files.
QUICK = {"png": ("view",), "jpeg": ("view", "crop"), "lossless webp": ("view",), "gif": ("view",)}


def assert_within_memory(data: bytes, works: Iterable[str]) -> None:
    """Do each work in a worker of its own, and compare its peak memory with the limit."""
    assert len(data) < 20_000_000
    for work in works:
        with WorkerPool(count=1, limits=PLENTY) as workers:
            what, arguments = WORK[work]
            answer = workers.run_sync(what, data, arguments)
            assert isinstance(answer, WorkerReply), (work, answer)
            assert peak_of(workers) < MOST, work


@requirement("bound.memory", "bound.refit")
@pytest.mark.parametrize("name", QUICK)
def test_a_large_image_is_worked_on_in_less_than_600_megabytes(name: str) -> None:
    make, works = FILES[name]
    assert set(QUICK[name]) <= set(works)
    assert_within_memory(make(), QUICK[name])


@requirement("bound.memory")
@pytest.mark.parametrize(
    "make",
    [
        lambda: large.png(10_000, 10_000, depth=16, colour=6, interlaced=True),
        lambda: large.progressive_jpeg(12_000, 9_900, subsampling="4:4:4"),
    ],
    ids=["deep interlaced png", "progressive jpeg in full colour"],
)
def test_an_image_that_needs_more_memory_is_refused_at_once(make: Callable[[], bytes]) -> None:
    found = probe_within_limits(make())
    assert isinstance(found, Refusal)
    assert found.code == "too_large"


@requirement("bound.memory")
def test_the_system_enforces_the_memory_limit() -> None:
    with WorkerPool(hostile.TASKS, count=1, limits=PLENTY) as workers:
        refusal = workers.run_sync("take_all_memory", b"")
        assert isinstance(refusal, Refusal)
        assert refusal.code == "too_large"
        assert peak_of(workers) < MOST


@requirement("bound.memory")
@pytest.mark.parametrize(
    "make",
    [
        lambda: large.gif(4_400, 4_400),
        lambda: saved(flag(5_000, 5_000), "image/avif", speed=10),
        lambda: large.png(9_000, 9_000, interlaced=True),
        lambda: large.bmp(12_000, 10_000, 8, packed=True),
    ],
    ids=["a library that aborts", "one with words of its own", "one that reports it", "one that raises"],
)
def test_a_decoder_without_memory_does_not_mean_a_corrupt_image(make: Callable[[], bytes]) -> None:
    with WorkerPool(count=1, limits=replace(PLENTY, memory=60 << 20)) as workers:
        refusal = workers.run_sync("check", make())
        assert isinstance(refusal, Refusal)
        assert refusal.code == "too_large"
        assert isinstance(workers.run_sync("check", saved(flag(5, 5), "image/png")), WorkerReply)


SOUND: dict[str, Callable[[], bytes]] = {
    "photoshop": lambda: large.psd(3_000, 3_000),
    "png": lambda: large.png(3_000, 3_000),
    "jpeg": lambda: large.jpeg(3_000, 3_000),
    "gif": lambda: large.gif(3_000, 3_000),
    "lossless webp": lambda: large.lossless_webp(3_000, 3_000),
    "tiff": lambda: large.tiff(3_000, 3_000),
    "avif": lambda: saved(flag(1_500, 1_500), "image/avif", speed=10),
    "bmp": lambda: large.bmp(3_000, 3_000, 8, packed=True),
}


@requirement("bound.memory")
@pytest.mark.parametrize("name", SOUND)
def test_a_sound_image_is_never_called_corrupt_for_lack_of_memory(name: str) -> None:
    """What fails first may be an allocation in any library, the stack of a thread, or a palette."""
    data, codes = SOUND[name](), set()
    for megabytes in range(48, 200, 12):
        with WorkerPool(count=1, limits=replace(PLENTY, memory=megabytes << 20)) as workers:
            reply = workers.run_sync("fit", data, VIEW)
        if isinstance(reply, WorkerReply):
            break
        codes.add(reply.code)
    assert codes == {"too_large"}


@requirement("cut.exact")
def test_a_crop_of_a_large_image_is_not_shrunk() -> None:
    with WorkerPool(count=1, limits=PLENTY) as workers:
        answer = workers.run_sync(*_with(WORK["crop"], large.jpeg(20_000, 15_000)))
    assert isinstance(answer, WorkerReply)
    (part,) = unpack_fit_result(answer.facts, answer.data).parts
    assert part.image.size == Size(1500, 900)
    assert answer.facts["whole"] == [20_000, 15_000]


def _with(work: tuple[str, dict[str, Any]], data: bytes) -> tuple[str, bytes, dict[str, Any]]:
    return work[0], data, work[1]


@requirement("bound.pixels", "bound.refit")
@pytest.mark.parametrize(
    ("make", "allowed"),
    [
        (lambda: large.png(20_000, 15_000, depth=1, colour=0), True),
        (lambda: large.png(20_001, 15_000, depth=1, colour=0), False),
        (lambda: large.png(65_535, 1), True),
        (lambda: large.png(65_536, 1), False),
        (lambda: large.jpeg(20_000, 15_000), True),
        (lambda: large.progressive_jpeg(12_000, 10_000, subsampling="4:2:0"), True),
        (lambda: large.progressive_jpeg(12_001, 10_000, subsampling="4:2:0"), False),
        (lambda: large.png(12_000, 10_000, depth=1, colour=0, interlaced=True), True),
        (lambda: large.png(12_001, 10_000, depth=1, colour=0, interlaced=True), False),
        (lambda: large.bmp(12_000, 10_000, 1), True),
        (lambda: large.bmp(12_001, 10_000, 1), False),
        (lambda: large.gif(12_001, 10_000), False),
        (lambda: large.psd(12_001, 10_000), False),
    ],
)  # fmt: skip
def test_images_decoded_in_rows_may_have_300_megapixels_others_120(make: Callable[[], bytes], allowed: bool) -> None:
    found = probe_within_limits(make())
    assert isinstance(found, ImageInfo if allowed else Refusal), found
    assert allowed or (isinstance(found, Refusal) and found.code == "too_large")
