"""A running proxy follows the settings file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sightline.settings import FILE_NAME
from tests.proxy.clients import ask_chat, pasted_chat
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import NOTHING_ON_LOOPBACK, Running, sightline
from tests.proxy.test_documents import REPORT, build
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

MODEL = "deepseek-v4-pro"
SIBLING = "deepseek-flash"


def change(home: Path, proxy: Running, **values: object) -> None:
    (home / FILE_NAME).write_text(json.dumps(values), "utf-8")
    proxy.check_settings()


def paste(proxy: Running, number: int, upstream: str = "deepseek") -> bool:
    """Send a new picture, and return whether the model was told what it shows."""
    colours = some_colours(number)
    said = ask_chat(f"{proxy.url}/u/{upstream}", MODEL, pasted_chat(paint_quadrants(colours)))
    return describe_quadrants(colours) in said


@requirement("settings.live", "mode.off")
def test_mode_off_counts_from_the_next_request_on(tmp_path: Path) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        assert paste(proxy, 1)
        change(tmp_path, proxy, mode="off")
        assert not paste(proxy, 2)
        assert len(provider.asked(SIBLING)) == 1
        assert b"analyze_image" not in provider.asked(MODEL)[-1].body
        change(tmp_path, proxy)
        assert paste(proxy, 2)


@requirement("settings.live")
def test_upstreams_facts_about_models_and_tools_are_followed_too(tmp_path: Path) -> None:
    with (
        deepseek() as provider,
        Provider() as seeing,
        sightline(tmp_path, f"deepseek={provider.url}", env={"SIGHTLINE_UPSTREAMS": ""}) as proxy,
    ):
        change(tmp_path, proxy, upstreams={"office": {"baseUrl": seeing.url}}, tool="on", seer="off")
        assert paste(proxy, 1, "office")
        tools = [{"type": "function", "function": {"name": "ls", "parameters": {"type": "object"}}}]
        for wanted in ("on", "off"):
            change(tmp_path, proxy, upstreams={"office": {"baseUrl": seeing.url}}, tool=wanted, seer="off")
            ask_chat(f"{proxy.url}/u/office", "gpt-6", pasted_chat(paint_quadrants(some_colours(3))), tools=tools)
            assert (b"analyze_image" in seeing.asked("gpt-6")[-1].body) == (wanted == "on")
        change(tmp_path, proxy, seer="off", models={"deepseek/*": {"vision": True}})
        paste(proxy, 2)
        assert any(b"data:image" in each.body for each in provider.asked(MODEL))


@requirement("settings.live", "document.pages")
def test_rendering_and_facts_about_pdfs_are_followed_too(tmp_path: Path) -> None:
    path, body = build("anthropic", "eye", REPORT)
    sent = json.dumps(body).encode()
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        for values, is_kept in (
            ({}, True),
            ({"models": {"eye": {"vision": True, "pdf": False}}}, False),
            ({"models": {"eye": {"vision": True, "pdf": False}}, "render": "off"}, True),
            ({"models": {"eye": {"vision": True, "pdf": False}}, "render": "on"}, False),
            ({"models": {"eye": {"vision": True, "pdf": True}}}, True),
        ):
            change(tmp_path, proxy, **values)
            exchange(proxy.url, path, sent)
            assert (provider.exchanges[-1].body == sent) == is_kept, values


@requirement("models.upstream", "settings.live")
def test_the_setting_models_counts_for_an_upstream_without_a_preset(tmp_path: Path) -> None:
    picture = paint_quadrants(some_colours(4))
    upstreams = {**json.loads(NOTHING_ON_LOOPBACK)}
    with Provider() as seeing, sightline(tmp_path, env={"SIGHTLINE_UPSTREAMS": ""}) as proxy:
        upstreams["office"] = {"baseUrl": seeing.url}
        for vision in (True, False):
            change(tmp_path, proxy, upstreams=upstreams, seer="off", models={"office/gpt-6": {"vision": vision}})
            ask_chat(f"{proxy.url}/u/office", "gpt-6", pasted_chat(picture))
            assert (b"data:image" in seeing.asked("gpt-6")[-1].body) == vision


@requirement("settings.live.broken")
@pytest.mark.parametrize("broken", ['{"mode": ', '{"model": "nobody/nothing"}', '{"mode": "of"}'])
def test_settings_that_cannot_be_used_are_reported_once_and_not_used(
    tmp_path: Path, broken: str, caplog: pytest.LogCaptureFixture
) -> None:
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        change(tmp_path, proxy, mode="off")
        assert not paste(proxy, 1)
        for number in (2, 3):
            (tmp_path / FILE_NAME).write_text(broken, "utf-8")
            proxy.check_settings()
            assert not paste(proxy, number)
        assert [record.message.count(FILE_NAME) >= 1 for record in caplog.records] == [True]
        assert provider.asked(SIBLING) == []
