"""Descriptions that replace images: of each image, and of the images of a turn together.

A description is pinned to its place in a conversation, so that later requests have the same text there. One that was
made without the conversation's text is valid everywhere and shared; one that was made with it belongs to its turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import field, replace
from functools import partial
from typing import TypeVar

from sightline.engine.inline_images import ImageChecker, InlineImages
from sightline.engine.requests import MAX_CONTEXT_CHARS, ConversationPlace, EngineOptions
from sightline.memory_reads import read_record
from sightline.model.facts import (
    NO_COORDINATES,
    DescribedImage,
    DescribeImage,
    DescribeTogether,
    Description,
    JointDescription,
)
from sightline.model.fence import replace_surrogates
from sightline.model.image import Image
from sightline.model.ports import DescriptionStore, ImageStore
from sightline.model.profile import Profile, RequestOrigin
from sightline.model.records import (
    DescriptionResult,
    LedgerEntry,
    PinnedDescription,
    dump_description,
    load_description,
)
from sightline.model.refusal import Refusal
from sightline.model.scene import InlineSource, Json
from sightline.model.seer import LOCAL_SEER, MAX_ANSWER_LENGTH
from sightline.model.value import value_class
from sightline.passes import wording
from sightline.passes.wording import explain_fallback
from sightline.pixels.workers import WorkerPool
from sightline.vision.chooser import Caller, Candidate, Candidates
from sightline.vision.concurrency import FairThreads, LruCache
from sightline.vision.prompts import DESCRIBE_ALL_QUESTION, Prompt, hash_prompt
from sightline.vision.seers import RETRY_LATER
from sightline.vision.service import VisionService
from sightline.vision.vision_request import (
    Attempt,
    CacheRule,
    Quota,
    VisionImage,
    VisionRequest,
    VisionResult,
    find_boxes_in_text,
    fit_images,
    format_boxes,
    make_skip_entry,
)

P = TypeVar("P", Description, JointDescription)
_TURNS_KEPT = 256
_UNSTORED_KEPT = 4096
_MAX_BOXES = 12_000  # characters of the boxes behind a description
_RETRY = "send another message later to try again"
_NOT_KEPT = "(The image itself could not be stored: its sha256 can't be looked up.)"
_UNREADABLE = ""  # in place of the sha256 of an image that can't be read

PENDING = Refusal("pending", "its description is not ready yet", "it will be here with the next message")
_ONLY_A_LINK = Refusal(
    "not_permitted",
    "the request contains only a reference to it, and the vision model needs the image itself",
    "attach the image itself",
)
_NO_SEER = Refusal(
    "unavailable",
    "this model takes no images, and no vision model was found",
    "run: `ollama pull qwen3-vl` to get a vision model for this machine, or `sightline config set seer "
    "PROVIDER/MODEL` to name one",
)
_NOT_NEWEST = Refusal(
    "unavailable",
    "only the newest images of a request are described, and this is not one of them",
    "run: sightline config set maxImagesPerTurn NUMBER",
)
_TOO_MANY = Refusal(
    "unavailable",
    "the maximum number of images for this turn has already been described",
    "send another message, or run: sightline config set maxImagesPerTurn NUMBER",
)
_NO_COMPARISON = Refusal("unavailable", "they were not compared", "ask about them with analyze_image")
_ONE_FAILS = Refusal("corrupt", "one of the images can't be read, so they are not compared", "send that image again")


class PinnedDescriptions:
    """Descriptions by their places in conversations: in the record, or in memory if the record can't store them."""

    def __init__(self, store: DescriptionStore) -> None:
        self._store = store
        self._threads = FairThreads()
        self._unstored: LruCache[PinnedDescription] = LruCache(_UNSTORED_KEPT)

    def find(self, origin: RequestOrigin, turn: str, *images: str) -> DescriptionResult | None:
        """Return the description of these images at a place, or why there is none; None: nothing is pinned there."""
        if not turn:
            return None
        key = origin.scope, turn, tuple(sorted(images))
        found = self._store.read_pin(*key) or self._unstored.get(key)
        return load_description(found) if found else None

    async def pin(
        self, origin: RequestOrigin, telling: PinnedDescription, *, images_stored: bool = False
    ) -> DescriptionResult:
        """Pin a description to its place, and return what is pinned there now: another request may have been first."""
        if not telling.turn:
            return load_description(telling)
        key = origin.scope, telling.turn, telling.images
        pinned = await self._threads.run(
            origin.scope, self._store.pin, origin.scope, telling, images_stored=images_stored
        )
        if await read_record(self._store.read_pin, *key) is None:
            self._unstored.put(key, pinned)
        return load_description(pinned)


@value_class
class _ImageGroup:
    """The images of a joint description, their similarity, and hints from their file names."""

    images: tuple[VisionImage, ...]
    likeness: float | None = None
    hints: Sequence[str] = field(default=())


class Describer:
    def __init__(
        self,
        image_store: ImageStore,
        descriptions: DescriptionStore,
        vision: VisionService,
        options: EngineOptions,
        checker: ImageChecker,
        images: InlineImages,
        workers: WorkerPool,
    ) -> None:
        self._image_store = image_store
        self._descriptions = descriptions
        self._vision = vision
        self._options = options
        self._checker = checker
        self._images = images
        self._workers = workers
        self._pinned = PinnedDescriptions(descriptions)
        self._asked_in_turn: LruCache[set[str]] = LruCache(_TURNS_KEPT)  # images for which a seer was asked, by turn

    def configure(self, options: EngineOptions) -> None:
        """Use other options for what is asked from now on."""
        self._options = options

    async def describe(
        self, need: DescribeImage, place: ConversationPlace, origin: RequestOrigin, profile: Profile
    ) -> Description | Refusal:
        """Return the description of an image, or why there is none."""
        digest = await self._images.find_digest(need.image) if isinstance(need.image, InlineSource) else _ONLY_A_LINK
        if isinstance(digest, Refusal) or not isinstance(need.image, InlineSource):
            return digest if isinstance(digest, Refusal) else _ONLY_A_LINK
        if isinstance(pinned := await read_record(self._pinned.find, origin, place.turn, digest), Description):
            return pinned
        if saved := await read_record(self._vision.find_saved_description, origin.scope, digest):
            return saved if need.cached_only else await self._pin(origin, place, saved)
        candidates = await self._vision.choose(Caller(origin, profile))
        if known := await self._vision.find_description(origin.scope, digest, candidates, self._cache_rule(())):
            known = _add_fallback_reason(self._add_boxes(known, [known.image]), candidates)
            return known if need.cached_only else await self._pin(origin, place, known)
        failure = await read_record(self._pinned.find, origin, place.current_turn, digest)
        if isinstance(failure, Refusal) or need.cached_only:
            return failure if isinstance(failure, Refusal) else PENDING
        return await self._ask(need, need.image, place, origin, candidates)

    async def _ask(
        self,
        need: DescribeImage,
        inline: InlineSource,
        place: ConversationPlace,
        origin: RequestOrigin,
        candidates: Candidates,
    ) -> Description | Refusal:
        image = await self._images.open(inline)
        if isinstance(image, Refusal):
            return image
        await self._load_asked_images(origin.scope, place.current_turn)
        request = self._build_request(need, image, place, origin)
        result = await self._vision.look(request, candidates)
        if isinstance(result, VisionResult):
            found = result.as_description(image.sha256)
            found = found if result.images_stored else replace(found, text=f"{found.text}\n\n{_NOT_KEPT}")
            found = _add_fallback_reason(self._add_boxes(found, [found.image]), candidates)
            return await self._pin(origin, place, found, during=place.current_turn, stored=result.images_stored)
        if not await candidates.find_first():  # don't pin this: a seer may become available at any time
            await self._images.keep(inline, origin)
            return result
        # An image that was refused before a seer was asked doesn't count towards the turn's limit.
        was_asked = result not in (_TOO_MANY, _NOT_NEWEST)
        during = place.current_turn if was_asked else ""
        outcome = await self._pin_failure(origin, place, image.sha256, result, during)
        if not was_asked:
            return result
        return outcome if isinstance(outcome, Refusal) else await self._pin(origin, place, outcome)

    def _build_request(
        self, need: DescribeImage, image: Image, place: ConversationPlace, origin: RequestOrigin
    ) -> VisionRequest:
        """Return the request for a description.

        With context, requests for the same image after the same messages are the same request: besides the turn
        itself, agents ask for a title, with another system prompt.
        """
        context, options = (
            place.read_context() if self._options.include_context and place.is_current else (),
            self._options,
        )
        words = f"{place.read_previous_reply()}\n{place.read_question()}" if options.include_context else ""
        images = (VisionImage(image),)

        def entries(attempt: Attempt) -> Sequence[LedgerEntry]:
            about: dict[str, Json] = {
                "question": options.question,
                "grounding_format": attempt.form,
                "dimensions": [str(image.size)],
            }
            return _make_entries(attempt, LedgerEntry("vision_proxy.description", (image.sha256,), about=about))

        return VisionRequest(
            scope=origin.scope,
            prompt=Prompt(options.instructions, options.question, reader_question="", context=context),
            fit=partial(fit_images, self._workers, images, check_pixels=False),
            identity=["describe", image.sha256, words],
            make_entries=entries,
            no_candidate=_NO_SEER,
            images=images,
            sha256s=(image.sha256,),
            cache=self._cache_rule(context),
            quota=Quota(partial(self._count_in_turn, need, place, origin, image.sha256)),
            keep_images=partial(self._image_store.keep, origin.scope, image),
            advise=_advise_retry,
            max_chars=MAX_ANSWER_LENGTH,
            take_turns=True,
        )

    def _cache_rule(self, context: Sequence[str]) -> CacheRule:
        """Return the rule for the record, which keeps descriptions made without the conversation's text."""
        return CacheRule(
            hash_prompt=partial(hash_prompt, self._options.instructions),
            can_keep=lambda seer: not context or seer == LOCAL_SEER,  # which ignores the context
        )

    async def _pin(
        self,
        origin: RequestOrigin,
        place: ConversationPlace,
        found: Description,
        during: str = "",
        *,
        stored: bool = False,
    ) -> Description:
        telling = PinnedDescription(place.turn, (found.sha256,), dump_description(found), asked_in_turn=during)
        pinned = await self._pinned.pin(origin, telling, images_stored=stored)
        return pinned if isinstance(pinned, Description) else found

    async def _pin_failure(
        self, origin: RequestOrigin, place: ConversationPlace, digest: str, why: Refusal, during: str
    ) -> Description | Refusal:
        """Pin a failure for the rest of its turn, in which clients repeat a request dozens of times.

        Return the description instead if the user has had the image described meanwhile.
        """
        telling = PinnedDescription(
            place.current_turn, (digest,), dump_description(why), failed=True, asked_in_turn=during
        )
        pinned = await self._pinned.pin(origin, telling)
        return pinned if isinstance(pinned, Description) else why

    def _add_boxes(self, found: P, images: Sequence[DescribedImage]) -> P:
        """Return a description followed by the boxes of everything that it points at."""
        if found.coordinate_format == NO_COORDINATES or not self._options.show_boxes:
            return found
        boxes = find_boxes_in_text(found.text, found.coordinate_format, images)
        return replace(found, boxes_block=format_boxes(images, boxes, _MAX_BOXES))

    async def _load_asked_images(self, scope: str, turn: str) -> None:
        """Read for which images of a turn a seer was asked, before the next one is counted."""
        if self._options.max_images and turn and (scope, turn) not in self._asked_in_turn:
            found = set(await read_record(self._descriptions.find_asked_images, scope, turn))
            if (scope, turn) not in self._asked_in_turn:
                self._asked_in_turn.put((scope, turn), found)

    def _count_in_turn(
        self, need: DescribeImage, place: ConversationPlace, origin: RequestOrigin, digest: str
    ) -> Refusal | None:
        """Count an image towards the turn's limit, or return why it can't be described in this turn."""
        if need.over_limit:
            return _NOT_NEWEST
        if not self._options.max_images or not place.current_turn:
            return None
        key = origin.scope, place.current_turn
        asked_images = self._asked_in_turn.get(key)
        if asked_images is None:  # it was evicted since it was loaded
            asked_images = self._asked_in_turn.put(key, set(self._descriptions.find_asked_images(*key)))
        if digest not in asked_images and len(asked_images) >= self._options.max_images:
            return _TOO_MANY
        asked_images.add(digest)
        return None

    async def compare(
        self, need: DescribeTogether, place: ConversationPlace, origin: RequestOrigin, profile: Profile
    ) -> JointDescription | Refusal:
        """Return the joint description of several images: one per turn, at the place where it was first made."""
        names = self._name_images(need)
        pinned = await read_record(self._pinned.find, origin, place.turn, *names)
        if isinstance(pinned, JointDescription | Refusal):
            return pinned
        candidates = await self._vision.choose(Caller(origin, profile))
        if need.cached_only or not place.turn or len(names) < 2 or not await candidates.find_first():
            return _NO_COMPARISON
        images = () if _UNREADABLE in names else await self._open_images(need)
        if images:
            result, stored = await self._ask_together(images, place, origin, candidates)
        else:
            result, stored = _ONE_FAILS, False
            await self._vision.add_entries(origin.scope, make_skip_entry(result, [*filter(None, names)]))
        return await self._pin_joint(origin, place, names, result, stored=stored)

    async def skip_comparison(
        self, need: DescribeTogether, place: ConversationPlace, origin: RequestOrigin
    ) -> JointDescription | Refusal:
        """Pin that there is no joint description: the request goes out without one, and must not get one later."""
        if need.cached_only:
            return _NO_COMPARISON
        return await self._pin_joint(origin, place, self._name_images(need), _NO_COMPARISON)

    def _name_images(self, need: DescribeTogether) -> tuple[str, ...]:
        """Return the key for a joint description: the hash of each image, and a mark if one can't be read."""
        found = [self._images.compute_digest(image) for image in need.images]
        names = {_UNREADABLE if isinstance(each, Refusal) else each for each in found}
        return tuple(sorted(names if need.is_complete else {*names, _UNREADABLE}))

    async def _open_images(self, need: DescribeTogether) -> tuple[VisionImage, ...]:
        """Return each image once, with its file name; none if one of them can't be decoded."""
        checked = await asyncio.gather(*(self._checker.check(image) for image in need.images))
        found: dict[str, VisionImage] = {}
        for result, inline, name in zip(checked, need.images, need.names, strict=True):
            image = await self._images.open(inline)
            if isinstance(result, Refusal) or isinstance(image, Refusal):
                return ()
            found.setdefault(image.sha256, VisionImage(image, replace_surrogates(name)))
        return tuple(found.values())

    async def _pin_joint(
        self,
        origin: RequestOrigin,
        place: ConversationPlace,
        names: tuple[str, ...],
        made: JointDescription | Refusal,
        *,
        stored: bool = False,
    ) -> JointDescription | Refusal:
        """Pin a joint description, or its failure, permanently."""
        telling = PinnedDescription(place.turn, names, dump_description(made), asked_in_turn=place.current_turn)
        pinned = await self._pinned.pin(origin, telling, images_stored=stored)
        return pinned if isinstance(pinned, JointDescription | Refusal) else made

    async def _ask_together(
        self,
        images: tuple[VisionImage, ...],
        place: ConversationPlace,
        origin: RequestOrigin,
        candidates: Candidates,
    ) -> tuple[JointDescription | Refusal, bool]:
        """Return the joint description, and whether the record had the images when they were described."""
        likeness = await self._checker.measure_likeness([each.image for each in images])
        similar = list(wording.find_similar_pairs(likeness, self._options.similarity_threshold))
        hints = wording.build_hints([each.filename for each in images], similar)
        group = _ImageGroup(images, max((how for *_, how in similar), default=None), hints)
        result = await self._vision.look(self._build_joint_request(group, place, origin), candidates)
        if isinstance(result, Refusal):
            return result, False
        joint = JointDescription(result.images, result.answer.text, result.seer, result.form)
        return self._add_boxes(joint, result.images), result.images_stored

    def _build_joint_request(
        self, group: _ImageGroup, place: ConversationPlace, origin: RequestOrigin
    ) -> VisionRequest:
        images, context = group.images, self._options.include_context
        messages, user_question = place.read_context() if context else (), place.read_question()[:MAX_CONTEXT_CHARS]
        question = (user_question if messages else "") or DESCRIBE_ALL_QUESTION
        names: list[Json] = [[each.image.sha256, each.filename] for each in images]
        return VisionRequest(
            scope=origin.scope,
            prompt=Prompt(
                wording.build_joint_prompt(len(images), question, group.hints),
                question,
                reader_question=user_question,
                context=messages,
                lists_images=True,
                has_descriptions=True,
            ),
            fit=partial(fit_images, self._workers, images, check_pixels=False),
            identity=[
                "together",
                names,
                context,
                place.read_previous_reply() if context else "",
                place.read_question(),
            ],
            make_entries=lambda attempt: _make_entries(attempt, _make_joint_entry(group, question, attempt.form)),
            no_candidate=_NO_SEER,
            images=images,
            sha256s=tuple(each.image.sha256 for each in images),
            keep_images=partial(self._keep_all, origin.scope, images),
            max_chars=MAX_ANSWER_LENGTH,
            take_turns=True,
        )

    def _keep_all(self, scope: str, images: Sequence[VisionImage]) -> bool:
        kept = [self._image_store.keep(scope, each.image) for each in images]
        return all(kept)


def _make_entries(attempt: Attempt, entry: LedgerEntry) -> Sequence[LedgerEntry]:
    """Return the ledger's entries for a description: none for a known one, the reason if an image fits no seer.

    None either if there is no seer at all: clients send the same image with every message.
    """
    if attempt.cached or not attempt.seer:
        return ()
    if isinstance(attempt.outcome, Refusal) and not attempt.fitted:
        return (make_skip_entry(attempt.outcome, entry.images),)
    return (attempt.make_entry(entry.kind, entry.images, entry.about),)


def _make_joint_entry(group: _ImageGroup, question: str, form: str) -> LedgerEntry:
    about: dict[str, Json] = {
        "question": question,
        "grounding_format": form,
        "dimensions": [str(each.image.size) for each in group.images],
        "filename_hint": wording.find_filename_hint([each.filename for each in group.images]),
        "phash_similarity": group.likeness,
    }
    return LedgerEntry("vision_proxy.joint_description", tuple(each.image.sha256 for each in group.images), about=about)


def _advise_retry(refusal: Refusal, candidate: Candidate) -> Refusal:
    """Return a seer's refusal with a remedy for a model, which can't repeat the request by itself."""
    return replace(refusal, remedy=_RETRY) if refusal.remedy in ("", RETRY_LATER) else refusal


def _add_fallback_reason(found: Description, candidates: Candidates) -> Description:
    """Return a description that says why it isn't by the model that the user named; the record keeps it without."""
    refusal = candidates.missing_consent
    return replace(found, text=f"{found.text}\n\n{explain_fallback(refusal, found.seer)}") if refusal else found
