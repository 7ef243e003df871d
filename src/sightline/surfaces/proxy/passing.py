"""One request, from when it came: what there will be to tell of it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from sightline.model.receipt import Receipt


@dataclass(slots=True)
class Passing:
    model: str = ""
    receipt: Receipt | None = None  # the last one
    began: float = field(default_factory=time.perf_counter)
