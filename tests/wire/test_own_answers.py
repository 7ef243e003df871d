"""Our own answers, as the official SDKs read them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.profile import WireName
from sightline.wire.answer_writer import EVENTS, JSON, OwnAnswer, write_answer
from tests.requirements import requirement
from tests.scripted.server import Reply, Server

WIRES: tuple[WireName, ...] = ("openai_chat", "anthropic", "openai_responses", "gemini")
WORDS = 'mode is "fallback"\nseer: auto ✓'


@contextmanager
def answering(wire: WireName, *, stream: bool) -> Iterator[str]:
    kind, body = write_answer(wire, OwnAnswer(WORDS, "some-model"), stream=stream)
    reply = Reply(200, (("content-type", kind.decode()),), (body,))
    with Server(lambda exchange: reply, lambda: False, 0) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.mark.parametrize("stream", [False, True])
@requirement("command.shape")
def test_the_chat_sdk_reads_it(stream: bool) -> None:
    with answering("openai_chat", stream=stream) as url, openai.OpenAI(base_url=url, api_key="k") as client:
        if not stream:
            whole = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
            assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == (WORDS, "stop")
            return
        with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "x"}]) as events:
            final = events.get_final_completion()
        assert (final.choices[0].message.content, final.choices[0].finish_reason) == (WORDS, "stop")


@pytest.mark.parametrize("stream", [False, True])
@requirement("command.shape")
def test_the_messages_sdk_reads_it(stream: bool) -> None:
    with answering("anthropic", stream=stream) as url, anthropic.Anthropic(base_url=url, api_key="k") as client:
        if not stream:
            whole = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])
        else:
            with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as events:
                whole = events.get_final_message()
        assert [block.text for block in whole.content if block.type == "text"] == [WORDS]
        assert whole.stop_reason == "end_turn"


@pytest.mark.parametrize("stream", [False, True])
@requirement("command.shape")
def test_the_responses_sdk_reads_it(stream: bool) -> None:
    with answering("openai_responses", stream=stream) as url, openai.OpenAI(base_url=url, api_key="k") as client:
        if not stream:
            assert client.responses.create(model="m", input="x").output_text == WORDS
            return
        with client.responses.stream(model="m", input="x") as events:
            assert events.get_final_response().output_text == WORDS


@requirement("command.shape")
def test_gemini_is_answered_in_one_piece_as_events_or_as_a_list() -> None:
    kind, body = write_answer("gemini", OwnAnswer(WORDS, "m"), stream=False)
    whole = json.loads(body)
    assert kind == JSON
    assert whole["candidates"][0]["content"]["parts"] == [{"text": WORDS}]
    kind, body = write_answer("gemini", OwnAnswer(WORDS, "m"), stream=True)
    assert (kind, body[:6], body[-2:], json.loads(body[6:])) == (EVENTS, b"data: ", b"\n\n", whole)
    kind, body = write_answer("gemini", OwnAnswer(WORDS, "m"), stream=True, as_list=True)
    assert (kind, json.loads(body)) == (JSON, [whole])


@given(st.sampled_from(WIRES), st.text(st.characters(exclude_categories=["Cs"])), st.booleans())
def test_any_text_is_written_and_always_the_same_way(wire: WireName, words: str, stream: bool) -> None:
    assert write_answer(wire, OwnAnswer(words, "m"), stream=stream) == write_answer(
        wire, OwnAnswer(words, "m"), stream=stream
    )
