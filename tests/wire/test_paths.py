"""The paths of each wire: which are asked and which only count, and that no other wire takes them for its own."""

from __future__ import annotations

import pytest

from sightline.wire import WIRES
from sightline.wire.codec import Endpoint


@pytest.mark.parametrize(
    ("path", "wire", "counts"),
    [
        ("/v1/messages", "anthropic", False),
        ("/v1/messages/count_tokens", "anthropic", True),
        ("/v1/chat/completions", "openai_chat", False),
        ("/chat/completions", "openai_chat", False),
        ("/v1/responses", "openai_responses", False),
        ("/responses", "openai_responses", False),
        ("/v1/responses/compact", "openai_responses", False),
        ("/responses/compact", "openai_responses", False),
        ("/v1/responses/input_tokens", "openai_responses", True),
        ("/responses/input_tokens", "openai_responses", True),
    ],
)
def test_a_path_is_asked_for_as_it_came_on_its_one_wire(path: str, wire: str, counts: bool) -> None:
    assert {each.name: found for each in WIRES if (found := each.match(path))} == {wire: Endpoint(path, counts)}


@pytest.mark.parametrize(
    ("path", "endpoint"),
    [
        (
            "/v1beta/models/gemini-3-pro:generateContent",
            Endpoint("/v1beta/models/gemini-3-pro:generateContent", model="gemini-3-pro", stream=False),
        ),
        (
            "/v1/tunedModels/mine:streamGenerateContent",
            Endpoint("/v1/tunedModels/mine:streamGenerateContent", model="mine", stream=True),
        ),
        (
            "/models/gemini-3-pro:countTokens",
            Endpoint("/v1beta/models/gemini-3-pro:countTokens", counts=True, model="gemini-3-pro", stream=False),
        ),
    ],
)
def test_a_path_of_google_s_says_more(path: str, endpoint: Endpoint) -> None:
    assert {each.name: found for each in WIRES if (found := each.match(path))} == {"gemini": endpoint}


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/v1",
        "/v1/messages/",
        "/v1/messages/batches",
        "/v1/completions",
        "/v1/models",
        "/v1beta/models/gemini-3",
    ],
)
def test_other_paths_are_nobody_s(path: str) -> None:
    assert [wire.name for wire in WIRES if wire.match(path)] == []
