"""The one grammar of `/vision-proxy …`, wherever it is typed. Pure: words in, a command or a refusal out."""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

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
from sightline.commands.words import quoted, split, typed
from sightline.grounding.formats import FORMATS
from sightline.model import crop
from sightline.model.asking import LOCAL
from sightline.model.crop import Crop, Region
from sightline.model.refusal import Refusal
from sightline.settings.keys import Key
from sightline.settings.kinds import FLAG

NAME = "/vision-proxy"


def _allowed(key: Key) -> str:
    return "on|off" if key.kind is FLAG else key.kind.allowed.replace(", ", "|")


USAGE: Mapping[str, str] = {
    "describe": '<path-or-hash>... [--question "<text>"] [--crop <i>:<form>]... [--model <provider/model-id>] [--save]'
    ", <form> being r=<region>, n=<x>,<y>,<w>,<h> or p=<x>,<y>,<w>,<h>",
    "redescribe": "<path-or-hash> [--model <provider/model-id>]",
    "consent": "[list | yes [<provider>] | no [<provider>]]",
    "model": "<provider/model-id> | local",
    **{verb: _allowed(key) for verb, key in SETTINGS.items()},
    "grounding-models": "add <provider/model-id> [--format <fmt>] [--yes] | remove <provider/model-id> | list | reset",
    "list": "",
    "status": "",
}
_BARE = ("fallback", "always", "off", "route")  # modes that need no verb
_FLAGS = ("save", "yes")  # options without a value


def usage(verb: str) -> str:
    return f"{NAME} {verb} {USAGE[verb]}".strip()


def is_command(text: str) -> bool:
    """Do these words begin with the command?"""
    return text.split(maxsplit=1)[:1] == [NAME]


def command_in(text: str) -> str | None:
    """The command that a text is, if it is one; a client may have put it between quotes, as one word of a shell."""
    bare = text.strip()
    if bare.startswith(f'"{NAME}') and bare.endswith('"'):
        bare = bare[1:-1].replace('\\"', '"')
    return bare if is_command(bare) else None


def parse(text: str) -> Command | Refusal:
    """A command as a person types it into a chat."""
    if not is_command(text):
        return Refusal("invalid_input", f"it does not begin with {NAME}", usage("status"))
    words = split(text.lstrip()[len(NAME) :])
    return words if isinstance(words, Refusal) else parse_words(words)


def parse_words(words: Sequence[str]) -> Command | Refusal:
    """A command whose words a shell has told apart already."""
    if not words:
        return Status()
    verb, rest = words[0], words[1:]
    if verb in _BARE:
        verb, rest = "mode", words
    if verb not in USAGE:
        close = difflib.get_close_matches(verb, USAGE, 1)
        remedy = f"did you mean {close[0]}?" if close else f"one of {', '.join(USAGE)}"
        return Refusal("invalid_input", f"there is no command {quoted(verb)}", remedy)
    given = _given(verb, rest)
    return given if isinstance(given, Refusal) else _PARSERS.get(verb, _setting)(given)


def render(command: Command) -> str:
    """A command as it is typed; `parse` gives the same command back."""
    return " ".join([NAME, *map(typed, command.words)])


def shell(command: Command) -> str:
    """The same command for a shell."""
    return shlex.join(["sightline", "vision-proxy", *command.words])


@dataclass(frozen=True, slots=True)
class _Given:
    """What stands behind a verb."""

    verb: str
    words: tuple[str, ...]
    options: Mapping[str, str]
    crops: tuple[str, ...] = ()

    def wrong(self, what: str) -> Refusal:
        return Refusal("invalid_input", what, f"usage: {usage(self.verb)}")


_OPTIONS: Mapping[str, tuple[str, ...]] = {
    "describe": ("question", "crop", "model", "save"),
    "redescribe": ("model",),
    "grounding-models": ("format", "yes"),
}
_OTHER_FORM = ("r=", "n=", "p=")
_crop = re.compile(r"[0-9]+:").match


def _given(verb: str, words: Sequence[str]) -> _Given | Refusal:
    """Words and options apart; `--` ends the options."""
    plain: list[str] = []
    options: dict[str, str] = {}
    crops: list[str] = []
    left = deque(words)
    while left:
        word = left.popleft()
        if word == "--":
            plain += left
            break
        if not word.startswith("--"):
            plain.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        fault = _option_fault(verb, name, equals, left)
        if fault or name in options:
            return _Given(verb, (), {}).wrong(fault or f"--{name} is given twice")
        if name not in _FLAGS and not equals:
            value = left.popleft()
        if name == "crop":
            crops += _and_more(value, left)
        else:
            options[name] = value
    return _Given(verb, tuple(plain), options, tuple(crops))


def _option_fault(verb: str, name: str, equals: str, left: Sequence[str]) -> str:
    if name not in _OPTIONS.get(verb, ()):
        return f"{verb} has no option {quoted('--' + name)}"
    if name in _FLAGS:
        return f"--{name} takes no value" if equals else ""
    return "" if equals or (left and not left[0].startswith("--")) else f"--{name} needs a value"


def _and_more(crop: str, left: deque[str]) -> list[str]:
    """The crops that follow one flag; a form without an index of its own belongs to the one before it."""
    crops = [crop]
    while left and (_crop(left[0]) or left[0].startswith(_OTHER_FORM)):
        word = left.popleft()
        if _crop(word):
            crops.append(word)
        else:
            crops[-1] += f" {word}"
    return crops


def _describe(given: _Given) -> Command | Refusal:
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


def _unsaveable(given: _Given, command: Describe) -> Refusal | None:
    if not command.save:
        return None
    whole = not command.crops and not any("#crop:" in image for image in command.images)
    if len(command.images) == 1 and not command.question and whole:
        return None
    return given.wrong("--save is only for one whole image, with no --question and no --crop")


def _redescribe(given: _Given) -> Command | Refusal:
    if len(given.words) != 1 or not given.words[0]:
        return given.wrong(f"redescribe takes one image, not {len(given.words)}")
    if "#crop:" in given.words[0]:
        return given.wrong("redescribe is only for a whole image")
    model = _model_option(given)
    return model if isinstance(model, Refusal) else Redescribe(given.words[0], model)


def _consent(given: _Given) -> Command | Refusal:
    match given.words:
        case () | ("list",):
            return Consent()
        case ("yes" | "no" as answer,):
            return Consent(answer)
        case ("yes" | "no" as answer, provider) if provider:
            return Consent(answer, provider)
    return given.wrong(f"consent does not know {quoted(' '.join(given.words))}")


def _use_model(given: _Given) -> Command | Refusal:
    if len(given.words) != 1:
        return given.wrong(f"model takes one name, not {len(given.words)}")
    model = _looker(given, given.words[0])
    return model if isinstance(model, Refusal) else UseModel(model)


def _setting(given: _Given) -> Command | Refusal:
    if len(given.words) != 1:
        return given.wrong(f"{given.verb} takes one value, not {len(given.words)}")
    key = SETTINGS[given.verb]
    value = key.kind.read(given.words[0])
    if isinstance(value, (str, int)) and not key.kind.fault(value):
        return Change(key.name, value)
    return given.wrong(f"{given.verb} cannot be {quoted(given.words[0])}")


def _grounding_models(given: _Given) -> Command | Refusal:
    match given.words:
        case ("add", name):
            return _grounding_add(given, name)
        case ("remove", name) if not given.options:
            model = _model(given, name)
            return model if isinstance(model, Refusal) else GroundingModels("remove", model)
        case ("list" | "reset" as action,) if not given.options:
            return GroundingModels(action)
    return given.wrong(_grounding_fault(given))


def _grounding_fault(given: _Given) -> str:
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


def _grounding_add(given: _Given, name: str) -> Command | Refusal:
    model = _model(given, name)
    form = given.options.get("format")
    if isinstance(model, Refusal):
        return model
    if form is not None and form not in FORMATS:
        return Refusal("invalid_input", f"there is no format {quoted(form)}", f"one of {', '.join(FORMATS)}")
    return GroundingModels("add", model, form or "", "yes" in given.options)


def _nothing_more(command: Command) -> Callable[[_Given], Command | Refusal]:
    return lambda given: given.wrong(f"{given.verb} takes nothing more") if given.words else command


_PARSERS: Mapping[str, Callable[[_Given], Command | Refusal]] = {
    "describe": _describe,
    "redescribe": _redescribe,
    "consent": _consent,
    "model": _use_model,
    "grounding-models": _grounding_models,
    "list": _nothing_more(ListImages()),
    "status": _nothing_more(Status()),
}


def _model_option(given: _Given) -> str | Refusal:
    return _looker(given, given.options["model"]) if "model" in given.options else ""


def _looker(given: _Given, name: str) -> str | Refusal:
    """Whoever can be asked to look: a model, or what reads on this machine, which is no provider of several."""
    return LOCAL if name == LOCAL else _model(given, name)


def _model(given: _Given, name: str) -> str | Refusal:
    provider, _, model = name.partition("/")
    if provider and model and not re.search(r"\s", name):
        return name
    return given.wrong(f"{quoted(name)} is not a provider and a model with / between them")


def _crops(given: _Given) -> tuple[tuple[int, Crop], ...] | Refusal:
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


def _one_crop(given: _Given, written: str) -> tuple[int, Crop] | Refusal:
    index, colon, form = written.partition(":")
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
