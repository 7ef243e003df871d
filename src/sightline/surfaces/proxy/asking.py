"""Asking the upstream: a request is prepared, sent, and sent once more where the upstream says why it will not do."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from sightline.dial import Body, Dialler, Exchange
from sightline.engine import Engine, Prepared, Reading
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.upstream import Visitor
from sightline.surfaces.proxy.asides import without_tools
from sightline.surfaces.proxy.bodies import Flowing, Held
from sightline.surfaces.proxy.errand import Errand
from sightline.surfaces.proxy.headers import UNCHANGED, Changes, onward
from sightline.surfaces.proxy.heard import rejection
from sightline.surfaces.proxy.metrics import Metrics
from sightline.wire.jsontext import Document
from sightline.wire.listen import Rejected

log = logging.getLogger("sightline")


class Asking:
    def __init__(
        self,
        engine: Engine,
        dialler: Dialler,
        metrics: Metrics,
        tell: Callable[[Errand, Receipt], None],
        unwanted: Callable[[Visitor, str], None],
        patience: float,
    ) -> None:
        """`tell`: what was done to a request; `unwanted`: who will not have our tools, and for which model."""
        self._engine = engine
        self._dialler = dialler
        self._metrics = metrics
        self._tell = tell
        self._unwanted = unwanted
        self._patience = patience  # seconds for the first words of an answer, which may be a no

    def passed(self, errand: Errand, body: Flowing) -> Awaitable[Exchange | Refusal]:
        """A body that nobody looks into."""
        return self._forward(errand, body.pieces)

    def sent(self, errand: Errand, body: Held, reading: Reading | None) -> Awaitable[Exchange | Refusal]:
        """A whole request, with all that has to be done to it."""
        if reading is None:
            return self._untouched(errand, body)
        if reading.scene.sights:
            return self._attended(errand, body, reading)
        if reading.notes:
            self._tell(errand, Receipt(errand.way.upstream.name, reading.scene.model, notes=reading.notes))
        if reading.added:
            return self._with_tools(errand, body, reading)
        return self._untouched(errand, body, read=reading.scene.stream)

    def rest(self, exchange: Exchange, errand: Errand) -> None:
        """An exchange of which nothing more is wanted; its connection is kept for the next one."""
        self._dialler.rest(exchange, errand.way.url)

    async def _with_tools(self, errand: Errand, body: Held, reading: Reading) -> Exchange | Refusal:
        """A request in which there is nothing to see, with tools of ours; without them, if they will not be had."""
        assert isinstance(reading.texts, Document)
        changes = Changes(unpacked=True, read=True, repeated=body.again)
        written = await self._engine.offload(reading, reading.texts.splice, reading.added)
        exchange = await self._forward(errand, written, changes)
        if isinstance(exchange, Refusal) or exchange.status not in (400, 422):
            return exchange
        with _closed_unless_kept(exchange):
            no = await rejection(exchange, self._patience)
        if no is None or not _names_ours(no, reading):
            return exchange
        self.rest(exchange, errand)
        self._unwanted(errand.visitor, reading.scene.model)
        return await self._untouched(errand, body, read=reading.scene.stream, repeated=True)

    async def _attended(self, errand: Errand, body: Held, reading: Reading) -> Exchange | Refusal:
        """A request with sights: prepared, sent, and once repaired when the upstream cannot take it."""
        visitor, paid = errand.visitor, not errand.way.endpoint.counts
        prepared = await _safely(self._engine.prepare(reading, visitor, paid=paid))
        if prepared is None:
            return await self._untouched(errand, body)
        exchange = await self._prepared_sent(errand, body, prepared)
        if isinstance(exchange, Refusal):
            return exchange
        no = await self._rejected(exchange, errand)
        if no is None:
            return exchange
        with _closed_unless_kept(exchange):
            again = await _safely(self._engine.repair(prepared, visitor, no.status, no.words))
        if again is None and reading.added and _names_ours(no, reading):
            self._unwanted(visitor, reading.scene.model)
            again = await _safely(self._engine.prepare(without_tools(reading), visitor, paid=paid))
        if again is None:
            return exchange
        self.rest(exchange, errand)
        retried = await self._prepared_sent(errand, body, again)
        if isinstance(retried, Exchange) and await self._rejected(retried, errand) is None:
            with _closed_unless_kept(retried):
                await self._engine.taken(again, visitor)
        return retried

    async def _rejected(self, exchange: Exchange, errand: Errand) -> Rejected | None:
        """Nothing of an answer goes out before it is known that it is one; its own headers wait, too."""
        with _closed_unless_kept(exchange), errand.reply.holding():
            return await rejection(exchange, self._patience)

    async def _prepared_sent(self, errand: Errand, body: Held, prepared: Prepared) -> Exchange | Refusal:
        parts: Body | None = [body.data]
        if prepared.edits:
            parts = await self._engine.offload(prepared.reading, _written, prepared)
        if parts is None:
            return await self._untouched(errand, body)
        if prepared.receipt.sights or prepared.receipt.notes:
            self._tell(errand, prepared.receipt)
        repaired = prepared.taught is not None
        self._metrics.prepared(prepared.receipt, again=repaired)
        changes = Changes(bool(prepared.edits) or body.remade, read=True, repeated=repaired or body.again)
        return await self._forward(errand, parts, changes, prepared.address(errand.way.url))

    def _untouched(
        self, errand: Errand, body: Held, *, read: bool = False, repeated: bool = False
    ) -> Awaitable[Exchange | Refusal]:
        changes = Changes(unpacked=body.remade, read=read, repeated=repeated or body.again)
        return self._forward(errand, [body.data], changes)

    async def _forward(
        self, errand: Errand, body: Body, changes: Changes = UNCHANGED, url: str | None = None
    ) -> Exchange | Refusal:
        headers = onward(errand.request, errand.way, changes, framed=not isinstance(body, Sequence))
        return await self._dialler.send(errand.request.method, url or errand.way.url, headers, body)


def _names_ours(no: Rejected, reading: Reading) -> bool:
    """Whether it is our tools that an upstream will not have."""
    return any(name in no.words for name in reading.scene.ours)


async def _safely(work: Awaitable[Prepared | None]) -> Prepared | None:
    try:
        return await work
    except Exception:  # a fault of ours must not be worse than our absence
        log.exception("a request could not be prepared; it goes on untouched")
        return None


def _written(prepared: Prepared) -> Body | None:
    try:
        return prepared.body
    except Exception:  # a fault of ours must not be worse than our absence
        log.exception("a request could not be written; it goes on untouched")
        return None


@contextmanager
def _closed_unless_kept(exchange: Exchange) -> Iterator[None]:
    try:
        yield
    except BaseException:
        exchange.close()
        raise
