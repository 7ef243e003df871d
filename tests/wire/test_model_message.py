"""The AI SDK's messages: every place where an image can be, and how each fate is written."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.labels import BRIDGE_TEXT, SHOWN_BELOW
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.scene import (
    Fate,
    InlineSource,
    Json,
    LinkSource,
    Message,
    OpaqueSource,
    Refitted,
    Refused,
    Retired,
    Shown,
    Sight,
    Source,
    Told,
    ToolCall,
)
from sightline.wire import MODEL_MESSAGE
from sightline.wire.json_tree import PlainTexts
from tests.engine.parts import encoded, picture
from tests.requirements import requirement
from tests.wire.bodies import LONG as ODD
from tests.wire.bodies import SMALL, image, lower_body, read, text, user

PNG = encoded(picture())
OTHER = encoded(picture(1))
LONG = ODD.replace("-", "+").replace("_", "/")
SENTENCE = Refused("[not available]", Refusal("corrupt", "it is broken"))


def calling(*calls: str, name: str = "read") -> dict[str, Json]:
    made: list[Json] = [
        {"type": "tool-call", "toolCallId": call, "toolName": name, "input": {"path": f"/home/me/{call}.png"}}
        for call in calls
    ]
    return {"role": "assistant", "content": [text("let me see"), *made]}


def answered(call: str, output: Json, name: str = "read") -> dict[str, Json]:
    return {"type": "tool-result", "toolCallId": call, "toolName": name, "output": output}


def content(*value: Json) -> dict[str, Json]:
    return {"type": "content", "value": list(value)}


def tool(*results: Json) -> dict[str, Json]:
    return {"role": "tool", "content": list(results)}


def media(data: str = SMALL, mime: str = "image/png", kind: str = "media") -> dict[str, Json]:
    return {"type": kind, "data": data, "mediaType": mime}


def shown(data: str = SMALL, mime: str = "image/png") -> dict[str, Json]:
    return {"type": "image", "image": data, "mediaType": mime}


def label(call: str, name: str = "read") -> dict[str, Json]:
    return text(f"[image from the tool call {call} ({name})]")


def body(*messages: Json) -> dict[str, Json]:
    return {"messages": list(messages)}


def png(data: str = SMALL, mime: str = "image/png") -> InlineSource:
    return InlineSource(mime, data.encode())


@requirement("wire.model_message")
@pytest.mark.parametrize(
    ("part", "source"),
    [
        pytest.param(shown(), png(), id="an image"),
        pytest.param(shown(LONG), png(LONG), id="an image that was lifted out"),
        pytest.param({"type": "image", "image": SMALL}, png(mime=""), id="without a type"),
        pytest.param(
            {"type": "image", "image": f"data:image/gif;base64,{SMALL}"}, png(mime="image/gif"), id="data URL"
        ),
        pytest.param({"type": "image", "image": "https://a/b"}, LinkSource("https://a/b"), id="an address"),
        pytest.param({"type": "file", "data": SMALL, "mediaType": "image/png"}, png(), id="a file"),
        pytest.param({"type": "file", "data": PNG, "mediaType": "application/octet-stream"}, png(PNG, ""), id="bytes"),
        pytest.param(
            {"type": "file", "data": {"type": "data", "data": SMALL}, "mediaType": "image/png"}, png(), id="v7"
        ),
        pytest.param(
            {"type": "file", "data": {"type": "url", "url": "https://a/b"}, "mediaType": "image/png"},
            LinkSource("https://a/b"),
            id="a file at an address",
        ),
    ],
)
def test_an_image_of_a_user_is_a_sight(part: Json, source: Source) -> None:
    (sight,) = read(MODEL_MESSAGE, body({"role": "system", "content": "be kind"}, user(text("a"), part))).scene.sights
    assert sight == Sight(("messages", 1, "content", 1), source, "user", message=1)


@requirement("wire.model_message", "hoist.kinds")
@pytest.mark.parametrize(
    ("item", "source"),
    [
        pytest.param(media(), png(), id="media"),
        pytest.param(media(LONG), png(LONG), id="media that was lifted out"),
        pytest.param(media(kind="image-data"), png(), id="image-data"),
        pytest.param({**media(kind="file-data"), "filename": "a.png"}, png(), id="file-data"),
        pytest.param({"type": "image-url", "url": f"data:image/png;base64,{SMALL}"}, png(), id="image-url with data"),
        pytest.param({"type": "image-url", "url": "https://a/b"}, LinkSource("https://a/b"), id="image-url"),
        pytest.param({"type": "image-file-id", "fileId": "file-1"}, OpaqueSource("file-1"), id="image-file-id"),
        pytest.param(
            {"type": "file", "mediaType": "image/png", "data": {"type": "data", "data": SMALL}}, png(), id="v7"
        ),
    ],
)
def test_an_image_of_a_tool_has_its_call(item: Json, source: Source) -> None:
    conversation = body(calling("c1"), tool(answered("c1", content(text("here"), None, item))))
    (sight,) = read(MODEL_MESSAGE, conversation).scene.sights
    place = ("messages", 1, "content", 0, "output", "value", 2)
    assert sight == Sight(place, source, "tool", ToolCall("c1", "read", "/home/me/c1.png"), 1)


@requirement("wire.model_message")
def test_roles_turns_model_and_tools_are_read() -> None:
    messages: list[Any] = [
        {"role": "system", "content": "be kind"},
        user(text("look")),
        calling("c1"),
        tool(answered("c1", content(media(PNG)))),
        user(label("c1"), shown(PNG)),
        {"role": "user", "content": "thanks"},
    ]
    held: Json = {"messages": messages, "model": "m", "tools": {"read": {}, "shell": {}}, "stream": True}
    scene = read(MODEL_MESSAGE, held).scene
    assert scene.messages == (
        Message("other"),
        Message("user", opens_turn=True),
        Message("assistant"),
        Message("tool"),
        Message("user"),
        Message("user", opens_turn=True),
    )
    assert (scene.model, scene.tools, scene.stream, scene.is_partial) == (
        "m",
        frozenset({"read", "shell"}),
        False,
        False,
    )


def test_an_unknown_call_gets_the_name_in_its_result() -> None:
    (sight,) = read(MODEL_MESSAGE, body(tool(answered("c9", content(media()), name="shoot")))).scene.sights
    assert sight.call == ToolCall("c9", "shoot")
    made = body(calling("c1", name="read"), tool(answered("c1", content(media()), name="other")))
    assert read(MODEL_MESSAGE, made).scene.sights[0].call == ToolCall("c1", "read", "/home/me/c1.png")


@requirement("wire.model_message", "hoist.untouched")
@pytest.mark.parametrize(
    "message",
    [
        pytest.param({"role": "user", "content": PNG}, id="words of a user"),
        pytest.param({"role": "user", "content": [7, None, "x", {"type": "image"}]}, id="parts that are none"),
        pytest.param({"role": "user", "content": [{"type": "image", "image": {"0": 137, "1": 80}}]}, id="raw bytes"),
        pytest.param({"role": "user", "content": [media("cGRm", "application/pdf", "file")]}, id="a document"),
        pytest.param({"role": "assistant", "content": [media(PNG, kind="file")]}, id="an image that the model made"),
        pytest.param(tool(answered("c1", content(media("cGRm", "application/pdf")))), id="a document of a tool"),
        pytest.param(tool(answered("c1", content(media("c291bmQ=", "audio/wav")))), id="a sound"),
        pytest.param(tool(answered("c1", content(text("[image a.png viewed earlier]")))), id="words already"),
        pytest.param(tool(answered("c1", {"type": "json", "value": {"a": [1, None, "iVBORw0KGgo"]}})), id="JSON"),
        pytest.param(
            tool(answered("c1", {"type": "text", "value": f"<img src='data:image/png;base64,{PNG}'>"})), id="a page"
        ),
        pytest.param(tool(answered("c1", {"type": "execution-denied"})), id="denied"),
        pytest.param(tool(answered("c1", None), {"type": "tool-approval-response"}, 7), id="results that are none"),
        pytest.param({"role": "tool", "content": "text"}, id="a tool of another kind"),
        pytest.param(7, id="no message"),
    ],
)
def test_other_content_is_left_alone(message: Json) -> None:
    assert read(MODEL_MESSAGE, body(message)).scene.sights == ()
    assert lower_body(MODEL_MESSAGE, body(message), []) == body(message)


@pytest.mark.parametrize("tree", [None, [], {}, {"messages": {}}, {"messages": [None, [], {"role": 7}]}])
def test_a_body_of_another_shape_has_no_sights(tree: Json) -> None:
    assert MODEL_MESSAGE.read(tree, PlainTexts()).sights == ()


@requirement("wire.model_message")
@pytest.mark.parametrize(
    ("fate", "as_image", "as_file", "as_tagged"),
    [
        pytest.param(None, shown(LONG), media(LONG, kind="file"), media(LONG, kind="file"), id="undecided"),
        pytest.param(Shown(), shown(LONG), media(LONG, kind="file"), media(LONG, kind="file"), id="shown"),
        pytest.param(
            Refitted(image(b"jpeg"), "x"),
            shown("anBlZw==", "image/jpeg"),
            media("anBlZw==", "image/jpeg", "file"),
            media("anBlZw==", "image/jpeg", "file"),
            id="refitted",
        ),
        pytest.param(Told("<a fence>", "up/eye"), *[text("<a fence>")] * 3, id="told"),
        pytest.param(Retired("<a line>", "old"), *[text("<a line>")] * 3, id="retired"),
        pytest.param(SENTENCE, *[text("[not available]")] * 3, id="refused"),
    ],
)
def test_each_fate_is_written_in_the_place_of_a_user_s_image(
    fate: Fate | None, as_image: Json, as_file: Json, as_tagged: Json
) -> None:
    def tagged(part: Any) -> Any:
        return {**part, "data": {"type": "data", "data": part["data"]}} if part["type"] == "file" else part

    before = body(user(shown(LONG), media(LONG, kind="file"), tagged(media(LONG, kind="file"))))
    after = body(user(as_image, as_file, tagged(as_tagged)))
    assert lower_body(MODEL_MESSAGE, before, [fate] * 3) == after


@requirement("hoist.model_message", "hoist.kinds", "hoist.one_marker")
@pytest.mark.parametrize("kind", ["media", "image-data", "file-data", "file"])
@pytest.mark.parametrize("profile", ["native", "hoist"])
def test_an_image_moves_into_a_user_message_for_any_provider(kind: str, profile: Any) -> None:
    before = body(calling("c1"), tool(answered("c1", content(media(LONG, kind=kind), text("a page")))))
    after: Any = lower_body(MODEL_MESSAGE, before, [Shown()], Profile("up", "openai_chat", "m", tool_images=profile))
    named = [label("c1")] if profile == "hoist" else []
    assert after == body(
        calling("c1"),
        tool(answered("c1", content(text("a page"), text(SHOWN_BELOW)))),
        user(*named, shown(LONG)),
    )


def test_urlsafe_base64_moves_in_the_standard_alphabet() -> None:
    before = body(calling("c1"), tool(answered("c1", content(media(ODD)))))
    after: Any = lower_body(MODEL_MESSAGE, before, [Shown()])
    assert after["messages"][2] == user(label("c1"), shown(LONG))


@requirement("hoist.after_run", "hoist.parallel", "lower.hoist")
def test_images_of_parallel_calls_follow_the_last_result_in_call_order() -> None:
    before = body(
        user(text("look")),
        calling("c1", "c2"),
        tool(answered("c2", content(media(OTHER)))),
        tool(answered("c1", content(text("first"), media(PNG), media("MQ==")))),
        {"role": "assistant", "content": "I see"},
    )
    assert lower_body(MODEL_MESSAGE, before, [Shown()] * 3) == body(
        user(text("look")),
        calling("c1", "c2"),
        tool(answered("c2", content(text(SHOWN_BELOW)))),
        tool(answered("c1", content(text("first"), text(SHOWN_BELOW)))),
        user(label("c1"), shown(PNG), label("c1"), shown("MQ=="), label("c2"), shown(OTHER)),
        {"role": "assistant", "content": "I see"},
    )


@requirement("lower.mistral")
def test_a_bridge_separates_tool_and_user_messages() -> None:
    before = body(calling("c1"), tool(answered("c1", content(media()))))
    after: Any = lower_body(MODEL_MESSAGE, before, [Shown()], Profile("up", "openai_chat", "m", tool_images="bridge"))
    assert after["messages"][2:] == [{"role": "assistant", "content": BRIDGE_TEXT}, user(label("c1"), shown())]
    assert [sight.hoisted for sight in read(MODEL_MESSAGE, after).scene.sights] == [True]


@requirement("hoist.model_message")
@pytest.mark.parametrize(
    ("output", "after"),
    [
        pytest.param({"type": "text", "value": PNG}, {"type": "text", "value": SHOWN_BELOW}, id="a text that is one"),
        pytest.param(
            {"type": "text", "value": json.dumps([text("a page"), media(PNG)])},
            {"type": "text", "value": f"a page\n{SHOWN_BELOW}"},
            id="content that was written out",
        ),
        pytest.param(
            {"type": "json", "value": {"path": "a.png", "b64": PNG}},
            content(text('{"path":"a.png","b64":"[image]"}'), text(SHOWN_BELOW)),
            id="JSON that holds one",
        ),
        pytest.param(
            {"type": "json", "value": [text("a page"), media(PNG, kind="file-data")]},
            {"type": "text", "value": f"a page\n{SHOWN_BELOW}"},
            id="content as JSON",
        ),
        pytest.param({"type": "json", "value": PNG}, {"type": "text", "value": SHOWN_BELOW}, id="a JSON text"),
        pytest.param(
            {"type": "error-json", "value": {"shot": PNG}, "providerOptions": {"a": {}}},
            {"type": "error-text", "value": f'{{"shot":"[image]"}}\n{SHOWN_BELOW}', "providerOptions": {"a": {}}},
            id="an error stays one",
        ),
        pytest.param(
            content(text(json.dumps({"shot": PNG})), text("more")),
            content(text('{"shot": "[image]"}'), text("more"), text(SHOWN_BELOW)),
            id="a text among content",
        ),
    ],
)
def test_an_image_is_extracted_from_the_text_of_a_result(output: Json, after: Json) -> None:
    before = body(calling("c1"), tool(answered("c1", output)))
    assert lower_body(MODEL_MESSAGE, before, [Shown("image/png")]) == body(
        calling("c1"), tool(answered("c1", after)), user(label("c1"), shown(PNG))
    )


def test_words_in_the_place_of_pixels_stay_in_the_result() -> None:
    told = Told("<a fence>", "up/eye")
    before = body(calling("c1"), tool(answered("c1", content(text("a page"), media(PNG), media(OTHER)))))
    after = body(
        calling("c1"), tool(answered("c1", content(text("a page"), text("<a fence>"), text("[not available]"))))
    )
    assert lower_body(MODEL_MESSAGE, before, [told, SENTENCE]) == after
    written = body(calling("c1"), tool(answered("c1", {"type": "json", "value": {"shot": PNG}})))
    kept = content(text('{"shot":"[image]"}'), text("<a fence>"))
    assert lower_body(MODEL_MESSAGE, written, [told]) == body(calling("c1"), tool(answered("c1", kept)))


def test_a_url_moves_and_a_file_id_stays() -> None:
    link: Json = {"type": "image-url", "url": "https://a/b", "providerOptions": {"openai": {"imageDetail": "low"}}}
    reference: Json = {"type": "image-file-id", "fileId": "file-1"}
    before = body(calling("c1"), tool(answered("c1", content(link, reference))))
    moved: Json = {"type": "image", "image": "https://a/b", "providerOptions": {"openai": {"imageDetail": "low"}}}
    assert lower_body(MODEL_MESSAGE, before, [Shown(), Shown()]) == body(
        calling("c1"), tool(answered("c1", content(reference, text(SHOWN_BELOW)))), user(label("c1"), moved)
    )


@requirement("hoist.idempotent")
def test_an_image_that_was_moved_before_stays() -> None:
    before = body(calling("c1"), tool(answered("c1", content(text(SHOWN_BELOW)))), user(label("c1"), shown(LONG)))
    (sight,) = read(MODEL_MESSAGE, before).scene.sights
    assert (sight.role, sight.hoisted, sight.call) == ("tool", True, ToolCall("c1", "read", "/home/me/c1.png"))
    assert lower_body(MODEL_MESSAGE, before, [Shown()]) == before


def test_objects_that_are_not_json_are_not_images() -> None:
    value: Any = {"at": {1, 2}, "b64": PNG}
    odd = body(tool(answered("c1", {"type": "json", "value": value})))
    assert MODEL_MESSAGE.read(odd, PlainTexts()).sights == ()


items = st.sampled_from([text("words"), media(PNG), media(OTHER, kind="file-data"), media("cGRm", "application/pdf")])
outputs: st.SearchStrategy[Any] = st.one_of(
    st.lists(items, max_size=3).map(lambda found: content(*found)),
    st.sampled_from(
        [
            {"type": "text", "value": PNG},
            {"type": "text", "value": "words"},
            {"type": "json", "value": {"a": PNG, "b": [OTHER, 1]}},
            {"type": "error-text", "value": "no"},
        ]
    ),
)
runs = st.lists(outputs, min_size=1, max_size=3)


@st.composite
def conversations(draw: st.DrawFn) -> dict[str, Json]:
    messages: list[Json] = [user(text("look"), *draw(st.lists(st.just(shown(PNG)), max_size=1)))]
    for step, found in enumerate(draw(st.lists(runs, max_size=3))):
        names = [f"c{step}{index}" for index in range(len(found))]
        results: list[Json] = [answered(name, output) for name, output in zip(names, found, strict=True)]
        together = draw(st.booleans())
        messages += [calling(*names), *([tool(*results)] if together else map(tool, results))]
    return body(*messages)


def results_in(messages: list[Any]) -> list[Any]:
    return [part for message in messages if message["role"] == "tool" for part in message["content"]]


@requirement("hoist.idempotent", "hoist.parallel", "hoist.model_message")
@given(conversations())
def test_any_conversation_keeps_its_calls_and_shows_each_image_once(before: Any) -> None:
    sights = read(MODEL_MESSAGE, before).scene.sights
    after: Any = lower_body(
        MODEL_MESSAGE, before, [Shown("image/png") if s.is_in_tool_result else Shown() for s in sights]
    )
    messages = after["messages"]
    assert [r["toolCallId"] for r in results_in(messages)] == [r["toolCallId"] for r in results_in(before["messages"])]
    assert "iVBOR" not in json.dumps(results_in(messages))
    parts = [part for m in messages if m["role"] == "user" for part in m["content"] if part["type"] == "image"]
    assert len(parts) == len(sights)
    for one, following in pairwise(messages):
        assert following["role"] != "tool" or one["role"] in ("tool", "assistant")
    again = read(MODEL_MESSAGE, after).scene.sights
    assert lower_body(MODEL_MESSAGE, after, [Shown()] * len(again)) == after
