"""What the passes need to know, found out: everything at once, and nothing twice at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from hashlib import sha256
from typing import ParamSpec, Protocol, TypeVar, assert_never

from sightline.engine.descriptions import PENDING, Descriptions
from sightline.engine.images import ImageChecker, Images, fetched, probed
from sightline.engine.options import Options
from sightline.engine.places import Place, places
from sightline.model.edit import Edit
from sightline.model.facts import (
    Answer,
    Check,
    Compare,
    Description,
    Facts,
    Fetch,
    History,
    Keep,
    Look,
    Need,
    Needs,
    Present,
    Probe,
    Recall,
    Refit,
)
from sightline.model.fence import one_line
from sightline.model.ports import Store
from sightline.model.records import Telling
from sightline.model.refusal import Refusal
from sightline.model.rules import Routing, Rules
from sightline.model.scene import Json, Scene, Sight
from sightline.model.source import Inline
from sightline.model.upstream import Visitor
from sightline.model.value import value
from sightline.passes.permit import permit
from sightline.sources.file import there
from sightline.vision.lru_cache import LruCache
from sightline.vision.single_flight import SingleFlight
from sightline.wire.chain import Chain, chain
from sightline.wire.codec import Codec
from sightline.wire.shape import Texts, at, items

log = logging.getLogger("sightline")

P = ParamSpec("P")
T = TypeVar("T")

_AT_ONCE = 8  # images of one request that are worked on at a time
_BEGUN_AT_ONCE = 16  # looks
_FILES = 4096  # of which it is known whether they were there
_TOO_DEEP = Refusal("unavailable", "the conversation is nested too deep to be named", "begin a new one")
_BROKEN = Refusal("unavailable", "something went wrong inside Sightline while it was read", "ask for it again")


@value
class Reading:
    """A body that could be read."""

    wire: Codec
    tree: Json
    texts: Texts
    scene: Scene
    routing: Routing | None = None  # where turns with new images have a model of their own
    added: tuple[Edit, ...] = ()  # what else the body gets: tools of ours
    notes: tuple[str, ...] = ()  # what has been done to it before
    heavy: bool = False  # working on it takes more than a few milliseconds, and is done in a thread
    values: int = 0  # in its tree, if there are many: what it takes of the memory
    caller: str = ""  # whose it is, if it is heavy: callers take turns

    def with_more(self, added: tuple[Edit, ...], scene: Scene) -> Reading:
        return Reading(
            self.wire,
            self.tree,
            self.texts,
            scene,
            self.routing,
            added,
            self.notes,
            self.heavy,
            self.values,
            self.caller,
        )


class Offloads(Protocol):
    """Calls a function with these arguments, in a thread if the reading is heavy, and returns what it returns."""

    async def __call__(self, reading: Reading, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T: ...


class Answers:
    def __init__(
        self,
        record: Store,
        checker: ImageChecker,
        images: Images,
        descriptions: Descriptions,
        options: Options,
        offload: Offloads,
    ) -> None:
        self._record = record
        self._offload = offload
        self._checker = checker
        self._images = images
        self._descriptions = descriptions
        self._patience = options.patience
        self._web = options.web
        self._reach = options.reach
        self._flights: SingleFlight[Answer] = SingleFlight()
        self._there: LruCache[bool] = LruCache(_FILES)

    def references(self, sights: Sequence[Sight], visitor: Visitor) -> list[str]:
        found: dict[str, str] = {}
        for sight in sights:
            digest = self._images.digest(sight.source) if isinstance(sight.source, Inline) else None
            if isinstance(digest, str) and self._record.images.read(visitor.scope, digest) is not None:
                found.setdefault(digest, f"sha256:{digest} {one_line(sight.filename or '')}".strip())
        return list(found.values())

    def at_hand(self, scene: Scene, visitor: Visitor, rules: Rules) -> dict[Need, Answer]:
        """What is asked of nearly every image, known ahead where it costs microseconds: a round is saved for each."""
        answers: dict[Need, Answer] = {}
        permitted = permit(scene, Facts(), rules)
        if rules.blind or rules.distrust or isinstance(permitted, Needs):
            return answers
        open_ = [(sight.role, sight.source) for sight in permitted.sights if sight.fate is None]
        images = [(role, source) for role, source in open_ if isinstance(source, Inline)]
        answers |= {Probe(source): probed(source) for _, source in images}
        if rules.references:
            held = self._images.held([source for role, source in images if role == "user"], visitor)
            answers |= {Keep(source): kept for source, kept in held.items()}
        return answers

    async def to(self, needs: Needs, reading: Reading, visitor: Visitor, rules: Rules) -> dict[Need, Answer]:
        """All needs at once. What takes longer than the user's patience goes on behind the request."""
        known, place, answers, left = await self._offload(reading, self._begin, needs, reading, visitor)
        paths: list[Present] = []
        pixels: list[Need] = []
        flights: dict[Need, asyncio.Task[Answer]] = {}
        with ExitStack() as waiting:
            for need in left:
                if isinstance(need, Present):
                    paths.append(need)
                elif isinstance(need, Recall):
                    answers[need] = await self._recalled(known, reading.scene, visitor, rules) if known else _TOO_DEEP
                elif isinstance(need, Look | Compare):
                    stands = place(need.message)
                    flights[need] = waiting.enter_context(self._flight(need, stands, visitor, rules))
                    if len(flights) % _BEGUN_AT_ONCE == 0:
                        await asyncio.sleep(0)  # what was begun takes its first steps, and others get their turn
                else:
                    pixels.append(need)
            if paths:  # of everything that was ever retired: one thread for all
                answers |= await asyncio.to_thread(self._present, paths, known, visitor)
            answers |= await self._few_at_a_time(pixels, visitor, rules)
            if flights:  # looks take as long as somebody else needs for them
                patience = self._patience if any(isinstance(need, Look) for need in flights) else None
                await asyncio.wait(set(flights.values()), timeout=patience)
            for need, flight in flights.items():
                late = not flight.done()
                if late and isinstance(need, Compare):
                    answers[need] = await self._descriptions.waive(need, place(need.message), visitor)
                else:
                    answers[need] = PENDING if late else flight.result()
        await self._images.keep_again(_told(answers), visitor)
        return answers

    def _begin(
        self, needs: Needs, reading: Reading, visitor: Visitor
    ) -> tuple[Chain | None, Callable[[int], Place], dict[Need, Answer], list[Need]]:
        """Return the names and places of the conversation, the answers that take microseconds, and the needs left."""
        known = None
        if any(isinstance(need, Look | Compare | Recall | Present) for need in needs.needs):
            known = named(reading)
        said = items(_within(reading), reading.wire.items)
        place = places(known, reading.scene, said, reading.texts) if known else _nowhere
        answers = self._known(needs, visitor)
        return known, place, answers, sorted(needs.needs - answers.keys(), key=_newest_first)

    def _known(self, needs: Needs, visitor: Visitor) -> dict[Need, Answer]:
        held = self._images.held((need.image for need in needs.needs if isinstance(need, Keep)), visitor)
        answers: dict[Need, Answer] = {Keep(image): kept for image, kept in held.items()}
        return answers | {need: probed(need.image) for need in needs.needs if isinstance(need, Probe)}

    async def _few_at_a_time(self, needs: Sequence[Need], visitor: Visitor, rules: Rules) -> dict[Need, Answer]:
        """Return the answers that workers, threads and the disk are needed for; other requests need them too."""
        answers: dict[Need, Answer] = {}
        left = iter(needs)

        async def answer_in_turn() -> None:
            for need in left:
                with self._flight(need, None, visitor, rules) as flight:
                    await asyncio.wait({flight})
                    answers[need] = flight.result()

        if len(needs) == 1:
            await answer_in_turn()
        elif needs:
            await asyncio.gather(*(answer_in_turn() for _ in range(min(len(needs), _AT_ONCE))))
        return answers

    def _present(self, paths: Sequence[Present], known: Chain | None, visitor: Visitor) -> dict[Need, Answer]:
        """Asked once for each place: a file that goes away later does not bring back what has left."""
        policy = self._reach()
        names = known.names if known else ()
        answers: dict[Need, Answer] = {}
        for need in paths:
            name = names[need.message] if need.message < len(names) else ""
            key = visitor.scope, name, (f"file {sha256(need.path.encode('utf-8', 'replace')).hexdigest()}",)
            found = self._there.get(key) if name else there(need.path, policy)
            if found is None:
                noted = self._record.descriptions.read_pinned(*key) or self._noted(key, there(need.path, policy))
                found = self._there.put(key, noted.said.get("there") is True)
            answers[need] = found
        return answers

    def _noted(self, key: tuple[str, str, tuple[str, ...]], found: bool) -> Telling:
        scope, name, about = key
        return self._record.descriptions.pin(scope, Telling(name, about, {"there": found}))

    def _flight(
        self, need: Need, place: Place | None, visitor: Visitor, rules: Rules
    ) -> AbstractContextManager[asyncio.Task[Answer]]:
        """One task for one question, however many requests ask it at the same time."""
        key: Hashable = need
        if isinstance(need, Keep):
            key = (need, visitor.scope)
        if place is not None:  # an agent's side requests ask for other models, but for the same seers
            seers = (visitor.upstream.name, visitor.wire, rules.profile.sibling)
            key = (need, place.turn, place.now, visitor.scope, seers)
        return self._flights.joined(key, lambda: self._safely(need, place, visitor, rules))

    async def _safely(self, need: Need, place: Place | None, visitor: Visitor, rules: Rules) -> Answer:
        try:
            return await self._answer(need, place or Place(), visitor, rules)
        except Exception:
            log.exception("a need could not be answered: %s", type(need).__name__)
            return _BROKEN

    async def _answer(self, need: Need, place: Place, visitor: Visitor, rules: Rules) -> Answer:
        answer: Answer
        match need:
            case Probe(image=image):
                answer = probed(image)
            case Check(image=image):
                answer = await self._checker.check(image)
            case Refit():
                answer = await self._checker.refit(need)
            case Look():
                answer = await self._descriptions.describe(need, place, visitor, rules.profile)
            case Compare():
                answer = await self._descriptions.compare(need, place, visitor, rules.profile)
            case Keep(image=image):
                answer = await self._images.keep(image, visitor)
            case Fetch(link=link):
                answer = await fetched(link, self._web)
            case Present() | Recall():
                raise AssertionError("this is answered for one conversation, not for all that ask")
            case _:
                assert_never(need)
        return answer

    async def _recalled(self, known: Chain, scene: Scene, visitor: Visitor, rules: Rules) -> History:
        """What is known of this conversation; and that it was here just now is known from now on."""
        return await asyncio.to_thread(self._visit, known, scene, visitor, rules)

    def _visit(self, known: Chain, scene: Scene, visitor: Visitor, rules: Rules) -> History:
        ends = [end for end in scene.ends if end < len(known.names)]
        life = rules.profile.cache.seconds
        # Each model has a cache of its own. The head is shared: where nothing but it is known, the model was changed.
        names = [f"{name} {visitor.upstream.name}/{scene.model}" for name in known.names]
        met = self._record.conversations.visit(visitor.scope, known.head, names, ends, life, rules.paid)
        cold = frozenset(index for index, name in enumerate(names) if name in met)
        return History(known.tokens, cold, known.head_tokens)


def _nowhere(message: int) -> Place:
    """Return no place: the conversation has no names."""
    return Place()


def named(reading: Reading, *, spoken: bool = False) -> Chain | None:
    """The names of a conversation, or of what was spoken in it; None: it is nested too deep to have any."""
    wire = reading.wire
    head = () if spoken else wire.head
    try:
        return chain(_within(reading), head, wire.items, reading.texts, reading.scene.sights, spoken=spoken)
    except RecursionError:
        return None


def _within(reading: Reading) -> Json:
    """The conversation itself, also where a request to count stands around it."""
    place = next((sight.place for sight in reading.scene.sights), ())
    return at(reading.tree, *place[: place.index(reading.wire.items)] if reading.wire.items in place else ())


def _told(answers: Mapping[Need, Answer]) -> set[Inline]:
    """The images of which something is said."""
    looks = (need.image for need, said in answers.items() if isinstance(need, Look) and isinstance(said, Description))
    return {image for image in looks if isinstance(image, Inline)}


def _newest_first(need: Need) -> int:
    """Where not all can be looked at, the newest are."""
    return -need.message if isinstance(need, Look) else 0
