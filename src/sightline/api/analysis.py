"""`analyze` and `describe`: ask a vision model, or the local reader, about images or parts of them."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from sightline.api.failure import INTERNAL_ERROR, Failure, never_raise
from sightline.api.question_arguments import CallDetails, list_crops, name_crop_form, read_crops, refuse_question
from sightline.api.session import ToolContext
from sightline.api.tool_results import Analysis
from sightline.api.views import find_image, keep_image, read_options
from sightline.model.fence import replace_surrogates
from sightline.model.geometry import Crop, CropLike, resolve_crop
from sightline.model.image import Image
from sightline.model.records import LedgerEntry
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import LOCAL_SEER, Usage
from sightline.passes import wording
from sightline.passes.wording import explain_fallback, write_fence
from sightline.pixels.probe import probe_within_limits
from sightline.pixels.renderers.renderer import DEFAULT_OPTIONS, RenderOptions
from sightline.pixels.similarity import compare_replies
from sightline.runtime import Runtime, get_shared_runtime
from sightline.settings import Settings, load_settings
from sightline.vision.background_loop import run_blocking
from sightline.vision.chooser import advise_user
from sightline.vision.prompts import (
    ANSWER_INSTRUCTIONS,
    DESCRIBE_ALL_QUESTION,
    DESCRIBE_INSTRUCTIONS,
    DESCRIBE_QUESTION,
    Prompt,
    hash_prompt,
)
from sightline.vision.providers import GET_VISION_MODEL, ModelCheck
from sightline.vision.vision_request import (
    Attempt,
    CacheRule,
    Quota,
    VisionImage,
    VisionRequest,
    VisionResult,
    fit_images,
    format_boxes,
)

MAX_QUESTION_LENGTH = 4000
_MAX_ANSWER_LENGTH = 24_000  # characters, which leaves room for the fence in a tool result
_FENCE_CHARACTERS = 29_000  # of the fence and the boxes after it, in a tool result
_OFF = Refusal("not_permitted", "describing images is switched off", "run: sightline vision-proxy mode fallback")
_NOT_SAVED = Refusal(
    "invalid_input", "save works only for one whole image, without a question or a crop", "leave those out"
)
_NO_ONE = Refusal("unavailable", "no vision model is available", f"run: {GET_VISION_MODEL}")
_SEER_OFF = Refusal(
    "unavailable",
    "no vision model is named, and the setting `seer` is off",
    "run: `sightline config set seer PROVIDER/MODEL` to name one, or `sightline config set seer auto` to choose one "
    "automatically",
)
QUOTA_EXCEEDED = Refusal(
    "unavailable",
    "this turn has used up its questions about images",
    "continue with what you know, or run: sightline config set maxToolCallsPerTurn NUMBER",
)


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """The checked arguments of a call. Without a question, it asks for a description."""

    images: tuple[object, ...]
    crops: Mapping[int, Crop]
    question: str = ""
    model: str = ""
    from_model: bool = False  # a model called the tool; else a person or a program asks
    save: bool = False  # the answer becomes the image's description
    reason: str = ""
    options: RenderOptions = DEFAULT_OPTIONS  # which page of a document

    @property
    def prompt(self) -> str:
        return self.question or (DESCRIBE_QUESTION if len(self.images) == 1 else DESCRIBE_ALL_QUESTION)

    @property
    def check(self) -> ModelCheck:
        """What has to be known about a model that the call names."""
        return "known to see" if self.from_model else "not blind"


@dataclass(frozen=True, slots=True)
class FoundImage:
    """An image that was found, the form of its crop, and the path of its file."""

    image: VisionImage
    crop_form: str = "none"
    path: str = ""

    @property
    def sha256(self) -> str:
        return self.image.image.sha256


def analyze(context: ToolContext, images: object, question: object, **given: object) -> Analysis | Failure:
    """Answer a call of the tool `analyze_image`."""
    details = CallDetails(images, question, given.get("crop"), given.get("reason"), from_model=True)
    return _answer(context, check_tool_call(context, images, question, **given), details)


@never_raise(Failure(INTERNAL_ERROR, "analyze"))
def describe(context: ToolContext, images: Sequence[object], **given: Any) -> Analysis | Failure:
    """Answer the command `describe`."""
    details = CallDetails(images, given.get("question"), list_crops(given.get("crops") or {}))
    return _answer(context, check_command(context, images, **given), details)


def check_command(
    context: ToolContext,
    images: Sequence[object],
    *,
    question: str = "",
    crops: Mapping[int, CropLike] | None = None,
    model: str = "",
    save: bool = False,
    page: int | None = None,
) -> ImageQuestion | Refusal:
    """Check the arguments of a person or a program. `crops` has them by the index of their image."""
    options = read_options(page, None, None)
    if isinstance(options, Refusal):
        return options
    if save and (question or crops or len(images) != 1 or any("#crop:" in str(each) for each in images)):
        return _NOT_SAVED
    asking = _check(context, list(images), question, list_crops(crops or {}), model)
    return asking if isinstance(asking, Refusal) else replace(asking, save=save, options=options)


def check_tool_call(
    context: ToolContext,
    images: object,
    question: object,
    *,
    crop: object = None,
    model: object = None,
    reason: object = None,
) -> ImageQuestion | Refusal:
    """Check the arguments of a model, each of which may be anything."""
    if not isinstance(question, str) or not question.strip():
        return Refusal("invalid_input", "the question is empty", "say what you want to know")
    if reason is not None and not isinstance(reason, str):
        return Refusal("invalid_input", "the reason must be a string", "give a string, or leave it out")
    asking = _check(context, images, question, crop, model)
    if isinstance(asking, Refusal):
        return asking
    return replace(asking, from_model=True, reason=replace_surrogates(reason or ""))


def _check(context: ToolContext, images: object, question: str, crop: object, model: object) -> ImageQuestion | Refusal:
    limit = _settings(context).max_images_per_call
    if len(question) > MAX_QUESTION_LENGTH:
        remedy = f"use at most {MAX_QUESTION_LENGTH:,}"
        return Refusal("invalid_input", f"the question has {len(question):,} characters", remedy)
    if not isinstance(images, list | tuple) or not images:
        remedy = "give a list of paths or sha256: references"
        return Refusal("invalid_input", "images must be a list with at least one image", remedy)
    if len(images) > limit:
        remedy = f"give at most {limit} in a call (maxImagesPerCall)"
        return Refusal("invalid_input", f"there are {len(images)} images", remedy)
    if model is not None and not isinstance(model, str):
        return Refusal("invalid_input", "the model must be a string", "write PROVIDER/MODEL")
    crops = read_crops(crop, len(images))
    if isinstance(crops, Refusal):
        return crops
    return ImageQuestion(tuple(images), crops, replace_surrogates(question), replace_surrogates(model or ""))


def find_missing_consent(context: ToolContext, asking: ImageQuestion | Refusal) -> str:
    """Return the provider that needs only the user's consent to answer; empty: none does, or the call fails anyway."""
    settings = _settings(context)
    if isinstance(asking, Refusal) or settings.mode == "off":
        return ""
    runtime = get_shared_runtime(settings, context.record)
    if isinstance(runtime, Refusal):
        return ""
    found = runtime.chooser.find_missing_consent(asking.model or None, asking.check)
    return found[1] if found and not isinstance(locate_images(context, asking), Refusal) else ""


def _answer(context: ToolContext, asking: ImageQuestion | Refusal, details: CallDetails) -> Analysis | Failure:
    """Answer a question about images. One that is refused before it reaches the vision service is noted here."""
    since, settings = time.time(), _settings(context)
    ready = _prepare(context, settings, asking)
    if isinstance(ready, Refusal) or isinstance(asking, Refusal):
        return refuse_question(context, details, cast("Refusal", ready))
    images, runtime = ready
    request = _LocatedQuestion(context, settings, asking, images).build_request(since)
    result = run_blocking(runtime.vision.look(request))
    return Failure(result, "analyze") if isinstance(result, Refusal) else build_analysis(result, asking, settings)


def _prepare(
    context: ToolContext, settings: Settings, asking: ImageQuestion | Refusal
) -> tuple[list[FoundImage], Runtime] | Refusal:
    """Return the images of a question and what answers it."""
    if isinstance(asking, Refusal):
        return asking
    if settings.mode == "off":
        return _OFF
    images = locate_images(context, asking)
    runtime = images if isinstance(images, Refusal) else get_shared_runtime(settings, context.record)
    if isinstance(images, Refusal) or isinstance(runtime, Refusal):
        return cast("Refusal", runtime)
    return images, runtime


def locate_images(context: ToolContext, asking: ImageQuestion) -> list[FoundImage] | Refusal:
    """Return the images of a call with their crops in pixels, so that equal crops compare equal in any form."""
    found = []
    for index, reference in enumerate(asking.images):
        one = _locate_image(context, reference, asking.crops.get(index), asking.options)
        if isinstance(one, Refusal):
            return one if len(asking.images) == 1 else replace(one, what=f"image {index}: {one.what}")
        found.append(one)
    return found


def _locate_image(
    context: ToolContext, reference: object, crop: Crop | None, options: RenderOptions
) -> FoundImage | Refusal:
    found = find_image(context, reference, crop, options)
    picture = found if isinstance(found, Refusal) else probe_within_limits(found.data)
    if isinstance(found, Refusal) or isinstance(picture, Refusal):
        return cast("Refusal", picture)
    box = resolve_crop(found.crop, picture.size) if found.crop else None
    if isinstance(box, Refusal):
        return box
    image = Image(hashlib.sha256(found.data).hexdigest(), picture.mime, picture.size, found.data, picture.is_rotated)
    return FoundImage(VisionImage(image, found.name, box), name_crop_form(found.crop), found.path)


@dataclass(frozen=True, slots=True)
class _LocatedQuestion:
    """A question whose images were found, on its way to becoming a request to the vision service."""

    context: ToolContext
    settings: Settings
    asking: ImageQuestion
    found: Sequence[FoundImage]

    @property
    def sha256s(self) -> tuple[str, ...]:
        return tuple(each.sha256 for each in self.found)

    def build_request(self, since: float) -> VisionRequest:
        images = tuple(each.image for each in self.found)
        hints, similarity = self._find_hints()
        ids: list[Json] = [each.id for each in images]
        names: list[Json] = [each.filename for each in images] if len(images) > 1 else []
        return VisionRequest(
            scope=self.context.scope,
            prompt=self._build_prompt(hints),
            fit=partial(fit_images, self.context.workers, images, check_pixels=True),
            identity=["analyze", ids, names],
            make_entries=partial(self._write_entries, similarity),
            no_candidate=_SEER_OFF if self.context.settings and self.context.settings.seer == "off" else _NO_ONE,
            images=images,
            sha256s=self.sha256s,
            caller=self.context.caller,
            model=self.asking.model or None,
            check=self.asking.check,
            cache=self._cache_rule(),
            quota=self._quota(),
            keep_images=self._keep_images,
            advise=partial(advise_user, settings=self.settings),
            max_chars=_MAX_ANSWER_LENGTH,
            waits_for_looks=not self.asking.from_model,
            since=since,
        )

    def _build_prompt(self, hints: Sequence[str]) -> Prompt:
        words, question = self.asking.prompt, self.asking.question
        if len(self.found) > 1:
            instructions = wording.build_joint_prompt(len(self.found), words, hints)
            return Prompt(instructions, words, reader_question=question, lists_images=True)
        instructions = ANSWER_INSTRUCTIONS if question else self.settings.system_prompt or DESCRIBE_INSTRUCTIONS
        return Prompt(instructions, words, reader_question=question)

    def _find_hints(self) -> tuple[list[str], float | None]:
        """Return hints about several images from their names and likeness. A model asks for what it wants itself."""
        if self.asking.from_model or len(self.found) < 2:
            return [], None
        hashes = [self.context.workers.run_sync("hash", each.image.image.data) for each in self.found]
        threshold = self.settings.phash_similarity_threshold
        similar_pairs = list(wording.find_similar_pairs(compare_replies(hashes), threshold))
        hints = wording.build_hints([each.image.filename for each in self.found], similar_pairs)
        return hints, max((how for *_, how in similar_pairs), default=None)

    def _cache_rule(self) -> CacheRule:
        """Return where the answer is cached. The description of one whole image is kept in the record.

        Conversations don't use it unless it is saved. One of the local reader is not kept: the boxes that it measures
        would be lost.
        """
        (one, *more), save = self.found, self.asking.save
        plain = not self.asking.question and not more and not one.image.box
        hash_form = partial(hash_prompt, self.settings.system_prompt or DESCRIBE_INSTRUCTIONS)
        return CacheRule(
            hash_prompt=hash_form if plain else None,
            hash_own_prompt=(lambda form: f"describe:{hash_form(form)}") if plain else None,
            reads_saved=plain,
            can_read=lambda seer: seer != LOCAL_SEER,
            can_keep=lambda seer: save or seer != LOCAL_SEER,
            save=self._save if save else None,
            in_memory=True,
            join_others=bool(self.settings.cache_size),
            refresh=save,
        )

    def _save(self, result: VisionResult) -> Refusal | None:
        """Make the answer the description of the image."""
        boxes = _write_boxes(result, self.settings, _FENCE_CHARACTERS)
        description = replace(result.as_description(self.found[0].sha256), boxes_block=boxes)
        refusal = self.context.record.descriptions.save(self.context.saved_scope, description)
        return refusal and replace(
            refusal, what=f"the image was described, but the description could not be saved: {refusal.what}"
        )

    def _quota(self) -> Quota | None:
        """Return the limit on the questions of a model in one turn."""
        turn, turns = self.context.turn, self.context.quota
        if not self.asking.from_model or turn is None:
            return None
        limit = self.settings.max_tool_calls_per_turn
        return Quota(
            lambda: None if turns.try_take(turn, limit) else QUOTA_EXCEEDED,
            lambda: turns.give_back(turn),
            {"question": self.asking.question},
        )

    def _keep_images(self) -> bool:
        """Keep the images, and note where they were found."""
        context = self.context
        already_kept = context.record.images.find_kept_images(context.scope, set(self.sha256s))
        kept = True
        for each in self.found:
            if each.sha256 not in already_kept:
                kept = keep_image(context, each.image.image, each.path) and kept
            elif each.path:
                context.record.images.note_place(context.scope, each.sha256, each.path)
        return kept

    def _write_entries(self, alike: float | None, attempt: Attempt) -> Sequence[LedgerEntry]:
        """Return the ledger entries. A person's look at several images has one for the look and one for the command."""
        about: dict[str, Json] = {
            "question": self.asking.question,
            "reason": self.asking.reason,
            "grounding_format": attempt.form,
            "crop_form": [each.crop_form for each in self.found],
            "crop_resolved_pixels": [str(each.image.box) if each.image.box else None for each in self.found],
        }
        many = len(self.found) > 1
        if many:
            about["dimensions"] = [str(each.image.size) for each in self.found]
        entry = attempt.make_entry("vision_proxy.tool_call", self.sha256s, about)
        if self.asking.from_model:
            return (entry,)
        if not many or not attempt.fitted:
            return (replace(entry, kind="vision_proxy.command"),)
        hint: Json = wording.find_filename_hint([each.image.filename for each in self.found])
        hinted = {**about, "filename_hint": hint, "phash_similarity": alike}
        return (  # only the first has the cost
            replace(entry, kind="vision_proxy.joint_description", about=hinted),
            LedgerEntry("vision_proxy.command", self.sha256s, about=about, error=entry.error),
        )


def build_analysis(made: VisionResult, asking: ImageQuestion, settings: Settings) -> Analysis:
    text = made.answer.text
    if made.fallback_reason:
        text = f"{text}\n\n{explain_fallback(made.fallback_reason, made.seer)}"
    written = write_fence(made.images, text, made.form, made.seer, is_answer=bool(asking.question))
    whole = "\n".join(filter(None, (written, _write_boxes(made, settings, _FENCE_CHARACTERS - len(written)))))
    usage = Usage() if made.cached else made.answer.usage
    return Analysis(
        made.images, asking.question, made.seer, text, whole, made.find_boxes(), usage, made.cost_usd, made.cached
    )


def _write_boxes(made: VisionResult, settings: Settings, room: int) -> str:
    return format_boxes(made.images, made.find_boxes(), room) if settings.boxes else ""


def _settings(context: ToolContext) -> Settings:
    return context.settings or load_settings()
