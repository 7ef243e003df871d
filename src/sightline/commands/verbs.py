"""What each verb makes of its words: a command, or a refusal that says how it is written."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

from sightline.commands.given import FORMS, Given
from sightline.commands.values import (
    SETTINGS,
    Change,
    Command,
    Consent,
    Describe,
    GroundingModels,
    ListImages,
    Redescribe,
    Status,
    UseModel,
    sides,
)
from sightline.commands.words import quoted
from sightline.grounding.formats import FORMATS
from sightline.model import crop
from sightline.model.asking import LOCAL
from sightline.model.crop import Crop, Region
from sightline.model.refusal import Refusal


def _describe(given: Given) -> Command | Refusal:
    if not given.words or not all(given.words):
        return given.wrong("describe needs an image: a path or sha256:<hex>")
    if "question" in given.options and not given.options["question"].strip():
        return given.wrong("the question is empty")
    model, crops = _model_option(given), _crops(given)
    if isinstance(model, Refusal):
        return model
    if isinstance(crops, Refusal):
        return crops
    command = Describe(given.words, given.options.get("question", ""), crops, model, "save" in given.options)
    return _unsaveable(given, command) or command


def _unsaveable(given: Given, command: Describe) -> Refusal | None:
    if not command.save:
        return None
    whole = not command.crops and not any("#crop:" in image for image in command.images)
    if len(command.images) == 1 and not command.question and whole:
        return None
    return given.wrong("--save is only for one whole image, with no --question and no --crop")


def _redescribe(given: Given) -> Command | Refusal:
    if len(given.words) != 1 or not given.words[0]:
        return given.wrong(f"redescribe takes one image, not {len(given.words)}")
    if "#crop:" in given.words[0]:
        return given.wrong("redescribe is only for a whole image")
    model = _model_option(given)
    return model if isinstance(model, Refusal) else Redescribe(given.words[0], model)


def _consent(given: Given) -> Command | Refusal:
    match given.words:
        case () | ("list",):
            return Consent()
        case ("yes" | "no" as answer,):
            return Consent(answer)
        case ("yes" | "no" as answer, provider) if provider:
            return Consent(answer, provider)
    return given.wrong(f"consent does not know {quoted(' '.join(given.words))}")


def _use_model(given: Given) -> Command | Refusal:
    if len(given.words) != 1:
        return given.wrong(f"model takes one name, not {len(given.words)}")
    model = _looker(given, given.words[0])
    return model if isinstance(model, Refusal) else UseModel(model)


def _setting(given: Given) -> Command | Refusal:
    if len(given.words) != 1:
        return given.wrong(f"{given.verb} takes one value, not {len(given.words)}")
    key = SETTINGS[given.verb]
    value = key.kind.read(given.words[0])
    if isinstance(value, (str, int)) and not key.kind.fault(value):
        return Change(key.name, value)
    return given.wrong(f"{given.verb} cannot be {quoted(given.words[0])}")


def _grounding_models(given: Given) -> Command | Refusal:
    match given.words:
        case ("add", name):
            return _grounding_add(given, name)
        case ("remove", name) if not given.options:
            model = _model(given, name)
            return model if isinstance(model, Refusal) else GroundingModels("remove", model)
        case ("list" | "reset" as action,) if not given.options:
            return GroundingModels(action)
    return given.wrong(_grounding_fault(given))


def _grounding_fault(given: Given) -> str:
    match given.words:
        case ("list" | "reset" | "remove" as action, *_) if given.options:
            return f"{action} takes no options"
        case ("add" | "remove" as action, *models):
            return f"{action} takes one model, not {len(models)}"
        case ("list" | "reset" as action, *_):
            return f"{action} takes nothing more"
        case (action, *_):
            return f"grounding-models does not know {quoted(action)}"
    return "grounding-models needs to know what to do"


def _grounding_add(given: Given, name: str) -> Command | Refusal:
    model = _model(given, name)
    form = given.options.get("format")
    if isinstance(model, Refusal):
        return model
    if form is not None and form not in FORMATS:
        return Refusal("invalid_input", f"there is no format {quoted(form)}", f"one of {', '.join(FORMATS)}")
    return GroundingModels("add", model, form or "", "yes" in given.options)


def _nothing_more(command: Command) -> Callable[[Given], Command | Refusal]:
    return lambda given: given.wrong(f"{given.verb} takes nothing more") if given.words else command


def _model_option(given: Given) -> str | Refusal:
    return _looker(given, given.options["model"]) if "model" in given.options else ""


def _looker(given: Given, name: str) -> str | Refusal:
    """Whoever can be asked to look: a model, or what reads on this machine, which is no provider of several."""
    return LOCAL if name == LOCAL else _model(given, name)


def _model(given: Given, name: str) -> str | Refusal:
    provider, _, model = name.partition("/")
    if provider and model and not re.search(r"\s", name):
        return name
    return given.wrong(f"{quoted(name)} is not a provider and a model with / between them")


def _crops(given: Given) -> tuple[tuple[int, Crop], ...] | Refusal:
    found: dict[int, Crop] = {}
    for written in given.crops:
        one = _one_crop(given, written)
        if isinstance(one, Refusal):
            return one
        index, part = one
        if index >= len(given.words):
            return given.wrong(
                f"there is no image {index} to crop: they are counted from 0, up to {len(given.words) - 1}"
            )
        if index in found:
            return given.wrong(f"image {index} has two crops")
        found[index] = part
    return tuple(found.items())


def _one_crop(given: Given, written: str) -> tuple[int, Crop] | Refusal:
    alone = len(given.words) == 1 and written.startswith(FORMS)  # of one image nobody has to say which
    index, colon, form = (f"0:{written}" if alone else written).partition(":")
    if len(re.findall(r"[rnp]=", written)) > 1:
        return given.wrong(f"the crop {quoted(written)} has more than one form")
    if not colon or not re.fullmatch(r"[0-9]{1,9}", index):
        return given.wrong(f"the crop {quoted(written)} does not begin with the number of an image and a colon")
    part = crop.parse(form)
    if isinstance(part, Refusal):
        return Refusal("invalid_input", f"the crop {quoted(written)} is none: {part.what}", part.remedy)
    if not isinstance(part, Region) and not all(map(math.isfinite, sides(part))):
        return given.wrong(f"the crop {quoted(written)} does not hold four numbers")
    return int(index), part


_PARSERS: Mapping[str, Callable[[Given], Command | Refusal]] = {
    "describe": _describe,
    "redescribe": _redescribe,
    "consent": _consent,
    "model": _use_model,
    "grounding-models": _grounding_models,
    "list": _nothing_more(ListImages()),
    "status": _nothing_more(Status()),
}


def parsed(given: Given) -> Command | Refusal:
    return _PARSERS.get(given.verb, _setting)(given)
