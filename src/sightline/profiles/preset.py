"""The shape of a preset: where an upstream listens, what its models see, what a cached token costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sightline.model.profile import Limits, ToolImages, WireName
from sightline.model.sizing import Sizing

TOOL_IMAGES: Mapping[WireName, ToolImages] = {
    "anthropic": "native",
    "openai_chat": "hoist",  # role:tool takes text parts only
    "openai_responses": "native",
    "gemini": "hoist",  # beside its response every model takes an image; inside of it, only those that are known to
}


@dataclass(frozen=True, slots=True)
class Row:
    """One rule about model names; the first one that matches decides."""

    pattern: str  # `*` and `?` over the lower-case name, with or without its suffixes
    vision: bool | None  # None: known to be uncertain
    wires: tuple[WireName, ...] = ()  # empty: all
    sibling: str | None = None  # None: the preset's own
    limits: Limits | None = None  # None: the preset's own
    tool_images: ToolImages | None = None  # None: the preset's own


@dataclass(frozen=True, slots=True)
class Cached:
    """What the prompt cache costs, in multiples of the plain input price."""

    pattern: str
    write: float
    read: float
    seconds: float = 300.0  # how long a prefix stays cached that nobody asks for


@dataclass(frozen=True, slots=True)
class Preset:
    name: str
    bases: Mapping[WireName, str]  # the address in front of /v1/messages, /chat/completions, /responses
    addresses: tuple[str, ...]  # host and path by which a base URL is recognised; `*` in the host only
    keys: tuple[str, ...] = ()  # environment variables that usually hold its key
    rows: tuple[Row, ...] = ()
    sibling: str | None = None  # the seeing model that looks for blind ones, same host, wire and key
    limits: Limits = field(default_factory=Limits)
    tool_images: Mapping[WireName, ToolImages] = field(default_factory=dict)  # where it departs from the wire
    sizing: Sizing | None = None  # of all its models, whatever they are called; None: by their names
    cache: tuple[Cached, ...] = ()
    bearer: bool = False  # takes its key as `Authorization: Bearer`, also on the Anthropic wire
    stateless: bool = False  # keeps no answer on the Responses wire, whatever `store` says


def seeing(*patterns: str, wires: tuple[WireName, ...] = (), limits: Limits | None = None) -> tuple[Row, ...]:
    return tuple(Row(pattern, vision=True, wires=wires, limits=limits) for pattern in patterns)


def blind(*patterns: str, wires: tuple[WireName, ...] = (), sibling: str | None = None) -> tuple[Row, ...]:
    return tuple(Row(pattern, vision=False, wires=wires, sibling=sibling) for pattern in patterns)


def uncertain(*patterns: str, wires: tuple[WireName, ...] = ()) -> tuple[Row, ...]:
    return tuple(Row(pattern, vision=None, wires=wires) for pattern in patterns)


PNG, JPEG, WEBP, GIF = "image/png", "image/jpeg", "image/webp", "image/gif"
MIB = 1024 * 1024
