"""Tools of ours inside the conversations that pass: offered to models, answered here, and put back in their places.

The client never sees them. What it sends back of an answer with our calls in it becomes again what the model said,
before anything else is done to the request: from there on it is a conversation like any other.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from sightline.engine import Engine, Reading
from sightline.model.edit import Edit
from sightline.model.ports import ConversationStore
from sightline.model.profile import WireName
from sightline.model.records import Answered
from sightline.model.scene import Json
from sightline.model.upstream import Visitor
from sightline.passes.tools import called
from sightline.surfaces.proxy.routes import Route
from sightline.vision.fairness import FairSemaphore
from sightline.vision.lru_cache import LruCache
from sightline.wire.jsontext import Document
from sightline.wire.shape import value_in
from sightline.wire.tool_loop import LOOPS, Leg, Loop, Offer, Past, Result, Run
from sightline.wire.tool_loop.leg import Block, Called, Sign, known_by, seen

log = logging.getLogger("sightline")

_PENDING_SECONDS = 30.0  # after which a look that nobody finished counts as interrupted
_AGAIN = 0.1
_INTERRUPTED = Result("Error (unavailable): the look was interrupted; ask again if it still matters.", failed=True)
_CHANGED = "an answer was sent back changed: what was looked up inside of it stays out"
UNWOVEN = "the upstream would not have what was looked up put back: it stays out of this conversation"
_UNWANTED_SECONDS = 3600.0  # in which an upstream that will not have our tools is not asked again
_REFUSALS = 256
_UNWOVEN = 4096  # answers of which it is remembered that an upstream will not have our part of them
MOST_LEGS = 8
MOST_ASKS = 8  # that are answered in a leg
_LOOKERS = 16  # looks at a time; beside them is room for what every request waits for
_TOO_MANY = Result(
    f"Error (too_large): {MOST_ASKS} looks at a time are answered and this is one more; ask again for it.", failed=True
)
_LAST = "\n(This was the last look of this answer: answer now with what is known.)"

Calls = Callable[[str, Json, Visitor, str, str], Result]
"""A call: the tool, its arguments, who asks, for which model, in which turn."""


@dataclass(frozen=True, slots=True)
class Tools:
    offers: Callable[[bool], Sequence[Offer]]  # to a model that sees, or not
    call: Calls


_Place = tuple[str, str, str, str, str, str]
"""Who asks, where and for which model, and the answer that is put back."""


@dataclass(frozen=True, slots=True)
class Woven:
    """What a request becomes with our calls and results in their places."""

    body: bytes | None = None  # None: there are none
    notes: tuple[str, ...] = ()  # what is to be said of it
    places: tuple[_Place, ...] = ()


@dataclass(slots=True)
class Aside:
    """One answer, and what is asked inside of it."""

    wire: WireName
    names: frozenset[str]
    reading: Reading  # of what the client asked, with all that belongs in it
    asked: Reading  # … as the client sent it
    visitor: Visitor
    model: str
    pasts: list[Past] = field(default_factory=list)
    legs: list[tuple[Leg, Sequence[Block]]] = field(default_factory=list)

    @property
    def loop(self) -> Loop:
        return LOOPS[self.wire]

    @property
    def streams(self) -> bool:
        """Whether the client asked for events."""
        return self.reading.scene.stream

    @property
    def is_last(self) -> bool:
        """Is the next leg the last one that there may be?"""
        return len(self.legs) + 1 >= MOST_LEGS


class Asides:
    def __init__(self, engine: Engine, conversations: ConversationStore, tools: Tools) -> None:
        self.engine = engine
        self._conversations = conversations
        self._tools = tools
        self._lookers = ThreadPoolExecutor(_LOOKERS, "sightline-look")
        self._turns = FairSemaphore(_LOOKERS)
        self._refused: LruCache[float] = LruCache(_REFUSALS)
        self._unwoven: LruCache[None] = LruCache(_UNWOVEN)
        self._running: dict[tuple[str, str, str, str], asyncio.Task[Sequence[Block]]] = {}

    # What a request becomes.

    async def woven(self, reading: Reading, way: Route, visitor: Visitor) -> Woven:
        """With our calls and results in their places."""
        if not self._conversations.has_answers(visitor.scope) or not isinstance(reading.texts, Document):
            return Woven()
        if not value_in(reading.tree, "tools"):  # without any, some upstreams take no calls either
            return Woven()
        loop = LOOPS[way.api]
        runs = await self.engine.offload(reading, _runs, loop, reading.tree)
        found: dict[str, list[Answered]] = {}
        keys = list({_key(way.api, sign) for _, sign in runs})
        for each in await asyncio.to_thread(self._conversations.read_answers, visitor.scope, keys):
            found.setdefault(each.key, []).append(each)
        names = await self.engine.offload(reading, self.engine.names, reading) if found else ()
        edits: list[Edit] = []
        places: list[_Place] = []
        changed: dict[str, bool] = {}
        end = 0  # of the last answer that is known again
        for run, sign in runs:
            key = _key(way.api, sign)
            if key not in found or run.start < end:
                continue
            before = names[run.start] if run.start < len(names) else ""
            match = _match(loop, reading.tree, run, [each for each in found[key] if each.before in ("", before)])
            if match is None:
                changed.setdefault(key, sign.alone)
                continue
            whole, kept = match
            place = (visitor.scope, visitor.upstream.name, reading.scene.model, kept.key, kept.visible, kept.before)
            changed[key], end = False, whole.end
            if place in self._unwoven:
                continue
            pasts = [Past.read(leg) for leg in kept.legs]
            more = loop.woven(reading.tree, whole, pasts, await self._results(loop, visitor.scope, kept))
            if more is None:
                changed[key] = sign.alone
                continue
            edits += more
            places.append(place)
        notes = (_CHANGED,) if any(changed.values()) else ()
        body = await self.engine.offload(reading, _spliced, reading.texts, edits) if edits else None
        return Woven(body, notes, tuple(places))

    def unwoven(self, woven: Woven) -> None:
        """An upstream has taken a request only without them: what was put back then stays out from now on."""
        for place in woven.places:
            self._unwoven.put(place, None)

    def offered(
        self, reading: Reading, way: Route, visitor: Visitor, *, known: bool = False
    ) -> tuple[Reading, frozenset[str]]:
        """With tools of ours, where they cannot change what is asked. What is `known` from calls stays to be called.

        It stays in the list also where the client forces a choice: so the list is what it was. Whoever must call some
        tool may look first, and then must call one of the client's.
        """
        loop, scene = LOOPS[way.api], reading.scene
        if scene.partial or not loop.has_room(reading.tree) or self._is_unwanted(visitor, scene.model):
            return reading, frozenset()
        if not known and not loop.is_free(reading.tree):
            return reading, frozenset()
        if not visitor.upstream.stateless and loop.is_kept(reading.tree):
            return reading, frozenset()
        sees = self.engine.sees(visitor, scene.model)
        ours = self._tools.offers(sees) or self._tools.offers(sees and not known)
        offers = [each for each in ours if each.name not in scene.tools and called(scene, each.name) is None]
        if not offers:
            return reading, frozenset()
        names = frozenset(offer.name for offer in offers)
        edits = (*reading.added, *loop.offer(reading.tree, offers))
        return reading.with_more(edits, scene.with_ours(names)), names

    def unwanted(self, visitor: Visitor, model: str) -> None:
        """An upstream will not have our tools."""
        self._refused.put((visitor.scope, visitor.upstream.name, model), time.monotonic())

    def _is_unwanted(self, visitor: Visitor, model: str) -> bool:
        refused = self._refused.get((visitor.scope, visitor.upstream.name, model))
        return refused is not None and time.monotonic() - refused < _UNWANTED_SECONDS

    async def _results(self, loop: Loop, scope: str, kept: Answered) -> Sequence[Block]:
        """What the calls of its last leg brought, which may still be under way, here or in another process."""
        task = self._running.get((scope, kept.key, kept.visible, kept.before))
        if task is not None:
            return await asyncio.shield(task)
        while kept.results is None and 0 <= time.time() - kept.made < _PENDING_SECONDS:  # the clock may be put back
            await asyncio.sleep(_AGAIN)
            kept = await asyncio.to_thread(self._again, scope, kept)
        if kept.results is not None:
            return [result for result in kept.results if isinstance(result, dict)]
        calls = [loop.reads(ask) for ask, *_ in Past.read(kept.legs[-1]).asks]
        results = [loop.result(call, _INTERRUPTED) for call in calls if isinstance(call, Called)]
        await asyncio.to_thread(self._conversations.keep_results, scope, kept, results)  # if the disk takes it
        return results

    def _again(self, scope: str, kept: Answered) -> Answered:
        same = (kept.visible, kept.before)
        found = self._conversations.read_answers(scope, [kept.key])
        return next((each for each in found if (each.visible, each.before) == same), replace(kept, results=()))

    # What an answer becomes.

    async def answer(self, aside: Aside, leg: Leg) -> None:
        """The calls of a leg that nobody else has to answer."""
        results = await self._called(aside, leg, last=len(aside.legs) + 2 >= MOST_LEGS)
        aside.legs.append((leg, results))
        aside.pasts.append(Past.of(leg, results))

    async def next_body(self, aside: Aside) -> bytes:
        """What asks for the next leg."""
        document = aside.reading.texts
        assert isinstance(document, Document)
        edits = aside.loop.grown(aside.reading.tree, aside.legs)
        return await self.engine.offload(aside.reading, _spliced, document, edits)

    async def done(self, aside: Aside, leg: Leg, *, beside: bool) -> None:
        """The last leg: from now on the answer is known again. With `beside` it has calls of ours as well."""
        if not aside.pasts and not beside:
            return
        last = Past.of(leg)  # a call that was cut short is answered by nobody: it was never made
        pasts = [*aside.pasts, last if beside else replace(last, asks=())]
        sign = known_by(pasts)
        names = () if sign.alone else await self.engine.offload(aside.asked, self.engine.names, aside.asked)
        before = names[-1] if names else ""
        legs = [past.as_json() for past in pasts]
        answered = Answered(_key(aside.wire, sign), sign.visible, before, legs, None if beside else (), time.time())
        scope = aside.visitor.scope
        keeping = asyncio.ensure_future(asyncio.to_thread(self._conversations.keep_answer, scope, answered))
        if beside:
            key = (scope, answered.key, answered.visible, answered.before)
            task = self._running[key] = asyncio.ensure_future(self._settled(aside, leg, answered, keeping))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        await asyncio.shield(keeping)

    async def _settled(
        self, aside: Aside, leg: Leg, answered: Answered, keeping: asyncio.Future[None]
    ) -> Sequence[Block]:
        results = [aside.loop.result(ask.call, _INTERRUPTED) for ask in leg.asks]
        try:
            results = await self._called(aside, leg, last=False)
        finally:  # also where we end before they do: whoever comes next need not wait for them
            await keeping
            await asyncio.to_thread(self._conversations.keep_results, aside.visitor.scope, answered, results)
        return results

    async def close(self) -> None:
        """Give up the looks that are still under way."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _called(self, aside: Aside, leg: Leg, *, last: bool) -> list[Block]:
        """All calls of a leg, side by side; so many that their results fit into the next request."""
        turn = await self.engine.offload(aside.asked, self._turn, aside.asked)
        loop = asyncio.get_running_loop()

        async def one(call: Called) -> Result:
            async with self._turns.turn(aside.visitor.scope):
                return await loop.run_in_executor(self._lookers, self._one, aside, call, turn)

        work = [one(ask.call) for ask in leg.asks[:MOST_ASKS]]
        results = [*await asyncio.gather(*work), *[_TOO_MANY] * (len(leg.asks) - len(work))]
        if last and results:
            results[-1] = replace(results[-1], text=results[-1].text + _LAST)
        return [aside.loop.result(ask.call, result) for ask, result in zip(leg.asks, results, strict=True)]

    def _one(self, aside: Aside, call: Called, turn: str) -> Result:
        try:
            return self._tools.call(call.name, call.given, aside.visitor, aside.model, turn)
        except Exception:
            log.exception("a call of %s could not be answered", call.name)
            return Result("Error (unavailable): something went wrong inside Sightline.", failed=True)

    def _turn(self, asked: Reading) -> str:
        """The name of the turn: of the message that opened it."""
        names = self.engine.names(asked)
        opened = max((index for index, message in enumerate(asked.scene.messages) if message.opens), default=-1)
        return names[opened + 1] if opened + 1 < len(names) else ""


def _runs(loop: Loop, tree: Json) -> list[tuple[Run, Sign]]:
    """Return the answers in a body, and by what each is known again."""
    return [(run, seen(run.blocks, loop.reads)) for run in loop.runs(tree)]


def _spliced(document: Document, edits: Sequence[Edit]) -> bytes:
    return b"".join(document.splice(edits))


def _match(loop: Loop, tree: Json, run: Run, known: Sequence[Answered]) -> tuple[Run, Answered] | None:
    """The answer that a client sends back here, and all that it sends back of it."""
    for one in known:
        wide = loop.wider(tree, run, [Past.read(leg) for leg in one.legs])
        for each in (run, wide):
            if each is not None and seen(each.blocks, loop.reads).visible == one.visible:
                return each, one
    return None


def _key(wire: WireName, sign: Sign) -> str:
    """What one wire has said, no other can write."""
    return f"{wire} {sign.key}"


def without_tools(reading: Reading) -> Reading:
    """As it was before they were offered: an upstream has said that it will not have them."""
    scene = reading.scene
    return replace(reading, added=(), scene=replace(scene, tools=scene.tools - scene.ours, ours=frozenset()))


def in_legs(aside: Aside, used: Sequence[Block]) -> tuple[str, ...]:
    """What there is to say of an answer in legs, one line for each."""
    lines = []
    for number, usage in enumerate(used):
        asks = aside.legs[number][0].asks if number < len(aside.legs) else ()
        figures = ", ".join(f"{key} {each}" for key, each in usage.items() if isinstance(each, int) and each)
        called = f", asked {', '.join(ask.call.name for ask in asks)}" if asks else ""
        lines.append(f"leg {number + 1}: {figures or 'usage unknown'}{called}")
    return tuple(lines)
