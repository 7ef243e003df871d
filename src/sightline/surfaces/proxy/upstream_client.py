"""Requests to the upstream: prepared, sent, and sent again if the upstream says what it rejects."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace

from sightline.dial import Body, Exchange, HttpClient, is_whole
from sightline.engine import (
    OWN_TOOLS_REJECTED,
    PDF_ACCEPTED,
    Engine,
    PreparedRequest,
    Reading,
    RepairLesson,
    blame_edits,
)
from sightline.model.profile import Lesson
from sightline.model.records import Receipt
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.surfaces.proxy.bodies import BufferedBody, StreamedBody
from sightline.surfaces.proxy.http_headers import UNCHANGED, RequestChanges, build_upstream_headers
from sightline.surfaces.proxy.own_body_fallback import REJECTED_STATUSES, OwnBodyFallback, RejectedEdits
from sightline.surfaces.proxy.request_context import MAX_ERROR_BYTES, RequestContext
from sightline.surfaces.proxy.telemetry import Metrics, RequestLog
from sightline.wire.json_document import JsonDocument
from sightline.wire.sse import ANSWER_START, Opening, StreamRejection, read_opening

log = logging.getLogger("sightline")

FAILED_UPSTREAM = "failed upstream: {}"
_REJECTED_BEFORE = "sent as it came: the upstream has just rejected it in this form and in a changed one"
_ERROR_SECONDS = 10.0


@value_class
class _Attempt:
    """A prepared request that was sent."""

    outcome: Exchange | Refusal
    rejection: StreamRejection | None = None
    repaired: PreparedRequest | None = None  # to be sent instead

    @property
    def is_rejected(self) -> bool:
        return self.rejection is not None and self.rejection.status in REJECTED_STATUSES


_SendOutcome = tuple[Exchange | Refusal, RejectedEdits | None]
"""A response, and what was rejected if it rejects edits of ours."""


class UpstreamClient:
    def __init__(
        self,
        engine: Engine,
        http_client: HttpClient,
        metrics: Metrics,
        log: RequestLog,
    ) -> None:
        self.engine = engine
        self.report = log.file_receipt
        self.release = http_client.release
        self._http_client = http_client
        self._metrics = metrics
        self._fallback = OwnBodyFallback(engine)

    def was_rejected(self, context: RequestContext, own: BufferedBody) -> bool:
        """Return whether a client's own body is sent without edits, because every form of it was rejected recently."""
        return self._fallback.was_rejected(context, own)

    def send(
        self,
        context: RequestContext,
        body: BufferedBody | StreamedBody,
        reading: Reading | None,
        own: BufferedBody | None = None,
    ) -> Awaitable[Exchange | Refusal]:
        """Send a request, prepared as its reading requires; without a reading, as it came.

        `own` is the client's own body, to be sent if the upstream rejects an edited one; None: it can't be sent.
        """
        if isinstance(body, StreamedBody):
            return self._forward(context, body.pieces)
        if reading is None:
            return self._send_as_is(context, body)
        if reading.scene.sights:
            return self._send_edited(context, body, reading, own)
        if reading.notes:
            self.report(context, Receipt(context.route.upstream.name, reading.scene.model, notes=reading.notes))
        if reading.extra_edits or body.original is not None:
            return self._send_edited(context, body, reading, own)
        return self._send_as_is(context, body, reads_response=reading.scene.stream)

    async def _send_edited(
        self, context: RequestContext, body: BufferedBody, reading: Reading, own: BufferedBody | None
    ) -> Exchange | Refusal:
        """Send a request with edits, and the client's own body if the upstream rejects it and no repair helps."""
        if own is not None and self._fallback.was_rejected(context, own):
            return await self._send_own_again(context, own, reading)
        send = self._send_with_sights if reading.scene.sights else self._send_without_sights
        outcome, rejected = await send(context, body, reading)
        if own is None or rejected is None or not isinstance(outcome, Exchange):
            return outcome
        if rejected.rejection.status not in REJECTED_STATUSES:
            return outcome
        self.release(outcome)
        outcome = await self.send_own(context, own)
        if isinstance(outcome, Exchange):
            again = await self._read_rejection(outcome, context)
            with _CloseOnError(outcome):
                self.report(context, await self._fallback.learn(context, own, rejected, again))
        return outcome

    async def _send_own_again(self, context: RequestContext, own: BufferedBody, reading: Reading) -> Exchange | Refusal:
        """Send the client's own body, because its edited form was rejected as well a short time ago."""
        self.report(context, Receipt(context.route.upstream.name, reading.scene.model, notes=(_REJECTED_BEFORE,)))
        outcome = await self._send_as_is(context, own, reads_response=True)
        if isinstance(outcome, Exchange) and await self._read_rejection(outcome, context) is None:
            self._fallback.forget_rejection(context, own)
        return outcome

    def send_own(self, context: RequestContext, own: BufferedBody) -> Awaitable[Exchange | Refusal]:
        """Send the client's own body, after another form of the request was rejected."""
        return self._send_as_is(context, own, reads_response=True, is_retry=True)

    async def _send_without_sights(self, context: RequestContext, body: BufferedBody, reading: Reading) -> _SendOutcome:
        """Send a request without sights but with our tools, or texts in the place of PDFs."""
        assert isinstance(reading.texts, JsonDocument)
        changes = RequestChanges(decompressed=True, reads_response=True, is_retry=body.is_retry)
        written = await self.engine.offload_walk(reading, reading.texts.splice, reading.extra_edits)
        exchange = await self._forward(context, written, changes)
        if isinstance(exchange, Refusal):
            return exchange, None
        rejection = await self._read_rejection(exchange, context)
        if rejection is None and not self._fallback.blames_edits:
            return exchange, None
        is_named = rejection is not None and _names_our_tools(rejection, reading)
        lesson = OWN_TOOLS_REJECTED if reading.extra_edits else None
        lesson = PDF_ACCEPTED if body.original is not None and not is_named else lesson
        if rejection is not None:
            return exchange, RejectedEdits(reading.scene.model, rejection, lesson, is_named)
        self._fallback.clear_blame(context, reading.scene.model, lesson)
        return exchange, None

    async def _send_with_sights(self, context: RequestContext, body: BufferedBody, reading: Reading) -> _SendOutcome:
        """Send a request with sights, and repair it if the upstream rejects it."""
        caller, paid = context.caller, not context.route.endpoint.counts_tokens
        prepared = await _try_prepare(self.engine.prepare(reading, caller, paid=paid, lesson_loaded=True))
        if prepared is None:
            return await self._send_as_is(context, body.own), None
        first = await self._send_and_check(
            context, body, prepared, lambda rejection: self._repair(context, reading, prepared, rejection)
        )
        if first.rejection is None:
            if self._fallback.blames_edits and isinstance(first.outcome, Exchange):
                self._fallback.clear_blame(context, prepared.scene.model, _find_lesson(prepared, body))
            return first.outcome, None
        if first.repaired is None or not isinstance(first.outcome, Exchange):
            return first.outcome, _find_rejected_edits(first, prepared, body)
        with _CloseOnError(first.outcome):
            last, repaired = await self._send_repaired(context, body, first.repaired)
        if last.is_rejected and not prepared.edits and body.original is None and isinstance(last.outcome, Exchange):
            self.release(last.outcome)
            return first.outcome, None  # the answer to the body as it came
        self.release(first.outcome)
        rejected = _find_rejected_edits(last, repaired, body)
        return last.outcome, rejected and replace(rejected, lesson=_find_lesson(prepared, body))

    async def _send_repaired(
        self, context: RequestContext, body: BufferedBody, repaired: PreparedRequest
    ) -> tuple[_Attempt, PreparedRequest]:
        """Send a repaired request, and another if the upstream says that its images are still too large."""

        def repair_again(rejection: StreamRejection) -> Awaitable[PreparedRequest | None]:
            return _try_prepare(self.engine.repair(repaired, context.caller, rejection.status, rejection.words))

        attempt = await self._send_and_check(context, body, repaired, repair_again)
        if attempt.repaired is None or not isinstance(attempt.outcome, Exchange):
            return attempt, repaired
        with _CloseOnError(attempt.outcome):
            last = await self._send_and_check(context, body, attempt.repaired)
        self.release(attempt.outcome)
        return last, attempt.repaired

    async def _repair(
        self, context: RequestContext, reading: Reading, prepared: PreparedRequest, rejection: StreamRejection
    ) -> PreparedRequest | None:
        """Return the request without what the upstream rejects, or None if that is unknown."""
        caller, paid = context.caller, not context.route.endpoint.counts_tokens
        repaired = await _try_prepare(self.engine.repair(prepared, caller, rejection.status, rejection.words))
        if repaired is None and reading.extra_edits and _names_our_tools(rejection, reading):
            without = _remove_tools(reading)
            repaired = await _try_prepare(self.engine.prepare(without, caller, paid=paid, lesson_loaded=True))
            return repaired and replace(repaired, repair_lesson=RepairLesson(OWN_TOOLS_REJECTED))
        return repaired

    async def _send_and_check(
        self,
        context: RequestContext,
        body: BufferedBody,
        prepared: PreparedRequest,
        repair: Callable[[StreamRejection], Awaitable[PreparedRequest | None]] | None = None,
    ) -> _Attempt:
        """Send a prepared request, and return the response with a repaired request if the upstream rejects this one.

        The receipt is filed when the outcome is known, so that it can say that the request failed upstream.
        """
        written: Body | None = [body.data]
        if prepared.edits:
            written = await self.engine.offload_walk(prepared.reading, _try_write, prepared)
        if written is None:
            return _Attempt(await self._send_as_is(context, body.own))
        self.engine.hash_images(prepared)
        failure, repaired, rejection, exchange = "", None, None, None
        try:
            exchange = await self._forward_request(context, body, written, prepared)
            if isinstance(exchange, Refusal):
                failure = exchange.what
            else:
                rejection = await self._read_rejection(exchange, context)
                with _CloseOnError(exchange):
                    if rejection is not None and repair is not None:
                        repaired = await repair(rejection)
                    if rejection is not None and repaired is None:
                        failure = f"status {rejection.status}"
                    elif rejection is None and prepared.repair_lesson is not None:
                        await self.engine.confirm_repair(prepared, context.caller)
            return _Attempt(exchange, rejection, repaired)
        finally:  # also when the client disconnects
            receipt, answer = prepared.receipt, exchange if isinstance(exchange, Exchange) else None
            if failure:
                receipt, answer = replace(receipt, notes=(*receipt.notes, FAILED_UPSTREAM.format(failure))), None
            if receipt.sights or receipt.notes:
                self.report(context, receipt, prepared.trace, answer)

    def _forward_request(
        self, context: RequestContext, body: BufferedBody, parts: Body, prepared: PreparedRequest
    ) -> Awaitable[Exchange | Refusal]:
        repairs = prepared.repair_lesson is not None
        self._metrics.count_receipt(prepared.receipt, is_retry=repairs)
        rewritten = bool(prepared.edits) or body.rewritten
        changes = RequestChanges(rewritten, reads_response=True, is_retry=repairs or body.is_retry)
        return self._forward(context, parts, changes, prepared.build_url(context.route.url))

    async def _read_rejection(self, exchange: Exchange, context: RequestContext) -> StreamRejection | None:
        """Return how a response rejects its request, or None; the client gets no head of a response until then."""
        with _CloseOnError(exchange):
            if exchange.status == 200 and read_opening(exchange.join_unread()) is ANSWER_START:  # nearly always
                return None
            return await context.response.hold_head(_find_rejection(exchange, context.keep_alive_after))

    def _send_as_is(
        self, context: RequestContext, body: BufferedBody, *, reads_response: bool = False, is_retry: bool = False
    ) -> Awaitable[Exchange | Refusal]:
        changes = RequestChanges(body.rewritten, reads_response, is_retry or body.is_retry)
        return self._http_client.send_request(context.head.get_upstream_head(context.request, changes), [body.data])

    def _forward(
        self, context: RequestContext, body: Body, changes: RequestChanges = UNCHANGED, url: str | None = None
    ) -> Awaitable[Exchange | Refusal]:
        request, route = context.request, context.route
        if is_whole(body) and (url is None or url == route.url):
            return self._http_client.send_request(context.head.get_upstream_head(request, changes), body)
        headers = build_upstream_headers(request, route, changes)
        if not is_whole(body):  # it has the client's framing
            length = request.get_header(b"content-length").encode()
            headers.append((b"content-length", length) if length else (b"transfer-encoding", b"chunked"))
        return self._http_client.send(request.method, url or route.url, headers, body)


def _find_rejected_edits(attempt: _Attempt, prepared: PreparedRequest, body: BufferedBody) -> RejectedEdits | None:
    if attempt.rejection is None or not (prepared.edits or body.original is not None):
        return None
    return RejectedEdits(prepared.scene.model, attempt.rejection, _find_lesson(prepared, body))


def _find_lesson(prepared: PreparedRequest, body: BufferedBody) -> Lesson | None:
    """Return what a rejection of a request would teach, if the client's own body is accepted."""
    return blame_edits(prepared) if body.original is None else PDF_ACCEPTED


def _names_our_tools(rejected: StreamRejection, reading: Reading) -> bool:
    return any(name in rejected.words for name in reading.scene.own_tools)


def _remove_tools(reading: Reading) -> Reading:
    """Return a reading as it was before our tools were offered."""
    scene = reading.scene
    return replace(
        reading, extra_edits=(), scene=replace(scene, tools=scene.tools - scene.own_tools, own_tools=frozenset())
    )


async def _try_prepare(work: Awaitable[PreparedRequest | None]) -> PreparedRequest | None:
    try:
        return await work
    except Exception:  # fail open
        log.exception("a request could not be prepared; it is forwarded unchanged")
        return None


def _try_write(prepared: PreparedRequest) -> Body | None:
    try:
        return prepared.body
    except Exception:  # fail open
        log.exception("a request could not be written; it is forwarded unchanged")
        return None


class _CloseOnError:
    """A context that closes an exchange on an error; a generator would take ten times as long for every request."""

    __slots__ = ("_exchange",)

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            self._exchange.close()


async def _find_rejection(exchange: Exchange, seconds: float) -> StreamRejection | None:
    """Return how an upstream rejects a request, by its status or at the beginning of a body with status 200."""
    if exchange.status >= 400:
        body = await exchange.peek(MAX_ERROR_BYTES, _ERROR_SECONDS)
        return StreamRejection(exchange.status, body.decode("utf-8", "replace"))
    if exchange.status != 200:
        return None
    found: Opening | None = None

    def is_recognized(beginning: bytes) -> bool:
        nonlocal found
        found = read_opening(beginning)
        return found is not None

    await exchange.peek(MAX_ERROR_BYTES, seconds, is_recognized)
    return found if isinstance(found, StreamRejection) else None
