"""Calls of our own tools: restored to where they stood in a conversation, offered, run and kept.

What a client sends back of a response with our calls in it becomes again what the model said, before anything else is
done to the request: from there on it is a conversation like any other.
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

_PENDING_SECONDS = 30.0  # after which a call that has not finished counts as interrupted
_POLL_SECONDS = 0.1
_INTERRUPTED = Result("Error (unavailable): the look was interrupted; ask again if it still matters.", failed=True)
_CHANGED = "an answer was sent back changed: what was looked up inside of it stays out"
NOT_RESTORED = "the upstream would not have what was looked up put back: it stays out of this conversation"
_MOST_UNRESTORED = 4096  # answers of which it is remembered that an upstream rejects our part of them
MOST_LEGS = 8
MOST_CALLS = 8  # that are answered in a leg
_THREADS = 16  # calls that run at a time, in threads that no other request waits for
_TOO_MANY = Result(
    f"Error (too_large): {MOST_CALLS} looks at a time are answered and this is one more; ask again for it.", failed=True
)
_LAST_CALL = "\n(This was the last look of this answer: answer now with what is known.)"

Calls = Callable[[str, Json, Visitor, str, str], Result]
"""Runs a call: the tool, its arguments, who asks, for which model, in which turn."""


@dataclass(frozen=True, slots=True)
class Tools:
    offers: Callable[[bool], Sequence[Offer]]  # to a model that sees, or not
    call: Calls


_Place = tuple[str, str, str, str, str, str]
"""Who asks, where and for which model, and the answer that is restored."""


@dataclass(frozen=True, slots=True)
class RestoredCalls:
    """A request with our calls and results where they stood."""

    body: bytes | None = None  # None: there are none
    notes: tuple[str, ...] = ()  # for its receipt
    places: tuple[_Place, ...] = ()


@dataclass(slots=True)
class LoopedAnswer:
    """One answer, and our calls inside of it."""

    wire: WireName
    names: frozenset[str]
    reading: Reading  # of the request with restored calls and tools
    asked: Reading  # … as the client sent it
    caller: Visitor
    model: str
    pasts: list[Past] = field(default_factory=list)
    legs: list[tuple[Leg, Sequence[Block]]] = field(default_factory=list)

    @property
    def loop(self) -> Loop:
        return LOOPS[self.wire]

    @property
    def is_last(self) -> bool:
        """Whether the next leg is the last one that there may be."""
        return len(self.legs) + 1 >= MOST_LEGS

    def describe_legs(self, usages: Sequence[Block]) -> tuple[str, ...]:
        """Return a line for the receipt on each leg."""
        lines = []
        for number, usage in enumerate(usages):
            asks = self.legs[number][0].asks if number < len(self.legs) else ()
            figures = ", ".join(f"{key} {each}" for key, each in usage.items() if isinstance(each, int) and each)
            called = f", asked {', '.join(ask.call.name for ask in asks)}" if asks else ""
            lines.append(f"leg {number + 1}: {figures or 'usage unknown'}{called}")
        return tuple(lines)


class ToolCalls:
    def __init__(
        self,
        engine: Engine,
        conversations: ConversationStore,
        tools: Tools,
        rejects_tools: Callable[[Visitor, str], bool],
    ) -> None:
        """`rejects_tools` returns whether an upstream rejects our tools for a model."""
        self._engine = engine
        self._rejects_tools = rejects_tools
        self._conversations = conversations
        self._tools = tools
        self._threads = ThreadPoolExecutor(_THREADS, "sightline-look")
        self._turns = FairSemaphore(_THREADS)
        self._unrestored: LruCache[None] = LruCache(_MOST_UNRESTORED)
        self._running: dict[tuple[str, str, str, str], asyncio.Task[Sequence[Block]]] = {}

    # Requests.

    async def restore(self, reading: Reading, route: Route, caller: Visitor) -> RestoredCalls:
        """Return a request with our calls and results where they stood."""
        if not self._conversations.has_answers(caller.scope) or not isinstance(reading.texts, Document):
            return RestoredCalls()
        if not value_in(reading.tree, "tools"):  # without any, some upstreams take no calls either
            return RestoredCalls()
        loop = LOOPS[route.api]
        runs = await self._engine.offload(reading, _find_answers, loop, reading.tree)
        found: dict[str, list[Answered]] = {}
        keys = list({_build_key(route.api, sign) for _, sign in runs})
        for each in await asyncio.to_thread(self._conversations.read_answers, caller.scope, keys):
            found.setdefault(each.key, []).append(each)
        names = await self._engine.offload(reading, self._engine.names, reading) if found else ()
        edits: list[Edit] = []
        places: list[_Place] = []
        changed: dict[str, bool] = {}
        end = 0  # of the last answer that is known again
        for run, sign in runs:
            key = _build_key(route.api, sign)
            if key not in found or run.start < end:
                continue
            before = names[run.start] if run.start < len(names) else ""
            match = _match(loop, reading.tree, run, [each for each in found[key] if each.before in ("", before)])
            if match is None:
                changed.setdefault(key, sign.alone)
                continue
            whole, kept = match
            place = (caller.scope, caller.upstream.name, reading.scene.model, kept.key, kept.visible, kept.before)
            changed[key], end = False, whole.end
            if place in self._unrestored:
                continue
            pasts = [Past.read(leg) for leg in kept.legs]
            more = loop.woven(reading.tree, whole, pasts, await self._wait_for_results(loop, caller.scope, kept))
            if more is None:
                changed[key] = sign.alone
                continue
            edits += more
            places.append(place)
        notes = (_CHANGED,) if any(changed.values()) else ()
        body = await self._engine.offload(reading, _splice, reading.texts, edits) if edits else None
        return RestoredCalls(body, notes, tuple(places))

    def stop_restoring(self, restored: RestoredCalls) -> None:
        """Leave out from now on what an upstream has rejected."""
        for place in restored.places:
            self._unrestored.put(place, None)

    def offer(
        self, reading: Reading, route: Route, caller: Visitor, *, known: bool = False
    ) -> tuple[Reading, frozenset[str]]:
        """Return a request with our tools, and their names, where they can't change what is asked.

        `known`: the conversation has calls of them, so they stay in the list also where the client forces a choice.
        A model that must call some tool may then call ours first, and must call one of the client's afterwards.
        """
        loop, scene = LOOPS[route.api], reading.scene
        if scene.partial or not loop.has_room(reading.tree) or self._rejects_tools(caller, scene.model):
            return reading, frozenset()
        if not known and not loop.is_free(reading.tree):
            return reading, frozenset()
        if not caller.upstream.stateless and loop.is_kept(reading.tree):
            return reading, frozenset()
        sees = self._engine.sees(caller, scene.model)
        ours = self._tools.offers(sees) or self._tools.offers(sees and not known)
        offers = [each for each in ours if each.name not in scene.tools and called(scene, each.name) is None]
        if not offers:
            return reading, frozenset()
        names = frozenset(offer.name for offer in offers)
        edits = (*reading.added, *loop.offer(reading.tree, offers))
        return reading.with_more(edits, scene.with_ours(names)), names

    async def _wait_for_results(self, loop: Loop, scope: str, kept: Answered) -> Sequence[Block]:
        """Return the results of the calls of its last leg, which may still be running, here or in another process."""
        task = self._running.get((scope, kept.key, kept.visible, kept.before))
        if task is not None:
            return await asyncio.shield(task)
        while kept.results is None and 0 <= time.time() - kept.made < _PENDING_SECONDS:  # the clock may be put back
            await asyncio.sleep(_POLL_SECONDS)
            kept = await asyncio.to_thread(self._read_again, scope, kept)
        if kept.results is not None:
            return [result for result in kept.results if isinstance(result, dict)]
        calls = [loop.reads(ask) for ask, *_ in Past.read(kept.legs[-1]).asks]
        results = [loop.result(call, _INTERRUPTED) for call in calls if isinstance(call, Called)]
        await asyncio.to_thread(self._conversations.keep_results, scope, kept, results)  # if the disk takes it
        return results

    def _read_again(self, scope: str, kept: Answered) -> Answered:
        same = (kept.visible, kept.before)
        found = self._conversations.read_answers(scope, [kept.key])
        return next((each for each in found if (each.visible, each.before) == same), replace(kept, results=()))

    # Answers.

    async def run(self, answer: LoopedAnswer, leg: Leg) -> bytes:
        """Run the calls of a leg, and return the body of the request for the next one."""
        results = await self._run_all(answer, leg, last=len(answer.legs) + 2 >= MOST_LEGS)
        answer.legs.append((leg, results))
        answer.pasts.append(Past.of(leg, results))
        document = answer.reading.texts
        assert isinstance(document, Document)
        edits = answer.loop.grown(answer.reading.tree, answer.legs)
        return await self._engine.offload(answer.reading, _splice, document, edits)

    async def keep(self, answer: LoopedAnswer, leg: Leg, *, beside: bool) -> None:
        """Keep an answer with its last leg, to be restored later; `beside`: this has calls of ours as well."""
        if not answer.pasts and not beside:
            return
        last = Past.of(leg)  # a call that was cut short is not answered: it was never made
        pasts = [*answer.pasts, last if beside else replace(last, asks=())]
        sign = known_by(pasts)
        names = () if sign.alone else await self._engine.offload(answer.asked, self._engine.names, answer.asked)
        before = names[-1] if names else ""
        legs = [past.as_json() for past in pasts]
        answered = Answered(
            _build_key(answer.wire, sign), sign.visible, before, legs, None if beside else (), time.time()
        )
        scope = answer.caller.scope
        keeping = asyncio.ensure_future(asyncio.to_thread(self._conversations.keep_answer, scope, answered))
        if beside:
            key = (scope, answered.key, answered.visible, answered.before)
            task = self._running[key] = asyncio.ensure_future(self._run_and_settle(answer, leg, answered, keeping))
            task.add_done_callback(lambda _: self._running.pop(key, None))
        await asyncio.shield(keeping)

    async def _run_and_settle(
        self, answer: LoopedAnswer, leg: Leg, answered: Answered, keeping: asyncio.Future[None]
    ) -> Sequence[Block]:
        results = [answer.loop.result(ask.call, _INTERRUPTED) for ask in leg.asks]
        try:
            results = await self._run_all(answer, leg, last=False)
        finally:  # also when we end first, so that no other process waits for them
            await keeping
            await asyncio.to_thread(self._conversations.keep_results, answer.caller.scope, answered, results)
        return results

    async def close(self) -> None:
        """Cancel the calls that are still running."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _run_all(self, answer: LoopedAnswer, leg: Leg, *, last: bool) -> list[Block]:
        """Run the calls of a leg side by side, as many as have room in the next request."""
        turn = await self._engine.offload(answer.asked, self._name_turn, answer.asked)
        loop = asyncio.get_running_loop()

        async def one(call: Called) -> Result:
            async with self._turns.turn(answer.caller.scope):
                return await loop.run_in_executor(self._threads, self._run_one, answer, call, turn)

        work = [one(ask.call) for ask in leg.asks[:MOST_CALLS]]
        results = [*await asyncio.gather(*work), *[_TOO_MANY] * (len(leg.asks) - len(work))]
        if last and results:
            results[-1] = replace(results[-1], text=results[-1].text + _LAST_CALL)
        return [answer.loop.result(ask.call, result) for ask, result in zip(leg.asks, results, strict=True)]

    def _run_one(self, answer: LoopedAnswer, call: Called, turn: str) -> Result:
        try:
            return self._tools.call(call.name, call.given, answer.caller, answer.model, turn)
        except Exception:
            log.exception("a call of %s could not be answered", call.name)
            return Result("Error (unavailable): something went wrong inside Sightline.", failed=True)

    def _name_turn(self, asked: Reading) -> str:
        """Return the name of the turn: that of the message that opened it."""
        names = self._engine.names(asked)
        opened = max((index for index, message in enumerate(asked.scene.messages) if message.opens), default=-1)
        return names[opened + 1] if opened + 1 < len(names) else ""


def _find_answers(loop: Loop, tree: Json) -> list[tuple[Run, Sign]]:
    """Return the answers in a body, and by what each is known again."""
    return [(run, seen(run.blocks, loop.reads)) for run in loop.runs(tree)]


def _splice(document: Document, edits: Sequence[Edit]) -> bytes:
    return b"".join(document.splice(edits))


def _match(loop: Loop, tree: Json, run: Run, known: Sequence[Answered]) -> tuple[Run, Answered] | None:
    """Return the answer that a client sends back here, and all that it sends back of it."""
    for one in known:
        wide = loop.wider(tree, run, [Past.read(leg) for leg in one.legs])
        for each in (run, wide):
            if each is not None and seen(each.blocks, loop.reads).visible == one.visible:
                return each, one
    return None


def _build_key(wire: WireName, sign: Sign) -> str:
    """Return the key of an answer, which differs between wires."""
    return f"{wire} {sign.key}"
