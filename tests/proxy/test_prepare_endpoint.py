"""`POST /sightline/prepare` does for a program of any language what `prepare` does for one in Python."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import deepseek

PNG = base64.b64encode(paint_quadrants(some_colours(5))).decode()
RESULT = {"type": "content", "value": [{"type": "media", "data": PNG, "mediaType": "image/png"}]}
MESSAGES: list[Any] = [
    {"role": "user", "content": [{"type": "text", "text": "Look."}]},
    {"role": "assistant", "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "look", "input": {}}]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "look", "output": RESULT}]},
]


def ask(url: str, request: object, **how: Any) -> tuple[int, Any]:
    data = request if isinstance(request, bytes) else json.dumps(request).encode()
    answer = exchange(url, "/sightline/prepare", data, **how)
    return answer.status, json.loads(answer.body)


@requirement("route.prepare")
def test_messages_of_the_ai_sdk_are_prepared(tmp_path: Path) -> None:
    with deepseek(key="k") as blind:
        env = {"DEEPSEEK_API_KEY": "k"}
        own = {"deepseek": {"baseUrl": {"openai_chat": f"{blind.url}/v1"}}}
        with sightline(tmp_path, env={**env, "SIGHTLINE_UPSTREAMS": json.dumps(own)}) as proxy:
            request = {"body": MESSAGES, "wire": "model_message", "model": "openai/gpt-5.4"}
            status, shown = ask(proxy.url, request)
            request = {"body": MESSAGES, "wire": "model_message", "model": "deepseek-v4-pro", "upstream": "deepseek"}
            _, told = ask(proxy.url, request)
    assert (status, shown["changed"]) == (200, True)
    assert [message["role"] for message in shown["body"]] == ["user", "assistant", "tool", "user"]
    assert shown["body"][3]["content"][-1]["image"] == PNG
    assert shown["receipt"]["sights"][0]["fate"] == "shown"
    assert told["receipt"]["sights"][0]["fate"] == "told"
    assert PNG not in json.dumps(told["body"])


@requirement("route.prepare")
@pytest.mark.parametrize(
    "request_body",
    [
        b"{",
        b"[]",
        {"messages": []},
        {"body": "x"},
        {"body": [], "wire": "no_such_wire"},
        {"body": [], "model": 7},
        {"body": [], "x": 1},
    ],
)
def test_a_bad_request_gets_one_clear_error(request_body: object, tmp_path: Path) -> None:
    with sightline(tmp_path) as proxy:
        status, answer = ask(proxy.url, request_body)
        assert exchange(proxy.url, "/sightline/prepare", method="GET").status == 405
    assert status == 400
    assert answer["error"]["message"]


@requirement("route.prepare")
def test_the_endpoint_has_the_guards_of_the_proxy(tmp_path: Path) -> None:
    with sightline(tmp_path, token="t") as proxy:
        assert ask(proxy.url, {"body": []})[0] in (400, 403)
        status, answer = ask(proxy.url, {"body": []}, headers=[("x-sightline-token", "t")])
        assert (status, answer["changed"]) == (200, False)
