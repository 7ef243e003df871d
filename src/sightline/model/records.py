"""The values that the store keeps: receipts, ledger entries, tool-loop answers, views and descriptions."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import field
from functools import lru_cache
from typing import Literal, assert_never

from sightline.model.facts import (
    NO_COORDINATES,
    Check,
    DescribedImage,
    Description,
    Facts,
    JointDescription,
    KeptImage,
)
from sightline.model.fence import to_printable
from sightline.model.geometry import Size
from sightline.model.image import (
    CHARACTERS_PER_TOKEN,
    Image,
    ImageInfo,
    Sizing,
    compute_decoded_size,
    count_image_tokens,
)
from sightline.model.refusal import Refusal
from sightline.model.request_trace import AnswerSlot, RequestTrace, TraceParts
from sightline.model.scene import (
    AS_SENT,
    InlineSource,
    Json,
    JsonPath,
    Refitted,
    Refused,
    Repeated,
    Retired,
    Scene,
    Shown,
    Sight,
    Told,
)
from sightline.model.seer import Usage
from sightline.model.value import value_class

FateName = Literal["shown", "refitted", "told", "retired", "refused", "repeated"]

_MAX_TEXT = 300  # characters of a name or a reason
_MAX_CACHED_PLACE = 256  # characters of the place of an image, whose keys may come from outside
_LINES_KEPT = 4096  # of images that were shown: those of a conversation are in each of its receipts


@value_class
class ReceiptLine:
    """What became of one sight."""

    place: str  # as a JSON pointer into the body
    fate: FateName
    why: str = ""  # empty: unchanged
    before: int | None = None  # tokens, estimated; None: unknown
    after: int | None = None
    sha256: str = ""  # empty: it is not known; the record may not have the image even if it is
    filename: str = ""
    size: tuple[int, int] | None = None  # in pixels
    sent_size: tuple[int, int] | None = None  # of what the model got; None: no pixels, or unchanged ones
    bytes: int | None = None
    sent_bytes: int | None = None
    seer: str = ""
    sent_sha256: str = ""  # of what the model got; empty: no pixels, or unchanged ones

    @property
    def summary(self) -> str:
        match self.fate:
            case "shown":
                return self.why or "shown as sent"
            case "refused":
                return f"not shown: {self.why}"
            case "retired":
                return f"retired ({self.why})"
            case "told":
                return f"described {self.why}"
            case _:
                return f"{self.fate} {self.why}"

    def __str__(self) -> str:
        return f"{self.place}: {self.summary}; {_format_count(self.before)} -> {_format_count(self.after)} tokens"

    def as_json(self) -> dict[str, Json]:
        cost: Json = {"before": self.before, "after": self.after}
        return {"place": self.place, "fate": self.fate, "why": self.why, "tokens": cost}


@value_class
class Receipt:
    """What was done to a request and why, for people: no pixels, no keys, no complete texts."""

    upstream: str
    model: str
    sights: tuple[ReceiptLine, ...] = ()
    notes: tuple[str, ...] = ()  # about the whole request

    @property
    def changes(self) -> tuple[str, ...]:
        """A line for each sight that was changed."""
        return tuple(line.summary for line in self.sights if line.why)

    @property
    def unchanged_count(self) -> int:
        """The number of sights that were forwarded unchanged."""
        return len(self.sights) - len(self.changes)

    def __str__(self) -> str:
        shown = [f"{self.unchanged_count} shown as sent"] if self.unchanged_count else []
        summary = "; ".join([*shown, *self.changes, *self.notes]) or "no images"
        where = " at ".join(filter(None, (self.model, self.upstream)))
        return f"{where}: {summary}" if where else summary

    def as_json(self) -> dict[str, Json]:
        sights: list[Json] = [line.as_json() for line in self.sights]
        return {"upstream": self.upstream, "model": self.model, "sights": sights, "notes": [*self.notes]}


@value_class
class FiledReceipt:
    """A receipt in the record. The client's name for its session is only a label."""

    receipt: Receipt
    wire: str
    labels: tuple[tuple[str, str], ...] = ()
    at: float = 0.0  # when it was filed, by the record's clock
    client: str = ""  # the program that sent it, as it calls itself
    trace: RequestTrace = field(default=RequestTrace(), compare=False, repr=False)
    id: int = field(default=0, compare=False)  # its number in the record
    usage: Usage = field(default=Usage(), compare=False)  # of the upstream's answer
    answer: AnswerSlot | None = field(default=None, compare=False, repr=False)  # for the usage, until it is known
    parts: TraceParts | None = field(default=None, compare=False, repr=False)  # of the trace, until it is built

    def as_json(self) -> dict[str, Json]:
        labels: Json = dict(self.labels)
        return {"at": self.at, "wire": self.wire, "labels": labels, **self.receipt.as_json()}


@value_class
class Omission:
    """A client left images out for a model that it believes to have no vision."""

    client: str  # the name of its command
    model: str
    at: float = 0.0  # when it was last seen, by the record's clock


def build_receipt(
    scene: Scene,
    upstream: str,
    sizing: Sizing | None = None,
    facts: Facts | None = None,
    notes: tuple[str, ...] = (),
    converted: AbstractSet[JsonPath] = frozenset(),
    find_digest: Callable[[InlineSource], str] = lambda source: "",
) -> Receipt:
    """Build the receipt of a scene; `sizing` and `facts` give the tokens of its images.

    `converted` are the places of blocks that were written in the form of the wire, with the same pixels. `find_digest`
    returns the sha256 of an image if it is known.
    """
    known = facts or Facts()
    lines = tuple([_build_line(sight, sizing, known, find_digest, sight.place in converted) for sight in scene.sights])
    return Receipt(_shorten(upstream), _shorten(scene.model), lines, notes)


def _build_line(
    sight: Sight, sizing: Sizing | None, facts: Facts, find_digest: Callable[[InlineSource], str], is_converted: bool
) -> ReceiptLine:
    inline = sight.source if isinstance(sight.source, InlineSource) else None
    kept = facts.find_kept(inline) if inline else None
    known = kept if isinstance(kept, KeptImage) else None
    if known and sight.fate is AS_SENT and not is_converted and sight.path_in_text is None:
        build = _build_shown_line_cached if len(str(sight.place)) <= _MAX_CACHED_PLACE else _build_shown_line
        return build(sight.place, known, sizing, sight.filename, sight.label != "" and sight.role == "tool")
    info = known.info if known else _find_info(inline, facts) if inline else None
    fate = sight.fate or Shown()
    size = (fate.size if isinstance(fate, Told) else None) or (info.size if info else None)
    pixels = count_image_tokens(size, sizing) if size and sizing else None
    before = pixels
    if sight.path_in_text is not None and inline:
        before = len(inline.text) // CHARACTERS_PER_TOKEN  # the model would have got it as text
    match fate:
        case Shown(mime=mime):
            name: FateName = "shown"
            changes = _describe_moves(sight)
            if mime:
                changes.append(f"media type corrected to {mime}")
            why, after = ", ".join(changes) or (_CONVERTED if is_converted else ""), pixels
        case Refitted(image=image, why=reason):
            name, why = "refitted", ", ".join([f"to {image.size} {image.mime} ({reason})", *_describe_moves(sight)])
            after = count_image_tokens(image.size, sizing) if sizing else None
        case Told(text=words, seer=seer, why=reason):
            name, why, after = "told", f"by {seer} ({reason})" if reason else f"by {seer}", _count_text_tokens(words)
        case Retired(text=words, why=reason):
            name, why, after = "retired", reason, _count_text_tokens(words)
        case Refused(text=words, refusal=refusal):
            name, why, after = "refused", str(refusal), _count_text_tokens(words)
        case Repeated():
            name, why, after = "repeated", "in a text beside the image itself", 0
        case _:
            assert_never(fate)
    refit = fate.image if isinstance(fate, Refitted) else None
    # An info has the same number of bytes.
    decoded_bytes = info.bytes if info else compute_decoded_size(inline.text) if inline else None
    return ReceiptLine(
        format_pointer(sight.place),
        name,
        _shorten(why) if why else "",
        before,
        after,
        known.sha256 if known else find_digest(inline) if inline else "",
        _shorten(filename) if (filename := sight.filename) else "",
        (size.width, size.height) if size else None,
        (refit.size.width, refit.size.height) if refit else None,
        decoded_bytes,
        len(refit.data) if refit else None,
        _shorten(fate.seer) if isinstance(fate, Told) else "",
        refit.sha256 if refit else "",
    )


def _build_shown_line(
    place: JsonPath, kept: KeptImage, sizing: Sizing | None, filename: str | None, is_moved: bool
) -> ReceiptLine:
    """Return the line of a kept image that the model gets as it was sent."""
    size = kept.info.size
    tokens = count_image_tokens(size, sizing) if sizing else None
    why, name = _MOVED if is_moved else "", _shorten(filename) if filename else ""
    pixels = (size.width, size.height)
    return ReceiptLine(
        format_pointer(place), "shown", why, tokens, tokens, kept.sha256, name, pixels, bytes=kept.info.bytes
    )


_CONVERTED = "converted into a block of this API"
_build_shown_line_cached = lru_cache(_LINES_KEPT)(_build_shown_line)  # takes a sixth of the time of other lines
_MOVED = "moved out of a tool result"


def _describe_moves(sight: Sight) -> list[str]:
    moves = [] if sight.path_in_text is None else ["taken out of a text"]
    if sight.label and sight.role == "tool":
        moves.append(_MOVED)
    return moves


def _find_info(source: InlineSource, facts: Facts) -> ImageInfo | None:
    """Return what the header of an image says that is not kept, if it was read."""
    seen = facts.find_info(source)
    if not isinstance(seen, ImageInfo):
        seen = facts.get(Check(source), ImageInfo)
    return seen if isinstance(seen, ImageInfo) else None


def _count_text_tokens(words: str) -> int:
    return -(-len(words) // CHARACTERS_PER_TOKEN)


def format_pointer(place: JsonPath) -> str:
    """Return a place as a JSON pointer."""
    steps = [*map(str, place)]
    pointer = "/".join(["", *steps])
    if "~" in pointer or pointer.count("/") > len(steps):  # nearly never
        pointer = "/".join(["", *(step.replace("~", "~0").replace("/", "~1") for step in steps)])
    return pointer


def _format_count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _shorten(text: str) -> str:
    """Shorten a text and make it printable: receipts go to terminals, and names come from outside."""
    return to_printable(text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}…")


EntryKind = Literal[
    "vision_proxy.description",
    "vision_proxy.tool_call",
    "vision_proxy.joint_description",
    "vision_proxy.command",
    "vision_proxy.skip",
]

ANSWER_DETAIL = "answer"  # in `LedgerEntry.about`: the beginning of the answer to a question, for the inspector
MAX_ANSWER_DETAIL = 2000  # characters


@value_class
class LedgerEntry:
    """One question to a seer, or a reason why none was asked."""

    kind: EntryKind
    images: tuple[str, ...] = ()  # the sha256 of each
    seer: str = ""  # provider/model; empty: no seer was asked
    usage: Usage = Usage()
    cost_usd: float | None = None  # None: the price is not known
    cache_hit: bool = False
    latency_ms: int | None = None
    about: Mapping[str, Json] = field(default_factory=dict)  # question, reason, crop and the like, unabridged
    error: str = ""  # a code, never a provider's own message
    at: float = 0.0  # when it was added, by the record's clock


@value_class
class Spending:
    """What one seer cost on one day."""

    day: str  # YYYY-MM-DD, local time
    seer: str
    calls: int  # that were sent
    usage: Usage
    cost_usd: float | None  # of calls with a known price
    unpriced: int  # calls with an unknown price
    failed: int = 0  # calls without a usable answer


@value_class
class LoopAnswer:
    """An answer of the tool loop, with the calls of our own tools that the client did not see."""

    key: str  # by which it is looked up
    visible_hash: str  # of everything that the client saw
    conversation: str  # the name of the conversation that it answered; empty: the key is enough
    legs: Sequence[Json]
    results: Sequence[Json] | None = ()  # of the calls in its last leg; None: they are still being answered
    created_at: float = 0.0


@value_class
class StoredView:
    """A view of an image or a part of it that a caller got."""

    result: str  # the JSON object that the caller got, as `json.dumps` writes it with sorted keys
    image: str  # sha256 of the whole image
    pixels: Image  # the part that was shown
    text: str = ""  # that was shown beside it

    @property
    def id(self) -> str:
        return compute_view_id(self.result)


def compute_view_id(result: str) -> str:
    """Return the id of a view: a hash of its result, so that a caller who kept the result can find the view."""
    return hashlib.sha256(result.encode("utf-8", "surrogatepass")).hexdigest()


DescriptionResult = Description | JointDescription | Refusal


@value_class
class PinnedDescription:
    """The description that is used for the images of a turn, so that later requests repeat it exactly."""

    turn: str
    images: tuple[str, ...]
    result: Mapping[str, Json] = field(default_factory=dict)
    failed: bool = False  # it is a refusal, which a later description may replace
    asked_in_turn: str = ""  # the turn in which a seer was asked for it; empty: none was asked


def dump_description(result: DescriptionResult) -> dict[str, Json]:
    match result:
        case Refusal():
            return {"code": result.code, "what": result.what, "remedy": result.remedy}
        case Description():
            return _dump_text(result, [result.image])
        case JointDescription():
            return _dump_text(result, result.images)


def _dump_text(result: Description | JointDescription, images: Sequence[DescribedImage]) -> dict[str, Json]:
    """Coordinates get keys only if there are any: most descriptions have none."""
    row: dict[str, Json] = {
        "text": result.text,
        "seer": result.seer,
        "images": [_dump_image(each) for each in images],
    }
    if result.coordinate_format != NO_COORDINATES:
        row |= {"form": result.coordinate_format, "boxes": result.boxes_block}
    return row


def _dump_image(image: DescribedImage) -> Json:
    sent: dict[str, Json] = {"sent": [image.sent_size.width, image.sent_size.height]} if image.sent_size else {}
    return {
        "sha256": image.sha256,
        "width": image.size.width,
        "height": image.size.height,
        "filename": image.filename,
        **sent,
    }


def load_description(pinned: PinnedDescription) -> DescriptionResult:
    """Return the description or refusal that `dump_description` wrote."""
    match pinned.result:
        case {"code": code, "what": str(what), "remedy": str(remedy)}:
            return Refusal(code, what, remedy)  # type: ignore[arg-type] # as it was written
        case {"text": str(text), "seer": str(seer), "images": list(rows)}:
            images = tuple(_load_image(row) for row in rows if isinstance(row, dict))
            form, boxes = str(pinned.result.get("form", NO_COORDINATES)), str(pinned.result.get("boxes", ""))
            if len(pinned.images) > 1:
                return JointDescription(images, text, seer, form, boxes)
            (image,) = images
            return Description(image.sha256, image.size, text, seer, form, image.sent_size, boxes)
    raise ValueError(pinned)


def _load_image(row: Mapping[str, Json]) -> DescribedImage:
    sent = row.get("sent")
    sent_size = _parse_size(*sent) if isinstance(sent, list) else None
    size = _parse_size(row["width"], row["height"])
    return DescribedImage(str(row["sha256"]), size, str(row["filename"]), sent_size)


def _parse_size(width: Json, height: Json) -> Size:
    assert isinstance(width, int)
    assert isinstance(height, int)
    return Size(width, height)
