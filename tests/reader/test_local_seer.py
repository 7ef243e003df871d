"""The local seer in its own process: whatever the pixels are, it answers or says no."""

from __future__ import annotations

import asyncio
import hashlib
import os
import select
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.model.asking import Answer, Document, Question
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.pixels.worker import Workers
from sightline.reader.describe import NOTE
from sightline.vision.seers import local
from sightline.vision.seers.local import LocalSeer, local_seer, readers
from tests.reader.pictures import BAD, ORDERS, many_words, page, saved
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
    "right to left": "No text could be read",
    "handwriting": "No text could be read",
    "photograph": "photograph",
}


@pytest.fixture(scope="module")
def seer() -> Iterator[LocalSeer]:
    with readers() as work:
        made = local_seer(Path(), work)
        assert isinstance(made, LocalSeer), made
        yield made


def key(text: str) -> str:
    """What is said; whether a space was seen between two letters is the reader's own matter."""
    return "".join(text.split())


def image_of(data: bytes) -> Image:
    return Image(hashlib.sha256(data).hexdigest(), "image/png", Size(1, 1), data)


async def told(seer: LocalSeer, data: bytes, question: str = "") -> Answer | Refusal:
    return await seer.ask(Question("Describe this image.", (image_of(data),), asked=question))


@requirement("seer.local.bad")
@pytest.mark.parametrize("name", [name for name in BAD if name != "10,000 words"])
async def test_whatever_the_pixels_are_it_is_described_and_nothing_is_made_up(seer: LocalSeer, name: str) -> None:
    answer = await told(seer, BAD[name]())
    assert isinstance(answer, Answer), answer
    assert answer.text.count(NOTE) == 1
    assert key(SAID.get(name, "No text was found")) in key(answer.text)
    if name not in SAID:
        assert answer.spots == ()


@requirement("seer.local.bad")
async def test_ten_thousand_words_are_read_or_it_is_said_that_they_were_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "SECONDS", 8.0)  # what is too much for a minute is so for less
    with readers() as work:
        seer = local_seer(Path(), work)
        assert isinstance(seer, LocalSeer)
        answer = await told(seer, BAD["10,000 words"]())
    if isinstance(answer, Refusal):  # on a machine that has other things to do
        assert answer.code == "too_large"
    else:
        told_so = "There was no time" in answer.text or "not read for lack of time" in answer.text
        assert told_so or len(answer.text.split()) > 9000, answer.text[-300:]


@requirement("seer.local.bad")
@pytest.mark.parametrize("data", [b"", b"no image", BAD["alpha"]()[:900]], ids=["empty", "words", "cut"])
async def test_what_is_no_image_is_a_no(seer: LocalSeer, data: bytes) -> None:
    assert isinstance(await told(seer, data), Refusal)


async def test_a_question_of_nothing_or_of_a_file_is_a_no(seer: LocalSeer) -> None:
    for question in (Question("What?"), Question("What?", documents=(Document("application/pdf", b"%PDF"),))):
        assert isinstance(await seer.ask(question), Refusal)


@requirement("seer.local.bounds")
async def test_a_question_that_nobody_waits_for_ends_its_process_and_the_next_is_answered() -> None:
    with readers() as work:
        seer = local_seer(Path(), work)
        assert isinstance(seer, LocalSeer)
        assert isinstance(await told(seer, saved(page(["Begun"]))), Answer)
        (worker,) = work._alive
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
    assert isinstance(answer, Answer), answer
    assert key(answer.text).startswith("Stillhere")


@requirement("seer.local.bounds")
def test_so_many_read_at_once_and_an_idle_one_leaves() -> None:
    with readers() as work:
        assert (work._count, work._leave, work._limits.seconds, work._limits.waiting) == (2, 30.0, 60.0, True)


@requirement("seer.local.bounds")
def test_what_there_was_no_time_for_is_said_and_looked_for_again() -> None:
    data = saved(page(["Read in the second attempt"]))
    asked = {"question": "", "schema": None, "images": [[image_of(data).sha256, len(data)]], "folder": ""}
    hurried = local.local_task(data, {**asked, "seconds": 0.0})
    assert not isinstance(hurried, Refusal), hurried
    assert hurried[0]["text"].startswith("No text could be read")
    assert "There was no time to search the whole image" in hurried[0]["text"]
    whole = local.local_task(data, {**asked, "seconds": 60.0})
    assert not isinstance(whole, Refusal), whole
    assert key(whole[0]["text"]).startswith("Readinthesecondattempt")


LINUX = pytest.mark.skipif(sys.platform != "linux", reason="what a process has is read in /proc")


@requirement("seer.local.bounds")
@LINUX
async def test_a_look_at_a_page_of_the_usual_size_needs_no_more_than_600_megabytes() -> None:
    with readers() as work:
        seer = local_seer(Path(), work)
        assert isinstance(seer, LocalSeer)
        assert isinstance(await told(seer, saved(page(["A page of the usual size"] * 30, (1920, 1080)))), Answer)
        (worker,) = work._alive
        status = await asyncio.to_thread(Path(f"/proc/{worker._process.pid}/status").read_text)
    sizes = {row[0]: int(row[1]) / 1024 for row in map(str.split, status.splitlines()) if row[0].startswith("Vm")}
    assert sizes["VmHWM:"] < 600
    assert sizes["VmRSS:"] < 340


@requirement("seer.local.bounds")
@LINUX
def test_memory_that_lies_in_pieces_is_given_back() -> None:
    """Every fortieth of many blocks is still held: the C library would keep them all."""
    import subprocess

    code = (
        "from sightline.reader.ocr.weights import _resident_bytes, release_memory;"
        "held = [bytes(100_000) for _ in range(6000)];"
        "del held[::2], held[::2], held[::2]; before = _resident_bytes(); release_memory();"
        "print(before >> 20, _resident_bytes() >> 20)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = map(int, ran.stdout.split())
    assert before > 320
    assert after < 200


@requirement("seer.local.says")
def test_where_it_is_not_installed_one_sentence_says_what_to_type(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sightline.reader.ocr.weights.find_pair", lambda name, data: None)
    with Workers(local.TASKS) as work:
        no = local_seer(tmp_path, work)
    assert isinstance(no, Refusal)
    assert "pip install 'sightline[local]'" in no.remedy


def test_nothing_heavy_is_loaded_to_find_out_whether_it_is_there() -> None:
    import subprocess

    code = (
        "import sys; from pathlib import Path; from sightline.vision.seers.local import local_seer, readers;"
        "local_seer(Path(), readers()); print(sorted({'numpy', 'onnxruntime', 'pyvips', 'PIL'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
