"""What `/vision-proxy …` means and does, once for the shell, the proxy, MCP and ACP.

The verbs are here: one table of their arguments for chats, shells and MCP prompts, and their commands. Each command is
a value that can write the words with which it is typed; this much is pure. `grammar` parses a text into one of these
commands, and `execution` does what it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sightline.model.geometry import CROP_FORMS, Crop, FractionCrop, NamedCrop, PixelCrop
from sightline.model.value import value_class
from sightline.settings.setting_kinds import FLAG
from sightline.settings.settings_file import KEYS, Setting

NAME = "/vision-proxy"
ANSWER_PREFIX = "[Vision Proxy]"
"""Leads every line of an answer to the command, on every surface (S4 FR-3.5)."""

_KEYS = {key.name: key for key in KEYS}
SETTINGS: Mapping[str, Setting] = {
    "mode": _KEYS["mode"],
    "context": _KEYS["includeContext"],
    "tool": _KEYS["tool"],
    "max-images-per-call": _KEYS["maxImagesPerCall"],
    "max-batch": _KEYS["maxBatch"],
    "cache-size": _KEYS["cacheSize"],
}
"""The verbs that change a setting, and which setting."""


@value_class
class Argument:
    """One argument of a verb: a word is found by its position, an option by its name; a flag has no value."""

    name: str
    help: str
    kind: Literal["word", "option", "flag"] = "option"
    form: str = ""  # how its value is written in a usage line
    metavar: str | None = None  # its value in the help of a shell command
    required: bool = False
    repeatable: bool = False
    choices: tuple[str, ...] | None = None  # for argparse; the grammar has a message of its own

    @property
    def usage(self) -> str:
        form = self.form if self.kind == "word" else f"[--{self.name} {self.form}".rstrip() + "]"
        return f"{form}..." if self.repeatable else form


@value_class
class CommandVerb:
    summary: str
    arguments: tuple[Argument, ...] = ()
    forms: str = ""  # of the usage line, if it is not just one argument after the other
    note: str = ""  # after the usage

    @property
    def usage(self) -> str:
        return (self.forms or " ".join(argument.usage for argument in self.arguments)) + self.note


_MODEL = Argument(
    "model",
    "the vision model, as provider/model-id, or local; default: the one in the settings",
    form="<provider/model-id>",
    metavar="PROVIDER/MODEL",
)


def _build_setting_verb(verb: str, key: Setting) -> CommandVerb:
    allowed = "on|off" if key.kind is FLAG else key.kind.allowed.replace(", ", "|")
    return CommandVerb(f"Change the setting {verb}", (Argument("value", allowed, "word", allowed, required=True),))


VERBS: Mapping[str, CommandVerb] = {
    "describe": CommandVerb(
        "Describe images, or answer a question about them",
        (
            Argument(
                "images",
                "a path, or sha256:DIGITS[#crop:X,Y,W,H], with at least 12 digits, of an image seen before",
                "word",
                "<path-or-hash>",
                "REF",
                required=True,
                repeatable=True,
            ),
            Argument("question", "what you want to know; default: a description", form='"<text>"', metavar="TEXT"),
            Argument(
                "crop",
                f"look only at a part of image I, counted from 0, written I:FORM; FORM is {CROP_FORMS}",
                form="<i>:<form>",
                metavar="[I:]FORM",
                repeatable=True,
            ),
            _MODEL,
            Argument("save", "keep the answer as the description of the image", "flag"),
        ),
        note=", <form> being r=<region>, n=<x>,<y>,<w>,<h> or p=<x>,<y>,<w>,<h>",
    ),
    "redescribe": CommandVerb(
        "Describe an image again, and keep the new description",
        (
            Argument(
                "image",
                "a path, or sha256:DIGITS, with at least 12 digits, of an image seen before",
                "word",
                "<path-or-hash>",
                "REF",
                required=True,
            ),
            _MODEL,
        ),
    ),
    "consent": CommandVerb(
        "List or change the providers that images may be sent to",
        (
            Argument("answer", "list, yes or no; default: list", "word", choices=("list", "yes", "no")),
            Argument("provider", "a provider; default: the one in the settings", "word", metavar="PROVIDER"),
        ),
        forms="[list | yes [<provider>] | no [<provider>]]",
    ),
    "model": CommandVerb(
        "Choose the vision model",
        (Argument("model", "provider/model-id, or local", "word", "<provider/model-id> | local", required=True),),
    ),
    **{verb: _build_setting_verb(verb, key) for verb, key in SETTINGS.items()},
    "grounding-models": CommandVerb(
        "List or change how models write coordinates",
        (
            Argument("action", "add, remove, list or reset", "word", required=True),
            Argument("model", "provider/model-id", "word"),
            Argument("format", "how it writes coordinates"),
            Argument("yes", "add it without asking", "flag"),
        ),
        forms="add <provider/model-id> [--format <fmt>] [--yes] | remove <provider/model-id> | list | reset",
    ),
    "list": CommandVerb("List the images that can be viewed again"),
    "status": CommandVerb("Show the vision model, its consent, and the settings"),
}


def format_usage(verb: str) -> str:
    return f"{NAME} {verb} {VERBS[verb].usage}".strip()


@value_class
class Describe:
    images: tuple[str, ...]  # paths or sha256: references
    question: str = ""  # empty: the generic prompt
    crops: tuple[tuple[int, Crop], ...] = ()  # by the index of the image, from 0
    model: str = ""  # provider/model, or local; empty: the usual one
    save: bool = False  # the answer becomes the image's description

    @property
    def options(self) -> dict[str, Any]:
        """What `describe` of the library gets besides the images."""
        return {"question": self.question, "crops": dict(self.crops), "model": self.model, "save": self.save}

    @property
    def words(self) -> list[str]:
        crops = [f"--crop={index}:{_write_crop(part)}" for index, part in self.crops]
        options = [*_write_option("question", self.question), *crops, *_write_option("model", self.model)]
        return ["describe", *_join_words(self.images, [*options, *_write_flag("save", given=self.save)])]


@value_class
class Redescribe:
    image: str
    model: str = ""

    @property
    def words(self) -> list[str]:
        return ["redescribe", *_join_words((self.image,), _write_option("model", self.model))]

    def as_describe(self) -> Describe:
        return Describe((self.image,), model=self.model, save=True)


@value_class
class Consent:
    answer: Literal["list", "yes", "no"] = "list"
    provider: str = ""  # empty: the configured one

    @property
    def words(self) -> list[str]:
        return ["consent", *_join_words((self.answer, self.provider) if self.provider else (self.answer,), [])]


@value_class
class UseModel:
    """Choose the vision model."""

    model: str  # provider/model, or local

    @property
    def words(self) -> list[str]:
        return ["model", *_join_words((self.model,), [])]


@value_class
class ChangeSetting:
    """Set one setting to a valid value."""

    key: str
    value: str | int | bool

    @property
    def words(self) -> list[str]:
        verb = next(verb for verb, key in SETTINGS.items() if key.name == self.key)
        on = {True: "on", False: "off"}
        return [verb, on[self.value] if isinstance(self.value, bool) else str(self.value)]


@value_class
class GroundingModels:
    action: Literal["add", "remove", "list", "reset"]
    model: str = ""
    format: str = ""  # empty: the one of its family
    yes: bool = False  # ask no question

    @property
    def words(self) -> list[str]:
        options = [*_write_option("format", self.format), *_write_flag("yes", given=self.yes)]
        return ["grounding-models", self.action, *_join_words((self.model,) if self.model else (), options)]


@value_class
class ListImages:
    """List the images of this conversation."""

    @property
    def words(self) -> list[str]:
        return ["list"]


@value_class
class Status:
    @property
    def words(self) -> list[str]:
        return ["status"]


Command = Describe | Redescribe | Consent | UseModel | ChangeSetting | GroundingModels | ListImages | Status


def changes_settings(command: Command) -> bool:
    """Return whether a command changes settings or consents, which only their user may do."""
    match command:
        case Consent(answer="list") | GroundingModels(action="list"):
            return False
        case Consent() | GroundingModels() | UseModel() | ChangeSetting():
            return True
    return False


def _join_words(names: Sequence[str], options: list[str]) -> list[str]:
    """Put options behind names, or in front of `--` where a name looks like an option."""
    like_options = any(name.startswith("--") for name in names)
    return [*options, "--", *names] if like_options else [*names, *options]


def get_sides(part: FractionCrop | PixelCrop) -> tuple[float, float, float, float]:
    return part.x, part.y, part.width, part.height


def _write_option(name: str, value: str) -> list[str]:
    return [f"--{name}={value}"] if value else []


def _write_flag(name: str, *, given: bool) -> list[str]:
    return [f"--{name}"] if given else []


def _write_crop(part: Crop) -> str:
    if isinstance(part, NamedCrop):
        return f"r={part.name}"
    return ("n=" if isinstance(part, FractionCrop) else "p=") + ",".join(map(_write_number, get_sides(part)))


def _write_number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)
