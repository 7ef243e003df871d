"""What a model on a wire accepts, and where it listens."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sightline.model.sizing import Patches, Sizing

WireName = Literal["anthropic", "openai_chat", "openai_responses", "gemini"]
"""The kinds of address that an upstream serves."""

ContentName = Literal["model_message", "mcp", "acp"]
"""The shapes of content that programs hand to each other, and no provider is asked in."""

ToolImages = Literal["native", "hoist", "bridge"]
"""An image that a tool brought stays in the tool's result, moves out of it (into a user message after it, or beside
it where the wire has such a place), or moves there behind a word of the assistant, where no user may speak directly
after a tool."""


UNSIZED = Patches(None, None)
"""Nothing is known of what is done to images: each stays as it is, and costs by its area."""


@dataclass(frozen=True, slots=True)
class CachePrice:
    """What the prompt cache costs, in multiples of the plain input price, and how long it lasts."""

    write: float = 1.25
    read: float = 0.1
    seconds: float = 300.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What a provider refuses. None: no limit is known."""

    formats: tuple[str, ...] = ("image/png", "image/jpeg", "image/webp", "image/gif")
    still: bool = False  # animations are refused, also in a format that is taken
    encoded_bytes: int | None = None  # base64 length of one image
    edge: int | None = None  # longer side, in pixels
    crowd: int | None = None  # with more images than this in a request …
    crowd_edge: int | None = None  # … the longer side may be only this
    count: int | None = None
    request_bytes: int | None = None
    refit_bytes: int | None = None  # base64 length to which an image is brought that exceeds one of these

    def edge_among(self, images: int) -> int | None:
        """The edge limit of each image in a request that carries so many."""
        if self.crowd is not None and self.crowd_edge is not None and images > self.crowd:
            return min(self.crowd_edge, self.edge or self.crowd_edge)
        return self.edge

    def tightened(self, other: Limits) -> Limits:
        """The stricter of both in each respect."""

        def least(a: int | None, b: int | None) -> int | None:
            return min((n for n in (a, b) if n is not None), default=None)

        return Limits(
            formats=tuple(f for f in self.formats if f in other.formats) or self.formats,
            still=self.still or other.still,
            encoded_bytes=least(self.encoded_bytes, other.encoded_bytes),
            edge=least(self.edge, other.edge),
            crowd=least(self.crowd, other.crowd),
            crowd_edge=least(self.crowd_edge, other.crowd_edge),
            count=least(self.count, other.count),
            request_bytes=least(self.request_bytes, other.request_bytes),
            refit_bytes=least(self.refit_bytes, other.refit_bytes),
        )


@dataclass(frozen=True, slots=True)
class Profile:
    """One model as one upstream serves it on one wire."""

    upstream: str
    wire: WireName
    model: str
    vision: bool | None = None  # None: unknown, and taken as seeing until the upstream says otherwise
    limits: Limits = field(default_factory=Limits)
    tool_images: ToolImages = "native"
    sizing: Sizing = UNSIZED  # what the provider does to an image before the model sees it
    cache: CachePrice = CachePrice()
    sibling: str | None = None  # the model of the same upstream that can look for this one
    why: str = "nothing is known about this model"  # the rule that decided `vision`
    settled: bool = False  # the user has said so: no lesson changes it
    placed: bool = False  # the user has said where images of tools go: no lesson changes it

    def learnt(self, lesson: Lesson) -> Profile:
        """This profile, corrected by what the upstream itself has said or shown."""
        taken = None if self.placed else lesson.tool_images.get(self.wire)
        corrected = replace(self, limits=self.limits.tightened(lesson.limits), tool_images=taken or self.tool_images)
        if lesson.blind is None or self.settled:
            return corrected
        return replace(corrected, vision=not lesson.blind, why=lesson.why)


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a rejection or a trial taught about a model."""

    blind: bool | None = None  # None: nothing about that
    limits: Limits = field(default_factory=Limits)
    why: str = ""
    tool_images: Mapping[WireName, ToolImages] = field(default_factory=dict)  # on the wires where it was tried
