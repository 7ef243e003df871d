"""The directory of upstreams: presets, the user's own and those of the command line; and the default for each wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from urllib.parse import urlsplit

from sightline.model.profile import USUAL_WIRES, Upstream, UpstreamDirectory, WireName
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.profiles.presets import PRESET_ALIASES, PRESETS
from sightline.profiles.profile_lookup import find_preset_name, match_model, spread_address
from sightline.settings import Settings
from sightline.settings.setting_kinds import check_upstream_name

_WIRE_OWNERS: Mapping[WireName, str] = {
    "anthropic": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gemini",
}
UNKNOWN_UPSTREAM = Upstream("an unknown upstream", {})


@value_class
class PreviousUpstreams:
    """The addresses that an agent used before it was pointed at Sightline."""

    owners: Mapping[WireName, str] = field(default_factory=dict)  # the address for each wire
    named: Mapping[str, tuple[WireName, str]] = field(default_factory=dict)  # its other providers, each by a name


NO_PREVIOUS_UPSTREAMS = PreviousUpstreams()


def build_directory(
    settings: Settings,
    flags: Sequence[str] = (),
    previous: PreviousUpstreams = NO_PREVIOUS_UPSTREAMS,
    *,
    single_agent: bool = False,
) -> UpstreamDirectory | Refusal:
    """Return every upstream by its name, and the upstream that gets the requests of each wire by default."""
    named = _collect_reachable_upstreams(settings)
    owners = {wire: named[name] for wire, name in _WIRE_OWNERS.items()}
    for name, (api, url) in previous.named.items():
        upstream = _find_by_address(api, url, named)
        if isinstance(upstream, Refusal):
            return upstream
        named[name] = upstream
    for api, url in previous.owners.items():
        upstream = _find_by_address(api, url, named)
        if isinstance(upstream, Refusal):
            return upstream
        owners[api] = upstream
    flagged: list[tuple[Upstream, bool]] = []
    for flag in flags:
        upstream = parse_upstream_flag(flag, named)
        if isinstance(upstream, Refusal):
            return upstream
        named[upstream.name] = upstream
        flagged.append((upstream, single_agent or "=" not in flag.partition("://")[0]))
    owners = _apply_flags(owners, flagged)
    # An agent that used one upstream sends unknown paths there, too.
    fallback_wire = next(iter(previous.owners)) if len(set(previous.owners.values())) == 1 else "openai_chat"
    return UpstreamDirectory(named, owners, fallback_wire if fallback_wire in owners else next(iter(owners)))


def _apply_flags(
    owners: Mapping[WireName, Upstream], flagged: Sequence[tuple[Upstream, bool]]
) -> dict[WireName, Upstream]:
    """Return the upstream of each wire, by the upstreams of the command line and whether each is the default.

    The default gets all wires that it has. A wire that it lacks gets no upstream: a key on it may belong to the default
    or to another provider. Other upstreams only replace those of the same name.
    """
    chosen: dict[WireName, Upstream] = {}
    for upstream, is_default in flagged:
        wires = owners if not is_default else upstream.bases
        chosen |= {
            wire: upstream for wire in wires if is_default or chosen.get(wire, owners[wire]).name == upstream.name
        }
    return chosen if any(is_default for _, is_default in flagged) else {**owners, **chosen}


def find_flag_upstream(settings: Settings, flag: str) -> Upstream | Refusal:
    """Return the upstream that a flag of the command line names."""
    return parse_upstream_flag(flag, _collect_reachable_upstreams(settings))


def has_known_apis(upstream: Upstream) -> bool:
    """Return whether an upstream has no other APIs: it is at its provider's address, or the user has listed them."""
    addresses = dict.fromkeys(upstream.bases.values())
    is_at_home = any(find_preset_name(url) for url in addresses)
    return is_at_home or len(addresses) > 1 or (not upstream.preset and tuple(upstream.bases) != USUAL_WIRES)


def _find_by_address(api: WireName, url: str, named: Mapping[str, Upstream]) -> Upstream | Refusal:
    """Return the named upstream at an address, or a new one with that address."""
    matching = (each for each in named.values() if each.bases.get(api, "").rstrip("/") == url.rstrip("/"))
    return next(matching, None) or parse_upstream_flag(url, named)


def find_owner(model: str, named: Mapping[str, Upstream]) -> tuple[Upstream, str]:
    """Return the upstream that a model belongs to, and the name of the model there.

    The model is written `NAME/MODEL`, or the first preset that knows it is taken.
    """
    name, slash, rest = model.partition("/")
    if slash and name in named:
        return named[name], rest
    if slash and name in PRESETS:  # a preset without an address here
        return _build_preset(name), rest
    rows = ((name, preset.rules) for name, preset in PRESETS.items() if name in named)
    knows = (name for name, rules in rows if any(match_model(row.pattern, model) for row in rules))
    known = next(knows, None) if model else None
    return (named[known] if known else UNKNOWN_UPSTREAM), model


def resolve_upstream(
    settings: Settings, address: str, directory: UpstreamDirectory | None = None
) -> Upstream | Refusal:
    """Return the upstream that an address or a name means: the user's own, a known one, or a new one.

    `directory` has the upstreams of the command line, too.
    """
    reachable = directory.by_name if directory else {}
    named = {**_collect_upstreams(settings), **reachable}
    for name in (*settings.upstreams, *reachable):
        if any(base.rstrip("/") == address.rstrip("/") for base in named[name].bases.values()):
            return named[name]
    return parse_upstream_flag(address, named)


def is_known_upstream(upstream: Upstream, directory: UpstreamDirectory) -> bool:
    """Return whether an upstream is one of the directory, or at the address of a known provider."""
    addresses = upstream.bases.values()
    return upstream in directory.by_name.values() or all(find_preset_name(address) for address in addresses)


def _collect_upstreams(settings: Settings) -> dict[str, Upstream]:
    own = {name: complete_upstream(upstream) for name, upstream in settings.upstreams.items()}
    return {name: _build_preset(name) for name in PRESETS} | own


def _collect_reachable_upstreams(settings: Settings) -> dict[str, Upstream]:
    return {name: each for name, each in _collect_upstreams(settings).items() if each.bases}


def get_consent_name(upstream: Upstream, wire: WireName = "openai_chat") -> str:
    """Return the name for consents to an upstream: that of its preset if it has the preset's address, else its host."""
    address = upstream.get_base(wire)
    return find_preset_name(address) or urlsplit(address).netloc


def find_upstream(named: Mapping[str, Upstream], name: str) -> Upstream | None:
    """Return an upstream by its name, another name for it, or its name for consents."""
    known = named.get(name) or named.get(PRESET_ALIASES.get(name, ""))
    return known or next((each for each in named.values() if name in _list_consent_names(each)), None)


def find_user_names(settings: Settings, consent_name: str) -> tuple[str, ...]:
    """Return the names in the user's settings for the upstreams that have a name for consents."""
    own = (
        {name: complete_upstream(each) for name, each in settings.upstreams.items()}
        if consent_name not in PRESETS
        else {}
    )
    return tuple(name for name, each in own.items() if consent_name in _list_consent_names(each))


def format_provider(settings: Settings, name: str) -> str:
    """Format a provider, or `PROVIDER/MODEL`, for people: the user's name for it, then the name in the record.

    If the user has several names for a provider, it is unknown which one a model was used by, and none is shown.
    """
    receiver, slash, model = name.partition("/")
    names = find_user_names(settings, receiver)
    if not names or receiver in names or (slash and len(names) > 1):
        return name
    return f"{' and '.join(names)}{slash}{model} ({receiver})"


def _list_consent_names(upstream: Upstream) -> set[str]:
    return {get_consent_name(upstream, wire) for wire in upstream.bases}


def _build_preset(name: str) -> Upstream:
    preset = PRESETS[name]
    return Upstream(name, preset.bases, name, preset.key_variables, bearer=preset.bearer, stateless=preset.stateless)


def complete_upstream(own: Upstream) -> Upstream:
    """Complete an upstream of the settings by the preset that it names, or that its name or address means."""
    known = own.preset or (own.name if own.name in PRESETS else "")
    known = known or next((found for url in own.bases.values() if (found := find_preset_name(url))), "")
    preset = PRESETS.get(known)
    bases = own.bases or (preset.bases if preset else {})
    if preset is None:
        return own
    # A provider's key must not go to another host: there the usual variables are ignored.
    is_usual_host = not own.bases or all(find_preset_name(url) == known for url in own.bases.values())
    variables = preset.key_variables if is_usual_host else ()
    own = replace(own, bases=bases, preset=known, key_variables=variables)
    return replace(own, bearer=preset.bearer, stateless=preset.stateless)


def parse_upstream_flag(flag: str, named: Mapping[str, Upstream]) -> Upstream | Refusal:
    """Parse `[NAME=]URL`, or the name of a known upstream."""
    if "://" not in flag and (known := find_upstream(named, flag)) is not None:
        return known
    head, _, tail = flag.partition("://")
    name, equals, scheme = head.rpartition("=")
    url = f"{scheme}://{tail}" if equals else flag
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_usable = False
    if not is_usable:
        names = ", ".join(sorted(named))
        return Refusal(
            "invalid_input",
            f"{flag!r} is not a known upstream or an address",
            f"write [NAME=]http://HOST…, or one of {names}",
        )
    if parts.username is not None:  # it would be written to receipts, lessons and lists
        return Refusal("invalid_input", "an upstream's address must not contain a login", "send the key in a header")
    if equals and (fault := check_upstream_name(name)):
        return Refusal("invalid_input", f"{name!r:.80}: {fault}", "write NAME=http://HOST…")
    name = name or find_preset_name(url) or parts.netloc
    return complete_upstream(Upstream(name, spread_address(url, name if name in PRESETS else "")))
