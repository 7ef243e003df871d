"""The web as a source: only with a grant."""

from __future__ import annotations

from sightline.model.refusal import Refusal
from sightline.net import WebFile, WebGrant, fetch_web_file
from tests.dial.upstream import Peer, listening
from tests.net.test_fetch import Names, at, reach
from tests.refusals import assert_refusal
from tests.requirements import requirement


@requirement("net.granted")
async def test_nothing_is_resolved_or_connected_without_a_grant() -> None:
    async with listening(lambda peer: peer.answer(b"pixels"), secured=True) as server:
        outcome = await fetch_web_file(at(server, "/a.png"), None)
        assert_refusal(outcome, "not_permitted", "config set network on")
        assert server.connections == 0
        odd = await fetch_web_file("https://example.com/\x1b[2J\n" + "x" * 9000, None)
        assert isinstance(odd, Refusal)
        assert str(odd).isprintable()
        assert len(str(odd)) < 400


async def test_a_web_file_has_its_name_after_redirects() -> None:
    async def script(peer: Peer) -> None:
        if (await peer.request()).line.split()[1] == "/old":
            await peer.answer(status="302 Found", headers=b"location: /folder/new%20one.png?x=1\r\n")
        else:
            await peer.answer(b"pixels")

    async with listening(script, secured=True) as server:
        outcome = await fetch_web_file(at(server, "/old"), WebGrant(Names(), reach(server)))
        assert outcome == WebFile(b"pixels", at(server, "/folder/new%20one.png?x=1"), "new one.png")


async def test_refusals_of_the_guarded_client_are_returned() -> None:
    outcome = await fetch_web_file("http://example.com/a.png", WebGrant(Names()))
    assert isinstance(outcome, Refusal)
    assert outcome.code == "not_permitted"
