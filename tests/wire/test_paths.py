"""The paths of each wire: which ask, which only count, and that no other wire matches them."""

from __future__ import annotations

import pytest

from sightline.wire import WIRES
from sightline.wire.scene_reader import Endpoint


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
def test_a_path_belongs_to_one_wire_and_stays_unchanged(path: str, wire: str, counts: bool) -> None:
    assert {each.name: found for each in WIRES if (found := each.match_path(path))} == {wire: Endpoint(path, counts)}


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
            Endpoint("/v1beta/models/gemini-3-pro:countTokens", counts_tokens=True, model="gemini-3-pro", stream=False),
        ),
    ],
)
def test_a_gemini_path_names_model_and_stream(path: str, endpoint: Endpoint) -> None:
    assert {each.name: found for each in WIRES if (found := each.match_path(path))} == {"gemini": endpoint}


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
def test_other_paths_belong_to_no_wire(path: str) -> None:
    assert [wire.name for wire in WIRES if wire.match_path(path)] == []
