"""`sightline mcp --http`: the proxy's /mcp without the proxy."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.cli.command import assert_refused, sightline
from tests.mcp.serving import MODERN, WAYS, Way, at, images, served, texts
from tests.mcp.test_http import PING, USUAL, post
from tests.mcp.test_tools import TOOLS
from tests.proxy.raw_http import exchange, plug
from tests.requirements import requirement

HTTP = WAYS[2:]
ALONE = ("mcp", "--http")


@requirement("mcp.alone")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_both_protocol_eras_are_served_as_by_the_proxy(way: Way, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.png").write_bytes((folder / "shot.png").read_bytes())
    with served(folder, "--root", ".", verb=ALONE) as url:
        for path in ("/mcp", "/mcp/"):
            async with at(f"{url}{path}", way, headers={"authorization": "Bearer one"}) as one:
                assert (one.protocol_version == MODERN) is (way[1] == "auto")
                assert [tool.name for tool in (await one.list_tools()).tools] == TOOLS
                seen = await one.call_tool("view_image", {"path": "shot.png"})
                assert images(seen)
                no = await one.call_tool("view_image", {"path": str(tmp_path / "outside.png")})
                assert "not_permitted" in texts(no)[0]
        image = {"path": json.loads(texts(seen)[0])["image"]}
        for headers in ({}, {"authorization": "Bearer two"}):
            async with at(f"{url}/mcp", way, headers=headers) as other:
                assert "not_found" in texts(await other.call_tool("view_image", image))[0]


@requirement("mcp.alone")
def test_the_server_is_guarded_and_forwards_nothing(folder: Path) -> None:
    with served(folder, verb=ALONE) as url:
        for bad in [("origin", "https://evil.example"), ("origin", "null"), ("sec-fetch-site", "cross-site")]:
            got = post(url, bad)
            assert got.status == 403, bad
            assert b"127.0.0.1" in got.body
        with plug(url) as connection:
            connection.sendall(b"GET /mcp HTTP/1.1\r\nhost: evil.example\r\n\r\n")
            assert b" 403 " in connection.recv(4096)
        with plug(url) as connection:
            connection.sendall(b"GET /mcp HTTP/1.1\r\nx: " + b"y" * 300_000)
            assert b" 400 " in connection.recv(4096)
        for path in (
            "/v1/messages",
            "/v1/chat/completions",
            "/u/openai/v1/models",
            "/",
            "/mcp/more",
            "/sightline/metrics",
        ):
            got = exchange(url, path, PING, "POST", USUAL)
            assert got.status == 404, path
            assert b"call /mcp" in got.body
        assert post(url, body=b"{").status == 400


@requirement("mcp.alone")
def test_an_address_that_cannot_be_used_is_refused_in_one_line(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = sightline("mcp", "--http", "--port", port, folder=folder)
        assert_refused(ended, port, "--port")
    assert_refused(sightline("mcp", "--http", "--host", "0.0.0.0", folder=folder), "--host 127.0.0.1", "--token")
    assert_refused(sightline("mcp", "--http", "--root", "gone", folder=folder), " gone ", "--root")
    for flag, value in (("--port", "9"), ("--host", "::1"), ("--root", "."), ("--token", "t")):
        assert_refused(sightline("mcp", flag, value, folder=folder), f"{flag} ", "--http")
    assert "sightline mcp --http --root ." in sightline("mcp", "--help").out
