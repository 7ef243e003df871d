"""The engine: reads a request, runs the passes until they need nothing more, and repairs rejected requests."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ParamSpec, TypeVar

from sightline.engine.describer import Describer
from sightline.engine.inline_images import ImageChecker, InlineImages, probe_inline
from sightline.engine.needs import NeedResolver
from sightline.engine.requests import (
    OWN_TOOLS_REJECTED,
    EngineOptions,
    PreparedRequest,
    Reading,
    find_repairs,
)
from sightline.engine.trace_collector import collect_trace
from sightline.memory_reads import read_record
from sightline.model import records
from sightline.model.facts import Facts, Needs, Retention, Rules
from sightline.model.fence import replace_surrogates
from sightline.model.ports import ConversationStore, DescriptionStore, ImageStore, PolicyStore
from sightline.model.profile import Lesson, Profile, RequestOrigin, Upstream, WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import InlineSource, Json, Refused, Scene, Sight
from sightline.passes import decide
from sightline.passes.tell import choose_route
from sightline.pixels.workers import WorkerPool
from sightline.profiles import profile_lookup
from sightline.profiles.profile_lookup import ProfileOverride
from sightline.profiles.rejections import REJECTION_REASONS, parse_rejection
from sightline.vision.concurrency import ComputeThread, LruCache
from sightline.vision.service import VisionService
from sightline.wire import Codec, rerouting
from sightline.wire.json_document import STRIDE, JsonDocument, LiftedBody, lift_few_runs, lift_runs, parse_short
from sightline.wire.json_tree import PlainTexts, get_list, get_value
from sightline.wire.lowering import find_converted, is_unchanged

_LESSON_DAYS = 7.0
_SUSPICION_SECONDS = 3600.0
_SUSPICIONS_KEPT = 256
_MAX_ROUNDS = 8
MAX_IMAGES = 5_000  # in a request; no provider takes more than 3,600
MAX_MESSAGES = 100_000  # in a request, as many as Anthropic takes
# Above these sizes, work on a body is done in a thread. Sizes without base64 are those of the skeleton.
_LIFT_INLINE_BYTES = 8 * 1024 * 1024  # lift the base64 out
_LIFT_INLINE_RUNS = 1024  # each takes a few microseconds
_PARSE_INLINE_BYTES = 128 * 1024  # without base64: parse
_PREPARE_INLINE_BYTES = 64 * 1024  # without base64: prepare a body with images
_HASH_INLINE_BYTES = 8 * 1024 * 1024  # copy, or compare and hash the images
_SHORT_BYTES = 4096  # without base64: below, the parts aren't even counted
_FEW_PARTS = 500  # messages, or parts of them
_FEW_IMAGES = 100
_REMEDY = "it is forwarded unchanged"
_TOO_MANY_IMAGES = Refusal("too_large", f"there are more than {MAX_IMAGES:,} images", _REMEDY)
_TOO_MANY_MESSAGES = Refusal("too_large", f"there are more than {MAX_MESSAGES:,} messages", _REMEDY)

P = ParamSpec("P")
T = TypeVar("T")
_POISON_KEPT = 1024
_NO_KEYS: frozenset[str] = frozenset()  # `frozenset[str]()` takes 20 times as long as a name
_TOKENS_DRAWN = 64


class Engine:
    """Prepares requests for an upstream. Everything that waits or reads a clock is here; the passes are pure."""

    def __init__(
        self,
        vision: VisionService,
        options: EngineOptions,
        workers: WorkerPool,
        *,
        images: ImageStore,
        descriptions: DescriptionStore,
        conversations: ConversationStore,
        policy: PolicyStore,
        discover: Callable[[RequestOrigin, str], None] = lambda origin, model: None,
    ) -> None:
        """`discover` looks in the background for what an upstream publishes about a model."""
        self._policy = policy
        self._discover = discover
        self._options = options
        self._thread = ComputeThread()
        self._images = InlineImages(images)
        checker = ImageChecker(workers)
        self._describer = Describer(images, descriptions, vision, options, checker, self._images, workers)
        self._resolver = NeedResolver(
            descriptions, conversations, checker, self._images, self._describer, options, self.offload_walk
        )
        self._poison: LruCache[str] = LruCache(_POISON_KEPT)
        self._placements_tried: LruCache[str] = LruCache(_SUSPICIONS_KEPT)  # of tool images, after a rejection
        self._suspected: LruCache[tuple[float, Lesson]] = LruCache(_SUSPICIONS_KEPT)

    def configure(self, options: EngineOptions) -> None:
        """Use other options from the next request on."""
        self._options = options
        self._describer.configure(options)
        self._resolver.configure(options)

    def read_objects(self, tree: Json, wire: Codec, *, heavy: bool = False, caller: str = "") -> Reading:
        """Read a body that a program holds as objects. See `Reading` for `heavy` and `caller`."""
        texts = PlainTexts()
        return Reading(wire, tree, texts, wire.read(tree, texts), heavy=heavy, caller=caller)

    def read(self, body: bytes | bytearray, wire: Codec) -> Reading | None:
        """Read a body; None if it can't be read, and must be forwarded unchanged."""
        reading = self._read(body, wire)
        return None if isinstance(reading, Refusal) else reading

    def _read(self, body: bytes | bytearray, wire: Codec, caller: str = "") -> Reading | Refusal | None:
        reading = _parse(lift_runs(body, _draw_token(), self._images.find_run), wire, caller)
        if isinstance(reading, Reading) and len(body) > _HASH_INLINE_BYTES:
            self._images.find_known_keys(reading.scene.sights)
        return reading

    async def open(
        self, body: bytes | bytearray, wire: Codec, caller: Callable[[], str] = str
    ) -> Reading | Refusal | None:
        """Read a body without blocking the event loop; a refusal says which limit it exceeds.

        `caller` returns who sent it: callers with large bodies take turns.
        """
        if len(body) <= STRIDE:  # the bounds below are there for larger ones
            short = parse_short(body)
            return None if short is None else Reading(wire, short.tree, short, wire.read(short.tree, short))
        lifted = None
        if len(body) <= _LIFT_INLINE_BYTES:
            lifted = lift_few_runs(body, _draw_token(), _LIFT_INLINE_RUNS, self._images.find_run)
        if lifted is None:
            return await self._thread.run(owner := caller(), self._read, body, wire, owner)
        if len(lifted.skeleton) > _PARSE_INLINE_BYTES:
            return await self._thread.run(owner := caller(), _parse, lifted, wire, owner)
        document = lifted.parse()
        if document is None:
            return None
        if many := _has_many_parts(document, wire):
            return await self._thread.run(owner := caller(), _read_scene, document, wire, many, owner)
        return _read_scene(document, wire, many)

    @property
    def compute_thread(self) -> ComputeThread:
        """The thread for long computations, which all surfaces of a process share."""
        return self._thread

    async def offload(self, reading: Reading, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `work`, in a thread if the reading is heavy, and return its result."""
        if not reading.heavy:
            return work(*args, **kwargs)
        return await self._thread.run(reading.caller, work, *args, **kwargs)

    async def offload_walk(self, reading: Reading, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same for work that copies nothing: a reading that is only long is no reason for a thread."""
        if not reading.many_parts:
            return work(*args, **kwargs)
        return await self._thread.run(reading.caller, work, *args, **kwargs)

    async def load_lesson(self, origin: RequestOrigin, model: str) -> None:
        """Read what an upstream has taught about a model and the image model, so that it is in memory from now on."""
        if not self._policy.may_wait:
            return
        image_model = self._get_image_model(origin) if self._options.mode == "route" else ""
        for each in filter(None, (model, image_model)):
            await read_record(self._policy.read_lesson, origin.upstream.name, replace_surrogates(each))

    def can_see(self, origin: RequestOrigin, model: str) -> bool:
        """Return whether this model gets pixels."""
        return self.gives_pixels(self.get_model_profile(origin, model))

    def gives_pixels(self, profile: Profile) -> bool:
        """Return whether a model with this profile gets pixels."""
        return self._options.mode != "always" and profile.vision is not False

    def name_messages(self, reading: Reading) -> tuple[str, ...]:
        """Return the names of a conversation by its text: before the first message, and up to each message.

        They are empty if the body is nested too deep.
        """
        names = reading.name_messages(text_only=True)
        return () if names is None else (names.head_name, *names.names)

    def list_references(self, reading: Reading, origin: RequestOrigin) -> list[str]:
        """Return the images of a body that are kept for this client, each as its reference and its file name."""
        return self._images.list_references(reading.scene.sights, origin)

    async def keep_images(self, reading: Reading, origin: RequestOrigin) -> None:
        """Keep the images of a body in the record, so that they can be referred to."""
        sources = {sight.source for sight in reading.scene.sights if isinstance(sight.source, InlineSource)}
        await self._images.keep_missing(sources, origin)

    async def prepare(
        self,
        reading: Reading,
        origin: RequestOrigin,
        paid: bool = True,
        references: bool | None = None,
        adjust_profile: Callable[[Profile], Profile] = lambda known: known,
        retention: Retention | None = None,
        lesson_loaded: bool = False,
    ) -> PreparedRequest:
        """Return the request as the upstream should get it.

        `paid`: the request is not a free one, such as counting tokens. `references` and `retention` override the
        settings of these names; `adjust_profile` adds what the surface knows about the model. `lesson_loaded`: the
        caller has called `load_lesson`.
        """
        reading = _clean_model_name(reading)
        if not lesson_loaded:
            await self.load_lesson(origin, reading.scene.model)
        reading = self._route(reading, origin)
        poison = _NO_KEYS
        if self._poison:
            poison = await self.offload_walk(reading, self._find_poisoned_images, reading.scene, origin)
        profile = adjust_profile(self.get_model_profile(origin, reading.scene.model))
        if reading.scene.sights and not profile.vision_by_user:
            self._discover(origin, reading.scene.model)
        if reading.routing is not None:  # the model for images is named: it also describes them for the other one
            profile = replace(profile, sibling=self._get_image_model(origin))
        rules = Rules(
            profile=profile,
            mode=self._options.mode,
            max_images=self._options.max_images,
            max_joint_images=self._options.max_batch,
            joint_by_turn=self._options.joint_turns,
            may_pay=paid,
            retention=retention or self._options.retention,
            unreadable_keys=poison,
            fold_pages=self._options.fold_pages,
            add_references=self._options.references if references is None else references,
            pixels_this_turn_only=reading.routing is not None,
        )
        return await self._run_passes(reading, origin, rules)

    def _get_image_model(self, origin: RequestOrigin) -> str:
        """Return the name of the image model at this upstream: the settings may put the upstream's name before it."""
        return self._options.image_model.removeprefix(f"{origin.upstream.name}/")

    def _route(self, reading: Reading, origin: RequestOrigin) -> Reading:
        """Return the reading with the model for its turn, if turns with new images have a model of their own."""
        if self._options.mode != "route":
            return reading
        scene, image_model = reading.scene, self._get_image_model(origin)
        wanted = image_model and image_model != scene.model
        # If the provider stores a part of the conversation, it may do so for one model only.
        if not wanted or scene.is_partial or reading.wire.name not in rerouting.REROUTED_WIRES:
            return reading
        if self.get_model_profile(origin, image_model).vision is False:
            return reading
        routing = choose_route(scene.with_sights(tuple(filter(_is_image, scene.sights))), image_model)
        return replace(reading, scene=replace(scene, model=routing.model), routing=routing)

    def get_model_profile(self, origin: RequestOrigin, model: str) -> Profile:
        """Return what is known about a model, with what its upstream has taught."""
        overrides, hoist = self._options.overrides, self._options.hoist
        known = find_profile(self._policy, origin.upstream, origin.wire, model, overrides, hoist=hoist)
        for about_tools in (False, True) if self._suspected else ():
            suspicion = self._suspected.get((origin.upstream.name, model, about_tools))
            if suspicion is not None and suspicion[0] > time.monotonic():
                known = known.apply_lesson(suspicion[1])
        return known

    async def repair(
        self, before: PreparedRequest, origin: RequestOrigin, status: int, text: str
    ) -> PreparedRequest | None:
        """Prepare a rejected request in another way; None if images were not the cause, or nothing else can help.

        A request that was repaired is repaired again only if its images are still too large.
        """
        rejection = parse_rejection(status, text)
        if rejection is None or (before.repair_lesson is not None and rejection.kind not in ("bytes", "request")):
            return None
        for rules, repair_lesson in find_repairs(before, rejection):
            if repair_lesson.lesson and repair_lesson.lesson.tool_images:
                place = (origin.upstream.name, origin.wire, before.scene.model, rules.profile.tool_images)
                if place in self._placements_tried:  # and it didn't help
                    continue
                self._placements_tried.put(place, rejection.kind)
            after = await self._run_passes(before.reading, origin, rules)
            if after.edits != before.edits:
                note = f"sent again after status {status} ({REJECTION_REASONS[rejection.kind]})"
                poison = _list_refused_keys(after.scene) if rules.check_all_images else _NO_KEYS
                return replace(
                    after,
                    receipt=replace(after.receipt, notes=(*after.receipt.notes, note)),
                    repair_lesson=replace(repair_lesson, poison=poison),
                )
        return None

    async def confirm_repair(self, prepared: PreparedRequest, origin: RequestOrigin) -> None:
        """Remember what it took to repair a request, once the upstream has accepted it."""
        if prepared.repair_lesson is None:
            return
        for key in prepared.repair_lesson.poison:
            self._poison.put((origin.upstream.name, key), key)
        if lesson := prepared.repair_lesson.lesson:
            await self.keep_lesson(origin, prepared.scene.model, lesson)
        if suspected := prepared.repair_lesson.suspected:
            self._suspect(origin, prepared.scene.model, suspected)

    async def keep_lesson(self, origin: RequestOrigin, model: str, lesson: Lesson) -> None:
        """Keep a lesson about a model: in the record, or for a while in memory if that can't be written."""
        kept = await asyncio.to_thread(self._policy.keep_lesson, origin.upstream.name, model, lesson, _LESSON_DAYS)
        if isinstance(kept, Refusal):
            self._suspect(origin, model, lesson)

    def withhold_tools(self, origin: RequestOrigin, model: str) -> None:
        """Offer a model no tools of our own for a while."""
        self._suspect(origin, model, OWN_TOOLS_REJECTED)

    def _suspect(self, origin: RequestOrigin, model: str, lesson: Lesson) -> None:
        key = (origin.upstream.name, model, lesson.takes_own_tools is False)
        self._suspected.put(key, (time.monotonic() + _SUSPICION_SECONDS, lesson))

    async def _run_passes(self, reading: Reading, origin: RequestOrigin, rules: Rules) -> PreparedRequest:
        facts: Facts | None = None
        for _ in range(_MAX_ROUNDS):
            if reading.many_parts:
                outcome = await self.offload_walk(reading, self._decide, reading, origin, rules, facts)
            else:
                outcome = self._decide(reading, origin, rules, facts)
            if isinstance(outcome, PreparedRequest):
                return outcome
            facts, needs = outcome
            facts = facts.with_facts(await self._resolver.resolve(needs, reading, origin, rules))
        raise AssertionError("the passes never stop asking")

    def _decide(
        self, reading: Reading, origin: RequestOrigin, rules: Rules, facts: Facts | None
    ) -> PreparedRequest | tuple[Facts, Needs]:
        """Return the prepared request, or the facts so far and the needs that must be answered first."""
        known = self._resolver.answer_cheap_needs(reading.scene, origin, rules) if facts is None else facts
        outcome = decide(reading.scene, known, rules)
        if isinstance(outcome, Needs):
            return known, outcome
        return _lower(outcome, known, reading, origin, rules, self._images.find_known_digest)

    def hash_images(self, prepared: PreparedRequest) -> None:
        """Find the sha256 of images for the receipt, if it lacks any: of short ones now, of long ones in a thread."""
        self._images.hash_missing(prepared.receipt.sights, prepared.scene.sights, prepared.trace.digests)

    def _find_poisoned_images(self, scene: Scene, origin: RequestOrigin) -> frozenset[str]:
        """Return the keys of images that this upstream could not read before; every image is hashed for that."""
        keys = (sight.source.key for sight in scene.sights if isinstance(sight.source, InlineSource))
        return frozenset(key for key in keys if (origin.upstream.name, key) in self._poison)


_drawn_tokens: deque[str] = deque()  # their digits


def _draw_token() -> str:
    """Return a text that no body contains, because it is random. Many are drawn at a time, by one system call."""
    while True:
        try:
            return f"sightline-{_drawn_tokens.pop()}-"
        except IndexError:  # threads may draw at the same time
            digits = secrets.token_hex(8 * _TOKENS_DRAWN)
            _drawn_tokens.extend(digits[at : at + 16] for at in range(0, len(digits), 16))


def _parse(lifted: LiftedBody, wire: Codec, caller: str = "") -> Reading | Refusal | None:
    values = lifted.measure()
    if isinstance(values, Refusal):
        return values
    document = lifted.parse()
    return None if document is None else _read_scene(document, wire, _has_many_parts(document, wire), caller, values)


def _read_scene(
    document: JsonDocument, wire: Codec, many: bool, caller: str = "", values: int = 0
) -> Reading | Refusal:
    """Return a document with its messages and images; `many`: it has many messages, or many parts of them."""
    scene = wire.read(document.tree, document)
    if len(scene.messages) > MAX_MESSAGES:
        return _TOO_MANY_MESSAGES
    if len(scene.sights) > MAX_IMAGES:
        return _TOO_MANY_IMAGES
    max_bytes = _PREPARE_INLINE_BYTES if scene.sights else _PARSE_INLINE_BYTES
    many = many or len(document.skeleton) > max_bytes or len(scene.sights) > _FEW_IMAGES
    heavy = many or len(document.body) > _HASH_INLINE_BYTES
    return Reading(
        wire, document.tree, document, scene, heavy=heavy, many_parts=many, value_count=values, caller=caller
    )


def _has_many_parts(document: JsonDocument, wire: Codec) -> bool:
    """Return whether there are enough messages and parts that walking them takes milliseconds."""
    if len(document.skeleton) < _SHORT_BYTES:
        return False
    messages = get_list(document.tree, wire.messages_key)
    if len(messages) > _FEW_PARTS:
        return True
    parts = (get_value(message, "content") or get_value(message, "parts") for message in messages)
    return sum(len(part) for part in parts if isinstance(part, list)) > _FEW_PARTS


def find_profile(
    policy: PolicyStore,
    upstream: Upstream,
    wire: WireName,
    model: str,
    overrides: Sequence[ProfileOverride],
    *,
    hoist: bool = False,
) -> Profile:
    """Return what is known about a model: from the user, the table, and the upstream's own rejections."""
    hoists = hoist if upstream.hoist is None else upstream.hoist
    known = profile_lookup.look_up_profile(upstream.preset, wire, model, overrides, name=upstream.name, hoist=hoists)
    lesson = policy.read_lesson(upstream.name, model)
    return known if lesson is None else known.apply_lesson(lesson)


def _lower(
    scene: Scene,
    facts: Facts,
    reading: Reading,
    origin: RequestOrigin,
    rules: Rules,
    find_digest: Callable[[InlineSource], str],
) -> PreparedRequest:
    """Return the request for a scene in which everything is decided."""
    lowered = _leave_as_sent(scene) if rules.profile.tool_images == "as_sent" else scene
    edits = [*reading.wire.lower(lowered, reading.tree, rules.profile), *reading.extra_edits]
    converted = find_converted(scene.sights, edits) if edits and scene.sights else frozenset()
    notes = reading.notes
    if routing := reading.routing:
        edits = rerouting.reroute(reading.wire.name, reading.tree, edits, routing)
        notes += (
            (f"instead of {routing.requested_model}, for the new images of this turn",) if routing.is_rerouted else ()
        )
    trace = collect_trace(reading, scene, edits, facts)
    sizing = rules.profile.sizing
    receipt = records.build_receipt(scene, origin.upstream.name, sizing, facts, notes, converted, find_digest)
    return PreparedRequest(edits, reading, scene, rules, receipt, trace)


def _leave_as_sent(scene: Scene) -> Scene:
    """Return the scene without the images of tool results that did not change: nothing there is converted or moved."""
    return scene.with_sights(tuple(s for s in scene.sights if not (s.is_in_tool_result and is_unchanged(s))))


def _clean_model_name(reading: Reading) -> Reading:
    """Return the reading with a model name that is valid text, whatever the client sent."""
    model = replace_surrogates(reading.scene.model)
    return reading if model == reading.scene.model else replace(reading, scene=replace(reading.scene, model=model))


def _is_image(sight: Sight) -> bool:
    """Return whether a sight is an image: base64 within a text may only look like one."""
    return (
        sight.path_in_text is None
        or not isinstance(sight.source, InlineSource)
        or not isinstance(probe_inline(sight.source), Refusal)
    )


def _list_refused_keys(scene: Scene) -> frozenset[str]:
    return frozenset(
        sight.source.key
        for sight in scene.sights
        if isinstance(sight.fate, Refused) and isinstance(sight.source, InlineSource)
    )
