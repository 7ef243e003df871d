"""Receipts in the record, session labels, and clients that omit images."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image

from sightline.model.records import FiledReceipt, Receipt
from sightline.model.request_trace import IMAGE_CHIP, AnswerSlot
from sightline.model.seer import Usage
from sightline.store import open_record
from sightline.surfaces.proxy.upstream_client import FAILED_UPSTREAM
from tests.golden.captures import captures
from tests.proxy import four_wires
from tests.proxy.clients import KEY, ask_chat, ask_messages, pasted_chat, pasted_message, read_message
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.faults import Fail
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek, nobody_listens
from tests.waiting import try_again

PICTURE = paint_quadrants(some_colours(77))
ASKED = {wire: four_wires.asked(wire, "What is it?", PICTURE) for wire in ("openai_responses", "gemini")}
WORDS = "What does the wombat hold?"


USAGE_REQUESTS: dict[str, tuple[str, dict[str, object]]] = {
    "messages": ("/v1/messages", {"model": "m", "max_tokens": 9, "messages": pasted_message(PICTURE)}),
    "chat": (
        "/v1/chat/completions",
        {"model": "m", "messages": pasted_chat(PICTURE), "stream_options": {"include_usage": True}},
    ),
    "responses": ("/v1/responses", four_wires.request("openai_responses", "m", [ASKED["openai_responses"]])),
    "gemini": (four_wires.path("gemini", "m"), four_wires.request("gemini", "m", [ASKED["gemini"]])),
}


def kept(home: Path) -> list[FiledReceipt]:
    record = open_record(home / "record")
    try:
        return [*record.ledger.list_receipts(100)]
    finally:
        record.close()


@requirement("record.decisions")
def test_every_prepared_request_files_a_receipt_without_content(tmp_path: Path) -> None:
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


@requirement("inspector.data")
def test_a_receipt_keeps_what_the_inspector_shows_and_no_other_text(tmp_path: Path) -> None:
    """A second turn of the same conversation shares its first message; only new places are kept."""
    first = pasted_chat(PICTURE, words=WORDS)
    later = [*first, {"role": "assistant", "content": "A leaf."}, {"role": "user", "content": "And the koala?"}]
    with deepseek() as blind, sightline(tmp_path, f"deepseek={blind.url}") as proxy:
        for messages in (first, later):
            ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", messages)
    second, opening = kept(tmp_path)
    assert opening.trace.conversation == second.trace.conversation != ""
    assert (opening.trace.turn, second.trace.turn, second.trace.messages) == (1, 2, 3)
    assert "OpenAI" in opening.client
    (line,) = opening.receipt.sights
    assert (line.sha256, line.bytes, line.seer) == (
        sha256(PICTURE).hexdigest(),
        len(PICTURE),
        "deepseek/deepseek-flash",
    )
    assert line.why == f"by {line.seer} (the model takes no images)"
    assert line.size is not None
    (edit,) = opening.trace.edits
    assert edit.place == line.place
    assert IMAGE_CHIP in edit.before
    assert "vision_proxy_description" in edit.after
    assert second.trace.edits == ()
    rows = (tmp_path / "record" / "record.sqlite").read_bytes()
    assert not any(words.encode() in rows for words in (WORDS, "koala", "A leaf."))


@requirement("record.decisions", "recover.receipt")
def test_a_repaired_request_files_a_receipt_for_each_attempt(tmp_path: Path) -> None:
    with Provider((("*", "ollama"),)) as blind, sightline(tmp_path, blind.url) as proxy:
        ask_messages(proxy.url, "m", pasted_message(PICTURE))
    again, first = kept(tmp_path)
    assert (first.receipt.notes, first.receipt.sights[0].fate) == ((), "shown")
    assert " 400" in again.receipt.notes[0]


@requirement("receipts.failed")
@pytest.mark.parametrize("stream", [False, True])
def test_the_receipt_of_a_request_that_failed_upstream_says_so(tmp_path: Path, stream: bool) -> None:
    body = json.dumps({"model": "m", "stream": stream, "messages": pasted_chat(PICTURE)}).encode()
    path = "/v1/chat/completions"
    with Provider(faults=[Fail(status=529)]) as provider, sightline(tmp_path, provider.url) as proxy:
        assert exchange(proxy.url, path, body).status == 529
        assert exchange(proxy.url, path, body).status == 200
    with nobody_listens() as address, sightline(tmp_path, address) as proxy:
        assert exchange(proxy.url, path, body).status == 503
    unreachable, done, failed = (each.receipt for each in kept(tmp_path))
    assert [[line.fate for line in each.sights] for each in (failed, done, unreachable)] == [["shown"]] * 3
    assert done.notes == ()
    assert failed.notes == (FAILED_UPSTREAM.format("status 529"),)
    (note,) = unreachable.notes
    assert note.startswith(FAILED_UPSTREAM.format(""))
    assert address.removeprefix("http://") in note


@requirement("receipts.failed")
def test_the_receipt_of_a_repair_that_failed_says_so(tmp_path: Path) -> None:
    with (
        Provider((("*", "ollama"),), faults=[None, Fail(status=500)]) as blind,
        sightline(tmp_path, blind.url) as proxy,
    ):
        body = json.dumps({"model": "m", "messages": pasted_chat(PICTURE)}).encode()
        assert exchange(proxy.url, "/v1/chat/completions", body).status == 500
    again, first = (each.receipt for each in kept(tmp_path))
    assert first.notes == (), "it was repaired"
    assert again.notes[-1] == FAILED_UPSTREAM.format("status 500")


SESSIONS = (
    ("x-claude-code-session-id", "b4c2"),
    ("session-id", "s-1"),
    ("thread-id", "t\t1"),
    ("x-session-affinity", "a" * 900),
)


@requirement("chain.headers")
def test_session_headers_are_only_labels(tmp_path: Path) -> None:
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
def test_a_client_that_omits_images_is_noted_with_its_model(tmp_path: Path, capture: object) -> None:
    found = next(each for each in LEFT_OUT if each is capture)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert exchange(proxy.url, found.path, found.raw).status == 200
        assert [one.body for one in provider.exchanges] == [found.raw]
    record = open_record(tmp_path / "record")
    assert [(one.client, one.model) for one in record.conversations.list_omissions()] == [
        (found.name.partition("/")[0], found.body["model"])
    ]
    record.close()


@requirement("inspector.usage")
def test_a_receipt_has_the_usage_of_the_answer(tmp_path: Path) -> None:
    """The client gets the provider's bytes, and the receipt what they say about tokens."""
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        for name, (path, body) in USAGE_REQUESTS.items():
            for sent in (body, {**body, "stream": True}):
                if name == "gemini" and sent is not body:
                    path, sent = path.replace("generateContent", "streamGenerateContent?alt=sse"), body
                data = json.dumps(sent).encode()
                direct, relayed = exchange(provider.url, path, data), exchange(proxy.url, path, data)
                assert (relayed.status, len(relayed.body)) == (200, len(direct.body))
    usages = [each.usage for each in kept(tmp_path)]
    assert len(usages) == 2 * len(USAGE_REQUESTS)
    assert all(each.input is not None and each.input >= 1000 and each.output is not None for each in usages)


@requirement("inspector.data")
def test_a_receipt_has_the_sha256_of_an_image_that_is_sent_unchanged(tmp_path: Path) -> None:
    """The record keeps no copy of such an image. A long one is hashed in a thread, while the upstream answers."""
    noise = BytesIO()
    Image.effect_noise((400, 400), 90).save(noise, "PNG")
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}") as proxy:
        for picture in (PICTURE, noise.getvalue()):
            body = {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": read_message(picture)}
            for _ in try_again():
                assert exchange(proxy.url, "/v1/messages", json.dumps(body).encode()).status == 200
                lines = [line for filed in kept(tmp_path) for line in filed.receipt.sights]
                if sha256(picture).hexdigest() in [line.sha256 for line in lines]:
                    break
    assert {(line.fate, line.why) for line in lines} == {("shown", "")}


@requirement("inspector.usage")
def test_the_usage_of_a_slow_answer_is_added_to_its_receipt(tmp_path: Path) -> None:
    record = open_record(tmp_path / "record")
    slow, quick = AnswerSlot(), AnswerSlot()
    record.ledger.file_receipt("", FiledReceipt(Receipt("u", "slow"), "anthropic", answer=slow))
    (before,) = record.ledger.list_receipts(5)
    record.ledger.file_receipt("", FiledReceipt(Receipt("u", "quick"), "anthropic", answer=quick))
    for slot, number in ((slow, 1), (quick, 2)):
        slot.usage = Usage(number, number, number, number)
        record.ledger.add_usage(slot)
    after = {each.receipt.model: each.usage for each in record.ledger.list_receipts(5)}
    record.close()
    assert before.usage == Usage()
    assert after == {"slow": Usage(1, 1, 1, 1), "quick": Usage(2, 2, 2, 2)}
