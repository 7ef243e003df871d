"""Whole answers as streams: the official SDKs assemble the same answer again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import anthropic
import openai
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.profile import WireName
from sightline.wire.answer_writer import convert_to_stream
from tests.requirements import requirement
from tests.scripted.server import Reply, Server

Json = dict[str, Any]
WIRES: tuple[WireName, ...] = ("openai_chat", "anthropic", "openai_responses", "gemini")
ARGUMENTS = '{"path": "a.png", "n": [1, 2.5, null]}'

MESSAGE: Json = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "two\nlines ✓"},
        {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"file_path": "a.png", "n": [1, {}]}},
        {"type": "tool_use", "id": "toolu_2", "name": "Stop", "input": {}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "stop_details": None,
    "usage": {"input_tokens": 12, "output_tokens": 34, "cache_read_input_tokens": 5},
}
COMPLETION: Json = {
    "id": "c1",
    "object": "chat.completion",
    "created": 7,
    "model": "m",
    "system_fingerprint": "fp",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "two\nlines ✓",
                "refusal": None,
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "read", "arguments": ARGUMENTS}},
                    {"id": "b", "type": "function", "function": {"name": "stop", "arguments": "{}"}},
                ],
            },
            "logprobs": None,
            "finish_reason": "tool_calls",
        },
        {"index": 1, "message": {"role": "assistant", "content": "other"}, "finish_reason": "stop"},
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}
RESPONSE: Json = {
    "id": "resp_1",
    "object": "response",
    "created_at": 7.0,
    "status": "completed",
    "error": None,
    "incomplete_details": None,
    "instructions": None,
    "metadata": {},
    "model": "m",
    "output": [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [
                {"type": "output_text", "text": "two\nlines ✓", "annotations": [], "logprobs": []},
                {"type": "refusal", "refusal": "no"},
            ],
        },
        {"id": "fc_1", "type": "function_call", "call_id": "c", "name": "read", "arguments": ARGUMENTS},
        {"id": "ct_1", "type": "custom_tool_call", "call_id": "d", "name": "patch", "input": "*** Begin"},
    ],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "usage": {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 7,
    },
}  # fmt: skip
CHUNK: Json = {
    "candidates": [
        {"content": {"parts": [{"text": "✓"}, {"functionCall": {"name": "f"}}]}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"totalTokenCount": 7},
}  # fmt: skip


@contextmanager
def streaming(wire: WireName, whole: Json) -> Iterator[str]:
    events = convert_to_stream(wire, orjson.dumps(whole))
    assert events is not None
    reply = Reply(200, (("content-type", "text/event-stream"),), (events,))
    with Server(lambda exchange: reply, lambda: False, 0) as server:
        yield f"http://127.0.0.1:{server.port}"


@requirement("stream.always")
def test_the_messages_sdk_gathers_the_same_message() -> None:
    with streaming("anthropic", MESSAGE) as url, anthropic.Anthropic(base_url=url, api_key="k") as client:
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        with client.messages.stream(**asked) as events:  # type: ignore[arg-type]
            final = events.get_final_message()
    assert json.loads(final.to_json(exclude_unset=True)) == MESSAGE


def test_citations_are_streamed() -> None:
    quote = {
        "type": "char_location",
        "cited_text": "x",
        "document_index": 0,
        "start_char_index": 0,
        "end_char_index": 1,
    }
    whole = {**MESSAGE, "content": [{"type": "text", "text": "so", "citations": [quote]}]}
    with streaming("anthropic", whole) as url, anthropic.Anthropic(base_url=url, api_key="k") as client:
        asked = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
        with client.messages.stream(**asked) as events:  # type: ignore[arg-type]
            final = events.get_final_message()
    assert json.loads(final.to_json(exclude_unset=True)) == whole


@requirement("stream.always")
def test_the_chat_sdk_gathers_the_same_completion() -> None:
    with (
        streaming("openai_chat", COMPLETION) as url,
        openai.OpenAI(base_url=url, api_key="k") as client,
        client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as events,
    ):
        final = events.get_final_completion()
    got = json.loads(final.to_json(exclude_unset=True))
    for choice, expected in zip(got["choices"], COMPLETION["choices"], strict=True):
        message = choice["message"]
        assert (message["content"], choice["finish_reason"]) == (
            expected["message"]["content"],
            expected["finish_reason"],
        )
        calls = [
            (call["id"], call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ]
        given = expected["message"].get("tool_calls", ())
        assert calls == [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in given]
    assert got["choices"][0]["message"]["reasoning_content"] == "Hm."
    assert (got["usage"], got["system_fingerprint"]) == (COMPLETION["usage"], "fp")


@requirement("stream.always")
def test_every_chunk_of_a_completion_has_a_choice() -> None:
    events = convert_to_stream("openai_chat", orjson.dumps(COMPLETION)) or b""
    *chunks, done, nothing = events.split(b"\n\n")
    assert (done, nothing) == (b"data: [DONE]", b"")
    shapes = [json.loads(chunk.removeprefix(b"data: ")) for chunk in chunks]
    assert [len(shape["choices"]) for shape in shapes] == [1, 1, 1, 1]
    assert {shape["object"] for shape in shapes} == {"chat.completion.chunk"}
    assert ["usage" in shape for shape in shapes] == [False, False, False, True]


@requirement("stream.always")
def test_the_responses_sdk_gathers_the_same_response() -> None:
    with (
        streaming("openai_responses", RESPONSE) as url,
        openai.OpenAI(base_url=url, api_key="k") as client,
        client.responses.stream(model="m", input="x") as events,
    ):
        kinds = [event.type for event in events]
        final = events.get_final_response()
    got = json.loads(final.to_json(exclude_unset=True))
    for item in got["output"]:
        item.pop("parsed_arguments", None)
        for part in item.get("content") or ():
            part.pop("parsed", None)
    assert got == RESPONSE
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert {"response.output_text.delta", "response.function_call_arguments.done", "response.refusal.done"} <= {*kinds}


@pytest.mark.parametrize("status", ["incomplete", "failed"])
def test_a_response_keeps_its_final_status(status: str) -> None:
    events = convert_to_stream("openai_responses", orjson.dumps({**RESPONSE, "status": status})) or b""
    assert json.loads(events.rstrip().rpartition(b"data: ")[2])["type"] == f"response.{status}"


@requirement("stream.always")
def test_a_gemini_answer_becomes_one_chunk_and_a_list_many() -> None:
    one = convert_to_stream("gemini", orjson.dumps(CHUNK))
    assert one == b"data: " + orjson.dumps(CHUNK) + b"\r\n\r\n"
    assert convert_to_stream("gemini", orjson.dumps([CHUNK, CHUNK])) == one + one


@pytest.mark.parametrize("wire", WIRES)
def test_an_error_with_status_200_becomes_an_error_event(wire: WireName) -> None:
    events = convert_to_stream(wire, b'{"type":"error","error":{"type":"server_error","message":"so sorry"}}')
    assert events is not None
    assert events.startswith(b"data: " if wire in ("openai_chat", "gemini") else b"event: error\ndata: ")
    assert b"so sorry" in events
    assert b"[DONE]" not in events


NOTHING = (b"", b"{}", b"[]", b"[1]", b"null", b'"x"', b"{broken", b"<html>", b'{"a":1}')
UNKNOWN: tuple[tuple[WireName, bytes], ...] = (
    *((wire, body) for wire in WIRES for body in NOTHING),
    ("anthropic", b'{"type":"message","content":"text"}'),
    ("anthropic", b'{"type":"message","content":[{"type":"text","text":"x","citations":1}]}'),
    ("openai_chat", b'{"choices":[{"text":"an older API"}]}'),
    ("openai_responses", b'{"status":"queued","output":[]}'),
    ("openai_responses", b'{"status":"completed"}'),
    ("openai_responses", b'{"error":{"code":1}}'),
)  # fmt: skip


@pytest.mark.parametrize(("wire", "body"), UNKNOWN)
def test_other_bodies_are_not_converted(wire: WireName, body: bytes) -> None:
    assert convert_to_stream(wire, body) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            "type error content choices message index tool_calls finish_reason usage text thinking signature input "
            "citations status output id arguments summary annotations candidates".split()
        ),
        inner | st.sampled_from("message text thinking completed function_call output_text reasoning".split()),
        max_size=5,
    ),
    max_leaves=20,
)  # fmt: skip


@pytest.mark.parametrize("wire", WIRES)
@given(value=values)
def test_any_json_becomes_complete_events_or_nothing(wire: WireName, value: object) -> None:
    events = convert_to_stream(wire, orjson.dumps(value))
    if events is None:
        return
    assert events.endswith((b"\n\n", b"\r\n\r\n"))
    for event in events.replace(b"\r\n", b"\n").split(b"\n\n")[:-1]:
        data = event.split(b"\n")[-1].removeprefix(b"data: ")
        assert data == b"[DONE]" or isinstance(json.loads(data), dict)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.dictionaries(st.text(max_size=3), st.integers()))
def test_any_text_and_arguments_are_kept(text: str, arguments: dict[str, int]) -> None:
    blocks = [{"type": "text", "text": text}, {"type": "tool_use", "id": "t", "name": "n", "input": arguments}]
    events = convert_to_stream("anthropic", json.dumps({**MESSAGE, "content": blocks}).encode()) or b""
    deltas = [json.loads(event.partition("data: ")[2]).get("delta", {}) for event in events.decode().split("\n\n")[:-1]]
    assert [delta["text"] for delta in deltas if "text" in delta] == [text]
    assert [json.loads(delta["partial_json"]) for delta in deltas if "partial_json" in delta] == [arguments]
