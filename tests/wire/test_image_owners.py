"""Whether an image belongs to the user or to a tool: a user message of images alone after tool results is a tool's."""

from __future__ import annotations

import pytest

from sightline.model.scene import Json, Sight, ToolCall
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, Wire
from tests.requirements import requirement
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
def test_images_belong_to_tools_only_directly_after_their_results(between: Json) -> None:
    answered = [calling("c1"), tool("c1", text("done"))]
    assert roles(OPENAI_CHAT, *answered, user(part())) == ["tool"]
    assert roles(OPENAI_CHAT, *answered, between, user(part())) == ["user"]


def test_images_beside_an_empty_text_are_the_user_s() -> None:
    answered = [calling("c1"), tool("c1", text("done"))]
    assert roles(OPENAI_CHAT, *answered, user(text(""), part())) == ["user"]


# What clients write into a tool's result when they move its image into a user message, and the texts of that message.
PEERS: dict[str, tuple[str, list[str]]] = {
    "strands": (
        "Tool successfully returned an image. The image is being provided in the following user message.", []
    ),
    "goose": ("This tool result included an image that is uploaded in the next message.", []),
    "cline": ("(see following user message for image)", []),
    "fast-agent": ("[Tool completed successfully]", []),
    "llm": ("ok", []),
    "ADK": ('{"status": "done"}', []),
    "ADK artifacts": ('{"artifact_names": ["a b.png"]}', ["Artifact a b.png is:"]),
    "agno": ("done", ["The tool call above generated the attached media."]),
}  # fmt: skip


@requirement("hoist.idempotent", "hoist.peers")
@pytest.mark.parametrize("peer", PEERS)
def test_images_that_a_client_has_moved_are_the_tools(peer: str) -> None:
    words, leads = PEERS[peer]
    one = user(*map(text, leads), part())
    for moved in ([one], [one, one]):  # some write a message for each image
        found = sights(OPENAI_CHAT, body(calling("c1"), {**tool("c1"), "content": words}, *moved))
        assert [(s.role, s.hoisted, s.call and s.call.id) for s in found] == [("tool", True, "c1")] * len(moved)
    parts: list[Json] = [{"text": lead} for lead in leads]
    content: Json = {"role": "user", "parts": [*parts, PICTURE]}
    found = sights(GEMINI, contents(CALLS, {"role": "user", "parts": ANSWERS[:1]}, content, content))
    assert [(s.role, s.hoisted, s.call) for s in found] == [("tool", True, FIRST)] * 2
    blocks = [*map(text, leads), block()]
    held = result("t1", text(words))
    assert roles(ANTHROPIC, user(held), user(*blocks), user(*blocks)) == ["tool", "tool"]
    assert roles(ANTHROPIC, user(held, *blocks)) == ["tool"], "LiteLLM makes one message of two"


@requirement("hoist.peers")
def test_an_image_between_two_results_belongs_to_the_first() -> None:
    """Goose writes the image of each call directly after its result."""
    messages = [calling("c1", "c2"), tool("c1", text("a")), user(part()), tool("c2", text("b")), user(part())]
    assert [s.call and s.call.id for s in sights(OPENAI_CHAT, body(*messages))] == ["c1", "c2"]


@requirement("hoist.peers")
def test_a_user_message_that_names_a_call_has_its_images() -> None:
    named: Json = {**user(part()), "tool_call_id": "c1"}
    messages = [calling("c1", "c2"), tool("c1", text("a")), tool("c2", text("b")), named]
    assert [s.call and s.call.id for s in sights(OPENAI_CHAT, body(*messages))] == ["c1"]


def contents(*found: Json) -> Json:
    return {"contents": list(found)}


PICTURE: Json = {"inlineData": {"mimeType": "image/png", "data": SMALL}}
CALLS: Json = {
    "role": "model",
    "parts": [{"functionCall": {"id": one, "name": "view", "args": {"path": f"/{one}.png"}}} for one in ("c1", "c2")],
}
ANSWERS: list[Json] = [{"functionResponse": {"id": one, "name": "view", "response": {}}} for one in ("c1", "c2")]
FIRST, SECOND = (ToolCall(one, "view", f"/{one}.png") for one in ("c1", "c2"))


def test_gemini_images_beside_text_are_the_user_s() -> None:
    answered: Json = {"role": "user", "parts": [*ANSWERS]}
    (sight,) = sights(GEMINI, contents(CALLS, answered, {"role": "user", "parts": [{"text": "and this?"}, PICTURE]}))
    assert (sight.role, sight.call) == ("user", None)


def test_only_the_label_just_before_an_image_counts() -> None:
    def owners(*parts: Json) -> list[ToolCall | None]:
        return [sight.call for sight in sights(GEMINI, contents(CALLS, {"role": "user", "parts": [*parts]}))]

    lead: Json = {"text": "[image from the tool call c1 (view)]"}
    assert owners(*ANSWERS, PICTURE) == [SECOND], "it stands beside the last response"
    assert owners(*ANSWERS, lead, PICTURE) == [FIRST]
    assert owners(*ANSWERS, lead, PICTURE, PICTURE) == [FIRST, SECOND]
    assert owners(PICTURE, *ANSWERS, lead) == [None], "there is nothing before the first"


def test_an_unlabelled_image_beside_text_is_the_user_s_on_messages() -> None:
    lead = text("[image from the tool call t1]")
    held = result("t1", text("done"))
    assert roles(ANTHROPIC, user(held, text("look"), block())) == ["user"]
    assert roles(ANTHROPIC, user(held, lead, block(), text("and?"), block())) == ["tool", "user"]


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
