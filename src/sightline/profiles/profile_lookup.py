"""Find the profile of a model: what it accepts on a wire of an upstream, and by which rule that is known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Literal, get_args
from urllib.parse import SplitResult, urlsplit

from sightline.model.image import CropSizing, FlatSizing, PaddedSizing, PatchSizing, Sizing, TileSizing
from sightline.model.profile import UNKNOWN_SIZING, USUAL_WIRES, CachePrice, Profile, ToolImagePlacement, WireName
from sightline.model.value import value_class
from sightline.profiles import DEFAULT_PLACEMENTS, ModelRule, Preset
from sightline.profiles.presets import PRESETS

# Suffixes that change the price, the context window, the host or the date, but not what the model can see.
_SUFFIX = re.compile(
    r"(?:\[\w+\]|:free|[:-]cloud|-highspeed|[-@]20\d{6}|-20\d\d-\d\d-\d\d)$",
)


def strip_model_name(model: str) -> str:
    """Return the lower-case name without the prefix `models/` and suffixes such as a date, `[1m]` or `:free`."""
    name = model.strip().lower().removeprefix("models/")
    while match := _SUFFIX.search(name):
        name = name[: match.start()]
    return name


def match_model(pattern: str, model: str) -> bool:
    """Return whether the name, with or without its suffixes, matches a pattern."""
    return match_glob(pattern, model.strip()) or match_glob(pattern, strip_model_name(model))


def match_glob(pattern: str, text: str) -> bool:
    """Return whether the whole text matches, ignoring case. Only `*` and `?` are special."""
    return bool(_compile_glob(pattern.strip()).fullmatch(text))


@lru_cache(maxsize=1024)
def _compile_glob(pattern: str) -> re.Pattern[str]:
    wild = {"*": ".*", "?": "."}
    expression = "".join(wild.get(char) or re.escape(char) for char in pattern)
    return re.compile(expression, re.DOTALL | re.IGNORECASE)


_HIGH_RESOLUTION = PaddedSizing(edge=2576, max_tokens=4784)  # Claude 4.7 and later
_UNBOUNDED = PatchSizing(max_patches=30_000, edge=65_535)  # more is rejected, or scaled
_NO_USER_AFTER_TOOL: Mapping[WireName, ToolImagePlacement] = {"openai_chat": "bridge"}
_IMAGE_IN_RESPONSE: Mapping[WireName, ToolImagePlacement] = {"gemini": "native"}


@value_class
class ModelFamily:
    """What a model's name implies at every provider."""

    patterns: tuple[str, ...]  # for the last part of the name, with dashes for dots
    sizing: Sizing | None = None
    tool_images: Mapping[WireName, ToolImagePlacement] = field(default_factory=dict)


# The first one that matches decides.
FAMILIES: tuple[ModelFamily, ...] = (
    ModelFamily(
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
        PaddedSizing(),
    ),
    ModelFamily(("claude-*",), _HIGH_RESOLUTION),
    ModelFamily(("gpt-4o-mini*",), TileSizing(2833, 5667)),
    ModelFamily(("gpt-4-1-mini*", "gpt-5-mini*", "gpt-5-?-mini*"), PatchSizing(multiplier=1.62)),
    ModelFamily(("gpt-4-1-nano*", "gpt-5-nano*", "gpt-5-?-nano*"), PatchSizing(multiplier=2.46)),
    ModelFamily(("o4-mini*",), PatchSizing(multiplier=1.72)),
    ModelFamily(("o1*", "o3*"), TileSizing(75, 150)),
    ModelFamily(("computer-use-preview*",), TileSizing(65, 129)),
    ModelFamily(("gpt-4*", "chatgpt-4o*"), TileSizing(85, 170)),
    ModelFamily(("gpt-5-2*", "gpt-5-3*"), PatchSizing()),
    ModelFamily(("gpt-5-4*",), PatchSizing(max_patches=2500)),
    ModelFamily(("gpt-5-5*",), PatchSizing(max_patches=10_000, edge=6000)),
    ModelFamily(("gpt-5", "gpt-5-1*", "gpt-5-chat*", "gpt-5-codex*"), TileSizing(70, 140)),
    ModelFamily(("gpt-5-*", "gpt-6*", "gpt-7*", "chat-latest"), _UNBOUNDED),
    ModelFamily(("gemini-1*", "gemini-2*"), CropSizing()),
    ModelFamily(("gemini-*",), FlatSizing(1120), _IMAGE_IN_RESPONSE),
    ModelFamily(("gemma*",), FlatSizing(256, edge=896)),
    ModelFamily(("deepseek*", "kimi*", "moonshot*"), FlatSizing(1024)),
    ModelFamily(("qwen2*",), PatchSizing(max_patches=1280, edge=None, patch=28)),
    ModelFamily(("qwen*", "qvq*"), PatchSizing(max_patches=1280, edge=None)),
    ModelFamily(("grok*",), FlatSizing(1792)),
    ModelFamily(("pixtral*",), PaddedSizing(edge=1024, max_tokens=4096, patch=16), _NO_USER_AFTER_TOOL),
    ModelFamily(
        ("mistral*", "ministral*", "magistral*", "devstral*", "codestral*"),
        PaddedSizing(edge=1540, max_tokens=3025),
        _NO_USER_AFTER_TOOL,
    ),
)
_UNKNOWN_FAMILY = ModelFamily(())


def find_model_family(model: str) -> ModelFamily:
    name = strip_model_name(model).rpartition("/")[2]
    name = name.rpartition("anthropic.")[2].replace(".", "-")  # Bedrock puts the maker first
    return next(
        (each for each in FAMILIES if any(match_glob(pattern, name) for pattern in each.patterns)), _UNKNOWN_FAMILY
    )


MediaKind = Literal["vision", "pdf", "video", "audio"]
MEDIA_KINDS: tuple[MediaKind, ...] = get_args(MediaKind)

_WIRES: tuple[WireName, ...] = ("openai_chat", "anthropic", "openai_responses", "gemini")
_TAGGED_HOSTS = frozenset({"ollama", "ollama-cloud"})  # where the size of a model is in a tag behind its id
_BOTH = frozenset[MediaKind]({"vision", "pdf"})
# These override the generated table.
_CERTAIN: Mapping[str, frozenset[MediaKind]] = {
    "claude-opus-4-7": _BOTH,
    "claude-sonnet-4-6": _BOTH,
    "gpt-5": _BOTH,
    "gpt-5-mini": _BOTH,
    "gemini-2.5-pro": _BOTH,
    "gemini-2.5-flash": _BOTH,
}


@value_class
class MediaOverride:
    """What the user says about media for the models that match a pattern."""

    pattern: str
    kinds: Mapping[MediaKind, bool]


def accepts_media(
    kind: MediaKind, model: str, hosts: Sequence[str], overrides: Sequence[MediaOverride], table: Mapping[str, str]
) -> bool:
    """Return whether a model accepts a kind of media.

    `hosts` are the names of its provider, including the preset's; `table` lists kinds by exact model id.
    """
    known_as = (model, *(f"{host}/{model}" for host in hosts))
    for each in overrides:
        if kind in each.kinds and any(match_model(each.pattern, name) for name in known_as):
            return each.kinds[kind]
    rows = (look_up_profile(host, wire, model).vision for host in hosts for wire in _WIRES)
    seen = next((each for each in rows if each is not None), None)
    if seen is False and kind != "audio":  # a model that sees nothing reads no pages and no frames either
        return False
    return _is_listed(kind, model, hosts, table)


def _is_listed(kind: MediaKind, model: str, hosts: Sequence[str], table: Mapping[str, str]) -> bool:
    """Return whether a table has this very id: nothing is inferred from the id without its date, or from a pattern."""
    exact = model.strip().lower().removeprefix("models/")
    if kind in _CERTAIN.get(exact, ()) or (kind == "vision" and _has_exact_rule(hosts, exact)):
        return True
    names = [exact]
    if not _TAGGED_HOSTS.isdisjoint(hosts):
        names.append(exact.partition(":")[0])
    placed = [f"{host}/{name}" for host in hosts for name in names]
    found = next((table[name] for name in [*placed, *names] if name in table), "")
    return kind in found.split()


def _has_exact_rule(hosts: Sequence[str], model: str) -> bool:
    presets = (PRESETS[host] for host in hosts if host in PRESETS)
    return any(rule.vision is True and rule.pattern == model for preset in presets for rule in preset.rules)


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "host.docker.internal"})  # noqa: S104
_UNKNOWN = Preset(name="", bases={}, addresses=())
_MAX_CACHED_NAME = 256
_NO_RULE = ModelRule(pattern="", vision=None)
_SEES = {True: "sees images", False: "takes text only", None: "may or may not see images"}


@value_class
class ProfileOverride:
    """What the user says about the models that match a pattern; None: nothing."""

    pattern: str
    vision: bool | None = None
    tool_images: bool | None = None  # whether they accept images inside tool results


def look_up_profile(
    upstream: str,
    wire: WireName,
    model: str,
    overrides: Sequence[ProfileOverride] = (),
    *,
    name: str = "",
    hoist: bool = False,
) -> Profile:
    """Return the profile of `model` at the preset `upstream`, which may be empty or unknown.

    `overrides` are the user's own rules in order, with a glob on `model` or on `upstream/model`. `name` is the user's
    name of the upstream, if it differs from the preset's. With `hoist`, images are moved out of tool results even if
    the wire accepts them there.
    """
    # There are dozens of patterns and few models, so results are cached; but names come from outside, of any length.
    find = _build_profile_cached if len(model) <= _MAX_CACHED_NAME else _build_profile
    return find(upstream, wire, model, tuple(overrides), name, hoist)


def _build_profile(
    upstream: str, wire: WireName, model: str, overrides: tuple[ProfileOverride, ...], name: str, hoist: bool
) -> Profile:
    preset = PRESETS.get(upstream, _UNKNOWN)
    row = _find_rule(preset, wire, model)
    kin = find_model_family(model)
    own = [each for each in overrides if _matches_override(each.pattern, model, (name, upstream))]
    sees = next((each for each in own if each.vision is not None), None)
    why = f"your setting says that {sees.pattern} {_SEES[sees.vision]}" if sees else _explain_vision(preset, row)
    return Profile(
        name or upstream,
        wire,
        model,
        sees.vision if sees else row.vision,
        limits=row.limits or preset.limits,
        tool_images=_choose_placement(preset, row, kin, wire, own, hoist=hoist),
        sizing=preset.sizing or kin.sizing or UNKNOWN_SIZING,
        cache=_find_cache_price(preset, model),
        sibling=row.sibling or preset.sibling,
        why=why,
        vision_by_user=sees is not None,
        placement_by_user=hoist or any(each.tool_images is not None for each in own),
    )


_build_profile_cached = lru_cache(maxsize=256)(_build_profile)


def spread_address(url: str, preset: str = "") -> dict[WireName, str]:
    """Return the bases of an upstream with one address: for each wire of its preset, else for the usual ones."""
    known = PRESETS.get(preset or find_preset_name(url), _UNKNOWN)
    return dict.fromkeys(known.bases or USUAL_WIRES, url)


def find_preset_name(url: str) -> str:
    """Return the name of the preset for an address, or an empty string."""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host = _normalize_host(parts)
    except ValueError:
        return ""
    path = f"{parts.path.rstrip('/')}/"
    found = [
        (len(prefix), preset.name)
        for preset in PRESETS.values()
        for address in preset.addresses
        for pattern, _, prefix in [address.partition("/")]
        if pattern == host or ("*" in pattern and match_glob(pattern, host))
        if path.startswith(f"/{prefix}/" if prefix else "/")
    ]
    return max(found, key=lambda each: each[0])[1] if found else ""


def _find_rule(preset: Preset, wire: WireName, model: str) -> ModelRule:
    rows = (row for row in preset.rules if not row.wires or wire in row.wires)
    return next((row for row in rows if match_model(row.pattern, model)), _NO_RULE)


def _matches_override(pattern: str, model: str, upstreams: tuple[str, ...]) -> bool:
    known_as = (model, *(f"{upstream}/{model}" for upstream in upstreams if upstream))
    return any(match_model(pattern, each) for each in known_as)


def _choose_placement(
    preset: Preset, row: ModelRule, kin: ModelFamily, wire: WireName, own: Sequence[ProfileOverride], *, hoist: bool
) -> ToolImagePlacement:
    """Choose where images of tool results go: by the user, the model's rule, its host, its family, or its wire."""
    usual = row.tool_images or preset.tool_images.get(wire) or kin.tool_images.get(wire) or DEFAULT_PLACEMENTS[wire]
    moved: ToolImagePlacement = "bridge" if usual == "bridge" else "hoist"
    accepted = next((each.tool_images for each in own if each.tool_images is not None), None)
    if accepted is None:
        return moved if hoist else usual
    return "native" if accepted else moved


def _find_cache_price(preset: Preset, model: str) -> CachePrice:
    found = next((row for row in preset.cache if match_model(row.pattern, model)), None)
    return CachePrice(found.write, found.read, found.seconds) if found else CachePrice()


def _explain_vision(preset: Preset, row: ModelRule) -> str:
    if preset is _UNKNOWN:
        return "nothing is known about this upstream, so its models are assumed to see"
    if row is _NO_RULE:
        return f"{preset.name} has no rule for this model, so it is assumed to see"
    return f"{row.pattern} at {preset.name} {_SEES[row.vision]}"


def _normalize_host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"localhost:{parts.port}" if host in _LOOPBACK else host
