"""The one service that asks a vision model, or the local reader, about images.

Every request goes through these steps:

1. choose: find the candidates, best first (`Chooser`); one that lacks the user's consent is never asked;
2. cache: return an answer that is known and acceptable, for free;
3. quota: refuse a caller that has none left;
4. single flight: ask only once if this process or another one gets the same request at the same time;
5. ask: try one candidate after the other until one answers; keep the images in the record, and make them fit, first;
6. ledger: note the question, the seer, and the cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import lru_cache, partial
from time import monotonic

from sightline.memory_reads import read_record
from sightline.model.facts import NO_COORDINATES, Description
from sightline.model.ports import DescriptionStore, Lease, Ledger
from sightline.model.records import LedgerEntry
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER, Question, Seer, SeerAnswer, Usage, truncate_answer
from sightline.settings import Settings
from sightline.vision.chooser import Caller, Candidate, Candidates
from sightline.vision.concurrency import (
    CrossProcessFlight,
    FairSemaphore,
    FairThreads,
    LruCache,
    SingleFlight,
    hash_question,
    name_look,
)
from sightline.vision.prompts import REPAIR_QUESTION, find_coordinate_form, key_answers
from sightline.vision.providers import ModelCheck, calculate_cost
from sightline.vision.vision_request import (
    Attempt,
    CacheRule,
    VisionRequest,
    VisionResult,
    decode_result,
    make_skip_entry,
    track_question,
)

Outcome = VisionResult | Refusal

_MAX_CONCURRENT = 4  # questions of callers that take turns
_MAX_QUOTED = 4000  # characters of an answer in the request to repair it
_ASK_OTHERWISE = "ask another model, or for less"
_USE_LABELS = "name fields as the image labels them, make them optional, or ask a vision model"

Choose = Callable[[Caller | None, str | None, ModelCheck], Awaitable[Candidates]]
Price = Callable[[Candidate, Usage], float | None]
FindForm = Callable[[Candidate], str]


def price_answer(candidate: Candidate, usage: Usage) -> float | None:
    """Return the price of a candidate's answer in dollars; None: it is not known."""
    model = candidate.vision_model
    return None if model is None else calculate_cost(model.upstream, model.model, usage)


def make_form_finder(settings: Settings) -> FindForm:
    """Return a function that finds the form in which a candidate is asked for coordinates."""
    find = lru_cache(maxsize=256)(partial(find_coordinate_form, settings))  # bounded: clients choose some of the names

    def find_form(candidate: Candidate) -> str:
        model = candidate.vision_model
        has_own_name = model is not None and candidate.name == f"{model.provider}/{model.model}"
        return find(candidate.name, model.all_names if model and has_own_name else ())

    return find_form


class VisionService:
    def __init__(
        self,
        descriptions: DescriptionStore,
        ledger: Ledger,
        choose: Choose,
        find_form: FindForm = lambda candidate: NO_COORDINATES,
        price: Price = price_answer,
        cache_size: int = 0,
    ) -> None:
        """`cache_size` is the number of answers that this process keeps in memory."""
        self._descriptions = descriptions
        self._ledger = ledger
        self._choose = choose
        self._find_form = find_form
        self._price = price
        self._answers: LruCache[VisionResult] = LruCache(cache_size)
        self._flights: SingleFlight[Outcome] = SingleFlight()
        self._shared = CrossProcessFlight(descriptions)
        self._turns = FairSemaphore(_MAX_CONCURRENT)
        self._threads = FairThreads()

    def configure(self, find_form: FindForm, cache_size: int) -> None:
        """Use another form of coordinates, and another number of answers to keep, from the next request on."""
        self._find_form = find_form
        self._answers.resize(cache_size)

    async def choose(
        self, caller: Caller | None = None, model: str | None = None, check: ModelCheck = "not blind"
    ) -> Candidates:
        """Return the candidates for a request."""
        return await self._choose(caller, model, check)

    async def look(self, request: VisionRequest, candidates: Candidates | None = None) -> Outcome:
        """Return the answer to a request, or why there is none. `candidates` were chosen before, if given."""
        began = monotonic()
        if request.waits_for_looks:
            await self._shared.wait_for_looks(request.scope, request.sha256s)
        if candidates is None:
            candidates = await self.choose(request.caller, request.model, request.check)
        fallback_reason = candidates.missing_consent
        if request.first_only:
            candidates = await candidates.limit_to_first()
        if (known := await self._find_known_answer(request, candidates)) is not None:
            await self._threads.run(request.scope, request.keep_images)
            return await self._return_known_answer(request, known, fallback_reason, began)
        if request.quota and await candidates.find_first() and (refusal := request.quota.take()):
            await self.add_entries(
                request.scope, make_skip_entry(refusal, request.sha256s, request.quota.entry_details)
            )
            return refusal
        result = await self._ask_once(request, candidates, fallback_reason)
        if isinstance(result, VisionResult) and result.cached:
            return await self._accept_shared_answer(request, result, fallback_reason, began)
        return result if isinstance(result, Refusal) else replace(result, fallback_reason=fallback_reason)

    async def _accept_shared_answer(
        self, request: VisionRequest, made: VisionResult, fallback_reason: Refusal | None, began: float
    ) -> Outcome:
        """Return the answer that another request got to the same question, and keep it as this request wants it."""
        if request.quota:
            request.quota.give_back()
        wants = request.cache.save is not None or request.cache.in_memory
        refusal = await self._keep_answer(request, made) if wants else None
        return refusal or await self._return_known_answer(request, made, fallback_reason, began)

    async def add_entries(self, scope: str, *entries: LedgerEntry) -> None:
        """Write entries into the ledger."""
        for entry in entries:
            await self._threads.run(scope, self._ledger.add_entry, scope, entry)

    async def find_description(
        self, scope: str, sha256: str, candidates: Candidates, cache: CacheRule
    ) -> Description | None:
        """Return the description of an image in the record, by the best candidate that has given one.

        Candidates are searched for only as far as the seers of known descriptions may be among them.
        """
        seers = set(await read_record(self._descriptions.find_seers, scope, sha256))
        if not seers:
            return None
        async for each in candidates:
            if known := await read_record(self._read_description, scope, sha256, each, cache):
                return known
            seers.discard(each.name)
            if not seers:
                return None
        return None

    def _read_description(self, scope: str, sha256: str, candidate: Candidate, cache: CacheRule) -> Description | None:
        if not candidate.name or cache.hash_prompt is None or not cache.can_read(candidate.name):
            return None
        form = self._find_form(candidate)
        for hash_prompt in filter(None, (cache.hash_prompt, cache.hash_own_prompt)):
            prompt = key_answers(hash_prompt(form), candidate.name)
            if known := self._descriptions.read(scope, sha256, candidate.name, prompt):
                return known
        return None

    def find_saved_description(self, scope: str, sha256: str) -> Description | None:
        """Return the description of an image that the user has saved, whichever seer gave it."""
        return self._descriptions.read_saved(scope, sha256)

    async def _find_known_answer(self, request: VisionRequest, candidates: Candidates) -> VisionResult | None:
        """Return an acceptable answer of the first candidate that can be asked."""
        async for each in candidates:
            if each.name and request.check_candidate(each) is None:
                if request.fit_first:
                    await request.fit(each.available_seer, self._choose_form(request, each))
                return await read_record(self._find_answer_by, request, each)
        return None

    def _find_answer_by(self, request: VisionRequest, candidate: Candidate) -> VisionResult | None:
        if request.cache.refresh:
            return None
        saved = self._find_saved_answer(request, candidate)
        known = self._answers.get(self._name_question(request, candidate)) if request.cache.in_memory else None
        if known and not saved:
            return replace(known, images=request.make_members([each.seen_size for each in known.images]), cached=True)
        kept = saved or self._read_description(request.scope, request.sha256s[0], candidate, request.cache)
        if kept is None:
            return None
        members = request.make_members([kept.image.seen_size]) if request.images else ()
        form = saved.coordinate_format if saved else self._choose_form(request, candidate)
        return VisionResult(SeerAnswer(kept.text), kept.seer, members, form, candidate, cached=True)

    def _find_saved_answer(self, request: VisionRequest, candidate: Candidate) -> Description | None:
        """Return the saved description if it answers the request. A model that the request names answers for itself."""
        saved = self.find_saved_description(request.scope, request.sha256s[0]) if request.cache.reads_saved else None
        if saved is None or not request.cache.can_read(saved.seer):
            return None
        return saved if request.model is None or saved.seer == candidate.name else None

    async def _return_known_answer(
        self, request: VisionRequest, known: VisionResult, fallback_reason: Refusal | None, began: float
    ) -> VisionResult:
        """Return an answer for which this request asked no seer, and note that it cost nothing."""
        answer = replace(known.answer, usage=Usage())
        given = replace(known, fallback_reason=fallback_reason, cost_usd=None, answer=answer)
        attempt = Attempt(given.seer, given.form, given, monotonic() - began)
        await self.add_entries(request.scope, *request.make_entries(attempt))
        return given

    def _choose_form(self, request: VisionRequest, candidate: Candidate) -> str:
        return self._find_form(candidate) if request.ask_coordinates else NO_COORDINATES

    def _name_question(
        self, request: VisionRequest, candidate: Candidate | None, *, has_fallbacks: bool = False
    ) -> str:
        """Return a name for a question to a candidate, and to others if it fails."""
        seer = [candidate.name, self._choose_form(request, candidate)] if candidate else []
        prompt = request.prompt
        return hash_question(
            request.scope, request.identity, prompt.instructions, prompt.question, [*seer], has_fallbacks
        )

    async def _ask_once(
        self, request: VisionRequest, candidates: Candidates, fallback_reason: Refusal | None
    ) -> Outcome:
        """Return the answer to a question that is asked only once for all requests that ask it at the same time."""
        if not request.cache.join_others:
            return await self._ask_in_turn(request, candidates, fallback_reason)
        first, has_fallbacks = await candidates.find_first(), candidates.has_fallbacks
        name = self._name_question(request, first, has_fallbacks=has_fallbacks)
        joins = name in self._flights
        ask = partial(self._ask_across_processes, request, candidates, fallback_reason, name)
        result = await self._flights.run(name, ask)
        if joins and isinstance(result, Refusal):
            await self._note_refusal(request, result)
        return replace(result, cached=True) if joins and isinstance(result, VisionResult) else result

    async def _ask_across_processes(
        self, request: VisionRequest, candidates: Candidates, fallback_reason: Refusal | None, name: str
    ) -> Outcome:
        def ask(lease: Lease) -> Awaitable[Outcome]:
            return self._ask_in_turn(replace(request, lease=lease), candidates, fallback_reason)

        lease_name = name_look(request.sha256s, name) if request.take_turns else name
        outcome = await self._shared.run(request.scope, lease_name, ask, _encode, request.since)
        if not isinstance(outcome, str):
            return outcome
        stored = await self._threads.run(request.scope, request.keep_images)
        result = replace(decode_result(outcome, request), images_stored=stored)
        async for each in candidates:
            if each.name == result.seer:
                return replace(result, candidate=each)
        return result

    async def _ask_in_turn(
        self, request: VisionRequest, candidates: Candidates, fallback_reason: Refusal | None
    ) -> Outcome:
        """Return the answer of the first candidate that gives one; else why the first of them gives none."""
        failure: Refusal | None = None
        is_first, was_asked = True, False
        async for each in candidates:
            refusal = request.check_candidate(each) or (each.refusal and replace(each.refusal, stage="model"))
            outcome: Outcome | None = refusal
            if outcome is None and not is_first:
                outcome = await read_record(self._find_answer_by, request, each)
            if outcome is None or isinstance(outcome, VisionResult):
                stored = await self._threads.run(request.scope, request.keep_images)
                was_asked = True
                outcome = outcome or await self._ask(replace(request, images_stored=stored), each, fallback_reason)
                if isinstance(outcome, VisionResult):
                    return replace(outcome, images_stored=stored)
            failure = failure or outcome
            is_first = False
        failure = failure or request.no_candidate
        if not was_asked:
            await self._note_refusal(request, failure)
        return failure

    async def _note_refusal(self, request: VisionRequest, refusal: Refusal) -> None:
        """Note a request that was refused without a question to a seer."""
        attempt = Attempt("", NO_COORDINATES, refusal, 0.0, sent=False, fitted=False)
        await self.add_entries(request.scope, *request.make_entries(attempt))

    async def _ask(self, request: VisionRequest, candidate: Candidate, fallback_reason: Refusal | None) -> Outcome:
        """Ask one candidate, and note what that cost."""
        seer, form = candidate.available_seer, self._choose_form(request, candidate)
        sent = await request.fit(seer, form)
        if isinstance(sent, Refusal):
            sent = replace(sent, stage="file")
            unfit = Attempt(seer.name, form, sent, 0.0, sent=False, fitted=False)
            await self.add_entries(request.scope, *request.make_entries(unfit))
            return sent
        members = request.make_members([each.size for each in sent]) if request.images else ()
        question = request.prompt.build_question(form, members, sent)
        async with AsyncExitStack() as turn:
            if request.take_turns:
                await turn.enter_async_context(self._turns.take_turn(request.scope))
            set_cost = turn.enter_context(track_question(seer.name))
            began = monotonic()
            answer, usage = await _ask_until_usable(request, candidate, seer, question)
            seconds = monotonic() - began
            price = self._price(candidate, usage)
            set_cost(0.0 if seer.name == LOCAL_SEER else price)
        if isinstance(answer, Refusal):
            is_fallback = fallback_reason is not None and request.first_only
            outcome: Outcome = replace(fallback_reason, stage="model") if fallback_reason and is_fallback else answer
        else:
            outcome = await self._keep_result(request, VisionResult(answer, seer.name, members, form, candidate, price))
        attempt = Attempt(seer.name, form, outcome, seconds, usage, price, sent=_has_left_machine(outcome, usage))
        await self.add_entries(request.scope, *request.make_entries(attempt))
        return outcome

    async def _keep_result(self, request: VisionRequest, result: VisionResult) -> Outcome:
        """Return a new answer, shortened if it is too long, once it is kept."""
        text = result.answer.text
        text = text if request.max_chars is None else truncate_answer(text, request.max_chars)
        result = replace(result, answer=replace(result.answer, text=text))
        return await self._keep_answer(request, result) or result

    async def _keep_answer(self, request: VisionRequest, result: VisionResult) -> Refusal | None:
        """Keep an answer for later requests; return a refusal if it had to be saved and could not be."""
        cache, candidate = request.cache, result.candidate
        if cache.in_memory and candidate is not None:
            self._answers.put(self._name_question(request, candidate), result)
        if cache.hash_prompt is None or not cache.can_keep(result.seer):
            return None
        if cache.save is not None:
            return await self._threads.run(request.scope, cache.save, result)
        prompt = key_answers((cache.hash_own_prompt or cache.hash_prompt)(result.form), result.seer)
        description = result.as_description(request.sha256s[0])
        keep = partial(self._descriptions.keep, request.scope, description, prompt, request.lease)
        await self._threads.run(request.scope, keep, image_stored=request.images_stored)
        return None


async def _ask_until_usable(
    request: VisionRequest, candidate: Candidate, seer: Seer, question: Question
) -> tuple[SeerAnswer | Refusal, Usage]:
    """Ask, and once more if the answer can't be used; return the answer and the usage of both."""
    answer = await seer.ask(question)
    if isinstance(answer, Refusal):
        return request.advise(_set_stage(answer, question), candidate), Usage()
    if request.find_fault is None or not (fault := await asyncio.to_thread(request.find_fault, answer.text)):
        return answer, answer.usage
    if seer.name == LOCAL_SEER:  # it would read the same again
        what = f"{candidate.display_name} fills in only what the image labels by name: {fault}"
        return Refusal("unavailable", what, _USE_LABELS, stage="answer"), answer.usage
    words = REPAIR_QUESTION.format(words=question.text, fault=fault, answer=answer.text[:_MAX_QUOTED])
    again = await seer.ask(replace(question, text=words))
    if isinstance(again, Refusal):
        return request.advise(_set_stage(again, question), candidate), answer.usage
    usage = answer.usage + again.usage
    if fault := await asyncio.to_thread(request.find_fault, again.text):
        what = f"{candidate.display_name} was asked twice: {fault}"
        return Refusal("unavailable", what, _ASK_OTHERWISE, stage="answer"), usage
    return replace(again, usage=usage), usage


def _set_stage(refusal: Refusal, question: Question) -> Refusal:
    """Return a seer's refusal with the stage at which the request failed."""
    mime = question.attachments[0].mime if question.attachments else ""
    is_pdf = mime == "application/pdf"
    if refusal.code == "no_consent":
        return replace(refusal, stage="model")
    if refusal.code == "unsupported_type":  # the API can't carry such a file
        return replace(refusal, stage="pdf" if is_pdf else "video")
    return replace(refusal, stage="pages" if refusal.code == "too_large" and is_pdf else "provider")


def _encode(outcome: Outcome) -> str | None:
    return None if isinstance(outcome, Refusal) else outcome.encode()


def _has_left_machine(outcome: Outcome, usage: Usage) -> bool:
    """Return whether anything was sent: a seer may refuse before that, and then no call was made."""
    if isinstance(outcome, VisionResult) or usage != Usage():
        return True
    return outcome.code not in ("no_consent", "unsupported_type")
