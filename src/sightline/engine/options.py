"""What the composition root hands to the driver."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from sightline.model.ports import Seer
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.rules import Mode
from sightline.model.upstream import Visitor

SeersOf = Callable[[Visitor, Profile], Awaitable[Sequence[Seer | Refusal]]]
"""Who may look for a visitor, best first; a refusal among them says why somebody cannot be asked."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the user's settings lay down for every request."""

    instructions: str  # what a seer is told …
    question: str  # … and asked
    prompt: str  # the name of both in the record
    mode: Mode = "fallback"
    max_images: int = 20
    overrides: Sequence[tuple[str, bool]] = ()  # model patterns and whether they see
    patience: float = 45.0  # seconds for all the descriptions of one request
