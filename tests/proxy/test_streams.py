"""Streams: relayed as they come, converted if one was requested, and repaired without a trace."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sightline.cli import compose
from sightline.model.refusal import Refusal
from sightline.runtime import build_runtime
from sightline.settings import load_settings
from tests.proxy import test_gemini, test_responses
from tests.proxy.clients import KEY, WIRES, ask_messages, pasted_chat, pasted_message
from tests.proxy.raw_http import Got, exchange, head, plug, until
from tests.proxy.running_proxy import NOTHING_ON_LOOPBACK, Running, declare_gemini, sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Break, Cut, Garble, Hang, Page
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.server import Reply
from tests.scripted.talk import Call

COLOURS = some_colours(61)
PICTURE = paint_quadrants(COLOURS)
SEEN = f"image 1 of 1: {describe_quadrants(COLOURS)}"
Json = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """One wire: where a stream is asked for, and with what."""

    path: str
    body: bytes
    ask: Callable[..., str]  # (address, model), as the official client does it, and streaming
    colours: Sequence[Any] = COLOURS


def _asked(wire: str, pasted: Callable[[bytes], list[Json]]) -> Callable[..., str]:
    return lambda base, model: WIRES[wire][0](base, model, pasted(PICTURE), stream=True)


def _body(**more: Any) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 9, "stream": True, **more}).encode()


GEMINI = test_gemini.PASTED
GEMINI_PATH = test_gemini.path("m", "streamGenerateContent")
ANSWERED: Mapping[str, Way] = {
    "messages": Way("/v1/messages", _body(messages=pasted_message(PICTURE)), _asked("messages", pasted_message)),
    "chat": Way("/v1/chat/completions", _body(messages=pasted_chat(PICTURE)), _asked("chat", pasted_chat)),
    "responses": Way(
        "/v1/responses",
        _body(input=test_responses.PASTED),
        lambda base, model: test_responses.ask(base, model, test_responses.PASTED, stream=True),
        test_responses.COLOURS,
    ),
    "gemini": Way(
        GEMINI_PATH + "?alt=sse",
        json.dumps(GEMINI).encode(),
        lambda base, model: test_gemini.asked(base, model, GEMINI, stream=True),
    ),
}
EVERY = pytest.mark.parametrize("way", ANSWERED.values(), ids=ANSWERED)


def header(got: Got, name: str) -> str:
    return {key.lower(): value for key, value in got.headers}.get(name, "")


def both(provider: Provider, proxy: Running, path: str, body: bytes) -> tuple[Got, Got]:
    """What comes through the proxy, and what the provider says to the same words without it."""
    relayed = exchange(proxy.url, path, body)
    return relayed, exchange(provider.url, path, provider.exchanges[-1].body)


def plain(got: Got) -> tuple[int, list[tuple[str, str]], bytes]:
    return got.status, [(key.lower(), value) for key, value in got.headers], got.body


# A rejection inside a stream.


@EVERY
@requirement("recover.in_stream", "recover.blind")
@pytest.mark.usefixtures("no_local_reader")
def test_a_rejection_inside_a_stream_is_repaired_invisibly(tmp_path: Path, way: Way) -> None:
    with Provider((("*", "ollama"),), inside=True) as provider, sightline(tmp_path, provider.url) as proxy:
        assert exchange(provider.url, way.path, way.body).status == 200, "the rejection has no status of its own"
        repaired, direct = both(provider, proxy, way.path, way.body)
        assert plain(repaired) == plain(direct), "the second answer, byte for byte"
        assert [b"iVBOR" in one.body for one in provider.exchanges] == [True, True, False, False]
        assert "I see no image." in way.ask(proxy.url, "m"), "learnt"
        assert len(provider.exchanges) == 5
        (note,) = [receipt.notes for receipt in proxy.receipts][1]
        assert " 400 (" in note


@EVERY
@requirement("recover.in_stream", "recover.not_images")
def test_another_error_inside_a_stream_is_relayed_unchanged(tmp_path: Path, way: Way) -> None:
    with Provider((("*", "data_policy"),), inside=True) as provider, sightline(tmp_path, provider.url) as proxy:
        relayed, direct = both(provider, proxy, way.path, way.body)
        assert plain(relayed) == plain(direct)
        assert all(b"iVBOR" in one.body for one in provider.exchanges)


@EVERY
@requirement("recover.in_stream", "stream.identity")
def test_an_error_after_the_answer_started_is_relayed(tmp_path: Path, way: Way) -> None:
    fault = Break(after=3)
    with Provider(faults=[fault, fault]) as provider, sightline(tmp_path, provider.url) as proxy:
        relayed, direct = both(provider, proxy, way.path, way.body)
        assert plain(relayed) == plain(direct)
        assert len(provider.exchanges) == 2


@requirement("recover.in_stream", "recover.one_retry", "recover.accepted")
def test_a_second_rejection_is_relayed_and_teaches_nothing(tmp_path: Path) -> None:
    way = ANSWERED["messages"]
    with Provider((("*", "ollama"),), inside=True) as provider, sightline(tmp_path, provider.url) as proxy:
        provider.faults.extend([None, Break(after=0)])
        assert b"Overloaded" in exchange(proxy.url, way.path, way.body).body
        assert len(provider.exchanges) == 2
        assert b"Overloaded" not in exchange(proxy.url, way.path, way.body).body
        assert [b"base64" in one.body for one in provider.exchanges] == [True, False, True, False]


@requirement("recover.in_stream")
def test_a_json_rejection_with_status_200_is_repaired(tmp_path: Path) -> None:
    no = json.dumps({"error": {"message": "this model does not support image input", "code": 400}}).encode()
    fault = Page(200, "application/json", no)
    for stream in (True, False):
        body = _body(messages=pasted_chat(PICTURE), stream=stream)
        with Provider(faults=[fault]) as provider, sightline(tmp_path / str(stream), provider.url) as proxy:
            relayed, direct = both(provider, proxy, "/v1/chat/completions", body)
            assert plain(relayed) == plain(direct)
            assert [b"base64" in one.body for one in provider.exchanges] == [True, False, False]


# As it comes.


FIRST = {"messages": 1, "chat": 1, "responses": 3, "gemini": 1}  # events: that a response was created says nothing


@pytest.mark.parametrize(("name", "events"), [*FIRST.items(), *((name, 4) for name in FIRST)])
@requirement("stream.as_it_comes")
def test_a_stream_is_relayed_piece_by_piece(tmp_path: Path, name: str, events: int) -> None:
    way = ANSWERED[name]
    hang = Hang(after=events)
    replies: list[Reply] = []
    with Provider(faults=[hang]) as provider, sightline(tmp_path, provider.url) as proxy, plug(proxy.url) as connection:
        provider.heard = lambda _, reply: replies.append(reply)
        connection.sendall(head(way.path, len(way.body)) + way.body)
        hang.reached.result(30)
        seen = until(connection, replies[0].parts[events - 1])
        assert replies[0].parts[events - 1] in seen, "while the upstream waits"
        hang.release()
        assert until(connection, b"\r\n0\r\n\r\n").endswith(b"\r\n0\r\n\r\n")


# Always as a stream.


@EVERY
@requirement("stream.always")
def test_a_json_answer_becomes_the_requested_stream(tmp_path: Path, way: Way) -> None:
    with Provider(streams=False) as provider, sightline(tmp_path, provider.url) as proxy:
        got = exchange(proxy.url, way.path, way.body)
        assert header(got, "content-type") == "text/event-stream"
        assert header(got, "x-request-id") == "req_scripted"
        assert got.body.startswith((b"data: ", b"event: "))
        if way is not ANSWERED["gemini"]:
            assert describe_quadrants(way.colours) in way.ask(proxy.url, "m")


@requirement("stream.always")
def test_calls_and_usage_are_kept(tmp_path: Path) -> None:
    import anthropic

    script = [[Call("Read", {"file_path": "a.png"})]]
    with (
        Provider(streams=False, script=script) as provider,
        sightline(tmp_path, provider.url) as proxy,
        anthropic.Anthropic(base_url=proxy.url, api_key=KEY, max_retries=0) as client,
    ):
        tools = [{"name": "Read", "input_schema": {"type": "object"}}]
        asked: Json = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "?"}], "tools": tools}
        whole = client.messages.create(**asked)
        with client.messages.stream(**asked) as events:
            assert events.get_final_message().to_dict() == {**whole.to_dict(), "stop_details": None}
    assert whole.stop_reason == "tool_use"


@requirement("stream.always")
def test_a_compressed_json_answer_becomes_a_stream(tmp_path: Path) -> None:
    """Some pack whatever they were asked for."""
    said = {"id": "c", "object": "chat.completion", "model": "m", "choices": [{"message": {"content": "hello"}}]}
    packed = Page(200, "application/json", gzip.compress(json.dumps(said).encode()), (("content-encoding", "gzip"),))
    with Provider(faults=[packed]) as provider, sightline(tmp_path, provider.url) as proxy:
        got = exchange(proxy.url, "/v1/chat/completions", _body(messages=[{"role": "user", "content": "hi"}]))
    assert header(got, "content-encoding") == ""
    assert b"hello" in got.body
    assert got.body.endswith(b"data: [DONE]\n\n")


LAST = {"messages": b'"message_stop"', "chat": b"data: [DONE]", "responses": b'"response.completed"'}


@pytest.mark.parametrize("name", LAST)
@requirement("stream.alive", "pass.readable")
def test_a_late_compressed_answer_is_relayed(tmp_path: Path, name: str) -> None:
    """Behind signs of life that are not packed, a stream must not be packed either."""
    hang = Hang()
    body = _body(**{"input" if name == "responses" else "messages": [{"role": "user", "content": "hi"}]})
    request = head(ANSWERED[name].path, len(body)).replace(b"\r\n\r\n", b"\r\naccept-encoding: gzip\r\n\r\n") + body
    with (
        Provider(gzip=True, faults=[hang]) as provider,
        sightline(tmp_path, provider.url, patience=0.01) as proxy,
        plug(proxy.url) as connection,
    ):
        connection.sendall(request)
        until(connection, b"ping" if name == "messages" else b": sightline is waiting\n\n")
        hang.release()
        rest = until(connection, b"\r\n0\r\n\r\n")
        assert provider.exchanges[0].header("accept-encoding") == ["identity"]
    assert LAST[name] in rest
    assert b"the upstream answered" not in rest


@requirement("stream.always")
def test_a_json_answer_after_keep_alives_becomes_events(tmp_path: Path) -> None:
    hang = Hang()
    hang.reached.add_done_callback(lambda _: None)
    with (
        Provider(streams=False, faults=[hang]) as provider,
        sightline(tmp_path, provider.url, patience=0.01) as proxy,
        plug(proxy.url) as connection,
    ):
        way = ANSWERED["chat"]
        connection.sendall(head(way.path, len(way.body)) + way.body)
        until(connection, b": sightline is waiting\n\n")
        hang.release()
        assert b"data: [DONE]" in until(connection, b"\r\n0\r\n\r\n")


@requirement("stream.always")
def test_a_json_list_of_gemini_stays_a_list(tmp_path: Path) -> None:
    with Provider(streams=False) as provider, sightline(tmp_path, provider.url) as proxy:
        relayed, direct = both(provider, proxy, GEMINI_PATH, json.dumps(GEMINI).encode())
    assert plain(relayed) == plain(direct)


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("application/json", b'{"unknown": 1}'),
        ("application/json", b"{broken"),
        ("application/json", b""),
        ("text/html", b"<html>"),
        ("", b"all is well"),
    ],
)
@EVERY
@requirement("stream.always", "fault.permanent")
def test_an_answer_that_cannot_be_converted_is_an_error(tmp_path: Path, way: Way, kind: str, said: bytes) -> None:
    with Provider(faults=[Page(200, kind, said)]) as provider, sightline(tmp_path, provider.url) as proxy:
        got = exchange(proxy.url, way.path, way.body)
    assert (got.status, header(got, "content-type")) == (400, "application/json")
    assert b"Sightline: " in got.body
    assert "error" in json.loads(got.body)


@pytest.mark.parametrize("kind", ["", "text/plain", "application/json"])
@requirement("stream.always", "stream.identity")
def test_a_stream_with_another_content_type_is_recognized(tmp_path: Path, kind: str) -> None:
    way = ANSWERED["chat"]
    said = b'\ndata: {"choices":[{"index":0,"delta":{"content":"hello"}}]}\n\ndata: [DONE]\n\n'
    with Provider(faults=[Page(200, kind, said)]) as provider, sightline(tmp_path, provider.url) as proxy:
        got = exchange(proxy.url, way.path, way.body)
    assert (got.status, header(got, "content-type"), got.body) == (200, "text/event-stream", said)


@requirement("stream.always", "fault.cut")
def test_a_json_answer_that_breaks_off_is_503(tmp_path: Path) -> None:
    way = ANSWERED["chat"]
    with Provider(streams=False, faults=[Cut()]) as provider, sightline(tmp_path, provider.url) as proxy:
        got = exchange(proxy.url, way.path, way.body)
    assert (got.status, header(got, "retry-after")) == (503, "2")


@requirement("fault.cut")
def test_a_broken_stream_with_a_length_ends_with_an_error_event(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    start = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 1000\r\n\r\n"
    begun = Garble(start + b'data: {"choices":[]}\n\n')
    body = _body(messages=[{"role": "user", "content": "hi"}])
    with Provider(faults=[begun]) as provider, sightline(tmp_path, provider.url) as proxy:
        got = exchange(proxy.url, "/v1/chat/completions", body)
    assert json.loads(got.body.split(b"data: ")[2])["error"]["type"] == "server_error"
    assert header(got, "content-length") == ""
    assert "Traceback" not in capfd.readouterr().err


# Patience.


class Stopped(asyncio.SelectorEventLoop):
    """A loop whose clock stands still until it is moved."""

    now = 0.0

    def time(self) -> float:
        return self.now


class Waiting:
    """A request to the proxy as its server makes it, on a loop whose clock is ours."""

    def __init__(self, home: Path, way: Way) -> None:
        self.sent: list[Json] = []
        self._env = {"SIGHTLINE_HOME": str(home), "SIGHTLINE_UPSTREAMS": NOTHING_ON_LOOPBACK}
        path, _, query = way.path.partition("?")
        self._scope = {"type": "http", "method": "POST", "raw_path": path.encode(), "query_string": query.encode()}
        self._messages = [{"type": "http.request", "body": way.body, "more_body": False}]

    async def _receive(self) -> Json:
        if not self._messages:
            await asyncio.Event().wait()
        return self._messages.pop()

    async def _send(self, message: Any) -> None:
        self.sent.append(message)

    def run(
        self, provider: Provider, hang: Hang, script: Callable[[Stopped], AsyncIterator[None]], name: str = ""
    ) -> None:
        """Up to where the provider hangs, then each step of the script, with time for all that it sets off."""
        loop = Stopped()

        async def main() -> None:
            flags = declare_gemini([f"{name}={provider.url}" if name else provider.url], self._env)
            whole = build_runtime(load_settings(self._env), flags)
            assert not isinstance(whole, Refusal)
            app = compose.build_proxy(whole)
            work = asyncio.ensure_future(app({**self._scope, "headers": []}, self._receive, self._send))
            reached = asyncio.ensure_future(asyncio.wrap_future(hang.reached))
            await asyncio.wait([reached, work], return_when=asyncio.FIRST_COMPLETED)
            assert reached.done(), f"the provider was not asked: {self.sent}"
            await turned()
            async for _ in script(loop):
                await turned()
            hang.release()
            await work
            for late in (behind := asyncio.all_tasks() - {asyncio.current_task()}):  # looks that go on
                late.cancel()
            await asyncio.gather(*behind, return_exceptions=True)
            await whole.close()
            await turned()

        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(main())


async def turned() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


@requirement("stream.ten_seconds")
def test_keep_alives_start_after_ten_seconds_without_a_status(tmp_path: Path) -> None:
    hang = Hang()
    waiting = Waiting(tmp_path, Way("/v1/messages", _body(messages=[{"role": "user", "content": "?"}]), str))
    alive = {"type": "http.response.body", "body": b'event: ping\ndata: {"type": "ping"}\n\n', "more_body": True}

    async def script(loop: Stopped) -> AsyncIterator[None]:
        loop.now = 9.999
        yield
        assert waiting.sent == []
        for seconds in (10, 20):
            loop.now = seconds
            yield
        assert (waiting.sent[0]["status"], waiting.sent[1:]) == (200, [alive, alive])

    with Provider(faults=[hang]) as provider:
        waiting.run(provider, hang, script)
    assert b"message_stop" in b"".join(message["body"] for message in waiting.sent[1:])


@EVERY
@requirement("recover.in_stream")
def test_the_beginning_of_a_stream_is_held_for_at_most_ten_seconds(tmp_path: Path, way: Way) -> None:
    """The upstream has said 200 and then nothing: its own headers go out, and all else as it comes."""
    hang = Hang(after=0)
    waiting = Waiting(tmp_path, way)

    async def script(loop: Stopped) -> AsyncIterator[None]:
        loop.now = 9.999
        yield
        assert waiting.sent == []
        loop.now = 10.0
        yield
        assert [message["type"] for message in waiting.sent] == ["http.response.start"]
        assert (b"x-request-id", b"req_scripted") in waiting.sent[0]["headers"]

    replies: list[Reply] = []
    with Provider(faults=[hang]) as provider:
        provider.heard = lambda _, reply: replies.append(reply)
        waiting.run(provider, hang, script)
    assert b"".join(message["body"] for message in waiting.sent[1:]) == b"".join(replies[0].parts)


@requirement("stream.identity")
def test_a_stream_with_images_keeps_the_upstream_s_own_headers(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert ask_messages(proxy.url, "m", pasted_message(PICTURE), stream=True) == SEEN
        for way in ANSWERED.values():
            relayed, direct = both(provider, proxy, way.path, way.body)
            assert plain(relayed) == plain(direct)
