"""What a model on a wire of an upstream accepts, and by which rule that is known."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import SplitResult, urlsplit

from sightline.model.profile import Profile, WireName
from sightline.profiles.names import glob, matches
from sightline.profiles.preset import Preset, Row
from sightline.profiles.presets import PRESETS

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0", "host.docker.internal"})  # noqa: S104
_UNKNOWN = Preset(name="", bases={}, addresses=())
_NO_RULE = Row(pattern="", vision=None)
_SEES = {True: "sees images", False: "is blind", None: "may or may not see images"}


def profile(
    upstream: str, wire: WireName, model: str, overrides: Sequence[tuple[str, bool]] = (), *, name: str = ""
) -> Profile:
    """The profile of `model` at the preset `upstream`; empty, or not a preset: nothing is known by name.

    `overrides` are the user's own rules in their order, a glob on `model` or on `upstream/model`. `name`
    is what the user calls the upstream, where that is not the preset's name.
    """
    preset = PRESETS.get(upstream, _UNKNOWN)
    row = _row(preset, wire, model)
    said = _override(overrides, model, (name, upstream))
    vision, why = said or (row.vision, _reason(preset, row))
    return Profile(
        name or upstream,
        wire,
        model,
        vision,
        limits=row.limits or preset.limits,
        tool_images=preset.carries_tool_images(wire),
        sibling=row.sibling or preset.sibling,
        why=why,
        settled=said is not None,
    )


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


def _override(overrides: Sequence[tuple[str, bool]], model: str, upstreams: tuple[str, ...]) -> tuple[bool, str] | None:
    known_as = (model, *(f"{upstream}/{model}" for upstream in upstreams if upstream))
    for pattern, sees in overrides:
        if any(matches(pattern, each) for each in known_as):
            return sees, f"your setting says that {pattern} {_SEES[sees]}"
    return None


def _reason(preset: Preset, row: Row) -> str:
    if preset is _UNKNOWN:
        return "nothing is known about this upstream, so its models are taken as seeing"
    if row is _NO_RULE:
        return f"{preset.name} has no rule for this model, so it is taken as seeing"
    return f"{row.pattern} at {preset.name} {_SEES[row.vision]}"


def _host(parts: SplitResult) -> str:
    host = parts.hostname or ""
    return f"localhost:{parts.port}" if host in _LOOPBACK else host
