"""Facts about upstreams and their models, as data: the shape of a preset, which the modules here fill in and look up.

A preset has the addresses of an upstream, what its models see, and what its prompt cache costs. Pure: no clock, disk or
network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from sightline.model.image import Sizing
from sightline.model.profile import ImageLimits, ToolImagePlacement, WireName
from sightline.model.value import value_class

DEFAULT_PLACEMENTS: Mapping[WireName, ToolImagePlacement] = {
    "anthropic": "native",
    "openai_chat": "hoist",  # role:tool takes text parts only
    "openai_responses": "native",
    "gemini": "hoist",  # every model accepts an image beside its response, only some inside it
}


@value_class
class ModelRule:
    """One rule about model names; the first one that matches decides."""

    pattern: str  # with `*` and `?`, for the lower-case name with or without its suffixes
    vision: bool | None  # None: known to be uncertain
    wires: tuple[WireName, ...] = ()  # empty: all
    sibling: str | None = None  # None: the preset's own
    limits: ImageLimits | None = None  # None: the preset's own
    tool_images: ToolImagePlacement | None = None  # None: the preset's own


@value_class
class CachePriceRule:
    """What the prompt cache costs for matching models, in multiples of the input price."""

    pattern: str
    write: float
    read: float
    seconds: float = 300.0  # how long an unused prefix stays cached


@value_class
class Preset:
    name: str
    bases: Mapping[WireName, str]  # the address before /v1/messages, /chat/completions, /responses
    addresses: tuple[str, ...]  # host and path by which a base URL is recognised; `*` in the host only
    key_variables: tuple[str, ...] = ()  # environment variables that usually hold its key
    rules: tuple[ModelRule, ...] = ()
    sibling: str | None = None  # the model with vision that describes images for others, on the same host, wire and key
    limits: ImageLimits = field(default_factory=ImageLimits)
    tool_images: Mapping[WireName, ToolImagePlacement] = field(
        default_factory=dict
    )  # where it differs from the wire's default
    sizing: Sizing | None = None  # of all its models; None: their families decide
    cache: tuple[CachePriceRule, ...] = ()
    bearer: bool = False  # expects its key as `Authorization: Bearer`, also on the Anthropic wire
    stateless: bool = False  # stores no response on the Responses wire, even if `store` is true


def build_bases(root: str, anthropic: str = "") -> Mapping[WireName, str]:
    """Return the addresses of an upstream with three APIs below one address; `anthropic`: the path of Anthropic's."""
    return {"anthropic": f"{root}{anthropic}", "openai_chat": f"{root}/v1", "openai_responses": f"{root}/v1"}


def build_seeing_rules(
    *patterns: str, wires: tuple[WireName, ...] = (), limits: ImageLimits | None = None
) -> tuple[ModelRule, ...]:
    return tuple(ModelRule(pattern, vision=True, wires=wires, limits=limits) for pattern in patterns)


def build_blind_rules(
    *patterns: str, wires: tuple[WireName, ...] = (), sibling: str | None = None
) -> tuple[ModelRule, ...]:
    return tuple(ModelRule(pattern, vision=False, wires=wires, sibling=sibling) for pattern in patterns)


def build_uncertain_rules(*patterns: str) -> tuple[ModelRule, ...]:
    return tuple(ModelRule(pattern, vision=None) for pattern in patterns)


PNG, JPEG, WEBP, GIF = "image/png", "image/jpeg", "image/webp", "image/gif"
MIB = 1024 * 1024
