"""The proxy as an ASGI application: it sends each request to its upstream, or answers a chat command itself."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import replace
from typing import Any

from sightline.commands import NAME
from sightline.commands.grammar import find_command, is_answer
from sightline.dial import HttpClient
from sightline.engine import Engine, Reading
from sightline.model.ports import Store
from sightline.model.profile import RequestOrigin, UpstreamDirectory
from sightline.model.records import Receipt
from sightline.model.refusal import Refusal
from sightline.model.scene import Json, Rebuild
from sightline.server import DIRECT_CONNECTION, App, DirectConnection, Receive, Scope, Send
from sightline.server.asgi import HEAD_NOTES, ClientDisconnected, MemoryBudget, Reservation
from sightline.surfaces.proxy.bodies import (
    MAX_BODY_BYTES,
    BodyReader,
    BufferedBody,
    StreamedBody,
    read_request_body,
    relay_response,
)
from sightline.surfaces.proxy.document_expander import DocumentExpander, may_have_pdf
from sightline.surfaces.proxy.http_headers import ClientRequest, HeadRoute
from sightline.surfaces.proxy.middleware import guard, mount, refuse_websockets, serve_pages
from sightline.surfaces.proxy.request_context import (
    CancelOnDisconnect,
    ClientResponse,
    LogEntry,
    RequestContext,
    describe_refusal,
)
from sightline.surfaces.proxy.routes import Route, Router, find_error_wire
from sightline.surfaces.proxy.telemetry import CONTENT_TYPE, LOG_ENTRY, Metrics, RequestLog, find_omitting_client
from sightline.surfaces.proxy.tool_loop import OwnTools, SendResult, ToolLoop, may_call_tools
from sightline.surfaces.proxy.upstream_client import UpstreamClient
from sightline.vision.concurrency import FairSemaphore
from sightline.wire.answer_writer import OwnAnswer, write_answer
from sightline.wire.json_document import JsonDocument
from sightline.wire.json_tree import get_list, get_value
from sightline.wire.message_texts import NOTE_MARKS, drop_commands, find_newest_command, has_marks, requires_data

log = logging.getLogger("sightline")

_INTERNAL_ERROR = "Sightline: this request could not be served because of an internal error; see the log."
_GREETING = b"Sightline listens here. To point an agent at it, see: sightline setup AGENT\n"
_MAX_UNKNOWN_BODY_BYTES = 1024 * 1024  # a larger body is streamed if no wire has its path
_MAX_COMMANDS = 8  # that run at the same time
# Nearly all bodies have none of these marks, and aren't inspected: a command has its name, and a client's note that an
# image was left out has another.
_COMMAND_MARK = NAME.strip("/").encode()  # without the slash, which some clients write as \\/
_INSPECTED_MARKS = (_COMMAND_MARK, *NOTE_MARKS)
_NOTHING: dict[object, Any] = {}

AnswerCommand = Callable[[str, RequestOrigin, str, Sequence[str]], str]
"""Answers a command, from its text, its origin, the model of the conversation, and its images."""


class Proxy:
    def __init__(
        self,
        engine: Engine,
        http_client: HttpClient,
        find_directory: Callable[[], UpstreamDirectory],
        record: Store,
        keep_alive_after: float = 10.0,
        token: str = "",
        commands: ChatCommands | None = None,
        request_log: RequestLog | None = None,
        tools: OwnTools | None = None,
        metrics: Metrics | None = None,
        mounts: Mapping[str, App] | None = None,
        memory: MemoryBudget | None = None,
        documents: DocumentExpander | None = None,
        inspector: App | None = None,
    ) -> None:
        """Build the application.

        `find_directory` is called at the start of each request, and may follow the settings then. A stream gets
        keep-alives after `keep_alive_after` seconds without an answer. `mounts` are other applications,
        by path. Without a `token`, only programs on this machine are served.
        """
        self._engine = engine
        self._find_directory = find_directory
        self._router = Router()
        self._scope_of = record.compute_scope
        self._keep_alive_after = keep_alive_after
        self._metrics = metrics = metrics or Metrics()
        self._commands = commands
        self.tools = tools  # that it offers and runs itself
        self._log = request_log or RequestLog(record)
        self._mounts = mounts or {}
        self._memory = memory or MemoryBudget()  # for request bodies
        self._documents = documents
        self._reader = BodyReader(engine)
        self._upstream = UpstreamClient(engine, http_client, metrics, self._log)
        self._tool_loop = ToolLoop(engine, record.conversations, tools, self._upstream, self._reader) if tools else None
        pages = {
            "/sightline/health": lambda: (200, b"application/json", b'{"ok":true}'),
            "/sightline/ready": lambda: _report_readiness(record),
            "/sightline/metrics": lambda: (200, CONTENT_TYPE, metrics.render().encode()),
        }
        app = mount(serve_pages(self._serve, pages, _GREETING, self._send_error, inspector), self._mounts)
        self._check_and_serve = guard(refuse_websockets(app, self._send_error), token, self._send_error)
        self._app = self._log.wrap(self._serve_checked)

    async def close(self) -> None:
        if self._tool_loop is not None:
            await self._tool_loop.close()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return self._app(scope, receive, send)

    def _serve_checked(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Serve a request. Only one that passed the middleware, which judges by the head, gives its head a route."""
        serve = self._serve if self in scope.get(HEAD_NOTES, _NOTHING) else self._check_and_serve
        return serve(scope, receive, send)

    async def _send_error(
        self, scope: Scope, send: Send, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> None:
        """Answer with an error in the format of the client's wire.

        A 403 becomes a 400 for agents: they show the message of a 400 at once, but replace or hide that of a 403.
        """
        path: str = scope["raw_path"].decode("latin-1")
        status = 400 if status == 403 and path not in self._mounts else status
        wire = find_error_wire(path, scope["headers"], self._find_directory())
        await ClientResponse(send, wire).send_error(status, message, headers=headers)

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request for an upstream."""
        request = ClientRequest(scope["method"], scope["headers"])
        head = self._find_route(scope, request)
        if isinstance(head, Refusal):
            await self._send_error(scope, send, 400, describe_refusal(head))
            return
        route = head.route
        direct: DirectConnection | None = scope.get("extensions", _NOTHING).get(DIRECT_CONNECTION)
        response = ClientResponse(send, head.error_wire, route.wire is not None, direct, head.rewriter)
        entry = scope.get(LOG_ENTRY) or LogEntry()
        context = RequestContext(request, head, response, self._scope_of, self._keep_alive_after, entry)
        memory = Reservation(self._memory)
        self._metrics.start_request()
        try:
            await self._answer(context, receive, direct, memory)
        except ClientDisconnected:
            pass
        except Exception:  # the outermost edge
            log.exception("a request could not be served")
            await response.send_error(400, _INTERNAL_ERROR)
        finally:
            memory.release()
            self._log.finish_request(entry)
            self._metrics.end_request(*head.count_labels, response.status)

    def _find_route(self, scope: Scope, request: ClientRequest) -> HeadRoute | Refusal:
        """Return the route of a request, as it was found for the last request with the same head if there was one."""
        directory = self._find_directory()
        notes = scope.get(HEAD_NOTES, _NOTHING)
        known: HeadRoute | None = notes.get(self)
        if known is not None and known.directory is directory:
            return known
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        route = self._router.find(path, query, request.headers, directory)
        if isinstance(route, Refusal):
            return route
        head = HeadRoute(request, route, directory, path)
        if notes is not _NOTHING:
            notes[self] = head
        return head

    async def _answer(
        self, context: RequestContext, receive: Receive, direct: DirectConnection | None, memory: Reservation
    ) -> None:
        """Buffer the body if it is not too large, and serve the request while its client is connected."""
        length = context.request.get_header(b"content-length")
        max_bytes = MAX_BODY_BYTES if context.route.wire else _MAX_UNKNOWN_BODY_BYTES
        body = await read_request_body(receive, int(length) if length.isdigit() else None, max_bytes, direct, memory)
        if isinstance(body, Refusal):
            await context.response.refuse(body)
            return
        with CancelOnDisconnect(receive, direct, None if isinstance(body, BufferedBody) else body.complete):
            reading = await self._reader.open(context, body, memory)
            if isinstance(reading, Reading) and isinstance(body, BufferedBody):
                try:
                    await self._answer_read(context, body, reading, memory)
                finally:
                    self._reader.release(reading)
                return
            if isinstance(reading, Refusal):
                notes = (f"not read: {reading}",)
                self._log.file_receipt(context, Receipt(context.route.upstream.name, "", notes=notes))
            await self._forward(context, body, None, memory)

    async def _answer_read(
        self, context: RequestContext, body: BufferedBody, reading: Reading, memory: Reservation
    ) -> None:
        scene, document = reading.scene, reading.texts
        omitting: str | None = None
        command: str | None = None
        rest: Reading | None = reading
        context.wants_stream = scene.stream
        assert isinstance(document, JsonDocument)
        if reading.many_parts or has_marks(document.skeleton, _INSPECTED_MARKS):
            inspected = await self._engine.offload(reading, self._inspect, context.route, body, reading)
            omitting, command, body, rest = inspected
        self._log.note_model(context, reading, omitting)
        context.involves_images = bool(scene.sights or get_value(reading.tree, "tools")) or may_have_pdf(reading)
        if command or context.involves_images:
            self._log.start_activity(context.entry)
        if self._commands and command:
            await self._engine.keep_images(reading, context.caller)
            images = await asyncio.to_thread(self._engine.list_references, reading, context.caller)
            work = self._commands.answer(command, reading, context.route, context.caller, images)
            await context.response.send_whole(*await context.keep_alive(work))
        else:
            await self._forward(context, body, rest, memory)

    def _inspect(
        self, route: Route, body: BufferedBody, reading: Reading
    ) -> tuple[str | None, str | None, BufferedBody, Reading | None]:
        """Return the client if it omits images, the new command if any, and the request without earlier commands."""
        omitting = find_omitting_client(reading, route)
        if not isinstance(reading.texts, JsonDocument) or reading.texts.skeleton.find(_COMMAND_MARK) < 0:
            return omitting, None, body, reading
        command = self._commands.find(reading, route) if self._commands else None
        return omitting, command, *((body, reading) if command else self._cut_commands(route, body, reading))

    def _cut_commands(self, route: Route, body: BufferedBody, reading: Reading) -> tuple[BufferedBody, Reading | None]:
        """Return a request without the commands that were answered here: the model must not see them."""
        try:
            rest = _remove_commands(reading, route)
        except Exception:  # fail open
            log.exception("commands could not be removed; the request is forwarded with them")
            rest = None
        return (body, reading) if rest is None else (BufferedBody(rest, rewritten=True), self._reader.read(route, rest))

    async def _forward(
        self, context: RequestContext, body: BufferedBody | StreamedBody, reading: Reading | None, memory: Reservation
    ) -> None:
        answer = None
        if context.involves_images and isinstance(body, BufferedBody) and reading is not None:
            sent = await context.keep_alive(self._send(context, body, reading, memory))
            exchange, answer = sent.outcome, sent.answer
        else:
            own = body.own if isinstance(body, BufferedBody) else None
            exchange = await context.keep_alive(self._upstream.send(context, body, reading, own))
        if isinstance(exchange, Refusal):
            await context.response.refuse(exchange)
        elif self._tool_loop and answer and may_call_tools(exchange, answer):
            await self._tool_loop.relay(context, answer, exchange)
        else:
            try:
                await relay_response(context, exchange)
            finally:
                self._upstream.release(exchange)

    async def _send(
        self, context: RequestContext, body: BufferedBody, reading: Reading, memory: Reservation
    ) -> SendResult:
        """Send a request that has images or can get them."""
        await self._engine.load_lesson(context.caller, reading.scene.model)
        if self._documents and may_have_pdf(reading):
            body, reading = await self._expand_documents(context, self._documents, body, reading, memory)
        # Without tools in a request, no wire gets ours, and some upstreams reject calls.
        if self._tool_loop is None or not get_value(reading.tree, "tools"):
            return SendResult(await self._upstream.send(context, body, reading, body.own))
        return await self._tool_loop.send(context, body, reading)

    async def _expand_documents(
        self,
        context: RequestContext,
        documents: DocumentExpander,
        body: BufferedBody,
        reading: Reading,
        memory: Reservation,
    ) -> tuple[BufferedBody, Reading]:
        """Return a request without the PDFs that its model doesn't take."""
        expanded = await documents.expand(reading, context.caller, memory.add)
        if isinstance(expanded, Refusal):
            return body, replace(reading, notes=(*reading.notes, f"its PDFs were not replaced: {expanded.what}"))
        if expanded is None:
            return body, reading
        again = await self._reader.reopen(context.route, expanded.data, context.caller.scope)
        if again is None:
            return body, reading
        new_body = BufferedBody(expanded.data, rewritten=True, original=body)
        return new_body, replace(again, notes=(*again.notes, expanded.note))


def _report_readiness(record: Store) -> tuple[int, bytes, bytes]:
    """Return 503 while the record can't be used. Requests are served even then."""
    trouble = record.find_trouble()
    found = {"ready": trouble is None, **({"message": describe_refusal(trouble)} if trouble else {})}
    return 503 if trouble else 200, b"application/json", json.dumps(found).encode()


class ChatCommands:
    """Answers `/vision-proxy …` commands in a conversation, in the format of its wire. The model never sees them."""

    def __init__(self, answer: AnswerCommand) -> None:
        self._answer = answer
        # Commands have their own threads: they may wait for a seer, and must not block other requests.
        self._threads = ThreadPoolExecutor(_MAX_COMMANDS, "sightline-command")
        self._semaphore = FairSemaphore(_MAX_COMMANDS)

    def find(self, reading: Reading, route: Route) -> str | None:
        """Return the command that the user has just typed, or None."""
        if route.endpoint.counts_tokens:
            return None
        command = find_newest_command(_find_messages(reading, route), find_command)
        return None if command is None or requires_data(reading.tree) else command

    async def answer(
        self, text: str, reading: Reading, route: Route, caller: RequestOrigin, images: Sequence[str]
    ) -> tuple[bytes, bytes]:
        """Return the answer to a command: its content type and body."""
        assert route.wire is not None
        model = reading.scene.model
        loop = asyncio.get_running_loop()
        async with self._semaphore.take_turn(caller.scope):
            run = copy_context().run
            answer_text = await loop.run_in_executor(self._threads, run, self._answer, text, caller, model, images)
        return write_answer(
            route.wire.name, OwnAnswer(answer_text, model), stream=reading.scene.stream, as_list=route.streams_json_list
        )


def _remove_commands(reading: Reading, route: Route) -> bytes | None:
    """Return the body without earlier commands and their answers, or None if there are none."""
    kept = drop_commands(_find_messages(reading, route), find_command, is_answer)
    if kept is None or not isinstance(reading.texts, JsonDocument):
        return None
    assert route.wire is not None
    return b"".join(reading.texts.splice([Rebuild((route.wire.messages_key,), kept)]))


def _find_messages(reading: Reading, route: Route) -> list[Json]:
    """Return all messages. A bare text is one message of the user."""
    assert route.wire is not None
    if isinstance(text := get_value(reading.tree, route.wire.messages_key), str):
        return [{"role": "user", "content": text}]
    return get_list(reading.tree, route.wire.messages_key)
