"""A request for another model than the client named: its name, its URL, and no reasoning of the other model."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.facts import Routing
from sightline.model.scene import Edit, Insert, Json, Replace
from sightline.wire import WIRES
from sightline.wire.json_document import lift
from sightline.wire.json_edits import graft
from sightline.wire.rerouting import reroute, rewrite_url
from tests.requirements import requirement
from tests.wire.bodies import TOKEN

NAMES = [wire.name for wire in WIRES]
ITEMS: dict[str, str] = {wire.name: wire.messages_key for wire in WIRES}


def way(*strangers: int, model: str = "eyes", named: str = "main", turn: int = 0) -> Routing:
    return Routing(model, named, turn, frozenset(strangers))


def done(wire: str, tree: Any, routing: Routing, *edits: Edit) -> Any:
    """Reroute a body as text and as objects, and check that the result is the same."""
    made = reroute(wire, tree, edits, routing)
    document = lift(json.dumps(tree).encode(), TOKEN)
    assert document is not None
    written: Json = json.loads(b"".join(document.splice(made)))
    assert written == graft(tree, made)
    return written


@requirement("mode.route")
@pytest.mark.parametrize("wire", NAMES)
def test_only_the_model_changes(wire: str) -> None:
    tree: Json = {"stream": True, "model": "main", ITEMS[wire]: [{"role": "user"}], "x": 1}
    assert done(wire, tree, way()) == json.loads(json.dumps(tree).replace("main", "eyes"))
    assert reroute(wire, tree, [], way(model="main")) == []


@requirement("mode.route")
def test_gemini_models_change_in_url_and_body() -> None:
    asked = "https://host/v1beta/models/main-1:streamGenerateContent?alt=sse&x=models/y:z"
    assert rewrite_url("gemini", asked, way(model="eyes-2")) == asked.replace("main-1", "eyes-2")
    assert (
        rewrite_url("gemini", "http://h/v1/tunedModels/a%3AcountTokens", way())
        == "http://h/v1/models/eyes%3AcountTokens"
    )
    assert rewrite_url("gemini", asked, way(model="a/b")) == asked.replace("main-1", "a%2Fb")
    assert rewrite_url("gemini", asked, way(model="main")) == asked
    assert rewrite_url("openai_chat", asked, way()) == asked
    assert done("gemini", {"model": "models/main", "contents": []}, way())["model"] == "models/eyes"
    assert reroute("gemini", {"contents": []}, [], way()) == []


SEALED: list[Any] = [
    {"type": "thinking", "thinking": "a", "signature": "s"},
    {"type": "redacted_thinking", "data": "d"},
]
USE: Any = {"type": "tool_use", "id": "t", "name": "Read", "input": {}}


@requirement("mode.route.reasoning")
def test_signed_thinking_is_removed_from_messages() -> None:
    open_thought = {"type": "thinking", "thinking": "a", "signature": ""}
    said = [{"role": "user", "content": "x"}, {"role": "assistant", "content": [*SEALED, open_thought, USE]}]
    own = {"role": "assistant", "content": SEALED}
    tree = {"model": "main", "messages": [*said, own, own, {"role": "assistant", "content": "plain"}]}
    after = done("anthropic", tree, way(1, 3, 4))["messages"]
    assert after[1]["content"] == [open_thought, USE]
    assert after[2] == own, "what it has thought itself stays"
    (words,) = after[3]["content"]
    assert (words["type"], bool(words["text"].strip())) == ("text", True), "no message may be empty"
    assert after[4] == tree["messages"][4]


@requirement("mode.route.reasoning")
@pytest.mark.parametrize(
    ("kind", "turn", "stops"), [("enabled", 0, True), ("enabled", 1, False), ("adaptive", 0, False)]
)
def test_thinking_is_disabled_if_the_turn_lost_some(kind: str, turn: int, stops: bool) -> None:
    edits = [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]
    tree = {
        "model": "main",
        "thinking": {"type": kind, "budget_tokens": 2048},
        "context_management": {"edits": edits},
        "messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": [*SEALED, USE]}],
    }
    after = done("anthropic", tree, way(1, turn=turn))
    assert after["thinking"] == ({"type": "disabled"} if stops else tree["thinking"])
    assert after["context_management"]["edits"] == (edits[1:] if stops else edits)


@requirement("mode.route.reasoning")
def test_encrypted_reasoning_is_removed_from_chat() -> None:
    plain = {"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.text", "text": "hm"}]}
    sealed = {"role": "assistant", "content": "a", "reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]}
    call = {"id": "c", "extra_content": {"google": {"thought_signature": "s"}}, "function": {"name": "f"}}
    calls = {"role": "assistant", "tool_calls": [call]}
    tree = {"model": "main", "messages": [plain, sealed, calls, sealed]}
    after = done("openai_chat", tree, way(0, 1, 2, model="gemini-3.1-pro"))["messages"]
    assert after[0] == plain
    assert after[1] == {"role": "assistant", "content": "a"}
    assert (
        after[2]["tool_calls"][0]["extra_content"]["google"]["thought_signature"] == "skip_thought_signature_validator"
    )
    assert after[3] == sealed
    other = done("openai_chat", tree, way(2, model="gemini-2.5-pro"))["messages"]
    assert other[2]["tool_calls"][0]["extra_content"] == {"google": {}}


@requirement("mode.route.reasoning")
def test_encrypted_reasoning_and_following_ids_are_removed_from_responses() -> None:
    def thought(name: str) -> Any:
        return {"type": "reasoning", "id": f"rs_{name}", "summary": [], "encrypted_content": name}

    call = {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "old"}]}
    said = {"type": "message", "role": "assistant", "id": "msg_1", "content": []}
    user = {"type": "message", "role": "user", "content": "x"}
    tree = {"model": "main", "input": [thought("a"), thought("b"), call, output, thought("c"), said, user]}
    told = Replace(("input", 3, "output", 0), {"type": "input_text", "text": "new"})
    moved, end = Insert(("input", 4), {**user, "content": "moved"}), Insert(("input", 7), {**user, "content": "end"})
    after = done("openai_responses", tree, way(0, 1, 2, turn=-1), told, moved, end)
    bare = {key: value for key, value in call.items() if key != "id"}
    assert after["input"] == [
        bare, {**output, "output": [{"type": "input_text", "text": "new"}]}, {**user, "content": "moved"},
        thought("c"), said, user, {**user, "content": "end"},
    ]  # fmt: skip
    assert after["model"] == "eyes"


@requirement("mode.route.reasoning")
def test_signatures_are_removed_from_gemini_parts() -> None:
    words = {"text": "a", "thoughtSignature": "s"}
    call = {"functionCall": {"name": "f"}, "thoughtSignature": "s"}
    snake = {"function_call": {"name": "f"}, "thought_signature": "s"}
    parts = [words, call, snake, {"thoughtSignature": "s"}]
    tree = {"contents": [{"role": "model", "parts": parts}, {"role": "model", "parts": parts}]}
    first, own = done("gemini", tree, way(0, model="gemini-3-flash"))["contents"]
    unsigned = "skip_thought_signature_validator"
    assert first["parts"] == [
        {"text": "a"}, {**call, "thoughtSignature": unsigned}, {**snake, "thought_signature": unsigned}, {"text": ""},
    ]  # fmt: skip
    assert own["parts"] == parts
    older = done("gemini", tree, way(0, model="gemini-2.5-flash"))["contents"][0]["parts"]
    assert older == [{"text": "a"}, {"functionCall": {"name": "f"}}, {"function_call": {"name": "f"}}, {"text": ""}]


_KEYS = st.sampled_from(
    "type role content parts signature encrypted_content id thoughtSignature tool_calls extra_content google "
    "reasoning_details functionCall thought_signature".split()
)
_WORDS = st.sampled_from(["thinking", "redacted_thinking", "reasoning", "assistant", "x", "reasoning.encrypted"])
_LEAVES = st.none() | st.booleans() | _WORDS
_JSON = st.recursive(_LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4))


@requirement("mode.route.reasoning")
@pytest.mark.parametrize("wire", NAMES)
@given(said=st.lists(_JSON, max_size=4), head=st.dictionaries(_KEYS | st.just("thinking"), _JSON, max_size=2))
def test_any_body_can_be_rerouted(wire: str, said: list[Any], head: dict[str, Any]) -> None:
    tree = {**head, "model": "main", ITEMS[wire]: said}
    after = done(wire, tree, way(*range(len(said))))
    assert after["model"] == "eyes"
    again = done(wire, after, way(*range(len(after[ITEMS[wire]])), model="eyes", named="eyes"))
    assert again == after, "what was left out is out"
