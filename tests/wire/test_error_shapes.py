"""Our own errors, byte by byte: every field that a client's SDK reads is where it reads it."""

from __future__ import annotations

import json

import pytest

from sightline.model.scene import Json
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, Wire

SAID = "no {such} model"


def openai(kind: str) -> Json:
    return {"error": {"message": SAID, "type": kind, "param": None, "code": "sightline"}}


@pytest.mark.parametrize(
    ("wire", "permanent", "passing"),
    [
        pytest.param(
            ANTHROPIC,
            {"type": "error", "error": {"type": "invalid_request_error", "message": SAID}},
            {"type": "error", "error": {"type": "api_error", "message": SAID}},
            id="anthropic",
        ),
        pytest.param(OPENAI_CHAT, openai("invalid_request_error"), openai("server_error"), id="chat"),
        pytest.param(OPENAI_RESPONSES, openai("invalid_request_error"), openai("server_error"), id="responses"),
        pytest.param(
            GEMINI,
            {"error": {"code": 400, "message": SAID, "status": "INVALID_ARGUMENT"}},
            {"error": {"code": 503, "message": SAID, "status": "UNAVAILABLE"}},
            id="gemini",
        ),
    ],
)
def test_the_body_of_an_error_is_the_wire_s_own(wire: Wire, permanent: Json, passing: Json) -> None:
    assert wire.permanent_error(SAID) == permanent
    assert wire.temporary_error(SAID) == passing


def test_the_message_comes_first_in_an_openai_error() -> None:
    for wire in (OPENAI_CHAT, OPENAI_RESPONSES):
        assert json.dumps(wire.permanent_error(SAID)).startswith('{"error": {"message": "no {such} model"')


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        pytest.param(
            ANTHROPIC,
            b'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"no {such} model"}}\n\n',
            id="anthropic",
        ),
        pytest.param(
            OPENAI_CHAT,
            b'data: {"error":{"message":"no {such} model","type":"server_error","param":null,"code":"sightline"}}\n\n',
            id="chat",
        ),
        pytest.param(
            OPENAI_RESPONSES,
            b'event: error\ndata: {"type":"error","code":"server_error","message":"no {such} model","param":null,'
            b'"sequence_number":0,"error":{"type":"server_error","code":"server_error","message":"no {such} model",'
            b'"param":null}}\n\n'
            b'event: response.failed\ndata: {"type":"response.failed","sequence_number":1,"response":{'
            b'"id":"resp_sightline","object":"response","created_at":0,"status":"failed",'
            b'"error":{"code":"server_error","message":"no {such} model"},"incomplete_details":null,'
            b'"instructions":null,"metadata":{},"model":"","output":[],"parallel_tool_calls":true,'
            b'"tool_choice":"auto","tools":[],"usage":null}}\n\n',
            id="responses",
        ),
        pytest.param(
            GEMINI,
            rb'{"error":{"code":503,"message":"no \u007bsuch\u007d model","status":"UNAVAILABLE"}}' + b"\n\n",
            id="gemini",
        ),
    ],
)
def test_an_error_inside_a_stream_is_the_wire_s_own(wire: Wire, said: bytes) -> None:
    assert wire.stream_format.write_error(SAID) == said


def test_a_comment_keeps_the_streams_of_openai_alive() -> None:
    assert (
        OPENAI_CHAT.stream_format.keep_alive
        == OPENAI_RESPONSES.stream_format.keep_alive
        == b": sightline is waiting\n\n"
    )
