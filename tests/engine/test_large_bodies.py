"""Work on large bodies is done in a thread, work on small ones is not."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sightline.engine import Reading
from sightline.model.image import Image
from sightline.model.ports import ImageStore
from sightline.model.profile import Profile
from sightline.model.scene import Edit, InlineSource, Json, Scene
from sightline.store import open_record
from sightline.wire import ANTHROPIC, Wire
from sightline.wire.json_tree import Texts
from tests.engine.parts import SEEING, Stage, draw_noise, encoded, picture, visitor
from tests.requirements import requirement
from tests.wire.bodies import block, text, user


class Watched:
    """A wire that records the threads that use it."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    @property
    def wire(self) -> Wire:
        return replace(ANTHROPIC, read=self._read, lower=self._lower)

    def _read(self, tree: Json, texts: Texts) -> Scene:
        self.threads.add(threading.get_ident())
        return ANTHROPIC.read(tree, texts)

    def _lower(self, scene: Scene, tree: Json, profile: Profile) -> list[Edit]:
        self.threads.add(threading.get_ident())
        return ANTHROPIC.lower(scene, tree, profile)


def talk(*messages: Any) -> bytes:
    asked = user(block(encoded(picture())), text("what is it"))
    return json.dumps({"model": SEEING, "messages": [*messages, asked]}).encode()


LARGE = {
    "text": talk(user(text("words " * 50_000))),
    "messages": talk(*[user(text("a"))] * 2_500),
    "parts": talk(user(*[text("a")] * 2_500)),
    "images": talk(user(*[block(encoded(picture(size=(2, 2))))] * 600)),
}


@pytest.mark.parametrize("body", LARGE.values(), ids=LARGE)
@requirement("load.beside")
async def test_a_large_body_is_read_and_written_in_a_thread(body: bytes) -> None:
    watched, stage = Watched(), Stage()
    reading = await stage.engine.open(body, watched.wire)
    assert isinstance(reading, Reading)
    prepared = await stage.engine.prepare(reading, visitor())
    assert prepared.receipt.sights
    assert watched.threads
    assert threading.get_ident() not in watched.threads


@requirement("load.beside")
async def test_known_images_of_a_long_body_are_recognized_with_the_one_hand_over() -> None:
    watched, stage = Watched(), Stage(references=True)
    body = talk(*[user(block(encoded(draw_noise(number)))) for number in range(3)])
    reading = await stage.engine.open(body, watched.wire)
    assert isinstance(reading, Reading)
    await stage.engine.prepare(reading, visitor())
    watched.threads.clear()
    reading = await stage.engine.open(body, watched.wire)
    assert isinstance(reading, Reading)
    assert threading.get_ident() not in watched.threads
    assert reading.heavy
    assert not reading.many_parts
    sources = [sight.source for sight in reading.scene.sights]
    assert len(sources) == 4
    assert all(isinstance(source, InlineSource) and source.has_key for source in sources)


@requirement("load.beside")
async def test_a_small_body_is_read_and_written_without_a_thread() -> None:
    watched, stage = Watched(), Stage()
    reading = await stage.engine.open(talk(), watched.wire)
    assert isinstance(reading, Reading)
    await stage.engine.prepare(reading, visitor())
    assert watched.threads == {threading.get_ident()}


@requirement("load.beside")
async def test_callers_with_large_bodies_take_turns() -> None:
    stage, order = Stage(), list[str]()
    body = talk(user(text("words " * 50_000)))

    async def opened(caller: str) -> None:
        await stage.engine.open(body, ANTHROPIC, lambda: caller)
        order.append(caller)

    await asyncio.gather(*(opened("greedy") for _ in range(6)), opened("modest"))
    assert "modest" in order[:3]


class CountingImages:
    """An image store that records how many images are stored at a time, and in which threads."""

    def __init__(self, images: ImageStore) -> None:
        self._images = images
        self._lock = threading.Lock()
        self._under_way = self.most = self.kept = 0
        self.threads: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._images, name)

    def keep(self, scope: str, image: Image) -> bool:
        with self._lock:
            self._under_way += 1
            self.threads.add(threading.get_ident())
            self.most = max(self.most, self._under_way)
        try:
            return self._images.keep(scope, image)
        finally:
            with self._lock:
                self._under_way -= 1
                self.kept += 1


@requirement("load.turns")
async def test_only_a_few_images_of_a_request_are_processed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    record = open_record(Path("unused"), kind="memory")
    counting = CountingImages(record.images)
    monkeypatch.setattr(record, "images", counting)
    stage = Stage(record=record, references=True)
    images = [block(encoded(picture(seed, size=(2, 2)))) for seed in range(60)]
    await stage.prepare({"model": SEEING, "messages": [user(*images, text("what is it"))]})
    assert (counting.kept, counting.most <= 8) == (60, True)


@requirement("load.beside")
async def test_the_event_loop_continues_while_many_images_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    record = open_record(Path("unused"), kind="memory")
    counting = CountingImages(record.images)
    monkeypatch.setattr(record, "images", counting)
    stage = Stage(record=record, references=True)
    images = [block(encoded(picture(seed, size=(2, 2)))) for seed in range(200)]
    asked = {"model": SEEING, "messages": [user(*images, text("what is it"))]}
    task, kept_by_turn = asyncio.ensure_future(stage.prepare(asked)), [0]
    while not task.done():
        await asyncio.sleep(0)
        kept_by_turn.append(counting.kept)
    assert len((await task).scene.sights) == counting.kept == 200
    assert threading.get_ident() not in counting.threads
    assert max(after - before for before, after in pairwise(kept_by_turn)) <= 16, "images between two turns of the loop"
