"""The commands of `/vision-proxy …` as values; each can write the words with which it is typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from sightline.commands.verb_table import SETTINGS
from sightline.model.geometry import Crop, FractionCrop, NamedCrop, PixelCrop
from sightline.model.value import value_class


@value_class
class Describe:
    images: tuple[str, ...]  # paths or sha256: references
    question: str = ""  # empty: the generic prompt
    crops: tuple[tuple[int, Crop], ...] = ()  # by the index of the image, from 0
    model: str = ""  # provider/model, or local; empty: the usual one
    save: bool = False  # the answer becomes the image's description

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
