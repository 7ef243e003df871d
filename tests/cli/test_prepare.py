"""`sightline prepare`, as a person types it."""

from __future__ import annotations

import json
import re
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from sightline.api.body_preparation import CODECS
from sightline.model.labels import SHOWN_BELOW
from tests.cli.command import ALONE, COMMAND, Ended, assert_refused, environment, sightline
from tests.engine.parts import encoded, picture
from tests.requirements import requirement
from tests.scripted.models import DEEPSEEK
from tests.scripted.provider import Provider
from tests.wire.bodies import block, body, calling, part, result, text, tool, user

PNG = encoded(picture())
HOISTED = body(calling("c1"), tool("c1", text("a page"), part(PNG)))
PASTED = body(user(block(PNG)), thinking={"a": 1.0})


def prepare(request: Any, *words: str, wire: str = "openai_chat") -> Ended:
    given = request if isinstance(request, str) else json.dumps(request)
    return sightline("prepare", "--wire", wire, *words, given=given, env=ALONE)


@requirement("cli.prepare", "law.1")
@pytest.mark.parametrize(
    ("wire", "request_body"),
    [
        ("anthropic", PASTED),
        ("openai_chat", body(user(text("hello")))),
        ("openai_responses", {"model": "gpt-6", "input": "hello"}),
        ("gemini", {"contents": [{"parts": [{"text": "hello"}]}]}),
        ("model_message", [{"role": "user", "content": "hello"}]),
        ("mcp", {"content": [text("hello")], "isError": False}),
        ("acp", [text("hello")]),
    ],
)
def test_an_unchanged_body_is_printed_byte_for_byte_without_a_note(wire: str, request_body: Any) -> None:
    given = json.dumps(request_body, indent=3) + "\n\n"
    ended = prepare(given, "--model", "claude-opus-5-5", wire=wire)
    assert (ended.code, ended.out, ended.err) == (0, given, "")


def test_every_shape_is_named_in_the_help() -> None:
    said = sightline("prepare", "--help").out
    assert all(name in said for name in CODECS)


@requirement("cli.prepare")
def test_a_change_is_one_line_and_explain_adds_one_per_image() -> None:
    ended = prepare(HOISTED, "--model", "gpt-6")
    assert ended.code == 0
    assert ended.json["messages"][1] == tool("c1", text("a page"), text(SHOWN_BELOW))
    assert ended.json["messages"][2]["content"][1] == part(PNG)
    assert (ended.err.count("\n"), "gpt-6" in ended.err, "openai" in ended.err) == (1, True, True)
    both: dict[str, Any] = {**HOISTED, "messages": [user(part(PNG)), *HOISTED["messages"]]}  # type: ignore[misc]
    explained = prepare(both, "--model", "gpt-6", "--explain")
    head, first, second = explained.err.splitlines()
    assert re.fullmatch(r"sightline: gpt-6 .*openai.* 2 .*", head)
    assert first.startswith("sightline: /messages/0/content/0: ")
    assert second.startswith("sightline: /messages/2/content/1: ")
    assert ended.err.rpartition(": ")[2].strip() in second, "what was done to it"
    figures = re.search(r"; (\d+) -> (\d+)", second)
    assert figures
    assert int(figures[1]) == int(figures[2]) > 0


@requirement("cli.prepare", "receipts.tokens")
def test_an_image_written_as_text_is_counted_as_text() -> None:
    request = body(calling("c1"), {"role": "tool", "tool_call_id": "c1", "content": PNG})
    (line,) = prepare(request, "--model", "gpt-6", "--json").json["receipt"]["sights"]
    assert line["fate"] == "shown"
    assert line["why"].count(", ") >= 2, "taken out of the text, moved, and declared as what it is"
    assert line["tokens"]["before"] == len(PNG) // 4 > line["tokens"]["after"]


@requirement("cli.prepare", "cli.json", "receipts.json")
def test_json_output_has_body_and_receipt_without_pixels_or_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DEEPSEEK_API_KEY", "sk-secret")
    with Provider(DEEPSEEK) as provider:
        there = ("--upstream", f"deepseek={provider.url}", "--model", "deepseek-v4-pro", "--json")
        found = prepare(PASTED, *there, wire="anthropic").json
    (held,) = found["body"]["messages"][0]["content"]
    assert "<vision_proxy_description" in held["text"]
    receipt = found["receipt"]
    (line,) = receipt["sights"]
    assert (found["changed"], receipt["upstream"], receipt["model"]) == (True, "deepseek", "deepseek-v4-pro")
    assert (line["fate"], line["why"]) == ("told", "by deepseek/deepseek-flash (the model takes no images)")
    assert line["tokens"]["after"] == -(-len(held["text"]) // 4)
    said = json.dumps(receipt)
    assert PNG[:40] not in said
    assert "sk-secret" not in said
    assert held["text"].splitlines()[-2] not in said, "no whole texts"


@requirement("cli.prepare")
def test_tool_result_content_is_prepared_in_place() -> None:
    broken = b64encode(picture()[:30]).decode()
    request = {"content": [text("a page"), {"type": "image", "data": broken, "mimeType": "image/png"}]}
    ended = prepare(request, "--explain", wire="mcp")
    first, second = ended.json["content"]
    assert first == text("a page")
    assert (second["type"], "image/png" in second["text"]) == ("text", True)
    assert "/content/1: " in ended.err


@requirement("cli.prepare", "library.spare")
@pytest.mark.parametrize("given", ["nonsense", '{"a": 1', "[1, 2", "7"])
def test_an_unreadable_body_is_printed_unchanged_with_a_note(given: str) -> None:
    ended = prepare(given)
    assert (ended.code, ended.out) == (0, given)
    assert (ended.err.count("\n"), "JSON" in ended.err) == (1, True)
    assert prepare(given, "--json").json["changed"] is False


def test_binary_input_is_printed_unchanged() -> None:
    words = [*COMMAND, "prepare", "--wire", "anthropic"]
    raw = b'\xff\xfe{"a": "\x00"}'
    ended = subprocess.run(words, input=raw, capture_output=True, env=environment(**ALONE), timeout=60, check=True)
    assert ended.stdout == raw
    assert b"Traceback" not in ended.stderr


@requirement("cli.prepare", "cli.one_line", "cli.exit")
def test_invalid_arguments_are_refused_in_one_line() -> None:
    for nothing in ("", " \n"):
        assert_refused(prepare(nothing), "< body.json")
    assert_refused(prepare(HOISTED, "--upstream", "nobody"), "'nobody'", "deepseek")
    assert_refused(prepare(HOISTED, "--retention", "sometimes"), "retention", "turns:N")
    assert prepare(HOISTED, wire="telegraph").code == 2


@requirement("cli.prepare")
def test_retention_retires_images_that_can_be_seen_again(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(picture())
    use: Any = {"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": str(tmp_path / "a.png")}}
    request = body(
        user(text("look")),
        {"role": "assistant", "content": [use]},
        user(result("c1", block(PNG))),
        {"role": "assistant", "content": "I see"},
        user(text("go on")),
        tools=[{"name": "Read"}],
    )
    words = ("--model", "claude-opus-5-5", "--retention")
    assert prepare(request, *words, "off", wire="anthropic").json == request
    ended = prepare(request, *words, "turns:0", wire="anthropic")
    assert re.search(r"viewed earlier; [^\]]*\bRead\b[^\]]*\]", ended.out)
    assert (
        prepare(request, *words, "turns:0", "--json", wire="anthropic").json["receipt"]["sights"][0]["fate"]
        == "retired"
    )
    assert "retired" in ended.err


@requirement("cli.prepare", "lower.gemini.unnamed")
def test_a_gemini_body_without_a_model_fits_every_gemini_with_a_note() -> None:
    held = [{"inlineData": {"mimeType": "image/png", "data": PNG}}]
    answer = {"functionResponse": {"name": "shot", "id": "c1", "response": {"n": 1}, "parts": held}}
    request = {"contents": [{"role": "user", "parts": [answer]}]}
    ended = prepare(request, wire="gemini")
    assert [list(part) for part in ended.json["contents"][0]["parts"]] == [
        ["functionResponse"],
        ["text"],
        ["inlineData"],
    ]
    assert len(prepare(request, "--json", wire="gemini").json["receipt"]["notes"]) == 1
    named = prepare(request, "--model", "gemini-3-pro", wire="gemini")
    assert (named.json, named.err) == (request, "")
    assert "Gemini" in sightline("prepare", "--help").out


@requirement("prepare.hints")
def test_a_probably_wrong_wire_or_provider_gets_a_hint() -> None:
    pasted = body(user(part(PNG)))
    result = body({"role": "tool", "tool_call_id": "c", "content": [part(PNG)]})
    other = prepare(result, "--model", "claude-opus-5", wire="anthropic")
    assert (other.code, other.json) == (0, result)
    assert (other.err.count("\n"), "--wire openai_chat" in other.err) == (1, True)
    meant = prepare(pasted, "--model", "deepseek-v4-pro", "--explain")
    last = meant.err.splitlines()[-1]
    assert last.startswith("sightline: deepseek-v4-pro ")
    assert "--upstream deepseek" in last
    named = prepare(body(user(text("hello"))), "--model", "deepseek-v4-pro", "--upstream", "deepseek", "--explain")
    assert "--upstream" not in named.err
