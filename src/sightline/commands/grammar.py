"""The grammar of `/vision-proxy …`, wherever it is typed. Pure: words or arguments in, a command or a refusal out."""

from __future__ import annotations

import math
import re
import shlex
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from sightline.commands import (
    ANSWER_PREFIX,
    NAME,
    SETTINGS,
    VERBS,
    Argument,
    ChangeSetting,
    Command,
    Consent,
    Describe,
    GroundingModels,
    ListImages,
    Redescribe,
    Status,
    UseModel,
    format_usage,
    get_sides,
)
from sightline.model import geometry
from sightline.model.geometry import Crop, NamedCrop
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER
from sightline.model.value import value_class

_BARE_MODES = ("fallback", "always", "off", "route")  # modes that need no verb

# Words

_QUOTES = {'"': '"', "'": "'", "“": "”"}
_ESCAPED = re.compile(r"""\\([\s\\"'“”])""")
_opening = re.compile(r"""(?:--[a-z]+=)?(?=["'“])""")
_plain = re.compile(r"(?:\\[\s\\\"'“”]|\S)+")
_within = {
    '"': re.compile(r'((?:[^"\\]|\\.)*)"', re.DOTALL),
    "'": re.compile(r"([^']*)'"),
    "“": re.compile(r"((?:[^”\\]|\\.)*)”", re.DOTALL),
}


def split_words(text: str) -> list[str] | Refusal:
    """Split a text into words; words with spaces are quoted.

    A quote opens only where a word begins, so that an apostrophe within one is just that. A backslash is itself,
    except before a space, a quote or another backslash.
    """
    words, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif opened := _opening.match(text, at):
            quote = text[opened.end()]
            inner = _within[quote].match(text, opened.end() + 1)
            if inner is None:
                return Refusal("invalid_input", f"the quote {quote} is not closed", f"close it with {_QUOTES[quote]}")
            if inner.end() < len(text) and not text[inner.end()].isspace():
                return Refusal("invalid_input", f"there is no space after {_show(inner[0])}", "add a space")
            words.append(opened[0] + (inner[1] if quote == "'" else _ESCAPED.sub(r"\1", inner[1])))
            at = inner.end()
        else:
            plain = _plain.match(text, at)
            assert plain
            words.append(_ESCAPED.sub(r"\1", plain[0]))
            at = plain.end()
    return words


def _show(word: str) -> str:
    """Return a word for an error: one line, and not too long."""
    return repr(word if len(word) <= 60 else word[:59] + "…")


# Commands


def is_command(text: str) -> bool:
    """Return whether a text begins with the name of the command."""
    return text.split(maxsplit=1)[:1] == [NAME]


def find_command(text: str) -> str | None:
    """Return the command that a text is, if it is one; a client may have quoted it, as one word of a shell."""
    bare = text.strip()
    if bare.startswith(f'"{NAME}') and bare.endswith('"'):
        bare = bare[1:-1].replace('\\"', '"')
    return bare if is_command(bare) else None


def is_answer(text: str) -> bool:
    """Return whether a text starts as answers to commands do; those of earlier versions started with the command."""
    return text.lstrip().startswith(ANSWER_PREFIX) or is_command(text)


def parse(text: str) -> Command | Refusal:
    """Parse a command as a person types it into a chat."""
    if not is_command(text):
        return Refusal("invalid_input", f"a command begins with {NAME}", format_usage("status"))
    words = split_words(text.lstrip()[len(NAME) :])
    return words if isinstance(words, Refusal) else parse_words(words)


def parse_words(words: Sequence[str]) -> Command | Refusal:
    """Parse a command that a shell has split into words."""
    if not words:
        return Status()
    verb, rest = words[0], words[1:]
    if verb in _BARE_MODES:
        verb, rest = "mode", words
    if verb not in VERBS:
        import difflib  # only for a misspelt verb

        close = difflib.get_close_matches(verb, VERBS, 1)
        remedy = f"did you mean {close[0]}?" if close else f"use one of {', '.join(VERBS)}"
        return Refusal("invalid_input", f"there is no command {_show(verb)}", remedy)
    given = _read_words(verb, rest)
    return given if isinstance(given, Refusal) else _build(given)


def parse_arguments(verb: str, values: Mapping[str, object]) -> Command | Refusal:
    """Build a command from the values of its arguments, by name: a text, a list of texts, or whether a flag is given.

    An argument that is None, False or absent is not given.
    """
    words: list[str] = []
    options: dict[str, tuple[str, ...]] = {}
    for argument in VERBS[verb].arguments:
        value = values.get(argument.name)
        if value is None or value is False:
            continue
        texts = tuple(map(str, value)) if isinstance(value, list | tuple) else ("" if value is True else str(value),)
        if argument.kind == "word":
            words += texts
        else:
            options[argument.name] = texts
    return _build(_VerbInput(verb, tuple(words), options))


def format_shell(command: Command) -> str:
    """Return a command as it is typed in a shell."""
    return shlex.join(["sightline", "vision-proxy", *command.words])


@value_class
class _VerbInput:
    """The words and the options that a verb is given."""

    verb: str
    words: tuple[str, ...]
    options: Mapping[str, tuple[str, ...]]

    def get_option(self, name: str) -> str | None:
        return self.options[name][0] if name in self.options else None

    def refuse(self, what: str) -> Refusal:
        return Refusal("invalid_input", what, f"usage: {format_usage(self.verb)}")


_CROP_FORMS = ("r=", "n=", "p=")
_crop = re.compile(r"[0-9]+:").match


def _read_words(verb: str, words: Sequence[str]) -> _VerbInput | Refusal:
    """Tell words and options apart; `--` ends the options."""
    arguments = {argument.name: argument for argument in VERBS[verb].arguments if argument.kind != "word"}
    plain: list[str] = []
    options: dict[str, tuple[str, ...]] = {}
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
        argument = arguments.get(name)
        fault = _find_option_fault(verb, name, argument, left, valued=bool(equals))
        if argument is None or fault or (name in options and not argument.repeatable):
            return _VerbInput(verb, (), {}).refuse(fault or f"--{name} is given twice")
        if argument.kind == "option" and not equals:
            value = left.popleft()
        more = _read_crops(value, left) if argument.repeatable else [value]
        options[name] = (*options.get(name, ()), *more)
    return _VerbInput(verb, tuple(plain), options)


def _find_option_fault(verb: str, name: str, argument: Argument | None, left: Sequence[str], *, valued: bool) -> str:
    if argument is None:
        return f"{verb} has no option {_show('--' + name)}"
    if argument.kind == "flag":
        return f"--{name} takes no value" if valued else ""
    return "" if valued or (left and not left[0].startswith("--")) else f"--{name} needs a value"


def _read_crops(first: str, left: deque[str]) -> list[str]:
    """Take the crops that follow one option; a form without an index belongs to the crop before it."""
    crops = [first]
    while left and (_crop(left[0]) or left[0].startswith(_CROP_FORMS)):
        word = left.popleft()
        if _crop(word):
            crops.append(word)
        else:
            crops[-1] += f" {word}"
    return crops


# Verbs


def _build_describe(given: _VerbInput) -> Command | Refusal:
    if not given.words or not all(given.words):
        return given.refuse("describe needs an image: a path or sha256:<hex>")
    if (question := given.get_option("question")) is not None and not question.strip():
        return given.refuse("the question is empty")
    model, crops = _read_model_option(given), _build_crops(given)
    if isinstance(model, Refusal):
        return model
    if isinstance(crops, Refusal):
        return crops
    command = Describe(given.words, question or "", crops, model, "save" in given.options)
    return _check_save(given, command) or command


def _check_save(given: _VerbInput, command: Describe) -> Refusal | None:
    if not command.save:
        return None
    is_whole = not command.crops and not any("#crop:" in image for image in command.images)
    if len(command.images) == 1 and not command.question and is_whole:
        return None
    return given.refuse("--save is only for one whole image, with no --question and no --crop")


def _build_redescribe(given: _VerbInput) -> Command | Refusal:
    if len(given.words) != 1 or not given.words[0]:
        return given.refuse(f"redescribe takes one image, not {len(given.words)}")
    if "#crop:" in given.words[0]:
        return given.refuse("redescribe is only for a whole image")
    model = _read_model_option(given)
    return model if isinstance(model, Refusal) else Redescribe(given.words[0], model)


def _build_consent(given: _VerbInput) -> Command | Refusal:
    match given.words:
        case () | ("list",):
            return Consent()
        case ("yes" | "no" as answer,):
            return Consent(answer)
        case ("yes" | "no" as answer, provider) if provider:
            return Consent(answer, provider)
    return given.refuse(f"consent does not take {_show(' '.join(given.words))}")


def _build_use_model(given: _VerbInput) -> Command | Refusal:
    if len(given.words) != 1:
        return given.refuse(f"model takes one name, not {len(given.words)}")
    model = _check_seer(given, given.words[0])
    return model if isinstance(model, Refusal) else UseModel(model)


def _build_setting(given: _VerbInput) -> Command | Refusal:
    if len(given.words) != 1:
        return given.refuse(f"{given.verb} takes one value, not {len(given.words)}")
    key = SETTINGS[given.verb]
    value = key.kind.parse(given.words[0])
    if isinstance(value, (str, int)) and not key.kind.find_fault(value):
        return ChangeSetting(key.name, value)
    return given.refuse(f"{given.verb} cannot be {_show(given.words[0])}")


def _build_grounding_models(given: _VerbInput) -> Command | Refusal:
    match given.words:
        case ("add", name):
            return _build_grounding_add(given, name)
        case ("remove", name) if not given.options:
            model = _check_model(given, name)
            return model if isinstance(model, Refusal) else GroundingModels("remove", model)
        case ("list" | "reset" as action,) if not given.options:
            return GroundingModels(action)
    return given.refuse(_find_grounding_fault(given))


def _find_grounding_fault(given: _VerbInput) -> str:
    match given.words:
        case ("list" | "reset" | "remove" as action, *_) if given.options:
            return f"{action} takes no options"
        case ("add" | "remove" as action, *models):
            return f"{action} takes one model, not {len(models)}"
        case ("list" | "reset" as action, *_):
            return f"{action} takes no arguments"
        case (action, *_):
            return f"grounding-models has no action {_show(action)}"
    return "grounding-models needs an action"


def _build_grounding_add(given: _VerbInput, name: str) -> Command | Refusal:
    from sightline.grounding import FORMATS  # with all their readers, which few commands need

    model = _check_model(given, name)
    form = given.get_option("format")
    if isinstance(model, Refusal):
        return model
    if form is not None and form not in FORMATS:
        return Refusal("invalid_input", f"there is no format {_show(form)}", f"use one of {', '.join(FORMATS)}")
    return GroundingModels("add", model, form or "", "yes" in given.options)


def _build_without_words(command: Command) -> Callable[[_VerbInput], Command | Refusal]:
    return lambda given: given.refuse(f"{given.verb} takes no arguments") if given.words else command


def _read_model_option(given: _VerbInput) -> str | Refusal:
    name = given.get_option("model")
    return "" if name is None else _check_seer(given, name)


def _check_seer(given: _VerbInput, name: str) -> str | Refusal:
    """Return the name of a model, or of the local reader, which has no provider in front of it."""
    return LOCAL_SEER if name == LOCAL_SEER else _check_model(given, name)


def _check_model(given: _VerbInput, name: str) -> str | Refusal:
    provider, _, model = name.partition("/")
    if provider and model and not re.search(r"\s", name):
        return name
    return given.refuse(f"{_show(name)} is not of the form PROVIDER/MODEL")


def _build_crops(given: _VerbInput) -> tuple[tuple[int, Crop], ...] | Refusal:
    found: dict[int, Crop] = {}
    for written in given.options.get("crop", ()):
        one = _read_crop(given, written)
        if isinstance(one, Refusal):
            return one
        index, part = one
        if index >= len(given.words):
            return given.refuse(
                f"there is no image {index} to crop: images are numbered from 0 to {len(given.words) - 1}"
            )
        if index in found:
            return given.refuse(f"image {index} has two crops")
        found[index] = part
    return tuple(found.items())


def _read_crop(given: _VerbInput, written: str) -> tuple[int, Crop] | Refusal:
    alone = len(given.words) == 1 and written.startswith(_CROP_FORMS)  # a single image needs no index
    index, colon, form = (f"0:{written}" if alone else written).partition(":")
    if len(re.findall(r"[rnp]=", written)) > 1:
        return given.refuse(f"the crop {_show(written)} has more than one form")
    if not colon or not re.fullmatch(r"[0-9]{1,9}", index):
        return given.refuse(f"the crop {_show(written)} does not begin with the number of an image and a colon")
    part = geometry.parse_crop_text(form)
    if isinstance(part, Refusal):
        return Refusal("invalid_input", f"the crop {_show(written)} is invalid: {part.what}", part.remedy)
    if not isinstance(part, NamedCrop) and not all(map(math.isfinite, get_sides(part))):
        return given.refuse(f"the crop {_show(written)} does not have four numbers")
    return int(index), part


_BUILDERS: Mapping[str, Callable[[_VerbInput], Command | Refusal]] = {
    "describe": _build_describe,
    "redescribe": _build_redescribe,
    "consent": _build_consent,
    "model": _build_use_model,
    "grounding-models": _build_grounding_models,
    "list": _build_without_words(ListImages()),
    "status": _build_without_words(Status()),
}


def _build(given: _VerbInput) -> Command | Refusal:
    return _BUILDERS.get(given.verb, _build_setting)(given)
