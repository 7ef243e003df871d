"""An upstream that rejects what Sightline made of a request gets the client's own body, once."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from PIL import Image

from sightline.model.profile import Lesson
from sightline.store import open_record
from sightline.surfaces.proxy.tool_loop import LEG_REJECTED
from tests.proxy.clients import image_part
from tests.proxy.legs import (
    WIRES,
    Call,
    Json,
    Leg,
    Script,
    answer,
    body,
    events,
    heard,
    joined,
    path,
    results,
    said,
    seen,
    serving,
    user,
)
from tests.proxy.raw_http import Got, exchange
from tests.proxy.running_proxy import Running, sightline
from tests.proxy.test_tool_loop import BLIND, EVERY_WAY, EVERY_WIRE, LOOKS, ON
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.server import Exchange, Reply, Server

PICTURE = paint_quadrants(some_colours(3))
SHOT = Call("call_shot00000001", "shoot", {})
WORDS = "Request rejected: E4711."
SHAPE = "messages.2.content.0: Extra inputs are not permitted"
LONG = "This model's maximum context length is 1000 tokens."
ORDER = "Unexpected role 'user' after role 'tool'"
DONE = Leg("Done.")
AS_SENT = "as_sent"
Judge = Callable[[Exchange], str | None]


def reject(words: str = WORDS, status: int = 400) -> Reply:
    said = json.dumps({"error": {"message": words, "type": "invalid_request_error", "code": status}}).encode()
    return Reply(status, (("content-type", "application/json"),), (said,))


@dataclass
class Judged:
    """A provider that answers what its judge accepts, and rejects other bodies in the judge's words."""

    wire: str
    judge: Judge
    status: int = 400
    inside: bool = False  # a rejection comes as the first event of a stream
    exchanges: list[Exchange] = field(default_factory=list)

    def answer(self, exchange: Exchange) -> Reply:
        self.exchanges.append(exchange)
        words = self.judge(exchange)
        if words is not None and not self.inside:
            return reject(words, self.status)
        if words is not None:
            error = {"type": "error", "error": {"type": "invalid_request_error", "message": words}}
            told: tuple[bytes, ...] = (f"event: error\ndata: {json.dumps(error)}\n\n".encode(),)
            return Reply(200, (("content-type", "text/event-stream"),), told, streamed=True)
        stream = b'"stream": true' in exchange.body or b"streamGenerate" in exchange.target
        if not stream:
            whole = json.dumps(answer(self.wire, DONE, "1")).encode()
            return Reply(200, (("content-type", "application/json"),), (whole,))
        return Reply(200, (("content-type", "text/event-stream"),), tuple(events(self.wire, DONE, "1")), streamed=True)

    @property
    def bodies(self) -> list[bytes]:
        return [each.body for each in self.exchanges]


@contextmanager
def judged(
    home: Path, wire: str, judge: Judge, env: dict[str, str] | None = None, status: int = 400, *, inside: bool = False
) -> Iterator[tuple[Judged, Running]]:
    provider = Judged(wire, judge, status, inside)
    with (
        Server(provider.answer, lambda: False) as server,
        sightline(home, f"x=http://127.0.0.1:{server.port}", env=env) as proxy,
    ):
        yield provider, proxy


def written(wire: str, *, stream: bool = False, **more: Any) -> bytes:
    """Return a request with an image that a library has written into the text of a tool's result."""
    content = [{"type": "image", "data": b64encode(PICTURE).decode(), "mimeType": "image/png"}]
    items = [user(wire, "Look."), *said(wire, Leg(calls=(SHOT,))), *results(wire, [(SHOT, json.dumps(content))])]
    return json.dumps(body(wire, items, stream=stream, **more), indent=1).encode()


def placed(**more: Any) -> bytes:
    """Return a Chat request with an image as a part of a tool message, which is moved out of it."""
    shown = {"role": "tool", "tool_call_id": SHOT.id, "content": [image_part(PICTURE)]}
    items = [user("openai_chat", "Look."), *said("openai_chat", Leg(calls=(SHOT,))), shown]
    return json.dumps(body("openai_chat", items, stream=False, **more), indent=1).encode()


def only(own: bytes, words: str = WORDS) -> Judge:
    """Accept the client's own body and nothing else."""
    return lambda exchange: None if exchange.body == own else words


def ask(proxy: Running, wire: str, sent: bytes, *, stream: bool = False) -> Got:
    return exchange(proxy.url, path(wire, stream=stream), sent)


def learned(home: Path, model: str = "m") -> Lesson | None:
    record = open_record(home / "record")
    try:
        return record.policy.read_lesson("x", model)
    finally:
        record.close()


def notes(proxy: Running) -> list[str]:
    return [note for receipt in proxy.receipts for note in receipt.notes]


@EVERY_WAY
@requirement("law.9", "recover.own_body")
def test_a_rejected_edit_leads_to_the_clients_own_body(tmp_path: Path, wire: str, stream: bool) -> None:
    own = written(wire, stream=stream)
    with judged(tmp_path, wire, only(own, SHAPE)) as (provider, proxy):
        for sent in (2, 3):  # learned once
            got = ask(proxy, wire, own, stream=stream)
            assert seen(wire, heard(wire, got.body, stream=stream)) == joined(wire, [DONE])
            assert len(provider.exchanges) == sent
        told = notes(proxy)
    assert [each == own for each in provider.bodies] == [False, True, True]
    assert [note for note in told if "own" in note and "400" in note] == told[1:]
    lesson = learned(tmp_path)
    assert lesson is not None
    assert (lesson.tool_images, lesson.takes_own_tools, lesson.blind) == ({wire: AS_SENT}, None, None)


@requirement("law.9", "recover.own_body", "recover.in_stream")
@pytest.mark.parametrize("wire", WIRES)
def test_a_rejection_inside_a_stream_leads_to_the_own_body(tmp_path: Path, wire: str) -> None:
    own = written(wire, stream=True)
    with judged(tmp_path, wire, only(own), inside=True) as (provider, proxy):
        got = ask(proxy, wire, own, stream=True)
    assert seen(wire, heard(wire, got.body, stream=True)) == joined(wire, [DONE])
    assert len(provider.bodies) == 2


@requirement("law.9", "recover.own_body")
def test_a_moved_image_that_is_rejected_stays_in_its_result(tmp_path: Path) -> None:
    own = placed()
    with judged(tmp_path, "openai_chat", only(own, SHAPE)) as (provider, proxy):
        assert [ask(proxy, "openai_chat", own).status for _ in range(2)] == [200, 200]
    assert [each == own for each in provider.bodies] == [False, True, True]


@requirement("recover.learned_twice", "recover.own_body")
def test_an_error_about_anything_teaches_at_the_second_time(tmp_path: Path) -> None:
    own = placed()
    with judged(tmp_path, "openai_chat", only(own)) as (provider, proxy):
        for sent in (2, 4, 5):
            assert ask(proxy, "openai_chat", own).status == 200
            assert len(provider.exchanges) == sent
            assert (learned(tmp_path) is None) == (sent == 2)


@requirement("recover.learned_twice")
def test_edits_that_were_accepted_in_between_are_not_blamed(tmp_path: Path) -> None:
    own, verdicts = placed(), iter([WORDS, None, WORDS, None])
    with judged(tmp_path, "openai_chat", lambda one: None if one.body == own else next(verdicts)) as (provider, proxy):
        for sent in (2, 3, 5, 6):
            assert ask(proxy, "openai_chat", own).status == 200
            assert len(provider.exchanges) == sent
    assert learned(tmp_path) is None


@requirement("recover.tool_order")
def test_an_assistant_message_separates_tool_and_user_messages(tmp_path: Path) -> None:
    def judge(exchange: Exchange) -> str | None:
        roles = [each["role"] for each in json.loads(exchange.body)["messages"]]
        return ORDER if ("tool", "user") in pairwise(roles) else None

    with judged(tmp_path, "openai_chat", judge) as (provider, proxy):
        for sent in (2, 3):
            assert ask(proxy, "openai_chat", placed()).status == 200
            assert len(provider.exchanges) == sent
    roles = [[each["role"] for each in json.loads(body)["messages"]][2:] for body in provider.bodies]
    assert roles == [["tool", "user"], *[["tool", "assistant", "user"]] * 2]


@requirement("recover.own_body")
def test_an_upstream_that_rejects_the_repair_gets_the_own_body(tmp_path: Path) -> None:
    own = placed()
    with judged(tmp_path, "openai_chat", only(own, ORDER)) as (provider, proxy):
        for sent in (3, 4):
            assert ask(proxy, "openai_chat", own).status == 200
            assert len(provider.exchanges) == sent
    assert provider.bodies[2:] == [own, own]


@requirement("recover.own_body", "recover.repeated")
def test_the_client_gets_the_answer_to_its_own_body(tmp_path: Path) -> None:
    own = placed()

    def judge(exchange: Exchange) -> str:
        return "your own" if exchange.body == own else WORDS

    with judged(tmp_path, "openai_chat", judge) as (provider, proxy):
        assert b"your own" in ask(proxy, "openai_chat", own).body
        for _ in range(3):  # clients repeat a request that failed
            again = ask(proxy, "openai_chat", own)
            assert (again.status, b"your own" in again.body) == (400, True)
        assert len(provider.exchanges) == 2 + 3
        ask(proxy, "openai_chat", placed(temperature=1))
        assert len(provider.exchanges) == 2 + 3 + 2
    assert learned(tmp_path) is None


@requirement("recover.repeated")
def test_a_body_that_is_accepted_in_the_end_is_edited_again(tmp_path: Path) -> None:
    own, verdicts = placed(), iter([WORDS, WORDS, None, None])
    with judged(tmp_path, "openai_chat", lambda one: next(verdicts)) as (provider, proxy):
        assert [ask(proxy, "openai_chat", own).status for _ in range(3)] == [400, 200, 200]
    assert [each == own for each in provider.bodies] == [False, True, True, False]


@requirement("recover.repeated")
def test_a_body_that_needs_its_edits_is_not_sent_without_them(tmp_path: Path) -> None:
    """Its upstream was busy, but would never accept the client's own images."""
    own, verdicts = placed(), iter([WORDS, "this model does not support image input", None])
    with judged(tmp_path, "openai_chat", lambda one: next(verdicts)) as (provider, proxy):
        assert [ask(proxy, "openai_chat", own).status for _ in range(2)] == [400, 200]
    assert [each == own for each in provider.bodies] == [False, True, False]


@requirement("recover.own_body")
def test_a_repair_that_fails_gives_the_answer_to_the_unchanged_body(tmp_path: Path) -> None:
    items = [{"role": "user", "content": [image_part(PICTURE)]}]
    own = json.dumps({"model": "m", "messages": items}).encode()
    env = {"SIGHTLINE_REFERENCES": "off", "SIGHTLINE_SEER": "off"}
    blind = "this model does not support image input"
    with judged(tmp_path, "openai_chat", lambda one: blind if one.body == own else WORDS, env) as (provider, proxy):
        assert blind.encode() in ask(proxy, "openai_chat", own).body
    assert len(provider.exchanges) == 2
    assert learned(tmp_path) is None


@requirement("recover.own_body")
@pytest.mark.parametrize("status", [401, 403, 404, 413, 429, 500, 503])
def test_only_400_and_422_lead_to_the_own_body(tmp_path: Path, status: int) -> None:
    with judged(tmp_path, "openai_chat", only(placed()), status=status) as (provider, proxy):
        assert ask(proxy, "openai_chat", placed()).status == status
    assert placed() not in provider.bodies


@requirement("recover.own_body")
def test_a_rejection_for_its_length_teaches_nothing(tmp_path: Path) -> None:
    own = placed()
    with judged(tmp_path, "openai_chat", only(own, LONG)) as (provider, proxy):
        assert ask(proxy, "openai_chat", own).status == 200
    assert provider.bodies[1:] == [own]
    assert learned(tmp_path) is None


@requirement("recover.own_body")
def test_counting_tokens_falls_back_and_teaches_nothing(tmp_path: Path) -> None:
    own = written("anthropic")
    with judged(tmp_path, "anthropic", only(own)) as (provider, proxy):
        assert exchange(proxy.url, "/u/x/v1/messages/count_tokens", own).status == 200
    assert [each == own for each in provider.bodies] == [False, True]
    assert learned(tmp_path) is None


@requirement("recover.own_body")
def test_a_compressed_body_is_sent_as_it_came(tmp_path: Path) -> None:
    own = gzip.compress(placed())
    with judged(tmp_path, "openai_chat", only(own)) as (provider, proxy):
        headers = [("content-encoding", "gzip"), ("idempotency-key", "k1")]
        assert exchange(proxy.url, path("openai_chat", stream=False), own, headers=headers).status == 200
    edited, sent = provider.exchanges
    assert (edited.header("content-encoding"), sent.header("content-encoding")) == ([], ["gzip"])
    assert (edited.header("idempotency-key"), sent.header("idempotency-key")) == (["k1"], [])


@EVERY_WIRE
@requirement("loop.refused", "recover.own_body")
def test_rejected_tools_are_not_offered_again_and_images_are_still_edited(tmp_path: Path, wire: str) -> None:
    """Whatever the words, also for a model that sees nothing: its images go on being described."""

    def judge(exchange: Exchange) -> str | None:
        return "tools.1: unknown field" if b"analyze_image" in exchange.body else None  # about the form

    plain = json.dumps(body(wire, [user(wire, "Hi.")], stream=False)).encode()
    with judged(tmp_path, wire, judge, BLIND) as (provider, proxy):
        for sent in (2, 3):
            assert ask(proxy, wire, plain).status == 200
            assert len(provider.exchanges) == sent
        assert ask(proxy, wire, written(wire)).status == 200
    assert [each == plain for each in provider.bodies[:3]] == [False, True, True]
    assert b64encode(PICTURE) not in provider.bodies[-1]
    lesson = learned(tmp_path)
    assert lesson is not None
    assert (lesson.takes_own_tools, lesson.tool_images) == (False, {})


@EVERY_WIRE
@requirement("loop.fails", "recover.own_body")
def test_a_rejected_leg_leads_to_the_own_body_if_nothing_was_streamed(tmp_path: Path, wire: str) -> None:
    script = Script(wire, [LOOKS, reject(), DONE, DONE])
    own = body(wire, [user(wire, "Which code?")], stream=False)
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        for _ in range(2):
            got = ask(proxy, wire, json.dumps(own).encode())
            assert seen(wire, heard(wire, got.body, stream=False)) == joined(wire, [DONE])
        assert LEG_REJECTED.format(400) in notes(proxy)
    assert script.asked[2:] == [own, own]


@EVERY_WIRE
@requirement("loop.fails", "recover.own_body")
def test_the_next_attempt_works_after_a_rejected_leg_of_a_stream(tmp_path: Path, wire: str) -> None:
    script = Script(wire, [LOOKS, reject(), DONE])
    own = body(wire, [user(wire, "Which code?")], stream=True)
    with serving(script) as server, sightline(tmp_path, f"x=http://127.0.0.1:{server.port}", env=ON) as proxy:
        assert WORDS.encode() in ask(proxy, wire, json.dumps(own).encode(), stream=True).body
        got = ask(proxy, wire, json.dumps(own).encode(), stream=True)
    assert seen(wire, heard(wire, got.body, stream=True)) == joined(wire, [DONE])
    assert script.asked[2:] == [own]


@requirement("recover.own_body", "recover.one_model")
def test_another_model_has_its_own_trial(tmp_path: Path) -> None:
    def judge(exchange: Exchange) -> str | None:
        given: Json = json.loads(exchange.body)
        return WORDS if given["model"] == "m" and len(given["messages"]) > 3 else None

    with judged(tmp_path, "openai_chat", judge) as (provider, proxy):
        for model in ("m", "other"):
            assert ask(proxy, "openai_chat", placed(model=model)).status == 200
    assert [len(json.loads(each)["messages"]) for each in provider.bodies] == [4, 3, 4]


@requirement("recover.unnamed_limit")
@pytest.mark.parametrize("words", ["Image too large", "Image too large: 1600000 bytes > 500000 bytes"])
def test_an_image_that_is_still_too_large_is_reduced_again(tmp_path: Path, words: str) -> None:
    def judge(exchange: Exchange) -> str | None:
        return words if len(exchange.body) > 500_000 else None

    noise = BytesIO()
    Image.frombytes("L", (1100, 1100), Random(1).randbytes(1100 * 1100)).save(noise, "PNG")
    picture = image_part(noise.getvalue())
    with judged(tmp_path, "openai_chat", judge) as (provider, proxy):
        for attempts in (3 if words.endswith("large") else 2, 1):
            item: Json = {"role": "user", "content": [{"type": "text", "text": f"{attempts}?"}, picture]}
            provider.exchanges.clear()
            assert (
                ask(proxy, "openai_chat", json.dumps(body("openai_chat", [item], stream=False)).encode()).status == 200
            )
            assert len(provider.bodies) == attempts, "what was learned is kept"
