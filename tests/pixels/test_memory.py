"""The memory of a worker: whatever the file and the task, it stays below 600 MB, and what needs more is too large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sightline.api.session import ANYONE, SEEN_BY_ALL
from sightline.model.geometry import Size
from sightline.model.image import Picture, Target
from sightline.model.refusal import Refusal
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.fit import fitted, task
from sightline.pixels.part import TASK as PART
from sightline.pixels.worker import TASKS, Limits, Reply, Workers
from tests.pixels import hostile, large
from tests.pixels.bitmaps import flag, saved
from tests.requirements import requirement

MOST = 600_000_000
PLENTY = Limits(seconds=120, patience=600)  # of time: how long it takes is not the question here

VIEW = task(replace(ANYONE, edge=SEEN_BY_ALL))
WORK: dict[str, tuple[str, dict[str, Any]]] = {
    "check": ("check", {}),
    "view": ("fit", VIEW),
    "refit": ("fit", task(Target(("image/png", "image/jpeg"), 5 << 20, 1568, plain=True))),
    "convert": ("fit", task(Target(("image/jpeg",), plain=True))),
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


def peak_of(workers: Workers) -> int:
    """The most memory that the only worker has ever had, in bytes."""
    (worker,) = workers._alive
    lines = Path(f"/proc/{worker._process.pid}/status").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


@requirement("bound.memory", "bound.refit")
@pytest.mark.parametrize("name", FILES)
def test_a_large_image_is_worked_on_in_less_than_600_megabytes(name: str) -> None:
    make, works = FILES[name]
    data = make()
    assert len(data) < 20_000_000
    for work in works:
        with Workers({**TASKS, **PART}, count=1, limits=PLENTY) as workers:
            what, arguments = WORK[work]
            answer = workers.ask(what, data, arguments)
            assert isinstance(answer, Reply), (work, answer)
            assert peak_of(workers) < MOST, work


@requirement("bound.memory")
def test_one_worker_after_many_large_images_is_still_below_600_megabytes() -> None:
    files = [large.gif(9_000, 9_000), large.psd(9_000, 9_000), large.lossless_webp(9_000, 9_000)]
    with Workers(count=1, limits=PLENTY) as workers:
        for data in files * 2:
            answer = workers.ask("fit", data, VIEW)
            assert isinstance(answer, Reply), answer
        assert peak_of(workers) < MOST


@requirement("bound.memory")
@pytest.mark.parametrize(
    "data",
    [
        large.png(10_000, 10_000, depth=16, colour=6, interlaced=True),
        large.progressive_jpeg(12_000, 9_900, subsampling="4:4:4"),
    ],
    ids=["deep interlaced png", "progressive jpeg in full colour"],
)
def test_what_can_only_be_decoded_in_more_memory_is_too_large_at_once(data: bytes) -> None:
    found = within_bounds(data)
    assert isinstance(found, Refusal)
    assert found.code == "too_large"


@requirement("bound.memory")
def test_the_limit_of_memory_is_kept_by_the_system() -> None:
    with Workers(hostile.TASKS, count=1, limits=PLENTY) as workers:
        refusal = workers.ask("take_all_memory", b"")
        assert isinstance(refusal, Refusal)
        assert refusal.code == "too_large"
        assert peak_of(workers) < MOST


@requirement("bound.memory")
@pytest.mark.parametrize(
    "data",
    [
        large.gif(4_400, 4_400),
        saved(flag(5_000, 5_000), "image/avif", speed=10),
        large.png(9_000, 9_000, interlaced=True),
        large.bmp(12_000, 10_000, 8, packed=True),
    ],
    ids=["a library that aborts", "one with words of its own", "one that reports it", "one that raises"],
)
def test_a_decoder_without_memory_is_a_refusal_and_not_a_corrupt_image(data: bytes) -> None:
    with Workers(count=1, limits=replace(PLENTY, memory=60 << 20)) as workers:
        refusal = workers.ask("check", data)
        assert isinstance(refusal, Refusal)
        assert refusal.code == "too_large"
        assert isinstance(workers.ask("check", saved(flag(5, 5), "image/png")), Reply)


@requirement("cut.exact")
def test_a_crop_of_a_large_image_is_not_shrunk() -> None:
    with Workers({**TASKS, **PART}, count=1, limits=PLENTY) as workers:
        answer = workers.ask(*_with(WORK["crop"], large.jpeg(20_000, 15_000)))
    assert isinstance(answer, Reply)
    (part,) = fitted(answer.facts, answer.data).parts
    assert part.image.size == Size(1500, 900)
    assert answer.facts["whole"] == [20_000, 15_000]


def _with(work: tuple[str, dict[str, Any]], data: bytes) -> tuple[str, bytes, dict[str, Any]]:
    return work[0], data, work[1]


@requirement("bound.pixels", "bound.refit")
@pytest.mark.parametrize(
    ("data", "allowed"),
    [
        (large.png(20_000, 15_000, depth=1, colour=0), True),
        (large.png(20_001, 15_000, depth=1, colour=0), False),
        (large.png(65_535, 1), True),
        (large.png(65_536, 1), False),
        (large.jpeg(20_000, 15_000), True),
        (large.progressive_jpeg(12_000, 10_000, subsampling="4:2:0"), True),
        (large.progressive_jpeg(12_001, 10_000, subsampling="4:2:0"), False),
        (large.png(12_000, 10_000, depth=1, colour=0, interlaced=True), True),
        (large.png(12_001, 10_000, depth=1, colour=0, interlaced=True), False),
        (large.bmp(12_000, 10_000, 1), True),
        (large.bmp(12_001, 10_000, 1), False),
        (large.gif(12_001, 10_000), False),
        (large.psd(12_001, 10_000), False),
    ],
)  # fmt: skip
def test_what_is_decoded_in_rows_may_have_300_megapixels_and_what_is_not_120(data: bytes, allowed: bool) -> None:
    found = within_bounds(data)
    assert isinstance(found, Picture if allowed else Refusal), found
    assert allowed or (isinstance(found, Refusal) and found.code == "too_large")
