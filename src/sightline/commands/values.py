"""What can be asked for by command, each verb a value that knows the words it is typed with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sightline.model.crop import Crop, Normalized, Pixels, Region
from sightline.settings.keys import KEYS, Key

_KEYS = {key.name: key for key in KEYS}
SETTINGS: Mapping[str, Key] = {
    "mode": _KEYS["mode"],
    "context": _KEYS["includeContext"],
    "tool": _KEYS["tool"],
    "max-images-per-call": _KEYS["maxImagesPerCall"],
    "max-batch": _KEYS["maxBatch"],
    "cache-size": _KEYS["cacheSize"],
}
"""The verbs that set something, and what they set."""


@dataclass(frozen=True, slots=True)
class Describe:
    images: tuple[str, ...]  # paths or sha256: references
    question: str = ""  # empty: the generic prompt
    crops: tuple[tuple[int, Crop], ...] = ()  # by the index of the image, from 0
    model: str = ""  # provider/model, or local; empty: the usual one
    save: bool = False  # the answer becomes the image's description

    @property
    def words(self) -> list[str]:
        crops = [f"--crop={index}:{_written(part)}" for index, part in self.crops]
        options = [*_option("question", self.question), *crops, *_option("model", self.model)]
        return ["describe", *_beside(self.images, [*options, *_flag("save", given=self.save)])]


@dataclass(frozen=True, slots=True)
class Redescribe:
    image: str
    model: str = ""

    @property
    def words(self) -> list[str]:
        return ["redescribe", *_beside((self.image,), _option("model", self.model))]


@dataclass(frozen=True, slots=True)
class Consent:
    answer: Literal["list", "yes", "no"] = "list"
    provider: str = ""  # empty: the configured one

    @property
    def words(self) -> list[str]:
        return ["consent", *_beside((self.answer, self.provider) if self.provider else (self.answer,), [])]


@dataclass(frozen=True, slots=True)
class UseModel:
    """The model that looks from now on."""

    model: str  # provider/model, or local

    @property
    def words(self) -> list[str]:
        return ["model", *_beside((self.model,), [])]


@dataclass(frozen=True, slots=True)
class Change:
    """One setting, and a value that it may have."""

    key: str
    value: str | int | bool

    @property
    def words(self) -> list[str]:
        verb = next(verb for verb, key in SETTINGS.items() if key.name == self.key)
        on = {True: "on", False: "off"}
        return [verb, on[self.value] if isinstance(self.value, bool) else str(self.value)]


@dataclass(frozen=True, slots=True)
class GroundingModels:
    action: Literal["add", "remove", "list", "reset"]
    model: str = ""
    format: str = ""  # empty: the one of its family
    yes: bool = False  # whoever types it wants no question asked

    @property
    def words(self) -> list[str]:
        options = [*_option("format", self.format), *_flag("yes", given=self.yes)]
        return ["grounding-models", self.action, *_beside((self.model,) if self.model else (), options)]


@dataclass(frozen=True, slots=True)
class ListImages:
    """The images of this conversation."""

    @property
    def words(self) -> list[str]:
        return ["list"]


@dataclass(frozen=True, slots=True)
class Status:
    @property
    def words(self) -> list[str]:
        return ["status"]


Command = Describe | Redescribe | Consent | UseModel | Change | GroundingModels | ListImages | Status


def alters(command: Command) -> bool:
    """Does it change anything of the user's? Where a model could have typed it, it is answered with `shell` then."""
    match command:
        case Consent(answer="list") | GroundingModels(action="list"):
            return False
        case Consent() | GroundingModels() | UseModel() | Change():
            return True
    return False


def _beside(names: Sequence[str], options: list[str]) -> list[str]:
    """Names and then options, but for names that look like options themselves."""
    like_options = any(name.startswith("--") for name in names)
    return [*options, "--", *names] if like_options else [*names, *options]


def sides(part: Normalized | Pixels) -> tuple[float, float, float, float]:
    return part.x, part.y, part.width, part.height


def _option(name: str, value: str) -> list[str]:
    return [f"--{name}={value}"] if value else []


def _flag(name: str, *, given: bool) -> list[str]:
    return [f"--{name}"] if given else []


def _written(part: Crop) -> str:
    if isinstance(part, Region):
        return f"r={part.name}"
    return ("n=" if isinstance(part, Normalized) else "p=") + ",".join(map(_number, sides(part)))


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(value)
