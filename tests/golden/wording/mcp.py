"""What an MCP host, its user and its model read: tools, prompts, questions and errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult

from tests.api.eyes import ABSENT
from tests.golden.wording import Case
from tests.mcp.serving import MODERN, WAYS, client, served, texts
from tests.mcp.test_stdio import pipe
from tests.proxy.raw_http import exchange

_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nothing", {}),
    ("view_image", {}),
    ("view_image", {"path": 7}),
    ("view_image", {"path": "shot.png", "zoom": 2}),
    ("view_image", {"path": "absent.png"}),
    ("view_image", {"path": "../shot.png"}),
    ("view_image", {"path": "/etc/hostname"}),
    ("view_image", {"path": "page.png"}),
    ("view_image", {"path": "https://example.com/a.png"}),
    ("analyze_image", {"images": "shot.png", "question": "?"}),
    ("analyze_image", {"images": ["shot.png"], "question": "q" * 5000}),
    ("analyze_image", {"images": ["shot.png"] * 30, "question": "?"}),
    ("analyze_image", {"images": ["shot.png"], "question": "?", "model": "far/eye"}),
    ("vision_analyze", {"prompt": "?", "file_path": "shot.png"}),
    ("vision_analyze", {"prompt": "?", "file_base64": "%%%"}),
    ("vision_analyze", {"prompt": "?", "file_url": "http://127.0.0.1/a.png"}),
    ("video_analyze", {"file_url": 3}),
    ("list_images", {"all": True}),
)
_PROMPTS: tuple[tuple[str, dict[str, str]], ...] = (
    ("status", {}),
    ("list", {}),
    ("mode", {"value": "always"}),
    ("mode", {"value": "sometimes"}),
    ("consent", {}),
    ("consent", {"answer": "yes", "provider": "openai"}),
    ("describe", {}),
    ("describe", {"images": "absent.png"}),
    ("describe", {"images": "shot.png", "colour": "red"}),
    ("nothing", {}),
)
_LINES = (
    b"{",
    b"null",
    b"[]",
    b'{"jsonrpc": "1.0", "id": 6, "method": "ping"}',
    b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}',
    b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
)
_ASKED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("tools/call", {"name": 7, "arguments": {}}),
    ("tools/call", {"name": "view_image", "arguments": [1]}),
    ("prompts/get", {"name": "describe", "arguments": {"images": 7}}),
    ("resources/read", {"uri": "sightline://sha256/12"}),
    ("resources/read", {"uri": f"sightline://sha256/{'0' * 64}"}),
    ("no/such/method", {}),
)
_FAR = {
    "SIGHTLINE_UPSTREAMS": json.dumps({**ABSENT, "far": {"baseUrl": "http://eyes.invalid:9/v1", "apiKey": "sk-far"}}),
    "SIGHTLINE_MODELS": '{"eye": {"vision": true}}',
}


def _run(work: Coroutine[Any, Any, list[str]]) -> str:
    return "\n".join(asyncio.run(work))


def _offered(folder: Path) -> str:
    """Instructions, tools, prompts and templates, as a host shows them."""

    async def work() -> list[str]:
        async with client(WAYS[0], folder, env=_FAR) as one:
            lines = [f"instructions: {one.instructions}"]
            for tool in (await one.list_tools()).tools:
                lines += [f"-- tool {tool.name}: {tool.title}", tool.description or "", *_described(tool.input_schema)]
            for prompt in (await one.list_prompts()).prompts:
                lines.append(f"-- prompt {prompt.name}: {prompt.description}")
                lines += [f"{each.name}: {each.description}" for each in prompt.arguments or ()]
            for template in (await one.list_resource_templates()).resource_templates:
                lines.append(f"-- template {template.uri_template}: {template.title} {template.description}")
            return lines

    return _run(work())


def _described(schema: Mapping[str, Any], above: str = "") -> list[str]:
    lines = []
    for name, each in schema.get("properties", {}).items():
        lines += [f"{above}{name}: {each['description']}"] if "description" in each else []
        lines += _described(each.get("items", each), f"{above}{name}.")
    return lines


def _calls(folder: Path) -> str:
    async def work() -> list[str]:
        lines = []
        async with client(WAYS[0], folder, env=_FAR) as one:
            for name, arguments in _CALLS:
                shown = f"{name} {arguments}".replace("q" * 5000, "q…").replace("'shot.png', " * 29, "'shot.png', …, ")
                lines += [shown, *(f"  {line}" for line in texts(await one.call_tool(name, arguments)))]
        return lines

    return _run(work())


def _prompts(folder: Path) -> str:
    async def work() -> list[str]:
        lines = []
        async with client(WAYS[0], folder, env=_FAR) as one:
            for name, filled in _PROMPTS:
                lines.append(f"-- {name} {filled}")
                try:
                    got = await one.get_prompt(name, filled)
                    lines += [str(message.content.model_dump()["text"]) for message in got.messages]
                except MCPError as no:
                    lines.append(f"error: {no.error.message}")
        return lines

    return _run(work())


def _asked(folder: Path) -> str:
    """The question whether images may be sent, on stdio and over HTTP."""

    async def work() -> list[str]:
        lines: list[str] = []

        async def answer(context: Any, params: Any) -> ElicitResult:
            lines.append(params.message)
            return ElicitResult(action="decline")

        call = {"images": ["shot.png"], "question": "?", "model": "far/eye"}
        for way in (WAYS[0], WAYS[2], WAYS[3]):
            async with client(way, folder, env=_FAR, elicitation_callback=answer) as one:
                lines += [f"-- {' '.join(way)}", *texts(await one.call_tool("analyze_image", call))]
        return lines

    return _run(work())


def _toolset(folder: Path) -> str:
    """What is not in the user's toolset, and a host that shows no images."""

    async def work() -> list[str]:
        lines = []
        async with client(WAYS[0], folder, env={**_FAR, "SIGHTLINE_TOOLSET": "view_image"}, name="@cline/core") as one:
            lines += texts(await one.call_tool("view_image", {"path": "small.png"}))[1:]
            lines += texts(await one.call_tool("list_images", {}))
            try:
                await one.get_prompt("list", {})
            except MCPError as no:
                lines.append(f"error: {no.error.message}")
        return lines

    return _run(work())


def _lines(folder: Path) -> str:
    """Lines that are no messages, and messages that are filled in wrongly."""
    lines = []
    with pipe(folder) as raw:
        for line in _LINES:
            raw.send(line)
            lines += [line.decode(), f"  {raw.heard()['error']}"]
        raw.hello()
        for number, (method, params) in enumerate(_ASKED, start=2):
            got = raw.ask(method, number, **params)
            lines += [f"{method} {params}", f"  {got.get('error') or got['result']}"]
    return "\n".join(lines)


def _http(folder: Path) -> str:
    """Requests over HTTP that are not made as they have to be."""
    usual = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    ping = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    asked: list[tuple[str, dict[str, str], bytes]] = [
        ("POST", {}, ping),
        ("POST", {"mcp-session-id": "made-up"}, ping),
        ("POST", {"content-type": "text/plain"}, ping),
        ("POST", {"accept": "text/html"}, ping),
        ("PUT", {}, ping),
        ("GET", {"mcp-protocol-version": MODERN}, ping),
        ("POST", {"mcp-protocol-version": MODERN}, ping),
        ("POST", {}, b"[]"),
        ("POST", {"origin": "https://evil.example"}, ping),
    ]
    lines = []
    with served(folder, verb=("mcp", "--http")) as url:
        for method, headers, body in asked:
            got = exchange(url, "/mcp", body, method, [*{**usual, **headers}.items()])
            lines += [f"{method} {headers} {body.decode()}", f"  {got.status} {got.body.decode()}"]
        nowhere = exchange(url, "/v1/messages", ping, "POST", [*usual.items()])
    return "\n".join([*lines, "POST /v1/messages", f"  {nowhere.status} {nowhere.body.decode()}"])


CASES: dict[str, Case] = {
    "what is offered": _offered,
    "bad calls": _calls,
    "prompts": _prompts,
    "the question for consent": _asked,
    "a narrow toolset and a host without images": _toolset,
    "bad lines on stdio": _lines,
    "bad requests over HTTP": _http,
}
