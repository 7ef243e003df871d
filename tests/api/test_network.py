"""The web, where the host grants it to a view: off by default, and then only through the guarded dialler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api.failure import Failure
from sightline.api.session import Session, ToolContext
from sightline.api.tool_results import View
from sightline.net import WebGrant
from tests.api.bad import HTML, PNG
from tests.dial.upstream import Peer, Script, Upstream, listening
from tests.net.test_fetch import Names, at, leading, reach
from tests.requirements import requirement


def showing(data: bytes, status: str = "200 OK") -> Script:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(data, status=status, headers=b"content-type: text/plain\r\n")

    return script


def granted(context: ToolContext, *servers: Upstream, names: Names | None = None) -> ToolContext:
    return replace(context, network=WebGrant(names or Names(), reach(*servers)))


async def seen_at(url: str, context: ToolContext, **more: Any) -> View | Failure:
    return await sightline.view.aio(url, session=Session.from_context(context), **more)


@requirement("view.network.granted")
async def test_a_web_image_is_viewed_kept_and_recalled_with_the_grant(context: ToolContext) -> None:
    async with listening(showing(PNG), secured=True) as server:
        web = granted(context, server)
        url = at(server, "/shot.png?x=1")
        seen = await seen_at(url, web, crop="r=top-left")
        assert isinstance(seen, View), seen
        found = seen.as_dict()
        assert (found["source"], found["mime"], found["width"], found["crop"]) == (url, "image/png", 40, [0, 0, 20, 15])
        called = await sightline.call.aio("view_image", {"path": url}, session=Session.from_context(web))
        assert isinstance(called, View)
        assert called.pixels.data == PNG
        assert server.connections == 2
    assert sightline.recall(found, session=Session.from_context(context)) == seen
    again = sightline.view(seen.image, session=Session.from_context(context))
    assert isinstance(again, View)
    assert again.pixels.data == PNG


@requirement("view.network")
async def test_nothing_is_resolved_or_connected_without_the_grant(context: ToolContext) -> None:
    async with listening(showing(PNG), secured=True) as server:
        names = Names()
        web = granted(context, server, names=names)
        url = at(server, "/shot.png")
        without = await seen_at(url, replace(web, network=None))
        assert isinstance(without, Failure)
        assert without.reason == "not_permitted"
        assert (names.asked, server.connections) == ([], 0)
        assert isinstance(await seen_at(url, web), View)
        assert server.connections == 1


@requirement("view.network", "settings.network")
@pytest.mark.parametrize(
    ("setting", "grant"), [(None, None), ("off", None), ("on", WebGrant()), ("true", None), ("network,vision", None)]
)
def test_a_default_session_follows_the_network_setting(
    monkeypatch: pytest.MonkeyPatch, setting: str | None, grant: WebGrant | None
) -> None:
    if setting is not None:
        monkeypatch.setenv("SIGHTLINE_NETWORK", setting)
    assert Session().tool_context.network == grant
    capabilities = sightline.tools()[0]["capabilities"]
    assert isinstance(capabilities, dict)
    assert ("network" in capabilities) == (grant is not None)
    assert Session(network=True).tool_context.network == WebGrant(), "the host's code has the last word"
    assert Session(network=False).tool_context.network is None


@requirement("view.network")
def test_no_tool_argument_grants_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_TOOLSET", "network,vision")
    refusal = sightline.call("view_image", {"path": "https://example.com/a.png"})
    assert isinstance(refusal, Failure)
    assert refusal.reason == "not_permitted"
    assert isinstance(sightline.call("view_image", {"path": "a.png", "network": True}), Failure)


@requirement("view.network.declared")
def test_the_tool_declares_the_network_only_if_it_is_granted(context: ToolContext) -> None:
    def capabilities(of: ToolContext) -> dict[str, list[str]]:
        return {
            str(tool["name"]): list(tool["capabilities"]) for tool in sightline.tools(session=Session.from_context(of))
        }

    without = {"view_image": ["read"], "read_file": ["read"], "edit_file": ["read", "write"], "list_images": []}
    assert capabilities(context) == without
    web = granted(context)
    assert capabilities(web) == {**without, "view_image": ["read", "network"]}
    words = [str(sightline.tools(session=Session.from_context(each))[0]["description"]) for each in (context, web)]
    assert ["https" in word for word in words] == [False, True]


PLACES = {
    "this machine": "https://127.0.0.1/a.png",
    "a metadata service": "https://169.254.169.254/latest/",
    "a private address in disguise": "https://[::ffff:10.0.0.1]/a.png",
    "an old way to write one": "https://0x7f.1/a.png",
    "a name that leads to one": "https://rebound.example.com/a.png",
    "http": "http://example.com/a.png",
    "a file": "file:///etc/hostname",
    "credentials": "https://me:secret@example.com/a.png",
}


@requirement("view.network.guarded")
@pytest.mark.parametrize("url", PLACES.values(), ids=PLACES)
async def test_a_granted_view_reaches_only_the_public_web(context: ToolContext, url: str) -> None:
    private = replace(context, network=WebGrant(Names([["10.0.0.1"]])))
    refusal = sightline.view(
        url, session=Session.from_context(private)
    )  # from within a loop, where it must not raise either
    assert isinstance(refusal, Failure)
    assert refusal.reason == "not_permitted"
    assert "secret" not in refusal.message
    assert refusal == await seen_at(url, private)


@requirement("view.network.guarded")
async def test_a_redirect_to_a_private_address_is_refused(context: ToolContext) -> None:
    async with listening(leading("https://10.0.0.1/a.png"), secured=True) as server:
        refusal = await seen_at(at(server), granted(context, server))
        assert isinstance(refusal, Failure)
        assert refusal.reason == "not_permitted"


@requirement("view.network.guarded")
@pytest.mark.parametrize(
    ("path", "data", "status", "expected"),
    [
        ("/page.jpg", HTML, "200 OK", "unsupported_type"),
        ("/page", HTML, "200 OK", "render_unavailable"),
        ("/half.png", PNG[:-40], "200 OK", "corrupt"),
        ("/none.png", b"", "404 Not Found", "not_found"),
        ("/broken.png", b"", "500 Oh", "not_found"),
    ],
    ids=["a page named .jpg", "a page", "half an image", "nothing", "a server that fails"],
)
async def test_the_type_of_a_web_file_comes_from_its_bytes(
    context: ToolContext, path: str, data: bytes, status: str, expected: str
) -> None:
    async with listening(showing(data, status), secured=True) as server:
        refusal = await seen_at(at(server, path), granted(context, server))
        assert isinstance(refusal, Failure)
        assert refusal.reason == expected


def test_read_file_does_not_read_the_web_even_with_the_grant(context: ToolContext, folder: Path) -> None:
    refusal = sightline.read_file("https://example.com/notes.md", session=Session.from_context(granted(context)))
    assert isinstance(refusal, Failure)
    assert refusal.reason == "invalid_input"


@requirement("view.network")
def test_file_url_permits_its_own_address_without_the_grant() -> None:
    """It is refused for the address that it names, and not because the network is off."""
    offline = Session(network=False).tool_context
    url = "https://127.0.0.1/shot.png"
    seen = sightline.view(url, session=Session.from_context(offline))
    assert isinstance(seen, Failure)
    assert "network" in str(seen.as_dict()["message"])
    asked = sightline.vision_analyze(prompt="?", file_url=url, session=Session.from_context(offline))
    assert isinstance(asked, sightline.Failure)
    assert "URL_BLOCKED" in str(asked.as_dict())
    assert "network" not in str(asked.as_dict())
