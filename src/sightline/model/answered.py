"""An answer that came in legs, as the record keeps it: a client sends back only what it saw of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sightline.model.scene import Json


@dataclass(frozen=True, slots=True)
class Answered:
    key: str  # by which it is looked for
    visible: str  # all that the client saw, hashed
    before: str  # the name of the conversation that it answered; empty: the key says enough
    legs: Sequence[Json]
    results: Sequence[Json] | None = ()  # of the calls in its last leg; None: they are still being answered
    made: float = 0.0  # when
