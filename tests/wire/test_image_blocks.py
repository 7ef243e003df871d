"""Image blocks of other APIs and libraries: every wire reads them, and writes blocks of its own."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import pytest

from sightline.model.profile import Profile
from sightline.model.scene import InlineSource, Json, LinkSource, Refitted, Shown, Told
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Wire
from tests.requirements import requirement
from tests.wire.bodies import MARK, SMALL, block, body, image, lower_body, part, read, text, user

LONG = b64encode(bytes(range(256)) * 40).decode()  # long enough to be lifted out of the body
URL = f"data:image/png;base64,{LONG}"
LINK = "https://example.com/a.png"
FORMS: dict[str, dict[str, Json]] = {
    "MCP": {"type": "image", "data": LONG, "mimeType": "image/png", "annotations": None, "_meta": {"a": 1}},
    "MCP resource": {"type": "resource", "resource": {"uri": "x://1", "mimeType": "image/png", "blob": LONG}},
    "LangChain": {"type": "image", "base64": LONG, "mime_type": "image/png", "id": "lc_1"},
    "LangChain before 1.0": {"type": "image", "source_type": "base64", "data": LONG, "mime_type": "image/png"},
    "LangChain file": {"type": "file", "base64": LONG, "mime_type": "image/png"},
    "AI SDK media": {"type": "media", "data": LONG, "mediaType": "image/png"},
    "AI SDK image-data": {"type": "image-data", "data": LONG, "mediaType": "image/png", "providerOptions": {}},
    "AI SDK file-data": {"type": "file-data", "data": LONG, "mediaType": "image/png", "filename": "a.png"},
    "AI SDK file": {"type": "file", "data": {"type": "data", "data": LONG}, "mediaType": "image/png"},
    "AI SDK image": {"type": "image", "image": LONG, "mediaType": "image/png"},
    "AI SDK image-url": {"type": "image-url", "url": URL},
    "Chat": {"type": "image_url", "image_url": {"url": URL, "detail": "high"}, "index": 0},
    "Chat, as Mistral writes it": {"type": "image_url", "image_url": URL},
    "Responses": {"type": "input_image", "image_url": URL, "detail": "auto"},
    "Messages": {**block(LONG), "id": "lc_2"},
    "Gemini": {"inlineData": {"mimeType": "image/png", "data": LONG}},
    "Gemini, as Python writes it": {"inline_data": {"mime_type": "image/png", "data": LONG}},
    "Bedrock": {"image": {"format": "png", "source": {"bytes": LONG}}},
}
LINKS: dict[str, dict[str, Json]] = {
    "MCP": {"type": "image", "uri": LINK, "mimeType": "image/png"},
    "LangChain": {"type": "image", "url": LINK},
    "LangChain before 1.0": {"type": "image", "source_type": "url", "url": LINK},
    "Chat": {"type": "image_url", "image_url": {"url": LINK}},
    "Responses": {"type": "input_image", "image_url": LINK},
    "Messages": {"type": "image", "source": {"type": "url", "url": LINK}},
}
OWN = {
    "openai_chat": ("Chat",),
    "openai_responses": ("Responses",),
    "anthropic": ("Messages",),
    "gemini": ("Gemini", "Gemini, as Python writes it"),
}
READ: Json = text("done")


def build_chat_result(one: Json) -> Json:
    return body({"role": "tool", "tool_call_id": "c1", "content": [READ, one]})


def build_messages_result(one: Json) -> Json:
    return body(user({"type": "tool_result", "tool_use_id": "c1", "content": [READ, one]}))


def build_output(one: Json) -> Json:
    return {"input": [{"type": "function_call_output", "call_id": "c1", "output": [{"type": "input_text"}, one]}]}


def build_item(one: Json) -> Json:
    return {"input": [{"role": "user", "content": [one]}]}


def build_content(one: Json) -> Json:
    return {"contents": [{"role": "user", "parts": [{"text": "look"}, one]}]}


def build_response(one: Json) -> Json:
    return {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "v", "parts": [one]}}]}]}


def build_message(one: Json) -> Json:
    return body(user(text("look"), one))


Build = Callable[[Json], Json]
PLACES: list[Any] = [
    pytest.param(OPENAI_CHAT, build_chat_result, id="Chat result"),
    pytest.param(OPENAI_CHAT, build_message, id="Chat message"),
    pytest.param(ANTHROPIC, build_messages_result, id="Messages result"),
    pytest.param(ANTHROPIC, build_message, id="Messages message"),
    pytest.param(OPENAI_RESPONSES, build_output, id="Responses output"),
    pytest.param(OPENAI_RESPONSES, build_item, id="Responses message"),
    pytest.param(GEMINI, build_content, id="Gemini content"),
    pytest.param(GEMINI, build_response, id="Gemini response"),
]
WRITTEN: dict[str, Callable[[str, str], Json]] = {
    "openai_chat": part,
    "anthropic": block,
    "openai_responses": lambda data, mime: {
        "type": "input_image", "detail": "auto", "image_url": f"data:{mime};base64,{data}",
    },
    "gemini": lambda data, mime: {"inlineData": {"mimeType": mime, "data": data}},
}  # fmt: skip


def native(wire: Wire) -> Profile:
    return Profile("up", wire.name, "m", tool_images="native")


@requirement("lower.foreign")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("wire", "build"), PLACES)
def test_an_image_block_of_another_library_becomes_one_of_the_wire(wire: Wire, build: Build, form: str) -> None:
    given, own = build(FORMS[form]), form in OWN[wire.name]
    (sight,) = read(wire, given).scene.sights
    assert isinstance(sight.source, InlineSource)
    assert bytes(sight.source.text).decode() == LONG
    expected = given if own else build(WRITTEN[wire.name](LONG, "image/png"))
    assert lower_body(wire, given, [Shown()], native(wire)) == expected
    refitted: Any = lower_body(wire, given, [Refitted(image(b"jpeg"), "too large")], native(wire))
    if not own:
        assert refitted == build(WRITTEN[wire.name]("anBlZw==", "image/jpeg"))
    assert read(wire, lower_body(wire, given, [Told("[told]", "eye")], native(wire))).scene.sights == ()


@requirement("lower.foreign", "hoist.idempotent")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("wire", "build"), PLACES)
def test_a_converted_block_is_not_converted_again(wire: Wire, build: Build, form: str) -> None:
    once = lower_body(wire, build(FORMS[form]), [Shown()], native(wire))
    assert lower_body(wire, once, [Shown()], native(wire)) == once


@requirement("lower.foreign")
@pytest.mark.parametrize("form", LINKS)
def test_an_address_in_a_foreign_block_becomes_one_of_the_wire(form: str) -> None:
    written: list[tuple[Wire, Build, Json]] = [
        (OPENAI_CHAT, build_chat_result, LINKS["Chat"]),
        (ANTHROPIC, build_messages_result, LINKS["Messages"]),
        (OPENAI_RESPONSES, build_output, {"type": "input_image", "detail": "auto", "image_url": LINK}),
    ]
    for wire, build, expected in written:
        given = build(LINKS[form])
        (sight,) = read(wire, given).scene.sights
        assert sight.source == LinkSource(LINK)
        if form not in OWN[wire.name]:
            assert lower_body(wire, given, [Shown()], native(wire)) == build(expected)
    assert read(GEMINI, build_content(LINKS[form])).scene.sights == (), "it has no block for any address"


@requirement("lower.foreign", "cache_mark.moves")
def test_the_cache_mark_of_a_foreign_block_stays() -> None:
    marked: Json = {**FORMS["MCP"], "cache_control": MARK}
    after = lower_body(ANTHROPIC, build_messages_result(marked), [Shown()], native(ANTHROPIC))
    assert after == build_messages_result({**block(LONG), "cache_control": MARK})


@requirement("lower.foreign", "cache_mark.moves")
@pytest.mark.parametrize(
    ("wire", "build"),
    [(OPENAI_RESPONSES, build_output), (OPENAI_RESPONSES, build_item), (GEMINI, build_content)],
    ids=["output", "message", "Gemini"],
)
def test_a_cache_mark_that_the_wire_does_not_know_is_left_out(wire: Wire, build: Build) -> None:
    marked, bare = ({**FORMS["MCP"], **mark} for mark in ({"cache_control": MARK}, {}))
    for fate in (Shown(), Refitted(image(b"jpeg"), "too large"), Told("[told]", "eye")):
        for hoists in ("native", "hoist"):
            profile = Profile("up", wire.name, "m", tool_images=hoists)
            after = lower_body(wire, build(marked), [fate], profile)
            assert after == lower_body(wire, build(bare), [fate], profile)


@requirement("lower.foreign", "read.nowhere_else")
@pytest.mark.parametrize(
    "other",
    [
        {"type": "file", "data": LONG, "mediaType": "application/pdf"},
        {"type": "audio", "data": LONG, "mimeType": "audio/wav"},
        {"type": "image"},
        {"type": "image", "data": ""},
        {"type": "image", "source": {"type": "nothing"}},
        {"type": "resource_link", "uri": "file:///a.png", "mimeType": "image/png"},
        {"type": "image_url", "image_url": 7},
        {"type": ["image"], "data": SMALL},
        {"data": SMALL},
        {"image": SMALL},
        {"image": {"source": {"s3Location": {"uri": "s3://a/b.png"}}}},
        {"inlineData": {"mimeType": "audio/wav", "data": SMALL}},
    ],
)
@pytest.mark.parametrize(("wire", "build"), PLACES)
def test_other_blocks_are_left_alone(wire: Wire, build: Build, other: Json) -> None:
    given = build(other)
    assert read(wire, given).scene.sights == ()
    assert lower_body(wire, given, [], native(wire)) == given


@requirement("lower.foreign")
def test_a_file_that_a_provider_keeps_is_only_read_on_its_own_wire() -> None:
    stored: Json = {"type": "image", "source": {"type": "file", "file_id": "file_1"}}
    assert len(read(ANTHROPIC, build_messages_result(stored)).scene.sights) == 1
    assert read(OPENAI_CHAT, build_chat_result(stored)).scene.sights == ()


@requirement("lower.foreign")
def test_a_tool_message_of_another_api_is_not_read_on_messages() -> None:
    """It has no such role: the body is one of another wire, and the user should be told so."""
    assert read(ANTHROPIC, build_chat_result(part(LONG))).scene.sights == ()
