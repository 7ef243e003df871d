"""The requirements manifest: every behaviour that is asked of Sightline, and which of them do not hold yet.

To add one, append a line to `REQUIREMENTS`: an id, one sentence in the present tense, where it comes from.
Its test carries `@requirement("id")`. What has no test yet stands in `OPEN` too, until its test is there.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest


@dataclass(frozen=True, slots=True)
class Requirement:
    id: str
    sentence: str
    source: str


REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement("law.1", "A body, field, block or route that needs no change goes out as the same bytes.", "law 1"),
    Requirement("law.2", "A request that extends the last one is sent as an extension of the last one.", "law 2"),
    Requirement("law.3", "The pure rooms touch no clock, disk, network, randomness or pixels.", "law 3"),
    Requirement("law.4", "An image payload never reaches a model as text.", "law 4"),
    Requirement("law.5", "Only what perception can restore is ever retired.", "law 5"),
    Requirement("law.6", "A no is a value with a remedy, said in the caller's own error shape.", "law 6"),
    Requirement("law.7", "Nothing is read that permit has not let through, also on the resolved path.", "law 7"),
    Requirement("law.8", "No image byte leaves for a provider without the user's consent.", "law 8"),
    Requirement("law.9", "Sightline failing is never worse than Sightline absent.", "law 9"),
    Requirement("law.10", "What the record holds survives kill -9 and gives the same lowering again.", "law 10"),
)

OPEN: frozenset[str] = frozenset(
    {
        "law.1",
        "law.2",
        "law.4",
        "law.5",
        "law.6",
        "law.7",
        "law.8",
        "law.9",
        "law.10",
    }
)


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Say which requirements a test shows; the ids are written out, so that they can be found by reading."""
    return pytest.mark.requirement(*ids)
