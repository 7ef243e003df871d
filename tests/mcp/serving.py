"""Real MCP servers on a pipe or a socket, and the official client in both eras of the protocol."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import anyio
from anyio.to_thread import run_sync
from mcp.client import Client
from mcp.client._transport import TransportStreams
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.shared.message import SessionMessage
from mcp_types import CallToolResult, ImageContent, Implementation, TextContent, jsonrpc_message_adapter

from tests.cli.command import ALONE, environment
from tests.cli.forked import Forked

Way = tuple[Literal["stdio", "http"], Literal["legacy", "auto"]]
WAYS: tuple[Way, ...] = (("stdio", "legacy"), ("stdio", "auto"), ("http", "legacy"), ("http", "auto"))
MODERN = "2026-07-28"


@contextmanager
def served(
    folder: Path, *flags: str, env: Mapping[str, str] | None = None, verb: tuple[str, ...] = ("serve",)
) -> Iterator[str]:
    """Run `sightline serve`, or another verb that listens, in a process of its own, and yield its address."""
    variables = environment(**{**ALONE, **(env or {})})
    process = Forked([*verb, "--port", "0", *flags], variables, folder, (0, subprocess.PIPE, 2))
    assert process.stdout is not None
    with process.stdout:
        line = process.stdout.readline().decode()
        try:
            yield line[line.index("http://") :].split()[0].removesuffix("/mcp.")
        finally:
            process.terminate()
            process.wait(30)


@asynccontextmanager
async def client(
    way: Way, folder: Path, env: Mapping[str, str] | None = None, name: str = "test", **options: Any
) -> AsyncIterator[Client]:
    """Yield a client of a server that works in `folder`."""
    about = Implementation(name=name, version="0")
    if way[0] == "stdio":
        whole = environment(**{**ALONE, **(env or {})})
        async with Client(_fork_stdio_server(folder, whole), mode=way[1], client_info=about, **options) as one:
            yield one
        return
    with served(folder, "--root", str(folder), env=env) as url:
        async with at(f"{url}/mcp", way, name, **options) as one:
            yield one


@asynccontextmanager
async def _fork_stdio_server(folder: Path, env: Mapping[str, str]) -> AsyncIterator[TransportStreams]:
    """Run `sightline mcp` in a forked process, and yield the streams of its pipes.

    The SDK's `stdio_client` would start Python and load everything anew; test_hosts.py and test_editors.py do that.
    """
    process = Forked(["mcp"], env, folder)
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    from_server, to_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_client, to_server = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        async with from_server:
            while line := await run_sync(stdout.readline):
                message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                with suppress(anyio.BrokenResourceError):  # the client has closed its end
                    await from_server.send(SessionMessage(message))

    async def send() -> None:
        with stdin:
            async for message in to_server:
                stdin.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await run_sync(stdin.flush)

    try:
        with stdout:
            async with anyio.create_task_group() as tasks, to_server, to_client:
                tasks.start_soon(receive)
                tasks.start_soon(send)
                try:
                    yield to_client, from_client
                finally:
                    from_client.close()  # ends `send`, which closes the server's stdin, which ends the server
                    to_client.close()
                    with anyio.CancelScope(shield=True):
                        assert await run_sync(process.wait, 30) == 0
    finally:
        process.kill()


@asynccontextmanager
async def at(
    url: str, way: Way, name: str = "test", headers: dict[str, str] | None = None, **options: Any
) -> AsyncIterator[Client]:
    about = Implementation(name=name, version="0")
    async with create_mcp_http_client(headers) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=way[1], client_info=about, **options) as one:
            yield one


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


def images(result: CallToolResult) -> list[ImageContent]:
    return [block for block in result.content if isinstance(block, ImageContent)]


def home() -> Path:
    return Path(os.environ["SIGHTLINE_HOME"])
