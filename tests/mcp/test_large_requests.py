"""Large requests at /mcp: bounded, prepared in a thread, and complete when they reach a tool."""

from __future__ import annotations

import asyncio
import json
import struct
import threading
import zlib
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sightline.server.asgi import MemoryBudget
from sightline.surfaces.mcp.http import MAX_BYTES_WITHOUT_SESSION
from sightline.surfaces.mcp.large_requests import MAX_REQUEST_TEXT_BYTES, LiftedRequest, lift_request, restore
from sightline.vision.concurrency import ComputeThread, P, T
from tests.mcp.serving import WAYS, Way, at, served, texts
from tests.mcp.test_http import post
from tests.mcp.test_sessions import HELLO, VERSION, ask, called, mounted
from tests.proxy.raw_http import Got
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours

HTTP = WAYS[2:]
LONG = "a b " * (MAX_BYTES_WITHOUT_SESSION // 4)


def initialize(name: str) -> bytes:
    about = {"name": name, "version": "0"}
    return called("initialize", {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": about})


def error_of(body: bytes) -> dict[str, Any]:
    message = json.loads(body)
    assert message["jsonrpc"] == "2.0"
    error: dict[str, Any] = message["error"]
    return error


def padded(picture: bytes, size: int) -> bytes:
    """Return a PNG with a chunk of `size` bytes that shows nothing."""
    chunk = b"paDd" + Random(1).randbytes(size)
    whole = struct.pack(">I", size) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return picture[:33] + whole + picture[33:]


@requirement("mcp.http.opening")
async def test_a_large_initialize_opens_no_session_and_is_refused() -> None:
    async with mounted() as mount:
        status, session, body = await ask(mount, initialize(LONG))
        assert (status, session) == (413, "")
        assert error_of(body)["code"] == -32600
        assert (await ask(mount, initialize("a" * 1000)))[0] == 200


@requirement("mcp.http.opening")
async def test_a_large_request_without_a_session_is_refused() -> None:
    large = called("ping", {"_meta": {"x": LONG}})
    async with mounted() as mount:
        status, _, body = await ask(mount, large)
        assert (status, error_of(body)["code"]) == (413, -32600)
        status, _, body = await ask(mount, large, session="made-up")
        assert status == 404, "as for a small one: its client has to initialize again"
        assert "initialize" in error_of(body)["message"]
        _, own, _ = await ask(mount, HELLO)
        assert (await ask(mount, large, own))[0] == 200


@requirement("mcp.http.opening")
def test_the_size_is_checked_before_a_body_is_read(folder: Path) -> None:
    with served(folder) as url:
        got = post(url, body=initialize(LONG))
        assert got.status == 413
        assert error_of(got.body)["code"] == -32600
        assert post(url, ("mcp-session-id", "made-up"), body=initialize(LONG)).status == 404
        assert opened(url).status == 200


def opened(url: str) -> Got:
    return post(url, body=initialize("test"))


@requirement("mcp.http.large")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_a_large_file_as_base64_reaches_the_tool_whole(way: Way, folder: Path) -> None:
    picture = paint_quadrants(some_colours(3))
    small, large = (b64encode(each).decode() for each in (picture, padded(picture, 1_000_000)))
    with served(folder) as url:
        async with at(f"{url}/mcp", way) as one:
            answers = [
                texts(await one.call_tool("vision_analyze", {"prompt": "?", "file_base64": prefix + data}))[0]
                for prefix, data in [("", small), ("", large), ("data:image/png;base64,", large)]
            ]
            cut = await one.call_tool("vision_analyze", {"prompt": "?", "file_base64": large[:-800_001]})
    assert "UNSUPPORTED_FILE_TYPE" not in answers[0]
    assert answers[0] == answers[1] == answers[2]
    assert texts(cut)[0] not in answers


class CountingOffload(ComputeThread):
    """Counts the work in the thread, and during how much of it the event loop has a turn."""

    def __init__(self) -> None:
        super().__init__()
        self.runs = self.beside = 0

    async def run(self, caller: str, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.runs += 1
        loop, served = asyncio.get_running_loop(), threading.Event()

        def work_beside() -> T:
            loop.call_soon_threadsafe(served.set)
            self.beside += served.wait(20)
            return work(*args, **kwargs)

        return await super().run(caller, work_beside)


@requirement("mcp.http.large")
async def test_a_large_request_is_prepared_in_a_thread_and_others_are_served_meanwhile() -> None:
    offload = CountingOffload()
    file = b64encode(Random(2).randbytes(1_000_000)).decode()
    large = called("tools/call", {"name": "vision_analyze", "arguments": {"prompt": "?", "file_base64": file}})
    async with mounted(offload=offload) as mount:
        _, own, _ = await ask(mount, HELLO)
        assert (await ask(mount, called("tools/list"), own))[0] == 200
        assert offload.runs == 0, "small requests are not worth a thread"
        assert (await ask(mount, large, own))[0] == 200
        assert (offload.runs, offload.beside) == (1, 1)


@requirement("mcp.http.large")
@pytest.mark.parametrize("unit", ["\\n", "\\u00e9", "word "])
async def test_a_request_of_too_much_text_is_refused_before_it_is_parsed(unit: str) -> None:
    text = unit * (MAX_REQUEST_TEXT_BYTES // len(unit) + 1)
    async with mounted() as mount:
        _, own, _ = await ask(mount, HELLO)
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"x":"%b"}}}' % text.encode()
        status, _, answer = await ask(mount, body, own)
        assert (status, error_of(answer)["code"]) == (413, -32600)


@requirement("mcp.http.large")
async def test_a_large_request_without_memory_for_it_is_asked_to_retry() -> None:
    memory = MemoryBudget(2_000_000)
    async with mounted(memory=memory) as mount:
        _, own, _ = await ask(mount, HELLO)
        large = called("ping", {"_meta": {"x": "a b " * 400_000}})
        assert (await ask(mount, large, own))[0] == 200
        with memory.start_reservation() as other:
            assert other.add(1_000_000)
            status, _, body = await ask(mount, large, own)
            assert (status, error_of(body)["code"]) == (503, -32603)
        assert (await ask(mount, large, own))[0] == 200
        assert memory.reserved == 0


@requirement("mcp.http.large")
def test_base64_is_restored_in_its_place() -> None:
    runs = [b64encode(Random(seed).randbytes(300_000)).decode() for seed in (1, 2)]
    inner = {"b": f"data:x;base64,{runs[1]}"}
    given = {"a": [runs[0], 1, None, "words"], "more": inner, "text": json.dumps(inner)}
    lifted = lift_request(json.dumps(given).encode())
    assert isinstance(lifted, LiftedRequest)
    assert len(lifted.body) < 2000
    assert restore(json.loads(lifted.body), lifted) == given
