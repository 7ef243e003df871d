"""The proxy as an ASGI application: whom it lets in, where each request goes, and what the client gets."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from sightline.dial import Dialler, Exchange
from sightline.engine import Engine, Reading
from sightline.model.ports import Record
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory
from sightline.server import LINE, Line
from sightline.server.bodies import ClientDisconnected, MemoryBudget, Reservation
from sightline.surfaces.proxy.asides import Asides, Tools
from sightline.surfaces.proxy.asking import Asking
from sightline.surfaces.proxy.bodies import LARGEST, Flowing, Held, Message, Receive, Send, taken
from sightline.surfaces.proxy.commands import Commands, is_listed
from sightline.surfaces.proxy.errand import Errand
from sightline.surfaces.proxy.headers import Request, unwelcome
from sightline.surfaces.proxy.heard import as_events, is_odd, is_stream, is_whole
from sightline.surfaces.proxy.metrics import CONTENT_TYPE, Metrics
from sightline.surfaces.proxy.offering import Asked, Offering
from sightline.surfaces.proxy.presence import Presence
from sightline.surfaces.proxy.reader import Reader
from sightline.surfaces.proxy.redirects import LocationRewriter
from sightline.surfaces.proxy.reply import Reply, words
from sightline.surfaces.proxy.routes import Route, route, speaks
from sightline.surfaces.proxy.waiting import in_time
from sightline.surfaces.proxy.watch import Watch, find_omission

log = logging.getLogger("sightline")
Mounted = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

_NO_WEBSOCKET = "Sightline: this address answers HTTP requests, not websockets."

_PASSED_ALONG = 1024 * 1024  # bodies of routes that are not ours flow from this size on


class Proxy:
    def __init__(
        self,
        engine: Engine,
        dialler: Dialler,
        directory: Directory,
        record: Record,
        say: Callable[[Receipt], None] = lambda receipt: None,
        patience: float = 10.0,
        token: str = "",
        commands: Commands | None = None,
        watch: Watch | None = None,
        tools: Tools | None = None,
        metrics: Metrics | None = None,
        mounts: Mapping[str, Mounted] | None = None,
        memory: MemoryBudget | None = None,
    ) -> None:
        self._engine = engine
        self._directory = directory
        self._record = record
        self._say = say
        self._patience = patience  # seconds without an answer before a stream is kept alive
        self._token = token  # whoever brings it may come from another machine; empty: only this one is served
        self._metrics = metrics or Metrics()
        self._commands = commands
        self._watch = watch or Watch(record)
        self._mounts = mounts or {}  # other applications, each at a path of its own
        self._memory = memory or MemoryBudget()  # of the bodies under way
        self._reader = Reader(engine)
        asides = None if tools is None else Asides(engine, record, tools)
        unwanted = asides.unwanted if asides else lambda visitor, model: None
        self._asking = Asking(engine, dialler, self._metrics, self._tell, unwanted, patience)
        self._offering = Offering(asides, self._asking, self._reader, self._tell, patience) if asides else None

    async def close(self) -> None:
        if self._offering is not None:
            await self._offering.asides.close()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope["method"], scope["headers"])
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        wire = speaks(path, request.headers, self._directory)
        if no := unwelcome(request, self._token):
            await self._turned_away(request, Reply(send, wire), 403 if path in self._mounts else 400, words(no))
        elif request.method == "GET" and request.header(b"upgrade").lower() == "websocket":
            await self._turned_away(request, Reply(send, wire), 426, _NO_WEBSOCKET, [(b"upgrade", b"HTTP/1.1")])
        elif page := _own(request.method, path):
            await _told(send, *page(self._metrics))
        elif mounted := self._mounts.get(path):
            await self._mounted(mounted, request, scope, receive, send)
        elif path == _OURS or path.startswith(f"{_OURS}/"):
            await self._turned_away(request, Reply(send, wire), 404, words(_NO_PAGE))
        elif isinstance(way := route(path, query, request.headers, self._directory), Refusal):
            await self._turned_away(request, Reply(send, wire), 400, words(way))
        else:
            line: Line | None = scope.get("extensions", {}).get(LINE)
            rewriter = LocationRewriter(request, way, self._directory, path)
            reply = Reply(send, wire, heard=way.wire is not None, line=line, rewriter=rewriter)
            await self._let_in(Errand(request, way, reply, self._record), receive, line)

    async def _turned_away(
        self, request: Request, reply: Reply, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        await reply.refused(status, message, headers=headers)
        self._watch.ended(request, reply.status)

    async def _mounted(
        self, mounted: Mounted, request: Request, scope: dict[str, Any], receive: Receive, send: Send
    ) -> None:
        status = 0

        async def told(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await mounted(scope, receive, told)
        except Exception:  # the outermost edge
            log.exception("a request could not be served")
        finally:
            self._watch.ended(request, status)

    async def _let_in(self, errand: Errand, receive: Receive, line: Line | None) -> None:
        request, way, reply = errand.request, errand.way, errand.reply
        self._metrics.begun()
        try:
            with self._memory.open() as memory:
                await self._take(errand, receive, line, memory)
        except ClientDisconnected:
            pass
        except Exception:  # the outermost edge: the client is told in its own words
            log.exception("a request could not be served")
            await reply.refused(400, "Sightline: a fault of its own kept this request from being served.")
        finally:
            self._metrics.ended(way.wire.name if way.wire else "other", way.upstream.name, reply.status)
            self._watch.ended(request, reply.status, way)

    async def _take(self, errand: Errand, receive: Receive, line: Line | None, memory: Reservation) -> None:
        """Read the body as far as it has to be in memory, and serve the request while its client is there."""
        length = errand.request.header(b"content-length")
        most = LARGEST if errand.way.wire else _PASSED_ALONG
        body = await taken(receive, int(length) if length.isdigit() else None, most, line, memory)
        if isinstance(body, Refusal):
            await errand.reply.no(body)
            return
        async with Presence(receive, after=None if isinstance(body, Held) else body.over, line=line):
            await self._serve(errand, body, memory)

    async def _serve(self, errand: Errand, body: Held | Flowing, memory: Reservation) -> None:
        opened = await self._reader.opened(errand, body, memory)
        if isinstance(opened, Refusal):
            self._tell(errand, Receipt(errand.way.upstream.name, "", notes=(f"not read: {opened}",)))
        if not isinstance(body, Held) or not isinstance(opened, Reading):
            await self._forwarded(errand, body, None)
            return
        try:
            await self._served(errand, body, opened)
        finally:
            self._reader.release(opened)

    async def _served(self, errand: Errand, body: Held, reading: Reading) -> None:
        """A request that could be read."""
        if reading.heavy:
            found = await self._engine.offload(reading, self._look_through, errand.way, body, reading)
        else:
            found = self._look_through(errand.way, body, reading)
        omitting, command, body, rest = found
        self._watch.read(errand.request, reading, omitting)
        if self._commands and command:
            await self._commanded(self._commands, command, errand, reading)
        else:
            await self._forwarded(errand, body, rest)

    def _look_through(
        self, way: Route, body: Held, reading: Reading
    ) -> tuple[str | None, str | None, Held, Reading | None]:
        """Return the client that left an image out, the command that is typed, and the request without earlier ones."""
        omitting = find_omission(reading, way)
        command = self._commands.typed(reading, way) if self._commands else None
        return omitting, command, *((body, reading) if command else self._reader.cut(way, body, reading))

    async def _forwarded(self, errand: Errand, body: Held | Flowing, reading: Reading | None) -> None:
        asked = await in_time(self._asked(errand, body, reading), errand, reading, self._patience)
        outcome, aside = asked.outcome, asked.aside
        if isinstance(outcome, Refusal):
            await errand.reply.no(outcome)
        elif self._offering and aside and (is_whole(outcome) or (outcome.status == 200 and is_stream(outcome))):
            await self._offering.answered(errand, aside, outcome)
        else:
            await self._relayed(errand, reading, outcome)

    async def _commanded(self, commands: Commands, command: str, errand: Errand, reading: Reading) -> None:
        visitor = errand.visitor
        images = await self._engine.offload(reading, self._engine.references, reading, visitor)
        work = commands.answered(command, reading, errand.way, visitor, images)
        await errand.reply.say(*await in_time(work, errand, reading, self._patience))

    def _asked(self, errand: Errand, body: Held | Flowing, reading: Reading | None) -> Awaitable[Asked]:
        if isinstance(body, Flowing):
            return _alone(self._asking.passed(errand, body))
        if reading is None or self._offering is None:
            return _alone(self._asking.sent(errand, body, reading))
        return self._offering.asked(errand, body, reading)

    async def _relayed(self, errand: Errand, reading: Reading | None, exchange: Exchange) -> None:
        """An answer in which nothing is ours."""
        try:
            events: bytes | Refusal | None = None
            if reading is not None and reading.scene.stream and is_odd(exchange) and not is_listed(errand.way):
                # The client loops over events: it could make nothing of an answer that has none.
                events = await in_time(as_events(exchange, errand.way.api), errand, reading, self._patience)
            if isinstance(events, Refusal):
                await errand.reply.no(events)
            elif events is not None:
                await errand.reply.unrolled(exchange, events)
            else:
                await errand.reply.relay(exchange)
        finally:
            self._asking.rest(exchange, errand)

    def _tell(self, errand: Errand, receipt: Receipt) -> None:
        self._say(receipt)
        self._watch.prepared(errand.request, errand.way, receipt)


async def _alone(outcome: Awaitable[Exchange | Refusal]) -> Asked:
    """Asked without tools of ours."""
    return Asked(await outcome)


Page = Callable[[Metrics], tuple[bytes, bytes]]

_OURS = "/sightline"  # of what is below it, no upstream hears
_OWN: Mapping[str, Page] = {
    "/sightline/health": lambda metrics: (b"application/json", b'{"ok":true}'),
    "/sightline/metrics": lambda metrics: (CONTENT_TYPE, metrics.text().encode()),
}
_NO_PAGE = Refusal("not_found", "there is no such page", f"known: {', '.join(_OWN)}")
_GREETING = b"Sightline listens here. How to point an agent at it: sightline setup AGENT\n"


def _own(method: str, path: str) -> Page | None:
    """A page of ours. At the top there is one for whoever opens the address in a browser, and none for programs."""
    if path == "/" and method == "GET":
        return lambda metrics: (b"text/plain; charset=utf-8", _GREETING)
    return _OWN.get(path)


async def _told(send: Send, kind: bytes, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": body, "more_body": False})
