"""How answers of status 200 begin: an error is recognized on every wire, as early as possible."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sightline.profiles.rejections import parse_rejection
from sightline.wire.sse import ANSWER_START, StreamRejection, read_opening
from tests.requirements import requirement
from tests.wire.test_stream_relay import CHAT, CONTENTS, MESSAGES, RESPONSES

WORDS = "This model does not support image input."
IN_A_RESPONSE = {"type": "response.failed", "response": {"error": {"code": "x", "message": WORDS}, "tools": ["image"]}}


def data(value: object, name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + f"data: {json.dumps(value)}\n\n".encode()


CREATED = data({"type": "response.created", "response": {"error": None}}, "response.created")
REJECTIONS = {
    "anthropic": data({"type": "error", "error": {"type": "invalid_request_error", "message": WORDS}}, "error"),
    "anthropic behind a ping": data({"type": "ping"}, "ping") + data({"type": "error", "error": {"message": WORDS}}),
    "chat": data({"error": {"message": WORDS, "type": "invalid_request_error", "code": None}}),
    "chat behind a comment": b": OPENROUTER PROCESSING\n\n" + data({"error": {"message": WORDS, "code": 400}}),
    "chat, a bare word": data({"error": WORDS}),
    "chat with a choice": data({"id": "1", "error": {"message": WORDS}, "choices": [{"finish_reason": "error"}]}),
    "responses": data({"type": "error", "code": "invalid_image", "message": WORDS, "sequence_number": 0}, "error"),
    "responses, failed": CREATED + data(IN_A_RESPONSE, "response.failed"),
    "gemini": data({"error": {"code": 400, "message": WORDS, "status": "INVALID_ARGUMENT"}}).replace(b"\n", b"\r\n"),
    "gemini, bare": json.dumps({"error": {"code": 400, "message": WORDS}}, indent=2).encode(),
    "gemini, a list": b"[" + json.dumps({"error": {"code": 400, "message": WORDS}}, indent=2).encode() + b"\n]\n",
    "no stream at all": json.dumps({"type": "error", "error": {"message": WORDS}}).encode(),
    "words alone": f"event: error\ndata: {WORDS}\n\n".encode(),
    "old line ends": data({"error": {"message": WORDS}}).replace(b"\n", b"\r"),
}
ANSWERS = {
    "anthropic": MESSAGES,
    "chat": CHAT,
    "gemini": CONTENTS,
    "a page": b"<!DOCTYPE html><html>",
    "packed": b"\x1f\x8b\x08",
    "an end": b"data: [DONE]\n\n",
    "whole": b'{"id":"x","error":null,"choices":[]}',
    "whole, no error": b'{"error":null,"output":[]}',
    "a list": b'[{"candidates":[]}]',
    "a text about errors": b'{"text":"{\\"error\\":{}}"}',
}


@pytest.mark.parametrize("said", REJECTIONS.values(), ids=REJECTIONS)
@requirement("recover.in_stream")
def test_an_error_in_a_stream_is_known_once_it_is_complete(said: bytes) -> None:
    found = read_opening(said)
    assert isinstance(found, StreamRejection)
    taught = parse_rejection(found.status, found.words)
    assert taught is not None
    assert (found.status, taught.kind) == (400, "blind")
    for end in range(len(said.rstrip())):
        assert read_opening(said[:end]) is None


@pytest.mark.parametrize("said", ANSWERS.values(), ids=ANSWERS)
def test_an_answer_is_known_by_its_first_event(said: bytes) -> None:
    assert read_opening(said) == ANSWER_START


def test_a_response_is_an_answer_after_its_prelude() -> None:
    first, second, _ = RESPONSES.split(b"\n\n", 2)
    assert read_opening(first + b"\n\n") is None
    assert read_opening(first + b"\n\n" + second) is None
    assert read_opening(first + b"\n\n" + second + b"\n\n") == ANSWER_START


@pytest.mark.parametrize("silence", [b"", b": wait", b": wait\n\n", b"\xef\xbb\xbf", b"retry: 3\n\n", b"event: x\n\n"])
def test_comments_and_pings_decide_nothing(silence: bytes) -> None:
    assert read_opening(silence) is None


@pytest.mark.parametrize(
    ("error", "status"),
    [
        ({"type": "rate_limit_error"}, 429),
        ({"code": "rate_limit_exceeded"}, 429),
        ({"code": 429}, 429),
        ({"code": "403"}, 403),
        ({"type": "authentication_error"}, 401),
        ({"type": "permission_error"}, 403),
        ({"type": "overloaded_error"}, 529),
        ({"type": "invalid_request_error", "code": None}, 400),
        ({"code": 7, "status": True}, 400),
    ],
)
def test_errors_about_the_caller_or_the_load_keep_their_status(error: dict[str, object], status: int) -> None:
    found = read_opening(data({"error": {"message": WORDS, **error}}))
    assert isinstance(found, StreamRejection)
    assert found.status == status
    assert (parse_rejection(found.status, found.words) is None) == (status in (401, 403, 429))


@given(st.binary(max_size=300) | st.lists(st.sampled_from([*REJECTIONS.values(), *ANSWERS.values()])).map(b"".join))
def test_any_bytes_are_classified_once_and_for_all(said: bytes) -> None:
    verdicts = [read_opening(said[:end]) for end in range(0, len(said) + 1, 7)]
    assume(said.lstrip()[:1] not in (b"{", b"["))  # JSON that goes on after its end is none
    known = [verdict for verdict in verdicts if verdict is not None]
    assert verdicts[len(verdicts) - len(known) :] == known
    assert len(set(known)) <= 1
