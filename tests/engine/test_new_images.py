"""What is done with the bytes of images that were never sent before: once, off the event loop, and side by side."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sightline.store import open_record
from tests.engine.parts import SEEING, Stage, Talk, asking, draw_noise, sent, words
from tests.requirements import requirement

EDGE = 500  # 750 KB, 1 MB of base64
LONG = 500_000  # bytes; less is done where it is needed
HASHED, NAMED, DECODED = "sightline.model.scene.blake3", "sightline.engine.inline_images.sha256", "pybase64.b64decode"


class Reads:
    """How often all of an image was read, by what reads it, and in which threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: Counter[str] = Counter()
        self.threads: set[int] = set()
        for name in (HASHED, NAMED, DECODED):
            module, _, function = name.rpartition(".")
            found = getattr(__import__(module, fromlist=[function]), function)
            monkeypatch.setattr(name, self._watch(name, found))

    def _watch(self, name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def read_watched(data: Any, *rest: Any, **named: Any) -> Any:
            if len(data) > LONG:
                self.counts[name] += 1
                self.threads.add(threading.get_ident())
            return read(data, *rest, **named)

        return read_watched


@requirement("record.read_once")
async def test_a_new_image_is_hashed_and_decoded_once_and_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, reads = open_record(tmp_path), Reads(monkeypatch)
    stage = Stage(record=record, references=True)
    asked = asking(*(draw_noise(seed, EDGE) for seed in range(3)), model=SEEING)
    first = await stage.prepare(asked)
    assert reads.counts == {HASHED: 3, NAMED: 3, DECODED: 3}
    assert threading.get_ident() not in reads.threads
    reads.counts.clear()
    again = await stage.prepare(asked)
    assert reads.counts == {}, "it is recognized by its text"
    assert sent(again) == sent(first)
    assert any("sha256:" in each for each in words(again))
    record.close()


@requirement("record.read_once")
async def test_images_that_tools_have_read_are_hashed_once_and_in_a_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, reads = open_record(tmp_path), Reads(monkeypatch)
    stage = Stage(record=record, references=True)
    talk = Talk(SEEING).say("look").read(*((f"{seed}.png", draw_noise(seed, EDGE)) for seed in range(3)))
    await stage.prepare(talk.body)
    assert reads.counts[HASHED] == 3
    assert threading.get_ident() not in reads.threads
    reads.counts.clear()
    await stage.prepare(talk.answer("three").say("and now?").body)
    assert reads.counts[HASHED] == 0
    record.close()


@requirement("record.read_once")
async def test_new_images_are_read_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    meeting = threading.Barrier(2, timeout=30)  # which no thread passes alone

    def name_together(data: bytes) -> Any:
        meeting.wait()
        return hashlib.sha256(data)

    monkeypatch.setattr(NAMED, name_together)
    record = open_record(tmp_path)
    prepared = await Stage(record=record, references=True).prepare(
        asking(draw_noise(1, EDGE), draw_noise(2, EDGE), model=SEEING)
    )
    assert sum("sha256:" in each for each in words(prepared)) == 2
    record.close()
