"""Every kind of very large image is worked on within the memory limit of a worker; it takes about a minute."""

from __future__ import annotations

import pytest

from sightline.pixels.workers import WorkerPool, WorkerReply
from tests.pixels import large
from tests.pixels.test_memory import FILES, MOST, PLENTY, VIEW, assert_within_memory, peak_of
from tests.requirements import requirement


@requirement("bound.memory", "bound.refit")
@pytest.mark.parametrize("name", FILES)
def test_any_work_on_a_large_image_takes_less_than_600_megabytes(name: str) -> None:
    make, works = FILES[name]
    assert_within_memory(make(), works)


@requirement("bound.memory")
def test_one_worker_after_many_large_images_is_still_below_600_megabytes() -> None:
    files = [large.gif(9_000, 9_000), large.psd(9_000, 9_000), large.lossless_webp(9_000, 9_000)]
    with WorkerPool(count=1, limits=PLENTY) as workers:
        for data in files * 2:
            answer = workers.run_sync("fit", data, VIEW)
            assert isinstance(answer, WorkerReply), answer
        assert peak_of(workers) < MOST
