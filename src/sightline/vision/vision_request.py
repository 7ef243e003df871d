"""A request to look at images, how its images are made to fit a seer, the result, and the questions that it took.

Every question to a seer is a `VisionRequest`, whether the proxy describes an image, a model calls `analyze_image`, a
person runs `describe`, or a program calls `vision_analyze`. What differs between them is data on the request.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import KW_ONLY, field, replace
from typing import Any

from sightline.grounding import GRIDS
from sightline.grounding.parse import (
    OriginalPlace,
    SeenPlace,
    build_boxes_block,
    build_view_map,
    map_to_original,
    parse_places,
)
from sightline.model.facts import NO_COORDINATES, DescribedImage, Description
from sightline.model.geometry import Box, Size
from sightline.model.image import (
    MAX_BITMAP_BYTES,
    MAX_UNCHANGED_BYTES,
    Image,
    ImageInfo,
    ImageTarget,
    compute_base64_length,
)
from sightline.model.ports import Lease
from sightline.model.records import ANSWER_DETAIL, MAX_ANSWER_DETAIL, EntryKind, LedgerEntry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import LOCAL_SEER, LabelledBox, Seer, SeerAnswer, Usage
from sightline.model.value import value_class
from sightline.passes.show import build_target
from sightline.pixels import pack_target, unpack_fit_result
from sightline.pixels.image_headers import is_animated
from sightline.pixels.workers import WorkerPool
from sightline.profiles.profile_lookup import find_model_family
from sightline.vision.chooser import Caller, Candidate
from sightline.vision.prompts import Prompt
from sightline.vision.providers import ModelCheck

_UNLIMITED = 1 << 40
_READER_PIXELS = MAX_BITMAP_BYTES // 4  # of an image for the local reader


@value_class
class VisionImage:
    """An image of a request, or a part of one."""

    image: Image
    filename: str = ""
    box: Box | None = None  # the part, in pixels of the image; None: all of it

    @property
    def id(self) -> str:
        return f"{self.image.sha256}#{self.box}" if self.box else self.image.sha256

    @property
    def size(self) -> Size:
        return self.box.size if self.box else self.image.size

    def as_member(self, sent: Size | None) -> DescribedImage:
        """Return what is kept about the image, which was sent in the size `sent`."""
        resized = None if sent is None or sent == self.size else sent
        return DescribedImage(self.image.sha256, self.image.size, self.filename, resized, self.box)


FitImages = Callable[[Seer, str], Awaitable[Sequence[Image] | Refusal]]
"""Makes the images of a request fit a seer that writes coordinates in a given form."""


@value_class
class CacheRule:
    """Which known answers a request accepts, and where its own answer is kept."""

    hash_prompt: Callable[[str], str] | None = None  # from a form to the prompt's key in the record; None: not kept
    hash_own_prompt: Callable[[str], str] | None = None  # the key of answers that only requests of this kind may find
    reads_saved: bool = False  # a description that the user has saved is taken, whichever seer gave it
    can_read: Callable[[str], bool] = lambda seer: True  # whether answers of this seer are taken from the record
    can_keep: Callable[[str], bool] = lambda seer: True  # whether they are kept in the record
    save: Callable[[VisionResult], Refusal | None] | None = None  # used instead of keeping a plain description
    in_memory: bool = False  # this process keeps the answer
    join_others: bool = True  # the same question, asked by another request at the same time, is asked only once
    refresh: bool = False  # ask even if an answer is known


@value_class
class Quota:
    """How many questions a caller may ask; known answers are free."""

    take: Callable[[], Refusal | None]  # counts one question, or refuses it
    give_back: Callable[[], None] = lambda: None  # no seer was asked after all
    entry_details: Mapping[str, Json] = field(default_factory=dict)  # for the ledger, if the question is refused


@value_class
class VisionResult:
    """A seer's answer to a request."""

    answer: SeerAnswer
    seer: str
    images: tuple[DescribedImage, ...]
    form: str = NO_COORDINATES
    candidate: Candidate | None = None  # the one that answered
    cost_usd: float | None = None  # None: the price is not known
    cached: bool = False  # no seer was asked for this request
    fallback_reason: Refusal | None = None  # why the model that the user named was not asked
    images_stored: bool = True  # the record holds the bytes of the images

    def encode(self) -> str:
        """Return the answer as text for another process (see `decode_result`)."""
        sent = [[each.sent_size.width, each.sent_size.height] if each.sent_size else None for each in self.images]
        spots = [[s.label, [s.box.x, s.box.y, s.box.width, s.box.height], s.image] for s in self.answer.boxes]
        return json.dumps(
            {"text": self.answer.text, "seer": self.seer, "form": self.form, "sent": sent, "spots": spots}
        )

    def as_description(self, sha256: str) -> Description:
        """Return the answer as the record keeps it, for the file with this hash."""
        member = self.images[0] if self.images else DescribedImage(sha256, Size(0, 0))
        return Description(sha256, member.size, self.answer.text, self.seer, self.form, member.sent_size)

    def find_boxes(self) -> tuple[OriginalPlace, ...]:
        """Return everything that the answer points at, in pixels of the original images."""
        spots = convert_spots(self.answer.boxes, self.images)
        return spots or find_boxes_in_text(self.answer.text, self.form, self.images)


@value_class
class Attempt:
    """The outcome of asking one seer, for the ledger."""

    seer: str
    form: str
    outcome: VisionResult | Refusal
    seconds: float
    usage: Usage = Usage()
    cost_usd: float | None = None
    sent: bool = True  # False: nothing was sent to the seer
    fitted: bool = True  # False: an image could not be made to fit the seer

    @property
    def cached(self) -> bool:
        return isinstance(self.outcome, VisionResult) and self.outcome.cached

    def make_entry(self, kind: EntryKind, images: tuple[str, ...], about: Mapping[str, Json]) -> LedgerEntry:
        """Return the entry for the ledger, with the answer to a question; a seer that was sent nothing isn't named."""
        failed = isinstance(self.outcome, Refusal)
        if kind == "vision_proxy.tool_call" and isinstance(self.outcome, VisionResult) and about.get("question"):
            about = {**about, ANSWER_DETAIL: self.outcome.answer.text[:MAX_ANSWER_DETAIL]}
        return LedgerEntry(
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


@value_class
class VisionRequest:
    """A question about images or files, with everything that differs between those who ask."""

    _: KW_ONLY
    scope: str
    prompt: Prompt
    fit: FitImages
    identity: Json  # tells the request from others, apart from its prompt and the seer
    make_entries: Callable[[Attempt], Sequence[LedgerEntry]]  # the ledger's entries for an attempt
    no_candidate: Refusal  # returned if there is no candidate at all
    images: tuple[VisionImage, ...] = ()
    sha256s: tuple[str, ...] = ()  # of the files that it is about
    caller: Caller | None = None  # the client that asks, whose own provider may look
    model: str | None = None  # PROVIDER/MODEL; else as the settings say
    check: ModelCheck = "not blind"  # what must be known about a model that the request names
    first_only: bool = False  # ask only the first candidate, and no other if it fails
    check_candidate: Callable[[Candidate], Refusal | None] = lambda candidate: None  # whether it takes such files
    ask_coordinates: bool = True
    fit_first: bool = False  # before known answers are looked for, because these depend on what would be sent
    cache: CacheRule = field(default_factory=CacheRule)
    quota: Quota | None = None
    keep_images: Callable[[], bool] = lambda: False  # stores the bytes before anything refers to them
    find_fault: Callable[[str], str] | None = None  # why an answer can't be used; the seer is then asked once more
    advise: Callable[[Refusal, Candidate], Refusal] = lambda refusal, candidate: refusal  # adds a better remedy
    max_chars: int | None = None  # of an answer
    take_turns: bool = False  # automatic requests come in large numbers: callers take turns
    waits_for_looks: bool = False  # it waits for automatic requests about its images
    since: float = 0.0  # when it was made; answers that other processes got earlier are too old
    lease: Lease | None = None  # under which it is asked; an answer replaces no other one once the lease is lost
    images_stored: bool = False  # the record had the images when it was asked; an answer isn't kept once they are gone

    def make_members(self, sizes: Sequence[Size | None]) -> tuple[DescribedImage, ...]:
        """Return what is kept about the images, which were sent in these sizes."""
        return tuple(one.as_member(size) for one, size in zip(self.images, sizes, strict=True))


def decode_result(text: str, request: VisionRequest) -> VisionResult:
    """Return the result that another process has encoded for the same request."""
    fields = json.loads(text)
    spots = tuple(LabelledBox(label, Box(*box), image) for label, box, image in fields["spots"])
    members = request.make_members([Size(*each) if each else None for each in fields["sent"]])
    seer = str(fields["seer"])
    return VisionResult(SeerAnswer(fields["text"], seer=seer, boxes=spots), seer, members, fields["form"], cached=True)


def make_skip_entry(refusal: Refusal, images: Sequence[str], about: Mapping[str, Json] | None = None) -> LedgerEntry:
    """Return the ledger's entry for a question that was not asked, with the reason."""
    return LedgerEntry("vision_proxy.skip", tuple(images), about={**(about or {}), "reason": str(refusal)})


async def fit_images(
    workers: WorkerPool, images: Sequence[VisionImage], seer: Seer, form: str, *, check_pixels: bool
) -> list[Image] | Refusal:
    """Return the images fitted for a seer; the parts that the question is about are not trimmed or moved.

    A seer that writes coordinates gets an image in the size in which it sees it. Nothing is resized on the way then,
    and coordinates in the answer apply to what was sent. With `check_pixels` every image is decoded before it is sent,
    and only the first frame of an animation is sent.
    """
    target = _compute_target(seer, form, [len(one.image.data) for one in images])
    fitted_images = []
    for one in images:
        resize = _build_resize_work(seer, form, one.size, one.box)
        if one.box is None and _accepts_original(seer, target, one.image.mime, one.size):
            result: Image | Refusal = one.image
        elif resize is not None:
            result = await _resize(workers, one.image, resize)
        else:
            result = await _fit_within(workers, one, target, check_pixels=check_pixels)
        if isinstance(result, Refusal):
            return result
        fitted_images.append(result)
    return fitted_images


def _compute_target(seer: Seer, form: str, byte_counts: Sequence[int]) -> ImageTarget:
    """Return the limits for each of several images with this many bytes."""
    encoded = sum(map(compute_base64_length, byte_counts))
    target = build_target(seer.limits, len(byte_counts), encoded, keeps_geometry=True)
    if seer.name == LOCAL_SEER:
        target = replace(target, pixels=_READER_PIXELS)
    return target if form == NO_COORDINATES else replace(target, sizing=find_model_family(seer.name).sizing)


def _accepts_original(seer: Seer, target: ImageTarget, mime: str, size: Size) -> bool:
    """Return whether a seer gets the file unchanged, which only the local reader does: it decodes and rotates itself.

    To encode the image again would only take time, and might make the file larger than the reader accepts.
    """
    return seer.name == LOCAL_SEER and mime in target.formats and target.accepts_size(size)


def _build_resize_work(seer: Seer, form: str, size: Size, box: Box | None) -> dict[str, Any] | None:
    """Return the worker's task for one exact size; None: this form of coordinates doesn't need one."""
    grid = GRIDS.get(form)
    if grid is None:
        return None
    seen = grid.compute_seen_size(size)
    return {
        "box": [box.x, box.y, box.width, box.height] if box else None,
        "size": [seen.width, seen.height],
        "formats": list(seer.limits.formats),
        "bytes": (seer.limits.encoded_bytes or _UNLIMITED) // 4 * 3,
    }


async def _resize(workers: WorkerPool, image: Image, work: dict[str, Any]) -> Image | Refusal:
    result = await workers.run("exact", image.data, work)
    if isinstance(result, Refusal):
        return result
    return Image(
        hashlib.sha256(result.data).hexdigest(), result.facts["mime"], Size(*result.facts["size"]), result.data
    )


async def _fit_within(
    workers: WorkerPool, one: VisionImage, target: ImageTarget, *, check_pixels: bool
) -> Image | Refusal:
    """Return an image within the limits: unchanged if it fits and is upright, since some seers ignore EXIF rotation."""
    image, box = one.image, one.box
    is_light = not check_pixels or (len(image.data) <= MAX_UNCHANGED_BYTES and not is_animated(image.data))
    fits = target.accepts(ImageInfo(image.mime, image.size, len(image.data)), compute_base64_length(len(image.data)))
    if box is None and is_light and fits and not image.is_rotated:
        checked = await workers.run("check", image.data) if check_pixels else None
        return checked if isinstance(checked, Refusal) else image
    work = pack_target(replace(target, images=1, keeps_geometry=True))
    if box is None:
        result = await workers.run("fit", image.data, work)
    else:
        pixels = {"x": box.x, "y": box.y, "width": box.width, "height": box.height}
        result = await workers.run("part", image.data, {**work, "crop": {"pixels": pixels}})
    return result if isinstance(result, Refusal) else unpack_fit_result(result.facts, result.data).parts[0].image


def find_boxes_in_text(text: str, form: str, images: Sequence[DescribedImage]) -> tuple[OriginalPlace, ...]:
    """Return everything that the text of an answer points at, in pixels of the original images."""
    found = parse_places(text, form, [each.seen_size for each in images])
    views = [build_view_map(each.size, each.seen_size, each.box) for each in images]
    unplaced = (OriginalPlace(None, each.label, each.values, None, each.flag) for each in found if each.image is None)
    return (*(map_to_original(each, views[each.image]) for each in found if each.image is not None), *unplaced)


def convert_spots(spots: Sequence[LabelledBox], images: Sequence[DescribedImage]) -> tuple[OriginalPlace, ...]:
    """Return the places that a seer has measured, in pixels of the original images."""
    views = [build_view_map(each.size, each.seen_size, each.box) for each in images]
    found = []
    for spot in spots:
        corners = (float(spot.box.x), float(spot.box.y), float(spot.box.right), float(spot.box.bottom))
        found.append(map_to_original(SeenPlace(spot.image, spot.label, corners, corners), views[spot.image]))
    return tuple(found)


def format_boxes(images: Sequence[DescribedImage], boxes: Sequence[OriginalPlace], max_chars: int) -> str:
    """Return a block of boxes for each image, as many as fit; the first block also has those of no image."""
    while len(text := _format_all_boxes(images, boxes)) > max_chars and boxes:
        boxes = boxes[: len(boxes) * 3 // 4]
    return text


def _format_all_boxes(images: Sequence[DescribedImage], boxes: Sequence[OriginalPlace]) -> str:
    return "\n".join(
        build_boxes_block(f"sha256:{each.sha256}", each.size, own)
        for index, each in enumerate(images)
        if (own := [one for one in boxes if one.image == index or (one.image is None and index == 0)])
    )


@value_class
class SeerActivity:
    """The questions to seers that one request has caused. Several threads may append to the lists."""

    on_question: Callable[[], None] = lambda: None
    seers: list[str] = field(default_factory=list)  # one for each question
    costs: list[float | None] = field(default_factory=list)  # of those that are answered; None: the price is not known

    @property
    def is_waiting(self) -> bool:
        return len(self.seers) > len(self.costs)


SEER_ACTIVITY: ContextVar[SeerActivity | None] = ContextVar("sightline_seer_activity", default=None)
"""The activity of the request that is being served, for a surface that reports it."""


@contextmanager
def track_question(seer: str) -> Iterator[Callable[[float | None], None]]:
    """Add a question to the activity of the current request; the function that it returns sets its cost."""
    activity, costs = SEER_ACTIVITY.get(), list[float | None]()
    if activity is not None:
        activity.seers.append(seer)
        activity.on_question()
    try:
        yield costs.append
    finally:
        if activity is not None:
            activity.costs.append(costs[0] if costs else 0.0)
