"""Image addresses: vision models get them unchanged; for blind models they are fetched if that is granted."""

from __future__ import annotations

import pytest

from sightline.model.scene import Json, Refused
from sightline.net import WebGrant
from sightline.passes.wording import write_absence
from tests.api.test_network import showing
from tests.dial.upstream import listening
from tests.engine.parts import BLIND, SEEING, ScriptedSeer, Stage, picture, sent, words
from tests.net.test_fetch import Names, at, reach
from tests.requirements import requirement
from tests.wire.bodies import body, text, user


def asking(url: str, model: str) -> dict[str, Json]:
    held: Json = {"type": "image", "source": {"type": "url", "url": url}}
    return {**body(user(held, text("what"))), "model": model}


@requirement("tell.links")
async def test_a_linked_image_is_fetched_with_the_guarded_client_for_a_blind_model() -> None:
    seer = ScriptedSeer(["Four colours."])
    async with listening(showing(picture()), secured=True) as server:
        stage = Stage(seer, network_grant=WebGrant(Names(), reach(server)))
        prepared = await stage.prepare(asking(at(server, "/shot.png"), BLIND))
    assert "Four colours." in words(prepared)[0]
    assert [image.data for image in seer.looks] == [picture()]


@requirement("tell.links")
@pytest.mark.parametrize("url", ["https://127.0.0.1/a.png", "https://169.254.169.254/", "http://example.com/a.png"])
async def test_a_refused_fetch_becomes_a_sentence(url: str) -> None:
    seer = ScriptedSeer()
    prepared = await Stage(seer, network_grant=WebGrant()).prepare(asking(url, BLIND))
    (sight,) = prepared.scene.sights
    assert isinstance(sight.fate, Refused)
    assert words(prepared)[0] == write_absence(sight.fate.refusal)
    assert seer.looks == []


@requirement("tell.links.off")
async def test_nothing_is_fetched_without_a_grant_and_the_setting_is_named() -> None:
    seer = ScriptedSeer()
    async with listening(showing(picture()), secured=True) as server:
        prepared = await Stage(seer).prepare(asking(at(server), BLIND))
        assert server.connections == 0
    (said,) = words(prepared)
    assert "the setting network is off" in said
    assert "sightline config set network on" in said
    assert seer.looks == []


@requirement("fit.opaque")
async def test_a_vision_model_gets_the_address_unfetched() -> None:
    async with listening(showing(picture()), secured=True) as server:
        request = asking(at(server), SEEING)
        stage = Stage(ScriptedSeer(), network_grant=WebGrant(Names(), reach(server)))
        assert sent(await stage.prepare(request)) == request
        assert server.connections == 0


async def test_counting_tokens_fetches_nothing() -> None:
    async with listening(showing(picture()), secured=True) as server:
        stage = Stage(ScriptedSeer(), network_grant=WebGrant(Names(), reach(server)))
        await stage.prepare(asking(at(server), BLIND), paid=False)
        assert server.connections == 0
