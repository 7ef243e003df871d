"""/mcp of the proxy: who may come, what they may see, and that nothing else changes."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client

from tests.api.eyes import eyes, named
from tests.cli.command import sightline
from tests.mcp.serving import MODERN, WAYS, Way, at, images, served, texts
from tests.proxy.raw_http import Got, exchange, plug
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider

HTTP = WAYS[2:]
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
USUAL = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")]


def post(url: str, *headers: tuple[str, str], body: bytes = PING, method: str = "POST") -> Got:
    given = {name for name, _ in headers}
    return exchange(url, "/mcp", body, method, [*(pair for pair in USUAL if pair[0] not in given), *headers])


@requirement("mcp.http.guarded")
def test_requests_from_web_pages_are_refused(folder: Path) -> None:
    with served(folder) as url:
        here = url.removeprefix("http://")
        for bad in [
            ("origin", "https://evil.example"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
        ]:
            got = post(url, bad)
            assert got.status == 403, bad
            assert b"127.0.0.1" in got.body
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


@requirement("mcp.bad_bodies")
def test_a_body_that_is_not_a_message_is_answered_in_one_line(folder: Path) -> None:
    eras = ((), (("mcp-protocol-version", "2026-07-28"), ("mcp-method", "ping")))
    with served(folder) as url:
        for body, code in [
            (b"{", -32700),
            (b"[" * 10_000, -32700),
            (b"null", -32600),
            (b"[]", -32600),
            (b"{}", -32600),
            (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
            (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600),
        ]:
            for headers in eras:
                got = post(url, *headers, body=body)
                told = json.loads(got.body)
                assert (got.status, told["error"]["code"]) == (400, code), body[:40]
                assert len(told["error"]["message"].splitlines()) == 1
        assert post(url, body=PING).status in (200, 400), "and it goes on"


@requirement("mcp.http.remedies")
def test_a_malformed_request_is_answered_with_a_remedy(folder: Path) -> None:
    now = ("mcp-protocol-version", MODERN)
    cases: list[tuple[str, list[tuple[str, str]], int, str]] = [
        ("POST", [], 400, r"initialize.*mcp-session-id"),
        ("GET", [], 400, r"initialize.*mcp-session-id"),
        ("POST", [("mcp-session-id", "made-up")], 404, r"initialize"),
        ("POST", [("content-type", "text/plain")], 400, r"content-type: application/json"),
        ("POST", [("accept", "text/html")], 406, r"accept: application/json, text/event-stream"),
        ("POST", [now, ("accept", "text/html")], 406, r"accept: application/json, text/event-stream"),
        ("PUT", [], 405, r"POST"),
        ("GET", [now], 405, r"POST"),
        ("POST", [now], 400, r"initialize.*2025-11-25"),
    ]
    with served(folder) as url:
        for method, headers, status, remedy in cases:
            got = post(url, *headers, method=method)
            assert got.status == status, (method, headers)
            told = got.body.decode()
            words = json.loads(told)["error"]["message"] if told.startswith("{") else told
            assert re.search(rf"\([^()]*{remedy}[^()]*\)$", words), (method, headers)


@requirement("mcp.bad_params")
def test_invalid_arguments_are_a_result_in_the_new_era_too(folder: Path) -> None:
    about = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "0"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/call"), ("mcp-name", "view_image")]
    with served(folder, "--root", str(folder)) as url:
        for arguments, kinds in (([1], ["text"]), (json.dumps({"path": "shot.png"}), ["text", "image"])):
            params = {"name": "view_image", "arguments": arguments, "_meta": about}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
            result = json.loads(post(url, *headers, body=body).body)["result"]
            assert (result["isError"], result["resultType"]) == (len(kinds) == 1, "complete")
            assert [block["type"] for block in result["content"]] == kinds


@requirement("mcp.http.guarded", "mcp.alone")
@pytest.mark.parametrize("verb", [("serve",), ("mcp", "--http")], ids=" ".join)
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_a_configured_token_is_required(way: Way, verb: tuple[str, ...], folder: Path) -> None:
    with served(folder, "--token", "open-sesame", verb=verb) as url:
        got = await asyncio.to_thread(post, url)
        assert got.status == 403
        assert b"x-sightline-token" in got.body
        async with at(f"{url}/mcp", way, headers={"x-sightline-token": "open-sesame"}) as one:
            assert (await one.list_tools()).tools


@requirement("mcp.http.scope")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_a_client_sees_nothing_of_another_credential(way: Way, folder: Path) -> None:
    with served(folder, "--root", str(folder), env={"SIGHTLINE_LIST_IMAGES": "all"}) as url:
        async with at(f"{url}/mcp", way, headers={"authorization": "Bearer one"}) as one:
            told = json.loads(texts(await one.call_tool("view_image", {"path": "shot.png"}))[0])
            assert images(await one.call_tool("view_image", {"path": told["image"]}))
            assert len((await one.list_resources()).resources) == 1
        for other in ({"authorization": "Bearer two"}, {}, {"x-api-key": "one"}):
            async with at(f"{url}/mcp", way, headers=other) as two:
                no = await two.call_tool("view_image", {"path": told["image"]})
                assert "not_found" in texts(no)[0]
                assert (await two.list_resources()).resources == []
                assert json.loads(texts(await two.call_tool("list_images", {}))[0])["images"] == []


@requirement("mcp.http.anybody")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_a_client_without_a_credential_sees_no_image_of_the_user(way: Way, folder: Path, tmp_path: Path) -> None:
    private = paint_quadrants(some_colours(seed=8))
    (tmp_path / "private.png").write_bytes(private)
    assert sightline("view", "private.png", folder=tmp_path).code == 0
    assert sightline("view", "shot.png", folder=folder).code == 0
    digest = hashlib.sha256(private).hexdigest()

    async def listed(one: Client) -> list[list[str]]:
        found = json.loads(texts(await one.call_tool("list_images", {}))[0])["images"]
        resources = (await one.list_resources()).resources
        said = (await one.get_prompt("list", {})).messages[0].content.model_dump()["text"]
        return [[each["image"] for each in found], [each.uri for each in resources], said.splitlines()]

    for flags, least in (((), 0), (("--root", str(folder)), 1)):
        with served(folder, *flags) as url:
            async with at(f"{url}/mcp", way) as one:
                assert (await one.call_tool("view_image", {"path": "shot.png"})).is_error == (not least)
                found, resources, said = await listed(one)
                assert (len(found), len(resources)) == (least, least)
                assert len(said) == 1
                no = await one.call_tool("view_image", {"path": f"sha256:{digest}"})
                assert "not_found" in texts(no)[0], "a hash is no permission"
                no = await one.call_tool("analyze_image", {"images": [f"sha256:{digest}"], "question": "?"})
                assert "not_found" in texts(no)[0]
                with pytest.raises(Exception, match=digest[:12]):
                    await one.read_resource(f"sightline://sha256/{digest}")
    with served(folder, env={"SIGHTLINE_LIST_IMAGES": "all"}) as url:
        async with at(f"{url}/mcp", way) as one:
            assert [len(each) for each in await listed(one)] == [1, 1, 1], "all that such clients have seen"
    assert sightline("view", f"sha256:{digest}", folder=folder).code == 0, "and the user sees everything"


@requirement("mcp.http.pasted")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_an_image_pasted_through_the_proxy_is_visible_to_its_credential(way: Way, folder: Path) -> None:
    with Provider() as provider:
        for name, key in (("open", ""), ("keyed", "sk-settings")):
            upstream = {"baseUrl": {"anthropic": provider.url}, **({"apiKey": key} if key else {})}
            env = {"SIGHTLINE_UPSTREAMS": json.dumps({name: upstream})}
            with served(folder, env=env) as url:
                for number, headers in enumerate(({}, {"x-api-key": "sk-one"}, {"authorization": "Bearer sk-two"})):
                    picture = paint_quadrants(some_colours(seed=20 + number + 10 * bool(key)))
                    body = json.dumps(pasted(picture)).encode()
                    usual = [("content-type", "application/json"), *headers.items()]
                    got = await asyncio.to_thread(exchange, url, f"/u/{name}/v1/messages", body, "POST", usual)
                    assert got.status == 200, got.body
                    image = {"path": f"sha256:{hashlib.sha256(picture).hexdigest()}"}
                    own = {"x-api-key": key} if key else headers
                    async with at(f"{url}/mcp", way, headers=own) as one:
                        assert images(await one.call_tool("view_image", image))
                    async with at(f"{url}/mcp", way, headers={"authorization": "Bearer sk-other"}) as other:
                        assert "not_found" in texts(await other.call_tool("view_image", image))[0]


def pasted(picture: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": b64encode(picture).decode()}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": [{"role": "user", "content": content}]}


@requirement("mcp.http.root")
async def test_no_file_is_read_without_a_root(folder: Path) -> None:
    with served(folder) as url:
        async with at(f"{url}/mcp", HTTP[0]) as one:
            for path in ("shot.png", str(folder / "shot.png"), "~/shot.png"):
                no = await one.call_tool("view_image", {"path": path})
                assert no.is_error
                assert "not_permitted" in texts(no)[0]
                assert "working folder" not in texts(no)[0], "copying the file there would not help"
                assert "sha256:" in texts(no)[0]


@requirement("mcp.http.counted")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_calls_are_counted_for_each_credential(way: Way, folder: Path) -> None:
    with eyes("words") as provider:
        env = named(provider, SIGHTLINE_MAX_TOOL_CALLS_PER_TURN="1", SIGHTLINE_CACHE_SIZE="0")
        with served(folder, "--root", str(folder), env=env) as url:
            call = {"images": ["shot.png"], "question": "What is it?"}
            for credential in ("one", "two"):
                async with at(f"{url}/mcp/", way, headers={"authorization": credential}) as one:
                    assert not (await one.call_tool("analyze_image", call)).is_error
                    no = await one.call_tool("analyze_image", call)
                    assert "maxToolCallsPerTurn" in texts(no)[0]


@requirement("mcp.http.workers")
@pytest.mark.parametrize("way", HTTP, ids="-".join)
async def test_several_workers_serve_any_client(way: Way, folder: Path) -> None:
    with served(folder, "--root", str(folder), "--workers", "2") as url:
        for _ in range(4):
            async with at(f"{url}/mcp", way) as one:
                assert images(await one.call_tool("view_image", {"path": "shot.png"}))
