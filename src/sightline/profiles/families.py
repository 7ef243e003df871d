"""What follows from a model's name wherever it is served: what is done to its images, and where a tool's may stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from sightline.model.profile import ToolImages, WireName
from sightline.model.sizing import Crops, Flat, Padded, Patches, Sizing, Tiles

# What changes the price, the window, the host or the day, but not what the model can see.
_SUFFIX = re.compile(
    r"(?:\[\w+\]|:free|[:-]cloud|-highspeed|[-@]20\d{6}|-20\d\d-\d\d-\d\d)$",
)


def bare(model: str) -> str:
    """The lower-case name without a `models/` in front, a date, `[1m]`, `:free` and the like behind."""
    name = model.strip().lower().removeprefix("models/")
    while match := _SUFFIX.search(name):
        name = name[: match.start()]
    return name


def matches(pattern: str, model: str) -> bool:
    """Does the name, as it is or bare, match a pattern?"""
    return glob(pattern, model.strip()) or glob(pattern, bare(model))


def glob(pattern: str, text: str) -> bool:
    """Does the whole text match, in any case? `*` and `?` are wild; brackets stand for themselves."""
    return bool(_compiled(pattern.strip()).fullmatch(text))


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    expression = "".join(wild.get(char) or re.escape(char) for char in pattern)
    return re.compile(expression, re.DOTALL | re.IGNORECASE)


_HIGH = Padded(edge=2576, tokens=4784)  # Claude 4.7 and later
_UNBOUNDED = Patches(budget=30_000, edge=65_535)  # more is rejected, or scaled
_NO_USER_AFTER_TOOL: Mapping[WireName, ToolImages] = {"openai_chat": "bridge"}
_IMAGE_IN_RESPONSE: Mapping[WireName, ToolImages] = {"gemini": "native"}


@dataclass(frozen=True, slots=True)
class Family:
    patterns: tuple[str, ...]  # over the last part of the name, with dashes for its dots
    sizing: Sizing | None = None
    tool_images: Mapping[WireName, ToolImages] = field(default_factory=dict)


# The first one that matches decides.
FAMILIES: tuple[Family, ...] = (
    Family(
        (
            "claude-2*",
            "claude-3*",
            "claude-instant*",
            "claude-*-4-0*",
            "claude-*-4-1*",
            "claude-*-4-5*",
            "claude-*-4-6*",
            "claude-*-4",
        ),
        Padded(),
    ),
    Family(("claude-*",), _HIGH),
    Family(("gpt-4o-mini*",), Tiles(2833, 5667)),
    Family(("gpt-4-1-mini*", "gpt-5-mini*", "gpt-5-?-mini*"), Patches(multiplier=1.62)),
    Family(("gpt-4-1-nano*", "gpt-5-nano*", "gpt-5-?-nano*"), Patches(multiplier=2.46)),
    Family(("o4-mini*",), Patches(multiplier=1.72)),
    Family(("o1*", "o3*"), Tiles(75, 150)),
    Family(("computer-use-preview*",), Tiles(65, 129)),
    Family(("gpt-4*", "chatgpt-4o*"), Tiles(85, 170)),
    Family(("gpt-5-2*", "gpt-5-3*"), Patches()),
    Family(("gpt-5-4*",), Patches(budget=2500)),
    Family(("gpt-5-5*",), Patches(budget=10_000, edge=6000)),
    Family(("gpt-5", "gpt-5-1*", "gpt-5-chat*", "gpt-5-codex*"), Tiles(70, 140)),
    Family(("gpt-5-*", "gpt-6*", "gpt-7*", "chat-latest"), _UNBOUNDED),
    Family(("gemini-1*", "gemini-2*"), Crops()),
    Family(("gemini-*",), Flat(1120), _IMAGE_IN_RESPONSE),
    Family(("gemma*",), Flat(256, edge=896)),
    Family(("deepseek*", "kimi*", "moonshot*"), Flat(1024)),
    Family(("qwen2*",), Patches(budget=1280, edge=None, patch=28)),
    Family(("qwen*", "qvq*"), Patches(budget=1280, edge=None)),
    Family(("grok*",), Flat(1792)),
    Family(("pixtral*",), Padded(edge=1024, tokens=4096, patch=16), _NO_USER_AFTER_TOOL),
    Family(
        ("mistral*", "ministral*", "magistral*", "devstral*", "codestral*"),
        Padded(edge=1540, tokens=3025),
        _NO_USER_AFTER_TOOL,
    ),
)
_STRANGER = Family(())


def family(model: str) -> Family:
    name = bare(model).rpartition("/")[2]
    name = name.rpartition("anthropic.")[2].replace(".", "-")  # Bedrock writes the maker in front
    return next((each for each in FAMILIES if any(glob(pattern, name) for pattern in each.patterns)), _STRANGER)
