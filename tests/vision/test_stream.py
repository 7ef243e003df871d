"""Streamed answers: complete on every API, retried if they break off, and not required."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sightline.model.ports import HttpReply
from sightline.model.refusal import Refusal
from sightline.model.seer import SeerAnswer, Usage
from sightline.vision.providers import SeerWire
from sightline.vision.seers import RETRY_LATER, STREAM_END, parse_stream
from tests.refusals import assert_refusal
from tests.requirements import requirement
from tests.scripted.faults import Break
from tests.scripted.provider import Provider
from tests.scripted.replies import body_of
from tests.vision.http import ScriptedHttp, completion, reply
from tests.vision.test_wires import BOTH, WIRES, asked_of, at, unasked


async def streamed(wire: SeerWire) -> tuple[HttpReply, SeerAnswer]:
    """A provider's stream, and the answer that it means."""
    with Provider() as provider:
        one = at(provider.url, wire)
        raw = await one.http.ask("POST", one.url, {}, json.dumps(one.build_body(BOTH)).encode(), 60)
        answer = await one.ask(BOTH)
    assert isinstance(raw, HttpReply)
    assert isinstance(answer, SeerAnswer)
    asked = provider.exchanges[-1]
    assert body_of(asked).get("stream") is True or asked.path.endswith(":streamGenerateContent")
    return raw, answer


@requirement("seer.stream")
@pytest.mark.parametrize("wire", WIRES)
async def test_a_stream_that_breaks_off_anywhere_is_retried(wire: SeerWire) -> None:
    raw, answer = await streamed(wire)
    assert answer.text.count("image ") == 2
    between = {"ollama": b"\n", "gemini": b"\r\n\r\n"}.get(wire, b"\n\n")
    pieces = raw.body.split(between)
    whole = 0
    for length in range(1, len(pieces)):
        part = replace(raw, headers=[("retry-after", "0")], body=between.join(pieces[:length]) + between)
        http = ScriptedHttp(part, raw)
        said = await replace(unasked(wire), http=http).ask(BOTH)
        assert isinstance(said, SeerAnswer)
        assert said.text == answer.text
        whole += len(http.asked) == 1
    assert whole < len(pieces) - 1 or wire == "ollama", "there are parts that are not whole"
    assert whole <= 3, "nothing but the end lies behind the last word"


@requirement("seer.stream")
@pytest.mark.parametrize("wire", WIRES)
async def test_an_error_in_a_stream_is_retried_once(wire: SeerWire) -> None:
    after = 0 if wire == "ollama" else 1
    answer, times = await asked_of(wire, Break(after))
    assert isinstance(answer, SeerAnswer)
    assert times == 2
    answer, times = await asked_of(wire, Break(after), Break(after))
    assert_refusal(answer, "unavailable", "up/eye", RETRY_LATER)
    assert times == 2


@requirement("seer.stream")
async def test_a_server_that_rejects_streaming_is_asked_without_it() -> None:
    no = reply(422, {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options"]}]})
    http = ScriptedHttp(no, completion("A square."))
    answer = await replace(unasked("openai_chat"), http=http).ask(BOTH)
    assert answer == SeerAnswer("A square.", seer="up/eye")
    first, second = http.asked
    assert {*first.json} - {*second.json} == {"stream", "stream_options"}
    http = ScriptedHttp(reply(400, {"error": "no such model"}))
    assert isinstance(await replace(unasked("openai_chat"), http=http).ask(BOTH), Refusal)


def lines(*said: Any) -> bytes:
    return b"".join(json.dumps(each).encode() + b"\n" for each in said)


def sse(*said: Any) -> bytes:
    return b"".join(
        b"data: " + (each.encode() if each == STREAM_END else json.dumps(each).encode()) + b"\n\n" for each in said
    )


def delta(content: Any, **more: Any) -> Any:
    return {"choices": [{"delta": {"content": content}, **more}]}


@requirement("seer.stream")
@pytest.mark.parametrize(
    ("wire", "body", "answer"),
    [
        ("openai_chat", sse(delta("a "), delta("dog"), STREAM_END),
         SeerAnswer("a dog", seer="up/eye")),
        ("openai_chat", sse(delta([{"type": "text", "text": "a dog"}], finish_reason="stop"),
                            {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
         SeerAnswer("a dog", Usage(3, 2), "up/eye")),
        ("openai_responses", sse({"type": "response.output_item.done", "item": {"content": [
            {"type": "output_text", "text": "a dog"}]}}, {"type": "response.completed", "response": {"output": []}}),
         SeerAnswer("a dog", seer="up/eye")),
        ("gemini", sse({"candidates": [{"content": {"parts": [{"text": "hm", "thought": True}, {"text": "a "}]}}]},
                       {"candidates": [{"content": {"parts": [{"text": "dog"}]}, "finishReason": "STOP"}]}),
         SeerAnswer("a dog", seer="up/eye")),
        ("ollama", lines({"message": {"content": "a "}, "done": False}, {"message": {"content": "dog"}, "done": False},
                         {"message": {"content": ""}, "done": True, "done_reason": "stop", "eval_count": 2}),
         SeerAnswer("a dog", Usage(None, 2), "up/eye")),
        ("anthropic", sse(
            {"type": "message_start", "message": {"usage": {"input_tokens": 3, "output_tokens": 1}}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "a "}},
            {"type": "ping"},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "dog"}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}},
            {"type": "message_stop"}),
         SeerAnswer("a dog", Usage(3, 2), "up/eye")),
    ],
)  # fmt: skip
async def test_the_events_of_a_stream_form_one_answer(wire: SeerWire, body: bytes, answer: SeerAnswer) -> None:
    assert await replace(unasked(wire), http=ScriptedHttp(HttpReply(200, (), body))).ask(BOTH) == answer


@requirement("seer.stream")
@pytest.mark.parametrize(
    ("wire", "body"),
    [
        ("ollama", lines({"message": {"content": "a "}, "done": False})),
        ("openai_responses", sse({"type": "response.failed", "response": {"error": {"message": "no"}}})),
        ("gemini", sse({"candidates": [{"content": {"parts": [{"text": "a "}]}}]})),
    ],
)
async def test_a_stream_without_an_end_is_not_an_answer(wire: SeerWire, body: bytes) -> None:
    part = HttpReply(200, [("retry-after", "0")], body)
    answer = await replace(unasked(wire), http=ScriptedHttp(part, part)).ask(BOTH)
    assert_refusal(answer, "unavailable", "up/eye", RETRY_LATER)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=9,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=9), JSON, max_size=4), max_size=5)


@given(OBJECTS, st.sampled_from([b"\n", b"\r\n", b"\r"]), st.booleans())
def test_every_event_is_read_as_it_was_sent(said: list[Any], line: bytes, named: bool) -> None:
    head = b"event: x" + line + b": a comment" + line + b"id: 7" + line if named else b""
    body = b"".join(head + b"data: " + json.dumps(each).encode() + line + line for each in said)
    assert parse_stream(body) == said
    assert parse_stream(lines(*said)) == said


@example(b"data: {\ndata: }\n\n")
@example(b"data:")
@given(st.binary() | st.text().map(lambda text: f"data: {text}\n\n".encode("utf-8", "surrogatepass")))
def test_any_bytes_can_be_parsed(body: bytes) -> None:
    found = parse_stream(body)
    for wire in WIRES:
        if found:
            unasked(wire).parse_answer(unasked(wire).join_events(found))
