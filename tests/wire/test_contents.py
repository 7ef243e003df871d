"""Content of MCP results and ACP prompts: every place where an image stands, and how each fate is written there."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.fate import Fate, Refitted, Refused, Shown, Told
from sightline.model.refusal import Refusal
from sightline.model.scene import Json, Message, Sight
from sightline.model.source import Inline, Link, Source
from sightline.wire.contents import ACP, MCP, Content
from sightline.wire.shape import Whole
from tests.engine.parts import encoded, picture
from tests.requirements import requirement
from tests.wire.bodies import LONG, SMALL, image, lowered, read, text

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


def of(content: Content, *blocks: Json) -> dict[str, Json]:
    return {content.items: list(blocks)}


@requirement("wire.mcp", "wire.acp")
@either
@pytest.mark.parametrize(
    ("block", "source"),
    [
        pytest.param(picture_block(), Inline("image/png", SMALL.encode()), id="an image"),
        pytest.param(picture_block(LONG), Inline("image/png", LONG.encode()), id="an image that was lifted out"),
        pytest.param(picture_block(uri="file:///a.png"), Inline("image/png", SMALL.encode()), id="with its address"),
        pytest.param(
            picture_block(f"data:image/gif;base64,{SMALL}"), Inline("image/gif", SMALL.encode()), id="a data URL"
        ),
        pytest.param(
            {"type": "image", "data": SMALL, "mime_type": "IMAGE/PNG"}, Inline("image/png", SMALL.encode()), id="snake"
        ),
        pytest.param(
            {"type": "image", "data": "", "uri": "https://a/b.png"}, Link("https://a/b.png"), id="only an address"
        ),
        pytest.param(resource(), Inline("image/png", SMALL.encode()), id="a resource"),
        pytest.param(resource(PNG, None), Inline("", PNG.encode()), id="a resource that says nothing and is one"),
        pytest.param(resource(PNG, "application/octet-stream"), Inline("", PNG.encode()), id="of some bytes"),
        pytest.param(link("https://a/b.png"), Link("https://a/b.png"), id="a link"),
    ],
)
def test_an_image_is_a_sight(content: Content, block: Json, source: Source) -> None:
    scene = read(content, of(content, text("look"), None, block)).scene
    (sight,) = scene.sights
    assert sight == Sight((content.items, 2), source, "tool" if content is MCP else "user")
    assert scene.messages == (Message("tool") if content is MCP else Message("user", opens=True),)
    assert scene.partial, "the conversation stands elsewhere"
    assert not scene.stream
    assert (MCP.items, ACP.items) == ("content", "prompt")


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
def test_what_is_no_image_is_left_alone(content: Content, block: Json) -> None:
    assert read(content, of(content, block)).scene.sights == ()
    assert lowered(content, of(content, block), []) == of(content, block)


@pytest.mark.parametrize("tree", [None, [], {}, {"content": "text", "prompt": "text"}, {"content": {}, "prompt": 7}])
@either
def test_a_body_of_another_shape_has_no_sights(content: Content, tree: Json) -> None:
    assert content.read(tree, Whole()).sights == ()


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
    content: Content, fate: Fate | None, as_image: Json, as_resource: Json
) -> None:
    before = of(content, text("a"), picture_block(LONG), resource(LONG), text("b"))
    assert lowered(content, before, [fate, fate]) == of(content, text("a"), as_image, as_resource, text("b"))


def test_what_else_a_block_holds_stays_with_its_pixels() -> None:
    before = of(ACP, picture_block(LONG, uri="file:///a.png", _meta={"a": 1}, annotations={"priority": 1}))
    after = of(
        ACP, picture_block("anBlZw==", "image/jpeg", uri="file:///a.png", _meta={"a": 1}, annotations={"priority": 1})
    )
    assert lowered(ACP, before, [Refitted(image(b"jpeg"), "x")]) == after


@requirement("wire.mcp")
def test_an_image_that_a_tool_has_written_into_its_text_comes_out_of_it() -> None:
    said = f'[{{"type": "text", "text": "a page"}}, {{"type": "media", "data": "{PNG}", "mediaType": "image/png"}}]'
    before = {**of(MCP, text(said), text("more")), "isError": False}
    shown = lowered(MCP, before, [Shown("image/png")])
    assert shown == {**of(MCP, text("a page"), picture_block(PNG), text("more")), "isError": False}
    told = lowered(MCP, before, [Told("<a fence>", "up/eye")])
    assert told == {**of(MCP, text("a page"), text("<a fence>"), text("more")), "isError": False}


def test_a_person_s_words_are_not_searched_for_images() -> None:
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
def test_any_blocks_are_read_and_every_told_image_leaves_its_words_alone(content: Content, found: list[Json]) -> None:
    body = of(content, *found)
    scene = read(content, body).scene
    assert lowered(content, body, [None] * len(scene.sights)) == body or any(s.within is not None for s in scene.sights)
    told: Any = lowered(content, body, [Told("<a fence>", "up/eye")] * len(scene.sights))
    after = told[content.items]
    assert sum(block == text("<a fence>") for block in after) >= len(
        {s.place for s in scene.sights if s.within is None}
    )
    assert read(content, told).scene.sights == ()
