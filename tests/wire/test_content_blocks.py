"""MCP results and ACP prompts: every place where an image can be, and how each fate is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.model.scene import (
    Fate,
    InlineSource,
    Json,
    LinkSource,
    Message,
    Refitted,
    Refused,
    Shown,
    Sight,
    Source,
    Told,
)
from sightline.wire import ACP, MCP, Codec
from sightline.wire.json_tree import PlainTexts
from tests.engine.parts import encoded, picture
from tests.requirements import requirement
from tests.wire.bodies import LONG, SMALL, image, lower_body, read, text

SENTENCE = Refused("[not available]", Refusal("corrupt", "it is broken"))
PNG = encoded(picture())
BOTH = [pytest.param(content, id=content.name) for content in (MCP, ACP)]
either = pytest.mark.parametrize("content", BOTH)


def picture_block(data: str = SMALL, mime: str = "image/png", **more: Json) -> dict[str, Json]:
    return {"type": "image", "data": data, "mimeType": mime, **more}


def resource(data: str = SMALL, mime: str | None = "image/png", **more: Json) -> dict[str, Json]:
    named: dict[str, Json] = {} if mime is None else {"mimeType": mime}
    return {"type": "resource", "resource": {"uri": "file:///a.png", **named, "blob": data, **more}}


def link(uri: str, mime: str = "image/png") -> dict[str, Json]:
    return {"type": "resource_link", "uri": uri, "name": "a", "mimeType": mime}


def of(content: Codec, *blocks: Json) -> dict[str, Json]:
    return {content.messages_key: list(blocks)}


@requirement("wire.mcp", "wire.acp")
@either
@pytest.mark.parametrize(
    ("block", "source"),
    [
        pytest.param(picture_block(), InlineSource("image/png", SMALL.encode()), id="an image"),
        pytest.param(picture_block(LONG), InlineSource("image/png", LONG.encode()), id="an image that was lifted out"),
        pytest.param(
            picture_block(uri="file:///a.png"), InlineSource("image/png", SMALL.encode()), id="with its address"
        ),
        pytest.param(
            picture_block(f"data:image/gif;base64,{SMALL}"), InlineSource("image/gif", SMALL.encode()), id="a data URL"
        ),
        pytest.param(
            {"type": "image", "data": SMALL, "mime_type": "IMAGE/PNG"},
            InlineSource("image/png", SMALL.encode()),
            id="snake",
        ),
        pytest.param(
            {"type": "image", "data": "", "uri": "https://a/b.png"}, LinkSource("https://a/b.png"), id="only an address"
        ),
        pytest.param(resource(), InlineSource("image/png", SMALL.encode()), id="a resource"),
        pytest.param(resource(PNG, None), InlineSource("", PNG.encode()), id="a resource that says nothing and is one"),
        pytest.param(resource(PNG, "application/octet-stream"), InlineSource("", PNG.encode()), id="of some bytes"),
        pytest.param(link("https://a/b.png"), LinkSource("https://a/b.png"), id="a link"),
    ],
)
def test_an_image_is_a_sight(content: Codec, block: Json, source: Source) -> None:
    scene = read(content, of(content, text("look"), None, block)).scene
    (sight,) = scene.sights
    role: Literal["user", "tool"] = "tool" if content is MCP else "user"
    assert replace(sight, pasted_name=None) == Sight((content.messages_key, 2), source, role)
    assert scene.messages == (Message("tool") if content is MCP else Message("user", opens_turn=True),)
    assert scene.is_partial, "the conversation stands elsewhere"
    assert not scene.stream
    assert (MCP.messages_key, ACP.messages_key) == ("content", "prompt")


@requirement("acp.words")
@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("file:///home/u/my%20shot.png", "my shot.png"),
        ("zed:///agent/before.png?x=1#y", "before.png"),
        ("C:\\shots\\after.png", "after.png"),
        ("file:///", None),
        ("", None),
        (f"data:image/png;base64,{SMALL}", None),
        ("file://[::1/a.png", None),
        (f"file:///{'a' * 300}.png", None),
    ],
)
def test_a_pasted_image_has_the_file_name_of_its_address(uri: str, name: str | None) -> None:
    (sight,) = read(ACP, of(ACP, picture_block(uri=uri))).scene.sights
    assert sight.filename == name
    assert sight.with_fate(Shown()).filename == name


@requirement("wire.mcp", "wire.acp")
@either
@pytest.mark.parametrize(
    "block",
    [
        pytest.param({"type": "audio", "data": PNG, "mimeType": "audio/wav"}, id="audio"),
        pytest.param(resource("cGRm", "application/pdf"), id="a document"),
        pytest.param(resource(SMALL, None), id="bytes of which nobody says what they are"),
        pytest.param(
            {"type": "resource", "resource": {"uri": "a", "mimeType": "image/svg+xml", "text": "<svg/>"}}, id="text"
        ),
        pytest.param(link("file:///a.png"), id="a link to a file"),
        pytest.param(link("https://a/b.pdf", "application/pdf"), id="a link to a document"),
        pytest.param({"type": "image"}, id="no data"),
        pytest.param({"type": "image", "data": 7}, id="data of no kind"),
        pytest.param({"type": "resource", "resource": None}, id="no resource"),
        pytest.param(7, id="no block"),
    ],
)
def test_other_content_is_left_alone(content: Codec, block: Json) -> None:
    assert read(content, of(content, block)).scene.sights == ()
    assert lower_body(content, of(content, block), []) == of(content, block)


@pytest.mark.parametrize("tree", [None, [], {}, {"content": "text", "prompt": "text"}, {"content": {}, "prompt": 7}])
@either
def test_a_body_of_another_shape_has_no_sights(content: Codec, tree: Json) -> None:
    assert content.read(tree, PlainTexts()).sights == ()


@requirement("wire.mcp", "wire.acp")
@either
@pytest.mark.parametrize(
    ("fate", "as_image", "as_resource"),
    [
        pytest.param(None, picture_block(LONG), resource(LONG), id="undecided"),
        pytest.param(Shown(), picture_block(LONG), resource(LONG), id="shown"),
        pytest.param(
            Shown("image/webp"), picture_block(LONG, "image/webp"), resource(LONG, "image/webp"), id="its true type"
        ),
        pytest.param(
            Refitted(image(b"jpeg"), "x"),
            picture_block("anBlZw==", "image/jpeg"),
            resource("anBlZw==", "image/jpeg"),
            id="refitted",
        ),
        pytest.param(Told("<a fence>", "up/eye"), text("<a fence>"), text("<a fence>"), id="told"),
        pytest.param(SENTENCE, text("[not available]"), text("[not available]"), id="refused"),
    ],
)
def test_each_fate_is_written_in_the_place_of_the_image(
    content: Codec, fate: Fate | None, as_image: Json, as_resource: Json
) -> None:
    before = of(content, text("a"), picture_block(LONG), resource(LONG), text("b"))
    assert lower_body(content, before, [fate, fate]) == of(content, text("a"), as_image, as_resource, text("b"))


def test_other_fields_of_a_block_stay() -> None:
    before = of(ACP, picture_block(LONG, uri="file:///a.png", _meta={"a": 1}, annotations={"priority": 1}))
    after = of(
        ACP, picture_block("anBlZw==", "image/jpeg", uri="file:///a.png", _meta={"a": 1}, annotations={"priority": 1})
    )
    assert lower_body(ACP, before, [Refitted(image(b"jpeg"), "x")]) == after


@requirement("wire.mcp")
def test_an_image_is_extracted_from_the_text_of_a_tool() -> None:
    said = f'[{{"type": "text", "text": "a page"}}, {{"type": "media", "data": "{PNG}", "mediaType": "image/png"}}]'
    before = {**of(MCP, text(said), text("more")), "isError": False}
    shown = lower_body(MCP, before, [Shown("image/png")])
    assert shown == {**of(MCP, text("a page"), picture_block(PNG), text("more")), "isError": False}
    told = lower_body(MCP, before, [Told("<a fence>", "up/eye")])
    assert told == {**of(MCP, text("a page"), text("<a fence>"), text("more")), "isError": False}


def test_a_person_s_text_is_not_searched_for_images() -> None:
    assert read(ACP, of(ACP, text(PNG))).scene.sights == ()


json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([PNG, SMALL, "https://a/b", "image/png", "image", ""]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "data", "uri", "mimeType", "resource", "blob", "text", "content"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
blocks = st.lists(
    json_values
    | st.builds(
        lambda kind, rest: {**(rest if isinstance(rest, dict) else {}), "type": kind},
        st.sampled_from(["image", "resource", "resource_link", "text", "audio"]),
        json_values,
    ),
    max_size=5,
)


@either
@given(found=blocks)
def test_any_blocks_are_read_and_text_beside_images_stays(content: Codec, found: list[Json]) -> None:
    body = of(content, *found)
    scene = read(content, body).scene
    assert lower_body(content, body, [None] * len(scene.sights)) == body or any(
        s.path_in_text is not None for s in scene.sights
    )
    told: Any = lower_body(content, body, [Told("<a fence>", "up/eye")] * len(scene.sights))
    after = told[content.messages_key]
    assert sum(block == text("<a fence>") for block in after) >= len(
        {s.place for s in scene.sights if s.path_in_text is None}
    )
    assert read(content, told).scene.sights == ()
