"""The usage of an answer is found in its bytes, on each wire, whole or streamed, however they are cut."""

from __future__ import annotations

import json

import pytest

from sightline.model.profile import WireName
from sightline.model.seer import Usage
from sightline.wire.answer_usage import AnswerEnds
from tests.requirements import requirement

CHAT = {"prompt_tokens": 900, "completion_tokens": 30, "prompt_tokens_details": {"cached_tokens": 800}}
RESPONSES = {"input_tokens": 900, "output_tokens": 30, "input_tokens_details": {"cached_tokens": 800}}
MESSAGES = {"input_tokens": 40, "cache_read_input_tokens": 800, "cache_creation_input_tokens": 60, "output_tokens": 30}
GEMINI = {
    "promptTokenCount": 900, "candidatesTokenCount": 20, "thoughtsTokenCount": 10, "cachedContentTokenCount": 800
}  # fmt: skip
FOUND = Usage(900, 30, 800)
MISLEADING = '{"usage": {"prompt_tokens": 1, "input_tokens": 1}, "usageMetadata": {"promptTokenCount": 1}} '
WORDS = MISLEADING * 1000  # longer than what is kept


def write_stream(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in events)


WHOLE: dict[WireName, bytes] = {
    "openai_chat": json.dumps({"choices": [{"message": {"content": WORDS}}], "usage": CHAT}).encode(),
    "openai_responses": json.dumps({"output": [WORDS], "usage": RESPONSES, "metadata": {}}, indent=1).encode(),
    "anthropic": json.dumps({"content": [{"type": "text", "text": WORDS}], "usage": MESSAGES}).encode(),
    "gemini": json.dumps([{"candidates": [WORDS], "usageMetadata": GEMINI, "modelVersion": "m"}]).encode(),
}
STREAMS: dict[WireName, bytes] = {
    "openai_chat": write_stream(
        {"choices": [{"delta": {"content": WORDS}}], "usage": None}, {"choices": [], "usage": CHAT}
    )
    + b"data: [DONE]\n\n",
    "openai_responses": write_stream(
        {"type": "response.created", "response": {"usage": None}},
        {"type": "response.output_text.delta", "delta": WORDS},
        {"type": "response.completed", "response": {"output": [WORDS], "usage": RESPONSES, "user": None}},
    ),
    "anthropic": write_stream(
        {"type": "message_start", "message": {"usage": {**MESSAGES, "output_tokens": 1}}},
        {"type": "content_block_delta", "delta": {"text": WORDS}},
        {"type": "message_delta", "usage": {"output_tokens": 30, "input_tokens": None}},
        {"type": "message_stop"},
    ),
    "gemini": write_stream(
        {"candidates": [WORDS], "usageMetadata": {"promptTokenCount": 900}},
        {"candidates": [], "usageMetadata": GEMINI},
    ),
}


def find(wire: WireName, data: bytes, step: int) -> Usage:
    ends = AnswerEnds()
    for at in range(0, len(data), step):
        ends.add(data[at : at + step])
    return ends.find_usage(wire)


@requirement("inspector.usage")
@pytest.mark.parametrize("step", [7, 1500, 1 << 20])
@pytest.mark.parametrize("wire", ["openai_chat", "openai_responses", "anthropic", "gemini"])
def test_usage_is_found_in_the_bytes_of_an_answer(wire: WireName, step: int) -> None:
    written = 60 if wire == "anthropic" else None
    for data in (WHOLE[wire], STREAMS[wire]):
        assert find(wire, data, step) == Usage(FOUND.input, FOUND.output, FOUND.cached, written)


@requirement("inspector.usage")
@pytest.mark.parametrize(
    "counts",
    [{"prompt_cache_hit_tokens": 800}, {"cached_tokens": 800}, {"prompt_tokens_details": {"cached_tokens": 800}}],
)
def test_providers_name_cached_tokens_in_different_ways(counts: dict[str, object]) -> None:
    data = json.dumps({"usage": {"prompt_tokens": 900, "completion_tokens": 30, **counts}}).encode()
    assert find("openai_chat", data, 100) == FOUND


@requirement("inspector.usage")
@pytest.mark.parametrize(
    "data",
    [b"", b'"usage":', b'"usage": {', b'"usage": {"prompt_tokens": "many"}', b'{"usage": null}', b'"usage": {' * 9000],
)
def test_an_answer_without_usage_has_none(data: bytes) -> None:
    assert find("openai_chat", data, 100) == Usage()
