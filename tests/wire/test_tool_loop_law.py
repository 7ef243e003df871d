"""The law of the tool loop, without a proxy: neither the client nor the model notices the calls in between."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.model.scene import Json
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import Block
from sightline.wire.tool_loop import LOOPS, OwnResult, OwnTool, StoredLeg, WireLoop
from sightline.wire.tool_loop.leg import build_leg, fingerprint_blocks, fingerprint_legs
from tests.proxy.legs import ITEMS, WIRES, Call, Leg, Script, answer, body, events, said, tools, user
from tests.proxy.test_tool_loop import CASES
from tests.proxy.test_tool_loop_law import Conversation, conversations
from tests.requirements import requirement

NAMES = frozenset({"analyze_image", "view_image"})
SCHEMA: dict[str, Json] = {"type": "object", "properties": {}, "additionalProperties": False}
OFFERS = [OwnTool("analyze_image", "Looks.", SCHEMA), OwnTool("view_image", "Shows.", SCHEMA)]
FOUND = OwnResult("Error (not_found): no such image", failed=True)


def offered(wire: str) -> list[Any]:
    """Return the tools of a client, and ours after them, as a wire declares them."""
    about = [{"name": one.name, "description": one.description} for one in OFFERS]
    first: list[Any] = list(tools(wire))
    if wire == "anthropic":
        return [*first, *({**each, "input_schema": SCHEMA} for each in about)]
    if wire == "openai_chat":
        return [*first, *({"type": "function", "function": {**each, "parameters": SCHEMA}} for each in about)]
    if wire == "openai_responses":
        plain = {"type": "function", "strict": False, "parameters": SCHEMA}
        return [*first, *({**plain, **each} for each in about)]
    bare = {"type": "object", "properties": {}}  # this way of declaring knows no more
    listed = first[0]["functionDeclarations"]
    return [{"functionDeclarations": [*listed, *({**each, "parameters": bare} for each in about)]}]


def is_open(loop: WireLoop, tree: Json) -> bool:
    return loop.can_offer_tools(tree) and loop.has_free_choice(tree) and not loop.is_stored(tree)


class Pure(Conversation):
    """Both sides of a conversation, and between them nothing but the functions of a wire."""

    kept: list[list[StoredLeg]]

    def sent(self, asked: Any, legs: list[Leg], *, stream: bool) -> tuple[bytes, list[Any]]:
        loop = LOOPS[self.wire]  # type: ignore[index]
        tree = self.restore(asked)
        assert is_open(loop, tree)
        assert graft(tree, loop.add_tools(tree, OFFERS))["tools"] == offered(self.wire)  # type: ignore[index, call-overload]
        bodies, done = [tree], []
        listener, answers, out = loop.build_listener(NAMES), list[Block](), b""
        for number, each in enumerate(legs, 1):
            if stream:
                out += listener.feed(b"".join(events(self.wire, each, str(number)))) + listener.finish()
                heard, asks, beside = listener.build_leg(), listener.calls_ours, listener.calls_client
            else:
                answers.append(answer(self.wire, each, str(number)))
                heard = build_leg(loop.list_blocks(answers[-1]), loop.classify_block, NAMES)
                asks, beside = bool(heard.own_calls) and loop.stopped_for_calls(answers[-1]), bool(heard.client_calls)
            assert asks == bool(each.asks)
            results = [loop.build_result(ask.call, FOUND) for ask in heard.own_calls]
            if asks and not beside:
                done.append((heard, results))
                bodies.append(graft(tree, loop.append_legs(tree, done)))
                listener.begin_next_leg()
        self.late = results
        self.kept.append([*(StoredLeg.from_leg(one, brought) for one, brought in done), StoredLeg.from_leg(heard)])
        return out + listener.ending if stream else json.dumps(loop.join_answers(answers, NAMES)).encode(), bodies

    def restore(self, asked: Any) -> Any:
        """Return what the client sends, with our calls restored."""
        loop, edits, end = LOOPS[self.wire], [], 0  # type: ignore[index]
        for first in loop.find_answers(asked):
            for pasts in self.kept if first.start >= end else ():
                run = (
                    first
                    if fingerprint_legs(pasts) == fingerprint_blocks(first.blocks, loop.classify_block)
                    else loop.widen_answer(asked, first, pasts)
                )
                if (
                    run
                    and fingerprint_legs(pasts) == fingerprint_blocks(run.blocks, loop.classify_block)
                    and any(past.own_calls for past in pasts)
                ):
                    end = run.end
                    calls = [call for past in pasts[-1:] for call, _ in past.own_calls]
                    results = [loop.build_result(loop.classify_block(call), FOUND) for call in calls]  # type: ignore[arg-type]
                    more = loop.restore_answer(asked, run, pasts, results)
                    assert more is not None
                    edits += more
                    break
        return graft(asked, edits)


def named(answers: list[list[Leg]]) -> bool:
    """Return whether all answers look different to the client, which could not tell equal ones apart."""
    looks = [("".join("".join(leg.text for leg in legs).split()), legs[-1].visible.calls) for legs in answers]
    return len({json.dumps([text, [call.id for call in calls]]) for text, calls in looks}) == len(looks)


@pytest.mark.parametrize("wire", WIRES)
@requirement("loop.law", "loop.served", "loop.usage")
def test_both_sides_see_what_they_would_see_without_us(wire: str) -> None:
    @settings(max_examples=60, deadline=None)
    @given(conversations().filter(named), st.lists(st.booleans(), min_size=3, max_size=3), st.booleans(), st.booleans())
    def holds(answers: list[list[Leg]], streams: list[bool], drops: bool, parts: bool) -> None:
        conversation = Pure(wire, "", Script(wire), drops=drops, parts=parts)
        conversation.kept = []
        for number, (legs, stream) in enumerate(zip(answers, streams, strict=False)):
            if number:
                conversation.goes_on(f"and {number}?")
            conversation.answered(legs, stream=stream)

    holds()


SNAKES = [
    ("gemini", {"tool_config": {"function_calling_config": {"mode": "any"}}}),
    ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["read"]}}}),
    ("gemini", {"generation_config": {"candidate_count": 2}}),
    ("gemini", {"cached_content": "cachedContents/1"}),
    ("openai_responses", {"background": True}),
]


@pytest.mark.parametrize(("wire", "more"), [*CASES, *SNAKES])
@requirement("loop.injected")
def test_no_tool_is_offered_if_it_would_change_the_request(wire: str, more: Json) -> None:
    loop = LOOPS[wire]  # type: ignore[index]
    asked = body(wire, [user(wire, "Hi.")], stream=False)
    assert is_open(loop, asked)
    assert not is_open(loop, {**asked, **more})  # type: ignore[dict-item]
    goes_on = body(wire, [user(wire, "Hi."), *said(wire, Leg("And"))], stream=False)
    assert not is_open(loop, goes_on), "it goes on itself"


@requirement("loop.injected")
@pytest.mark.parametrize("mode", ["AUTO", "VALIDATED", "MODE_UNSPECIFIED"])
def test_tools_are_offered_on_gemini_if_the_model_may_also_write_text(mode: str) -> None:
    asked = body("gemini", [user("gemini", "Hi.")], stream=False)
    assert is_open(LOOPS["gemini"], {**asked, "toolConfig": {"functionCallingConfig": {"mode": mode}}})


@pytest.mark.parametrize("wire", WIRES)
@requirement("loop.served")
def test_a_result_is_written_in_its_wire_s_shape(wire: str) -> None:
    loop = LOOPS[wire]  # type: ignore[index]
    looks = build_leg(loop.list_blocks(answer(wire, LEG, "1")), loop.classify_block, NAMES)
    shown = OwnResult("A door.", (("image/png", "iVBOR"),))
    assert loop.build_result(looks.own_calls[0].call, shown) == SHOWN[wire]
    *_, edit = loop.append_legs({ITEMS[wire]: []}, [(looks, [SHOWN[wire]])])
    assert "A door." in json.dumps(edit.value)  # type: ignore[union-attr]


LEG = Leg("Look.", (Call("c1", "view_image", {}),))
SHOWN: dict[str, Block] = {
    "anthropic": {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [
            {"type": "text", "text": "A door."},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBOR"}},
        ],
    },
    "openai_chat": {
        "role": "tool",
        "tool_call_id": "c1",
        "content": [
            {"type": "text", "text": "A door."},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBOR"}},
        ],
    },
    "openai_responses": {
        "type": "function_call_output",
        "call_id": "c1",
        "output": [
            {"type": "input_text", "text": "A door."},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBOR"},
        ],
    },
    "gemini": {
        "functionResponse": {
            "id": "c1",
            "name": "view_image",
            "response": {"output": "A door."},
            "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBOR"}}],
        }
    },
}
