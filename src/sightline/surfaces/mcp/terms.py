"""On what terms a client is served: what it may see, and whether the user's word can come through it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # who shakes hands needs nothing of it yet
    from sightline.api.session import Door


@dataclass(frozen=True, slots=True)
class Terms:
    door: Callable[[Mapping[str, str]], Door]  # for whoever sent a request with these headers; stdio has none
    roots: bool = False  # the folders that a client names may be read: it could read them itself
    consents: bool = False  # who uses the client can be asked: the owner agrees for good, others for themselves
    anybody: Callable[[], str] = str  # the scope of all clients that cannot be told apart, which goes with the record
