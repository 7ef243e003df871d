"""What a model on a wire of an upstream accepts, and by which rule that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args
from urllib.parse import SplitResult, urlsplit

from sightline.model.profile import UNSIZED, CachePrice, Profile, ToolImages, WireName
from sightline.profiles.families import Family, bare, family, glob, matches
from sightline.profiles.preset import TOOL_IMAGES, Preset, Row
from sightline.profiles.presets import PRESETS

Kind = Literal["vision", "pdf", "video", "audio"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_WIRES: tuple[WireName, ...] = ("openai_chat", "anthropic", "openai_responses", "gemini")
_BOTH = frozenset[Kind]({"vision", "pdf"})
# These hold whatever the table says of the day.
_SURE: Mapping[str, frozenset[Kind]] = {
    "claude-opus-4-7": _BOTH,
    "claude-sonnet-4-6": _BOTH,
    "gpt-5": _BOTH,
    "gpt-5-mini": _BOTH,
    "gemini-2.5-pro": _BOTH,
    "gemini-2.5-flash": _BOTH,
}


@dataclass(frozen=True, slots=True)
class Said:
    """What the user says of the models that match a pattern."""

    pattern: str
    kinds: Mapping[Kind, bool]


def takes(kind: Kind, model: str, hosts: Sequence[str], said: Sequence[Said], table: Mapping[str, str]) -> bool:
    """Whether a model takes this kind of thing.

    `hosts` are the names of its provider, the preset's among them; `table` gives the kinds of exact ids, in words.
    """
    known_as = (model, *(f"{host}/{model}" for host in hosts))
    for each in said:
        if kind in each.kinds and any(matches(each.pattern, name) for name in known_as):
            return each.kinds[kind]
    rows = (profile(host, wire, model).vision for host in hosts for wire in _WIRES)
    seen = next((each for each in rows if each is not None), None)
    if seen is False and kind != "audio":  # a model that sees nothing reads no pages and no frames either
        return False
    return (seen is True and kind == "vision") or _listed(kind, model, hosts, table)


def _listed(kind: Kind, model: str, hosts: Sequence[str], table: Mapping[str, str]) -> bool:
    exact = model.strip().lower().removeprefix("models/")
    if kind in _SURE.get(exact, ()):
        return True
    names = dict.fromkeys([exact, bare(model), exact.partition(":")[0]])
    placed = [f"{host}/{name}" for host in hosts for name in names]
    found = next((table[name] for name in [*placed, *names] if name in table), "")
    return kind in found.split()


_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "host.docker.internal"})  # noqa: S104
_UNKNOWN = Preset(name="", bases={}, addresses=())
_LONGEST_NAME = 256
_NO_RULE = Row(pattern="", vision=None)
_SEES = {True: "sees images", False: "is blind", None: "may or may not see images"}


@dataclass(frozen=True, slots=True)
class Override:
    """What the user says of the models that match a pattern; None: nothing."""

    pattern: str
    vision: bool | None = None
    tool_images: bool | None = None  # do they take images inside tool results?


def profile(
    upstream: str,
    wire: WireName,
    model: str,
    overrides: Sequence[Override] = (),
    *,
    name: str = "",
    hoist: bool = False,
) -> Profile:
    """The profile of `model` at the preset `upstream`; empty, or not a preset: nothing is known by name.

    `overrides` are the user's own rules in their order, a glob on `model` or on `upstream/model`. `name`
    is what the user calls the upstream, where that is not the preset's name. With `hoist`, no image stays in a
    tool's result, whether the wire would take it there or not.
    """
    # Dozens of patterns, and the same few models all day; but names come from outside, and may be of any length.
    find = _remembered if len(model) <= _LONGEST_NAME else _profile
    return find(upstream, wire, model, tuple(overrides), name, hoist)


def _profile(
    upstream: str, wire: WireName, model: str, overrides: tuple[Override, ...], name: str, hoist: bool
) -> Profile:
    preset = PRESETS.get(upstream, _UNKNOWN)
    row = _row(preset, wire, model)
    kin = family(model)
    own = [each for each in overrides if _means(each.pattern, model, (name, upstream))]
    sees = next((each for each in own if each.vision is not None), None)
    why = f"your setting says that {sees.pattern} {_SEES[sees.vision]}" if sees else _reason(preset, row)
    return Profile(
        name or upstream,
        wire,
        model,
        sees.vision if sees else row.vision,
        limits=row.limits or preset.limits,
        tool_images=_tool_images(preset, row, kin, wire, own, hoist=hoist),
        sizing=preset.sizing or kin.sizing or UNSIZED,
        cache=_cache(preset, model),
        sibling=row.sibling or preset.sibling,
        why=why,
        settled=sees is not None,
        placed=hoist or any(each.tool_images is not None for each in own),
    )


_remembered = lru_cache(maxsize=256)(_profile)


def by_address(url: str) -> str:
    """The name of the preset that listens at this address, or nothing."""
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host = _host(parts)
    except ValueError:
        return ""
    path = f"{parts.path.rstrip('/')}/"
    found = [
        (len(prefix), preset.name)
        for preset in PRESETS.values()
        for address in preset.addresses
        for pattern, _, prefix in [address.partition("/")]
        if glob(pattern, host) and path.startswith(f"/{prefix}/" if prefix else "/")
    ]
    return max(found, key=lambda each: each[0])[1] if found else ""


def _row(preset: Preset, wire: WireName, model: str) -> Row:
    rows = (row for row in preset.rows if not row.wires or wire in row.wires)
    return next((row for row in rows if matches(row.pattern, model)), _NO_RULE)


def _means(pattern: str, model: str, upstreams: tuple[str, ...]) -> bool:
    known_as = (model, *(f"{upstream}/{model}" for upstream in upstreams if upstream))
    return any(matches(pattern, each) for each in known_as)


def _tool_images(
    preset: Preset, row: Row, kin: Family, wire: WireName, own: Sequence[Override], *, hoist: bool
) -> ToolImages:
    """Where images of tool results go: the user's word, then the model's row, its host, its family, its wire."""
    usual = row.tool_images or preset.tool_images.get(wire) or kin.tool_images.get(wire) or TOOL_IMAGES[wire]
    moved: ToolImages = "bridge" if usual == "bridge" else "hoist"
    said = next((each.tool_images for each in own if each.tool_images is not None), None)
    if said is None:
        return moved if hoist else usual
    return "native" if said else moved


def _cache(preset: Preset, model: str) -> CachePrice:
    found = next((row for row in preset.cache if matches(row.pattern, model)), None)
    return CachePrice(found.write, found.read, found.seconds) if found else CachePrice()


def _reason(preset: Preset, row: Row) -> str:
    if preset is _UNKNOWN:
        return "nothing is known about this upstream, so its models are taken as seeing"
    if row is _NO_RULE:
        return f"{preset.name} has no rule for this model, so it is taken as seeing"
    return f"{row.pattern} at {preset.name} {_SEES[row.vision]}"


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"localhost:{parts.port}" if host in _LOOPBACK else host
