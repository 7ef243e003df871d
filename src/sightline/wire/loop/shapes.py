"""What the wires say and take alike about calls of ours."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.model.scene import Json
from sightline.wire.loop.leg import Block


@dataclass(frozen=True, slots=True)
class Offer:
    """A tool of ours."""

    name: str
    description: str
    schema: dict[str, Json]


@dataclass(frozen=True, slots=True)
class Result:
    """What a call of ours brought."""

    text: str
    images: tuple[tuple[str, str], ...] = ()  # the type and the base64 of each
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Run:
    """What an assistant said in one answer: items of a conversation, and what they hold."""

    start: int
    end: int
    blocks: list[Block]
    owners: list[int]  # of each block: the item that it stands in

    def held(self, owner: int) -> list[Block]:
        return [block for block, one in zip(self.blocks, self.owners, strict=True) if one == owner]
