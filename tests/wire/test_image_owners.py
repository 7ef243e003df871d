"""Whose an image is: images in a user's message without text are the user's, unless a tool announced them."""

from __future__ import annotations

import pytest

from sightline.model.labels import SEE_BELOW
from sightline.model.scene import Json, Sight, ToolCall
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, Wire
from tests.wire.bodies import SMALL, block, body, calling, part, read, result, text, tool, user


def sights(wire: Wire, tree: Json) -> list[Sight]:
    return list(read(wire, tree).scene.sights)


def roles(wire: Wire, *messages: Json) -> list[str]:
    return [sight.role for sight in sights(wire, body(*messages))]


SPOKE: Json = {"role": "assistant", "content": "I see"}
SYSTEM: Json = {"role": "system", "content": "be brief"}


def test_an_image_alone_at_the_beginning_is_the_user_s() -> None:
    (sight,) = sights(OPENAI_CHAT, body(user(part())))
    assert (sight.role, sight.call, sight.hoisted) == ("user", None, False)


@pytest.mark.parametrize("between", [SPOKE, SYSTEM, user(text("wait"))], ids=["assistant", "system", "user"])
def test_an_announcement_covers_only_the_next_message(between: Json) -> None:
    announced = [calling("c1"), tool("c1", text(SEE_BELOW))]
    assert roles(OPENAI_CHAT, *announced, user(part())) == ["tool"]
    assert roles(OPENAI_CHAT, *announced, between, user(part())) == ["user"]


def test_one_announcement_among_several_results_is_enough() -> None:
    calls = calling("c1", "c2", "c3")
    for first, second, third in ((SEE_BELOW, "a", "b"), ("a", SEE_BELOW, "b"), ("a", "b", SEE_BELOW)):
        results = [tool("c1", text(first)), tool("c2", text(second)), tool("c3", text(third))]
        assert roles(OPENAI_CHAT, calls, *results, user(part())) == ["tool"]
    assert roles(OPENAI_CHAT, calls, tool("c1", text("a")), user(part())) == ["user"]


def contents(*found: Json) -> Json:
    return {"contents": list(found)}


PICTURE: Json = {"inlineData": {"mimeType": "image/png", "data": SMALL}}
CALLS: Json = {
    "role": "model",
    "parts": [{"functionCall": {"id": one, "name": "view", "args": {"path": f"/{one}.png"}}} for one in ("c1", "c2")],
}
ANSWERS: list[Json] = [{"functionResponse": {"id": one, "name": "view", "response": {}}} for one in ("c1", "c2")]
FIRST, SECOND = (ToolCall(one, "view", f"/{one}.png") for one in ("c1", "c2"))


def test_on_gemini_images_in_their_own_content_are_the_user_s() -> None:
    answered: Json = {"role": "user", "parts": [*ANSWERS]}
    (sight,) = sights(GEMINI, contents(CALLS, answered, {"role": "user", "parts": [PICTURE]}))
    assert (sight.role, sight.call) == ("user", None)


def test_only_the_label_just_before_an_image_counts() -> None:
    def owners(*parts: Json) -> list[ToolCall | None]:
        return [sight.call for sight in sights(GEMINI, contents(CALLS, {"role": "user", "parts": [*parts]}))]

    lead: Json = {"text": "[image from the tool call c1 (view)]"}
    assert owners(*ANSWERS, PICTURE) == [SECOND], "it stands beside the last response"
    assert owners(*ANSWERS, lead, PICTURE) == [FIRST]
    assert owners(*ANSWERS, lead, PICTURE, PICTURE) == [FIRST, SECOND]
    assert owners(PICTURE, *ANSWERS, lead) == [None], "there is nothing before the first"


def test_on_messages_an_unlabelled_image_beside_results_is_the_user_s() -> None:
    lead = text("[image from the tool call t1]")
    held = result("t1", text("done"))
    assert roles(ANTHROPIC, user(held, block())) == ["user"]
    assert roles(ANTHROPIC, user(held, lead, block(), block())) == ["tool", "user"]


@pytest.mark.parametrize(
    "words", ["<system-reminder>", "<environment_context>", "<environment_details>", "<user_instructions>"]
)
def test_client_text_opens_no_turn(words: str) -> None:
    (message,) = read(OPENAI_CHAT, body(user(text(f" \n{words}\nhere")))).scene.messages
    assert not message.opens_turn
    (message,) = read(OPENAI_CHAT, body(user(text(f"what is {words}?")))).scene.messages
    assert message.opens_turn


@pytest.mark.parametrize(
    "ending", [".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".ico"]
)
def test_an_image_belongs_to_the_result_of_an_image_file(ending: str) -> None:
    def call(name: str, path: str) -> Json:
        return {"id": name, "type": "function", "function": {"name": "read", "arguments": f'{{"path": "{path}"}}'}}

    calls: list[Json] = [call("c1", "/notes.txt"), call("c2", f"/a/B{ending.upper()}")]
    talk: list[Json] = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        tool("c1", text("a")),
        tool("c2", text("b")),
        user(text("Attached media from tool result:"), part()),
    ]
    (sight,) = sights(OPENAI_CHAT, body(*talk))
    assert sight.call == ToolCall("c2", "read", f"/a/B{ending.upper()}")
