"""Sends requests to the upstream: prepared, and once more where the upstream says what it rejects."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from sightline.dial import Body, Dialler, Exchange
from sightline.engine import Engine, Prepared, Reading
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.upstream import Visitor
from sightline.surfaces.proxy.bodies import BufferedBody, StreamedBody
from sightline.surfaces.proxy.context import RequestContext
from sightline.surfaces.proxy.headers import UNCHANGED, Changes, build_upstream_headers
from sightline.surfaces.proxy.response import read_rejection
from sightline.surfaces.proxy.telemetry import Metrics
from sightline.vision.lru_cache import LruCache
from sightline.wire.jsontext import Document
from sightline.wire.listen import Rejected

log = logging.getLogger("sightline")

_REJECTING_SECONDS = 3600.0  # in which an upstream that has rejected our tools is not offered them again
_MOST_REJECTING = 256


class UpstreamClient:
    def __init__(
        self, engine: Engine, dialler: Dialler, metrics: Metrics, report: Callable[[RequestContext, Receipt], None]
    ) -> None:
        """`report` is called with what was done to a request."""
        self.engine = engine
        self.report = report
        self._dialler = dialler
        self._metrics = metrics
        self._rejecting: LruCache[float] = LruCache(_MOST_REJECTING)  # since when

    def send(
        self, context: RequestContext, body: BufferedBody | StreamedBody, reading: Reading | None
    ) -> Awaitable[Exchange | Refusal]:
        """Send a request with all that has to be done to it; without a reading, as it came."""
        if isinstance(body, StreamedBody):
            return self._forward(context, body.pieces)
        if reading is None:
            return self._send_unchanged(context, body)
        if reading.scene.sights:
            return self._send_prepared(context, body, reading)
        if reading.notes:
            self.report(context, Receipt(context.route.upstream.name, reading.scene.model, notes=reading.notes))
        if reading.added:
            return self._send_with_tools(context, body, reading)
        return self._send_unchanged(context, body, read=reading.scene.stream)

    def release(self, exchange: Exchange, context: RequestContext) -> None:
        """Keep the connection of an exchange that is over for the next one."""
        self._dialler.rest(exchange, context.route.url)

    def rejects_tools(self, caller: Visitor, model: str) -> bool:
        """Return whether an upstream has rejected our tools for this model lately."""
        since = self._rejecting.get((caller.scope, caller.upstream.name, model))
        return since is not None and time.monotonic() - since < _REJECTING_SECONDS

    def _note_rejected_tools(self, caller: Visitor, model: str) -> None:
        self._rejecting.put((caller.scope, caller.upstream.name, model), time.monotonic())

    async def _send_with_tools(
        self, context: RequestContext, body: BufferedBody, reading: Reading
    ) -> Exchange | Refusal:
        """Send a request without sights, with tools of ours; if the upstream rejects them, send it without."""
        assert isinstance(reading.texts, Document)
        changes = Changes(unpacked=True, read=True, repeated=body.repeated)
        written = await self.engine.offload(reading, reading.texts.splice, reading.added)
        exchange = await self._forward(context, written, changes)
        if isinstance(exchange, Refusal) or exchange.status not in (400, 422):
            return exchange
        with _close_on_error(exchange):
            rejected = await read_rejection(exchange, context.patience)
        if rejected is None or not _names_our_tools(rejected, reading):
            return exchange
        self.release(exchange, context)
        self._note_rejected_tools(context.caller, reading.scene.model)
        return await self._send_unchanged(context, body, read=reading.scene.stream, repeated=True)

    async def _send_prepared(self, context: RequestContext, body: BufferedBody, reading: Reading) -> Exchange | Refusal:
        """Send a request with sights, and repair it once when the upstream rejects it."""
        caller, paid = context.caller, not context.route.endpoint.counts
        prepared = await _try(self.engine.prepare(reading, caller, paid=paid))
        if prepared is None:
            return await self._send_unchanged(context, body)
        exchange = await self._send_edited(context, body, prepared)
        if isinstance(exchange, Refusal):
            return exchange
        rejected = await self._read_rejection(exchange, context)
        if rejected is None:
            return exchange
        with _close_on_error(exchange):
            again = await _try(self.engine.repair(prepared, caller, rejected.status, rejected.words))
        if again is None and reading.added and _names_our_tools(rejected, reading):
            self._note_rejected_tools(caller, reading.scene.model)
            again = await _try(self.engine.prepare(_remove_tools(reading), caller, paid=paid))
        if again is None:
            return exchange
        self.release(exchange, context)
        retried = await self._send_edited(context, body, again)
        if isinstance(retried, Exchange) and await self._read_rejection(retried, context) is None:
            with _close_on_error(retried):
                await self.engine.taken(again, caller)
        return retried

    async def _read_rejection(self, exchange: Exchange, context: RequestContext) -> Rejected | None:
        """Return how a response rejects its request. Until then nothing of it is sent, nor a head of our own."""
        with _close_on_error(exchange), context.response.hold_head():
            return await read_rejection(exchange, context.patience)

    async def _send_edited(self, context: RequestContext, body: BufferedBody, prepared: Prepared) -> Exchange | Refusal:
        parts: Body | None = [body.data]
        if prepared.edits:
            parts = await self.engine.offload(prepared.reading, _write, prepared)
        if parts is None:
            return await self._send_unchanged(context, body)
        if prepared.receipt.sights or prepared.receipt.notes:
            self.report(context, prepared.receipt)
        repaired = prepared.taught is not None
        self._metrics.count_receipt(prepared.receipt, again=repaired)
        changes = Changes(bool(prepared.edits) or body.rewritten, read=True, repeated=repaired or body.repeated)
        return await self._forward(context, parts, changes, prepared.address(context.route.url))

    def _send_unchanged(
        self, context: RequestContext, body: BufferedBody, *, read: bool = False, repeated: bool = False
    ) -> Awaitable[Exchange | Refusal]:
        changes = Changes(unpacked=body.rewritten, read=read, repeated=repeated or body.repeated)
        return self._forward(context, [body.data], changes)

    def _forward(
        self, context: RequestContext, body: Body, changes: Changes = UNCHANGED, url: str | None = None
    ) -> Awaitable[Exchange | Refusal]:
        request, route = context.request, context.route
        headers = build_upstream_headers(request, route, changes, framed=not isinstance(body, Sequence))
        return self._dialler.send(request.method, url or route.url, headers, body)


def _names_our_tools(rejected: Rejected, reading: Reading) -> bool:
    return any(name in rejected.words for name in reading.scene.ours)


def _remove_tools(reading: Reading) -> Reading:
    """Return a reading as it was before our tools were offered."""
    scene = reading.scene
    return replace(reading, added=(), scene=replace(scene, tools=scene.tools - scene.ours, ours=frozenset()))


async def _try(work: Awaitable[Prepared | None]) -> Prepared | None:
    try:
        return await work
    except Exception:  # fail open
        log.exception("a request could not be prepared; it goes on untouched")
        return None


def _write(prepared: Prepared) -> Body | None:
    try:
        return prepared.body
    except Exception:  # fail open
        log.exception("a request could not be written; it goes on untouched")
        return None


@contextmanager
def _close_on_error(exchange: Exchange) -> Iterator[None]:
    try:
        yield
    except BaseException:
        exchange.close()
        raise
