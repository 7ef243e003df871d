"""Changes to a body: the only way in which one is ever changed."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.model.scene import Json, Path


@dataclass(frozen=True, slots=True)
class Replace:
    """The value at `place` becomes `value`."""

    place: Path
    value: Json


@dataclass(frozen=True, slots=True)
class Insert:
    """`value` goes into a list, before the element that stands at `place`, or at its end.

    Or into an object, as its last member, under a key that it has not.
    """

    place: Path
    value: Json


@dataclass(frozen=True, slots=True)
class Rebuild:
    """The list at `place` is made anew: a number is the element that stands there now, which stays to the letter."""

    place: Path
    elements: tuple[int | dict[str, Json], ...]


@dataclass(frozen=True, slots=True)
class Remove:
    """The member at `place` leaves its object, in which another one stays."""

    place: Path


Edit = Replace | Insert | Rebuild | Remove
