"""Every recorded request: its images are found, and whatever becomes of them, nothing else changes."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from sightline.model.fate import Fate, Shown, Told
from sightline.model.profile import Profile
from sightline.model.scene import Scene
from sightline.model.source import Inline
from sightline.wire.jsontext import Document, lift
from tests.golden.captures import Capture, captures, payloads
from tests.requirements import requirement

CAPTURES = captures()
WORDS = "[a description]"

each = pytest.mark.parametrize("capture", CAPTURES, ids=lambda capture: capture.name)


def opened(capture: Capture) -> tuple[Document, Scene]:
    document = lift(capture.raw, "sightline-0123456789abcdef-")
    assert document is not None
    return document, capture.wire.read(document.tree, document.text_of)


def lowered(capture: Capture, fate: Fate) -> Any:
    document, scene = opened(capture)
    profile = Profile("up", capture.wire.name, scene.model, tool_images="hoist")
    met = replace(scene, sights=tuple(sight.meets(fate) for sight in scene.sights))
    return json.loads(b"".join(document.splice(capture.wire.lower(met, document.tree, profile))))


def test_there_are_captures_of_both_wires_and_they_hold_images_in_every_position() -> None:
    wires = Counter(capture.wire.name for capture in CAPTURES)
    assert set(wires) == {"anthropic", "openai_chat"}
    roles = {(capture.wire.name, sight.role) for capture in CAPTURES for sight in opened(capture)[1].sights}
    assert roles == {(wire, role) for wire in wires for role in ("user", "tool")}


@requirement("wire.captures", "read.native")
@each
def test_read_finds_exactly_the_images_that_a_search_of_all_strings_finds(capture: Capture) -> None:
    _, scene = opened(capture)
    found = [bytes(s.source.text).decode() for s in scene.sights if isinstance(s.source, Inline)]
    assert found == [payload.text for payload in payloads(capture.body) if payload.is_native]
    assert len(found) == len(scene.sights)


@each
def test_a_tool_s_image_knows_its_call_and_its_file(capture: Capture) -> None:
    _, scene = opened(capture)
    brought = [sight for sight in scene.sights if sight.role == "tool"]
    assert all(sight.call and sight.call.id and sight.call.name for sight in brought)


@each
@requirement("law.1", "body.same_object")
def test_a_request_without_images_comes_back_as_the_same_object(capture: Capture) -> None:
    if any(payload.is_native for payload in payloads(capture.body)):
        capture = replace(capture, body=without_images(capture.body))
    document, scene = opened(capture)
    assert scene.sights == ()
    (same,) = document.splice(capture.wire.lower(scene, document.tree, Profile("up", capture.wire.name, "m")))
    assert same is document.body


def without_images(tree: Any) -> Any:
    match tree:
        case list():
            return [without_images(each) for each in tree if not is_image_part(each)]
        case dict():
            return {key: without_images(value) for key, value in tree.items()}
        case _:
            return tree


def is_image_part(value: Any) -> bool:
    return isinstance(value, dict) and value.get("type") in ("image", "image_url")


@each
def test_an_image_that_is_shown_keeps_its_payload(capture: Capture) -> None:
    after = lowered(capture, Shown())
    assert Counter(p.text for p in payloads(after)) == Counter(p.text for p in payloads(capture.body))
    if capture.wire.name == "anthropic":
        assert after == capture.body


@requirement("lower.no_text")
@each
def test_a_tool_message_of_the_chat_wire_is_left_without_images(capture: Capture) -> None:
    if capture.wire.name != "openai_chat":
        return
    after = lowered(capture, Shown())
    held = [p for p in payloads(after) if p.is_native and after["messages"][p.place[1]]["role"] == "tool"]
    assert held == []
    # Whoever was there is still there, in the same order, and each call is answered before anybody else speaks.
    new = [m for m in after["messages"] if m not in capture.body["messages"] and m["role"] == "user"]
    assert [speaker(m) for m in after["messages"] if m not in new] == [speaker(m) for m in capture.body["messages"]]
    for before, message in zip(after["messages"], after["messages"][1:], strict=False):
        assert message["role"] != "tool" or before["role"] == "tool" or before.get("tool_calls")


def speaker(message: Any) -> tuple[Any, Any]:
    return message["role"], message.get("tool_call_id")


@requirement("wire.captures")
@each
def test_an_image_that_is_told_leaves_its_words_and_changes_nothing_else(capture: Capture) -> None:
    _, scene = opened(capture)
    expected = json.loads(capture.raw)
    for sight in scene.sights:
        *way, last = sight.place
        holder = expected
        for step in way:
            holder = holder[step]
        mark = {"cache_control": holder[last]["cache_control"]} if "cache_control" in holder[last] else {}
        holder[last] = {"type": "text", "text": WORDS, **mark}
    assert lowered(capture, Told(WORDS, "up/eye")) == expected
