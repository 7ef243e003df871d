"""A model that sees gets every image as pixels that its provider accepts."""

from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path

import openai
import pytest

from tests.proxy.clients import WIRES, ask_chat, ask_messages, image_block, pasted_message, read_chat, text
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.refusals import NOT_SHOWN
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Fail
from tests.scripted.limits import BEDROCK
from tests.scripted.pictures import (
    html_page,
    paint_quadrants,
    some_colours,
    too_heavy,
    too_wide,
    truncated_jpeg,
    undecodable_png,
)
from tests.scripted.provider import Provider

COLOURS = some_colours(7)
PICTURE = paint_quadrants(COLOURS)
EVERY_WAY = pytest.mark.parametrize(("wire", "stream"), [(wire, stream) for wire in WIRES for stream in (False, True)])


@EVERY_WAY
@requirement("seeing.pasted", "profile.unknown_sees", "route.served")
def test_a_pasted_image_is_seen(tmp_path: Path, wire: str, stream: bool) -> None:
    ask, pasted, _ = WIRES[wire]
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        said = ask(proxy.url, "some-model", pasted(PICTURE), stream=stream)
    assert describe_quadrants(COLOURS) in said


@EVERY_WAY
@requirement("lower.hoist", "lower.perceived", "lower.by_wire")
def test_images_of_parallel_tool_calls_are_seen_in_order(tmp_path: Path, wire: str, stream: bool) -> None:
    ask, _, read = WIRES[wire]
    other = some_colours(8)
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        said = ask(proxy.url, "some-model", read(PICTURE, paint_quadrants(other)), stream=stream)
        assert said.index(describe_quadrants(COLOURS)) < said.index(describe_quadrants(other))


def test_a_tool_image_is_refused_on_chat_without_the_proxy() -> None:
    with Provider() as provider, pytest.raises(openai.BadRequestError):
        ask_chat(provider.url, "some-model", read_chat(PICTURE))


@requirement("fit.edges", "route.owner")
def test_an_image_of_8001_pixels_is_refitted_before_it_leaves(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}") as proxy:
        said = ask_messages(proxy.url, "claude-sonnet-5-5", pasted_message(too_wide(COLOURS)))
        assert describe_quadrants(COLOURS) in said
        assert len(provider.exchanges) == 1


@requirement("fit.bytes")
def test_an_image_of_eleven_megabytes_is_refitted_before_it_leaves(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}") as proxy:
        said = ask_messages(proxy.url, "claude-sonnet-5-5", pasted_message(too_heavy(COLOURS)))
        assert describe_quadrants(COLOURS) in said
        assert len(provider.exchanges) == 1


@requirement("recover.limits")
def test_an_unknown_limit_is_learned_from_a_rejection(tmp_path: Path) -> None:
    with Provider(messages_limits=BEDROCK) as provider, sightline(tmp_path, provider.url) as proxy:
        heavy = pasted_message(too_heavy(COLOURS, 6_000_000))
        for requests in (2, 3):  # rejected and repaired the first time, known the second
            assert describe_quadrants(COLOURS) in ask_messages(proxy.url, "claude-x", heavy)
            assert len(provider.exchanges) == requests


@requirement("recover.names")
def test_a_repaired_retry_drops_the_request_ids(tmp_path: Path) -> None:
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted_message(too_wide(COLOURS))}).encode()
    named = [("idempotency-key", "one"), ("x-client-request-id", "two"), ("x-session-id", "three")]
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        assert exchange(proxy.url, "/v1/messages", body, headers=named).status == 200
        first, second = provider.exchanges
    for name in ("idempotency-key", "x-client-request-id"):
        assert (len(first.header(name)), len(second.header(name))) == (1, 0)
    assert second.header("x-session-id") == ["three"]


@requirement("recover.remembered")
def test_nothing_is_learned_from_a_repair_that_failed(tmp_path: Path) -> None:
    with Provider((("*", "ollama"),)) as provider, sightline(tmp_path, provider.url) as proxy:
        provider.faults.extend([None, Fail(status=400)])
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted_message(PICTURE)}).encode()
        assert exchange(proxy.url, "/v1/messages", body).status == 400
        assert exchange(proxy.url, "/v1/messages", body).status == 200
        assert [b"base64" in one.body for one in provider.exchanges] == [True, False, True, True, False]
        assert provider.exchanges[2].body == body


@requirement("recover.settled")
def test_a_model_configured_as_seeing_is_repaired_each_time(tmp_path: Path) -> None:
    env = {"SIGHTLINE_MODELS": json.dumps({"m": {"vision": True}})}
    with Provider((("*", "ollama"),)) as provider, sightline(tmp_path, provider.url, env=env) as proxy:
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted_message(PICTURE)}).encode()
        for _ in range(2):
            assert exchange(proxy.url, "/v1/messages", body).status == 200
        assert [b"base64" in one.body for one in provider.exchanges] == [True, False, True, False]


@requirement("pass.readable")
def test_a_response_that_may_be_read_is_requested_uncompressed(tmp_path: Path) -> None:
    with Provider((("*", "ollama"),), gzip=True) as provider, sightline(tmp_path, provider.url) as proxy:
        body = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted_message(PICTURE)}).encode()
        assert exchange(proxy.url, "/v1/messages", body, headers=[("accept-encoding", "gzip")]).status == 200
        assert {tuple(one.header("accept-encoding")) for one in provider.exchanges} == {("identity",)}


@requirement("fit.crowd")
def test_the_21st_image_makes_the_others_smaller(tmp_path: Path) -> None:
    pictures = [paint_quadrants(some_colours(n), (2500, 40)) for n in range(21)]
    content = [*map(image_block, pictures), text("Name them.")]
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}") as proxy:
        said = ask_messages(proxy.url, "claude-sonnet-5-5", [{"role": "user", "content": content}])
        assert all(describe_quadrants(some_colours(n)) in said for n in range(21))
        assert len(provider.exchanges) == 1


@pytest.mark.parametrize("upstream", ["anthropic={}", "{}"], ids=["known limits", "unknown upstream"])
@pytest.mark.parametrize(
    ("poison", "mime"),
    [
        (undecodable_png(), "image/png"),
        (truncated_jpeg(), "image/jpeg"),
        (html_page(), "image/png"),
        (b"", "image/png"),
    ],
    ids=["undecodable", "truncated", "html", "empty"],
)
@requirement("recover.poisoned")
def test_a_history_poisoned_by_an_unreadable_image_heals(
    tmp_path: Path, poison: bytes, mime: str, upstream: str
) -> None:
    history = [
        *pasted_message(poison, mime),
        {"role": "assistant", "content": "Hm."},
        *pasted_message(PICTURE, words="And this one?"),
    ]
    with Provider() as provider, sightline(tmp_path, upstream.format(provider.url)) as proxy:
        assert describe_quadrants(COLOURS) in ask_messages(proxy.url, "claude-sonnet-5-5", history)
        before = len(provider.exchanges)
        assert describe_quadrants(COLOURS) in ask_messages(proxy.url, "claude-sonnet-5-5", history)
        assert len(provider.exchanges) == before + 1, "what was learnt is not paid for twice"
        sent = json.loads(provider.exchanges[-1].body)["messages"]
    assert NOT_SHOWN in sent[0]["content"][0]["text"]


@requirement("fit.mime", "type.by_bytes")
def test_a_wrong_media_type_is_corrected(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}") as proxy:
        said = ask_messages(proxy.url, "claude-sonnet-5-5", pasted_message(PICTURE, "image/jpeg"))
        assert describe_quadrants(COLOURS) in said
        sent = json.loads(provider.exchanges[0].body)["messages"][0]["content"][1]["source"]
    assert sent["media_type"] == "image/png"
    assert b64decode(sent["data"]) == PICTURE


@requirement("fit.formats")
@pytest.mark.parametrize("kind", ["bmp", "tiff"])
def test_an_unsupported_format_is_converted(tmp_path: Path, kind: str) -> None:
    bitmap = paint_quadrants(COLOURS, kind=kind)
    with Provider() as provider, sightline(tmp_path, f"anthropic={provider.url}") as proxy:
        said = ask_messages(proxy.url, "claude-sonnet-5-5", pasted_message(bitmap, f"image/{kind}"))
    assert describe_quadrants(COLOURS) in said
