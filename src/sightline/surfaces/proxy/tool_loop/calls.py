"""Calls of our own tools: restored to their places in a conversation, offered, run and stored.

When a client sends back a response that had calls of our tools, the request is first changed back to what the model
wrote. From there on it is handled like any other conversation.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

from sightline.engine import Engine, Reading
from sightline.memory_reads import read_record
from sightline.model.ports import ConversationStore
from sightline.model.profile import RequestOrigin, WireName
from sightline.model.records import LoopAnswer
from sightline.model.scene import Edit, Json
from sightline.model.value import value_class
from sightline.surfaces.proxy.bodies import BufferedBody
from sightline.surfaces.proxy.routes import Route
from sightline.vision.concurrency import FairSemaphore, LruCache
from sightline.wire.json_document import JsonDocument
from sightline.wire.json_tree import Block
from sightline.wire.message_texts import has_marks
from sightline.wire.tool_loop import LOOPS, AnswerRun, Leg, OwnResult, OwnTool, StoredLeg, WireLoop
from sightline.wire.tool_loop.leg import (
    MAX_KEPT_TOOLS,
    CallContent,
    Fingerprint,
    drop_call_ids,
    fingerprint_blocks,
    fingerprint_legs,
)

log = logging.getLogger("sightline")

_PENDING_SECONDS = 30.0  # after which a call that has not finished counts as interrupted
_POLL_SECONDS = 0.1
_INTERRUPTED = OwnResult("Error (unavailable): the call was interrupted; call again if it still matters.", failed=True)
_ANSWER_CHANGED = "the client has changed an earlier answer, so the tool calls inside it were not restored"
NOT_RESTORED = "the upstream rejected restored tool calls, so this conversation continues without them"
_MAX_UNRESTORED = 4096  # answers whose restored calls an upstream has rejected
MAX_LEGS = 8
MAX_CALLS = 8  # in a leg
_THREADS = 16  # for calls only, so that other requests do not wait for a thread
_TOO_MANY_CALLS = OwnResult(
    f"Error (too_large): at most {MAX_CALLS} calls are answered at a time; make this call again.", failed=True
)
_LAST_CALL = "\n(This was the last call for this answer: answer now with what you know.)"

RunCall = Callable[[str, Json, RequestOrigin, str, str], OwnResult]
"""Runs a call: takes the tool, its arguments, the caller, the model, and the name of the turn."""


@value_class
class OwnTools:
    list_offers: Callable[[bool], Sequence[OwnTool]]  # for a model that can see, or not
    call: RunCall


_AnswerKey = tuple[str, str, str, str, str, str]
"""Identifies a restored answer: scope, upstream and model, and the answer's own key, visible hash and conversation."""


@value_class
class RestoredCalls:
    """A request with our calls and results restored."""

    body: bytes | None = None  # None: there are none
    notes: tuple[str, ...] = ()  # for its receipt
    keys: tuple[_AnswerKey, ...] = ()


@dataclass(slots=True)
class AnswerState:
    """The state of one answer with calls of our tools."""

    wire: WireName
    tool_names: frozenset[str]
    reading: Reading  # of the request with restored calls and tools
    original: Reading  # … as the client sent it
    own_body: BufferedBody  # of the client's request
    caller: RequestOrigin
    model: str
    pasts: list[StoredLeg] = field(default_factory=list)
    legs: list[tuple[Leg, Sequence[Block]]] = field(default_factory=list)

    @property
    def loop(self) -> WireLoop:
        return LOOPS[self.wire]

    @property
    def is_last(self) -> bool:
        """Whether the next leg must be the last one."""
        return len(self.legs) + 1 >= MAX_LEGS

    def names_tools(self, data: bytes | bytearray) -> bool:
        """Return whether our tools are named in a response, as in every one that calls them."""
        return has_marks(data, _list_marks(self.tool_names))

    def describe_legs(self, usages: Sequence[Block]) -> tuple[str, ...]:
        """Return a line for the receipt about each leg."""
        lines = []
        for number, usage in enumerate(usages):
            asks = self.legs[number][0].own_calls if number < len(self.legs) else ()
            figures = ", ".join(f"{key} {each}" for key, each in usage.items() if isinstance(each, int) and each)
            called = f", asked {', '.join(ask.call.name for ask in asks)}" if asks else ""
            lines.append(f"leg {number + 1}: {figures or 'usage unknown'}{called}")
        return tuple(lines)


class ToolCalls:
    def __init__(
        self,
        engine: Engine,
        conversations: ConversationStore,
        tools: OwnTools,
    ) -> None:
        self._engine = engine
        self._conversations = conversations
        self._tools = tools
        self._threads = ThreadPoolExecutor(_THREADS, "sightline-look")
        self._semaphore = FairSemaphore(_THREADS)
        self._unrestored: LruCache[None] = LruCache(_MAX_UNRESTORED)
        self._expecting: set[asyncio.Future[None]] = set()
        self._running: dict[tuple[str, str, str, str], asyncio.Task[Sequence[Block]]] = {}

    # Requests.

    async def restore(self, reading: Reading, route: Route, caller: RequestOrigin) -> RestoredCalls:
        """Return a request with our earlier calls and results restored to their places."""
        if not isinstance(reading.texts, JsonDocument):
            return RestoredCalls()
        if not await read_record(self._conversations.has_answers, caller.scope):
            return RestoredCalls()
        loop = LOOPS[route.api]
        runs = await self._engine.offload_walk(reading, _find_answers, loop, reading.tree)
        stored = await self._read_answers(caller.scope, {_build_key(route.api, sign) for _, sign in runs})
        names = await self._engine.offload(reading, self._engine.name_messages, reading) if stored else ()
        edits: list[Edit] = []
        keys: list[_AnswerKey] = []
        changed: dict[str, bool] = {}
        end = 0  # of the last answer that was recognized
        for run, sign in runs:
            key = _build_key(route.api, sign)
            if key not in stored or run.start < end:
                continue
            conversation = names[run.start] if run.start < len(names) else ""
            candidates = [each for each in stored[key] if each.conversation in ("", conversation)]
            match = _match_answer(loop, reading.tree, run, candidates)
            if match is None:
                changed.setdefault(key, sign.is_unique)
                continue
            matched_run, answer = match
            changed[key], end = False, matched_run.end
            answer_key = _identify(caller, reading.scene.model, answer)
            if answer_key in self._unrestored:
                continue
            legs = [StoredLeg.parse(leg) for leg in answer.legs]
            results = await self._wait_for_results(loop, caller.scope, answer)
            more = loop.restore_answer(reading.tree, matched_run, legs, results)
            if more is None:
                changed[key] = sign.is_unique
                continue
            edits += more
            keys.append(answer_key)
        notes = (_ANSWER_CHANGED,) if any(changed.values()) else ()
        body = await self._engine.offload(reading, _splice, reading.texts, edits) if edits else None
        return RestoredCalls(body, notes, tuple(keys))

    async def _read_answers(self, scope: str, keys: AbstractSet[str]) -> dict[str, list[LoopAnswer]]:
        """Return the stored answers with these keys."""
        stored: dict[str, list[LoopAnswer]] = {}
        for each in await asyncio.to_thread(self._conversations.read_answers, scope, list(keys)):
            stored.setdefault(each.key, []).append(each)
        return stored

    def stop_restoring(self, restored: RestoredCalls) -> None:
        """Restore these calls no more: the upstream has rejected them."""
        for key in restored.keys:
            self._unrestored.put(key, None)

    def offer(
        self, reading: Reading, route: Route, caller: RequestOrigin, *, in_use: bool = False
    ) -> tuple[Reading, frozenset[str]]:
        """Return a request with our tools, and their names, if they can't change what the client asked for.

        `in_use`: the conversation has calls of our tools, so they stay in the list even if the client forces a choice.
        A model that must call a tool may then call ours first, and must call one of the client's afterwards.
        """
        loop, scene = LOOPS[route.api], reading.scene
        if scene.is_partial or not loop.can_offer_tools(reading.tree):
            return reading, frozenset()
        if not in_use and not loop.has_free_choice(reading.tree):
            return reading, frozenset()
        if not caller.upstream.stateless and loop.is_stored(reading.tree):
            return reading, frozenset()
        profile = self._engine.get_model_profile(caller, scene.model)
        sees = self._engine.gives_pixels(profile)
        own_tools = self._tools.list_offers(sees) or self._tools.list_offers(sees and not in_use)
        offers = [each for each in own_tools if each.name not in scene.tools and scene.find_own_tool(each.name) is None]
        if not offers or not profile.takes_own_tools:
            return reading, frozenset()
        names = frozenset(offer.name for offer in offers)
        edits = (*reading.extra_edits, *loop.add_tools(reading.tree, offers))
        return reading.with_additions(edits, scene.with_own_tools(names)), names

    async def _wait_for_results(self, loop: WireLoop, scope: str, kept: LoopAnswer) -> Sequence[Block]:
        """Return the results of the last leg's calls, which may still be running, here or in another process."""
        task = self._running.get((scope, kept.key, kept.visible_hash, kept.conversation))
        if task is not None:
            return await asyncio.shield(task)
        while (
            kept.results is None and 0 <= time.time() - kept.created_at < _PENDING_SECONDS
        ):  # the clock may be put back
            await asyncio.sleep(_POLL_SECONDS)
            kept = await asyncio.to_thread(self._reload_answer, scope, kept)
        if kept.results is not None:
            return [result for result in kept.results if isinstance(result, dict)]
        calls = [loop.classify_block(ask) for ask, *_ in StoredLeg.parse(kept.legs[-1]).own_calls]
        results = [loop.build_result(call, _INTERRUPTED) for call in calls if isinstance(call, CallContent)]
        await asyncio.to_thread(self._conversations.keep_results, scope, kept, results)  # if the disk takes it
        return results

    def _reload_answer(self, scope: str, kept: LoopAnswer) -> LoopAnswer:
        same = (kept.visible_hash, kept.conversation)
        found = self._conversations.read_answers(scope, [kept.key])
        return next(
            (each for each in found if (each.visible_hash, each.conversation) == same), replace(kept, results=())
        )

    # Answers.

    async def run(self, answer: AnswerState, leg: Leg) -> bytes:
        """Run the calls of a leg, and return the body of the request for the next one."""
        if not answer.legs:
            self._expect_answer(answer.caller.scope)
        results = await self._run_all(answer, leg, last=len(answer.legs) + 2 >= MAX_LEGS)
        answer.legs.append((leg, results))
        answer.pasts.append(StoredLeg.from_leg(leg, results))
        document = answer.reading.texts
        assert isinstance(document, JsonDocument)
        edits = answer.loop.append_legs(answer.reading.tree, answer.legs)
        return await self._engine.offload(answer.reading, _splice, document, edits)

    async def keep(self, answer: AnswerState, leg: Leg, *, calls_ours: bool) -> None:
        """Store an answer to be restored later; `calls_ours`: its last leg calls our tools beside the client's."""
        if not answer.pasts and not calls_ours:
            return
        last = StoredLeg.from_leg(leg)  # without results: an incomplete call is dropped
        pasts = [*answer.pasts, last if calls_ours else replace(last, own_calls=())]
        forms = [pasts]
        if answer.loop.CALL_IDS_OPTIONAL and (nameless := drop_call_ids(pasts)) != pasts:
            forms.append(nameless)
        answered = [await self._build_answer(answer, form, calls_ours=calls_ours) for form in forms]
        scope = answer.caller.scope
        keeping = asyncio.ensure_future(asyncio.to_thread(self._keep_answers, scope, answered))
        if calls_ours:
            task = asyncio.ensure_future(self._run_and_store(answer, leg, answered, keeping))
            for each in answered:
                key = (scope, each.key, each.visible_hash, each.conversation)
                self._running[key] = task
                task.add_done_callback(partial(self._forget_task, key))
        if seconds := await asyncio.shield(keeping):
            await asyncio.sleep(seconds)

    def _expect_answer(self, scope: str) -> None:
        """Announce an answer with our calls while they run, so that its client needn't wait for that at the end."""
        task = asyncio.ensure_future(asyncio.to_thread(self._conversations.expect_answer, scope))
        self._expecting.add(task)
        task.add_done_callback(self._expecting.discard)

    async def _build_answer(self, answer: AnswerState, pasts: Sequence[StoredLeg], *, calls_ours: bool) -> LoopAnswer:
        """Return what is stored of an answer, under the key by which it is found again."""
        sign, original = fingerprint_legs(pasts), answer.original
        names = () if sign.is_unique else await self._engine.offload(original, self._engine.name_messages, original)
        before = names[-1] if names else ""
        legs = [past.as_json() for past in pasts]
        results = None if calls_ours else ()
        return LoopAnswer(_build_key(answer.wire, sign), sign.visible, before, legs, results, time.time())

    def _forget_task(self, key: tuple[str, str, str, str], task: asyncio.Task[Sequence[Block]]) -> None:
        if self._running.get(key) is task:
            del self._running[key]

    def _keep_answers(self, scope: str, answered: Sequence[LoopAnswer]) -> float:
        """Store the forms of an answer, and return for how many seconds its client must not get the end of it."""
        return max([self._conversations.keep_answer(scope, each) for each in answered])

    def _keep_results(self, scope: str, answered: Sequence[LoopAnswer], results: Sequence[Block]) -> None:
        for each in answered:
            self._conversations.keep_results(scope, each, results)

    async def _run_and_store(
        self, answer: AnswerState, leg: Leg, answered: Sequence[LoopAnswer], keeping: asyncio.Future[float]
    ) -> Sequence[Block]:
        results = [answer.loop.build_result(ask.call, _INTERRUPTED) for ask in leg.own_calls]
        try:
            results = await self._run_all(answer, leg, last=False)
        finally:  # also when we end first, so that no other process waits for them
            await keeping
            await _finish(asyncio.to_thread(self._keep_results, answer.caller.scope, answered, results))
        return results

    async def close(self) -> None:
        """Cancel the calls that are still running."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, *self._expecting, return_exceptions=True)

    async def _run_all(self, answer: AnswerState, leg: Leg, *, last: bool) -> list[Block]:
        """Run the calls of a leg concurrently, at most `MAX_CALLS` of them."""
        turn = await self._engine.offload(answer.original, self._get_turn_name, answer.original)
        loop = asyncio.get_running_loop()

        async def one(call: CallContent) -> OwnResult:
            async with self._semaphore.take_turn(answer.caller.scope):
                return await loop.run_in_executor(self._threads, copy_context().run, self._run_one, answer, call, turn)

        work = [one(ask.call) for ask in leg.own_calls[:MAX_CALLS]]
        results = [*await asyncio.gather(*work), *[_TOO_MANY_CALLS] * (len(leg.own_calls) - len(work))]
        if last and results:
            results[-1] = replace(results[-1], text=results[-1].text + _LAST_CALL)
        return [answer.loop.build_result(ask.call, result) for ask, result in zip(leg.own_calls, results, strict=True)]

    def _run_one(self, answer: AnswerState, call: CallContent, turn: str) -> OwnResult:
        try:
            return self._tools.call(call.name, call.parsed_arguments, answer.caller, answer.model, turn)
        except Exception:
            log.exception("a call of %s could not be answered", call.name)
            return OwnResult("Error (unavailable): something went wrong inside Sightline.", failed=True)

    def _get_turn_name(self, original: Reading) -> str:
        """Return the name of the turn, which is that of the message that started it."""
        names = self._engine.name_messages(original)
        opened = max((index for index, message in enumerate(original.scene.messages) if message.opens_turn), default=-1)
        return names[opened + 1] if opened + 1 < len(names) else ""


@lru_cache(MAX_KEPT_TOOLS)
def _list_marks(tool_names: frozenset[str]) -> list[bytes]:
    """Return what is in an answer that calls one of these tools."""
    return [f'"{name}"'.encode() for name in tool_names]


async def _finish(work: Coroutine[None, None, None]) -> None:
    """Wait for work to end, also if the caller is cancelled meanwhile: the record must not be closed before."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _find_answers(loop: WireLoop, tree: Json) -> list[tuple[AnswerRun, Fingerprint]]:
    """Return the answers in a body, each with every signature by which it may be recognized."""
    return [(run, sign) for run in loop.find_answers(tree) for sign in _fingerprint(loop, run)]


def _fingerprint(loop: WireLoop, run: AnswerRun) -> list[Fingerprint]:
    ways = (True, False) if loop.CALL_IDS_OPTIONAL else (True,)
    return [fingerprint_blocks(run.blocks, loop.classify_block, with_ids=with_ids) for with_ids in ways]


def _splice(document: JsonDocument, edits: Sequence[Edit]) -> bytes:
    return b"".join(document.splice(edits))


def _match_answer(
    loop: WireLoop, tree: Json, run: AnswerRun, known: Sequence[LoopAnswer]
) -> tuple[AnswerRun, LoopAnswer] | None:
    """Return the stored answer that a client sends back here, and the part of the body that it takes up."""
    for one in known:
        wide = loop.widen_answer(tree, run, [StoredLeg.parse(leg) for leg in one.legs])
        for each in (run, wide):
            if each is not None and any(sign.visible == one.visible_hash for sign in _fingerprint(loop, each)):
                return each, one
    return None


def _identify(caller: RequestOrigin, model: str, answer: LoopAnswer) -> _AnswerKey:
    return (caller.scope, caller.upstream.name, model, answer.key, answer.visible_hash, answer.conversation)


def _build_key(wire: WireName, sign: Fingerprint) -> str:
    """Return the key of an answer, which is different on each wire."""
    return f"{wire} {sign.key}"
