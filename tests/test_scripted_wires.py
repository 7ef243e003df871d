"""The scripted provider on the Responses and Gemini wires: honest pixels, the wires' own rules, the real frames."""

from __future__ import annotations

import base64
import http.client
import io
import json
from typing import Any

import openai
import pytest
from PIL import Image

from sightline.pixels.trial_card import TrialCard
from tests.scripted import pictures
from tests.scripted.eye import describe_quadrants, look
from tests.scripted.faults import Break, Fail
from tests.scripted.models import IGNORES, SEES
from tests.scripted.provider import Provider
from tests.scripted.talk import Call

Json = dict[str, Any]

COLOURS, CODE = pictures.some_colours(7), pictures.some_code(7)
PICTURE = pictures.paint_card(COLOURS, CODE)
ANSWER = f"{describe_quadrants(COLOURS)}\ncode: {CODE}"


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


def url(data: bytes = PICTURE, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{encoded(data)}"


def post(provider: Provider, path: str, body: Json, key: str = "") -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(provider.url.removeprefix("http://"), timeout=30)
    try:
        connection.request("POST", path, json.dumps(body), {"x-goog-api-key": key} if key else {})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


# The code in the middle


@pytest.mark.parametrize("kind", ["png", "jpeg", "webp"])
@pytest.mark.parametrize("size", [(240, 180), (333, 250), (1900, 1100)])
def test_a_code_is_read_at_any_size_and_in_any_format(kind: str, size: tuple[int, int]) -> None:
    seen = look(pictures.paint_card(COLOURS, CODE, size, kind))
    assert seen is not None
    assert (seen.quadrants, seen.code) == (COLOURS, CODE)


def test_no_code_is_read_without_one() -> None:
    for data in (pictures.paint_quadrants(COLOURS), pictures.paint_lines(["ACDEFH"], scale=4), _smeared()):
        seen = look(data)
        assert seen is not None
        assert seen.code is None


def _smeared() -> bytes:
    """A card that was made so small that its letters run together."""
    card = Image.open(io.BytesIO(PICTURE))
    return pictures.encode(card.resize((40, 30), Image.Resampling.LANCZOS))


# The official client of Responses


def responses(provider: Provider, given: list[Json], *, stream: bool = False, **more: Any) -> str:
    with openai.OpenAI(base_url=provider.url + "/v1", api_key="k", max_retries=0) as client:
        if not stream:
            return client.responses.create(model="gpt-x", input=given, **more).output_text  # type: ignore[arg-type]
        with client.responses.stream(model="gpt-x", input=given, **more) as events:  # type: ignore[arg-type]
            kinds = [event.type for event in events]
            whole = events.get_final_response()
        assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
        assert whole.usage is not None
        return whole.output_text


def said(*parts: Json) -> Json:
    return {"role": "user", "content": list(parts)}


def words(text: str) -> Json:
    return {"type": "input_text", "text": text}


def image(data: bytes = PICTURE, kind: str = "image/png") -> Json:
    return {"type": "input_image", "image_url": url(data, kind)}


def called(call_id: str, kind: str = "function_call") -> Json:
    return {"type": kind, "call_id": call_id, "name": "view", "arguments" if kind == "function_call" else "input": "{}"}


def answered(call_id: str, *parts: Json, kind: str = "function_call_output") -> Json:
    return {"type": kind, "call_id": call_id, "output": list(parts)}


@pytest.mark.parametrize("stream", [False, True])
def test_responses_are_answered_from_messages_and_from_outputs(stream: bool) -> None:
    histories: list[list[Json]] = [
        [said(words("What?"), image())],
        [said(words("Look.")), called("c1"), answered("c1", words("here"), image())],
        [
            said(words("Look.")),
            called("c1", "custom_tool_call"),
            answered("c1", image(), kind="custom_tool_call_output"),
        ],
    ]
    with Provider() as provider:
        for history in histories:
            assert responses(provider, history, stream=stream) == f"image 1 of 1: {ANSWER}"


def test_responses_call_tools_in_parallel() -> None:
    calls = (Call("view", {"path": "/ä.png"}), Call("view", {"path": "/b.png"}))
    tools: Any = [{"type": "function", "name": "view", "parameters": {"type": "object"}, "strict": False}]
    with Provider(script=[calls]) as provider, openai.OpenAI(base_url=provider.url, api_key="k") as client:
        whole = client.responses.create(model="gpt-x", input="Look.", tools=tools)
        with client.responses.stream(model="gpt-x", input="Look.", tools=tools) as events:
            streamed = events.get_final_response()
        made = [item for item in whole.output if item.type == "function_call"]
        assert [json.loads(item.arguments) for item in made] == [dict(call.arguments) for call in calls]
        assert [item.call_id for item in streamed.output if item.type == "function_call"] == [m.call_id for m in made]
        results = [answered(item.call_id, image()) for item in made]
        history = [said(words("Look.")), *(item.model_dump(exclude_none=True) for item in made), *results]
        assert responses(provider, history, tools=tools).count(ANSWER) == 2


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([said(words(f'[{{"type":"media","data":"{encoded(PICTURE)}"}}] {url()}'))], None),
        ([said(words("x")), called("c1"), answered("c1", words(url()))], None),
        ([said(words("x")), answered("c1", image())], "No tool call found for function call output with call_id c1"),
        ([said(words("x")), called("c1")], "No tool output found for function call c1"),
        ([said(words("x")), called("c1"), answered("c2", image())], "No tool call found"),
        (
            [said(words("x")), called("c1"), answered("c1", image(), kind="custom_tool_call_output")],
            "No tool call found for custom tool call output",
        ),
        ([{"role": "tool", "content": "x"}], "Invalid value: 'tool'"),
        ([said({"type": "image_url", "image_url": {"url": url()}})], "Invalid value: 'image_url'"),
        ([said({"type": "input_image", "image_url": {"url": url()}})], "expected a string, but got an object"),
        ([{"role": "assistant", "content": [image()]}], "Invalid value: 'input_image'"),
        ([said({**image(), "detail": "huge"})], "Invalid value: 'huge'"),
        ([said(image(kind="image/bmp"))], "unsupported MIME type 'image/bmp'"),
        ([said(image(kind="image/jpeg"))], "declared as image/jpeg, but it is image/png"),
        ([said({"type": "input_image", "image_url": "data:image/png;base64,@@@@"})], "Expected a valid base64 value"),
        ([said(image(pictures.undecodable_png()))], "unsupported image"),
        ([said({"type": "input_image", "image_url": "https://example.com/a.png"})], "Error while downloading"),
        ([said(None)], "expected an object, but got null"),  # type: ignore[arg-type]
    ],
)
def test_responses_have_rules_and_see_nothing_in_text(history: list[Json], expected: str | None) -> None:
    with Provider() as provider:
        if expected is None:
            assert responses(provider, history) == "I see no image."
        else:
            with pytest.raises(openai.BadRequestError, match=expected):
                responses(provider, history)


def test_a_conversation_that_the_provider_holds_is_not_asked_for_its_calls() -> None:
    with Provider() as provider:
        assert ANSWER in responses(provider, [answered("c1", image())], previous_response_id="resp_1")


# Gemini

WHOLE = "/v1beta/models/{}:generateContent"
STREAM = "/v1beta/models/{}:streamGenerateContent"


def blob(data: bytes = PICTURE, kind: str = "image/png") -> Json:
    return {"inlineData": {"mimeType": kind, "data": encoded(data)}}


def spoken(*parts: Any, role: str = "user") -> Json:
    return {"role": role, "parts": list(parts)}


def calling(*ids: str) -> Json:
    return spoken(*({"functionCall": {"id": one, "name": "view", "args": {}}} for one in ids), role="model")


def reply(one: str, *parts: Json, **more: Any) -> Json:
    nested = {"parts": list(parts)} if parts else {}
    return {"functionResponse": {"id": one, "name": "view", "response": {"output": "here"}, **nested, **more}}


LOOK = spoken({"text": "Look."})


def generated(provider: Provider, *contents: Json, model: str = "gemini-3-pro") -> str:
    status, body = post(provider, WHOLE.format(model), {"contents": list(contents)})
    answer = json.loads(body)
    assert status == 200, answer
    return "".join(part["text"] for part in answer["candidates"][0]["content"]["parts"])


@pytest.mark.parametrize(
    ("model", "history"),
    [
        ("gemini-2.5-pro", [spoken({"text": "What?"}, blob())]),
        ("gemini-2.5-pro", [LOOK, calling("1"), spoken(reply("1"), blob())]),
        ("gemini-3-pro", [LOOK, calling("1"), spoken(reply("1"), blob())]),
        ("gemini-3-pro", [LOOK, calling("1"), spoken(reply("1", blob()))]),
        (
            "gemini-3-pro",
            [spoken({"inline_data": {"mime_type": "image/png", "data": base64.urlsafe_b64encode(PICTURE).decode()}})],
        ),
    ],
)
def test_gemini_answers_from_inline_data(model: str, history: list[Json]) -> None:
    with Provider() as provider:
        assert generated(provider, *history, model=model) == f"image 1 of 1: {ANSWER}"


def test_gemini_streams_events_or_one_array() -> None:
    body = {"contents": [spoken(blob())]}
    with Provider() as provider:
        _, events = post(provider, STREAM.format("gemini-3-pro") + "?alt=sse", body)
        _, array = post(provider, STREAM.format("gemini-3-pro"), body)
    chunks = [json.loads(event.removeprefix(b"data: ")) for event in events.split(b"\r\n\r\n") if event]
    assert json.loads(array) == chunks
    texts = [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in chunks]
    assert "".join(texts) == f"image 1 of 1: {ANSWER}"
    assert [chunk["candidates"][0].get("finishReason") for chunk in chunks] == [None] * (len(chunks) - 1) + ["STOP"]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([spoken({"text": f"{url()} {encoded(PICTURE)}"})], None),
        ([LOOK, calling("1"), spoken(reply("1", response={"b64": encoded(PICTURE)}))], None),
        ([LOOK, calling("1"), spoken(reply("1", blob()))], "Multimodal function responses are not supported"),
        ([LOOK, calling("1", "2"), spoken(reply("1"))], "the number of function response parts is equal"),
        ([LOOK, calling("1"), LOOK], "the number of function response parts is equal"),
        ([LOOK, spoken(reply("1"))], "immediately after a function call turn"),
        ([calling("1"), spoken(reply("1"))], "immediately after a user turn"),
        ([LOOK, calling("1"), spoken(reply("2"))], "has the id of a function call"),
        ([LOOK, calling("1"), spoken(reply("1", response="text"))], "google.protobuf.Struct"),
        ([spoken({"text": "x"}, role="assistant")], "Please use a valid role"),
        ([spoken({})], "required oneof field 'data'"),
        ([spoken()], "must not be empty"),
        ([spoken({"type": "text", "text": "x"})], 'Unknown name "type"'),
        ([spoken({"inlineData": {"media_type": "image/png", "data": encoded(PICTURE)}})], "Unknown name"),
        ([spoken(blob(kind="image/gif"))], "Unsupported MIME type: image/gif"),
        ([spoken(blob(kind="image/jpeg"))], "Provided image is not valid"),
        ([spoken({"inlineData": {"mimeType": "image/png", "data": "@@@@"}})], "Base64 decoding failed"),
        ([spoken(blob(pictures.undecodable_png()))], "Unable to process input image"),
    ],
)
def test_gemini_has_rules_and_sees_nothing_in_text(history: list[Json], expected: str | None) -> None:
    with Provider() as provider:
        if expected is None:
            assert generated(provider, *history, model="gemini-2.5-flash") == "I see no image."
            return
        status, body = post(provider, WHOLE.format("gemini-2.5-flash"), {"contents": history})
    error = json.loads(body)["error"]
    assert (status, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert expected in error["message"]


def test_gemini_counts_tokens_and_knows_its_key() -> None:
    body = {"contents": [spoken(blob())]}
    with Provider(key="right") as provider:
        counted = json.loads(post(provider, "/v1beta/models/gemini-3-pro:countTokens", body)[1])
        assert counted["totalTokens"] >= 1000
        path = WHOLE.format("gemini-3-pro")
        assert [post(provider, path, body, key)[0] for key in ("right", "wrong", "")] == [200, 401, 401]
        assert post(provider, f"{path}?key=right", body)[0] == 200
        assert len(provider.asked("gemini-3-pro")) == 5


@pytest.mark.parametrize("path", ["/v1/responses", STREAM.format("gemini-3-pro") + "?alt=sse"])
def test_these_wires_fail_on_request(path: str) -> None:
    body = {"model": "gpt-x", "stream": True, "input": "Hello.", "contents": [LOOK]}
    with Provider(faults=[Fail(status=503), Break(after=1)]) as provider:
        assert post(provider, path, body)[0] == 503
        status, broken = post(provider, path, body)
    assert status == 200
    assert b"Overloaded" in broken


# Odd providers, on every wire


@pytest.mark.parametrize("wire", ["messages", "chat", "responses", "gemini"])
@pytest.mark.parametrize(("tool_images", "seen"), [("taken", True), ("dropped", False), ("refused", None)])
def test_a_provider_may_depart_from_its_wire(wire: str, tool_images: Any, seen: bool | None) -> None:
    with Provider(tool_images=tool_images) as provider:
        status, body = post(provider, *TOOL[wire])
    assert status == (422 if seen is None else 200)
    assert (CODE in body.decode()) is bool(seen)


def test_a_model_may_ignore_its_images() -> None:
    with Provider([("blind", IGNORES), ("*", SEES)]) as provider:
        path, body = TOOL["responses"]
        assert b"I see no image." in post(provider, path, {**body, "model": "blind"})[1]
        assert CODE in post(provider, path, body)[1].decode()


def test_a_context_may_overflow() -> None:
    with Provider(context=5000) as provider:
        long = {"model": "gpt-x", "input": [said(words(url() * 20))]}
        assert b"maximum context length is 5000" in post(provider, "/v1/responses", long)[1]
        assert CODE in post(provider, *TOOL["responses"])[1].decode()


def test_a_question_that_offers_everyday_colours_is_answered_in_them() -> None:
    card = TrialCard(("red", "black", "gray", "pink"), "A3C4D6")
    asked = "One of red, green, blue, yellow, orange, purple, pink, brown, gray, black."
    with Provider() as provider:
        assert responses(provider, [said(words(asked), image(card.to_png()))]) == "red black gray pink A3C4D6"


TOOL: dict[str, tuple[str, Json]] = {
    "messages": (
        "/v1/messages",
        {
            "model": "claude-x",
            "max_tokens": 9,
            "messages": [
                {"role": "user", "content": "Look."},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "view", "input": {}}]},
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "c1",
                            "content": [
                                {
                                    "type": "image",
                                    "source": {"type": "base64", "media_type": "image/png", "data": encoded(PICTURE)},
                                }
                            ],
                        }
                    ],
                },
            ],
        },
    ),
    "chat": (
        "/v1/chat/completions",
        {
            "model": "gpt-x",
            "messages": [
                {"role": "user", "content": "Look."},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "view", "arguments": "{}"}}],
                },
                {
                    "role": "tool",
                    "tool_call_id": "c1",
                    "content": [{"type": "image_url", "image_url": {"url": url()}}],
                },
            ],
        },
    ),
    "responses": (
        "/v1/responses",
        {"model": "gpt-x", "input": [said(words("Look.")), called("c1"), answered("c1", image())]},
    ),
    "gemini": (WHOLE.format("gemini-2.5-pro"), {"contents": [LOOK, calling("1"), spoken(reply("1", blob()))]}),
}
