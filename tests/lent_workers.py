"""Worker processes that the tests of a process share: to start one takes longer than most of the tasks here."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from sightline import runtime
from sightline.model.refusal import Refusal
from sightline.pixels.worker_process import JsonObject
from sightline.pixels.workers import WorkerPool, WorkerReply
from sightline.reader.ocr.weights import list_weight_folders
from sightline.vision.seers import local


class LentPool(WorkerPool):
    """A pool that stays open when a runtime that was given it is closed."""

    async def run(self, task: str, data: bytes, arguments: JsonObject | None = None) -> WorkerReply | Refusal:
        """Run a task. A reader has its weights for each folder: name no folder where there are none."""
        folder = (arguments or {}).get("folder")
        if folder and not list_weight_folders(Path(folder))[0].exists():
            arguments = {**(arguments or {}), "folder": ""}
        return await super().run(task, data, arguments)

    async def close(self) -> None:
        """Leave the processes to the next runtime."""


def _lend(start: Callable[[], WorkerPool]) -> Callable[[], WorkerPool]:
    """Return a function that returns the same pool every time; it is like one that `start` returns."""

    @functools.cache
    def lend() -> WorkerPool:
        usual = start()
        pool = LentPool(usual._tasks, count=usual._count, limits=usual._limits)
        atexit.register(pool.shut_down)
        return pool

    return lend


def lend_workers() -> None:
    """Give every runtime that is built in this process the same worker processes."""
    patch = pytest.MonkeyPatch()
    patch.setattr(runtime, "_build_workers", _lend(runtime._build_workers))
    patch.setattr(runtime, "start_readers", _lend(local.start_readers))
