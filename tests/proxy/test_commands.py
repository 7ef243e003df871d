"""`/vision-proxy` typed into a conversation: the proxy answers it, and the model never sees it."""

from __future__ import annotations

import gzip
import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.clients import WIRES, ask_chat, pasted_chat, pasted_message
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

COLOURS = some_colours(31)
PICTURE = paint_quadrants(COLOURS)
SHA = sha256(PICTURE).hexdigest()
SHOWN = describe_quadrants(COLOURS)
EVERY_WAY = pytest.mark.parametrize(("wire", "stream"), [(wire, stream) for wire in WIRES for stream in (False, True)])


def typed(words: str) -> dict[str, Any]:
    return {"role": "user", "content": words}


@EVERY_WAY
@requirement("command.recognised", "command.proxy_verbs")
def test_a_command_is_answered_without_the_upstream(tmp_path: Path, wire: str, stream: bool) -> None:
    ask = WIRES[wire][0]
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        said = ask(proxy.url, "m", [typed("/vision-proxy status")], stream=stream)
        assert re.match(r"\[Vision Proxy\] [\w ]+: .*\bseer auto\b", said)
        assert "mode: fallback" in said
        for words in ("/vision-proxy mode always", "/vision-proxy consent yes openai", "/vision-proxy model a/b"):
            answer = ask(proxy.url, "m", [typed(words)], stream=stream)
            assert f"sightline vision-proxy {words.removeprefix('/vision-proxy ')}" in answer
        assert "'nonsense'" in ask(proxy.url, "m", [typed("/vision-proxy nonsense")], stream=stream)
        assert not provider.exchanges


@pytest.mark.parametrize("path", ["/v1/responses", "/v1beta/models/m:generateContent"])
@requirement("command.recognised")
def test_the_other_wires_answer_in_their_own_shape(tmp_path: Path, path: str) -> None:
    words = "/vision-proxy status"
    body: dict[str, Any] = {"contents": [{"parts": [{"text": words}]}]} if "beta" in path else {"input": words}
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        answer = json.loads(exchange(proxy.url, path, json.dumps(body).encode()).body)
        assert not provider.exchanges
    said = answer["candidates"][0]["content"]["parts"] if "candidates" in answer else answer["output"][0]["content"]
    assert re.match(r"\[Vision Proxy\] [\w ]+: ", said[0]["text"])


@requirement("command.proxy_verbs")
def test_an_image_of_the_conversation_is_listed_and_asked_about_by_its_sha256(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        url, model = f"{proxy.url}/u/deepseek", "deepseek-v4-pro"
        talk = pasted_chat(PICTURE)
        talk.append({"role": "assistant", "content": ask_chat(url, model, talk)})
        listed = ask_chat(url, model, [*talk, typed("/vision-proxy list")])
        assert listed == f"[Vision Proxy] sha256:{SHA}"
        asked = f'/vision-proxy describe sha256:{SHA[:16]} --question "Which colours?"'
        said = ask_chat(url, model, [*talk, typed(asked)])
        assert SHOWN in said
        assert "deepseek/deepseek-flash" in said, "the provider that the client itself asks has looked"
        assert len(provider.asked(model)) == 1


@requirement("command.list_own")
def test_an_image_that_comes_with_the_command_is_listed(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        url, model = f"{proxy.url}/u/deepseek", "deepseek-v4-pro"
        (message,) = pasted_chat(PICTURE)
        shown = [part for part in message["content"] if part["type"] != "text"]
        beside = {"role": "user", "content": [{"type": "text", "text": "/vision-proxy list"}, *shown]}
        assert ask_chat(url, model, [beside]) == f"[Vision Proxy] sha256:{SHA}"
        assert SHOWN in ask_chat(url, model, [typed(f"/vision-proxy describe sha256:{SHA[:16]}")])
        assert not provider.asked(model)


@requirement("command.proxy_verbs", "record.reach")
def test_a_command_reaches_no_local_file_and_no_foreign_image(tmp_path: Path) -> None:
    file = tmp_path / "secret.png"
    file.write_bytes(PICTURE)
    with deepseek() as provider, sightline(tmp_path / "home", f"deepseek={provider.url}") as proxy:
        url, model = f"{proxy.url}/u/deepseek", "deepseek-v4-pro"
        ask_chat(url, model, pasted_chat(PICTURE), key="sk-one")
        looks = len(provider.asked("deepseek-flash"))
        for reference in (str(file), f"sha256:{SHA}"):
            said = ask_chat(url, model, [typed(f"/vision-proxy describe {reference}")], key="sk-two")
            assert SHOWN not in said
        assert len(provider.asked("deepseek-flash")) == looks


@pytest.mark.parametrize("packed", [False, True])
@requirement("command.cut")
def test_a_command_and_its_answer_are_cut_from_every_later_request(tmp_path: Path, packed: bool) -> None:
    command = [typed("/vision-proxy status"), {"role": "assistant", "content": "/vision-proxy looks: …"}]
    after = typed("What is it?")
    kept = [*pasted_message(PICTURE), after]
    whole = {"model": "m", "max_tokens": 9, "messages": [*command, kept[0], *command, after]}
    off = {"SIGHTLINE_REFERENCES": "off"}
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}", env=off) as proxy:
        body = json.dumps(whole).encode()
        headers = [("content-encoding", "gzip")] if packed else []
        sent = gzip.compress(body) if packed else body
        assert exchange(proxy.url, "/v1/messages", sent, headers=headers).status == 200
        heard = provider.exchanges[0]
    assert json.loads(heard.body) == {**whole, "messages": kept}
    assert all(json.dumps(each).encode() in heard.body for each in kept), "what stays, stays to the letter"
    assert heard.header("content-encoding") == []


REMINDER = {"type": "text", "text": "<system-reminder>CLAUDE.md says: be brief</system-reminder>"}
PASTED = pasted_message(PICTURE)[0]["content"][0]


@requirement("command.cut")
def test_other_content_of_a_command_message_stays(tmp_path: Path) -> None:
    asked = {"role": "user", "content": [PASTED, REMINDER, {"type": "text", "text": "/vision-proxy status"}]}
    after = [{"role": "assistant", "content": "/vision-proxy looks: …"}, typed("What is in the picture?")]
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [asked, *after]}).encode()
    off = {"SIGHTLINE_REFERENCES": "off"}
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}", env=off) as proxy:
        assert exchange(proxy.url, "/v1/messages", body).status == 200
        heard = json.loads(provider.exchanges[0].body)["messages"]
    assert heard == [{"role": "user", "content": [PASTED, REMINDER]}, after[1]]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            "/v1beta/models/m:generateContent",
            {
                "contents": [{"role": "user", "parts": [{"text": "/vision-proxy status"}]}],
                "generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
            },
        ),
        (
            "/v1/chat/completions",
            {"model": "m", "messages": [typed("/vision-proxy status")], "response_format": {"type": "json_object"}},
        ),
    ],
)
@requirement("command.data")
def test_a_request_for_structured_data_is_not_a_command(tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        exchange(proxy.url, path, json.dumps(body).encode())
        assert [json.loads(one.body) for one in provider.exchanges] == [body]


_TYPED = "/vision-proxy list"
_CALL: dict[str, Any] = {"type": "function", "id": "t", "function": {"name": "read", "arguments": "{}"}}
_BESIDE_RESULTS: list[tuple[str, dict[str, Any]]] = [
    (
        "/v1/messages",
        {
            "model": "m",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "read it"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "read", "input": {}}]},
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "t", "content": "x"},
                        {"type": "text", "text": _TYPED},
                    ],
                },
            ],
        },
    ),
    (
        "/v1/chat/completions",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "read it"},
                {"role": "assistant", "content": None, "tool_calls": [_CALL]},
                {"role": "tool", "tool_call_id": "t", "content": "x"},
                {
                    "role": "user",
                    "content": [
                        {"type": "text", "text": '<tool_result tool_name="read" tool_call_id="t">'},
                        {"type": "text", "text": _TYPED},
                        {"type": "text", "text": "</tool_result>"},
                    ],
                },
            ],
        },
    ),
    (
        "/v1/responses",
        {
            "model": "m",
            "input": [
                {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "read it"}]},
                {"type": "function_call", "call_id": "t", "name": "read", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "t", "role": "user", "output": _TYPED, "content": _TYPED},
            ],
        },
    ),
    (
        "/v1beta/models/m:generateContent",
        {
            "contents": [
                {"role": "user", "parts": [{"text": "read it"}]},
                {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"name": "read", "response": {"output": "x"}}}, {"text": _TYPED}],
                },
            ]
        },
    ),
]


@pytest.mark.parametrize(("path", "body"), _BESIDE_RESULTS, ids=[path for path, _ in _BESIDE_RESULTS])
@requirement("command.plain")
def test_text_beside_a_tool_result_goes_upstream_unchanged(tmp_path: Path, path: str, body: dict[str, Any]) -> None:
    sent = json.dumps(body).encode()
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        answer = exchange(proxy.url, path, sent)
        assert b"there is no image in this conversation" not in answer.body
        assert [one.body for one in provider.exchanges] == [sent]


@requirement("command.cut")
def test_a_body_without_a_command_is_unchanged(tmp_path: Path) -> None:
    body = b'{"model":"m" ,"max_tokens":9,"messages":[{"role":"user","content":"say /vision-proxy status"}]}'
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert exchange(proxy.url, "/v1/messages", body).status == 200
        assert provider.exchanges[0].body == body


def test_a_count_of_a_command_is_forwarded(tmp_path: Path) -> None:
    body = json.dumps({"model": "m", "messages": [typed("/vision-proxy status")]}).encode()
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert b"input_tokens" in exchange(proxy.url, "/v1/messages/count_tokens", body).body
        assert len(provider.exchanges) == 1
