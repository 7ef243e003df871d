"""The sights of one request and where they stand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from sightline.model.fate import Fate
from sightline.model.source import Source

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Path: TypeAlias = tuple[str | int, ...]
"""Keys and indexes from the root of a body to a value in it."""


@dataclass(frozen=True, slots=True)
class Call:
    """The tool call that brought a sight."""

    id: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    place: Path  # of the image block
    source: Source
    role: Literal["user", "tool"]
    call: Call | None = None
    filename: str | None = None  # the last part of the name only
    fate: Fate | None = None

    def meets(self, fate: Fate) -> Sight:
        return replace(self, fate=fate)


@dataclass(frozen=True, slots=True)
class Scene:
    model: str
    sights: tuple[Sight, ...] = ()
    stream: bool = False
