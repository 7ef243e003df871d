"""A request in the engine: as it was read, its place in a conversation, as it is prepared, and how it can be repaired.

Pure: nothing here waits, sends or remembers.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from sightline.model.facts import ProxyMode, Retention, Routing, Rules
from sightline.model.image import compute_base64_length
from sightline.model.media_capability import DEFAULT_TARGET_BYTES
from sightline.model.profile import ImageLimits, Lesson, Profile
from sightline.model.records import Receipt
from sightline.model.request_trace import TraceParts
from sightline.model.scene import (
    Edit,
    InlineSource,
    Insert,
    Json,
    JsonPath,
    Message,
    Rebuild,
    Refitted,
    Replace,
    Scene,
    Shown,
    Sight,
)
from sightline.model.value import value_class
from sightline.net import WebGrant
from sightline.profiles.profile_lookup import ProfileOverride
from sightline.profiles.rejections import Rejection
from sightline.sources.files import PathPolicy
from sightline.wire import Codec, rerouting
from sightline.wire.hash_chain import HashChain, build_hash_chain
from sightline.wire.json_document import JsonDocument
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import Buffer, Texts, get_at, get_list
from sightline.wire.lowering import has_pixels, is_unchanged
from sightline.wire.message_texts import list_message_texts
from sightline.wire.scene_reader import is_from_person

_NO_FILES = PathPolicy(())
_PLAIN_FORMATS = ("image/png", "image/jpeg")
_REFIT_BYTES = DEFAULT_TARGET_BYTES // 3 * 4  # base64 length of an image that is too large for an unknown limit
_LAST_DIVISOR = 4  # the last size that is tried is this fraction of the one before
_REFIT_EDGE = 2000  # pixels: the smallest limit that a provider is known to have
MAX_CONTEXT_CHARS = 3000  # of all messages that a seer gets for context
_MAX_CONTEXT_MESSAGES = 8
_MAX_ASSISTANT_CHARS = 500  # of each message of the assistant among them


@value_class
class EngineOptions:
    """What the user's settings say for every request."""

    instructions: str  # for seers that describe an image
    question: str
    mode: ProxyMode = "fallback"
    max_images: int = 20  # described in one turn; 0: no limit
    include_context: bool = False  # a seer that describes a new image gets the last messages
    max_batch: int = 1  # images of a turn that are also described together; 1: none are
    similarity_threshold: float = 0.8  # above which two of them are called similar
    joint_turns: bool = False  # a joint description is kept only during its turn
    show_boxes: bool = True  # an answer is followed by the boxes that it mentions, in pixels of the image
    retention: Retention = Retention()
    overrides: Sequence[ProfileOverride] = ()  # what the user says about models
    hoist: bool = False  # move images out of tool results, unless an upstream says otherwise
    network_grant: WebGrant | None = None  # to fetch images by address for text-only models; None: not allowed
    find_file_policy: Callable[[], PathPolicy] = lambda: _NO_FILES  # the files that requests may refer to
    compares_any_file: bool = False  # clients are on this machine: images are compared with any file that they name
    client_folder: Path | None = None  # where the client works, which relative paths start at; None: not known
    fold_pages: bool = False  # fold tall pages that the provider would make illegible
    references: bool = False  # add a reference to each pasted image
    image_model: str = ""  # in the mode `route`: the model for turns with new images
    patience: float = 45.0  # seconds for all descriptions of one request


@value_class
class Reading:
    """A request body that was read."""

    wire: Codec
    tree: Json
    texts: Texts
    scene: Scene
    routing: Routing | None = None  # set if turns with new images go to a model of their own
    extra_edits: tuple[Edit, ...] = ()  # beyond those of the images: our own tools
    notes: tuple[str, ...] = ()  # what was done to the body before
    heavy: bool = False  # to walk or copy it takes more than a few milliseconds, and is done in a thread
    many_parts: bool = False  # even walking it does; else it is only long, and its known images have keys
    value_count: int = 0  # of its JSON tree, if that is large: a measure of its memory
    caller: str = ""  # who sent it, if it is heavy: callers take turns
    earlier: tuple[Json, ...] = ()  # messages before those of the body, as far as they are known

    def with_additions(self, extra_edits: tuple[Edit, ...], scene: Scene) -> Reading:
        """Return the reading with these edits and this scene."""
        return Reading(
            self.wire,
            self.tree,
            self.texts,
            scene,
            self.routing,
            extra_edits,
            self.notes,
            self.heavy,
            self.many_parts,
            self.value_count,
            self.caller,
            self.earlier,
        )

    def name_messages(self, *, text_only: bool = False) -> HashChain | None:
        """Return the names of the messages, optionally by their text alone; None: nested too deep to be named."""
        head, key = () if text_only else self.wire.head_keys, self.wire.messages_key
        sights = self.scene.sights
        try:
            return build_hash_chain(self._find_conversation(), head, key, self.texts, sights, spoken_only=text_only)
        except RecursionError:
            return None

    def _find_conversation(self) -> Json:
        """Return the part of the tree with the messages: a request to count tokens wraps it in another object."""
        key, place = self.wire.messages_key, next((sight.place for sight in self.scene.sights), ())
        found = get_at(self.tree, *place[: place.index(key)] if key in place else ())
        if not self.wire.is_one_message:
            return found
        message: Json = {"role": self.scene.messages[-1].role, "content": get_list(found, key)}
        return {key: [*self.earlier, message]}

    def find_places(self, names: HashChain) -> Callable[[int], ConversationPlace]:
        """Return a function that finds the place of a message, by its index."""
        turns = self.scene.turn_starts
        texts = _MessageTexts(
            self.scene.messages, get_list(self._find_conversation(), self.wire.messages_key), self.texts
        )

        def get_name(index: int) -> str:
            """Return the name of a turn: that of the message that opens it, which covers everything up to there."""
            return names.names[index] if 0 <= index < len(names.names) else names.head_name

        def find_place(index: int) -> ConversationPlace:
            opening = turns[index] if index < len(turns) else -1
            current = turns[-1] if turns else -1
            return ConversationPlace(
                get_name(opening),
                get_name(current),
                lambda: texts.collect_context(index),
                lambda: texts.get_text(opening) if opening >= 0 else "",
                lambda: texts.get_text(texts.find_last(opening - 1, by_assistant=True)),
            )

        return find_place


@value_class
class ConversationPlace:
    """The place of an image in a conversation. Its texts are only read when they are needed."""

    turn: str = ""  # the name of its turn; empty: the conversation can't be named
    current_turn: str = ""  # the name of the newest turn
    read_context: Callable[[], Sequence[str]] = list  # the last messages up to it, each with its role
    read_question: Callable[[], str] = str  # the message that began its turn
    read_previous_reply: Callable[[], str] = str  # what the assistant said before that

    @property
    def is_current(self) -> bool:
        """Whether it is in the newest turn."""
        return bool(self.turn) and self.turn == self.current_turn


class _MessageTexts:
    """The texts of the messages of a conversation. Each is read once, however many images need it."""

    def __init__(self, about: Sequence[Message], messages: Sequence[Json], texts: Texts) -> None:
        self._about, self._messages, self._texts = about, messages, texts
        self._known: dict[int, str] = {}
        self._last: dict[tuple[bool, int], int] = {}

    def get_text(self, index: int) -> str:
        """Return the text of a message; empty if there is no such message."""
        if not 0 <= index < min(len(self._about), len(self._messages)):
            return ""
        if index not in self._known:
            self._known[index] = _read_text(self._about[index], self._messages[index], self._texts)
        return self._known[index]

    def find_last(self, index: int, *, by_assistant: bool = False) -> int:
        """Return the last message with text up to this one, or -1."""
        passed = []
        index = min(index, len(self._about) - 1)
        while index >= 0 and (by_assistant, index) not in self._last:
            if (self._is_assistant(index) or not by_assistant) and self.get_text(index):
                break
            passed.append(index)
            index -= 1
        found = self._last.get((by_assistant, index), index)
        self._last.update({(by_assistant, each): found for each in passed})
        return found

    def collect_context(self, index: int) -> list[str]:
        """Return the last messages up to this one, in their order; if there is little room, the newest ones."""
        found: list[str] = []
        room = MAX_CONTEXT_CHARS
        index = self.find_last(index)
        while index >= 0 and room > len("Assistant: ") and len(found) < _MAX_CONTEXT_MESSAGES:
            text, is_assistant = self.get_text(index), self._is_assistant(index)
            role = "Assistant: " if is_assistant else "User: "
            found.append(_truncate(f"{role}{_truncate(text, _MAX_ASSISTANT_CHARS) if is_assistant else text}", room))
            room -= len(found[-1])
            index = self.find_last(index - 1)
        return found[::-1]

    def _is_assistant(self, index: int) -> bool:
        return self._about[index].role == "assistant"


def _read_text(about: Message, message: Json, texts: Texts) -> str:
    """Return what the assistant or a person wrote; not what tools and programs did, which is private to the model."""
    if about.role == "assistant":
        return "\n".join(list_message_texts(message, texts)).strip()
    return (
        "\n".join(text for text in list_message_texts(message, texts) if is_from_person([text])).strip()
        if about.opens_turn
        else ""
    )


def _truncate(text: str, max_length: int) -> str:
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


@value_class
class PreparedRequest:
    """A request as it is sent to the upstream."""

    edits: Sequence[Edit]
    reading: Reading
    scene: Scene
    rules: Rules
    receipt: Receipt
    trace: TraceParts  # what the record keeps besides the receipt
    repair_lesson: RepairLesson | None = None

    @property
    def body(self) -> Sequence[Buffer]:
        """The body as bytes, if it was read from bytes."""
        document = self.reading.texts
        assert isinstance(document, JsonDocument)
        return document.splice(self.edits)

    @property
    def tree(self) -> Json:
        """The body as objects."""
        return graft(self.reading.tree, self.edits)

    def build_url(self, url: str) -> str:
        """Return the URL for the request that the client sent to `url`: some APIs have the model's name in it."""
        routing = self.reading.routing
        return url if routing is None else rerouting.rewrite_url(self.reading.wire.name, url, routing)


@value_class
class RepairLesson:
    """What a rejection teaches, if the upstream accepts the repaired request."""

    lesson: Lesson | None = None
    suspected: Lesson | None = None  # likely, but the message could mean something else: not for the record
    poison: frozenset[str] = frozenset()  # keys of images that this upstream can't read


OWN_BODY_ACCEPTED = "the upstream rejected a request that Sightline had changed, and accepted the client's own"
PDF_ACCEPTED = Lesson(why=OWN_BODY_ACCEPTED, takes_pdf=True)
OWN_TOOLS_REJECTED = Lesson(why="the upstream rejected a request with Sightline's tools", takes_own_tools=False)


def find_repairs(before: PreparedRequest, rejection: Rejection) -> Iterator[tuple[Rules, RepairLesson]]:
    """Yield the rules with which a rejected request could be prepared again, those that change least first."""
    # The user may have declared that the model sees. This request was rejected anyway, and is repaired like any other.
    rules, profile = before.rules, replace(before.rules.profile, vision_by_user=False)
    distrustful = replace(
        rules, check_all_images=True, unreadable_keys=rules.unreadable_keys | _find_blamed_images(before, rejection)
    )
    reason = rejection.lesson.why
    match rejection.kind:
        case "undecodable" | "media_type":
            yield distrustful, RepairLesson()
            # Every image decodes, and still one was rejected: a plainer encoding may help.
            yield replace(distrustful, reencode=True), RepairLesson()
        case "unclear" | "tool_images":
            if rejection.kind == "tool_images":  # the model may see them elsewhere
                hoist = Lesson(tool_images={profile.wire: "hoist"}, why=reason)
                yield replace(rules, profile=profile.apply_lesson(hoist)), RepairLesson(hoist)
            yield distrustful, RepairLesson()
            # Every model takes text.
            blind = Lesson(blind=True, why=reason)
            yield replace(rules, profile=profile.apply_lesson(blind)), RepairLesson(suspected=blind)
        case "tool_order":
            if profile.moves_tool_images:
                bridge = Lesson(tool_images={profile.wire: "bridge"}, why=reason)
                yield replace(rules, profile=profile.apply_lesson(bridge)), RepairLesson(bridge)
        case "format":
            plain = Lesson(limits=replace(rejection.lesson.limits, formats=_PLAIN_FORMATS), why=reason)
            yield replace(rules, profile=profile.apply_lesson(rejection.lesson)), RepairLesson(rejection.lesson)
            yield replace(rules, profile=profile.apply_lesson(plain)), RepairLesson(plain)
        case _:
            yield replace(rules, profile=profile.apply_lesson(rejection.lesson)), RepairLesson(rejection.lesson)
            if rejection.kind in ("bytes", "request"):  # it names no limit, or one that all images meet
                yield from _reduce_images(before, profile, rejection)


def _reduce_images(
    before: PreparedRequest, profile: Profile, rejection: Rejection
) -> Iterator[tuple[Rules, RepairLesson]]:
    """Yield rules for images that are too large for an unknown limit: fewer bytes, fewer pixels, only descriptions."""

    def apply(lesson: Lesson) -> Rules:
        return replace(before.rules, profile=profile.apply_lesson(lesson))

    target, reason = profile.limits.refit_bytes or _REFIT_BYTES, rejection.lesson.why
    largest = max((_measure_encoded(sight) for sight in before.scene.sights), default=0)
    for size in (target, target // _LAST_DIVISOR):
        lighter = Lesson(limits=ImageLimits(encoded_bytes=size), why=reason)
        if rejection.kind == "request":  # images may be only a part of what is too large
            yield apply(lighter), RepairLesson(suspected=lighter)
            continue
        # Only the size of the largest image is known to be too large.
        limits = ImageLimits(encoded_bytes=largest - 1, refit_bytes=size)
        yield apply(lighter), RepairLesson(Lesson(limits=limits, why=reason))
        smaller = Lesson(limits=ImageLimits(edge=_REFIT_EDGE), why=reason)
        yield apply(smaller), RepairLesson(suspected=smaller)
    if rejection.kind == "bytes":
        yield apply(Lesson(blind=True, why=reason)), RepairLesson()


def _measure_encoded(sight: Sight) -> int:
    """Return the base64 length of an image as it was sent; 0: its pixels were not."""
    match sight.fate, sight.source:
        case Refitted(image=image), _:
            return compute_base64_length(len(image.data))
        case Shown(), InlineSource() as source:
            return len(source.text)
        case _:
            return 0


def blame_edits(rejected: PreparedRequest) -> Lesson | None:
    """Return which edits to avoid if the upstream rejects a request and accepts the client's own; None: none."""
    profile, scene, routing = rejected.rules.profile, rejected.scene, rejected.reading.routing
    if routing is not None and routing.is_rerouted:  # the client's own body goes to another model
        return None
    moved = any(_is_moved(sight, rejected) for sight in scene.sights) and not profile.placement_by_user
    if not moved:
        return OWN_TOOLS_REJECTED if scene.own_tools else None
    return Lesson(
        why=OWN_BODY_ACCEPTED,
        tool_images={profile.wire: "as_sent"},
        takes_own_tools=False if scene.own_tools else None,
    )


def _is_moved(sight: Sight, request: PreparedRequest) -> bool:
    """Return whether the same pixels are sent in another place or as another kind of block."""
    if not has_pixels(sight) or not (sight.is_in_tool_result or sight.path_in_text is not None):
        return False
    if sight.path_in_text is not None or request.rules.profile.moves_tool_images:
        return True
    return is_unchanged(sight) and any(
        isinstance(edit, Replace | Rebuild) and edit.place == sight.place[: len(edit.place)] for edit in request.edits
    )


def _find_blamed_images(before: PreparedRequest, rejection: Rejection) -> frozenset[str]:
    """Return the keys of the images that a rejection names by their places in the body that was sent."""
    # Hoisting and routing rebuild lists: then the places in what was sent are not those in what was read.
    if before.rules.profile.moves_tool_images or before.reading.routing is not None:
        return frozenset()
    if not rejection.paths:
        return frozenset()
    inserted: dict[JsonPath, list[int]] = {}
    for edit in before.edits:
        if isinstance(edit, Insert) and isinstance(index := edit.place[-1], int):
            insort(inserted.setdefault(edit.place[:-1], []), index)
    return frozenset(
        sight.source.key
        for sight in before.scene.sights
        if isinstance(sight.source, InlineSource) and _shift_place(sight.place, inserted) in rejection.paths
    )


def _shift_place(place: JsonPath, inserted: Mapping[JsonPath, Sequence[int]]) -> JsonPath:
    """Return where a place ends up after the insertions in front of it in the same lists."""
    return tuple(
        step if isinstance(step, str) else step + bisect_right(inserted.get(place[:depth], ()), step)
        for depth, step in enumerate(place)
    )
