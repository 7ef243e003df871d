"""A pasted image gets a reference beside it, by which every surface can find it."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from sightline.settings import load_settings
from sightline.store import open_record
from tests.proxy.clients import KEY, image_block, read_message, text
from tests.proxy.four_wires import WIRES, answered, asked, messages, parts, request, sent, shows
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider

PICTURE, OTHER = (paint_quadrants(some_colours(seed)) for seed in (81, 82))
NAME = f"[image sha256:{sha256(PICTURE).hexdigest()}]"
FOUR = pytest.mark.parametrize("wire", WIRES)


@FOUR
@requirement("refer.pasted", "refer.once")
def test_a_pasted_image_has_its_reference_before_it_in_every_request(tmp_path: Path, wire: str) -> None:
    first = [asked(wire, "Name the quadrants.", PICTURE)]
    later = [*first, *answered(wire, "Red."), asked(wire, "And now?", OTHER)]
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert sent(proxy.url, wire, "m", first).status == 200
        assert sent(proxy.url, wire, "m", later).status == 200
        one, two = (messages(wire, each.body) for each in provider.exchanges)
    assert [part.get("text") for part in parts(wire, one[0])] == [NAME, None, "Name the quadrants."]
    assert two[0] == one[0], "what was sent before is sent again"
    assert parts(wire, two[-1])[0]["text"] == f"[image sha256:{sha256(OTHER).hexdigest()}]"


@requirement("refer.kept")
def test_a_referenced_image_is_in_the_record_of_its_client(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        sent(proxy.url, "anthropic", "m", [asked("anthropic", "Name the quadrants.", PICTURE)])
    digest = sha256(PICTURE).hexdigest()
    record = open_record(load_settings({"SIGHTLINE_HOME": str(tmp_path)}).record_folder)
    scopes = [record.compute_scope(f"Bearer {key}") for key in (KEY, "another")]
    kept = [record.images.find_by_prefix(scope, digest) for scope in scopes]
    record.close()
    assert kept == [(digest,), ()]


@requirement("refer.pasted")
def test_tool_images_get_no_reference(tmp_path: Path) -> None:
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": read_message(PICTURE)}).encode()
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert exchange(proxy.url, "/v1/messages", body).status == 200
        assert provider.exchanges[0].body == body


@FOUR
@requirement("refer.off", "law.1")
def test_the_body_is_unchanged_without_references(tmp_path: Path, wire: str) -> None:
    said = [asked(wire, "Name the quadrants.", PICTURE)]
    off = {"SIGHTLINE_REFERENCES": "off"}
    with Provider() as provider, sightline(tmp_path, provider.url, env=off) as proxy:
        sent(proxy.url, wire, "m", said)
        assert provider.exchanges[0].body == json.dumps(request(wire, "m", said)).encode()


@FOUR
@requirement("refer.once")
def test_two_proxies_in_a_row_add_one_reference(tmp_path: Path, wire: str) -> None:
    said = [asked(wire, "Name the quadrants.", PICTURE), *answered(wire, "Red."), asked(wire, "And?", PICTURE, OTHER)]
    with (
        Provider() as provider,
        sightline(tmp_path / "near", provider.url) as near,
        sightline(tmp_path / "far", near.url) as far,
    ):
        sent(near.url, wire, "m", said)
        sent(far.url, wire, "m", said)
        one, two = provider.exchanges
    assert one.body == two.body
    assert one.body.count(b"[image sha256:") == 3


@requirement("refer.cache")
def test_a_cache_mark_stays_with_its_image(tmp_path: Path) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    said = [{"role": "user", "content": [text("Look."), {**image_block(PICTURE), **mark}]}]
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        sent(proxy.url, "anthropic", "m", said)
        (content,) = (message["content"] for message in messages("anthropic", provider.exchanges[0].body))
    assert content == [text("Look."), text(NAME), {**image_block(PICTURE), **mark}]
    assert shows(provider.exchanges[0].body, PICTURE)
