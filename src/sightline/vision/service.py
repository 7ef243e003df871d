"""The one service that asks a vision model, or the local reader, about images.

A request goes through these steps, whoever makes it:

1. choose: the candidates for it, best first (`Chooser`); one that lacks the user's consent is never asked;
2. cache: an answer that is known and acceptable is returned, and costs nothing;
3. quota: a caller that has none left is refused;
4. single flight: the same request, made at the same time in this process or another one, is asked once;
5. ask: each candidate in turn until one answers; its images are made to fit it, and kept in the record first;
6. ledger: what was asked, of whom, and what it cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import lru_cache, partial
from time import monotonic

from sightline.model.asking import LOCAL, Answer, Question, Usage, bounded
from sightline.model.facts import NO_FORM, Description
from sightline.model.ports import Seer, Store
from sightline.model.records import Entry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.upstream import Upstream
from sightline.settings import Settings
from sightline.vision.capabilities import cost
from sightline.vision.chooser import Caller, Candidate
from sightline.vision.fairness import FairSemaphore, FairThreads
from sightline.vision.lru_cache import LruCache
from sightline.vision.prompts import REPAIR, find_coordinate_form
from sightline.vision.providers import ModelCheck
from sightline.vision.results import Attempt, CacheRule, VisionRequest, VisionResult, decode_result, skip_entry
from sightline.vision.seers.litellm import PROVIDERS
from sightline.vision.single_flight import SharedFlight, SingleFlight, flight_name

Outcome = VisionResult | Refusal

_AT_ONCE = 4  # questions that callers take turns at
_QUOTED = 4000  # characters of an answer that go back with a request to repair it
_OTHER = "ask another model, or for less"
_LABELS = "name fields as the image labels them, make them optional, or ask a vision model"

Choose = Callable[[Caller | None, str | None, ModelCheck], Awaitable[Sequence[Candidate]]]
Price = Callable[[Candidate, Usage], float | None]
Grounds = Callable[[Candidate], str]


def price_answer(candidate: Candidate, usage: Usage) -> float | None:
    """Return what an answer has cost, in dollars; None: the price is not known."""
    return None if candidate.named is None else cost(candidate.named.upstream, candidate.named.model, usage)


def ground_by(settings: Settings) -> Grounds:
    """Return a function that says in which form a candidate is asked for coordinates."""
    find = lru_cache(maxsize=256)(partial(find_coordinate_form, settings))  # a client's words may be among the names

    def ground(candidate: Candidate) -> str:
        named = candidate.named
        own = named is not None and candidate.name == f"{named.provider}/{named.model}"
        return find(candidate.name, named.names if named and own else ())

    return ground


class VisionService:
    def __init__(
        self,
        record: Store,
        choose: Choose,
        grounds: Grounds = lambda candidate: NO_FORM,
        price: Price = price_answer,
        cache_size: int = 0,
    ) -> None:
        """`cache_size` is the number of answers that this process remembers."""
        self._record = record
        self._choose = choose
        self._grounds = grounds
        self._price = price
        self._answers: LruCache[VisionResult] = LruCache(cache_size)
        self._flights: SingleFlight[Outcome] = SingleFlight()
        self._shared = SharedFlight(record)
        self._turns = FairSemaphore(_AT_ONCE)
        self._threads = FairThreads()

    async def choose(
        self, caller: Caller | None = None, model: str | None = None, check: ModelCheck = "not blind"
    ) -> Sequence[Candidate]:
        """Return the candidates for a request, best first."""
        return await self._choose(caller, model, check)

    async def look(self, request: VisionRequest, candidates: Sequence[Candidate] | None = None) -> Outcome:
        """Return the answer to a request, or why there is none. `candidates` are those that were chosen before."""
        began = monotonic()
        if candidates is None:
            candidates = await self.choose(request.caller, request.model, request.check)
        instead = next((no for each in candidates if each.lacks_consent and (no := each.refusal)), None)
        if request.first_only:
            candidates = _keep_first(candidates)
        if (known := await self._find_known(request, candidates)) is not None:
            await self._threads.run(request.scope, request.keep_images)
            return await self._give_known(request, known, instead, began)
        if request.quota and any(each.name for each in candidates) and (no := request.quota.take()):
            await self.note(request.scope, skip_entry(no, request.sha256s, request.quota.about))
            return no
        made = await self._ask_once(request, candidates, instead)
        if isinstance(made, VisionResult) and made.cached:
            return await self._take_shared(request, made, instead, began)
        return made if isinstance(made, Refusal) else replace(made, instead=instead)

    async def _take_shared(
        self, request: VisionRequest, made: VisionResult, instead: Refusal | None, began: float
    ) -> Outcome:
        """Return the answer to the same question of another request, kept as this one wants it."""
        if request.quota:
            request.quota.give_back()
        wants = request.cache.save is not None or request.cache.in_memory
        no = await self._keep_answer(request, made) if wants else None
        return no or await self._give_known(request, made, instead, began)

    async def note(self, scope: str, *entries: Entry) -> None:
        """Write entries into the ledger."""
        for entry in entries:
            await self._threads.run(scope, self._record.ledger.add_entry, scope, entry)

    def find_description(
        self, scope: str, sha256: str, candidates: Sequence[Candidate], cache: CacheRule
    ) -> Description | None:
        """Return the description of an image that the record holds, by the best candidate that has given one."""
        for each in candidates:
            if each.name and cache.version is not None and cache.reads(each.name):
                known = self._record.descriptions.read(scope, sha256, each.name, cache.version(self._grounds(each)))
                if known is not None:
                    return known
        return None

    async def _find_known(self, request: VisionRequest, candidates: Sequence[Candidate]) -> VisionResult | None:
        """Return an acceptable answer of the first candidate that can be asked."""
        first = next((each for each in candidates if each.name and request.admit(each) is None), None)
        if first is not None and request.fit_first:
            await request.fit(first.askable, self._form(request, first))
        return None if first is None else self._find_of(request, first)

    def _find_of(self, request: VisionRequest, candidate: Candidate) -> VisionResult | None:
        if request.cache.refresh:
            return None
        if request.cache.in_memory and (known := self._answers.get(self._name(request, [candidate]))):
            return replace(known, images=request.members([each.seen for each in known.images]), cached=True)
        kept = self.find_description(request.scope, request.sha256s[0], [candidate], request.cache)
        if kept is None:
            return None
        members = request.members([kept.image.seen]) if request.images else ()
        form = self._form(request, candidate)
        return VisionResult(Answer(kept.text), kept.seer, members, form, candidate, cached=True)

    async def _give_known(
        self, request: VisionRequest, known: VisionResult, instead: Refusal | None, began: float
    ) -> VisionResult:
        """Return an answer that nobody was asked for here and now."""
        given = replace(known, instead=instead, cost_usd=None, answer=replace(known.answer, usage=Usage()))
        await self.note(request.scope, *request.entries(Attempt(given.seer, given.form, given, monotonic() - began)))
        return given

    def _form(self, request: VisionRequest, candidate: Candidate) -> str:
        return self._grounds(candidate) if request.grounded else NO_FORM

    def _name(self, request: VisionRequest, candidates: Sequence[Candidate]) -> str:
        """Return a name for a question to these candidates."""
        asked: list[Json] = [[each.name, self._form(request, each)] for each in candidates if each.name]
        prompt = request.prompt
        return flight_name(request.scope, request.identity, prompt.instructions, prompt.question, asked)

    async def _ask_once(
        self, request: VisionRequest, candidates: Sequence[Candidate], instead: Refusal | None
    ) -> Outcome:
        """Return the answer to one question for all who ask the same at the same time."""
        if not request.cache.shared:
            return await self._ask_in_turn(request, candidates, instead)
        name = self._name(request, candidates)
        joins = name in self._flights
        made = await self._flights.run(name, partial(self._ask_shared, request, candidates, instead, name))
        return replace(made, cached=True) if joins and isinstance(made, VisionResult) else made

    async def _ask_shared(
        self, request: VisionRequest, candidates: Sequence[Candidate], instead: Refusal | None, name: str
    ) -> Outcome:
        ask = partial(self._ask_in_turn, request, candidates, instead)
        made = await self._shared.run(request.scope, name, ask, _encode, request.since)
        if not isinstance(made, str):
            return made
        stored = await self._threads.run(request.scope, request.keep_images)
        return replace(decode_result(made, request, candidates), stored=stored)

    async def _ask_in_turn(
        self, request: VisionRequest, candidates: Sequence[Candidate], instead: Refusal | None
    ) -> Outcome:
        """Return the answer of the first candidate that gives one; else why the first of them gives none."""
        failure: Refusal | None = None
        for index, each in enumerate(candidates):
            outcome: Outcome | None = request.admit(each) or (each.refusal and replace(each.refusal, stage="model"))
            if outcome is None and index:
                outcome = self._find_of(request, each)
            if outcome is None or isinstance(outcome, VisionResult):
                stored = await self._threads.run(request.scope, request.keep_images)
                outcome = outcome or await self._ask(request, each, instead)
                if isinstance(outcome, VisionResult):
                    return replace(outcome, stored=stored)
            failure = failure or outcome
        return failure or request.nobody

    async def _ask(self, request: VisionRequest, candidate: Candidate, instead: Refusal | None) -> Outcome:
        """Ask one candidate, and note what that cost."""
        seer, form = candidate.askable, self._form(request, candidate)
        sent = await request.fit(seer, form)
        if isinstance(sent, Refusal):
            sent = replace(sent, stage="file")
            unfit = Attempt(seer.name, form, sent, 0.0, sent=False, fitted=False)
            await self.note(request.scope, *request.entries(unfit))
            return sent
        members = request.members([each.size for each in sent]) if request.images else ()
        question = request.prompt.build_question(form, members, sent)
        async with AsyncExitStack() as turn:
            if request.in_turn:
                await turn.enter_async_context(self._turns.turn(request.scope))
            began = monotonic()
            answer, usage = await _ask_until_usable(request, candidate, seer, question)
            seconds = monotonic() - began
        price = self._price(candidate, usage)
        if isinstance(answer, Refusal):
            outcome: Outcome = replace(instead, stage="model") if instead and request.first_only else answer
        else:
            outcome = await self._keep(request, VisionResult(answer, seer.name, members, form, candidate, price))
        attempt = Attempt(seer.name, form, outcome, seconds, usage, price, sent=_was_sent(outcome, usage))
        await self.note(request.scope, *request.entries(attempt))
        return outcome

    async def _keep(self, request: VisionRequest, result: VisionResult) -> Outcome:
        """Return a new answer within its bound, once it is kept."""
        text = result.answer.text
        text = text if request.longest is None else bounded(text, request.longest)
        result = replace(result, answer=replace(result.answer, text=text))
        return await self._keep_answer(request, result) or result

    async def _keep_answer(self, request: VisionRequest, result: VisionResult) -> Refusal | None:
        """Keep an answer for those who ask the same later; a refusal: it was to be saved, and could not be."""
        cache, candidate = request.cache, result.candidate
        if cache.in_memory and candidate is not None:
            self._answers.put(self._name(request, [candidate]), result)
        if cache.version is None or not cache.keeps(result.seer):
            return None
        version = cache.version(result.form)
        if cache.save is not None:
            return await self._threads.run(request.scope, cache.save, result, version)
        said = result.as_description(request.sha256s[0])
        await self._threads.run(request.scope, self._record.descriptions.keep, request.scope, said, version)
        return None


async def _ask_until_usable(
    request: VisionRequest, candidate: Candidate, seer: Seer, question: Question
) -> tuple[Answer | Refusal, Usage]:
    """Ask, and once more where the answer cannot be used; return also the usage of both."""
    answer = await seer.ask(question)
    if isinstance(answer, Refusal):
        return request.advise(_at_stage(answer, question), candidate), Usage()
    if request.fault is None or not (fault := await asyncio.to_thread(request.fault, answer.text)):
        return answer, answer.usage
    if seer.name == LOCAL:  # to read again finds nothing else
        what = f"{candidate.shown} fills in only what the image labels by name: {fault}"
        return Refusal("unavailable", what, _LABELS, stage="answer"), answer.usage
    words = REPAIR.format(words=question.words, fault=fault, answer=answer.text[:_QUOTED])
    again = await seer.ask(replace(question, words=words))
    if isinstance(again, Refusal):
        return request.advise(_at_stage(again, question), candidate), answer.usage
    usage = answer.usage + again.usage
    if fault := await asyncio.to_thread(request.fault, again.text):
        return Refusal("unavailable", f"{candidate.shown} was asked twice: {fault}", _OTHER, stage="answer"), usage
    return replace(again, usage=usage), usage


def _at_stage(no: Refusal, question: Question) -> Refusal:
    """Return a seer's refusal with the stage that it belongs to."""
    mime = question.documents[0].mime if question.documents else ""
    is_pdf = mime == "application/pdf"
    if no.code == "no_consent":
        return replace(no, stage="model")
    if no.code == "unsupported_type":  # the API has no place for such a file
        return replace(no, stage="pdf" if is_pdf else "video")
    return replace(no, stage="pages" if no.code == "too_large" and is_pdf else "provider")


def _keep_first(candidates: Sequence[Candidate]) -> Sequence[Candidate]:
    """Return the first candidate that does not lack the user's consent, or else the first."""
    return [each for each in candidates if not each.lacks_consent][:1] or candidates[:1]


def _encode(outcome: Outcome) -> str | None:
    return None if isinstance(outcome, Refusal) else outcome.encode()


def _was_sent(outcome: Outcome, usage: Usage) -> bool:
    """Return whether anything has left: a refusal may come before that, and is no call then."""
    if isinstance(outcome, VisionResult) or usage != Usage():
        return True
    return outcome.code not in ("no_consent", "unsupported_type")


def advise_user(no: Refusal, candidate: Candidate, settings: Settings) -> Refusal:
    """Return a provider's refusal with what the user can do about it, by the status that it came with."""
    match no.status:
        case 401 | 403:
            upstream = candidate.named.upstream if candidate.named else None
            return replace(no, remedy=f"its key was refused; check {_find_key(upstream, settings)}")
        case 404:
            return replace(no, remedy="there is no such model there; name another one")
        case 400 | 413 | 415 | 422:  # the provider will say the same as often as it is asked
            return replace(no, remedy="it refuses the request as it is; ask with another file, question or model")
    return no


def _find_key(upstream: Upstream | None, settings: Settings) -> str:
    """Return where the user finds the key that was sent."""
    if upstream is not None and upstream.api_key:
        return f"the apiKey of {upstream.name} in the settings"
    if upstream is not None and upstream.name in PROVIDERS:
        return f"the credentials that {upstream.name}'s own tools use"
    variables = () if upstream is None else upstream.key_variables
    return next((name for name in variables if settings.environment.get(name)), "apiKey in the settings")
