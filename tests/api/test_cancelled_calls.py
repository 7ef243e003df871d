"""A caller that leaves: what it waited for ends, and what others wait for goes on."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import sightline
from sightline.api import Analysis
from tests.api.eyes import eyes, named
from tests.requirements import requirement
from tests.scripted.faults import Hang
from tests.scripted.pictures import paint_quadrants, some_colours


@requirement("library.cancel")
@pytest.mark.parametrize("how", ["analyze", "vision_analyze"])
async def test_a_cancelled_call_cancels_its_request(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "shot.png"
    path.write_bytes(paint_quadrants(some_colours(1)))
    hang = Hang()
    with eyes("words") as provider:
        for name, value in named(provider).items():
            monkeypatch.setenv(name, value)
        provider.faults.append(hang)
        asked = {"analyze": lambda: sightline.analyze.aio("shot.png", "What is it?")}
        asked["vision_analyze"] = lambda: sightline.vision_analyze.aio(  # type: ignore[assignment, return-value]
            file_path=path, prompt="What?", model="mine/eye-2"
        )
        task = asyncio.ensure_future(asked[how]())
        await asyncio.to_thread(hang.reached.result, 60)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(lambda: provider.exchanges[-1].abandoned)
        again = await sightline.analyze.aio("shot.png", "What is it?")
        assert isinstance(again, Analysis)
        assert again.text == "words"
