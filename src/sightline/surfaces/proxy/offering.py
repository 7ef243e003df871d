"""Requests with tools of ours in them: asked with them, or without where they will not be had, and heard leg by leg."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TypeGuard

from sightline.dial import Exchange
from sightline.engine import Reading
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.surfaces.proxy.answering import Answering
from sightline.surfaces.proxy.asides import UNWOVEN, Aside, Asides, Woven, in_legs
from sightline.surfaces.proxy.asking import Asking
from sightline.surfaces.proxy.bodies import Held
from sightline.surfaces.proxy.commands import is_listed
from sightline.surfaces.proxy.errand import Errand
from sightline.surfaces.proxy.heard import whole_of
from sightline.surfaces.proxy.reader import Reader
from sightline.surfaces.proxy.waiting import in_time
from sightline.wire.tool_loop.leg import no_choice

log = logging.getLogger("sightline")


@dataclass(frozen=True, slots=True)
class Asked:
    outcome: Exchange | Refusal
    aside: Aside | None = None  # what of the answer is ours, where tools of ours were offered

    def close(self) -> None:
        if isinstance(self.outcome, Exchange):
            self.outcome.close()


@dataclass(frozen=True, slots=True)
class Offering:
    asides: Asides
    asking: Asking
    reader: Reader
    tell: Callable[[Errand, Receipt], None]
    patience: float

    async def asked(self, errand: Errand, body: Held, reading: Reading) -> Asked:
        """What the upstream answers; and who listens for calls of ours in it, if that has to be."""
        woven = await self._woven(errand, reading)
        offload = self.asides.engine.offload
        more, with_more, aside = await offload(reading, self._with_tools, errand, body, reading, woven)
        outcome = await self.asking.sent(errand, more, with_more)
        if more is body or not _will_not(outcome):
            return Asked(outcome, aside)
        self.asking.rest(outcome, errand)  # perhaps it is our earlier calls that it will not have
        again = replace(body, again=True)
        more, with_more, aside = await offload(reading, self._with_tools, errand, again, reading, Woven())
        outcome = await self.asking.sent(errand, more, with_more)
        if isinstance(outcome, Exchange) and outcome.status < 400:
            self.asides.unwoven(woven)
            self.tell(errand, Receipt(errand.way.upstream.name, reading.scene.model, notes=(UNWOVEN,)))
        return Asked(outcome, aside)

    async def answered(self, errand: Errand, aside: Aside, exchange: Exchange) -> None:
        """The client gets one answer, however many legs it takes."""

        def ask(body: Callable[[], Awaitable[bytes]]) -> Awaitable[Exchange | Refusal]:
            return in_time(self._next_leg(errand, aside, body), errand, aside.reading, self.patience)

        def read(leg: Exchange) -> Awaitable[bytes | bytearray | None]:
            return in_time(whole_of(leg), errand, aside.reading, self.patience)

        def rest(leg: Exchange) -> None:
            self.asking.rest(leg, errand)

        used = await Answering(self.asides, aside, errand.reply, ask, read, rest).run(exchange)
        if used is not None and (aside.legs or len(used) > 1):
            self.tell(errand, Receipt(errand.way.upstream.name, aside.model, notes=in_legs(aside, used)))

    async def _woven(self, errand: Errand, reading: Reading) -> Woven:
        try:
            return await self.asides.woven(reading, errand.way, errand.visitor)
        except Exception:  # a fault of ours must not be worse than our absence
            log.exception("what was looked up could not be put back; a request goes on without")
            return Woven()

    def _with_tools(
        self, errand: Errand, body: Held, reading: Reading, woven: Woven
    ) -> tuple[Held, Reading, Aside | None]:
        """With our calls back in their places, and tools of ours, where there is room for some."""
        way, visitor, asked = errand.way, errand.visitor, reading
        try:
            again = None if woven.body is None else self.reader.read(way, woven.body)
            if woven.body is not None and again is not None:
                body, reading = Held(woven.body, remade=True), again
            reading = replace(reading, notes=woven.notes) if woven.notes else reading
            if is_listed(way) and reading.scene.stream:  # in which nobody could listen
                return body, reading, None
            reading, names = self.asides.offered(reading, way, visitor, known=woven.body is not None)
        except Exception:  # a fault of ours must not be worse than our absence
            log.exception("a request could not be given tools; it goes on without")
            return body, reading, None
        if not names or way.endpoint.counts:
            return body, reading, None
        return body, reading, Aside(way.api, names, reading, asked, visitor, asked.scene.model)

    async def _next_leg(self, errand: Errand, aside: Aside, body: Callable[[], Awaitable[bytes]]) -> Exchange | Refusal:
        data = await body()
        reading = await self.asides.engine.offload(aside.reading, self.reader.read, errand.way, data)
        if reading is None:
            return Refusal("unavailable", "the next part of the answer could not be asked for", "ask again")
        more, _ = self.asides.offered(reading, errand.way, aside.visitor, known=True)
        held = Held(data, remade=True, again=True)
        if not aside.is_last or not more.added:
            return await self.asking.sent(errand, held, more)
        if not aside.loop.is_free(reading.tree):  # what must be called now is one of the client's
            return await self.asking.sent(errand, held, reading)
        words_only = replace(more, added=(*more.added, no_choice(errand.way.api, more.tree)))
        found = await self.asking.sent(errand, held, words_only)
        if not _will_not(found):
            return found
        self.asking.rest(found, errand)  # perhaps it knows no such choice
        return await self.asking.sent(errand, held, more)


def _will_not(outcome: Exchange | Refusal) -> TypeGuard[Exchange]:
    """Whether it is the request itself that an upstream objects to."""
    return isinstance(outcome, Exchange) and outcome.status in (400, 422)
