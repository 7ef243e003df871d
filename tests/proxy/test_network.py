"""Web addresses of images behind the proxy: with the setting `network` off, no name is resolved."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.provider import Provider

HOST = "pictures.example.com"
URL = f"https://{HOST}/a.png"
BLIND = {"SIGHTLINE_MODELS": json.dumps({"*blind*": {"vision": False}, "*seeing*": {"vision": True}})}
SAID = "sightline config set network on"


def anthropic(model: str) -> tuple[str, dict[str, Any]]:
    shown = {"type": "image", "source": {"type": "url", "url": URL}}
    content = [shown, {"type": "text", "text": "what is it?"}]
    return "/v1/messages", {"model": model, "max_tokens": 9, "messages": [{"role": "user", "content": content}]}


def chat(model: str) -> tuple[str, dict[str, Any]]:
    content = [{"type": "image_url", "image_url": {"url": URL}}, {"type": "text", "text": "what is it?"}]
    return "/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": content}]}


def responses(model: str) -> tuple[str, dict[str, Any]]:
    content = [{"type": "input_image", "image_url": URL}, {"type": "input_text", "text": "what is it?"}]
    return "/v1/responses", {"model": model, "input": [{"type": "message", "role": "user", "content": content}]}


def gemini(model: str) -> tuple[str, dict[str, Any]]:
    parts = [{"fileData": {"mimeType": "image/png", "fileUri": URL}}, {"text": "what is it?"}]
    return f"/v1beta/models/{model}:generateContent", {"contents": [{"role": "user", "parts": parts}]}


WIRES = pytest.mark.parametrize("wire", [anthropic, chat, responses, gemini], ids=lambda wire: wire.__name__)


@pytest.fixture
def looked_up(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Every name that is looked up while a test runs. Each leads to a private address, which nobody dials."""
    asked: list[str] = []

    async def getaddrinfo(self: object, host: str, port: int, **more: Any) -> list[Any]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.1", port))]

    monkeypatch.setattr(uvloop.Loop, "getaddrinfo", getaddrinfo, raising=True)
    return asked


def sent(home: Path, wire: Any, model: str, **env: str) -> tuple[bytes, bytes]:
    """Return a body, and what reached the upstream of it."""
    path, body = wire(model)
    written = json.dumps(body).encode()
    off = {"SIGHTLINE_REFERENCES": "off", "SIGHTLINE_TOOL": "off"}
    with Provider() as provider, sightline(home, provider.url, env={**BLIND, **off, **env}) as proxy:
        exchange(proxy.url, path, written)
        (heard,) = provider.exchanges
    return written, heard.body


@WIRES
@requirement("tell.links.off", "settings.network")
def test_the_model_reads_about_the_setting_if_the_network_is_off(
    tmp_path: Path, looked_up: list[str], wire: Any
) -> None:
    _, heard = sent(tmp_path, wire, "blind-1")
    assert looked_up == []
    assert SAID.encode() in heard
    assert b"is not available" in heard
    assert URL.encode() not in heard


@WIRES
@requirement("tell.links", "settings.network")
def test_the_address_is_resolved_and_checked_if_the_network_is_on(
    tmp_path: Path, looked_up: list[str], wire: Any
) -> None:
    _, heard = sent(tmp_path, wire, "blind-1", SIGHTLINE_NETWORK="on")
    assert looked_up == [HOST]
    assert b"is not available" in heard, "the name leads to a private address"
    assert SAID.encode() not in heard


@pytest.mark.parametrize("network", ["off", "on"])
@WIRES
@requirement("fit.opaque")
def test_a_seeing_model_gets_the_address_unchanged(
    tmp_path: Path, looked_up: list[str], wire: Any, network: str
) -> None:
    body, heard = sent(tmp_path, wire, "seeing-1", SIGHTLINE_NETWORK=network)
    assert looked_up == []
    assert heard == body


@requirement("tell.links.off")
def test_project_settings_cannot_turn_the_network_on(
    tmp_path: Path, looked_up: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    for folder in (project, project / ".sightline", project / ".config" / "sightline"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "vision-proxy.json").write_text('{"network": "on"}')
    monkeypatch.chdir(project)
    _, heard = sent(tmp_path / "home", anthropic, "blind-1")
    assert looked_up == []
    assert SAID.encode() in heard
