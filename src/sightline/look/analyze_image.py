"""`analyze` and `describe`: somebody who sees is asked about images, or parts of them, and answers in words."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from sightline.look.analyze_asking import Asking, by_tool, checked
from sightline.look.analyze_look import TOO_OFTEN, Look
from sightline.look.analyze_parts import parts_of
from sightline.look.analyze_result import Analysis, Failed
from sightline.look.analyze_seer import lookers, receiver_unagreed
from sightline.look.crops import CropLike
from sightline.look.doors import Door
from sightline.look.grounds import coordinates_of
from sightline.look.loop import wait
from sightline.model.ports import Seer
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings import Settings, load

_OFF = Refusal("not_permitted", "looking is switched off", "`sightline vision-proxy mode fallback` switches it on")
_NOT_SAVED = Refusal(
    "invalid_input", "save is only for one whole image, with no question and no crop", "leave out the others"
)


def analyze(door: Door, images: object, question: object, **given: object) -> Analysis | Failed:
    """The tool."""
    return answered(door, asked_by_tool(door, images, question, **given))


def describe(door: Door, images: Sequence[str], **given: Any) -> Analysis | Failed:
    """The command."""
    return answered(door, described(door, images, **given))


def described(
    door: Door,
    images: Sequence[str],
    *,
    question: str = "",
    crops: Mapping[int, CropLike] | None = None,
    model: str = "",
    save: bool = False,
) -> Asking | Refusal:
    """What a person wants to know, or all that is to be seen."""
    if save and (question or crops or len(images) != 1 or any("#crop:" in str(each) for each in images)):
        return _NOT_SAVED
    listed: list[Json] = [{"image_index": index, "form": cast("Json", form)} for index, form in (crops or {}).items()]
    asking = checked(list(images), question, listed, model, _most(door))
    return asking if isinstance(asking, Refusal) else replace(asking, save=save)


def asked_by_tool(
    door: Door, images: object, question: object, *, crop: object = None, model: object = None, reason: object = None
) -> Asking | Refusal:
    """What a model asks for: every argument may be anything."""
    return by_tool(images, question, crop, model, reason, _most(door))


def awaited(door: Door, asking: Asking | Refusal) -> str:
    """The provider that only the user's consent keeps from being asked; empty: there is none, or more is missing."""
    settings = _settings(door)
    if isinstance(asking, Refusal) or settings.mode == "off":
        return ""
    who = receiver_unagreed(settings, door.record, asking.model, by_tool=asking.by_tool)
    return who if who and not isinstance(parts_of(door, asking), Refusal) else ""


def answered(door: Door, asking: Asking | Refusal) -> Analysis | Failed:
    answer = asking if isinstance(asking, Refusal) else looked(door, asking)
    return Failed.of(answer) if isinstance(answer, Refusal) else answer


def looked(door: Door, asking: Asking) -> Analysis | Refusal:
    """Every image found, somebody found who may look, and asked, unless the answer is known."""
    since, settings = time.time(), _settings(door)
    if settings.mode == "off":
        return _OFF
    parts = parts_of(door, asking)
    if isinstance(parts, Refusal):
        return parts
    found, named = wait(lookers(settings, door.record, asking.model, door.behalf, by_tool=asking.by_tool))

    def look(seer: Seer, instead: Refusal | None) -> Analysis | Refusal:
        form = coordinates_of(settings, seer.name, named)
        return Look(door, settings, asking, parts, seer, named, form, since, instead).done()

    failure: Refusal | None = None
    for seer in found:
        outcome = seer if isinstance(seer, Refusal) else look(seer, failure)
        if isinstance(outcome, Analysis) or outcome is TOO_OFTEN:
            return outcome
        failure = failure or outcome
    assert failure is not None, "there is always somebody, or a reason why not"
    return failure


def _settings(door: Door) -> Settings:
    return door.settings or load()


def _most(door: Door) -> int:
    """How many images one call may have."""
    return cast("int", _settings(door).values["maxImagesPerCall"])
