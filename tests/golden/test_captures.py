"""Every recorded request: its images are found, and whatever becomes of them, nothing else changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from sightline.model.image import decode_base64
from sightline.model.profile import Profile
from sightline.model.scene import InlineSource, Scene, Sight
from sightline.wire import WIRES
from sightline.wire.json_document import JsonDocument, lift
from tests.golden.captures import Capture, captures, payloads
from tests.golden.preparing import Desk
from tests.golden.talk import faults, lines, lines_but_moved
from tests.requirements import requirement

CAPTURES = captures()
FENCE = "<vision_proxy_description"

each = pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)
with_images = pytest.mark.parametrize(
    "capture", [c for c in CAPTURES if any(payloads(c.body))], ids=lambda capture: capture.name
)


def opened(capture: Capture) -> tuple[JsonDocument, Scene]:
    document = lift(capture.raw, "sightline-0123456789abcdef-")
    assert document is not None
    return document, capture.wire.read(document.tree, document)


def digests(body: Any) -> Counter[str]:
    return Counter(payload.sha256 for payload in payloads(body))


def test_captures_cover_every_wire_and_image_position() -> None:
    assert len(CAPTURES) == 260  # and one that has no body: a client tried a WebSocket first
    found = {(capture.wire.name, sight.role) for capture in CAPTURES for sight in opened(capture)[1].sights}
    assert found == {(wire.name, role) for wire in WIRES for role in ("user", "tool")}


@requirement("wire.captures", "read.native", "read.stringified")
@each
def test_read_finds_the_same_images_as_a_search_of_all_strings(capture: Capture) -> None:
    found = Counter((sight.place, digest_of(sight)) for sight in opened(capture)[1].sights)
    assert found == Counter((p.holder, p.sha256) for p in payloads(capture.body))


@with_images
def test_the_way_into_a_stringified_text_leads_to_its_image(capture: Capture) -> None:
    for sight in opened(capture)[1].sights:
        if sight.path_in_text is None:
            continue
        value: Any = capture.body
        for step in sight.place:
            value = value[step]
        value = json.loads(value) if sight.path_in_text else value
        for step in sight.path_in_text:
            value = value[step]
        assert [payload.sha256 for payload in payloads(value)] == [digest_of(sight)]


def digest_of(sight: Sight) -> str:
    assert isinstance(sight.source, InlineSource)
    data = decode_base64(sight.source.text)
    assert isinstance(data, bytes)
    return sha256(data).hexdigest()


@each
def test_a_tool_image_has_its_call_and_its_file(capture: Capture) -> None:
    brought = [sight for sight in opened(capture)[1].sights if sight.role == "tool"]
    assert all(sight.call and sight.call.name for sight in brought)


@each
@requirement("law.1", "body.same_object")
def test_a_request_without_images_comes_back_as_the_same_object(capture: Capture) -> None:
    document, scene = opened(replace(capture, body=without_images(capture.body)))
    assert scene.sights == ()
    (same,) = document.splice(capture.wire.lower(scene, document.tree, Profile("up", capture.wire.name, "m")))
    assert same is document.body


def without_images(tree: Any) -> Any:
    match tree:
        case str():
            return "(gone)" if any(payloads(tree)) else tree
        case list():
            return [without_images(each) for each in tree if not is_image_part(each)]
        case dict():
            return {key: without_images(value) for key, value in tree.items()}
        case _:
            return tree


def is_image_part(value: Any) -> bool:
    return isinstance(value, dict) and (
        value.get("type") in ("image", "image_url", "input_image") or bool({"inlineData", "inline_data"} & value.keys())
    )


@requirement("wire.captures", "law.4", "lower.no_text")
@with_images
async def test_a_seeing_model_gets_all_pixels_and_results(capture: Capture) -> None:
    for hoist in (False, True):
        desk = Desk(sees=True, hoist=hoist)
        after = await desk.sent(capture.body, capture.wire, capture.path)
        assert digests(after) == digests(capture.body)
        assert [payload.place for payload in payloads(after) if not payload.is_pixels] == []
        assert lines_but_moved(after, capture.wire) == lines_but_moved(capture.body, capture.wire)
        assert list(faults(after, capture.wire)) == list(faults(capture.body, capture.wire))
        assert words(capture.body) - words(after) == Counter(), "something was lost"
        assert await desk.sent(after, capture.wire, capture.path) == after


@requirement("wire.captures", "mode.fallback")
@with_images
async def test_a_blind_model_gets_words_for_every_image(capture: Capture) -> None:
    desk = Desk(sees=False)
    after = await desk.sent(capture.body, capture.wire, capture.path)
    assert list(payloads(after)) == []
    assert json.dumps(after).count(FENCE) == len(list(payloads(capture.body)))
    assert lines(after, capture.wire) == lines(capture.body, capture.wire)
    assert await desk.sent(after, capture.wire, capture.path) == after


def strings(tree: Any) -> Iterator[str]:
    match tree:
        case str():
            yield tree
        case list():
            for item in tree:
                yield from strings(item)
        case dict():
            for value in tree.values():
                yield from strings(value)


def words(body: Any) -> Counter[str]:
    """Every text of a request but those that hold images."""
    return Counter(text for text in strings(body) if not any(payloads(text)))
