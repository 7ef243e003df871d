"""/mcp of the proxy: who may come, what they may see, and that nothing else changes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.look.eyes import eyes, named
from tests.mcp.serving import WAYS, Way, at, images, served, texts
from tests.proxy.raw import Got, exchange, plug
from tests.requirements import requirement

HTTP = WAYS[2:]
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
USUAL = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]


def post(url: str, *headers: tuple[str, str], body: bytes = PING, method: str = "POST") -> Got:
    given = {name for name, _ in headers}
    return exchange(url, "/mcp", body, method, [*(pair for pair in USUAL if pair[0] not in given), *headers])


@requirement("mcp.http.guarded")
def test_a_page_of_the_web_cannot_come_in(folder: Path) -> None:
    with served(folder) as url:
        here = url.removeprefix("http://")
        for bad in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
        ]:
            got = post(url, bad)
            assert got.status == 403, bad
            assert b"only programs of this machine are served here" in got.body
        with plug(url) as connection:
            connection.sendall(b"GET /mcp HTTP/1.1\r\nhost: evil.example\r\n\r\n")
            assert b" 403 " in connection.recv(4096)
        assert post(url, ("origin", f"http://{here}")).status != 403
        assert post(url, body=b"{").status == 400
        assert post(url, ("content-type", "text/plain")).status == 400
        assert post(url, ("mcp-session-id", "made-up")).status == 404
        assert post(url, ("mcp-protocol-version", "1999-01-01")).status == 400
        assert post(url, body=b"x" * (65 * 1024 * 1024)).status == 413
        assert post(url, method="PUT").status in (400, 405)
        assert exchange(url, "/sightline/health", method="GET").status == 200


@requirement("mcp.http.guarded")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_a_proxy_with_a_token_asks_for_it_here_too(way: Way, folder: Path) -> None:
    with served(folder, "--token", "open-sesame") as url:
        got = await asyncio.to_thread(post, url)
        assert got.status == 403
        assert b"x-sightline-token" in got.body
        async with at(f"{url}/mcp", way, headers={"x-sightline-token": "open-sesame"}) as one:
            assert (await one.list_tools()).tools


@requirement("mcp.http.scope")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_nobody_sees_what_another_credential_has_seen(way: Way, folder: Path) -> None:
    with served(folder, "--root", str(folder), env={"SIGHTLINE_LIST_IMAGES": "all"}) as url:
        async with at(f"{url}/mcp", way, headers={"authorization": "Bearer one"}) as one:
            told = json.loads(texts(await one.call_tool("view_image", {"path": "shot.png"}))[0])
            assert images(await one.call_tool("view_image", {"path": told["image"]}))
            assert len((await one.list_resources()).resources) == 1
        for other in ({"authorization": "Bearer two"}, {}, {"x-api-key": "one"}):
            async with at(f"{url}/mcp", way, headers=other) as two:
                no = await two.call_tool("view_image", {"path": told["image"]})
                assert "the record holds no image" in texts(no)[0]
                assert (await two.list_resources()).resources == []
                assert json.loads(texts(await two.call_tool("list_images", {}))[0])["images"] == []


@requirement("mcp.http.root")
async def test_without_a_root_no_file_is_read(folder: Path) -> None:
    with served(folder) as url:
        async with at(f"{url}/mcp", HTTP[0]) as one:
            for path in ("shot.png", str(folder / "shot.png"), "~/shot.png"):
                no = await one.call_tool("view_image", {"path": path})
                assert no.is_error
                assert "not_permitted" in texts(no)[0]


@requirement("mcp.http.counted")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_a_model_s_calls_are_counted_for_each_credential(way: Way, folder: Path) -> None:
    with eyes("words") as provider:
        env = named(provider, SIGHTLINE_MAX_TOOL_CALLS_PER_TURN="1", SIGHTLINE_CACHE_SIZE="0")
        with served(folder, "--root", str(folder), env=env) as url:
            call = {"images": ["shot.png"], "question": "What is it?"}
            for credential in ("one", "two"):
                async with at(f"{url}/mcp/", way, headers={"authorization": credential}) as one:
                    assert not (await one.call_tool("analyze_image", call)).is_error
                    no = await one.call_tool("analyze_image", call)
                    assert "as many questions as one turn allows" in texts(no)[0]


@requirement("mcp.http.workers")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_several_workers_answer_whoever_comes(way: Way, folder: Path) -> None:
    with served(folder, "--root", str(folder), "--workers", "2") as url:
        for _ in range(4):
            async with at(f"{url}/mcp", way) as one:
                assert images(await one.call_tool("view_image", {"path": "shot.png"}))
