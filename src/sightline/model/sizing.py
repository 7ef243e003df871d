"""What a provider does to an image before its model sees it, and how many tokens that costs. Pure arithmetic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from sightline.model.geometry import Size


@dataclass(frozen=True, slots=True)
class Padded:
    """Anthropic: each side, rounded up to a multiple of `patch`, within `edge`; and at most `tokens` patches."""

    edge: int = 1568
    tokens: int = 1568
    patch: int = 28


@dataclass(frozen=True, slots=True)
class Patches:
    """OpenAI's patch models: at most `budget` patches of 32 pixels and `edge` on the longer side."""

    budget: int | None = 1536
    edge: int | None = 2048
    multiplier: float = 1.0
    patch: int = 32


@dataclass(frozen=True, slots=True)
class Tiles:
    """OpenAI's tile models: within 2048 on each side, then the shorter side to 768, in tiles of 512."""

    base: int = 85
    each: int = 170
    outer: int = 2048
    short: int = 768
    tile: int = 512


@dataclass(frozen=True, slots=True)
class Crops:
    """Gemini 2: one unit for a small image, else tiles whose side follows the shorter side."""

    each: int = 258
    small: int = 384


@dataclass(frozen=True, slots=True)
class Flat:
    """A fixed price whatever the size; `edge` where the longer side is known to be cut down."""

    tokens: int
    edge: int | None = None


Sizing = Padded | Patches | Tiles | Crops | Flat


def seen(size: Size, rule: Sizing) -> Size:
    """The size in which the model sees an image of this one."""
    match rule:
        case Padded():
            return _padded(size, rule)
        case Patches():
            return _patched(size, rule)
        case Tiles():
            inner = size.within(rule.outer)
            short = min(inner.width, inner.height)
            return inner if short <= rule.short else inner.scaled(rule.short / short)
        case Crops():
            return size
        case Flat():
            return size if rule.edge is None else size.within(rule.edge)
        case _:
            assert_never(rule)


@lru_cache(4096)  # a conversation has many images of few sizes
def tokens(size: Size, rule: Sizing) -> int:
    """What an image of this size costs."""
    inner = seen(size, rule)
    match rule:
        case Padded():
            return _cells(inner, rule.patch)
        case Patches():
            return math.ceil(_cells(inner, rule.patch) * rule.multiplier)
        case Tiles():
            return rule.base + rule.each * _cells(inner, rule.tile)
        case Crops():
            if inner.edge <= rule.small:
                return rule.each
            unit = max(256, min(768, min(inner.width, inner.height) * 2 // 3))
            return rule.each * math.ceil(inner.width / unit) * math.ceil(inner.height / unit)
        case Flat():
            return rule.tokens
        case _:
            assert_never(rule)


def _cells(size: Size, side: int) -> int:
    return math.ceil(size.width / side) * math.ceil(size.height / side)


def _padded(size: Size, rule: Padded) -> Size:
    """The largest size of the same shape that the rule admits, by its longer side."""

    def admits(one: Size) -> bool:
        sides = (math.ceil(one.width / rule.patch) * rule.patch, math.ceil(one.height / rule.patch) * rule.patch)
        return max(sides) <= rule.edge and _cells(one, rule.patch) <= rule.tokens

    if admits(size):
        return size
    low, high = 1, size.edge
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if admits(_by_edge(size, middle)) else (low, middle)
    return _by_edge(size, low)


def _by_edge(size: Size, edge: int) -> Size:
    if size.width >= size.height:
        return Size(edge, max(1, round(edge * size.height / size.width)))
    return Size(max(1, round(edge * size.width / size.height)), edge)


def _patched(size: Size, rule: Patches) -> Size:
    inner = size if rule.edge is None else size.within(rule.edge)
    if rule.budget is None or _cells(inner, rule.patch) <= rule.budget:
        return inner
    scale = math.sqrt(rule.patch**2 * rule.budget / inner.pixels)
    across, down = inner.width * scale / rule.patch, inner.height * scale / rule.patch
    scale *= min(math.floor(across) / across, math.floor(down) / down)
    return Size(max(1, int(inner.width * scale)), max(1, int(inner.height * scale)))
