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
    """`value` goes into a list, before the element that stands at `place`, or at its end."""

    place: Path
    value: Json


Edit = Replace | Insert
