"""Upstreams, and what a model on one of them accepts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field, replace
from functools import lru_cache
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

from sightline.model.image import MAX_UNCHANGED_BYTES, PatchSizing, Sizing
from sightline.model.value import value_class

WireName = Literal["anthropic", "openai_chat", "openai_responses", "gemini"]
"""The APIs that an upstream can serve."""

API_TITLES: Mapping[WireName, str] = {
    "anthropic": "the Anthropic API",
    "openai_chat": "Chat Completions",
    "openai_responses": "the Responses API",
    "gemini": "the Gemini API",
}
"""What these are called in messages."""

USUAL_WIRES: tuple[WireName, ...] = ("anthropic", "openai_chat", "openai_responses")
"""The APIs that an upstream which nothing is known about may serve; only a few have Gemini's."""

ContentName = Literal["model_message", "mcp", "acp"]
"""Shapes of content that programs exchange, but no provider accepts."""

ToolImagePlacement = Literal["native", "hoist", "bridge", "as_sent"]
"""Where images of tool results go.

native: they stay in the result. hoist: they move into a user message after it, or beside it where the wire has a place
for that. bridge: as hoist, but after a short assistant message, for APIs that reject a user message after a tool's.
as_sent: they stay where the client put them, also inside a text, because the upstream has rejected anything else.
"""

UNKNOWN_SIZING = PatchSizing(None, None)
"""Nothing is known about resizing: an image keeps its size, and costs by its area."""


@value_class
class CachePrice:
    """What the prompt cache costs, in multiples of the input price, and how long it lasts."""

    write: float = 1.25
    read: float = 0.1
    seconds: float = 300.0


@value_class
class ImageLimits:
    """What a provider rejects. None: no limit is known."""

    formats: tuple[str, ...] = ("image/png", "image/jpeg", "image/webp", "image/gif")
    still: bool = False  # animations are rejected, also in an accepted format
    encoded_bytes: int | None = None  # base64 length of one image
    edge: int | None = None  # longer side, in pixels
    crowd: int | None = None  # with more images than this in a request …
    crowd_edge: int | None = None  # … the longer side may be only this
    count: int | None = None
    request_bytes: int | None = None
    refit_bytes: int | None = None  # base64 length of an image that had to be made smaller
    unchanged_bytes: int | None = MAX_UNCHANGED_BYTES  # our own limit for a file that is sent unchanged

    def get_max_edge(self, images: int) -> int | None:
        """Return the edge limit of each image in a request with this many images."""
        if self.crowd is not None and self.crowd_edge is not None and images > self.crowd:
            return min(self.crowd_edge, self.edge or self.crowd_edge)
        return self.edge

    def tighten(self, other: ImageLimits) -> ImageLimits:
        """Return the stricter of both limits in each respect."""

        def least(a: int | None, b: int | None) -> int | None:
            return min((n for n in (a, b) if n is not None), default=None)

        return ImageLimits(
            formats=tuple(f for f in self.formats if f in other.formats) or self.formats,
            still=self.still or other.still,
            encoded_bytes=least(self.encoded_bytes, other.encoded_bytes),
            edge=least(self.edge, other.edge),
            crowd=least(self.crowd, other.crowd),
            crowd_edge=least(self.crowd_edge, other.crowd_edge),
            count=least(self.count, other.count),
            request_bytes=least(self.request_bytes, other.request_bytes),
            refit_bytes=least(self.refit_bytes, other.refit_bytes),
            unchanged_bytes=least(self.unchanged_bytes, other.unchanged_bytes),
        )


@value_class
class Profile:
    """One model as one upstream serves it on one wire."""

    upstream: str
    wire: WireName
    model: str
    vision: bool | None = None  # None: unknown, and assumed to see until the upstream rejects an image
    limits: ImageLimits = field(default_factory=ImageLimits)
    tool_images: ToolImagePlacement = "native"
    sizing: Sizing = UNKNOWN_SIZING  # how the provider resizes images
    cache: CachePrice = CachePrice()
    sibling: str | None = None  # a model of the same upstream that can describe images for this one
    why: str = "nothing is known about this model"  # the rule that decided `vision`
    vision_by_user: bool = False  # set by the user: no lesson changes it
    placement_by_user: bool = False  # `tool_images` was set by the user: no lesson changes it
    takes_own_tools: bool = True  # False: the upstream has rejected requests that offer Sightline's own tools
    takes_pdf: bool = False  # True: the upstream has rejected what replaces a PDF, and accepted the PDF

    @property
    def moves_tool_images(self) -> bool:
        """Whether images leave the tool results that they are in."""
        return self.tool_images in ("hoist", "bridge")

    def apply_lesson(self, lesson: Lesson) -> Profile:
        """Return this profile, corrected by what a rejection or a trial taught."""
        learned = None if self.placement_by_user else lesson.tool_images.get(self.wire)
        corrected = replace(
            self,
            limits=self.limits.tighten(lesson.limits),
            tool_images=learned or self.tool_images,
            takes_own_tools=self.takes_own_tools and lesson.takes_own_tools is not False,
            takes_pdf=self.takes_pdf or lesson.takes_pdf is True,
        )
        if self.vision_by_user:
            return corrected
        if lesson.blind is not None:
            return replace(corrected, vision=not lesson.blind, why=lesson.why)
        published = lesson.published.get("vision")
        return corrected if published is None else replace(corrected, vision=published, why=_PUBLISHED[published])


@value_class
class Lesson:
    """What a rejection or a trial taught about a model, and what its upstream publishes about it."""

    blind: bool | None = None  # None: it taught nothing about vision
    limits: ImageLimits = field(default_factory=ImageLimits)
    why: str = ""
    tool_images: Mapping[WireName, ToolImagePlacement] = field(default_factory=dict)  # on the wires where it was tried
    takes_own_tools: bool | None = None  # None: it taught nothing about Sightline's own tools
    takes_pdf: bool | None = None  # None: it taught nothing about PDFs
    published: Mapping[str, bool] = field(default_factory=dict)  # whether it takes "vision", "pdf" or "video"

    @property
    def is_learnt(self) -> bool:
        """Whether a rejection or a trial taught anything."""
        return replace(self, why="", published={}) != Lesson()


# What an upstream publishes counts less than what it does: a gateway may route a model to a host without vision.
_PUBLISHED = {
    True: "the upstream publishes that it sees images",
    False: "the upstream publishes that it takes text only",
}

_version_suffix = re.compile(r"/v\d+[a-z0-9]*(?:/openai)?\Z")
_match_version = re.compile(r"/v\d+[a-z0-9]*(?=/)").match
CREDENTIAL_HEADERS = ("authorization", "x-goog-api-key", "x-api-key", "api-key")
_OWN_HEADERS: Mapping[WireName, str] = {"anthropic": "x-api-key", "gemini": "x-goog-api-key"}


@value_class
class Upstream:
    """A provider as the proxy reaches it."""

    name: str
    bases: Mapping[WireName, str]  # the address before /v1/messages, /chat/completions, …
    preset: str = ""  # name of the preset in `profiles` that describes its models; empty: none
    key_variables: tuple[str, ...] = ()  # environment variables that usually hold its key
    api_key: str = field(default="", repr=False)  # if set, it replaces the client's own credential
    hoist: bool | None = None  # images are moved out of tool results; None: the general setting decides
    bearer: bool = False  # takes its key as a bearer token, also on wires with a header of their own
    stateless: bool = False  # stores no answers, so that none can be referred to later

    def get_base(self, api: WireName) -> str:
        """Return the base address of an API, or the upstream's first address if it has none for that API."""
        return self.bases.get(api) or next(iter(self.bases.values()))

    def build_credential(self, api: WireName, key: str) -> tuple[str, str]:
        """Return the header, name and value, that sends a key to this upstream."""
        own = _OWN_HEADERS.get(api) if not self.bearer else None
        return (own, key) if own else ("authorization", f"Bearer {key}")

    @property
    def is_on_loopback(self) -> bool:
        return all(is_loopback(urlsplit(base).hostname or "") for base in self.bases.values())


@value_class
class RequestOrigin:
    """Who sent a request and where it goes: what a seer may use on the client's behalf."""

    upstream: Upstream
    wire: WireName
    scope: str  # a keyed hash of the credential; what is stored for one credential is not read by another
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)  # credential, user agent, version
    needs_credential: bool = False  # to ask the upstream about an image: the client sends its request there itself

    @property
    def has_credential(self) -> bool:
        return any(name in CREDENTIAL_HEADERS for name, _ in self.headers)


@value_class
class UpstreamDirectory:
    """The upstreams that requests can reach."""

    by_name: Mapping[str, Upstream]
    defaults: Mapping[WireName, Upstream]  # they get the requests that name no upstream; without one, none does
    fallback_wire: WireName = "openai_chat"  # of requests whose path does not tell their wire


def join_url(base: str, path: str) -> str:
    """Join a base address and a request path; a version that both contain is written once."""
    base = base.rstrip("/")
    version = _match_version(path) if _version_suffix.search(base) else None
    return base + (path[version.end() :] if version else path)


def is_versioned(base: str) -> bool:
    """Return whether an address ends with an API version."""
    return _version_suffix.search(base.rstrip("/")) is not None


def strip_version(base: str) -> str:
    """Return an address without an API version at its end."""
    return _version_suffix.sub("", base.rstrip("/"))


@lru_cache(256)
def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
