"""Resolve the needs of the passes: all needs of a request concurrently, and equal needs of all requests once."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from hashlib import sha256
from typing import ParamSpec, Protocol, TypeVar, assert_never

from sightline.engine.describer import PENDING, Describer
from sightline.engine.inline_images import ImageChecker, InlineImages, fetch_image, probe_inline
from sightline.engine.requests import ConversationPlace, EngineOptions, Reading
from sightline.memory_reads import read_record
from sightline.model.facts import (
    Check,
    CompareFile,
    ConversationHistory,
    DescribeImage,
    DescribeTogether,
    Description,
    Fact,
    Facts,
    Fetch,
    Keep,
    KeptImage,
    Need,
    Needs,
    Probe,
    RecallHistory,
    Refit,
    ReopenFile,
    Rules,
)
from sightline.model.image import compute_decoded_size
from sightline.model.ports import ConversationStore, DescriptionStore
from sightline.model.profile import RequestOrigin
from sightline.model.records import PinnedDescription
from sightline.model.refusal import Refusal
from sightline.model.scene import DamagedSource, InlineSource, Scene, Sight
from sightline.passes import is_permitted
from sightline.sources.files import FileDigests, PathPolicy, read_permitted_file
from sightline.vision.concurrency import LruCache, SingleFlight
from sightline.wire.hash_chain import HashChain
from sightline.wire.image_bytes import build_from_bytes, is_same_image

log = logging.getLogger("sightline")

P = ParamSpec("P")
T = TypeVar("T")

_MAX_CONCURRENT = 8  # images of one request that are processed concurrently
_STARTED_AT_ONCE = 16  # descriptions
_NEEDS_OF_PLACES = (DescribeImage, DescribeTogether, RecallHistory, CompareFile, ReopenFile)  # in a conversation
_COMPARISONS_KEPT = 4096  # of files with images
_TOO_DEEP = Refusal("unavailable", "the conversation is nested too deeply to be recognized again", "start a new one")
_BROKEN = Refusal("unavailable", "something went wrong inside Sightline while it was read", "try again")
_DAMAGED = Refusal(
    "corrupt", "its bytes were sent as text, which damaged them", "open the file with a tool that returns images"
)


class RunOnReading(Protocol):
    """Calls a function with these arguments, in a thread if the reading has many parts, and returns its result."""

    async def __call__(self, reading: Reading, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...


class NeedResolver:
    def __init__(
        self,
        descriptions: DescriptionStore,
        conversations: ConversationStore,
        checker: ImageChecker,
        images: InlineImages,
        describer: Describer,
        options: EngineOptions,
        offload: RunOnReading,
    ) -> None:
        self._descriptions = descriptions
        self._conversations = conversations
        self._offload = offload
        self._checker = checker
        self._images = images
        self._describer = describer
        self._options = options
        self._reopener = ImageReopener(images, descriptions, self._find_file_policy)
        self._flights: SingleFlight[Fact] = SingleFlight()
        self._file_digests = FileDigests()
        self._comparisons: LruCache[bool] = LruCache(_COMPARISONS_KEPT)

    def configure(self, options: EngineOptions) -> None:
        """Use other options for the needs that are resolved from now on."""
        self._options = options

    def _find_file_policy(self) -> PathPolicy:
        return self._options.find_file_policy()

    def answer_cheap_needs(self, scene: Scene, origin: RequestOrigin, rules: Rules) -> Facts:
        """Return answers that nearly every image needs and that take microseconds, to save a round of the passes."""
        if rules.is_blind or rules.check_all_images:
            return Facts()
        kept: dict[InlineSource, KeptImage] = {}
        if rules.add_references:
            pasted = [source for s in scene.sights if s.role == "user" and (source := _get_permitted(s)) is not None]
            kept = self._images.recall_kept_images(pasted, origin)
            if len(kept) == len(scene.sights):
                return Facts(kept=kept)
        others = [source for s in scene.sights if (source := _get_permitted(s)) is not None and source not in kept]
        return Facts(kept=kept, infos={source: probe_inline(source) for source in others})

    async def resolve(self, needs: Needs, reading: Reading, origin: RequestOrigin, rules: Rules) -> dict[Need, Fact]:
        """Resolve all needs concurrently. Slow descriptions are pending: they continue after the request."""
        await self._find_image_keys(needs, reading, origin)
        names, find_place, answers, open_needs = await self._offload(reading, self._split_needs, needs, reading, origin)
        if images := [need.image for need in open_needs if isinstance(need, Keep)]:
            kept = await self._images.ask_for_kept_images(images, origin)
            answers |= {Keep(image): found for image, found in kept.items()}
            open_needs = [need for need in open_needs if need not in answers]
        files: list[CompareFile | ReopenFile] = []
        pixels: list[Need] = []
        flights: dict[Need, asyncio.Task[Fact]] = {}
        with ExitStack() as waiting:
            for need in open_needs:
                if isinstance(need, CompareFile | ReopenFile):
                    files.append(need)
                elif isinstance(need, RecallHistory):
                    answers[need] = await self._recall(names, reading, origin, rules) if names else _TOO_DEEP
                elif isinstance(need, DescribeImage | DescribeTogether):
                    place = find_place(need.message)
                    flights[need] = waiting.enter_context(self._join_flight(need, place, origin, rules))
                    if len(flights) % _STARTED_AT_ONCE == 0:
                        await asyncio.sleep(0)  # let the tasks start, and other requests run
                else:
                    pixels.append(need)
            if files:  # of every image that was ever retired: one thread for all
                answers |= await asyncio.to_thread(self._answer_file_needs, files, names, origin)
            answers |= await self._answer_image_needs(pixels, origin, rules)
            if flights:
                patience = self._options.patience if any(isinstance(need, DescribeImage) for need in flights) else None
                await asyncio.wait(set(flights.values()), timeout=patience)
            for need, flight in flights.items():
                late = not flight.done()
                if late and isinstance(need, DescribeTogether):
                    answers[need] = await self._describer.skip_comparison(need, find_place(need.message), origin)
                else:
                    answers[need] = PENDING if late else flight.result()
        await self._images.keep_missing(_find_described_images(answers), origin)
        return answers

    async def _find_image_keys(self, needs: Needs, reading: Reading, origin: RequestOrigin) -> None:
        """Find the keys of the images if the messages have to be named, whose names contain them."""
        if _has_places(needs):
            await self._images.find_all_keys(reading.scene.sights, origin)

    def _split_needs(
        self, needs: Needs, reading: Reading, origin: RequestOrigin
    ) -> tuple[HashChain | None, Callable[[int], ConversationPlace], dict[Need, Fact], list[Need]]:
        """Return the names and places of the messages, the answers that take microseconds, and the other needs."""
        names = None
        if _has_places(needs):
            names = reading.name_messages()
        find_place = reading.find_places(names) if names else _find_no_place
        answers = self._answer_known_needs(needs, origin)
        return names, find_place, answers, sorted(needs.needs - answers.keys(), key=_get_sort_key)

    def _answer_known_needs(self, needs: Needs, origin: RequestOrigin) -> dict[Need, Fact]:
        kept = self._images.recall_kept_images((need.image for need in needs.needs if isinstance(need, Keep)), origin)
        answers: dict[Need, Fact] = {Keep(image): found for image, found in kept.items()}
        return answers | {need: probe_inline(need.image) for need in needs.needs if isinstance(need, Probe)}

    async def _answer_image_needs(self, needs: Sequence[Need], origin: RequestOrigin, rules: Rules) -> dict[Need, Fact]:
        """Return the answers that need workers, threads or the disk: a few at a time, as others need these too."""
        answers: dict[Need, Fact] = {}
        remaining = iter(needs)

        async def answer_in_turn() -> None:
            for need in remaining:
                with self._join_flight(need, None, origin, rules) as flight:
                    await asyncio.wait({flight})
                    answers[need] = flight.result()

        if len(needs) == 1:
            await answer_in_turn()
        elif needs:
            await asyncio.gather(*(answer_in_turn() for _ in range(min(len(needs), _MAX_CONCURRENT))))
        return answers

    def _answer_file_needs(
        self, needs: Sequence[CompareFile | ReopenFile], chain: HashChain | None, origin: RequestOrigin
    ) -> dict[Need, Fact]:
        damaged = [need for need in needs if isinstance(need, ReopenFile)]
        compared = [need for need in needs if isinstance(need, CompareFile)]
        return self._compare_files(compared, chain, origin) | self._reopener.reopen_all(damaged, chain, origin)

    def _compare_files(
        self, needs: Sequence[CompareFile], chain: HashChain | None, origin: RequestOrigin
    ) -> dict[Need, Fact]:
        """Return whether files had the bytes of images, as found when each was first compared at its place.

        A later change of a file must not undo a retirement: the prompt cache would have to be written again.
        """
        names = chain.names if chain else ()
        return {
            need: self._compare_file(need, names[need.message] if need.message < len(names) else "", origin)
            for need in needs
        }

    def _compare_file(self, need: CompareFile, name: str, origin: RequestOrigin) -> bool:
        """Compare a file with an image at the place with this name; if it has no name, nothing is remembered."""
        digest = self._images.compute_digest(need.image)
        if isinstance(digest, Refusal):
            return False
        path = sha256(need.path.encode("utf-8", "replace")).hexdigest()
        key = origin.scope, name, (f"file {path} {digest}",)
        found = self._comparisons.get(key) if name else self._has_digest(need, digest)
        if found is None:
            pinned = self._descriptions.read_pin(*key) or self._pin_file(key, self._has_digest(need, digest))
            found = self._comparisons.put(key, pinned.result.get("same") is True)
        return found

    def _has_digest(self, need: CompareFile, digest: str) -> bool:
        policy = None if self._options.compares_any_file else self._find_file_policy()
        size, folder = compute_decoded_size(need.image.text), self._options.client_folder
        return self._file_digests.matches(need.path, size, digest, policy, folder)

    def _pin_file(self, key: tuple[str, str, tuple[str, ...]], same: bool) -> PinnedDescription:
        scope, name, about = key
        return self._descriptions.pin(scope, PinnedDescription(name, about, {"same": same}))

    def _join_flight(
        self, need: Need, place: ConversationPlace | None, origin: RequestOrigin, rules: Rules
    ) -> AbstractContextManager[asyncio.Task[Fact]]:
        """Join the task that answers a need: one for all requests that have the need at the same time."""
        key: Hashable = need
        if isinstance(need, Keep):
            key = (need, origin.scope)
        if place is not None:  # side requests of an agent use other models, but the same seers
            seers = (origin.upstream.name, origin.wire, rules.profile.sibling)
            key = (need, place.turn, place.current_turn, origin.scope, seers)
        return self._flights.join(key, lambda: self._answer_safely(need, place, origin, rules))

    async def _answer_safely(
        self, need: Need, place: ConversationPlace | None, origin: RequestOrigin, rules: Rules
    ) -> Fact:
        try:
            return await self._answer(need, place or ConversationPlace(), origin, rules)
        except Exception:
            log.exception("a need could not be answered: %s", type(need).__name__)
            return _BROKEN

    async def _answer(self, need: Need, place: ConversationPlace, origin: RequestOrigin, rules: Rules) -> Fact:
        answer: Fact
        match need:
            case Probe(image=image):
                answer = probe_inline(image)
            case Check(image=image):
                answer = await self._checker.check(image)
            case Refit():
                answer = await self._checker.refit(need)
            case DescribeImage():
                answer = await self._describer.describe(need, place, origin, rules.profile)
            case DescribeTogether():
                answer = await self._describer.compare(need, place, origin, rules.profile)
            case Keep(image=image):
                answer = await self._images.keep(image, origin)
            case Fetch(link=link):
                answer = await fetch_image(link, self._options.network_grant)
            case CompareFile() | ReopenFile() | RecallHistory():
                raise AssertionError("these are answered for one conversation, not shared")
            case _:
                assert_never(need)
        return answer

    async def _recall(
        self, names: HashChain, reading: Reading, origin: RequestOrigin, rules: Rules
    ) -> ConversationHistory:
        """Return what is known about this conversation, and note that it was seen now."""
        if reading.many_parts:
            return await asyncio.to_thread(self._visit, names, reading.scene, origin, rules)
        return await read_record(self._visit, names, reading.scene, origin, rules)

    def _visit(self, chain: HashChain, scene: Scene, origin: RequestOrigin, rules: Rules) -> ConversationHistory:
        ends = [end for end in scene.request_ends if end < len(chain.names)]
        life = rules.profile.cache.seconds
        # Each model has a cache of its own. They share the head: if only that is known, the user has switched models.
        names = [f"{name} {origin.upstream.name}/{scene.model}" for name in chain.names]
        met = self._conversations.visit(origin.scope, chain.head_name, names, ends, life, rules.may_pay)
        cold = frozenset(index for index, name in enumerate(names) if name in met)
        return ConversationHistory(chain.tokens, cold, chain.head_tokens, chain.names[-1] if chain.names else "")


def _has_places(needs: Needs) -> bool:
    """Return whether any of these needs the names or places of messages."""
    return any(isinstance(need, _NEEDS_OF_PLACES) for need in needs.needs)


def _get_permitted(sight: Sight) -> InlineSource | None:
    """Return the image of a sight without a fate, unless `permit` refuses it."""
    source = sight.source
    if sight.fate is None and isinstance(source, InlineSource) and is_permitted(sight):
        return source
    return None


def _find_no_place(message: int) -> ConversationPlace:
    """Return an unnamed place, for a conversation that can't be named."""
    return ConversationPlace()


def _find_described_images(answers: Mapping[Need, Fact]) -> set[InlineSource]:
    """Return the images that were described."""
    looks = (
        need.image
        for need, each in answers.items()
        if isinstance(need, DescribeImage) and isinstance(each, Description)
    )
    return {image for image in looks if isinstance(image, InlineSource)}


def _get_sort_key(need: Need) -> int:
    """Return a key that puts the newest images first: if there are too many, those are described."""
    return -need.message if isinstance(need, DescribeImage) else 0


class ImageReopener:
    """Opens an image that a client has sent as damaged text again, from the file that the client has read.

    The file must be in a folder that may be read, and what is left of its bytes in the text must be what is left of its
    bytes now. The result is pinned to its place in the conversation: later requests get the same, even if the file
    changes.
    """

    def __init__(
        self, images: InlineImages, descriptions: DescriptionStore, find_policy: Callable[[], PathPolicy]
    ) -> None:
        self._images = images
        self._descriptions = descriptions
        self._find_policy = find_policy

    def reopen_all(
        self, needs: Sequence[ReopenFile], chain: HashChain | None, origin: RequestOrigin
    ) -> dict[Need, Fact]:
        """Return the image of each need, or a refusal."""
        names = chain.names if chain else ()
        return {
            need: self._reopen(need.image, names[need.message] if need.message < len(names) else "", origin)
            for need in needs
        }

    def _reopen(self, image: DamagedSource, name: str, origin: RequestOrigin) -> InlineSource | Refusal:
        """Return the image of one place; `name` is that of its message, empty if it has none."""
        about = (f"reopened {sha256(image.remains).hexdigest()}",)
        pinned = self._descriptions.read_pin(origin.scope, name, about) if name else None
        if pinned is not None:
            return self._images.load(str(pinned.result.get("image")), origin) or _DAMAGED
        found = self._open(image)
        kept = self._images.keep_now(found, origin) if found is not None else None
        if name and (kept is not None or found is None):
            digest = kept.sha256 if kept else ""
            self._descriptions.pin(origin.scope, PinnedDescription(name, about, {"image": digest}))
        return found if found is not None else _DAMAGED

    def _open(self, image: DamagedSource) -> InlineSource | None:
        """Return the file that the client has read, if it may be read and still is that file."""
        file = read_permitted_file(image.path, self._find_policy()) if image.path else None
        if file is None or isinstance(file, Refusal) or not is_same_image(image.remains, file.data):
            return None
        return build_from_bytes(file.data)
