"""The proxy as an ASGI application: route, read, prepare, forward, repair, relay."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from sightline.dial import Body, Dialler, Exchange
from sightline.engine import Engine, Prepared, Reading
from sightline.model.ports import Record
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory, Visitor
from sightline.surfaces.proxy.answering import Answering
from sightline.surfaces.proxy.asides import UNWOVEN, Aside, Asides, Tools, Woven, in_legs, without_tools
from sightline.surfaces.proxy.bodies import LARGEST, Flowing, Gone, Held, Message, Receive, Send, Unpacking, taken
from sightline.surfaces.proxy.commands import Commands, is_listed, without_commands
from sightline.surfaces.proxy.headers import UNCHANGED, Changes, Request, credential_of, lent, onward, unwelcome
from sightline.surfaces.proxy.heard import as_events, is_odd, is_stream, is_whole, rejection, whole_of
from sightline.surfaces.proxy.line import LINE, Line
from sightline.surfaces.proxy.metrics import CONTENT_TYPE, Metrics
from sightline.surfaces.proxy.presence import Presence
from sightline.surfaces.proxy.reply import Reply, words
from sightline.surfaces.proxy.routes import Route, route, speaks
from sightline.surfaces.proxy.watch import Watch
from sightline.wire.jsontext import Document
from sightline.wire.loop.choice import no_choice
from sightline.wire.opening import Rejected

log = logging.getLogger("sightline")
T = TypeVar("T")
Mounted = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]

_NO_WEBSOCKET = "Sightline: this address answers HTTP requests, not websockets."

_PASSED_ALONG = 1024 * 1024  # bodies of routes that are not ours flow from this size on


@dataclass(frozen=True, slots=True)
class _Asked:
    outcome: Exchange | Refusal
    aside: Aside | None = None  # what of it is ours, where tools of ours were offered


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
    ) -> None:
        self._engine = engine
        self._dialler = dialler
        self._directory = directory
        self._record = record
        self._say = say
        self._patience = patience  # seconds without an answer before a stream is kept alive
        self._token = token  # whoever brings it may come from another machine; empty: only this one is served
        self._metrics = metrics or Metrics()
        self._unpacking = Unpacking()
        self._commands = commands
        self._watch = watch or Watch(record)
        self._asides = None if tools is None else Asides(engine, record, tools)
        self._mounts = mounts or {}  # other applications, each at a path of its own

    async def close(self) -> None:
        if self._asides is not None:
            await self._asides.close()

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope["method"], scope["headers"])
        path, query = scope["raw_path"].decode("latin-1"), scope["query_string"].decode("latin-1")
        reply = Reply(send, speaks(path, request.headers, self._directory), heard=True)
        if no := unwelcome(request, self._token):
            await reply.refused(403 if path in self._mounts else 400, words(no))
            self._watch.ended(request, reply.status)
            return
        if request.header(b"upgrade").lower() == "websocket":
            await reply.refused(426, _NO_WEBSOCKET, headers=[(b"upgrade", b"HTTP/1.1")])
            self._watch.ended(request, reply.status)
            return
        if path in _OWN:
            await answer(send, *_OWN[path](self._metrics))
            return
        if mounted := self._mounts.get(path):
            await self._mounted(mounted, request, scope, receive, send)
            return
        way = route(path, query, request.headers, self._directory)
        if isinstance(way, Refusal):
            await reply.refused(400, words(way))
            self._watch.ended(request, reply.status)
            return
        line: Line | None = scope.get("extensions", {}).get(LINE)
        reply = Reply(send, reply.wire, heard=way.wire is not None, line=line)
        self._metrics.begun()
        try:
            length = request.header(b"content-length")
            most = LARGEST if way.wire else _PASSED_ALONG
            body = await taken(receive, int(length) if length.isdigit() else None, most, line)
            async with Presence(receive, after=None if isinstance(body, Held) else body.over, line=line):
                await self._serve(request, way, body, reply)
        except Gone:
            pass
        except Exception:  # the outermost edge: the client is told in its own words
            log.exception("a request could not be served")
            await reply.refused(400, "Sightline: a fault of its own kept this request from being served.")
        finally:
            self._metrics.ended(way.wire.name if way.wire else "other", way.upstream.name, reply.status)
            self._watch.ended(request, reply.status, way)

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

    async def _serve(self, request: Request, way: Route, body: Held | Flowing, reply: Reply) -> None:
        reading = await self._read(request, way, body)
        if isinstance(body, Held) and reading is not None:
            self._watch.read(request, way, reading)
            if self._commands and (command := self._commands.typed(reading, way)):
                await self._answer(command, request, way, reading, reply)
                return
            body, reading = self._cut(way, body, reading)
        asked = await self._in_time(self._asked(request, way, body, reading, reply), reply, stream=_waits(way, reading))
        outcome, aside = asked.outcome, asked.aside
        if isinstance(outcome, Refusal):
            await reply.no(outcome)
            return
        if aside is not None and (is_whole(outcome) or (outcome.status == 200 and is_stream(outcome))):
            assert self._asides is not None
            await self._answered(self._asides, aside, request, way, outcome, reply)
            return
        try:
            events = await self._streamed(way, reading, outcome, reply)
            if isinstance(events, Refusal):
                await reply.no(events)
            elif events is not None:
                await reply.unrolled(outcome, events)
            else:
                await reply.relay(outcome)
        finally:
            self._dialler.rest(outcome, way.url)

    async def _streamed(
        self, way: Route, reading: Reading | None, exchange: Exchange, reply: Reply
    ) -> bytes | Refusal | None:
        """Events for a client that asked for some, where the upstream answers otherwise; clients loop over the rest."""
        if reading is None or not reading.scene.stream or not is_odd(exchange) or is_listed(way):
            return None
        assert way.wire is not None
        return await self._in_time(as_events(exchange, way.wire.name), reply, stream=_waits(way, reading))

    async def _asked(
        self, request: Request, way: Route, body: Held | Flowing, reading: Reading | None, reply: Reply
    ) -> _Asked:
        """What the upstream answers; and who listens for calls of ours in it, if that has to be."""
        if isinstance(body, Flowing):
            return _Asked(await self._forward(request, way, body.pieces))
        if reading is None or self._asides is None:
            return _Asked(await self._sent(request, way, body, reading, reply))
        visitor = self._visitor(request, way)
        woven = await _woven(self._asides, way, visitor, reading)
        more, with_more, aside = self._with_tools(self._asides, way, visitor, body, reading, woven)
        outcome = await self._sent(request, way, more, with_more, reply)
        if more is body or isinstance(outcome, Refusal) or outcome.status not in (400, 422):
            return _Asked(outcome, aside)
        self._dialler.rest(outcome, way.url)  # perhaps it is our calls that it will not have
        again = replace(body, again=True)
        more, with_more, aside = self._with_tools(self._asides, way, visitor, again, reading, Woven())
        outcome = await self._sent(request, way, more, with_more, reply)
        if isinstance(outcome, Exchange) and outcome.status < 400:
            self._asides.unwoven(woven)
            self._tell(request, way, Receipt(way.upstream.name, reading.scene.model, notes=(UNWOVEN,)))
        return _Asked(outcome, aside)

    def _sent(
        self, request: Request, way: Route, body: Held, reading: Reading | None, reply: Reply
    ) -> Awaitable[Exchange | Refusal]:
        if reading is not None and reading.scene.sights:
            return self._attended(request, way, body, reading, reply)
        if reading is not None and reading.notes:
            self._tell(request, way, Receipt(way.upstream.name, reading.scene.model, notes=reading.notes))
        if reading is not None and reading.added:
            return self._with_more(request, way, body, reading)
        changes = Changes(unpacked=body.remade, read=_streams(reading), repeated=body.again)
        return self._forward(request, way, [body.data], changes)

    async def _with_more(self, request: Request, way: Route, body: Held, reading: Reading) -> Exchange | Refusal:
        """A request in which there is nothing to see, with tools of ours; without them, if they will not be had."""
        assert isinstance(reading.texts, Document)
        more = reading.texts.splice(reading.added)
        changes = Changes(unpacked=True, read=True, repeated=body.again)
        exchange = await self._forward(request, way, more, changes)
        if isinstance(exchange, Refusal) or exchange.status not in (400, 422):
            return exchange
        with _closed_unless_kept(exchange):
            no = await rejection(exchange, self._patience)
        if no is None or not any(name in no.words for name in reading.scene.ours):
            return exchange
        self._dialler.rest(exchange, way.url)
        self._unwanted(request, way, reading)
        changes = Changes(unpacked=body.remade, read=_streams(reading), repeated=True)
        return await self._forward(request, way, [body.data], changes)

    def _unwanted(self, request: Request, way: Route, reading: Reading) -> None:
        """An upstream has named our tools in its no: they are not offered again at once."""
        if self._asides is not None:
            self._asides.unwanted(self._visitor(request, way), reading.scene.model)

    def _with_tools(
        self, asides: Asides, way: Route, visitor: Visitor, body: Held, reading: Reading, woven: Woven
    ) -> tuple[Held, Reading, Aside | None]:
        """With our calls back in their places, and tools of ours, where there is room for some."""
        asked = reading
        try:
            again = None if woven.body is None else self._reading(way, woven.body)
            if woven.body is not None and again is not None:
                body, reading = Held(woven.body, remade=True), again
            reading = replace(reading, notes=woven.notes) if woven.notes else reading
            if is_listed(way) and reading.scene.stream:  # in which nobody could listen
                return body, reading, None
            reading, names = asides.offered(reading, way, visitor, known=woven.body is not None)
        except Exception:  # a fault of ours must not be worse than our absence
            log.exception("a request could not be given tools; it goes on without")
            return body, reading, None
        if not names or way.endpoint.counts:
            return body, reading, None
        return body, reading, Aside(way.api, names, reading, asked, visitor, asked.scene.model)

    async def _answered(
        self, asides: Asides, aside: Aside, request: Request, way: Route, exchange: Exchange, reply: Reply
    ) -> None:
        async def following(body: Callable[[], Awaitable[bytes]]) -> Exchange | Refusal:
            data = await body()
            reading = self._reading(way, data)
            if reading is None:
                return Refusal("unavailable", "the next part of the answer could not be asked for", "ask again")
            more, _ = asides.offered(reading, way, aside.visitor, known=True)
            held = Held(data, remade=True, again=True)
            if not aside.is_last or not more.added:
                return await self._sent(request, way, held, more, reply)
            if not aside.loop.is_free(reading.tree):  # what must be called now is one of the client's
                return await self._sent(request, way, held, reading, reply)
            words_only = replace(more, added=(*more.added, no_choice(way.api, more.tree)))
            found = await self._sent(request, way, held, words_only, reply)
            if isinstance(found, Refusal) or found.status not in (400, 422):
                return found
            self._dialler.rest(found, way.url)  # perhaps it knows no such choice
            return await self._sent(request, way, held, more, reply)

        def ask(body: Callable[[], Awaitable[bytes]]) -> Awaitable[Exchange | Refusal]:
            return self._in_time(following(body), reply, stream=_waits(way, aside.reading))

        def read(exchange: Exchange) -> Awaitable[bytes | bytearray | None]:
            return self._in_time(whole_of(exchange), reply, stream=_waits(way, aside.reading))

        streams = aside.reading.scene.stream
        rest = partial(self._dialler.rest, url=way.url)
        used = await Answering(asides, aside, way.api, reply, streams, ask, read, rest).run(exchange)
        if used is not None and (aside.legs or len(used) > 1):
            self._tell(request, way, Receipt(way.upstream.name, aside.model, notes=in_legs(aside, used)))

    def _tell(self, request: Request, way: Route, receipt: Receipt) -> None:
        self._say(receipt)
        self._watch.prepared(request, way, receipt)

    async def _read(self, request: Request, way: Route, body: Held | Flowing) -> Reading | None:
        """A body of ours to look into; what is signed, too large, or no JSON goes on as it came."""
        if way.wire is None or isinstance(body, Flowing) or request.method != "POST":
            return None
        if request.header(b"authorization").startswith("AWS4-HMAC-SHA256"):
            return None
        data = await self._unpacking.of(body.data, request.header(b"content-encoding"))
        return None if data is None else self._reading(way, data)

    def _reading(self, way: Route, data: bytes | bytearray) -> Reading | None:
        assert way.wire is not None
        try:
            reading = self._engine.read(data, way.wire)
            if reading is None or (scene := way.endpoint.of(reading.scene)) is reading.scene:
                return reading
            return replace(reading, scene=scene)
        except Exception:  # a fault of ours must not be worse than our absence
            log.exception("a request could not be read; it goes on untouched")
            return None

    def _cut(self, way: Route, body: Held, reading: Reading) -> tuple[Held, Reading | None]:
        """Without the commands that were answered here, of which the model knows nothing."""
        try:
            rest = without_commands(reading, way)
        except Exception:  # a fault of ours must not be worse than our absence
            log.exception("commands could not be cut; the request goes on with them")
            rest = None
        return (body, reading) if rest is None else (Held(rest, remade=True), self._reading(way, rest))

    async def _answer(self, command: str, request: Request, way: Route, reading: Reading, reply: Reply) -> None:
        assert self._commands is not None
        visitor = self._visitor(request, way)
        work = self._commands.answered(command, reading, way, visitor, self._engine.references(reading, visitor))
        await reply.say(*await self._in_time(work, reply, stream=_waits(way, reading)))

    async def _attended(
        self, request: Request, way: Route, body: Held, reading: Reading, reply: Reply
    ) -> Exchange | Refusal:
        """A request with sights: prepared, forwarded, and once repaired when the upstream cannot take it."""
        visitor = self._visitor(request, way)
        prepared = await _safely(self._engine.prepare(reading, visitor, paid=not way.endpoint.counts))
        if prepared is None:
            return await self._forward(request, way, [body.data], _changes(body))
        exchange = await self._prepared_sent(request, way, body, prepared)
        if isinstance(exchange, Refusal):
            return exchange
        no = await self._rejected(exchange, reply)
        if no is None:
            return exchange
        with _closed_unless_kept(exchange):
            again = await _safely(self._engine.repair(prepared, visitor, no.status, no.words))
        if again is None and reading.added and any(name in no.words for name in reading.scene.ours):
            self._unwanted(request, way, reading)
            again = await _safely(self._engine.prepare(without_tools(reading), visitor, paid=not way.endpoint.counts))
        if again is None:
            return exchange
        self._dialler.rest(exchange, way.url)
        retried = await self._prepared_sent(request, way, body, again)
        if isinstance(retried, Exchange) and await self._rejected(retried, reply) is None:
            with _closed_unless_kept(retried):
                await self._engine.taken(again, visitor)
        return retried

    async def _rejected(self, exchange: Exchange, reply: Reply) -> Rejected | None:
        """Nothing of an answer goes out before it is known that it is one; its own headers wait, too."""
        with _closed_unless_kept(exchange), reply.holding():
            return await rejection(exchange, self._patience)

    async def _prepared_sent(self, request: Request, way: Route, body: Held, prepared: Prepared) -> Exchange | Refusal:
        parts = _written(prepared) if prepared.edits else [body.data]
        if parts is None:
            return await self._forward(request, way, [body.data], _changes(body))
        if prepared.receipt.sights or prepared.receipt.notes:
            self._tell(request, way, prepared.receipt)
        self._metrics.prepared(prepared.receipt, again=prepared.taught is not None)
        repeated = prepared.taught is not None or body.again
        changes = Changes(unpacked=bool(prepared.edits) or body.remade, read=True, repeated=repeated)
        url = prepared.address(way.url)
        return await self._forward(request, way if url == way.url else replace(way, url=url), parts, changes)

    async def _forward(
        self, request: Request, way: Route, body: Body, changes: Changes = UNCHANGED
    ) -> Exchange | Refusal:
        headers = onward(request, way, changes, framed=not isinstance(body, Sequence))
        return await self._dialler.send(request.method, way.url, headers, body)

    async def _in_time(self, work: Awaitable[T], reply: Reply, stream: bool) -> T:
        if not stream:
            return await work
        task = asyncio.ensure_future(work)
        try:
            while not (await asyncio.wait({task}, timeout=self._patience))[0]:
                await reply.stalled()
        except BaseException:
            task.add_done_callback(_close_late)
            task.cancel()
            raise
        return task.result()

    def _visitor(self, request: Request, way: Route) -> Visitor:
        assert way.wire is not None
        scope = self._record.scope_of(credential_of(request, way))
        return Visitor(way.upstream, way.wire.name, scope, lent(request, way))


async def _woven(asides: Asides, way: Route, visitor: Visitor, reading: Reading) -> Woven:
    try:
        return await asides.woven(reading, way, visitor)
    except Exception:  # a fault of ours must not be worse than our absence
        log.exception("what was looked up could not be put back; a request goes on without")
        return Woven()


async def _safely(work: Awaitable[Prepared | None]) -> Prepared | None:
    try:
        return await work
    except Exception:  # a fault of ours must not be worse than our absence
        log.exception("a request could not be prepared; it goes on untouched")
        return None


def _written(prepared: Prepared) -> Body | None:
    try:
        return prepared.body
    except Exception:  # the same
        log.exception("a request could not be written; it goes on untouched")
        return None


def _changes(body: Held) -> Changes:
    return Changes(unpacked=body.remade, repeated=body.again)


@contextmanager
def _closed_unless_kept(exchange: Exchange) -> Iterator[None]:
    try:
        yield
    except BaseException:
        exchange.close()
        raise


def _streams(reading: Reading | None) -> bool:
    return reading is not None and reading.scene.stream


def _waits(way: Route, reading: Reading | None) -> bool:
    """Can the client be kept alive while it waits?"""
    return _streams(reading) and way.wire is not None and bool(way.wire.voice.alive)


def _close_late(task: asyncio.Future[Any]) -> None:
    """The client left just as the answer came."""
    if task.cancelled() or task.exception() is not None:
        return
    found = task.result().outcome if isinstance(task.result(), _Asked) else task.result()
    if isinstance(found, Exchange):
        found.close()


_OWN: Mapping[str, Callable[[Metrics], tuple[bytes, bytes]]] = {
    "/sightline/health": lambda metrics: (b"application/json", b'{"ok":true}'),
    "/sightline/metrics": lambda metrics: (CONTENT_TYPE, metrics.text().encode()),
}


async def answer(send: Send, kind: bytes, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind)]})
    await send({"type": "http.response.body", "body": body, "more_body": False})
