"""Changes to a body: the only way in which one is ever changed."""

from __future__ import annotations

from sightline.model.scene import Json, Path
from sightline.model.value import value


@value
class Replace:
    """The value at `place` becomes `value`."""

    place: Path
    value: Json


@value
class Insert:
    """`value` goes into a list, before the element that stands at `place`, or at its end.

    Or into an object, as its last member, under a key that it has not.
    """

    place: Path
    value: Json


@value
class Rebuild:
    """The list at `place` is made anew: a number is the element that stands there now, which stays to the letter."""

    place: Path
    elements: tuple[int | dict[str, Json], ...]


@value
class Remove:
    """The member at `place` leaves its object, in which another one stays; as often as its key stands there."""

    place: Path


Edit = Replace | Insert | Rebuild | Remove
