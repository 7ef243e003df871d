"""One request of a client, once it is known where it goes, and how long the work for it lasts.

The work ends early when the client disconnects (`cancel_on_disconnect`). A client that asked for a stream gets
keep-alives while nothing else can be sent to it (`RequestContext.keep_alive`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from sightline.dial import Exchange
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.upstream import Visitor
from sightline.server import Line, Receive
from sightline.surfaces.proxy.headers import Request, find_credential, lend_headers
from sightline.surfaces.proxy.response import STREAM_HEADERS, ClientResponse, convert_to_events, lacks_events
from sightline.surfaces.proxy.routes import Route

T = TypeVar("T")


@dataclass(slots=True)
class LogEntry:
    """What the log says about one request."""

    route: Route | None = None  # None: it was refused, or answered by a page or a mounted application
    model: str = ""
    receipt: Receipt | None = None  # the last one
    status: int = 0  # 0: the client left before it had one
    began: float = field(default_factory=time.perf_counter)


@runtime_checkable
class _Closable(Protocol):
    """What holds a connection."""

    def close(self) -> None: ...


class RequestContext:
    __slots__ = ("_caller", "_scope_of", "entry", "patience", "request", "response", "route", "streams")

    def __init__(
        self,
        request: Request,
        route: Route,
        response: ClientResponse,
        scope_of: Callable[[str], str],
        patience: float,
        entry: LogEntry | None = None,
    ) -> None:
        """`patience`: seconds without an answer before a stream is kept alive."""
        self.request = request
        self.route = route
        self.response = response
        self.entry = entry or LogEntry()
        self.entry.route = route
        self.patience = patience
        self.streams = False  # the client asks for a stream; known once its body has been read
        self._scope_of = scope_of
        self._caller: Visitor | None = None

    @property
    def caller(self) -> Visitor:
        """Who asks. Only for requests of a wire: nothing is remembered of others."""
        if self._caller is None:
            route = self.route
            assert route.wire is not None
            scope = self._scope_of(find_credential(self.request, route))
            self._caller = Visitor(route.upstream, route.wire.name, scope, lend_headers(self.request, route))
        return self._caller

    async def keep_alive(self, work: Awaitable[T]) -> T:
        """Return what the work returns. Until then, send a keep-alive every `patience` seconds, if the wire has one."""
        wire = self.route.wire
        if not self.streams or wire is None or not wire.voice.alive:
            return await work
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=self.patience))[0]:
                await self.response.send_keep_alive()
        except BaseException:
            task.add_done_callback(_close_result)
            task.cancel()
            raise
        return task.result()

    async def relay(self, exchange: Exchange) -> None:
        """Send the client a response in which nothing is ours.

        A client that asked for a stream loops over events. It gets a whole answer as the events of its wire.
        """
        events: bytes | Refusal | None = None
        if self.streams and lacks_events(exchange) and not self.route.streams_json_list:
            events = await self.keep_alive(convert_to_events(exchange, self.route.api))
        if isinstance(events, Refusal):
            await self.response.refuse(events)
        elif events is not None:
            await self.response.replace_body(exchange, STREAM_HEADERS, events)
        else:
            await self.response.relay(exchange)


def _close_result(task: asyncio.Future[Any]) -> None:
    """Close the connection of a response that came just as its client left."""
    if not task.cancelled() and task.exception() is None and isinstance(found := task.result(), _Closable):
        found.close()


@asynccontextmanager
async def cancel_on_disconnect(
    receive: Receive, line: Line | None = None, after: asyncio.Event | None = None
) -> AsyncIterator[None]:
    """Cancel the work inside when the client disconnects, and go on behind it.

    `after` is set once nothing else receives. Until then, a disconnect is noticed by what does.
    """
    worker = asyncio.current_task()
    assert worker is not None
    left = False

    def cancel() -> None:
        nonlocal left
        left = True
        worker.cancel()

    watcher = None if line else asyncio.ensure_future(_wait_for_disconnect(receive, cancel, after))
    if line is not None:
        line.leaving = cancel
        if line.disconnected:
            cancel()
    try:
        yield
    except asyncio.CancelledError:
        if not left:
            raise
        worker.uncancel()
    finally:
        if watcher is not None:
            watcher.cancel()
        if line is not None:
            line.leaving = None


async def _wait_for_disconnect(receive: Receive, cancel: Callable[[], None], after: asyncio.Event | None) -> None:
    if after is not None:
        await after.wait()
    while (await receive())["type"] != "http.disconnect":
        pass
    cancel()
