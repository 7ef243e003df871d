"""The proxy as an ASGI application: where each request goes, and what the client gets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from sightline.dial import Dialler
from sightline.engine import Engine, Reading
from sightline.model.ports import Store
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory
from sightline.server import LINE, App, Line, Receive, Scope, Send
from sightline.server.bodies import ClientDisconnected, MemoryBudget, Reservation
from sightline.surfaces.proxy.bodies import LARGEST, BodyReader, BufferedBody, StreamedBody, read_request_body
from sightline.surfaces.proxy.commands import Commands
from sightline.surfaces.proxy.context import RequestContext, cancel_on_disconnect
from sightline.surfaces.proxy.headers import LocationRewriter, Request
from sightline.surfaces.proxy.middleware import guard, mount, refuse_websockets, serve_pages
from sightline.surfaces.proxy.response import ClientResponse, describe_refusal, is_event_stream, is_json
from sightline.surfaces.proxy.routes import Route, find_error_wire, find_route
from sightline.surfaces.proxy.telemetry import CONTENT_TYPE, LOG_ENTRY, Metrics, RequestLog, find_omission
from sightline.surfaces.proxy.tool_loop import Sent, ToolLoop, Tools
from sightline.surfaces.proxy.upstream import UpstreamClient

log = logging.getLogger("sightline")

_FAULT = "Sightline: a fault of its own kept this request from being served."
_GREETING = b"Sightline listens here. How to point an agent at it: sightline setup AGENT\n"
_LARGEST_UNKNOWN = 1024 * 1024  # bodies of routes that no wire knows are streamed from this size on


class Proxy:
    def __init__(
        self,
        engine: Engine,
        dialler: Dialler,
        directory: Directory,
        record: Store,
        say: Callable[[Receipt], None] = lambda receipt: None,
        patience: float = 10.0,
        token: str = "",
        commands: Commands | None = None,
        request_log: RequestLog | None = None,
        tools: Tools | None = None,
        metrics: Metrics | None = None,
        mounts: Mapping[str, App] | None = None,
        memory: MemoryBudget | None = None,
    ) -> None:
        """`patience`: seconds without an answer before a stream is kept alive; `mounts`: applications by their paths.

        Without a `token`, only programs of this machine are served.
        """
        self._engine = engine
        self._directory = directory
        self._scope_of = record.scope_of
        self._say = say
        self._patience = patience
        self._metrics = metrics = metrics or Metrics()
        self._commands = commands
        self._log = request_log or RequestLog(record)
        self._mounts = mounts or {}
        self._memory = memory or MemoryBudget()  # of the bodies under way
        self._reader = BodyReader(engine)
        self._upstream = UpstreamClient(engine, dialler, metrics, self._report)
        self._tool_loop = ToolLoop(engine, record.conversations, tools, self._upstream, self._reader) if tools else None
        pages = {
            "/sightline/health": lambda: (b"application/json", b'{"ok":true}'),
            "/sightline/metrics": lambda: (CONTENT_TYPE, metrics.render().encode()),
        }
        app = serve_pages(mount(self._serve, self._mounts), pages, _GREETING, self._refuse)
        self._app = self._log.wrap(guard(refuse_websockets(app, self._refuse), token, self._refuse))

    async def close(self) -> None:
        if self._tool_loop is not None:
            await self._tool_loop.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)

    async def _refuse(
        self, scope: Scope, send: Send, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        """Answer with an error in the shape of the wire that the client speaks.

        Agents show the message of a 400 at once; they replace or swallow that of a 403. Mounted applications have
        clients of their own.
        """
        path: str = scope["raw_path"].decode("latin-1")
        status = 400 if status == 403 and path not in self._mounts else status
        wire = find_error_wire(path, scope["headers"], self._directory)
        await ClientResponse(send, wire).send_error(status, message, headers=headers)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for an upstream."""
        request = Request(scope["method"], scope["headers"])
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        route = find_route(path, query, request.headers, self._directory)
        if isinstance(route, Refusal):
            await self._refuse(scope, send, 400, describe_refusal(route))
            return
        line: Line | None = scope.get("extensions", {}).get(LINE)
        rewriter = LocationRewriter(request, route, self._directory, path)
        wire = route.wire or find_error_wire(path, request.headers, self._directory)
        response = ClientResponse(send, wire, listens=route.wire is not None, line=line, rewriter=rewriter)
        entry = scope.get(LOG_ENTRY)
        context = RequestContext(request, route, response, self._scope_of, self._patience, entry)
        self._metrics.start_request()
        try:
            with self._memory.open() as memory:
                await self._answer(context, receive, line, memory)
        except ClientDisconnected:
            pass
        except Exception:  # the outermost edge
            log.exception("a request could not be served")
            await response.send_error(400, _FAULT)
        finally:
            self._metrics.end_request(route.wire.name if route.wire else "other", route.upstream.name, response.status)

    async def _answer(self, context: RequestContext, receive: Receive, line: Line | None, memory: Reservation) -> None:
        """Read the body as far as it has to be in memory, and serve the request while its client is connected."""
        length = context.request.header(b"content-length")
        most = LARGEST if context.route.wire else _LARGEST_UNKNOWN
        body = await read_request_body(receive, int(length) if length.isdigit() else None, most, line, memory)
        if isinstance(body, Refusal):
            await context.response.refuse(body)
            return
        async with cancel_on_disconnect(receive, line, None if isinstance(body, BufferedBody) else body.complete):
            reading = await self._reader.open(
                context.request, context.route, body, memory, lambda: context.caller.scope
            )
            if isinstance(reading, Refusal):
                self._report(context, Receipt(context.route.upstream.name, "", notes=(f"not read: {reading}",)))
            if not isinstance(body, BufferedBody) or not isinstance(reading, Reading):
                await self._forward(context, body, None)
                return
            try:
                await self._answer_read(context, body, reading)
            finally:
                self._reader.release(reading)

    async def _answer_read(self, context: RequestContext, body: BufferedBody, reading: Reading) -> None:
        context.streams = reading.scene.stream
        if reading.heavy:
            found = await self._engine.offload(reading, self._inspect, context.route, body, reading)
        else:
            found = self._inspect(context.route, body, reading)
        omitting, command, body, rest = found
        self._log.note_model(context, reading, omitting)
        if self._commands and command:
            images = await self._engine.offload(reading, self._engine.references, reading, context.caller)
            work = self._commands.answer(command, reading, context.route, context.caller, images)
            await context.response.send_whole(*await context.keep_alive(work))
        else:
            await self._forward(context, body, rest)

    def _inspect(
        self, route: Route, body: BufferedBody, reading: Reading
    ) -> tuple[str | None, str | None, BufferedBody, Reading | None]:
        """Return the client that left an image out, the command that is typed, and the request without earlier ones."""
        omitting = find_omission(reading, route)
        command = self._commands.find(reading, route) if self._commands else None
        return omitting, command, *((body, reading) if command else self._reader.cut_commands(route, body, reading))

    async def _forward(
        self, context: RequestContext, body: BufferedBody | StreamedBody, reading: Reading | None
    ) -> None:
        sent = await context.keep_alive(self._send(context, body, reading))
        exchange, answer = sent.outcome, sent.answer
        if isinstance(exchange, Refusal):
            await context.response.refuse(exchange)
        elif self._tool_loop and answer and exchange.status == 200 and (is_json(exchange) or is_event_stream(exchange)):
            await self._tool_loop.relay(context, answer, exchange)
        else:
            try:
                await context.relay(exchange)
            finally:
                self._upstream.release(exchange, context)

    async def _send(self, context: RequestContext, body: BufferedBody | StreamedBody, reading: Reading | None) -> Sent:
        if reading is None or self._tool_loop is None or isinstance(body, StreamedBody):
            return Sent(await self._upstream.send(context, body, reading))
        return await self._tool_loop.send(context, body, reading)

    def _report(self, context: RequestContext, receipt: Receipt) -> None:
        self._say(receipt)
        self._log.file_receipt(context, receipt)
