"""The local seer in its own process: whatever the pixels are, it answers or refuses."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import select
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sightline.model.geometry import Box, Size
from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.model.seer import Attachment, Question, SeerAnswer
from sightline.pixels.workers import WorkerPool
from sightline.reader.sections import NOTE
from sightline.vision.seers import local
from sightline.vision.seers.local import LocalSeer, find_local_seer, start_readers
from tests.reader.pictures import BAD, ORDERS, many_words, page, saved
from tests.reader.statements import EMPTY, NO_TEXT, UNREAD_TEXT, list_added
from tests.requirements import requirement

SAID = {
    "upside down": "0x80070070",
    "on its side": "0x80070070",
    "16 bits": "Sixteen bits deep",
    "alpha": "White on clear",
    "CMYK": "Four inks",
    "long edge": "At the very left",
    "tall edge": "Line 499",
    "orders": ORDERS[:32],
    "right to left": UNREAD_TEXT,
    "handwriting": UNREAD_TEXT,
    "photograph": "photograph",
}


@pytest.fixture(scope="module")
def seer() -> Iterator[LocalSeer]:
    with start_readers() as work:
        made = find_local_seer(Path(), work)
        assert isinstance(made, LocalSeer), made
        yield made


def key(text: str) -> str:
    """Return the text without its spaces, which the reader may miss."""
    return "".join(text.split())


def is_incomplete(text: str) -> bool:
    """Return whether a text says that time ran out: before the search for text ended, or before lines were read."""
    searching = list_added(EMPTY, replace(EMPTY, searched=False))[-1]
    (reading,) = [line for line in list_added(EMPTY, replace(EMPTY, late=(Box(1, 2, 3, 4),) * 2)) if "[1, 2, " in line]
    return searching in text or re.split(r"\d+|:", reading)[1] in text


def image_of(data: bytes) -> Image:
    return Image(hashlib.sha256(data).hexdigest(), "image/png", Size(1, 1), data)


async def told(seer: LocalSeer, data: bytes, question: str = "") -> SeerAnswer | Refusal:
    return await seer.ask(Question("Describe this image.", (image_of(data),), user_question=question))


@requirement("seer.local.bad")
@pytest.mark.parametrize("name", [name for name in BAD if name != "10,000 words"])
async def test_any_pixels_are_described_without_inventing_text(seer: LocalSeer, name: str) -> None:
    answer = await told(seer, BAD[name]())
    assert isinstance(answer, SeerAnswer), answer
    assert answer.text.count(NOTE) == 1
    assert key(SAID.get(name, NO_TEXT)) in key(answer.text)
    if name not in SAID:
        assert answer.boxes == ()


@requirement("seer.local.bad")
async def test_ten_thousand_words_are_read_or_reported_as_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SECONDS", 8.0)  # what is too much for a minute is so for less
    with start_readers() as work:
        seer = find_local_seer(Path(), work)
        assert isinstance(seer, LocalSeer)
        answer = await told(seer, BAD["10,000 words"]())
    if isinstance(answer, Refusal):  # on a machine that has other things to do
        assert answer.code == "too_large"
    else:
        assert is_incomplete(answer.text) or len(answer.text.split()) > 9000, answer.text[-300:]


@requirement("seer.local.bad")
@pytest.mark.parametrize("data", [b"", b"no image", BAD["alpha"]()[:900]], ids=["empty", "words", "cut"])
async def test_the_reader_refuses_a_file_that_is_not_an_image(seer: LocalSeer, data: bytes) -> None:
    assert isinstance(await told(seer, data), Refusal)


async def test_a_question_without_an_image_is_refused(seer: LocalSeer) -> None:
    for question in (Question("What?"), Question("What?", attachments=(Attachment("application/pdf", b"%PDF"),))):
        assert isinstance(await seer.ask(question), Refusal)


@requirement("seer.local.bounds")
async def test_a_cancelled_question_ends_its_process_and_the_next_is_answered() -> None:
    with start_readers() as work:
        seer = find_local_seer(Path(), work)
        assert isinstance(seer, LocalSeer)
        assert isinstance(await told(seer, saved(page(["Begun"]))), SeerAnswer)
        (worker,) = work._workers
        watch = os.pidfd_open(worker._process.pid)
        asked = asyncio.create_task(told(seer, saved(many_words())))
        await asyncio.sleep(0.5)  # the more of it is done the better, but whenever it is dropped it ends
        asked.cancel()
        waiting = select.poll()  # unlike select, it takes descriptors above 1023
        waiting.register(watch, select.POLLIN)
        ended = await asyncio.to_thread(waiting.poll, 120_000)
        os.close(watch)
        assert ended
        answer = await told(seer, saved(page(["Still here"])))
    assert isinstance(answer, SeerAnswer), answer
    assert key(answer.text).startswith("Stillhere")


@requirement("seer.local.bounds")
def test_reader_processes_are_bounded() -> None:
    with start_readers() as work:
        assert (work._count, work._idle_seconds, work._limits.seconds, work._limits.wall_clock) == (2, 30.0, 60.0, True)


@requirement("seer.local.bounds")
def test_lines_read_too_late_are_reported_and_tried_again() -> None:
    data = saved(page(["Read in the second attempt"]))
    asked = {"question": "", "schema": None, "images": [[image_of(data).sha256, len(data)]], "folder": ""}
    hurried = local.run_local_task(data, {**asked, "seconds": 0.0})
    assert not isinstance(hurried, Refusal), hurried
    assert hurried[0]["text"].startswith(UNREAD_TEXT)
    assert is_incomplete(hurried[0]["text"])
    whole = local.run_local_task(data, {**asked, "seconds": 60.0})
    assert not isinstance(whole, Refusal), whole
    assert key(whole[0]["text"]).startswith("Readinthesecondattempt")


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what a process has is read in /proc")


@requirement("seer.local.bounds")
@LINUX
async def test_reading_a_usual_page_needs_at_most_600_megabytes() -> None:
    with start_readers() as work:
        seer = find_local_seer(Path(), work)
        assert isinstance(seer, LocalSeer)
        assert isinstance(await told(seer, saved(page(["A page of the usual size"] * 30, (1920, 1080)))), SeerAnswer)
        (worker,) = work._workers
        status = await asyncio.to_thread(Path(f"/proc/{worker._process.pid}/status").read_text)
    sizes = {row[0]: int(row[1]) / 1024 for row in map(str.split, status.splitlines()) if row[0].startswith("Vm")}
    assert sizes["VmHWM:"] < 600
    assert sizes["VmRSS:"] < 340


@requirement("seer.local.bounds")
@LINUX
def test_fragmented_memory_is_released() -> None:
    """Every fortieth of many blocks is still in use, so the C library would keep them all."""
    import subprocess

    code = (
        "from sightline.reader.ocr.weights import _measure_memory, release_memory;"
        "held = [bytes(100_000) for _ in range(6000)];"
        "del held[::2], held[::2], held[::2]; before = _measure_memory(); release_memory();"
        "print(before >> 20, _measure_memory() >> 20)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, ran.stdout.split())
    assert before > 320
    assert after < 200


@requirement("seer.local.says")
def test_a_missing_reader_is_refused_with_the_command_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sightline.reader.ocr.weights.find_pair", lambda name, data: None)
    with WorkerPool(local.TASKS) as work:
        no = find_local_seer(tmp_path, work)
    assert isinstance(no, Refusal)
    assert "pip install 'sightline[local]'" in no.remedy


def test_checking_for_the_reader_imports_nothing_heavy() -> None:
    import subprocess

    code = (
        "import sys; from pathlib import Path; from sightline.vision.seers.local import find_local_seer, start_readers;"
        "find_local_seer(Path(), start_readers());"
        "print(sorted({'numpy', 'onnxruntime', 'pyvips', 'PIL'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
