"""Slow calls: they report progress, and end when they are cancelled or their client disconnects."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.api.eyes import eyes, named
from tests.mcp.serving import Way, client, texts
from tests.requirements import requirement
from tests.scripted.faults import Hang

CALL = {"images": ["shot.png"], "question": "What is it?"}


@requirement("mcp.progress")
async def test_slow_calls_report_progress(way: Way, folder: Path) -> None:
    hang, heard = Hang(), list[tuple[float, str | None]]()
    with eyes("words") as provider:
        provider.faults.append(hang)
        async with client(way, folder, env=named(provider)) as one:

            async def progress(progress: float, total: float | None, message: str | None) -> None:
                heard.append((progress, message))
                if len(heard) == 2:
                    hang.release()

            result = await one.call_tool("analyze_image", CALL, progress_callback=progress)
    assert "words" in texts(result)[0]
    assert [done for done, _ in heard] == sorted({done for done, _ in heard}), "each is further than the last"
    assert (heard[0][1] or "").startswith("analyze_image: ")


@requirement("mcp.cancel")
@pytest.mark.parametrize("tool", ["analyze_image", "vision_analyze"])
async def test_a_cancelled_call_is_cancelled_at_the_provider(way: Way, folder: Path, tool: str) -> None:
    file = {"file_path": str(folder / "shot.png"), "prompt": "What?", "model": "mine/eye-2"}
    with eyes("words") as provider:
        hang = Hang()
        provider.faults.append(hang)
        async with client(way, folder, env=named(provider)) as one:
            call = asyncio.ensure_future(one.call_tool(tool, CALL if tool == "analyze_image" else file))
            await asyncio.to_thread(hang.reached.result, 60)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await asyncio.to_thread(lambda: provider.exchanges[-1].abandoned)
            again = await one.call_tool("analyze_image", CALL)
            assert "words" in texts(again)[0], "the session goes on"


@requirement("mcp.leaves")
async def test_calls_end_when_their_client_disconnects(way: Way, folder: Path) -> None:
    with eyes("words") as provider:
        hang = Hang()
        provider.faults.append(hang)
        async with client(way, folder, env=named(provider)) as one:
            call = asyncio.ensure_future(one.call_tool("analyze_image", CALL))
            await asyncio.to_thread(hang.reached.result, 60)
        await asyncio.gather(call, return_exceptions=True)
        assert await asyncio.to_thread(lambda: provider.exchanges[-1].abandoned)
