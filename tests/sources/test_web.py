"""The web as a source: only where it is granted."""

from __future__ import annotations

from sightline.model.refusal import Refusal
from sightline.sources.web import Grant, Page, read
from tests.dial.upstream import Peer, listening
from tests.net.test_fetch import Names, at, reach
from tests.requirements import requirement


@requirement("net.granted")
async def test_without_a_grant_nobody_is_asked_or_dialled() -> None:
    async with listening(lambda peer: peer.answer(b"pixels"), secured=True) as server:
        outcome = await read(at(server, "/a.png"), None)
        assert isinstance(outcome, Refusal)
        assert (outcome.code, "config set network on" in outcome.remedy) == ("not_permitted", True)
        assert server.connections == 0
        odd = await read("https://example.com/\x1b[2J\n" + "x" * 9000, None)
        assert isinstance(odd, Refusal)
        assert str(odd).isprintable()
        assert len(str(odd)) < 400


async def test_a_page_has_the_name_of_the_file_that_it_was_in_the_end() -> None:
    async def script(peer: Peer) -> None:
        if (await peer.request()).line.split()[1] == "/old":
            await peer.answer(status="302 Found", headers=b"location: /folder/new%20one.png?x=1\r\n")
        else:
            await peer.answer(b"pixels")

    async with listening(script, secured=True) as server:
        outcome = await read(at(server, "/old"), Grant(Names(), reach(server)))
        assert outcome == Page(b"pixels", at(server, "/folder/new%20one.png?x=1"), "new one.png")


async def test_what_the_dialler_refuses_is_refused() -> None:
    outcome = await read("http://example.com/a.png", Grant(Names()))
    assert isinstance(outcome, Refusal)
    assert outcome.code == "not_permitted"
