"""Workers: whatever a file does to its decoder costs one refusal, and the next image is answered."""

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

from sightline.model.image import Target
from sightline.model.refusal import Refusal
from sightline.pixels.fit import task as fit_arguments
from sightline.pixels.worker import Limits, Reply, Workers
from tests.pixels.bitmaps import FORMATS, POISON, exif, flag, gif_of, photo, png_of, saved
from tests.pixels.hostile import TASKS
from tests.refusals import assert_refusal
from tests.requirements import requirement


@pytest.fixture(scope="module")
def hostile() -> Iterator[Workers]:
    with Workers(TASKS, count=1) as workers:
        yield workers


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    with Workers(count=1) as workers:
        yield workers


def pid_of(workers: Workers) -> int:
    answer = workers.ask("echo", b"")
    assert isinstance(answer, Reply), answer
    pid = answer.facts["pid"]
    assert isinstance(pid, int)
    return pid


def code_of(answer: Reply | Refusal) -> str:
    assert isinstance(answer, Refusal), answer
    return answer.code


def open_files() -> list[str]:
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


def has_ended(pid: int) -> bool:
    """No process and no zombie."""
    return not Path(f"/proc/{pid}").exists()


def test_a_worker_answers_with_facts_and_bytes_and_stays(hostile: Workers) -> None:
    first = pid_of(hostile)
    data = bytes(range(256)) * 5000
    answer = hostile.ask("echo", data, {"some": ["é", 1.5, None]})
    assert isinstance(answer, Reply)
    assert answer.data == data[::-1]
    assert answer.facts["some"] == ["é", 1.5, None]
    assert pid_of(hostile) == first != os.getpid()


def test_a_worker_knows_no_key_of_its_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    with Workers(TASKS, count=1) as workers:
        answer = workers.ask("echo", b"")
    assert isinstance(answer, Reply)
    assert "PATH" in answer.facts["environment"]
    assert "SOME_API_KEY" not in answer.facts["environment"]


@requirement("bound.hostile")
@pytest.mark.parametrize("task", ["die", "leave", "lie"])
def test_a_worker_that_crashes_costs_a_refusal_and_is_replaced(hostile: Workers, task: str) -> None:
    before = pid_of(hostile)
    assert code_of(hostile.ask(task, b"")) == "corrupt"
    assert has_ended(before)
    assert pid_of(hostile) != before


@requirement("bound.seconds")
@pytest.mark.parametrize(
    ("task", "limit"),
    [("wait_for_ever", "0.5 seconds"), ("spin", "0.25 seconds")],
)
def test_a_worker_that_takes_too_long_is_ended_and_replaced(task: str, limit: str) -> None:
    patience = 0.5 if task == "wait_for_ever" else 600
    with Workers(TASKS, count=1, limits=Limits(seconds=0.25, patience=patience)) as workers:
        before = pid_of(workers)
        assert_refusal(workers.ask(task, b""), "too_large", limit)
        assert has_ended(before)
        assert pid_of(workers) != before


@requirement("bound.seconds")
def test_the_limit_is_five_seconds_of_the_processor() -> None:
    """Also on a machine that is so busy that these take long; whoever waits has no other limit than the clock's."""
    assert (Limits().seconds, Limits().counted, Limits().clock) == (5, 5, 30)
    assert (Limits(45, waiting=True).counted, Limits(45, waiting=True).clock) == (0, 45)


@requirement("bound.seconds")
def test_a_worker_that_had_to_wait_for_the_processor_is_not_ended() -> None:
    """As long as its limit, and nothing was used up."""
    with Workers(TASKS, count=1, limits=Limits(seconds=0.2)) as workers:
        assert isinstance(workers.ask("rest", b"", {"for": 0.6}), Reply)


@requirement("bound.seconds")
async def test_where_waiting_counts_nobody_waits_longer_than_the_limit() -> None:
    """A worker that is at work until its time is over leaves none for whoever was asked about meanwhile."""
    with Workers(TASKS, count=1, limits=Limits(seconds=0.5, waiting=True)) as workers:
        first, second = await asyncio.gather(workers.run("wait_for_ever", b""), workers.run("echo", b""))
        assert code_of(first) == "too_large"
        assert_refusal(second, "unavailable", "time")


def test_where_waiting_counts_the_task_is_told_what_is_left() -> None:
    with Workers(TASKS, count=1, limits=Limits(seconds=60, waiting=True)) as workers:
        answer = workers.ask("echo", b"")
    assert isinstance(answer, Reply)
    assert 0 < answer.facts["seconds"] < 60


@requirement("bound.memory")
def test_a_task_that_takes_all_memory_costs_a_refusal() -> None:
    with Workers(TASKS, count=1, limits=Limits(seconds=60, memory=200 * 1024 * 1024)) as workers:
        refusal = workers.ask("take_all_memory", b"")
        assert_refusal(refusal, "too_large", "memory")
        assert isinstance(workers.ask("echo", b"x" * 1000), Reply)


@requirement("bound.memory")
def test_an_answer_that_is_longer_than_any_image_is_not_read() -> None:
    with Workers(TASKS, count=1, limits=Limits(seconds=60, memory=1 << 30)) as workers:
        assert code_of(workers.ask("echo", bytes((1 << 27) + 1))) == "corrupt"
        assert isinstance(workers.ask("echo", b"x"), Reply)


def test_what_a_library_prints_is_no_answer(hostile: Workers) -> None:
    assert hostile.ask("babble", b"") == Reply({}, b"")


def test_a_refusal_of_a_task_arrives_as_it_is(hostile: Workers) -> None:
    assert hostile.ask("refuse", b"") == Refusal("unsupported_type", "not this one", "send another")


@pytest.mark.parametrize("task", ["stumble", "absent", "unheard of"])
def test_a_bug_in_a_task_is_logged_and_refused(hostile: Workers, task: str, caplog: pytest.LogCaptureFixture) -> None:
    before = pid_of(hostile)
    assert code_of(hostile.ask(task, b"")) == "corrupt"
    assert "Traceback" in caplog.text
    assert has_ended(before), "what it left behind in its libraries would reach the next image"
    assert pid_of(hostile) != before


def test_a_worker_that_somebody_ended_between_two_images_is_replaced() -> None:
    with Workers(TASKS, count=1) as workers:
        pid = pid_of(workers)
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert pid_of(workers) != pid


def test_workers_work_at_the_same_time_and_no_more_than_so_many() -> None:
    async def pids() -> list[Reply | Refusal]:
        workers = Workers(TASKS, count=2)
        try:
            return await asyncio.gather(*(workers.run("echo", b"x" * 100_000) for _ in range(20)))
        finally:
            await workers.close()

    answers = asyncio.run(pids())
    found = {answer.facts["pid"] for answer in answers if isinstance(answer, Reply)}
    assert len(answers) == 20
    assert not any(isinstance(answer, Refusal) for answer in answers)
    assert 1 <= len(found) <= 2
    assert all(map(has_ended, found))


def test_workers_that_are_closed_leave_nothing_behind_and_refuse(tmp_path: Path) -> None:
    open_before = open_files()
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    workers = Workers(TASKS, count=1, limits=Limits(seconds=60))
    with ThreadPoolExecutor(2) as callers:
        endless = callers.submit(workers.ask, "wait_for_ever", b"", {"begun": str(begun)})
        pid = int(begun.read_text())
        queued = callers.submit(workers.ask, "echo", b"")
        asyncio.run(workers.close())
    assert code_of(endless.result()) == "corrupt"
    assert code_of(queued.result()) == code_of(workers.ask("echo", b"")) == "unavailable"
    assert has_ended(pid)
    assert open_files() == open_before


async def test_work_that_nobody_waits_for_any_more_is_ended(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    with Workers(TASKS, count=1, limits=Limits(seconds=60)) as workers:
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
    assert isinstance(after, Reply), "whoever asks next gets another, and what was queued is not begun"
    assert after.facts["pid"] != pid


def test_a_worker_that_nobody_asks_leaves_and_another_comes() -> None:
    with Workers(TASKS, count=1, idle=1.0) as workers:
        before = pid_of(workers)
        watch = os.pidfd_open(before)
        ended, _, _ = select.select([watch], [], [], 60)
        os.close(watch)
        assert ended
        assert pid_of(workers) != before


def test_no_worker_is_started_before_it_is_needed() -> None:
    with Workers(TASKS) as workers:
        assert not workers._alive


PARENT = """
import json, os, sys, threading
sys.path[:] = json.loads(sys.argv[1])
from sightline.pixels.worker import Limits, Workers
from tests.pixels.hostile import TASKS
workers = Workers(TASKS, count=2, limits=Limits(seconds=float(sys.argv[2]), patience=0))
first = workers.ask("echo", b"").facts["pid"]
if sys.argv[3] == "busy":
    threading.Thread(target=workers.ask, args=("wait_for_ever", b""), daemon=True).start()
    while workers._idle:
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
def test_a_hostile_file_costs_its_refusal(workers: Workers, data: bytes, code: str) -> None:
    assert code_of(workers.ask("check", data)) == code
    assert isinstance(workers.ask("check", saved(flag(5, 5), "image/png")), Reply)


@requirement("bound.hostile")
@pytest.mark.parametrize("task", ["check", "fit", "hash"])
def test_an_error_that_is_no_text_does_not_spoil_the_next_image(workers: Workers, task: str) -> None:
    """libheif repeats the name of a box as it stands in the file, and libvips keeps that until somebody reads it."""
    arguments = fit_arguments(Target(("image/png",)))
    for poison in (POISON, POISON):
        assert code_of(workers.ask(task, poison, arguments)) == "corrupt"
        for good in (saved(flag(5, 5), "image/png"), saved(flag(40, 30), "image/avif")):
            assert isinstance(workers.ask(task, good, arguments), Reply)


@requirement("bound.hostile")
def test_what_a_library_has_not_said_yet_is_not_said_about_the_next_image(hostile: Workers) -> None:
    left, found = hostile.ask("murmur", POISON), hostile.ask("murmurs", b"")
    assert isinstance(left, Reply)
    assert isinstance(found, Reply)
    assert left.facts["heard"]
    assert found.facts["heard"] == ""


@requirement("bound.seconds")
def test_an_answer_that_comes_at_the_last_moment_is_not_trusted_to_be_the_last_of_its_worker() -> None:
    """The time was up, and the process is being ended: whoever asks next needs another."""
    with Workers(TASKS, count=1) as workers:
        before = pid_of(workers)
        (worker,) = workers._alive
        worker._late = True
        assert isinstance(workers.ask("echo", b""), Reply)
        assert has_ended(before)
        assert pid_of(workers) != before


def test_a_worker_limits_itself(hostile: Workers) -> None:
    """In case nobody is left to end it, and that no file holds what was in its memory."""
    answer = hostile.ask("limits", b"")
    assert isinstance(answer, Reply)
    assert answer.facts["core"] == [0, 0]
    assert 0 < answer.facts["alarm"] <= Limits().clock + 1
    assert 0 < answer.facts["counted"] <= Limits().seconds + 0.1


@pytest.mark.parametrize("mime", FORMATS)
def test_a_whole_file_is_checked(workers: Workers, mime: str) -> None:
    data = saved(photo(120, 90), mime)
    facts = {"mime": mime, "width": 120, "height": 90, "bytes": len(data), "turned": False}
    assert workers.ask("check", data) == Reply(facts, b"")


def test_a_turned_file_is_measured_as_it_is_seen(workers: Workers) -> None:
    answer = workers.ask("check", saved(flag(64, 32), "image/jpeg", exif=exif(6)))
    assert isinstance(answer, Reply)
    assert (answer.facts["width"], answer.facts["height"], answer.facts["turned"]) == (32, 64, True)
