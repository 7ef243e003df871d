"""Workers: whatever a file does to its decoder costs one refusal, and the next image is decoded."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sightline.model.image import ImageTarget
from sightline.model.refusal import Refusal
from sightline.pixels import pack_target as fit_arguments
from sightline.pixels.workers import WorkerLimits, WorkerPool, WorkerReply
from tests.pixels.bitmaps import FORMATS, POISON, exif, flag, gif_of, photo, png_of, saved
from tests.pixels.hostile import TASKS
from tests.refusals import assert_refusal
from tests.requirements import requirement


@pytest.fixture(scope="module")
def hostile() -> Iterator[WorkerPool]:
    with WorkerPool(TASKS, count=1) as workers:
        yield workers


@pytest.fixture(scope="module")
def workers() -> Iterator[WorkerPool]:
    with WorkerPool(count=1) as workers:
        yield workers


def pid_of(workers: WorkerPool) -> int:
    answer = workers.run_sync("echo", b"")
    assert isinstance(answer, WorkerReply), answer
    pid = answer.facts["pid"]
    assert isinstance(pid, int)
    return pid


def code_of(answer: WorkerReply | Refusal) -> str:
    assert isinstance(answer, Refusal), answer
    return answer.code


def open_files() -> list[str]:
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


def has_ended(pid: int) -> bool:
    """Check that there is no process and no zombie."""
    return not Path(f"/proc/{pid}").exists()


def test_a_worker_replies_facts_and_bytes_and_is_reused(hostile: WorkerPool) -> None:
    first = pid_of(hostile)
    data = bytes(range(256)) * 5000
    answer = hostile.run_sync("echo", data, {"some": ["é", 1.5, None]})
    assert isinstance(answer, WorkerReply)
    assert answer.data == data[::-1]
    assert answer.facts["some"] == ["é", 1.5, None]
    assert pid_of(hostile) == first != os.getpid()


def test_a_worker_gets_no_keys_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    with WorkerPool(TASKS, count=1) as workers:
        answer = workers.run_sync("echo", b"")
    assert isinstance(answer, WorkerReply)
    assert "PATH" in answer.facts["environment"]
    assert "SOME_API_KEY" not in answer.facts["environment"]


@requirement("bound.hostile")
@pytest.mark.parametrize("task", ["die", "leave", "lie"])
def test_a_worker_that_crashes_costs_a_refusal_and_is_replaced(hostile: WorkerPool, task: str) -> None:
    before = pid_of(hostile)
    assert code_of(hostile.run_sync(task, b"")) == "corrupt"
    assert has_ended(before)
    assert pid_of(hostile) != before


@requirement("bound.seconds")
@pytest.mark.parametrize(
    ("task", "limit"),
    [("wait_for_ever", "0.5 seconds"), ("spin", "0.25 seconds")],
)
def test_a_worker_that_takes_too_long_is_ended_and_replaced(task: str, limit: str) -> None:
    patience = 0.5 if task == "wait_for_ever" else 600
    with WorkerPool(TASKS, count=1, limits=WorkerLimits(seconds=0.25, max_wall_seconds=patience)) as workers:
        before = pid_of(workers)
        assert_refusal(workers.run_sync(task, b""), "too_large", limit)
        assert has_ended(before)
        assert pid_of(workers) != before


@requirement("bound.seconds")
def test_the_limit_is_five_seconds_of_cpu_time() -> None:
    """A busy machine takes longer for them; without a CPU limit only wall time counts."""
    assert (WorkerLimits().seconds, WorkerLimits().cpu_seconds, WorkerLimits().wall_seconds) == (5, 5, 30)
    assert (WorkerLimits(45, wall_clock=True).cpu_seconds, WorkerLimits(45, wall_clock=True).wall_seconds) == (0, 45)


@requirement("bound.seconds")
def test_waiting_for_the_processor_does_not_count() -> None:
    """A task that sleeps as long as its limit has used no CPU time."""
    with WorkerPool(TASKS, count=1, limits=WorkerLimits(seconds=0.2)) as workers:
        assert isinstance(workers.run_sync("rest", b"", {"for": 0.6}), WorkerReply)


@requirement("bound.seconds")
async def test_queued_tasks_are_refused_within_a_wall_clock_limit() -> None:
    """A worker that is busy until its time is over leaves none for the queued task."""
    with WorkerPool(TASKS, count=1, limits=WorkerLimits(seconds=0.5, wall_clock=True)) as workers:
        while isinstance(await workers.run("echo", b""), Refusal):  # on a busy machine, it takes longer to start
            pass
        first, second = await asyncio.gather(workers.run("wait_for_ever", b""), workers.run("echo", b""))
        assert code_of(first) == "too_large"
        assert_refusal(second, "unavailable", "time")


def test_a_task_gets_the_seconds_left_of_a_wall_clock_limit() -> None:
    with WorkerPool(TASKS, count=1, limits=WorkerLimits(seconds=60, wall_clock=True)) as workers:
        answer = workers.run_sync("echo", b"")
    assert isinstance(answer, WorkerReply)
    assert 0 < answer.facts["seconds"] < 60


@requirement("bound.memory")
def test_a_task_that_takes_all_memory_costs_a_refusal() -> None:
    with WorkerPool(TASKS, count=1, limits=WorkerLimits(seconds=60, memory=200 * 1024 * 1024)) as workers:
        refusal = workers.run_sync("take_all_memory", b"")
        assert_refusal(refusal, "too_large", "memory")
        assert isinstance(workers.run_sync("echo", b"x" * 1000), WorkerReply)


@requirement("bound.memory")
def test_a_reply_that_is_too_long_is_not_read() -> None:
    with WorkerPool(TASKS, count=1, limits=WorkerLimits(seconds=60, memory=1 << 30)) as workers:
        assert code_of(workers.run_sync("echo", bytes((1 << 27) + 1))) == "corrupt"
        assert isinstance(workers.run_sync("echo", b"x"), WorkerReply)


def test_library_output_is_not_a_reply(hostile: WorkerPool) -> None:
    assert hostile.run_sync("babble", b"") == WorkerReply({}, b"")


def test_a_refusal_of_a_task_arrives_unchanged(hostile: WorkerPool) -> None:
    assert hostile.run_sync("refuse", b"") == Refusal("unsupported_type", "not this one", "send another")


@pytest.mark.parametrize("task", ["stumble", "absent", "unheard of"])
def test_a_bug_in_a_task_is_logged_and_refused(
    hostile: WorkerPool, task: str, caplog: pytest.LogCaptureFixture
) -> None:
    before = pid_of(hostile)
    assert code_of(hostile.run_sync(task, b"")) == "corrupt"
    assert "Traceback" in caplog.text
    assert has_ended(before), "what it left behind in its libraries would reach the next image"
    assert pid_of(hostile) != before


def test_a_worker_killed_between_two_images_is_replaced() -> None:
    with WorkerPool(TASKS, count=1) as workers:
        pid = pid_of(workers)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert pid_of(workers) != pid


def test_workers_run_in_parallel_up_to_their_count() -> None:
    async def pids() -> list[WorkerReply | Refusal]:
        workers = WorkerPool(TASKS, count=2)
        try:
            return await asyncio.gather(*(workers.run("echo", b"x" * 100_000) for _ in range(20)))
        finally:
            await workers.close()

    answers = asyncio.run(pids())
    found = {answer.facts["pid"] for answer in answers if isinstance(answer, WorkerReply)}
    assert len(answers) == 20
    assert not any(isinstance(answer, Refusal) for answer in answers)
    assert 1 <= len(found) <= 2
    assert all(map(has_ended, found))


def test_a_closed_pool_leaves_nothing_behind_and_refuses(tmp_path: Path) -> None:
    open_before = open_files()
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    workers = WorkerPool(TASKS, count=1, limits=WorkerLimits(seconds=60))
    with ThreadPoolExecutor(2) as callers:
        endless = callers.submit(workers.run_sync, "wait_for_ever", b"", {"begun": str(begun)})
        pid = int(begun.read_text())
        queued = callers.submit(workers.run_sync, "echo", b"")
        asyncio.run(workers.close())
    assert code_of(endless.result()) == "corrupt"
    assert code_of(queued.result()) == code_of(workers.run_sync("echo", b"")) == "unavailable"
    assert has_ended(pid)
    assert open_files() == open_before


async def test_a_cancelled_task_is_killed(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    with WorkerPool(TASKS, count=1, limits=WorkerLimits(seconds=60)) as workers:
        endless = asyncio.create_task(workers.run("wait_for_ever", b"", {"begun": str(begun)}))
        pid = int(await asyncio.to_thread(begun.read_text))
        watch = os.pidfd_open(pid)
        queued = asyncio.create_task(workers.run("wait_for_ever", b"", {"begun": str(begun)}))
        await asyncio.sleep(0)
        queued.cancel()
        endless.cancel()
        outcomes = await asyncio.gather(endless, queued, return_exceptions=True)
        assert [type(each) for each in outcomes] == [asyncio.CancelledError] * 2
        ended, _, _ = await asyncio.to_thread(select.select, [watch], [], [], 60)
        os.close(watch)
        assert ended
        after = await workers.run("echo", b"")
    assert isinstance(after, WorkerReply), "whoever asks next gets another, and what was queued is not begun"
    assert after.facts["pid"] != pid


def test_an_idle_worker_is_ended_and_replaced() -> None:
    with WorkerPool(TASKS, count=1, idle_seconds=1.0) as workers:
        before = pid_of(workers)
        watch = os.pidfd_open(before)
        ended, _, _ = select.select([watch], [], [], 60)
        os.close(watch)
        assert ended
        assert pid_of(workers) != before


def test_no_worker_is_started_before_it_is_needed() -> None:
    with WorkerPool(TASKS) as workers:
        assert not workers._workers


PARENT = """
import json, os, sys, threading
sys.path[:] = json.loads(sys.argv[1])
from sightline.pixels.workers import WorkerLimits, WorkerPool
from tests.pixels.hostile import TASKS
workers = WorkerPool(TASKS, count=2, limits=WorkerLimits(seconds=float(sys.argv[2]), max_wall_seconds=0))
first = workers.run_sync("echo", b"").facts["pid"]
if sys.argv[3] == "busy":
    threading.Thread(target=workers.run_sync, args=("wait_for_ever", b""), daemon=True).start()
    while workers._idle_workers:
        pass
print(first, flush=True)
sys.stdin.read()
"""


@requirement("bound.orphans")
@pytest.mark.parametrize("state", ["idle", "busy"])
def test_a_worker_does_not_outlive_a_parent_that_is_killed(state: str) -> None:
    command = [sys.executable, "-c", PARENT, json.dumps(sys.path), "0.5", state]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        watch = os.pidfd_open(worker)
        parent.kill()
    ended, _, _ = select.select([watch], [], [], 60)
    os.close(watch)
    assert ended


@requirement("bound.hostile", "type.truncated")
@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "corrupt"),
        (png_of(50_000, 50_000), "too_large"),
        (png_of(16_384, 7_000), "corrupt"),
        (gif_of(30_000), "too_large"),
        (saved(photo(300, 200), "image/png")[:-2000], "corrupt"),
        (saved(photo(300, 200), "image/jpeg")[:-2000], "corrupt"),
        (bytes(8) + png_of(5, 5)[8:], "unsupported_type"),
        (b"<!doctype html><p>not found", "unsupported_type"),
        (b"PK\3\4" + bytes(500), "unsupported_type"),
        (saved(flag(5, 5), "image/png") + bytes(64 * 1024 * 1024), "too_large"),
    ],
)
def test_a_hostile_file_costs_its_refusal(workers: WorkerPool, data: bytes, code: str) -> None:
    assert code_of(workers.run_sync("check", data)) == code
    assert isinstance(workers.run_sync("check", saved(flag(5, 5), "image/png")), WorkerReply)


@requirement("bound.hostile")
@pytest.mark.parametrize("task", ["check", "fit", "hash"])
def test_an_error_that_is_not_utf8_does_not_spoil_the_next_image(workers: WorkerPool, task: str) -> None:
    """libheif quotes the name of a box from the file, and libvips keeps the message until it is read."""
    arguments = fit_arguments(ImageTarget(("image/png",)))
    for poison in (POISON, POISON):
        assert code_of(workers.run_sync(task, poison, arguments)) == "corrupt"
        for good in (saved(flag(5, 5), "image/png"), saved(flag(40, 30), "image/avif")):
            assert isinstance(workers.run_sync(task, good, arguments), WorkerReply)


@requirement("bound.hostile")
def test_an_old_error_of_a_library_is_not_reported_for_the_next_image(hostile: WorkerPool) -> None:
    left, found = hostile.run_sync("murmur", POISON), hostile.run_sync("murmurs", b"")
    assert isinstance(left, WorkerReply)
    assert isinstance(found, WorkerReply)
    assert left.facts["heard"]
    assert found.facts["heard"] == ""


@requirement("bound.seconds")
def test_a_worker_that_replied_after_its_time_was_up_is_replaced() -> None:
    """Its time was up, so the process is being killed."""
    with WorkerPool(TASKS, count=1) as workers:
        before = pid_of(workers)
        (worker,) = workers._workers
        worker._expired = True
        assert isinstance(workers.run_sync("echo", b""), WorkerReply)
        assert has_ended(before)
        assert pid_of(workers) != before


def test_a_worker_limits_itself(hostile: WorkerPool) -> None:
    """It must end without its parent, and leave no core file."""
    answer = hostile.run_sync("limits", b"")
    assert isinstance(answer, WorkerReply)
    assert answer.facts["core"] == [0, 0]
    assert 0 < answer.facts["alarm"] <= WorkerLimits().wall_seconds + 1
    assert 0 < answer.facts["counted"] <= WorkerLimits().seconds + 0.1


@pytest.mark.parametrize("mime", FORMATS)
def test_a_sound_file_passes_the_check(workers: WorkerPool, mime: str) -> None:
    data = saved(photo(120, 90), mime)
    facts = {"mime": mime, "width": 120, "height": 90, "bytes": len(data), "turned": False}
    assert workers.run_sync("check", data) == WorkerReply(facts, b"")


def test_a_rotated_file_has_its_upright_size(workers: WorkerPool) -> None:
    answer = workers.run_sync("check", saved(flag(64, 32), "image/jpeg", exif=exif(6)))
    assert isinstance(answer, WorkerReply)
    assert (answer.facts["width"], answer.facts["height"], answer.facts["turned"]) == (32, 64, True)
