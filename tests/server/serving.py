"""A real server on a real socket, for an application that a test brings along."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sightline.server import App, serve_app
from tests.dial.upstream import GUARD


@asynccontextmanager
async def served(app: App) -> AsyncIterator[int]:
    """The port on which our server serves an application."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        serving = asyncio.ensure_future(serve_app(app, sock, signals=False))
        try:
            async with asyncio.timeout(GUARD):
                yield sock.getsockname()[1]
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


async def answered(app: App, requests: bytes) -> bytes:
    """What an application says through our server, until the connection ends."""
    async with served(app) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(requests)
        said = await reader.read()
        writer.close()
    return said
