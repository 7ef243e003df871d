"""The server as hosts meet it: a real process on a pipe or on a socket, and the official client in both eras."""

from __future__ import annotations

import os
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Literal

from mcp import StdioServerParameters
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp_types import CallToolResult, ImageContent, Implementation, TextContent

from tests.cli.command import ALONE, COMMAND, environment
from tests.cli.forked import Forked

Way = tuple[Literal["stdio", "http"], Literal["legacy", "auto"]]
WAYS: tuple[Way, ...] = (("stdio", "legacy"), ("stdio", "auto"), ("http", "legacy"), ("http", "auto"))
MODERN = "2026-07-28"


@contextmanager
def served(
    folder: Path, *flags: str, env: Mapping[str, str] | None = None, verb: tuple[str, ...] = ("serve",)
) -> Iterator[str]:
    """`sightline serve`, or another verb that listens, in a process of its own; gives its address."""
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
    """A client of a server that works in `folder`."""
    about = Implementation(name=name, version="0")
    if way[0] == "stdio":
        whole = environment(**{**ALONE, **(env or {})})
        command, *words = COMMAND
        server = StdioServerParameters(command=command, args=[*words, "mcp"], env=whole, cwd=folder)
        async with Client(server, mode=way[1], client_info=about, **options) as one:
            yield one
        return
    with served(folder, "--root", str(folder), env=env) as url:
        async with at(f"{url}/mcp", way, name, **options) as one:
            yield one


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
