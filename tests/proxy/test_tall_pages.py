"""A model that sees gets a tall page folded into columns, unless the setting or the conversation forbids it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from sightline.settings import FILE_NAME
from tests.pixels.bitmaps import saved
from tests.pixels.paper import page
from tests.proxy.clients import read_chat, read_message
from tests.proxy.four_wires import WIRES, answered, asked, messages, parts, path, request, sent, shows
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

PAGE = saved(page(1280, 6000), "image/png")
SMALL = paint_quadrants(some_colours(91))
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai_chat": "gpt-4o",
    "openai_responses": "gpt-5-mini",
    "gemini": "gemma-3-27b-it",
}
FOUR = pytest.mark.parametrize("wire", WIRES)
QUIET = {"SIGHTLINE_REFERENCES": "off"}
find_note = re.compile(r"\[the next image: folded into \d+ columns\b[^\]]*\]").fullmatch
_POINT = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}
TOOLS: dict[str, Any] = {
    "anthropic": {"type": "computer_20250124", "name": "computer", "display_width_px": 9, "display_height_px": 9},
    "openai_chat": {"type": "function", "function": {"name": "click", "parameters": _POINT}},
    "openai_responses": {"type": "function", "name": "click", "parameters": _POINT},
    "gemini": {"computerUse": {"environment": "ENVIRONMENT_BROWSER"}},
}


@FOUR
@requirement("fit.page_folded", "fit.page_stable")
def test_a_tall_page_is_folded_to_the_same_bytes_in_every_turn(tmp_path: Path, wire: str) -> None:
    first = [asked(wire, "Read the page.", PAGE, SMALL)]
    later = [*first, *answered(wire, "It is long."), asked(wire, "And now?")]
    with Provider() as provider:
        for said in (first, later):  # each in a process of its own, as far as memory goes
            with sightline(tmp_path, provider.url, env=QUIET) as proxy:
                for _ in range(2):
                    assert sent(proxy.url, wire, MODELS[wire], said).status == 200
                line, other = proxy.receipts[-1].sights
        bodies = [each.body for each in provider.exchanges]
    one, two, three, four = (messages(wire, body) for body in bodies)
    assert one[0] == two[0] == three[0] == four[0]
    note, folded, small, words = parts(wire, one[0])
    assert find_note(note["text"])
    assert "text" not in folded
    assert not shows(bodies[0], PAGE)
    assert (small, words) == tuple(parts(wire, first[0])[1:])
    assert (line.fate, other.fate) == ("refitted", "shown")
    assert re.search(r"folded into \d+ columns", line.why)
    assert (line.size, line.sha256 != line.sent_sha256) == ((1280, 6000), True)


@FOUR
@requirement("fit.page_off", "fit.page_geometry", "law.1")
def test_a_tall_page_is_unchanged_if_it_may_not_be_folded(tmp_path: Path, wire: str) -> None:
    plain = request(wire, MODELS[wire], [asked(wire, "Read the page.", PAGE)])
    pointing = {**plain, "tools": [TOOLS[wire]]}
    with Provider() as provider, sightline(tmp_path, provider.url, env=QUIET) as proxy:
        exchange(proxy.url, path(wire, MODELS[wire]), json.dumps(pointing).encode())
        (tmp_path / FILE_NAME).write_text(json.dumps({"legible": "off"}), "utf-8")
        proxy.check_settings()
        exchange(proxy.url, path(wire, MODELS[wire]), json.dumps(plain).encode())
        assert [each.body for each in provider.exchanges] == [json.dumps(each).encode() for each in (pointing, plain)]


@requirement("fit.page_folded")
def test_a_folded_page_of_a_tool_has_its_note_before_it(tmp_path: Path) -> None:
    bodies = {
        "/v1/messages": {"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": read_message(PAGE)},
        "/v1/chat/completions": {"model": "gpt-4o", "messages": read_chat(PAGE)},
    }
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        for where, body in bodies.items():
            assert exchange(proxy.url, where, json.dumps(body).encode()).status == 200
        stayed, moved = (json.loads(each.body)["messages"] for each in provider.exchanges)
    words, note, block = stayed[-1]["content"][0]["content"]
    assert (words["text"], bool(find_note(note["text"])), block["type"]) == ("read", True, "image")
    note, label, block = moved[-1]["content"]
    assert (bool(find_note(note["text"])), "call_0" in label["text"], block["type"]) == (True, True, "image_url")


@requirement("fit.page_off")
def test_a_text_only_model_is_told_of_a_tall_page_as_before(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        said = [asked("openai_chat", "Read the page.", PAGE)]
        assert sent(proxy.url, "openai_chat", "deepseek-v4-pro", said, "deepseek").status == 200
        last = provider.asked("deepseek-v4-pro")[-1].body
    assert b64encode(PAGE) not in last
    assert b"folded" not in last
    assert proxy.receipts[-1].sights[0].fate == "told"
