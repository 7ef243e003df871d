"""What the proxy keeps of requests for people: receipts in the record, and who leaves images out."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path

import pytest

from sightline.model.receipt import Filed
from sightline.store import open_record
from tests.golden.captures import captures
from tests.proxy.asking import KEY, ask_chat, ask_messages, pasted_chat, pasted_message
from tests.proxy.raw import exchange
from tests.proxy.running import sightline
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

PICTURE = paint_quadrants(some_colours(77))
WORDS = "What does the wombat hold?"


def kept(home: Path) -> list[Filed]:
    record = open_record(home / "record")
    try:
        return [*record.ledger.list_receipts(100)]
    finally:
        record.close()


@requirement("record.decisions")
def test_every_prepared_request_leaves_its_receipt_without_pixels_words_and_keys(tmp_path: Path) -> None:
    with deepseek() as blind, sightline(tmp_path, f"deepseek={blind.url}") as proxy:
        ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE, words=WORDS))
        ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", [{"role": "user", "content": WORDS}])
        told = proxy.receipts
    (filed,) = kept(tmp_path)
    assert [filed.receipt] == told
    assert (filed.wire, filed.receipt.upstream, filed.receipt.model) == ("openai_chat", "deepseek", "deepseek-v4-pro")
    assert [line.fate for line in filed.receipt.sights] == ["told"]
    rows = (tmp_path / "record" / "record.sqlite").read_bytes()
    for secret in (KEY, WORDS, b64encode(PICTURE).decode()[:200]):
        assert secret.encode() not in rows


@requirement("record.decisions", "recover.receipt")
def test_a_repaired_request_leaves_a_receipt_for_each_time_that_it_went_out(tmp_path: Path) -> None:
    with Provider((("*", "ollama"),)) as blind, sightline(tmp_path, blind.url) as proxy:
        ask_messages(proxy.url, "m", pasted_message(PICTURE))
    again, first = kept(tmp_path)
    assert (first.receipt.notes, first.receipt.sights[0].fate) == ((), "shown")
    assert " 400" in again.receipt.notes[0]


SESSIONS = (
    ("x-claude-code-session-id", "b4c2"),
    ("session-id", "s-1"),
    ("thread-id", "t\t1"),
    ("x-session-affinity", "a" * 900),
)


@requirement("chain.headers")
def test_what_a_client_calls_its_session_is_a_label_and_changes_nothing(tmp_path: Path) -> None:
    body = json.dumps({"model": "deepseek-v4-pro", "messages": pasted_chat(PICTURE)}).encode()
    with deepseek() as blind, sightline(tmp_path, f"deepseek={blind.url}") as proxy:
        for session in (SESSIONS, [("session-id", "another")], []):
            headers = [("authorization", f"Bearer {KEY}"), ("x-unknown-session", "no label"), *session]
            exchange(proxy.url, "/u/deepseek/v1/chat/completions", body, headers=headers)
        assert len(blind.asked("deepseek-flash")) == 1, "whatever it is called, it is one conversation"
        sent = {one.body for one in blind.asked("deepseek-v4-pro")}
        assert len(sent) == 1
    none, other, first = kept(tmp_path)
    assert (none.labels, other.labels) == ((), (("session-id", "another"),))
    assert dict(first.labels) == {
        "x-claude-code-session-id": "b4c2",
        "session-id": "s-1",
        "thread-id": "t?1",
        "x-session-affinity": "a" * 200,
    }


LEFT_OUT = [
    capture
    for capture in captures()
    if capture.name in ("codex/read.textonly-2", "codex/attach.textonly-1", "pi/read.textonly-2")
]


@requirement("omitted.noticed")
@pytest.mark.parametrize("capture", LEFT_OUT, ids=lambda capture: capture.name)
def test_a_client_that_leaves_images_out_is_remembered_with_its_model_and_its_request_goes_on(
    tmp_path: Path, capture: object
) -> None:
    found = next(each for each in LEFT_OUT if each is capture)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert exchange(proxy.url, found.path, found.raw).status == 200
        assert [one.body for one in provider.exchanges] == [found.raw]
    record = open_record(tmp_path / "record")
    assert [(one.client, one.model) for one in record.conversations.list_omissions()] == [
        (found.name.partition("/")[0], found.body["model"])
    ]
    record.close()
