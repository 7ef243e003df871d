"""What settings, profile and past rejections lay down for one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sightline.model.profile import Profile


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


Mode = Literal["fallback", "always", "off", "route"]


@dataclass(frozen=True, slots=True)
class Retention:
    """When an image that was seen gives its place to a line about it."""

    turns: int | None = None  # a number: those of the newest turns stay; None: by what the cache costs
    off: bool = False
    pasted: bool = False  # those that a user pasted may be retired too, where they can be seen again


@dataclass(frozen=True, slots=True)
class Rules:
    profile: Profile
    mode: Mode = "fallback"
    retention: Retention = Retention()
    max_images: int = 20  # described in one turn; 0: no limit
    max_batch: int = 1  # images of a turn that are looked at together as well; 1: none are
    joint_turns: bool = False  # what was said of several goes with its turn, not with what retires
    paid: bool = True  # False where only a count is asked for: no look is paid for that
    distrust: bool = False  # the upstream could not read some image: decode each before it is sent again
    recode: bool = False  # … and encode it anew
    poison: frozenset[str] = frozenset()  # keys of the images that the upstream has refused to read
    references: bool = False  # a pasted image gets its reference beside it, once the record holds it
    by_turn: bool = False  # pixels are for the newest turn alone: those of earlier turns are told

    @property
    def blind(self) -> bool:
        """Does the model get words instead of pixels?"""
        return self.mode == "always" or self.profile.vision is False
