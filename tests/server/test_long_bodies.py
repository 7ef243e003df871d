"""Long bodies are read straight into their buffer without affecting what comes before or after."""

from __future__ import annotations

import asyncio
import platform
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from sightline.server import DIRECT_CONNECTION
from sightline.surfaces.proxy.bodies import MAX_BODY_BYTES, BufferedBody, read_request_body
from tests.proxy.raw_http import exchange, head, plug
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.provider import Provider
from tests.server.serving import served

SIZES = [10, 65_535, 65_536, 300_000, 3_000_001]


def body(size: int) -> bytes:
    words = Random(size).randbytes(size).hex().encode()
    return b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"%b"}]}' % words


async def echo(scope, receive, send) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    """What came, by its name."""
    length = int(dict(scope["headers"])[b"content-length"])
    found = await read_request_body(receive, length, MAX_BODY_BYTES, scope["extensions"][DIRECT_CONNECTION])
    assert isinstance(found, BufferedBody)
    assert len(found.data) == length
    said = sha256(found.data).hexdigest().encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"64")]})
    await send({"type": "http.response.body", "body": said, "more_body": False})


@pytest.mark.parametrize("piece", [1 << 24, 100_000, 7_777])
async def test_consecutive_bodies_arrive_unchanged(piece: int) -> None:
    bodies = [body(size) for size in (*SIZES, *SIZES)]
    sent = b"".join(head("/", len(each)) + each for each in bodies)
    async with served(echo) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)

        async def pour() -> None:
            for at in range(0, len(sent), piece):
                writer.write(sent[at : at + piece])
                await writer.drain()

        pouring = asyncio.ensure_future(pour())
        for each in bodies:
            assert b"content-length: 64" in await reader.readuntil(b"\r\n\r\n")
            assert (await reader.readexactly(64)).decode() == sha256(each).hexdigest()
        await pouring
        writer.close()


async def test_a_long_body_gets_100_continue() -> None:
    long = body(300_000)
    async with served(echo) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head("/", len(long)).replace(b"\r\n\r\n", b"\r\nexpect: 100-continue\r\n\r\n"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(long)
        await reader.readuntil(b"\r\n\r\n")
        assert (await reader.readexactly(64)).decode() == sha256(long).hexdigest()
        writer.close()


@requirement("http.smuggling")
def test_a_request_after_a_long_body_is_separate(tmp_path: Path) -> None:
    first, second = body(400_000), body(100)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(head("/v1/messages", len(first)) + first + head("/v1/messages", len(second)) + second)
            said = b""
            while said.count(b"HTTP/1.1 200") < 2:
                said += connection.recv(65536)
        assert [one.body for one in provider.exchanges] == [first, second]


@pytest.mark.parametrize("come", [1000, 200_000, 900_000])
def test_a_disconnect_within_a_long_body_leaves_nothing_behind(tmp_path: Path, come: int) -> None:
    long = body(500_000)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        before = proxy.tasks()
        with plug(proxy.url) as connection:
            connection.sendall((head("/v1/messages", len(long)) + long)[:come])
        assert exchange(proxy.url, "/v1/messages", body(10)).status == 200
        while proxy.tasks() > before:
            assert exchange(proxy.url, "/v1/messages", body(10)).status == 200
        assert {one.body for one in provider.exchanges} == {body(10)}


def test_an_unread_long_body_does_not_block_its_connection(tmp_path: Path) -> None:
    long, short = body(1_500_000), body(10)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        with plug(proxy.url) as connection:
            foreign = head("/v1/messages", len(long)).replace(b"host: 127.0.0.1", b"host: example.com")
            connection.sendall(foreign + long + head("/v1/messages", len(short)) + short)
            said = b""
            while b"HTTP/1.1 200" not in said:
                said += connection.recv(65536)
        assert said.startswith(b"HTTP/1.1 400")
        assert [one.body for one in provider.exchanges] == [short]


async def test_a_long_body_that_ends_byte_by_byte_is_complete() -> None:
    long = body(90_000)
    async with served(echo) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(head("/", len(long)) + long[:-9])
        for at in range(len(long) - 9, len(long)):
            await asyncio.sleep(0.02)  # so that each is read by itself
            writer.write(long[at : at + 1])
        await reader.readuntil(b"\r\n\r\n")
        assert (await reader.readexactly(64)).decode() == sha256(long).hexdigest()
        writer.close()


@requirement("load.freed")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have their own rules")
def test_memory_of_long_bodies_is_kept_for_the_next_and_returned_after_a_pause() -> None:
    measured = subprocess.run([sys.executable, "-c", _FREE_BODIES], capture_output=True, text=True, check=True).stdout
    in_use, kept, returned = map(int, measured.split())
    assert kept > 0.8 * in_use
    assert returned < 0.5 * in_use


_FREE_BODIES = """
import asyncio, pathlib
from sightline import server

def read_megabytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096 >> 20

async def measure():
    state = server.ServerState(None, memoryview(b""))
    server._TRIM_SECONDS = 0.01
    server._keep_freed_memory(state)
    bodies = [bytearray(b"a" * 10_000_000) for _ in range(30)]
    state.long_bodies += len(bodies)
    in_use = read_megabytes()
    bodies.clear()
    kept = returned = read_megabytes()
    async with asyncio.timeout(30):
        while returned > 0.5 * in_use:
            await asyncio.sleep(0)
            returned = read_megabytes()
    print(in_use, kept, returned)

asyncio.run(measure())
"""
