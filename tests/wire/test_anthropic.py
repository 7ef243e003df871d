"""The Messages wire: every place where an image can be, and how each fate is written."""

from __future__ import annotations

import json

import pytest

from sightline.model.refusal import Refusal
from sightline.model.scene import (
    Fate,
    InlineSource,
    Json,
    JsonPath,
    LinkSource,
    OpaqueSource,
    Refitted,
    Refused,
    Shown,
    Sight,
    Told,
    ToolCall,
)
from sightline.wire import ANTHROPIC
from tests.requirements import requirement
from tests.wire.bodies import LONG, MARK, SEEING, SMALL, block, body, image, lower_body, read, result, text, user

SENTENCE = Refused("[not available]", Refusal("corrupt", "it is broken"))
IN_MESSAGE: JsonPath = ("messages", 0, "content", 0)


def png(data: str = SMALL, mime: str = "image/png") -> InlineSource:
    return InlineSource(mime, data.encode())


def use(call: str, name: str, **arguments: Json) -> dict[str, Json]:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": name, "input": dict(arguments)}]}


@requirement("read.native", "read.sources")
@pytest.mark.parametrize(
    ("image_block", "source"),
    [
        pytest.param(block(), png(), id="base64"),
        pytest.param(block(LONG), png(LONG), id="base64 that was lifted out"),
        pytest.param(
            {"source": {"data": SMALL, "type": "base64", "media_type": "image/png"}, "type": "image"},
            png(),
            id="another order of keys",
        ),
        pytest.param({"type": "image", "source": {"type": "base64", "data": SMALL}}, png(mime=""), id="no type"),
        pytest.param(
            {"type": "image", "source": {"type": "url", "url": "https://a/b"}}, LinkSource("https://a/b"), id="url"
        ),
        pytest.param(
            {"type": "image", "source": {"type": "file", "file_id": "file_1"}}, OpaqueSource("file_1"), id="file"
        ),
        pytest.param({**block(), "cache_control": MARK, "x": 1}, png(), id="with unknown fields"),
    ],
)
def test_an_image_block_of_a_message_is_a_sight(image_block: Json, source: InlineSource) -> None:
    (sight,) = read(ANTHROPIC, body(user(image_block, text("what is it")))).scene.sights
    assert sight == Sight(IN_MESSAGE, source, "user")


@requirement("read.call")
def test_an_image_in_a_tool_result_has_its_call() -> None:
    conversation = body(
        user(text("look")),
        use("toolu_1", "Read", file_path="/home/me/shot one.png"),
        user(result("toolu_1", text("here"), block(LONG), text("[source]")), text("and now?")),
    )
    (sight,) = read(ANTHROPIC, conversation).scene.sights
    place = ("messages", 2, "content", 0, "content", 1)
    assert sight == Sight(place, png(LONG), "tool", ToolCall("toolu_1", "Read", "/home/me/shot one.png"), 2)


def test_a_call_keeps_any_arguments() -> None:
    odd: Json = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_2", "name": "x", "input": [7]}]}
    conversation = body(
        use("toolu_1", "Read", file_path="/a.png", pages=[1, 2]), user(result("toolu_1", block())),
        odd, user(result("toolu_2", block())),
    )  # fmt: skip
    first, second = (sight.call for sight in read(ANTHROPIC, conversation).scene.sights)
    assert first is not None
    assert second is not None
    assert first.arguments == {"file_path": "/a.png", "pages": [1, 2]}
    assert second.arguments == {}


def test_results_out_of_order_are_matched_with_their_calls() -> None:
    asked: Json = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": "Read", "input": {"file_path": f"/a/{n}.png"}} for n in (1, 2)
    ]
    conversation = body(
        {"role": "assistant", "content": asked},
        user(result("toolu_2", block("Mg==")), {"type": "tool_result", "tool_use_id": "x", "content": "plain"}),
        user(result("toolu_1", block("MQ=="))),
    )
    found = read(ANTHROPIC, conversation)
    assert found.texts() == ["Mg==", "MQ=="]
    assert [(s.call, s.filename) for s in found.scene.sights] == [
        (ToolCall("toolu_2", "Read", "/a/2.png"), "2.png"),
        (ToolCall("toolu_1", "Read", "/a/1.png"), "1.png"),
    ]


def test_an_image_in_a_result_of_an_unknown_call_is_a_sight() -> None:
    (sight,) = read(ANTHROPIC, body(user(result("toolu_9", block())))).scene.sights
    assert (sight.call, sight.filename) == (ToolCall("toolu_9"), None)


def test_images_beside_system_messages_are_found() -> None:
    conversation = body(
        user(text("hello")),
        {"role": "system", "content": "be brief", "output_config": {"effort": "medium"}},
        {"role": "system", "content": [text("look at this"), block("MQ==")]},
        user(block("Mg==")),
        stream=True,
    )
    found = read(ANTHROPIC, conversation)
    assert [sight.place for sight in found.scene.sights] == [
        ("messages", 2, "content", 1),
        ("messages", 3, "content", 0),
    ]
    assert (found.scene.model, found.scene.stream) == ("m", True)


@requirement("read.nowhere_else")
@pytest.mark.parametrize(
    "odd",
    [
        pytest.param({"model": "m"}, id="no messages"),
        pytest.param({"model": "m", "messages": None}, id="messages are null"),
        pytest.param({"model": "m", "messages": {"role": "user"}}, id="messages are an object"),
        pytest.param(body(None, 7, "text", [block()]), id="messages that are none"),
        pytest.param(body({"role": "user"}), id="no content"),
        pytest.param(body({"role": "user", "content": None}), id="content is null"),
        pytest.param(body({"role": "user", "content": block()}), id="content is an object"),
        pytest.param(body({"role": "user", "content": SMALL}), id="content is a string"),
        pytest.param(body(user(None, 1, "x", [block()])), id="blocks that are none"),
        pytest.param(body(user({"type": "image"})), id="no source"),
        pytest.param(body(user({"type": "image", "source": None})), id="source is null"),
        pytest.param(body(user({"type": "image", "source": {"type": "base64", "data": None}})), id="no data"),
        pytest.param(body(user({"type": "image", "source": {"type": "future", "data": SMALL}})), id="new source"),
        pytest.param(body(user({"type": "tool_result", "tool_use_id": "t", "content": SMALL})), id="a text result"),
        pytest.param(body(user({"type": "tool_result", "tool_use_id": "t"})), id="an empty result"),
        pytest.param(body({"role": "assistant", "content": [block()]}), id="an image that the model made"),
        pytest.param(body(user(text("see")), tools=[{"input_schema": block()}]), id="outside the messages"),
    ],
)
def test_other_blocks_are_not_sights(odd: Json) -> None:
    found = read(ANTHROPIC, odd)
    assert found.scene.sights == ()
    assert lower_body(ANTHROPIC, odd, []) == odd


@requirement("wire.anthropic", "lower.native")
@pytest.mark.parametrize(
    ("fate", "after"),
    [
        pytest.param(None, block(), id="undecided"),
        pytest.param(Shown(), block(), id="shown"),
        pytest.param(Shown("image/webp"), block(mime="image/webp"), id="shown under its true type"),
        pytest.param(Refitted(image(b"jpeg"), "too large"), block("anBlZw==", "image/jpeg"), id="refitted"),
        pytest.param(Told("<a fence>", "up/eye"), text("<a fence>"), id="told"),
        pytest.param(SENTENCE, text("[not available]"), id="refused"),
    ],
)
def test_each_fate_is_written_in_the_place_of_the_image(fate: Fate | None, after: Json) -> None:
    for size in (SMALL, LONG):
        conversation = body(user(text("a"), block(size), text("b")), max_tokens=5)
        expected = json.loads(json.dumps(after).replace(SMALL, size))
        assert lower_body(ANTHROPIC, conversation, [fate], SEEING) == body(
            user(text("a"), expected, text("b")), max_tokens=5
        )
        held = body(user(result("t", text("a"), block(size)), text("b")))
        assert lower_body(ANTHROPIC, held, [fate], SEEING) == body(user(result("t", text("a"), expected), text("b")))


def test_a_missing_media_type_is_added_if_it_is_known() -> None:
    source: dict[str, Json] = {"type": "base64", "data": LONG, "extra": 1}
    bare_block: dict[str, Json] = {"type": "image", "source": source}
    expected: Json = {"type": "image", "source": {**source, "media_type": "image/png"}}
    assert lower_body(ANTHROPIC, body(user(bare_block)), [Shown("image/png")], SEEING) == body(user(expected))


@requirement("cache_mark.moves")
@pytest.mark.parametrize("fate", [Told("words", "up/eye"), SENTENCE])
def test_a_cache_mark_moves_to_the_block_that_replaces_the_image(fate: Told | Refused) -> None:
    marked = {**block(LONG), "cache_control": MARK}
    after = {**text(fate.text), "cache_control": MARK}
    assert lower_body(ANTHROPIC, body(user(marked, text("b"))), [fate]) == body(user(after, text("b")))


@pytest.mark.parametrize("fate", [Shown("image/gif"), Refitted(image(), "too large")])
def test_a_cache_mark_stays_on_an_image_that_stays(fate: Fate) -> None:
    marked: dict[str, Json] = {"cache_control": MARK, **block(LONG)}
    after = lower_body(ANTHROPIC, body(user(marked)), [fate])
    match after:
        case {"messages": [{"content": [{"type": "image", "cache_control": mark}]}]}:
            assert mark == MARK
        case _:
            raise AssertionError(after)


def test_a_result_keeps_its_fields_when_its_image_is_described() -> None:
    held: dict[str, Json] = {**result("t", block(LONG)), "is_error": False, "cache_control": MARK}
    after: Json = {**held, "content": [text("words")]}
    assert lower_body(ANTHROPIC, body(user(held)), [Told("words", "up/eye")]) == body(user(after))


def test_each_of_many_images_gets_its_own_fate() -> None:
    conversation = body(user(block("MQ=="), block(LONG)), user(result("t", block("Mg=="), block("Mw=="))))
    fates: list[Fate | None] = [Told("one", "eye"), Shown(), Refitted(image(b"two"), "why"), SENTENCE]
    assert lower_body(ANTHROPIC, conversation, fates, SEEING) == body(
        user(text("one"), block(LONG)),
        user(result("t", block("dHdv", "image/jpeg"), text("[not available]"))),
    )
