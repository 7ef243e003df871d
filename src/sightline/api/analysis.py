"""`analyze` and `describe`: ask a vision model, or the local reader, about images or parts of them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from sightline.api.results import Analysis, Refused
from sightline.api.session import Door
from sightline.api.views import bitmap, keep
from sightline.model.asking import LOCAL, Usage
from sightline.model.crop import Crop, Normalized, Pixels, Region, resolve
from sightline.model.fence import sound
from sightline.model.image import Image
from sightline.model.records import Entry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.passes import joint
from sightline.passes.words import fallen, fence
from sightline.pixels.decode_limits import within_bounds
from sightline.pixels.part import FORMS, CropLike, crop_of
from sightline.pixels.similar import likeness
from sightline.runtime import shared_runtime
from sightline.settings import Settings, load
from sightline.vision.bridge import wait
from sightline.vision.fitting import fit_images
from sightline.vision.prompts import ANSWER_INSTRUCTIONS, INSTRUCTIONS, QUESTION, TOGETHER, Prompt, version
from sightline.vision.providers import ModelCheck
from sightline.vision.results import Attempt, CacheRule, Quota, VisionImage, VisionRequest, VisionResult, write_boxes
from sightline.vision.service import advise_user

LONGEST_QUESTION = 4000
_LONGEST_ANSWER = 24_000  # characters; the fence around it has room within what a tool result may hold
_MOST_BEHIND = 29_000  # characters of the fence and the boxes behind it, of what a tool result may hold
_OFF = Refusal("not_permitted", "looking is switched off", "`sightline vision-proxy mode fallback` switches it on")
_NOT_SAVED = Refusal(
    "invalid_input", "save is only for one whole image, with no question and no crop", "leave out the others"
)
_NO_ONE = Refusal(
    "unavailable",
    "no model that could look was found",
    "start a vision model on this machine (for example `ollama pull qwen3-vl`), or name one: "
    "`sightline vision-proxy model PROVIDER/MODEL`",
)
TOO_OFTEN = Refusal(
    "unavailable",
    "as many questions as one turn allows were asked about images already",
    "go on with what is known; the user can raise maxToolCallsPerTurn with `sightline config set`",
)


@dataclass(frozen=True, slots=True)
class Asking:
    """The checked arguments of a call. Without a question, a description is asked for."""

    images: tuple[object, ...]
    crops: Mapping[int, Crop]
    question: str = ""
    model: str = ""
    by_tool: bool = False  # a model asks, whose question says all that it wants to know
    save: bool = False  # the answer becomes the image's description
    reason: str = ""

    @property
    def words(self) -> str:
        return self.question or (QUESTION if len(self.images) == 1 else TOGETHER)

    @property
    def check(self) -> ModelCheck:
        """What has to be known of a model that the call names."""
        return "known to see" if self.by_tool else "not blind"


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image that was found, and where."""

    vision: VisionImage
    path: str = ""

    @property
    def sha256(self) -> str:
        return self.vision.image.sha256


def analyze(door: Door, images: object, question: object, **given: object) -> Analysis | Refused:
    """Answer a call of the tool."""
    return answer(door, check_tool_call(door, images, question, **given))


def describe(door: Door, images: Sequence[str], **given: Any) -> Analysis | Refused:
    """Answer a call of the command."""
    return answer(door, check_command(door, images, **given))


def check_command(
    door: Door,
    images: Sequence[str],
    *,
    question: str = "",
    crops: Mapping[int, CropLike] | None = None,
    model: str = "",
    save: bool = False,
) -> Asking | Refusal:
    """Return what a person asks for."""
    if save and (question or crops or len(images) != 1 or any("#crop:" in str(each) for each in images)):
        return _NOT_SAVED
    listed: list[Json] = [{"image_index": index, "form": cast("Json", form)} for index, form in (crops or {}).items()]
    asking = _check(door, list(images), question, listed, model)
    return asking if isinstance(asking, Refusal) else replace(asking, save=save)


def check_tool_call(
    door: Door, images: object, question: object, *, crop: object = None, model: object = None, reason: object = None
) -> Asking | Refusal:
    """Return what a model asks for; every argument may be anything."""
    if not isinstance(question, str) or not question.strip():
        return Refusal("invalid_input", "the question is empty", "ask one")
    if reason is not None and not isinstance(reason, str):
        return Refusal("invalid_input", "the reason is not text", "leave it out")
    asking = _check(door, images, question, crop, model)
    return asking if isinstance(asking, Refusal) else replace(asking, by_tool=True, reason=sound(reason or ""))


def _check(door: Door, images: object, question: str, crop: object, model: object) -> Asking | Refusal:
    most = _settings(door).max_images_per_call
    if len(question) > LONGEST_QUESTION:
        remedy = f"ask in at most {LONGEST_QUESTION:,}"
        return Refusal("invalid_input", f"the question has {len(question):,} characters", remedy)
    if not isinstance(images, list | tuple) or not images:
        return Refusal("invalid_input", "no image is named", "give a list of paths or sha256: references")
    if len(images) > most:
        remedy = f"give at most {most} in a call (maxImagesPerCall)"
        return Refusal("invalid_input", f"there are {len(images)} images", remedy)
    if model is not None and not isinstance(model, str):
        return Refusal("invalid_input", "the model is not text", "write PROVIDER/MODEL")
    crops = read_crops(crop, len(images))
    return crops if isinstance(crops, Refusal) else Asking(tuple(images), crops, sound(question), sound(model or ""))


def read_crops(entries: object, images: int) -> dict[int, Crop] | Refusal:
    """Return crops by the index of their image: each has one, in one form, and no image has two."""
    if entries is None:
        return {}
    if not isinstance(entries, list | tuple):
        return Refusal("invalid_input", "crop is not a list", "give a list of entries with image_index and one form")
    found: dict[int, Crop] = {}
    for entry in entries:
        one = _read_crop(entry, images)
        if isinstance(one, Refusal):
            return one
        index, part = one
        if index in found:
            return Refusal("invalid_input", f"image {index} has two crops", "give one crop for each image")
        found[index] = part
    return found


def _read_crop(entry: object, images: int) -> tuple[int, Crop] | Refusal:
    if not isinstance(entry, Mapping):
        return Refusal("invalid_input", "an entry of crop is not an object", "give image_index and one form")
    index = entry.get("image_index")
    if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < images:
        what = f"there is no image {index!r:.20} to crop"
        return Refusal("invalid_input", what, f"image_index counts from 0 to {images - 1}")
    if isinstance(entry.get("form"), str | Region | Normalized | Pixels) and len(entry) == 2:
        part = crop_of(entry["form"])  # as a person writes it, or a program holds it
    else:
        part = crop_of({name: value for name, value in entry.items() if name != "image_index"})
    if part is None or isinstance(part, Refusal):
        no = part or Refusal("invalid_input", "a crop has exactly one form", f"give one of {', '.join(FORMS)}")
        return replace(no, what=f"the crop of image {index}: {no.what}")
    return index, part


def find_unagreed(door: Door, asking: Asking | Refusal) -> str:
    """Return the provider that only the user's consent keeps from being asked; empty: none, or more is missing."""
    settings = _settings(door)
    if isinstance(asking, Refusal) or settings.mode == "off":
        return ""
    runtime = shared_runtime(settings, door.record)
    found = None if isinstance(runtime, Refusal) else runtime.chooser.find_unagreed(asking.model or None, asking.check)
    return found[1] if found and not isinstance(find_images(door, asking), Refusal) else ""


def answer(door: Door, asking: Asking | Refusal) -> Analysis | Refused:
    outcome = asking if isinstance(asking, Refusal) else look(door, asking)
    return Refused(outcome, "analyze") if isinstance(outcome, Refusal) else outcome


def look(door: Door, asking: Asking) -> Analysis | Refusal:
    """Return the answer to a call, or why there is none."""
    since, settings = time.time(), _settings(door)
    if settings.mode == "off":
        return _OFF
    images = find_images(door, asking)
    runtime = images if isinstance(images, Refusal) else shared_runtime(settings, door.record)
    if isinstance(images, Refusal) or isinstance(runtime, Refusal):
        return cast("Refusal", runtime)
    request = _Call(door, settings, asking, images).build_request(since)
    made = wait(runtime.vision.look(request))
    return made if isinstance(made, Refusal) else build_analysis(made, asking, settings)


def find_images(door: Door, asking: Asking) -> list[FoundImage] | Refusal:
    """Return the images of a call with the parts that are meant, in pixels: equal crops are equal in any form."""
    found = []
    for index, reference in enumerate(asking.images):
        one = _find_image(door, reference, asking.crops.get(index))
        if isinstance(one, Refusal):
            return one if len(asking.images) == 1 else replace(one, what=f"image {index}: {one.what}")
        found.append(one)
    return found


def _find_image(door: Door, reference: object, crop: Crop | None) -> FoundImage | Refusal:
    found = bitmap(door, reference, crop, None, None)
    picture = found if isinstance(found, Refusal) else within_bounds(found.data)
    if isinstance(found, Refusal) or isinstance(picture, Refusal):
        return cast("Refusal", picture)
    box = resolve(found.crop, picture.size) if found.crop else None
    if isinstance(box, Refusal):
        return box
    sha256 = hashlib.sha256(found.data).hexdigest()
    image = Image(sha256, picture.mime, picture.size, found.data, picture.turned)
    return FoundImage(VisionImage(image, found.name, box), found.path)


@dataclass(frozen=True, slots=True)
class _Call:
    """A call whose images were found."""

    door: Door
    settings: Settings
    asking: Asking
    found: Sequence[FoundImage]

    @property
    def sha256s(self) -> tuple[str, ...]:
        return tuple(each.sha256 for each in self.found)

    def build_request(self, since: float) -> VisionRequest:
        images = tuple(each.vision for each in self.found)
        hints, alike = self._find_hints()
        ids: list[Json] = [each.id for each in images]
        names: list[Json] = [each.filename for each in images] if len(images) > 1 else []
        return VisionRequest(
            scope=self.door.scope,
            prompt=self._build_prompt(hints),
            fit=partial(fit_images, self.door.workers, images, decoded=True),
            identity=["analyze", ids, names],
            entries=partial(self._write_entries, alike),
            nobody=_NO_ONE,
            images=images,
            sha256s=self.sha256s,
            caller=self.door.caller,
            model=self.asking.model or None,
            check=self.asking.check,
            cache=self._cache_rule(),
            quota=self._quota(),
            keep_images=self._keep_images,
            advise=partial(advise_user, settings=self.settings),
            longest=_LONGEST_ANSWER,
            since=since,
        )

    def _build_prompt(self, hints: Sequence[str]) -> Prompt:
        words, question = self.asking.words, self.asking.question
        if len(self.found) > 1:
            return Prompt(joint.prompt(len(self.found), words, hints), words, asked=question, introduces=True)
        told = ANSWER_INSTRUCTIONS if question else self.settings.system_prompt or INSTRUCTIONS
        return Prompt(told, words, asked=question)

    def _find_hints(self) -> tuple[list[str], float | None]:
        """Return what names and likeness of several images say; a model that asks has said itself what it wants."""
        if self.asking.by_tool or len(self.found) < 2:
            return [], None
        hashes = [self.door.workers.ask("hash", each.vision.image.data) for each in self.found]
        threshold = self.settings.phash_similarity_threshold
        alike = list(joint.similar(likeness(hashes), threshold))
        hints = joint.hints([each.vision.filename for each in self.found], alike)
        return hints, max((how for *_, how in alike), default=None)

    def _cache_rule(self) -> CacheRule:
        """Return where the answer is kept. The description of one whole image is kept in the record.

        That of the local reader is not: the places that it measures would be lost.
        """
        (one, *more), save = self.found, self.asking.save
        plain = not self.asking.question and not more and not one.vision.box
        return CacheRule(
            version=partial(version, self.settings.system_prompt or INSTRUCTIONS) if plain else None,
            reads=lambda seer: seer != LOCAL,
            keeps=lambda seer: save or seer != LOCAL,
            save=self._save if save else None,
            in_memory=True,
            shared=bool(self.settings.cache_size),
            refresh=save,
        )

    def _save(self, result: VisionResult, prompt: str) -> Refusal | None:
        """Make the answer the description of the image, as the user wants it."""
        boxes = _write_boxes(result, self.settings, _MOST_BEHIND)
        said = replace(result.as_description(self.found[0].sha256), boxes=boxes)
        no = self.door.record.descriptions.replace(self.door.scope, self.door.reach, said, prompt)
        return no and replace(no, what=f"the image was described, but that could not be saved: {no.what}")

    def _quota(self) -> Quota | None:
        """Return how often a model may have somebody asked in a turn."""
        turn, turns = self.door.turn, self.door.turns
        if not self.asking.by_tool or turn is None:
            return None
        most = self.settings.max_tool_calls_per_turn
        return Quota(
            lambda: None if turns.takes(turn, most) else TOO_OFTEN,
            lambda: turns.gives_back(turn),
            {"question": self.asking.question},
        )

    def _keep_images(self) -> bool:
        """Store the images, and where they were found."""
        door = self.door
        held = door.record.images.find_kept(door.scope, set(self.sha256s))
        kept = True
        for each in self.found:
            if each.sha256 not in held:
                kept = keep(door, each.vision.image, each.path) and kept
            elif each.path:
                door.record.images.note_place(door.scope, each.sha256, each.path)
        return kept

    def _write_entries(self, alike: float | None, attempt: Attempt) -> Sequence[Entry]:
        """Return the entries of the ledger: a person's look at several images is one of its own, and a command."""
        if not attempt.fitted:
            return ()
        crops = [self.asking.crops.get(index) for index in range(len(self.found))]
        about: dict[str, Json] = {
            "question": self.asking.question,
            "reason": self.asking.reason,
            "grounding_format": attempt.form,
            "crop_form": [name_form(crop) for crop in crops],
            "crop_resolved_pixels": [str(each.vision.box) if each.vision.box else None for each in self.found],
        }
        many = len(self.found) > 1
        if many:
            about["dimensions"] = [str(each.vision.size) for each in self.found]
        entry = attempt.as_entry("vision_proxy.tool_call", self.sha256s, about)
        if self.asking.by_tool:
            return (entry,)
        if not many:
            return (replace(entry, kind="vision_proxy.command"),)
        hint: Json = joint.filename_hint([each.vision.filename for each in self.found])
        hinted = {**about, "filename_hint": hint, "phash_similarity": alike}
        return (  # what was spent is noted once
            replace(entry, kind="vision_proxy.joint_description", about=hinted),
            Entry("vision_proxy.command", self.sha256s, about=about, error=entry.error),
        )


def build_analysis(made: VisionResult, asking: Asking, settings: Settings) -> Analysis:
    text = made.answer.text
    if made.instead:
        text = f"{text}\n\n{fallen(made.instead, made.seer)}"
    written = fence(made.images, text, made.form, made.seer, asked=bool(asking.question))
    behind = _write_boxes(made, settings, _MOST_BEHIND - len(written))
    whole = "\n".join(filter(None, (written, behind)))
    usage = Usage() if made.cached else made.answer.usage
    return Analysis(
        made.images, asking.question, made.seer, text, whole, made.find_boxes(), usage, made.cost_usd, made.cached
    )


def _write_boxes(made: VisionResult, settings: Settings, room: int) -> str:
    return write_boxes(made.images, made.find_boxes(), room) if settings.boxes else ""


def name_form(crop: Crop | None) -> str:
    """Return the form of a crop by the name that the ledger has for it."""
    match crop:
        case Region():
            return "region"
        case Normalized():
            return "normalized"
        case Pixels():
            return "pixels"
    return "none"


def _settings(door: Door) -> Settings:
    return door.settings or load()
