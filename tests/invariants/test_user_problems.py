"""Problems that users of coding agents have with images, each as a conversation through the whole engine."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.model.facts import Retention
from sightline.model.labels import SHOWN_BELOW
from sightline.model.profile import RequestOrigin
from sightline.wire import ANTHROPIC, GEMINI, OPENAI_CHAT, OPENAI_RESPONSES, WIRES, Wire
from tests.engine.parts import encoded, picture
from tests.golden.captures import decoded, payloads
from tests.golden.preparing import Desk
from tests.golden.talk import faults, lines
from tests.invariants.growing import Growing, forty_views, seeds
from tests.pixels.bitmaps import FORMATS, flag, saved
from tests.refusals import NOT_SHOWN
from tests.requirements import requirement
from tests.wire.bodies import block, body, calling, part, result, text, tool, user

PATHS = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-3-pro:generateContent",
}
OWNERS = {"anthropic": "anthropic", "openai_chat": "openai", "openai_responses": "openai", "gemini": "gemini"}
MIB = 1024 * 1024
by_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


def brought(wire: Wire, *images: str, mime: str = "image/png") -> dict[str, Any]:
    """Return parallel tool calls whose results are a text and an image each."""
    names = [f"call_{number}" for number in range(len(images))]
    asked: list[Any]
    match wire.name:
        case "anthropic":
            uses: list[Any] = [{"type": "tool_use", "id": name, "name": "shot", "input": {}} for name in names]
            answers = [result(n, text("taken"), block(data, mime)) for n, data in zip(names, images, strict=True)]
            return body(user(text("look")), {"role": "assistant", "content": uses}, user(*answers))
        case "openai_chat":
            results = [tool(n, text("taken"), part(data, mime)) for n, data in zip(names, images, strict=True)]
            return body(user(text("look")), calling(*names, name="shot"), *results)
        case "openai_responses":
            asked = [{"type": "function_call", "call_id": n, "name": "shot", "arguments": "{}"} for n in names]
            outputs = [
                [
                    {"type": "input_text", "text": "taken"},
                    {"type": "input_image", "image_url": f"data:{mime};base64,{data}"},
                ]
                for data in images
            ]
            told = [
                {"type": "function_call_output", "call_id": n, "output": output}
                for n, output in zip(names, outputs, strict=True)
            ]
            return {"model": "m", "input": [{"role": "user", "content": "look"}, *asked, *told]}
        case "gemini":
            asked = [{"functionCall": {"id": n, "name": "shot", "args": {}}} for n in names]
            answered = [
                {
                    "functionResponse": {
                        "id": n,
                        "name": "shot",
                        "response": {"output": "taken"},
                        "parts": [{"inlineData": {"mimeType": mime, "data": data}}],
                    }
                }
                for n, data in zip(names, images, strict=True)
            ]
            first = {"role": "user", "parts": [{"text": "look"}]}
            return {"contents": [first, {"role": "model", "parts": asked}, {"role": "user", "parts": answered}]}


async def sent(desk: Desk, asked: Any, wire: Wire) -> Any:
    return await desk.sent(asked, wire, PATHS[wire.name])


def images_in(after: Any) -> list[Image.Image]:
    return [Image.open(io.BytesIO(decoded(payload.text))) for payload in payloads(after)]


@requirement("hoist.parallel")
async def test_1_parallel_calls_are_answered_before_the_image() -> None:
    data = encoded(picture())
    words: Any = {"role": "tool", "tool_call_id": "call_1", "content": "no file"}
    asked = body(user(text("look")), calling("call_0", "call_1"), tool("call_0", text("taken"), part(data)), words)
    desk = Desk(sees=True)
    first = await desk.prepared(asked, OPENAI_CHAT, PATHS["openai_chat"])
    after = json.loads(b"".join(first.body))
    assert [message["role"] for message in after["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert after["messages"][2]["content"] == [text("taken"), text(SHOWN_BELOW)]
    assert after["messages"][4]["content"][1] == part(data)
    again = await Desk(sees=True, record=desk.record).prepared(asked, OPENAI_CHAT, PATHS["openai_chat"])
    assert b"".join(again.body) == b"".join(first.body)


@requirement("law.4")
@by_wire
async def test_2_no_image_payload_reaches_the_model_as_text(wire: Wire) -> None:
    data = encoded(picture(5))
    native = brought(wire, data)
    stringified = json.loads(json.dumps(native))
    written = json.dumps([text("taken"), {"type": "media", "data": data, "mediaType": "image/png"}])
    match wire.name:
        case "anthropic":
            stringified["messages"][2]["content"][0]["content"] = written
        case "openai_chat":
            stringified["messages"][2]["content"] = written
        case "openai_responses":
            stringified["input"][2]["output"] = written
        case "gemini":
            response = stringified["contents"][2]["parts"][0]["functionResponse"]
            response["response"] = {"output": written}
            del response["parts"]
    for asked in (native, stringified):
        desk = Desk(sees=True)
        after = await sent(desk, asked, wire)
        for each in (after, await sent(desk, after, wire), await sent(desk, asked, wire)):
            assert [(payload.text, payload.is_pixels) for payload in payloads(each)] == [(data, True)]
            assert list(faults(each, wire)) == []


def heavy_jpeg() -> bytes:
    """Return a JPEG of 4.5 MiB, nearly all of it comments in its header."""
    plain = saved(flag(640, 480), "image/jpeg")
    note = b"\xff\xfe\xff\xff" + bytes(65_533)
    return plain[:2] + note * (9 * MIB // 2 // len(note)) + plain[2:]


@requirement("recover.limits")
async def test_3_a_large_jpeg_is_sent_or_refitted_by_the_limits() -> None:
    data = heavy_jpeg()
    asked = brought(ANTHROPIC, encoded(data), mime="image/jpeg")
    desk = Desk(sees=True, preset="anthropic")
    direct = await desk.prepared(asked, ANTHROPIC, "/v1/messages")
    assert direct.edits == []
    said = f"messages.2.content.0: image exceeds 5 MB maximum: {len(data) * 4 // 3} bytes > 5242880 bytes"
    error = json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": said}})
    somebody = RequestOrigin(desk.upstream, "anthropic", "somebody")
    repaired = await desk.engine.repair(direct, somebody, 400, error)
    assert repaired is not None
    (payload,) = payloads(json.loads(b"".join(repaired.body)))
    assert len(payload.text) <= 5 * MIB
    await desk.engine.confirm_repair(repaired, somebody)
    later = await desk.sent(asked, ANTHROPIC, "/v1/messages")
    assert [each.text for each in payloads(later)] == [payload.text]


@requirement("fit.crowd", "fit.originals")
@pytest.mark.parametrize(
    ("wire", "preset", "model", "legal", "edge", "most"),
    [
        pytest.param(ANTHROPIC, "anthropic", "claude-opus-4-1", 20, 2500, 2000, id="Anthropic"),
        pytest.param(OPENAI_CHAT, "deepseek", "deepseek-flash", 14, 5000, 4096, id="DeepSeek"),
    ],
)
async def test_4_one_more_image_shrinks_all_and_keeps_originals(
    wire: Wire, preset: str, model: str, legal: int, edge: int, most: int
) -> None:
    pictures = [picture(number, (edge, 8)) for number in range(legal + 1)]
    desk = Desk(sees=True, preset=preset)
    fine = {**brought(wire, *map(encoded, pictures[:-1])), "model": model}
    assert {image.width for image in images_in(await sent(desk, fine, wire))} == {edge}
    crowd = {**brought(wire, *map(encoded, pictures)), "model": model}
    after = await sent(desk, crowd, wire)
    shown = images_in(after)
    assert len(shown) == legal + 1
    assert all(image.width <= most for image in shown)
    for payload in payloads(crowd):
        kept = desk.record.images.read("somebody", payload.sha256)
        assert kept is not None
        assert kept.data == b64decode(payload.text)


TRUNCATED = picture(3, (640, 480))[:400]


@requirement("bad.base64")
@by_wire
@pytest.mark.parametrize("data", [b"<!doctype html><title>404</title>" * 9, b"", b"\x89PNG\r\n\x1a\n"])
async def test_5_a_broken_image_is_refused_and_the_next_turn_works(data: bytes, wire: Wire) -> None:
    desk = Desk(sees=True)
    asked = brought(wire, encoded(data), encoded(picture()), mime="image/jpeg")
    after = await sent(desk, asked, wire)
    assert json.dumps(after).count(NOT_SHOWN) == 1
    assert [payload.text for payload in payloads(after)] == [encoded(picture())]
    assert [line for line in lines(after, wire) if line[0] == "result"] == [("result", "call_0"), ("result", "call_1")]


@requirement("recover.poisoned")
async def test_5_a_truncated_image_stays_refused_after_a_rejection() -> None:
    desk = Desk(sees=True, preset="anthropic")
    asked = brought(ANTHROPIC, encoded(TRUNCATED), encoded(picture()))
    before = await desk.prepared(asked, ANTHROPIC, "/v1/messages")
    error = json.dumps(
        {"type": "error", "error": {"type": "invalid_request_error", "message": "Could not process image"}}
    )
    somebody = RequestOrigin(desk.upstream, "anthropic", "somebody")
    repaired = await desk.engine.repair(before, somebody, 400, error)
    assert repaired is not None
    await desk.engine.confirm_repair(repaired, somebody)
    next_turn = {**asked, "messages": [*asked["messages"], {"role": "assistant", "content": "hm"}, user(text("well?"))]}
    after = await sent(desk, next_turn, ANTHROPIC)
    assert json.dumps(after).count(NOT_SHOWN) == 1
    assert [payload.text for payload in payloads(after)] == [encoded(picture())]


@requirement("fit.mime")
@by_wire
async def test_6_the_type_comes_from_the_bytes(wire: Wire) -> None:
    after = await sent(Desk(sees=True), brought(wire, encoded(picture()), mime="image/jpeg"), wire)
    assert "image/jpeg" not in json.dumps(after)
    assert "image/png" in json.dumps(after)


SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><rect width="9" height="9"/></svg>'
HEIC = b"\0\0\0\x18ftypheic\0\0\0\0mif1heic" + bytes(300)
TAKEN = {
    "anthropic": {"PNG", "JPEG", "GIF", "WEBP"},
    "openai": {"PNG", "JPEG", "GIF", "WEBP"},
    "gemini": {"PNG", "JPEG", "WEBP"},
    "xai": {"PNG", "JPEG"},
}


def animated() -> bytes:
    file = io.BytesIO()
    flag(60, 40).save(file, "GIF", save_all=True, append_images=[flag(60, 40).rotate(180)], duration=90, loop=0)
    return file.getvalue()


def ico() -> bytes:
    file = io.BytesIO()
    flag(32, 32).save(file, "ICO")
    return file.getvalue()


FILES = {mime: saved(flag(60, 40), mime) for mime in FORMATS} | {
    "image/heic": HEIC, "image/svg+xml": SVG, "image/x-icon": ico(), "an animation": animated(),
}  # fmt: skip


@requirement("fit.formats")
@pytest.mark.parametrize("mime", FILES)
@pytest.mark.parametrize(
    ("preset", "wire"),
    [
        ("anthropic", ANTHROPIC),
        ("openai", OPENAI_CHAT),
        ("openai", OPENAI_RESPONSES),
        ("gemini", GEMINI),
        ("xai", OPENAI_CHAT),
    ],
)
async def test_7_every_format_is_converted_or_refused_with_a_reason(preset: str, wire: Wire, mime: str) -> None:
    declared = "image/gif" if mime == "an animation" else mime
    asked = brought(wire, encoded(FILES[mime]), mime=declared)
    after = await sent(Desk(sees=True, preset=preset), asked, wire)
    refused = json.dumps(after).count(NOT_SHOWN)
    kinds = [image.format for image in images_in(after)]
    assert len(kinds) + refused == 1
    assert set(kinds) <= TAKEN[preset]
    assert mime in ("image/heic", "image/svg+xml") or not refused
    assert encoded(FILES["image/heic"]) not in json.dumps(after)
    assert encoded(SVG) not in json.dumps(after)


@requirement("retain.batches", "retain.pasted")
async def test_10_forty_views_seldom_change_the_prefix(tmp_path: Path) -> None:
    talk = Growing(seeds()["claude-code/read-2"], folder=str(tmp_path), size=(1200, 900))
    views = await forty_views(talk, Desk(sees=True, retention=Retention()), tmp_path)
    assert 1 <= len(views.moves) <= 5
    assert views.pasted_stayed


@requirement("tell.tool")
@by_wire
async def test_11_images_of_agents_are_described_whatever_precedes_them(wire: Wire) -> None:
    desk = Desk(sees=False)
    after = await sent(desk, brought(wire, encoded(picture(1)), encoded(picture(2))), wire)
    assert list(payloads(after)) == []
    assert json.dumps(after).count("a description") == 2
    assert json.dumps(after).count("taken") == 2
    assert list(faults(after, wire)) == []
    assert len(desk.seer.looks) == 2
