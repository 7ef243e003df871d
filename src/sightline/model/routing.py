"""To which of two models a request goes, where turns with new images have one of their own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Routing:
    model: str  # that takes this request
    named: str  # that the client named
    turn: int = -1  # the message that opens the newest turn
    strangers: frozenset[int] = frozenset()  # the messages that the other of the two has written

    @property
    def elsewhere(self) -> bool:
        """Does it go to another model than the client named?"""
        return self.model != self.named
