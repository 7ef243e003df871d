"""Compressed bodies are decompressed in threads, a few at a time, and within bounds."""

from __future__ import annotations

import asyncio
import gzip
import threading
import zlib

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from sightline.surfaces.proxy import bodies
from sightline.surfaces.proxy.bodies import Decompressor, decompress
from tests.requirements import requirement


@requirement("pass.beside")
@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_other_requests_are_served_during_decompression(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop, work = asyncio.get_running_loop(), bodies._DECOMPRESS_BY_ENCODING[encoding]
    served = threading.Event()

    def decompress_beside(data: bytes | bytearray, most: int) -> bytes | bytearray | None:
        loop.call_soon_threadsafe(served.set)
        return work(data, most) if served.wait(20) else None

    monkeypatch.setitem(bodies._DECOMPRESS_BY_ENCODING, encoding, decompress_beside)
    body = {"gzip": gzip.compress, "deflate": zlib.compress, "br": brotli.compress, "zstd": zstandard.compress}
    assert await Decompressor().decompress(body[encoding](b"some words"), encoding) == b"some words"


@requirement("pass.beside")
async def test_only_a_few_bodies_are_decompressed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, under_way, seen, released = threading.Lock(), 0, list[int](), threading.Event()

    def decompress_when_released(data: bytes | bytearray, most: int) -> bytes:
        nonlocal under_way
        with lock:
            under_way += 1
            seen.append(under_way)
        assert released.wait(20)
        with lock:
            under_way -= 1
        return zlib.decompress(data)

    monkeypatch.setitem(bodies._DECOMPRESS_BY_ENCODING, "deflate", decompress_when_released)
    unpacking, body = Decompressor(), zlib.compress(b"some words")
    work = asyncio.gather(*(unpacking.decompress(body, "deflate") for _ in range(12)))
    for _ in range(1000):
        await asyncio.sleep(0)
    released.set()
    assert await work == [b"some words"] * 12
    assert (len(seen), max(seen) <= 2) == (12, True)


@requirement("pass.packed")
async def test_decompression_stops_at_an_impossible_ratio() -> None:
    much = 20 * 1024 * 1024
    assert await Decompressor().decompress(gzip.compress(bytes(much), 1), "gzip") is None
    assert await Decompressor().decompress(gzip.compress(bytes(much // 2), 1), "gzip") == bytes(much // 2)


@given(st.binary(), st.sampled_from(["gzip", "deflate", "br", "zstd", "identity", "unknown", ""]))
def test_any_bytes_are_decompressed_or_refused(data: bytes, encoding: str) -> None:
    found = decompress(data, encoding)
    assert found is None or len(found) <= bodies.MAX_BODY_BYTES
