"""The scripted provider is honest: it sees only in image position, and misbehaves only when told."""

import base64
import http.client
import io
import json
import os
import signal
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from tests.scripted import pictures
from tests.scripted.eye import PALETTE, describe_quadrants, look
from tests.scripted.faults import Break, Cut, Fail, Fault, Hang, Refuse, Reset
from tests.scripted.limits import ANTHROPIC_WORDS, APPEARS_TO_BE, BEDROCK, Limits
from tests.scripted.models import SEES, WORDINGS
from tests.scripted.provider import Provider, deepseek, nobody_listens
from tests.scripted.talk import Call

COLOURS = pictures.some_colours(7)
OTHERS = pictures.some_colours(8)
ANSWER = describe_quadrants(COLOURS)
Json = dict[str, Any]


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def block(data: bytes, media_type: str = "image/png") -> Json:
    source = {"type": "base64", "media_type": media_type, "data": encoded(data)}
    return {"type": "image", "source": source}


def part(data: bytes, media_type: str = "image/png") -> Json:
    return {"type": "image_url", "image_url": {"url": f"data:{media_type};base64,{encoded(data)}"}}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def user(*content: Json) -> Json:
    return {"role": "user", "content": list(content)}


PICTURE = pictures.paint_quadrants(COLOURS)
QUESTION = {
    "messages": user(text("What is this?"), block(PICTURE)),
    "chat": user(text("What?"), part(PICTURE)),
}


def post(provider: Provider, path: str, body: object, headers: dict[str, str] | None = None) -> tuple[int, Json]:
    """One request, and the JSON of its answer."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection = http.client.HTTPConnection(provider.url.removeprefix("http://"), timeout=30)
    try:
        connection.request("POST", path, data, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions"}


def ask(
    provider: Provider, wire: str, *messages: Json, model: str = "claude-sonnet", **fields: object
) -> tuple[int, Json]:
    """A conversation on one of the two wires, without a stream."""
    return post(provider, PATHS[wire], {"model": model, "max_tokens": 99, "messages": list(messages), **fields})


def said(wire: str, answer: Json) -> str:
    return str(answer["content"][0]["text"] if wire == "messages" else answer["choices"][0]["message"]["content"])


def message_of(answer: Json) -> str:
    error = answer.get("error") or answer["detail"][0]
    return str(error.get("message") or error["msg"])


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as serving:
        yield serving


# The eye


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp", "gif"])
def test_quadrants_are_named_in_every_format_and_after_a_resize(kind: str) -> None:
    for colours in (COLOURS, OTHERS):
        small = Image.open(io.BytesIO(pictures.paint_quadrants(colours, (1500, 900), kind))).convert("RGB")
        shrunk = pictures.encode(small.resize((97, 61)), "jpeg", quality=40)
        for data in (pictures.paint_quadrants(colours, kind=kind), shrunk):
            seen = look(data)
            assert seen is not None
            assert seen.quadrants == colours


def test_each_palette_colour_is_distinguished() -> None:
    assert len(PALETTE) == 24
    for name in PALETTE:
        seen = look(pictures.paint_quadrants([name] * 4, (40, 40), "jpeg", quality=50))
        assert seen is not None
        assert seen.quadrants == (name,) * 4


def test_a_quadrant_that_is_not_one_colour_has_no_name() -> None:
    first, second = (PALETTE[name] for name in COLOURS[:2])
    striped = Image.new("RGB", (200, 200), first)
    for x in range(0, 200, 10):
        striped.paste(second, (x, 0, x + 5, 200))
    seen = look(pictures.encode(striped))
    assert seen is not None
    assert seen.quadrants is None


@pytest.mark.parametrize("scale", [1, 2, 3])
def test_lines_are_read_from_the_pixels(scale: int) -> None:
    lines = (
        "Traceback (most recent call last):",
        '  File "app.py", line 3',
        "KeyError: 'colour' ~!@#$%^&*|_",
    )
    seen = look(pictures.paint_lines(lines, scale, ink=(220, 220, 220), paper=(12, 16, 20)))
    assert seen is not None
    assert seen.lines == tuple(line.strip() for line in lines)


WORD = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=2, max_size=9)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.lists(WORD, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4))
def test_painted_text_is_read_back(lines: list[str]) -> None:
    seen = look(pictures.paint_lines(lines))
    assert seen is not None
    assert seen.lines == tuple(lines)


def test_the_bad_images_match_their_names() -> None:
    wide, heavy = look(pictures.too_wide(COLOURS)), pictures.too_heavy(COLOURS)
    assert wide is not None
    assert (wide.width, wide.quadrants) == (8001, COLOURS)
    assert 11_000_000 <= len(heavy) < 13_000_000
    seen = look(heavy)
    assert seen is not None
    assert seen.quadrants == COLOURS
    assert pictures.undecodable_png().startswith(b"\x89PNG\r\n\x1a\n")
    assert pictures.truncated_jpeg().startswith(b"\xff\xd8\xff")
    for broken in (pictures.undecodable_png(), pictures.truncated_jpeg(), pictures.html_page()):
        assert look(broken) is None


# The official clients


def by_openai(provider: Provider, *, stream: bool) -> str:
    with openai.OpenAI(base_url=provider.url + "/v1", api_key="k", max_retries=0) as client:
        messages: Any = [QUESTION["chat"]]
        if not stream:
            whole = client.chat.completions.create(model="gpt-x", messages=messages)
            assert whole.usage is not None
            return whole.choices[0].message.content or ""
        chunks = list(
            client.chat.completions.create(
                model="gpt-x", messages=messages, stream=True, stream_options={"include_usage": True}
            )
        )
        assert chunks[-1].usage is not None
        assert chunks[-2].choices[0].finish_reason == "stop"
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1])


def by_anthropic(provider: Provider, *, stream: bool) -> str:
    with anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0) as client:
        messages: Any = [QUESTION["messages"]]
        if stream:
            with client.messages.stream(model="claude-x", max_tokens=99, messages=messages) as events:
                whole: anthropic.types.Message = events.get_final_message()
        else:
            whole = client.messages.create(model="claude-x", max_tokens=99, messages=messages)
        assert whole.stop_reason == "end_turn"
        assert whole.usage.output_tokens > 1
        return "".join(one.text for one in whole.content if one.type == "text")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("gzip", [False, True])
def test_the_openai_client_reads_all_four_quadrants(stream: bool, gzip: bool) -> None:
    with Provider(gzip=gzip) as provider:
        assert by_openai(provider, stream=stream) == f"image 1 of 1: {ANSWER}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("gzip", [False, True])
def test_the_anthropic_client_reads_all_four_quadrants(stream: bool, gzip: bool) -> None:
    with Provider(gzip=gzip) as provider:
        assert by_anthropic(provider, stream=stream) == f"image 1 of 1: {ANSWER}"


CALLS = (Call("shoot", {"path": "/tmp/ä.png"}), Call("shoot", {"path": "/tmp/b.png"}))


def test_the_openai_client_is_called_in_parallel_and_then_answered() -> None:
    with Provider(script=[CALLS]) as provider, openai.OpenAI(base_url=provider.url, api_key="k") as client:
        tools: Any = [{"type": "function", "function": {"name": "shoot", "parameters": {"type": "object"}}}]
        first = client.chat.completions.create(
            model="gpt-x", messages=[{"role": "user", "content": "Look."}], tools=tools
        )
        stream: Any = client.chat.completions.stream(
            model="gpt-x", messages=[{"role": "user", "content": "Look."}], tools=tools
        )
        with stream as events:
            streamed = events.get_final_completion()
        asked = first.choices[0].message
        assert asked.tool_calls is not None
        functions: list[Any] = [call.function for call in asked.tool_calls if call.type == "function"]
        assert [json.loads(one.arguments) for one in functions] == [dict(call.arguments) for call in CALLS]
        assert [call.id for call in streamed.choices[0].message.tool_calls] == [c.id for c in asked.tool_calls]
        results = [{"role": "tool", "tool_call_id": call.id, "content": "shot"} for call in asked.tool_calls]
        history = [user(text("Look.")), asked.model_dump(exclude_none=True), *results]
        shown = user(text("1"), part(PICTURE), text("2"), part(pictures.paint_quadrants(OTHERS)))
        _, answer = ask(provider, "chat", *history, shown, tools=tools)
        assert said("chat", answer).splitlines() == [
            f"image 1 of 2: {ANSWER}",
            f"image 2 of 2: {describe_quadrants(OTHERS)}",
        ]


def test_the_anthropic_client_is_called_in_parallel_and_then_answered() -> None:
    with (
        Provider(script=[CALLS]) as provider,
        anthropic.Anthropic(base_url=provider.url, api_key="k") as client,
    ):
        tools: Any = [{"name": "shoot", "input_schema": {"type": "object"}}]
        with client.messages.stream(
            model="claude-x", max_tokens=99, tools=tools, messages=[{"role": "user", "content": "Look."}]
        ) as events:
            first = events.get_final_message()
        calls = [one for one in first.content if one.type == "tool_use"]
        assert [one.input for one in calls] == [dict(call.arguments) for call in CALLS]
        shots = (PICTURE, pictures.paint_quadrants(OTHERS, kind="webp"))
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": [text("shot"), block(shot, kind)]}
            for call, shot, kind in zip(calls, shots, ("image/png", "image/webp"), strict=True)
        ]
        history: Any = [
            {"role": "user", "content": "Look."},
            {"role": "assistant", "content": first.content},
            {"role": "user", "content": results},
        ]
        whole = client.messages.create(model="claude-x", max_tokens=99, tools=tools, messages=history)
        assert ANSWER in str(whole.content)
        assert describe_quadrants(OTHERS) in str(whole.content)


# Only in image position


@pytest.mark.parametrize("wire", PATHS)
def test_base64_in_text_position_shows_nothing(provider: Provider, wire: str) -> None:
    leaked = f'[{{"type":"media","data":"{encoded(PICTURE)}"}}] data:image/png;base64,{encoded(PICTURE)}'
    _, answer = ask(provider, wire, user(text(leaked)))
    assert said(wire, answer) == "I see no image."


@pytest.mark.parametrize("wire", PATHS)
def test_a_fence_is_repeated_by_a_blind_model(wire: str) -> None:
    fence = f'<vision_proxy_description image="sha256:00" width="320">\n{ANSWER}\n</vision_proxy_description>'
    with Provider([("*", "ollama")]) as provider:
        _, answer = ask(provider, wire, user(text("What is this?"), text(f"An image:\n{fence}")))
        assert said(wire, answer) == f"I was told: {ANSWER}"


def test_an_image_in_a_tool_message_is_refused_on_chat(provider: Provider) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "shoot", "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    result = {"role": "tool", "tool_call_id": "c1", "content": [part(PICTURE)]}
    status, answer = ask(provider, "chat", user(text("Look.")), asked, result)
    assert status == 400
    assert "this message with role 'tool' contains an image URL" in message_of(answer)


# Blind models


@pytest.mark.parametrize("wire", PATHS)
@pytest.mark.parametrize("wording", WORDINGS)
def test_a_blind_model_rejects_an_image_and_answers_text(wire: str, wording: str) -> None:
    with Provider([("blind", wording), ("*", SEES)]) as provider:
        history = (user(text("Hello.")), {"role": "assistant", "content": "Yes?"}, QUESTION[wire])
        status, answer = ask(provider, wire, *history, model="blind")
        kind = "image" if wire == "messages" else "image_url"
        expected = WORDINGS[wording]
        assert status == expected.status
        assert message_of(answer) == expected.message.format(part=kind, index=2)
        assert ask(provider, wire, user(text("Hello.")), model="blind")[0] == 200
        assert ask(provider, wire, *history, model="other")[0] == 200


def test_deepseek_is_blind_under_one_name_and_sees_under_the_other() -> None:
    with deepseek() as provider:
        for wire, blind, seeing in (
            ("messages", "claude-opus-x", "claude-sonnet-x"),
            ("chat", "deepseek-v4-pro", "deepseek-flash"),
        ):
            assert "unknown variant `image" in message_of(ask(provider, wire, QUESTION[wire], model=blind)[1])
            assert ANSWER in said(wire, ask(provider, wire, QUESTION[wire], model=seeing)[1])
        assert ask(provider, "chat", QUESTION["chat"], model="gpt-4o")[0] == 404
        assert len(provider.asked("deepseek-flash")) == 1


# Limits


def limit_cases() -> Iterator[tuple[str, list[Json], Limits, str]]:
    heavy = pictures.too_heavy(COLOURS, 4_200_000)
    size = len(encoded(heavy))
    where = "messages.0.content.1.image.source.base64"
    over = f"{where}: image exceeds 5 MB maximum: {size} bytes > 5242880 bytes"
    yield "bytes", [block(heavy)], BEDROCK, over
    wide = f"{where}.data: At least one of the image dimensions exceed max allowed size: 8000 pixels"
    yield "edge", [block(pictures.too_wide(COLOURS))], BEDROCK, wide
    many = "messages.0.content.21.image.source.base64.data: At least one of the image dimensions exceed max "
    many += "allowed size for many-image requests: 2000 pixels"
    large = pictures.paint_quadrants(COLOURS, (2001, 90))
    yield "many", [block(PICTURE)] * 20 + [block(large)], BEDROCK, many
    for broken in (pictures.undecodable_png(), pictures.html_page(), pictures.truncated_jpeg()):
        declared = "image/jpeg" if broken.startswith(b"\xff") else "image/png"
        yield "pixels", [block(broken, declared)], BEDROCK, "Could not process image"
    lie = block(pictures.paint_quadrants(COLOURS, kind="jpeg"))
    yield "mismatch", [lie], BEDROCK, f"{where}.data: Image does not match the provided media type image/png"
    second = Limits(words={**ANTHROPIC_WORDS, "mismatch": APPEARS_TO_BE})
    appears = f"{where}: The image was specified using the image/png media type, but the image appears to be a "
    yield "mismatch", [lie], second, appears + "image/jpeg image"
    bmp = block(pictures.paint_quadrants(COLOURS, kind="bmp"), "image/bmp")
    enum = "Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
    yield "format", [bmp], BEDROCK, f"{where}.media_type: {enum}"
    yield (
        "base64",
        [{**lie, "source": {**lie["source"], "data": "*" * 40}}],
        BEDROCK,
        f"{where}: invalid base64 data",
    )


def test_each_limit_is_refused_in_its_wording() -> None:
    for name, blocks, limits, expected in limit_cases():
        with Provider(messages_limits=limits) as provider:
            status, answer = ask(provider, "messages", user(text("What?"), *blocks))
            assert (name, status, message_of(answer)) == (name, 400, expected)


def test_twenty_large_images_pass_and_twenty_one_do_not(provider: Provider) -> None:
    large = block(pictures.paint_quadrants(COLOURS, (2001, 90)))
    assert ask(provider, "messages", user(*[large] * 20))[0] == 200
    assert ask(provider, "messages", user(*[large] * 21))[0] == 400


def test_a_request_of_more_than_32_mb_is_refused(provider: Provider) -> None:
    status, answer = ask(provider, "messages", user(text("x" * 33 * 1024 * 1024)))
    assert (status, answer["error"]["type"]) == (413, "request_too_large")


# Pairing


def use(*ids: str) -> Json:
    calls = [{"type": "tool_use", "id": one, "name": "shoot", "input": {}} for one in ids]
    return {"role": "assistant", "content": calls}


def result(one: str) -> Json:
    return {"type": "tool_result", "tool_use_id": one, "content": "shot"}


MISSING = "`tool_use` ids were found without `tool_result` blocks immediately after: b"


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([use("a", "b"), user(result("a"), result("b"))], None),
        ([use("a", "b"), user(result("b"), result("a"), text("and?"))], None),
        ([use("a"), {"role": "system", "content": "note"}, user(result("a"))], None),
        ([use("a", "b"), user(result("a"))], MISSING),
        ([use("a", "b"), user(result("a"), text("and?"), result("b"))], MISSING),
        ([use("a", "b"), user(result("a")), user(result("b"))], MISSING),
        ([use("b")], MISSING),
        ([user(result("z"))], "unexpected `tool_use_id` found in `tool_result` blocks: z"),
        ([user(part(PICTURE))], "Input tag 'image_url' found using 'type' does not match"),
        ([user(text(""))], "text content blocks must be non-empty"),
    ],
)
def test_messages_pairs_calls_with_results(provider: Provider, history: list[Json], expected: str | None) -> None:
    status, answer = ask(provider, "messages", user(text("Look.")), *history)
    assert status == (400 if expected else 200)
    assert not expected or expected in message_of(answer)


def calling(*ids: str) -> Json:
    calls = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answering(one: str) -> Json:
    return {"role": "tool", "tool_call_id": one, "content": "shot"}


UNANSWERED = "The following tool_call_ids did not have response messages: b"


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([calling("a", "b"), answering("b"), answering("a"), user(text("and?"))], None),
        ([calling("a", "b"), answering("a"), user(text("image of a")), answering("b")], UNANSWERED),
        ([calling("a", "b"), answering("a")], UNANSWERED),
        ([calling("b"), user(text("no"))], UNANSWERED),
        ([answering("z")], "messages with role 'tool' must be a response to a preceeding message"),
        ([calling("a"), answering("a"), answering("a")], "messages with role 'tool' must be a response"),
        ([{"role": "user", "content": [text("x"), None]}], "expected an object, but got null"),
        ([user(block(PICTURE))], "Invalid value: 'image'"),
    ],
)
def test_chat_pairs_calls_with_results(provider: Provider, history: list[Json], expected: str | None) -> None:
    status, answer = ask(provider, "chat", user(text("Look.")), *history)
    assert status == (400 if expected else 200)
    assert not expected or expected in message_of(answer)


# Faults


@contextmanager
def begun(provider: Provider, body: object) -> Iterator[http.client.HTTPConnection]:
    """A connection with a chat request under way."""
    with closing(http.client.HTTPConnection(provider.url.removeprefix("http://"), timeout=30)) as connection:
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        yield connection


STREAM = {"model": "gpt-x", "stream": True, "messages": [QUESTION["chat"]]}
WHOLE = {**STREAM, "stream": False}


@pytest.mark.parametrize("fault", [Refuse(), Reset(), Refuse(model="gpt-*")])
def test_a_connection_can_fail_before_the_headers(fault: Fault) -> None:
    with Provider(faults=[fault]) as provider:
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            post(provider, PATHS["chat"], WHOLE)
        assert ask(provider, "chat", QUESTION["chat"])[0] == 200


@pytest.mark.parametrize("reset", [False, True])
def test_a_stream_can_be_cut_after_some_events(reset: bool) -> None:
    with Provider(faults=[Cut(3, reset=reset)]) as provider, begun(provider, STREAM) as connection:
        response = connection.getresponse()
        with pytest.raises((http.client.IncompleteRead, ConnectionResetError)) as caught:
            response.read()
        assert reset or str(getattr(caught.value, "partial", "")).count("data: ") == 3
        assert provider.exchanges[0].end.result(10) == "cut"


def test_a_whole_answer_can_be_cut() -> None:
    with Provider(faults=[Cut()]) as provider, begun(provider, WHOLE) as connection:
        response = connection.getresponse()
        with pytest.raises(http.client.IncompleteRead):
            response.read()


def test_a_hanging_answer_continues_when_it_is_released() -> None:
    before, amid = Hang(), Hang(2)
    with Provider(faults=[before, None, amid]) as provider:
        with begun(provider, STREAM) as connection:
            before.reached.result(10)
            assert not provider.exchanges[0].end.done()
            before.release()
            assert connection.getresponse().read().endswith(b"data: [DONE]\n\n")
        assert ask(provider, "chat", QUESTION["chat"])[0] == 200
        with begun(provider, STREAM) as connection:
            response = connection.getresponse()
            assert b"assistant" in response.readline()
            amid.reached.result(10)
            assert not provider.exchanges[2].end.done()
            amid.release()
            assert response.read().endswith(b"data: [DONE]\n\n")
        assert not provider.exchanges[2].abandoned


@pytest.mark.parametrize("hang", [Hang(), Hang(2)])
def test_a_disconnected_client_is_noticed(hang: Hang) -> None:
    with Provider(faults=[hang]) as provider:
        with begun(provider, STREAM):
            hang.reached.result(10)
        assert provider.exchanges[0].abandoned
        hang.release()
        assert ask(provider, "chat", QUESTION["chat"])[0] == 200


@pytest.mark.parametrize("status", [429, 500, 529])
def test_a_provider_can_be_busy(status: int) -> None:
    with Provider(faults=[Fail(status, retry_after=5), Fail(status)]) as provider:
        with begun(provider, WHOLE) as connection:
            response = connection.getresponse()
            assert (response.status, response.getheader("retry-after")) == (status, "5")
        with (
            anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0) as client,
            pytest.raises(anthropic.APIStatusError) as caught,
        ):
            client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])
        assert caught.value.status_code == status


def test_a_fault_waits_for_the_model_that_it_is_meant_for() -> None:
    with Provider(faults=[Fail(500, model="small-*")]) as provider:
        assert ask(provider, "chat", QUESTION["chat"], model="large")[0] == 200
        assert ask(provider, "chat", QUESTION["chat"], model="small-1")[0] == 500
        assert ask(provider, "chat", QUESTION["chat"], model="small-1")[0] == 200


def test_a_stream_can_break_with_an_error_event() -> None:
    with (
        Provider(faults=[Break(3)]) as provider,
        anthropic.Anthropic(base_url=provider.url, api_key="k", max_retries=0) as client,
        pytest.raises(anthropic.APIStatusError, match="Overloaded"),
        client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]) as events,
    ):
        events.get_final_message()


def test_a_refused_address_has_no_listener() -> None:
    with nobody_listens() as url:
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        with pytest.raises(ConnectionRefusedError):
            connection.connect()


# The rest of the face


def test_requests_are_recorded_and_echoed_byte_for_byte(provider: Provider) -> None:
    connection = http.client.HTTPConnection(provider.url.removeprefix("http://"), timeout=30)
    connection.putrequest("PUT", "/v1/any%20thing?a=%2F&a=2", skip_accept_encoding=True)
    for name, value in (
        ("User-Agent", "one"),
        ("User-Agent", "two"),
        ("X-CaSe", "kept"),
        ("content-length", "3"),
    ):
        connection.putheader(name, value)
    connection.endheaders(b"\x00\xff\n")
    response = connection.getresponse()
    echo = json.loads(response.read())
    connection.close()
    assert response.headers.get_all("set-cookie") == ["first=1", "second=2"]
    assert (echo["method"], echo["path"], echo["query"]) == ("PUT", "/v1/any thing", "a=%2F&a=2")
    assert [pair for pair in echo["headers"] if pair[0] != "Host"] == [
        ["User-Agent", "one"],
        ["User-Agent", "two"],
        ["X-CaSe", "kept"],
        ["content-length", "3"],
    ]
    exchange = provider.exchanges[0]
    assert (exchange.target, exchange.body) == (b"/v1/any%20thing?a=%2F&a=2", b"\x00\xff\n")
    assert exchange.header("user-agent") == ["one", "two"]


def test_tokens_are_counted_and_prefixes_allowed(provider: Provider) -> None:
    body = {"model": "m", "messages": [QUESTION["messages"]]}
    assert post(provider, "/anthropic/v1/messages/count_tokens?beta=true", body)[1]["input_tokens"] > 1000
    assert post(provider, "/anthropic/v1/messages?beta=true", {**body, "max_tokens": 9})[0] == 200
    assert post(provider, "/chat/completions", {**body, "messages": [QUESTION["chat"]]})[0] == 200


def test_a_body_may_come_compressed_and_broken_json_is_refused(provider: Provider) -> None:
    data = json.dumps(WHOLE).encode()
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(data) + packer.flush()
    status, answer = post(provider, PATHS["chat"], packed, {"content-encoding": "gzip"})
    assert ANSWER in said("chat", answer)
    assert status == 200
    assert post(provider, PATHS["chat"], data[:-2])[0] == 400
    assert post(provider, PATHS["messages"], packed)[0] == 400


def test_only_the_right_key_is_accepted() -> None:
    with Provider(key="sk-right") as provider:
        body = {"model": "m", "max_tokens": 9, "messages": [user(text("x"))]}
        for headers, expected in (
            ({}, 401),
            ({"authorization": "Bearer sk-wrong"}, 401),
            ({"authorization": "Bearer sk-right"}, 200),
            ({"x-api-key": "sk-right"}, 200),
        ):
            assert post(provider, PATHS["messages"], body, headers)[0] == expected


def test_ollama_lists_its_models_and_their_capabilities() -> None:
    with Provider([("qwen3-vl:4b", SEES), ("gpt-oss:20b", "ollama")]) as provider:
        connection = http.client.HTTPConnection(provider.url.removeprefix("http://"), timeout=30)
        connection.request("GET", "/api/tags")
        tags = json.loads(connection.getresponse().read())
        connection.close()
        assert [model["name"] for model in tags["models"]] == ["qwen3-vl:4b", "gpt-oss:20b"]
        assert "vision" in post(provider, "/api/show", {"model": "qwen3-vl:4b"})[1]["capabilities"]
        assert "vision" not in post(provider, "/api/show", {"model": "gpt-oss:20b"})[1]["capabilities"]
        assert post(provider, "/api/show", {"model": "none"}) == (404, {"error": "model 'none' not found"})


def test_the_command_prints_its_address_and_ends_on_request() -> None:
    command = [sys.executable, "-m", "tests.scripted.provider", "--preset", "deepseek"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": "."}) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=30)
        body = json.dumps({**WHOLE, "model": "deepseek-v4-pro"})
        connection.request("POST", "/v1/chat/completions", body)
        assert connection.getresponse().status == 400
        connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0
