"""Compressed bodies are decompressed in threads, a few at a time, and within bounds."""

from __future__ import annotations

import asyncio
import gzip
import threading
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.surfaces.proxy import request_bodies
from sightline.surfaces.proxy.request_bodies import Decompressor, decompress
from tests.requirements import requirement


@requirement("pass.beside")
async def test_other_requests_are_served_during_decompression() -> None:
    body = gzip.compress(bytes(range(256)) * 60_000, 1)
    turns = 0
    work = asyncio.ensure_future(Decompressor().decompress(body, "gzip"))
    while not work.done():
        await asyncio.sleep(0)
        turns += 1
    assert len(await work or b"") == 256 * 60_000
    assert turns > 10


@requirement("pass.beside")
async def test_only_a_few_bodies_are_decompressed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    lock, under_way, seen = threading.Lock(), 0, []

    def watched(data: bytes | bytearray, most: int) -> bytes:
        nonlocal under_way
        with lock:
            under_way += 1
            seen.append(under_way)
        found = zlib.decompress(data)
        with lock:
            under_way -= 1
        return found

    monkeypatch.setitem(request_bodies._DECOMPRESS_BY_ENCODING, "deflate", watched)
    unpacking, body = Decompressor(), zlib.compress(bytes(30_000_000), 1)
    await asyncio.gather(*(unpacking.decompress(body, "deflate") for _ in range(12)))
    assert (len(seen), max(seen) <= 2) == (12, True)


@requirement("pass.packed")
async def test_decompression_stops_at_an_impossible_ratio() -> None:
    much = 100 * 1024 * 1024
    assert await Decompressor().decompress(gzip.compress(bytes(much)), "gzip") is None
    assert await Decompressor().decompress(gzip.compress(bytes(much // 10)), "gzip") == bytes(much // 10)


@given(st.binary(), st.sampled_from(["gzip", "deflate", "br", "zstd", "identity", "unknown", ""]))
def test_any_bytes_are_decompressed_or_refused(data: bytes, encoding: str) -> None:
    found = decompress(data, encoding)
    assert found is None or len(found) <= request_bodies.MAX_BODY_BYTES
