"""Faults of upstreams and clients: each becomes the right error of the wire, and nothing hangs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import anthropic
import openai
import pytest

from tests.proxy.clients import KEY, WIRES, ask_chat, ask_messages, pasted_chat, pasted_message
from tests.proxy.raw_http import exchange, head, plug, until
from tests.proxy.running_proxy import sightline
from tests.refusals import NOT_SHOWN
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Cut, Fail, Fault, Hang, Refuse, Reset
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek, nobody_listens

COLOURS = some_colours(31)
PICTURE = paint_quadrants(COLOURS)
HELLO = {"messages": [{"role": "user", "content": "hi"}], "model": "m", "max_tokens": 9}
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}


def streamed(wire: str, messages: list[dict[str, object]]) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 9, "stream": True, "messages": messages}).encode()


@pytest.mark.parametrize("cut", [Cut(after=2), Cut(after=4, reset=True)], ids=["closed", "reset"])
@requirement("fault.cut")
def test_a_stream_that_breaks_off_ends_with_the_error_of_its_wire(tmp_path: Path, cut: Cut) -> None:
    with Provider(faults=[cut, cut]) as provider, sightline(tmp_path, provider.url) as proxy:
        with pytest.raises(anthropic.APIStatusError, match="broke off"):
            ask_messages(proxy.url, "m", pasted_message(PICTURE), stream=True)
        with pytest.raises(openai.APIError, match="broke off"):
            ask_chat(proxy.url, "m", pasted_chat(PICTURE), stream=True)


@pytest.mark.parametrize("wire", WIRES)
@requirement("fault.cut")
def test_a_json_answer_that_breaks_off_stays_incomplete(tmp_path: Path, wire: str) -> None:
    with Provider(faults=[Cut()]) as provider, sightline(tmp_path, provider.url) as proxy:
        with plug(proxy.url) as connection:
            body = json.dumps(HELLO).encode()
            connection.sendall(head(PATHS[wire], len(body)) + body)
            got = until(connection, b"never")
        length = int(got.lower().partition(b"content-length: ")[2].partition(b"\r")[0])
        assert len(got.partition(b"\r\n\r\n")[2]) < length


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("pictures", [True, False], ids=["with an image", "without"])
@requirement("stream.identity")
def test_a_stream_is_relayed_byte_for_byte(tmp_path: Path, wire: str, pictures: bool) -> None:
    _, pasted, _ = WIRES[wire]
    body = streamed(wire, pasted(PICTURE) if pictures else [{"role": "user", "content": "hi"}])
    with Provider() as provider, sightline(tmp_path, provider.url, env={"SIGHTLINE_REFERENCES": "off"}) as proxy:
        direct = exchange(provider.url, PATHS[wire], body)
        relayed = exchange(proxy.url, PATHS[wire], body)
    assert relayed.body == direct.body
    assert relayed.status == 200


@pytest.mark.parametrize("wire", WIRES)
@requirement("stream.alive")
def test_keep_alives_precede_a_slow_stream(tmp_path: Path, wire: str) -> None:
    alive = {"messages": b'event: ping\ndata: {"type": "ping"}\n\n', "chat": b": sightline is waiting\n\n"}[wire]
    ask, pasted, _ = WIRES[wire]
    hang = Hang()
    with Provider(faults=[hang]) as provider, sightline(tmp_path, provider.url, patience=0.01) as proxy:
        body = streamed(wire, pasted(PICTURE))
        with plug(proxy.url) as connection:
            connection.sendall(head(PATHS[wire], len(body)) + body)
            seen = until(connection, alive)
            assert b"200 OK" in seen
            assert b"text/event-stream" in seen
            hang.release()
            seen += until(connection, b"\r\n0\r\n\r\n")
        assert describe_quadrants(COLOURS)[:12].encode() in seen or b"quadrants" in seen
        # The official SDK takes the keep-alives as what they are.
        again = Hang()
        provider.faults.append(again)
        again.reached.add_done_callback(lambda _: again.release())
        assert describe_quadrants(COLOURS) in ask(proxy.url, "m", pasted(PICTURE), stream=True)


@pytest.mark.parametrize("wire", WIRES)
@requirement("stream.alive")
def test_an_error_after_keep_alives_is_sent_inside_the_stream(tmp_path: Path, wire: str) -> None:
    hang = Hang()
    with deepseek(faults=[hang]) as provider, sightline(tmp_path, provider.url, patience=0.01) as proxy:
        body = streamed(wire, [{"role": "user", "content": "hi"}])  # model "m" does not exist there
        with plug(proxy.url) as connection:
            connection.sendall(head(PATHS[wire], len(body)) + body)
            seen = until(connection, b"waiting" if wire == "chat" else b"ping")
            hang.release()
            seen += until(connection, b"\r\n0\r\n\r\n")
    assert b"The model `m` does not exist." in seen


@pytest.mark.parametrize("wire", WIRES)
@requirement("fault.refused")
def test_a_refused_connection_is_503_with_retry_after(tmp_path: Path, wire: str) -> None:
    with nobody_listens() as nobody, sightline(tmp_path, nobody) as proxy:
        answer = exchange(proxy.url, PATHS[wire], json.dumps(HELLO).encode())
    error = json.loads(answer.body)["error"]
    assert answer.status == 503
    assert dict(answer.headers)["retry-after"] == "2"
    assert re.match(rf"Sightline: .*{nobody.removeprefix('http://')} .*\(.+\)", error["message"])
    assert error["type"] == {"messages": "api_error", "chat": "server_error"}[wire]


@pytest.mark.parametrize("fault", [Refuse(), Reset()], ids=["closed", "reset in the headers"])
@requirement("fault.refused")
def test_an_upstream_that_closes_the_connection_is_503(tmp_path: Path, fault: Fault) -> None:
    with Provider(faults=[fault]) as provider, sightline(tmp_path, provider.url) as proxy:
        assert exchange(proxy.url, "/v1/messages", json.dumps(HELLO).encode()).status == 503
        assert exchange(proxy.url, "/v1/messages", json.dumps(HELLO).encode()).status == 200


@pytest.mark.parametrize("status", [429, 500, 529])
@requirement("pass.routes")
def test_an_upstream_error_keeps_its_status(tmp_path: Path, status: int) -> None:
    fault = Fail(status=status, retry_after=7)
    with Provider(faults=[fault, fault]) as provider, sightline(tmp_path, provider.url) as proxy:
        body = json.dumps(HELLO | {"messages": pasted_message(PICTURE)}).encode()
        direct = exchange(provider.url, "/v1/messages", body)
        relayed = exchange(proxy.url, "/v1/messages", body)
    assert (relayed.status, relayed.body) == (direct.status, direct.body)
    assert dict(relayed.headers)["retry-after"] == "7"


@pytest.mark.parametrize("after", [None, 2], ids=["before the answer", "amid the stream"])
@pytest.mark.parametrize("wire", WIRES)
@requirement("fault.leaves")
def test_a_disconnect_cancels_the_upstream_request(tmp_path: Path, wire: str, after: int | None) -> None:
    hang = Hang(after=after)
    with Provider(faults=[hang]) as provider, sightline(tmp_path, provider.url) as proxy:
        body = streamed(wire, [{"role": "user", "content": "hi"}])
        with plug(proxy.url) as connection:
            connection.sendall(head(PATHS[wire], len(body)) + body)
            hang.reached.result(30)
        assert provider.exchanges[0].abandoned


@requirement("fault.leaves")
def test_a_disconnect_is_noticed_after_a_streamed_body(tmp_path: Path) -> None:
    hang = Hang()
    with Provider(faults=[hang]) as provider, sightline(tmp_path, provider.url) as proxy:
        body = b"x" * 2_000_000
        with plug(proxy.url) as connection:
            connection.sendall(head("/v1/files", len(body)) + body)
            hang.reached.result(30)
        assert provider.exchanges[0].abandoned


@requirement("fault.leaves")
@pytest.mark.usefixtures("no_local_reader")
def test_a_disconnect_cancels_the_description(tmp_path: Path) -> None:
    hang = Hang(model="deepseek-flash")
    with deepseek(faults=[hang]) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        asked = {"model": "deepseek-v4-pro", "messages": pasted_chat(PICTURE)}
        body, path = json.dumps(asked).encode(), "/u/deepseek/v1/chat/completions"
        with plug(proxy.url) as connection:
            connection.sendall(head(path, len(body)) + body)
            hang.reached.result(30)
        assert provider.exchanges[-1].abandoned
        assert provider.asked("deepseek-v4-pro") == []


@requirement("fault.seer")
@pytest.mark.usefixtures("no_local_reader")
def test_a_seer_that_closes_the_connection_costs_one_sentence(tmp_path: Path) -> None:
    faults = [Reset(model="deepseek-flash"), Reset(model="deepseek-flash")]
    with deepseek(faults=faults) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        assert ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE)) == "I see no image."
        assert len(provider.asked("deepseek-flash")) == 2, "tried once more"
        sent = provider.asked("deepseek-v4-pro")[0].body
    assert b"deepseek/deepseek-flash " in sent
    assert NOT_SHOWN.encode() in sent


@pytest.mark.parametrize("data", ["!!! not base64 !!!", "iVBORw0KGgo" + "%" * 9000, ""])
@requirement("bad.base64")
def test_invalid_base64_in_an_image_block_becomes_one_sentence(tmp_path: Path, data: str) -> None:
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    messages = [{"role": "user", "content": [block, {"type": "text", "text": "?"}]}]
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}") as proxy:
        assert ask_messages(proxy.url, "claude-opus-5-5", messages) == "I see no image."
        assert NOT_SHOWN.encode() in provider.exchanges[0].body


@requirement("receipts")
def test_a_receipt_says_what_was_done_without_keys(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        ask_messages(f"{proxy.url}/u/deepseek", "claude-opus-x", pasted_message(PICTURE))
        said = [str(receipt) for receipt in proxy.receipts]
    assert said == ["claude-opus-x at deepseek: described by deepseek/deepseek-flash (the model takes no images)"]
    assert KEY not in repr(proxy.receipts)
