"""`POST /sightline/prepare` does for a program of any language what `prepare` does for one in Python."""

from __future__ import annotations

import base64
import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sightline.settings import FILE_NAME
from tests.proxy.clients import ask_chat
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


def read_damaged(path: Path) -> dict[str, Any]:
    """Return a body in which a file was read as text, which damages an image."""
    function = {"name": "read_file", "arguments": json.dumps({"path": str(path)})}
    call = {"id": "c", "type": "function", "function": function}
    result = {"role": "tool", "tool_call_id": "c", "content": path.read_bytes().decode("utf-8", "replace")}
    return {"model": "gpt-5.4", "messages": [{"role": "assistant", "content": None, "tool_calls": [call]}, result]}


@requirement("route.prepare")
def test_only_files_that_the_proxy_may_read_are_opened(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    root.mkdir()
    for folder in (root, tmp_path):
        (folder / "shot.png").write_bytes(base64.b64decode(PNG))
    with sightline(home, root=root, local_clients=False, token="t") as proxy:
        bodies = [
            ask(proxy.url, {"body": read_damaged(folder / "shot.png")}, headers=[("x-sightline-token", "t")])[1]["body"]
            for folder in (root, tmp_path)
        ]
    assert [PNG in json.dumps(body) for body in bodies] == [True, False]


@requirement("route.prepare")
@pytest.mark.parametrize("values", [b"[]," * 600_000, b'"' + b" ," * 9_000_000 + b'",'])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(values: bytes, tmp_path: Path) -> None:
    with sightline(tmp_path) as proxy:
        status, answer = ask(proxy.url, b'{"body":{"messages":[],"x":[%b1]}}' % values)
    assert status == 413
    assert answer["error"]["message"]


@requirement("route.prepare")
@pytest.mark.parametrize("value", [12345678901234567890123, "cut \ud83d"])
def test_values_that_few_parsers_keep_come_back_unchanged(value: object, tmp_path: Path) -> None:
    body = {"messages": [{"role": "user", "content": "x", "y": value}]}
    with sightline(tmp_path) as proxy:
        status, answer = ask(proxy.url, {"body": body})
    assert (status, answer["body"]) == (200, body)


@requirement("route.prepare")
def test_a_large_body_is_prepared_in_a_thread(tmp_path: Path) -> None:
    words = {"role": "user", "content": [{"type": "text", "text": "words " * 20_000}]}
    request = {"body": [words, *MESSAGES], "wire": "model_message", "model": "openai/gpt-5.4"}
    with sightline(tmp_path) as proxy:
        status, answer = ask(proxy.url, request)
    assert (status, answer["changed"]) == (200, True)
    assert answer["body"][0] == words
    assert answer["body"][4]["content"][-1]["image"] == PNG


PASTED = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
TOLD = {"model": "gpt-3.5-turbo", "messages": [{"role": "user", "content": [PASTED]}]}  # which sees nothing


@requirement("route.prepare")
def test_naming_a_provider_does_not_use_the_user_s_key(tmp_path: Path) -> None:
    with refuse_connections() as (web_proxy, lines):
        env = {"OPENAI_API_KEY": "sk-user", "HTTPS_PROXY": web_proxy}
        with sightline(tmp_path, env=env) as proxy:
            status, answer = ask(proxy.url, {"body": TOLD, "upstream": "openai"})
    assert (status, answer["receipt"]["sights"][0]["fate"]) == (200, "told")
    assert lines == []


@requirement("route.prepare")
def test_an_address_does_not_get_the_name_of_a_provider(tmp_path: Path) -> None:
    with refuse_connections() as (address, lines), sightline(tmp_path) as proxy:
        status, _ = ask(proxy.url, {"body": TOLD, "upstream": f"openai={address}"})
    assert (status, lines) == (400, [])


BLIND_MODEL, SIBLING = "deepseek-v4-pro", "deepseek-flash"
KEY = [("authorization", "Bearer k")]


def paste(model: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": [PASTED]}]}


@requirement("route.prepare.runtime")
def test_upstreams_of_the_command_line_and_changed_settings_count_for_the_endpoint(tmp_path: Path) -> None:
    with deepseek(key="k") as blind, sightline(tmp_path, f"deepseek={blind.url}", blind.url) as proxy:
        _, answer = ask(proxy.url, {"body": paste(BLIND_MODEL), "upstream": "deepseek"}, headers=KEY)
        unnamed = [ask(proxy.url, {"body": paste("some-model")})[1]["receipt"]]
        (tmp_path / FILE_NAME).write_text(json.dumps({"models": {"some-model": {"vision": False}}}))
        proxy.check_settings()
        unnamed.append(ask(proxy.url, {"body": paste("some-model")})[1]["receipt"])
    assert (answer["receipt"]["upstream"], answer["receipt"]["sights"][0]["fate"]) == ("deepseek", "told")
    assert len(blind.asked(SIBLING)) == 1
    assert {each["upstream"] for each in unnamed} == {urlsplit(blind.url).netloc}
    assert [each["sights"][0]["fate"] for each in unnamed] == ["shown", "told"]


@requirement("route.prepare.runtime")
def test_an_image_that_the_proxy_knows_is_not_described_again(tmp_path: Path) -> None:
    with deepseek(key="k") as blind, sightline(tmp_path, f"deepseek={blind.url}") as proxy:
        said = ask_chat(f"{proxy.url}/u/deepseek", BLIND_MODEL, paste("")["messages"], key="k")
        _, answer = ask(proxy.url, {"body": paste(BLIND_MODEL), "upstream": "deepseek"}, headers=KEY)
        others = [("authorization", "Bearer other")]
        _, other = ask(proxy.url, {"body": paste(BLIND_MODEL), "upstream": "deepseek"}, headers=others)
    assert "quadrants" in said
    assert "quadrants" in json.dumps(answer["body"])
    asked_by = [value for each in blind.asked(SIBLING) for name, value in each.headers if name == b"authorization"]
    assert asked_by == [b"Bearer k", b"Bearer other"], "what one client was told is not told to another"
    assert other["receipt"]["sights"][0]["fate"] == "told"


@requirement("route.prepare.runtime")
def test_a_wire_that_the_proxy_has_no_upstream_for_has_to_be_named(tmp_path: Path) -> None:
    with sightline(tmp_path, "deepseek") as proxy:
        status, answer = ask(proxy.url, {"body": {"model": "gemini-3-pro", "contents": []}})
    assert (status, "upstream" in answer["error"]["message"]) == (400, True)


@requirement("route.prepare.runtime")
def test_retention_is_chosen_for_each_request(tmp_path: Path) -> None:
    (tmp_path / "shot.png").write_bytes(base64.b64decode(PNG))
    function = {"name": "read", "arguments": json.dumps({"path": str(tmp_path / "shot.png")})}
    call = {"id": "c", "type": "function", "function": function}
    messages = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": [PASTED]},
        {"role": "assistant", "content": "I see."},
        {"role": "user", "content": "Go on."},
    ]
    tools = [{"type": "function", "function": {"name": "read"}}]
    body = {"model": "gpt-5.4", "messages": messages, "tools": tools}
    with sightline(tmp_path) as proxy:
        answers = [ask(proxy.url, {"body": body, "retention": word}) for word in ("off", "turns:0", "turns:1", "no")]
    fates = [answer["receipt"]["sights"][0]["fate"] for status, answer in answers if status == 200]
    assert (fates, answers[-1][0]) == (["shown", "retired", "shown"], 400)


@requirement("route.prepare")
def test_no_request_goes_to_an_address_that_only_the_client_knows(tmp_path: Path) -> None:
    """A client of the proxy can't make it connect anywhere else, with a credential or without."""
    with refuse_connections() as (address, lines), sightline(tmp_path) as proxy:
        for model in ("glm-4.6", "some-model", BLIND_MODEL):
            status, _ = ask(proxy.url, {"body": paste(model), "upstream": f"{address}/v1"}, headers=KEY)
            assert status == 200
    assert lines == []


@contextmanager
def refuse_connections() -> Iterator[tuple[str, list[bytes]]]:
    """A server that closes each connection, with the first line of each."""
    lines: list[bytes] = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            lines.append(self.rfile.readline())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", lines
        finally:
            server.shutdown()
