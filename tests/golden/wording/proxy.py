"""What the proxy itself says to clients, in the shape of their wire, and to users who type a command in a chat."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from sightline.cli.verbs import list_lessons
from sightline.store import open_record
from tests.golden.wording import Case
from tests.proxy.raw_http import Got, exchange, plug
from tests.proxy.running_proxy import sightline
from tests.scripted.faults import Cut, Fail, Garble, Page, Reset
from tests.scripted.models import DEEPSEEK
from tests.scripted.provider import Provider, nobody_listens

PATHS: Mapping[str, str] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}
_HELLO: Any = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
_CHAT = (
    "status",
    "mode always",
    "consent yes openai",
    "model a/b",
    "nonsense",
    "list",
    "describe shot.png",
    "describe sha256:000000000000",
    "describe",
)


def _show(got: Got) -> str:
    kinds = [f"{name}: {value}" for name, value in got.headers if name in ("content-type", "retry-after")]
    return "\n".join([str(got.status), *kinds, got.body.decode()])


def _unknown(wire: str, folder: Path) -> str:
    with sightline(folder) as proxy:
        return _show(exchange(proxy.url, f"/u/nowhere{PATHS[wire]}", b"{}"))


def _pages(folder: Path) -> str:
    """What is at addresses of the proxy's own."""
    with Provider() as provider, sightline(folder, provider.url) as proxy:
        paths = ("/", "/sightline", "/sightline/health", "/sightline/ready", "/sightline/nope")
        return "\n".join(f"-- GET {path}\n{_show(exchange(proxy.url, path, method='GET'))}" for path in paths)


def _guarded(folder: Path) -> str:
    """Requests from the web, and without the token that is asked for."""
    with Provider() as provider, sightline(folder / "home", provider.url, token="open-sesame") as proxy:
        tokenless = exchange(proxy.url, "/v1/messages", b"{}")
    with Provider() as provider, sightline(folder, provider.url) as proxy:
        web = exchange(proxy.url, "/v1/messages", b"{}", headers=[("origin", "https://evil.example")])
        with plug(proxy.url) as connection:
            connection.sendall(b"GET /v1 HTTP/1.1\r\nx: " + b"y" * 300_000)
            endless = connection.recv(4096).decode().partition("\r\n\r\n")[2]
    return f"-- without a token\n{_show(tokenless)}\n-- from the web\n{_show(web)}\n-- headers without end\n{endless}"


def _fault(wire: str, faults: Sequence[Any], fields: Mapping[str, Any], folder: Path) -> str:
    """What a client reads when its upstream misbehaves."""
    with Provider(faults=[*faults]) as provider, sightline(folder, provider.url) as proxy:
        return _show(exchange(proxy.url, PATHS[wire], json.dumps({**_HELLO, **fields}).encode()))


def _unreached(wire: str, folder: Path) -> str:
    with nobody_listens() as url, sightline(folder, url) as proxy:
        return _show(exchange(proxy.url, PATHS[wire], json.dumps(_HELLO).encode()))


def _chat(folder: Path) -> str:
    """Commands that a user types in a conversation."""
    lines = []
    with Provider() as provider, sightline(folder / "home", provider.url) as proxy:
        for words in _CHAT:
            asked = {"model": "m", "messages": [{"role": "user", "content": f"/vision-proxy {words}"}]}
            got = exchange(proxy.url, PATHS["openai_chat"], json.dumps(asked).encode())
            lines += [f"-- /vision-proxy {words}", json.loads(got.body)["choices"][0]["message"]["content"]]
        assert provider.exchanges == []
    return "\n".join(lines)


def _told(env: Mapping[str, str], folder: Path) -> str:
    """What the upstream of a blind model is sent in the place of an image, and the receipt."""
    image = f"data:image/png;base64,{b64encode((folder / 'shot.png').read_bytes()).decode()}"
    content = [{"type": "image_url", "image_url": {"url": image}}, {"type": "text", "text": "What is it?"}]
    asked = {"model": "deepseek-v4-pro", "messages": [{"role": "user", "content": content}]}
    with (
        Provider(DEEPSEEK) as provider,
        sightline(folder / "home", f"deepseek={provider.url}", env=env) as proxy,
    ):
        exchange(proxy.url, f"/u/deepseek{PATHS['openai_chat']}", json.dumps(asked).encode())
        sent = json.loads(provider.asked("deepseek-v4-pro")[-1].body)["messages"][0]["content"][0]["text"]
        receipts = [str(each) for each in proxy.receipts]
    return "\n".join([sent, *receipts])


def _repaired(folder: Path) -> str:
    """The receipts of a model that turns out to take no images."""
    image = b64encode((folder / "shot.png").read_bytes()).decode()
    block = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": image}}
    asked = {**_HELLO, "messages": [{"role": "user", "content": [block]}]}
    env = {"SIGHTLINE_SEER": "off"}
    with Provider((("*", "ollama"),)) as provider, sightline(folder / "home", provider.url, env=env) as proxy:
        exchange(proxy.url, PATHS["anthropic"], json.dumps(asked).encode())
        return "\n".join(str(each) for each in proxy.receipts)


def _own_body(failures: int, words: str, folder: Path) -> str:
    """The receipts of a request whose edits are rejected, and what was learned."""
    image = f"data:image/png;base64,{b64encode((folder / 'shot.png').read_bytes()).decode()}"
    call = {"id": "call_1", "type": "function", "function": {"name": "shoot", "arguments": "{}"}}
    shown = [{"type": "image_url", "image_url": {"url": image}}]
    messages = [
        *_HELLO["messages"],
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": shown},
    ]
    tools = [{"type": "function", "function": {"name": "shoot", "parameters": {"type": "object"}}}]
    asked = {"model": "m", "messages": messages, "tools": tools}
    faults = [Fail(status=400, words=words)] * failures
    env = {"SIGHTLINE_TOOL": "on"}
    with (
        Provider(faults=faults, tool_images="taken") as provider,
        sightline(folder / "home", f"x={provider.url}", env=env) as proxy,
    ):
        exchange(proxy.url, f"/u/x{PATHS['openai_chat']}", json.dumps(asked).encode())
        receipts = [str(each) for each in proxy.receipts]
    record = open_record(folder / "home" / "record")
    lessons = [f"{each['learnt']} ({each['why']})" for each in list_lessons(record.policy)]
    record.close()
    return "\n".join([*receipts, *lessons])


_STREAM = {"stream": True}
CASES: dict[str, Case] = {
    **{f"an unknown upstream, {wire}": partial(_unknown, wire) for wire in PATHS},
    **{f"an upstream that is not there, {wire}": partial(_unreached, wire) for wire in PATHS},
    **{f"an upstream that speaks no HTTP, {wire}": partial(_fault, wire, [Garble()], {}) for wire in PATHS},
    "an upstream that resets the connection": partial(_fault, "anthropic", [Reset()] * 2, {}),
    "a stream that breaks off": partial(_fault, "anthropic", [Cut()], _STREAM),
    "a page where a stream was asked for": partial(_fault, "openai_chat", [Page(200, "text/html", b"<p>")], _STREAM),
    "pages of its own": _pages,
    "requests that are not served": _guarded,
    "commands in a chat": _chat,
    "an image that was described": partial(_told, {}),
    "an image that nobody may look at": partial(_told, {"SIGHTLINE_MODE": "off"}),
    "a model that turns out to be blind": _repaired,
    "edits that are rejected": partial(_own_body, 1, "messages.2: unknown field"),
    "edits that are rejected for an unknown reason": partial(_own_body, 1, "E4711"),
    "a request that is rejected with and without edits": partial(_own_body, 2, "E4711"),
}
