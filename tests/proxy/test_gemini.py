"""The Gemini wire through the proxy: the path names model and stream, and there are no keep-alives."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.clients import KEY
from tests.proxy.raw_http import Got, exchange, head, plug, until
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Cut, Hang
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek, nobody_listens
from tests.wire.test_gemini import answer, body, call, model, picture, snake, text, user

COLOURS, OTHERS = some_colours(51), some_colours(52)
PICTURE, OTHER = paint_quadrants(COLOURS), paint_quadrants(OTHERS)
SEEN = f"image 1 of 1: {describe_quadrants(COLOURS)}"
STREAMS = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])

SHOT = picture(b64encode(PICTURE).decode())
PASTED = body(user(text("Name the quadrants."), SHOT))
READ = body(
    user(text("Read the pictures.")),
    model(call("c1"), call("c2")),
    user(answer("c1", SHOT, output="read"), answer("c2", snake(urlsafe_b64encode(OTHER).decode()), output="read")),
)
READ_SNAKE = json.loads(json.dumps(READ).replace("functionResponse", "function_response"))


def path(name: str, verb: str = "generateContent", version: str = "/v1beta") -> str:
    return f"{version}/models/{name}:{verb}"


def sent(base: str, where: str, given: Any, key: str = KEY) -> Got:
    return exchange(base, where, json.dumps(given).encode(), headers=[("x-goog-api-key", key)])


def words(got: Got) -> str:
    """What the model said, in one piece or in a stream."""
    assert got.status == 200, got.body
    chunks = got.body.split(b"\r\n\r\n") if got.body.startswith(b"data: ") else [got.body]
    shapes = [json.loads(chunk.removeprefix(b"data: ")) for chunk in chunks if chunk]
    return "".join(part["text"] for shape in shapes for part in shape["candidates"][0]["content"]["parts"])


def asked(base: str, name: str, given: Any, *, stream: bool = False, prefix: str = "", key: str = KEY) -> str:
    where = path(name, "streamGenerateContent") + "?alt=sse" if stream else path(name)
    return words(sent(base, prefix + where, given, key))


@STREAMS
@requirement("route.gemini", "lower.gemini3", "pass.identity")
def test_gemini_3_keeps_images_in_their_responses(tmp_path: Path, stream: bool) -> None:
    with Provider() as provider, sightline(tmp_path, f"gemini={provider.url}") as proxy:
        said = asked(proxy.url, "gemini-3-pro", READ, stream=stream)
        assert said.index(describe_quadrants(COLOURS)) < said.index(describe_quadrants(OTHERS))
        assert json.loads(provider.exchanges[-1].body) == READ


@STREAMS
@pytest.mark.parametrize("given", [READ, READ_SNAKE], ids=["camelCase", "snake_case"])
@requirement("lower.gemini25")
def test_gemini_2_5_gets_images_beside_their_responses(tmp_path: Path, stream: bool, given: Any) -> None:
    with Provider() as provider, sightline(tmp_path, f"gemini={provider.url}") as proxy:
        assert sent(provider.url, path("gemini-2.5-pro"), given).status == 400, "as they were they are refused"
        said = asked(proxy.url, "gemini-2.5-pro", given, stream=stream)
        assert said.index(describe_quadrants(COLOURS)) < said.index(describe_quadrants(OTHERS))
        parts = json.loads(provider.exchanges[-1].body)["contents"][-1]["parts"]
    assert ["function" in next(iter(part)) for part in parts] == [True, False, False] * 2


@STREAMS
@requirement("tell.sibling", "route.gemini")
def test_a_blind_model_gets_a_description_through_the_chat_wire(tmp_path: Path, stream: bool) -> None:
    with deepseek(key=KEY) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        said = asked(proxy.url, "deepseek-v4-pro", READ, stream=stream, prefix="/u/deepseek")
        assert f"I was told: image 1 of 1: {describe_quadrants(COLOURS)}" in said
        assert f"I was told: image 1 of 1: {describe_quadrants(OTHERS)}" in said
        looks = provider.asked("deepseek-flash")
        assert {(one.path, *one.header("authorization"), *one.header("x-goog-api-key")) for one in looks} == {
            ("/v1/chat/completions", f"Bearer {KEY}")
        }
        response = json.loads(provider.asked("deepseek-v4-pro")[-1].body)["contents"][-1]["parts"][0][
            "functionResponse"
        ]
    assert response["response"]["output"] == "read"
    assert 'filename="a.png"' in response["response"]["image"]
    assert "parts" not in response


@requirement("upstream.client_key", "seer.credential")
def test_a_key_in_the_query_is_forwarded_and_used_for_the_sibling(tmp_path: Path) -> None:
    with deepseek(key=KEY) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        where = f"/u/deepseek{path('deepseek-v4-pro')}?key={KEY}"
        assert describe_quadrants(COLOURS) in words(exchange(proxy.url, where, json.dumps(PASTED).encode()))
        assert provider.asked("deepseek-v4-pro")[-1].query == f"key={KEY}".encode()


@requirement("dial.lines")
def test_a_key_in_the_query_adds_no_header(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        where = f"/u/deepseek{path('deepseek-v4-pro')}?key=abcd%0d%0aX-Evil:%201"
        exchange(proxy.url, where, json.dumps(PASTED).encode())
        assert provider.asked("deepseek-flash"), "somebody was asked to look"
        assert not [one for one in provider.exchanges if one.header("x-evil")]


@requirement("upstream.key")
def test_an_upstream_key_replaces_every_key_of_the_client(tmp_path: Path) -> None:
    with Provider() as provider:
        upstreams = {"mine": {"baseUrl": {"gemini": provider.url}, "apiKey": "own"}}
        with sightline(tmp_path, env={"SIGHTLINE_UPSTREAMS": json.dumps(upstreams)}) as proxy:
            sent(proxy.url, f"/u/mine{path('m')}?alt=json&key=theirs", PASTED, key="theirs")
        seen = provider.exchanges[-1]
    assert (seen.header("x-goog-api-key"), seen.query) == (["own"], b"alt=json")


@requirement("route.gemini")
@pytest.mark.parametrize("version", ["", "/v1", "/v1beta"])
def test_every_way_to_write_the_path_reaches_the_model(tmp_path: Path, version: str) -> None:
    with Provider() as provider, sightline(tmp_path, f"gemini={provider.url}") as proxy:
        assert words(sent(proxy.url, path("gemini-3-pro", version=version), PASTED)) == SEEN
        assert provider.exchanges[-1].path == path("gemini-3-pro", version=version or "/v1beta")
    with Provider() as provider, sightline(tmp_path, f"gemini={provider.url}/v1beta") as proxy:
        assert words(sent(proxy.url, path("gemini-3-pro", version=version), PASTED)) == SEEN
        assert provider.exchanges[-1].path == path("gemini-3-pro")


@requirement("route.count")
@pytest.mark.parametrize("nested", [False, True])
def test_a_count_gets_the_same_edits_without_a_paid_description(tmp_path: Path, nested: bool) -> None:
    given = {"generateContentRequest": PASTED} if nested else PASTED
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        sent(proxy.url, "/u/deepseek" + path("deepseek-v4-pro", "countTokens"), given)
        assert b"inlineData" not in provider.exchanges[0].body
        assert provider.asked("deepseek-flash") == []
        assert words(sent(proxy.url, "/u/deepseek" + path("deepseek-v4-pro"), PASTED)).startswith("I was told: ")
        before = len(provider.exchanges)
        sent(proxy.url, "/u/deepseek" + path("deepseek-v4-pro", "countTokens"), given)
        assert describe_quadrants(COLOURS).encode() in provider.exchanges[before].body, "what is known counts as it is"


@requirement("stream.gemini")
def test_gemini_clients_get_no_keep_alives(tmp_path: Path) -> None:
    hang = Hang()
    given = json.dumps(PASTED).encode()
    with (
        Provider(faults=[hang]) as provider,
        sightline(tmp_path, provider.url, patience=0.001) as proxy,
        plug(proxy.url) as connection,
    ):
        connection.sendall(head(path("m", "streamGenerateContent") + "?alt=sse", len(given)) + given)
        hang.reached.result(30)
        # Another request goes all the way meanwhile, so the first has had its time to be kept alive.
        assert asked(proxy.url, "m", PASTED, stream=True) == SEEN
        hang.release()
        seen = until(connection, b"\r\n0\r\n\r\n")
    assert b"x-request-id: req_scripted" in seen, "the answer's own headers, not ones that were sent ahead of it"
    assert seen.partition(b"\r\n\r\n")[2].partition(b"\r\n")[2].startswith(b"data: {")


@requirement("fault.cut", "stream.broken")
def test_a_broken_stream_ends_as_with_google(tmp_path: Path) -> None:
    where = path("m", "streamGenerateContent") + "?alt=sse"
    with Provider(faults=[Cut(after=2)]) as provider, sightline(tmp_path, provider.url) as proxy:
        got = sent(proxy.url, where, PASTED)
    error = json.loads(got.body.rpartition(b"\r\n\r\n")[2])["error"]
    assert (error["code"], error["status"]) == (503, "UNAVAILABLE")
    assert "broke off" in error["message"]


@requirement("stream.identity")
@pytest.mark.parametrize("query", ["?alt=sse", ""], ids=["events", "a list"])
def test_a_stream_is_relayed_byte_for_byte(tmp_path: Path, query: str) -> None:
    where = path("m", "streamGenerateContent") + query
    with Provider() as provider, sightline(tmp_path, provider.url, env={"SIGHTLINE_REFERENCES": "off"}) as proxy:
        assert sent(proxy.url, where, PASTED).body == sent(provider.url, where, PASTED).body


@requirement("fault.refused")
def test_a_refused_connection_is_503_in_the_shape_of_the_wire(tmp_path: Path) -> None:
    with nobody_listens() as nobody, sightline(tmp_path, nobody) as proxy:
        got = sent(proxy.url, path("m"), body(user(text("hi"))))
        unknown = sent(proxy.url, "/u/nobody" + path("m"), body(user(text("hi"))))
    error = json.loads(got.body)["error"]
    assert (got.status, error["code"], error["status"]) == (503, 503, "UNAVAILABLE")
    assert json.loads(unknown.body)["error"]["status"] == "INVALID_ARGUMENT"


@requirement("recover.blind")
def test_a_rejection_teaches_that_a_model_is_blind(tmp_path: Path) -> None:
    off = {"SIGHTLINE_SEER": "off"}
    with Provider((("*", "ollama"),)) as provider, sightline(tmp_path, provider.url, env=off) as proxy:
        for requests in (2, 3):
            assert asked(proxy.url, "some-model", PASTED) == "I see no image."
            assert len(provider.exchanges) == requests
