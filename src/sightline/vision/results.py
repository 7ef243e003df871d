"""A request to look at images, what differs between those who ask, and the result.

Every question to a seer is a `VisionRequest`, whether the proxy describes an image, a model calls `analyze_image`, a
person runs `describe`, or a program calls `vision_analyze`. What differs between them stands here as data.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sightline.grounding.parse import Found, Placed, boxes_block, parse, shown, to_original
from sightline.model.asking import Answer, Spot, Usage
from sightline.model.facts import NO_FORM, Description, Member
from sightline.model.geometry import Box, Size
from sightline.model.image import Image
from sightline.model.ports import Seer
from sightline.model.records import Entry, EntryKind
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.vision.chooser import Caller, Candidate
from sightline.vision.prompts import Prompt
from sightline.vision.providers import ModelCheck


@dataclass(frozen=True, slots=True)
class VisionImage:
    """An image of a request, and the part of it that is meant."""

    image: Image
    filename: str = ""
    box: Box | None = None  # in pixels of the image; None: all of it

    @property
    def id(self) -> str:
        return f"{self.image.sha256}#{self.box}" if self.box else self.image.sha256

    @property
    def size(self) -> Size:
        return self.box.size if self.box else self.image.size

    def as_member(self, sent: Size | None) -> Member:
        resized = None if sent is None or sent == self.size else sent
        return Member(self.image.sha256, self.image.size, self.filename, resized, self.box)


Fit = Callable[[Seer, str], Awaitable[Sequence[Image] | Refusal]]
"""Makes the images of a request fit a seer that writes coordinates in a form."""


@dataclass(frozen=True, slots=True)
class CacheRule:
    """Which known answers are acceptable, and where a new one is kept."""

    version: Callable[[str], str] | None = None  # names the prompt in the record, for a form; None: not kept there
    reads: Callable[[str], bool] = lambda seer: True  # whether answers of this seer are taken from the record
    keeps: Callable[[str], bool] = lambda seer: True  # whether they are kept there
    save: Callable[[VisionResult, str], Refusal | None] | None = None  # keeps it in another way than as a description
    in_memory: bool = False  # this process remembers it
    shared: bool = True  # the answer to the same question, asked elsewhere at the same time, is acceptable
    refresh: bool = False  # ask anew, whatever is known


@dataclass(frozen=True, slots=True)
class Quota:
    """How often a caller may have a seer asked; known answers are free."""

    take: Callable[[], Refusal | None]  # counts one question, or refuses it
    give_back: Callable[[], None] = lambda: None  # nobody was asked after all
    about: Mapping[str, Json] = field(default_factory=dict)  # for the ledger, where it is refused


@dataclass(frozen=True, slots=True)
class VisionResult:
    answer: Answer
    seer: str
    images: tuple[Member, ...]
    form: str = NO_FORM
    candidate: Candidate | None = None  # who answered
    cost_usd: float | None = None  # None: the price is not known
    cached: bool = False  # nobody was asked for it here and now
    instead: Refusal | None = None  # why the model that the user named was not asked
    stored: bool = True  # the record holds the bytes of the images

    def encode(self) -> str:
        """Return the answer as another process reads it (see `decode_result`)."""
        sent = [[each.sent.width, each.sent.height] if each.sent else None for each in self.images]
        spots = [[s.label, [s.box.x, s.box.y, s.box.width, s.box.height], s.image] for s in self.answer.spots]
        return json.dumps(
            {"text": self.answer.text, "seer": self.seer, "form": self.form, "sent": sent, "spots": spots}
        )

    def as_description(self, sha256: str) -> Description:
        """Return the answer as the record keeps it; `sha256` is that of the file."""
        member = self.images[0] if self.images else Member(sha256, Size(0, 0))
        return Description(sha256, member.size, self.answer.text, self.seer, self.form, member.sent)

    def find_boxes(self) -> tuple[Placed, ...]:
        """Return all that the answer points at, in pixels of the original images."""
        return measure(self.answer.spots, self.images) or find_placed(self.answer.text, self.form, self.images)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What came of asking one seer, for the ledger."""

    seer: str
    form: str
    outcome: VisionResult | Refusal
    seconds: float
    usage: Usage = Usage()  # noqa: RUF009, a frozen value
    cost_usd: float | None = None
    sent: bool = True  # False: nothing has left for the seer
    fitted: bool = True  # False: an image could not be made to fit it

    @property
    def cached(self) -> bool:
        return isinstance(self.outcome, VisionResult) and self.outcome.cached

    def as_entry(self, kind: EntryKind, images: tuple[str, ...], about: Mapping[str, Json]) -> Entry:
        """Return the entry of the ledger; a seer that was never sent anything is not named in it."""
        failed = isinstance(self.outcome, Refusal)
        return Entry(
            kind,
            images,
            self.seer if self.sent else "",
            Usage() if self.cached else self.usage,
            None if failed or self.cached else self.cost_usd,
            self.cached,
            round(self.seconds * 1000),
            about,
            self.outcome.code if isinstance(self.outcome, Refusal) else "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionRequest:
    scope: str
    prompt: Prompt
    fit: Fit
    identity: Json  # what tells the request from others, beside its prompt and who is asked
    entries: Callable[[Attempt], Sequence[Entry]]  # what the ledger says of an attempt
    nobody: Refusal  # said where there is no candidate at all
    images: tuple[VisionImage, ...] = ()
    sha256s: tuple[str, ...] = ()  # of the files that it is about
    caller: Caller | None = None  # the client on whose behalf it is asked, whose own provider may look
    model: str | None = None  # PROVIDER/MODEL; else as the settings say
    check: ModelCheck = "not blind"  # what has to be known of a model that the request names
    first_only: bool = False  # only the first candidate is asked, and no other where that fails
    admit: Callable[[Candidate], Refusal | None] = lambda candidate: None  # whether a candidate takes such files
    grounded: bool = True  # coordinates are asked for
    fit_first: bool = False  # also before known answers are looked for, which depend on what would be sent
    cache: CacheRule = CacheRule()
    quota: Quota | None = None
    keep_images: Callable[[], bool] = lambda: True  # stores the bytes before anything refers to them
    fault: Callable[[str], str] | None = None  # why an answer cannot be used; it is then asked for once more
    advise: Callable[[Refusal, Candidate], Refusal] = lambda refusal, candidate: refusal  # with a better remedy
    longest: int | None = None  # characters of an answer
    in_turn: bool = False  # such requests come in numbers: callers take turns at asking
    since: float = 0.0  # answers that other processes got before are too old

    def members(self, sent: Sequence[Size | None]) -> tuple[Member, ...]:
        return tuple(one.as_member(size) for one, size in zip(self.images, sent, strict=True))


def decode_result(text: str, request: VisionRequest, candidates: Sequence[Candidate]) -> VisionResult:
    """Return the result that another process has encoded for the same request."""
    held = json.loads(text)
    spots = tuple(Spot(label, Box(*box), image) for label, box, image in held["spots"])
    seer = str(held["seer"])
    return VisionResult(
        Answer(held["text"], seer=seer, spots=spots),
        seer,
        request.members([Size(*each) if each else None for each in held["sent"]]),
        held["form"],
        next((each for each in candidates if each.name == seer), None),
        cached=True,
    )


def find_placed(text: str, form: str, images: Sequence[Member]) -> tuple[Placed, ...]:
    """Return all that the words of an answer point at."""
    found = parse(text, form, [each.seen for each in images])
    views = [shown(each.size, each.seen, each.box) for each in images]
    lost = (Placed(None, each.label, each.values, None, each.flag) for each in found if each.image is None)
    return (*(to_original(each, views[each.image]) for each in found if each.image is not None), *lost)


def measure(spots: Sequence[Spot], images: Sequence[Member]) -> tuple[Placed, ...]:
    """Return all that a seer has told beside its words."""
    views = [shown(each.size, each.seen, each.box) for each in images]
    found = []
    for spot in spots:
        corners = (float(spot.box.x), float(spot.box.y), float(spot.box.right), float(spot.box.bottom))
        found.append(to_original(Found(spot.image, spot.label, corners, corners), views[spot.image]))
    return tuple(found)


def write_boxes(images: Sequence[Member], found: Sequence[Placed], room: int) -> str:
    """Return the boxes of each image in blocks, as many as there is room for; the first also has those of no image."""
    while len(whole := _write_all(images, found)) > room and found:
        found = found[: len(found) * 3 // 4]
    return whole


def _write_all(images: Sequence[Member], found: Sequence[Placed]) -> str:
    return "\n".join(
        boxes_block(f"sha256:{each.sha256}", each.size, own)
        for index, each in enumerate(images)
        if (own := [one for one in found if one.image == index or (one.image is None and index == 0)])
    )


def skip_entry(refusal: Refusal, images: Sequence[str], about: Mapping[str, Json] | None = None) -> Entry:
    """Return the entry that says that nobody was asked, and why."""
    return Entry("vision_proxy.skip", tuple(images), about={**(about or {}), "reason": str(refusal)})
