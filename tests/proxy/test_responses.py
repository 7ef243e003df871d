"""The Responses wire through the proxy, with OpenAI's own SDK."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.proxy.clients import KEY, Json
from tests.proxy.raw_http import exchange, head, plug, until
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Cut, Hang
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek, nobody_listens
from tests.wire.test_openai_responses import call, output, picture, text, user, words

COLOURS, OTHERS = some_colours(41), some_colours(42)
PICTURE, OTHER = paint_quadrants(COLOURS), paint_quadrants(OTHERS)
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
HELLO: Json = {"model": "m", "input": "hi"}
PATH = "/v1/responses"


def shot(data: bytes, mime: str = "image/png") -> dict[str, Any]:
    return picture(b64encode(data).decode(), mime, detail="auto")


PASTED = [user(text("Name the quadrants."), shot(PICTURE))]
READ = [
    user(text("Read the pictures.")), call("c1"), call("c2"),
    output("c2", text("read"), shot(OTHER)), output("c1", text("read"), shot(PICTURE)),
]  # fmt: skip


def ask(base: str, model: str, given: Any, *, stream: bool = False, **more: Any) -> str:
    with openai.OpenAI(base_url=f"{base}/v1", api_key=KEY, max_retries=0) as client:
        if not stream:
            return str(client.responses.create(model=model, input=given, **more).output_text)
        with client.responses.stream(model=model, input=given, **more) as events:
            for _ in events:
                pass
            return events.get_final_response().output_text


@STREAMS
@requirement("route.responses", "lower.responses", "pass.identity")
def test_images_stay_in_their_outputs_and_the_body_arrives_as_it_came(tmp_path: Path, stream: bool) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        said = ask(proxy.url, "some-model", READ, stream=stream)
        assert said.index(describe_quadrants(OTHERS)) < said.index(describe_quadrants(COLOURS))
        body = json.dumps({"model": "m", "input": READ}, indent=1).encode()
        exchange(proxy.url, PATH, body)
        assert provider.exchanges[-1].body == body


@STREAMS
@requirement("lower.upstream_departs", "profile.models.more")
def test_images_are_hoisted_if_the_upstream_drops_them_in_outputs(tmp_path: Path, stream: bool) -> None:
    setting = {"SIGHTLINE_MODELS": json.dumps({"some-model": {"toolResultImages": False}})}
    with Provider(tool_images="dropped") as provider, sightline(tmp_path, provider.url, env=setting) as proxy:
        said = ask(proxy.url, "some-model", READ, stream=stream)
        assert said.index(describe_quadrants(COLOURS)) < said.index(describe_quadrants(OTHERS))
        sent = json.loads(provider.exchanges[-1].body)["input"]
    assert [item["type"] for item in sent[3:]] == ["function_call_output", "function_call_output", "message"]


@STREAMS
@requirement("tell.sibling", "route.responses")
def test_a_blind_model_gets_a_description_through_the_chat_wire(tmp_path: Path, stream: bool) -> None:
    with deepseek(key=KEY) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        said = ask(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", READ, stream=stream)
        assert f"I was told: image 1 of 1: {describe_quadrants(COLOURS)}" in said
        assert f"I was told: image 1 of 1: {describe_quadrants(OTHERS)}" in said
        looks = provider.asked("deepseek-flash")
        assert {one.path for one in looks} == {"/v1/chat/completions"}
        assert b'filename=\\"c1.png\\"' in provider.asked("deepseek-v4-pro")[-1].body


def test_an_image_that_a_library_wrote_into_a_text_is_seen(tmp_path: Path) -> None:
    stringified = json.dumps(
        [{"type": "text", "text": "here"}, {"type": "image-data", "data": b64encode(PICTURE).decode()}]
    )
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert (
            ask(proxy.url, "m", [call("c1"), words("c1", stringified)])
            == f"image 1 of 1: {describe_quadrants(COLOURS)}"
        )


@requirement("recover.blind")
def test_a_rejection_teaches_that_a_model_is_blind(tmp_path: Path) -> None:
    off = {"SIGHTLINE_SEER": "off"}
    with Provider((("*", "ollama"),)) as provider, sightline(tmp_path, provider.url, env=off) as proxy:
        for requests in (2, 3):
            assert ask(proxy.url, "some-model", PASTED) == "I see no image."
            assert len(provider.exchanges) == requests


@requirement("route.count")
def test_a_count_gets_the_same_edits_without_a_paid_description(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        body = json.dumps({"model": "deepseek-v4-pro", "input": PASTED}).encode()
        exchange(f"{proxy.url}", "/u/deepseek/v1/responses/input_tokens", body)
        assert b"base64" not in provider.exchanges[-1].body
        assert provider.asked("deepseek-flash") == []


@requirement("fault.cut", "stream.broken")
@pytest.mark.parametrize("cut", [Cut(after=1), Cut(after=4, reset=True)], ids=["closed", "reset"])
def test_a_stream_that_breaks_off_raises_in_the_official_client(tmp_path: Path, cut: Cut) -> None:
    with Provider(faults=[cut, cut]) as provider, sightline(tmp_path, provider.url) as proxy:
        with pytest.raises(openai.APIError, match="broke off"):
            ask(proxy.url, "m", PASTED, stream=True)
        body = json.dumps({"model": "m", "stream": True, "input": PASTED}).encode()
        got = exchange(proxy.url, PATH, body).body
    last = json.loads(got.rstrip().rpartition(b"data: ")[2])
    assert last["type"] == "response.failed", "some clients wait for the end of a response"
    assert "broke off" in last["response"]["error"]["message"]


@requirement("stream.alive")
def test_an_error_after_keep_alives_is_inside_the_stream(tmp_path: Path) -> None:
    hang = Hang()
    body = json.dumps({**HELLO, "stream": True}).encode()
    with deepseek(faults=[hang]) as provider, sightline(tmp_path, provider.url, patience=0.01) as proxy:
        with plug(proxy.url) as connection:
            connection.sendall(head(PATH, len(body)) + body)
            seen = until(connection, b": sightline is waiting\n\n")
            hang.release()
            seen += until(connection, b"\r\n0\r\n\r\n")
        assert b"event: error" in seen
        assert b"The model `m` does not exist." in seen
        # The official SDK takes the keep-alives as what they are.
        again = Hang()
        provider.faults.append(again)
        again.reached.add_done_callback(lambda _: again.release())
        assert ask(proxy.url, "deepseek-flash", PASTED, stream=True) == f"image 1 of 1: {describe_quadrants(COLOURS)}"


@requirement("fault.refused")
def test_a_refused_connection_is_503_in_the_shape_of_the_wire(tmp_path: Path) -> None:
    with nobody_listens() as nobody, sightline(tmp_path, nobody) as proxy:
        answer = exchange(proxy.url, PATH, json.dumps(HELLO).encode())
        with pytest.raises(openai.InternalServerError, match="Sightline: "):
            ask(proxy.url, "m", "hi")
    error = json.loads(answer.body)["error"]
    assert (answer.status, error["type"], error["code"]) == (503, "server_error", "sightline")


@requirement("stream.identity")
@pytest.mark.parametrize("given", ["hi", PASTED], ids=["without", "with an image"])
def test_a_stream_is_relayed_byte_for_byte(tmp_path: Path, given: Any) -> None:
    body = json.dumps({"model": "m", "stream": True, "input": given}).encode()
    with Provider() as provider, sightline(tmp_path, provider.url, env={"SIGHTLINE_REFERENCES": "off"}) as proxy:
        assert exchange(proxy.url, PATH, body).body == exchange(provider.url, PATH, body).body
