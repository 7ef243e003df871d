"""Mode route through the proxy: a turn with new images goes to another model of the same upstream."""

from __future__ import annotations

import json
import re
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.proxy.four_wires import WIRES, answered, asked, sent, shows
from tests.proxy.running_proxy import Running, sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.models import SEES
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.server import Exchange

COLOURS = some_colours(84)
PICTURE = paint_quadrants(COLOURS)
ENV = {"SIGHTLINE_MODE": "route", "SIGHTLINE_IMAGE_MODEL": "eyes-1"}


def one_upstream(home: Path, provider: Provider) -> AbstractContextManager[Running]:
    """A proxy with one upstream for all wires: the image model is one of the same upstream."""
    bases = dict.fromkeys(("anthropic", "openai_chat", "openai_responses", "gemini"), provider.url)
    return sightline(home, "one", env={**ENV, "SIGHTLINE_UPSTREAMS": json.dumps({"one": {"baseUrl": bases}})})


@pytest.mark.parametrize("wire", WIRES)
@requirement("mode.route", "mode.route.reasoning")
def test_a_turn_with_images_is_routed_to_the_image_model(tmp_path: Path, wire: str) -> None:
    talk = [asked(wire, "Name the quadrants.", PICTURE)]
    with Provider((("main-*", "ollama"), ("*", SEES))) as provider, one_upstream(tmp_path, provider) as proxy:
        seen = sent(proxy.url, wire, "main-1", talk)
        assert describe_quadrants(COLOURS).encode() in seen.body
        talk += [*answered(wire, "So they are.", "SEAL-EYES"), asked(wire, "Say it again.")]
        told = sent(proxy.url, wire, "main-1", talk)
        assert describe_quadrants(COLOURS).encode() in told.body
        asked_for = [_model(each) for each in provider.exchanges]
        last = provider.exchanges[-1].body
    assert asked_for == ["eyes-1", "eyes-1", "main-1"], "once for the turn, once to describe it, and back"
    assert not shows(last, PICTURE)
    assert b"SEAL-EYES" not in last
    assert proxy.receipts[0].model == "eyes-1"


def _model(asked: Exchange) -> str:
    """In the path, where the wire has it there."""
    inner = re.search(r"/models/([^:]+):", asked.target.decode())
    return inner[1] if inner else str(json.loads(asked.body)["model"])
