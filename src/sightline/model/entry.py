"""What is noted of a look, for people who want to know what was asked, of whom, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from sightline.model.asking import Usage
from sightline.model.scene import Json

EntryKind = Literal[
    "vision_proxy.tool_call",
    "vision_proxy.joint_description",
    "vision_proxy.command",
    "vision_proxy.skip",
]


@dataclass(frozen=True, slots=True)
class Entry:
    kind: EntryKind
    images: tuple[str, ...] = ()  # the sha256 of each
    seer: str = ""  # provider/model; empty: nobody was asked
    usage: Usage = Usage()  # noqa: RUF009, a frozen value
    cost_usd: float | None = None  # None: the price is not known
    cache_hit: bool = False
    latency_ms: int | None = None
    about: Mapping[str, Json] = field(default_factory=dict)  # question, reason, crop and the like, whole
    error: str = ""  # the code of what went wrong, never a provider's own words
    at: float = 0.0  # when it was noted; the record's clock says


@dataclass(frozen=True, slots=True)
class Spent:
    """What one seer was asked on one day."""

    day: str  # YYYY-MM-DD, where the user is
    seer: str
    calls: int  # that went out
    usage: Usage
    cost_usd: float | None  # of those whose price is known
    unpriced: int  # calls whose price is not known
    failed: int = 0  # calls without an answer that could be used
