"""A conversation that switches models: descriptions for text-only models, pixels for those that see."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.model.profile import Upstream
from sightline.settings.upstreams import get_consent_name
from sightline.store import open_record
from tests.proxy.four_wires import WIRES, answered, asked, sent, shows
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider

COLOURS = some_colours(83)
PICTURE = paint_quadrants(COLOURS)
MODELS = '{"blind-*": {"vision": false}, "seeing-*": {"vision": true}}'


@pytest.mark.parametrize("wire", WIRES)
@requirement("tell.switch", "tell.holds")
def test_descriptions_become_pixels_and_descriptions_again(tmp_path: Path, wire: str) -> None:
    talk = [asked(wire, "Name the quadrants.", PICTURE)]
    env = {"SIGHTLINE_MODELS": MODELS}
    with Provider() as eye, Provider() as provider:
        looks = {"SIGHTLINE_PROVIDER": "eye", "SIGHTLINE_MODEL_ID": "eye-1", "SIGHTLINE_INCLUDE_CONTEXT": "off"}
        upstreams = (f"up={provider.url}", f"eye={eye.url}")
        _consent(tmp_path, eye.url)
        with sightline(tmp_path, *upstreams, env={**env, **looks}) as proxy:
            for model in ("blind-1", "seeing-1", "blind-1", "seeing-1"):
                assert sent(proxy.url, wire, model, talk, "up").status == 200
                talk = [*talk, *answered(wire, f"So says {model}."), asked(wire, "Go on.")]
            bodies = [each.body for each in provider.exchanges]
            assert len(eye.exchanges) == 1, "nobody looks twice"
    told = describe_quadrants(COLOURS).encode()
    assert [shows(body, PICTURE) for body in bodies] == [False, True, False, True]
    assert [told in body for body in bodies] == [True, False, True, False]
    assert _told(bodies[0]) == _told(bodies[2]), "what was said there is said there again"


def _told(body: bytes) -> bytes:
    return body.partition(b"<vision_proxy_description")[2].partition(b"</vision_proxy_description>")[0]


def _consent(home: Path, url: str) -> None:
    record = open_record(home / "record", kind="disk")
    record.policy.set_consent(get_consent_name(Upstream("eye", {"openai_chat": url})), True)
    record.close()
