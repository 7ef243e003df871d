"""The upstreams that can be named: the presets, the user's own, those of the command line; and who owns each wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory, Upstream
from sightline.profiles.families import matches
from sightline.profiles.lookup import by_address
from sightline.profiles.presets import PRESETS
from sightline.settings import Settings

_OWNERS: Mapping[WireName, str] = {
    "anthropic": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gemini",
}
NOBODY = Upstream("an unknown upstream", {})


@dataclass(frozen=True, slots=True)
class Taken:
    """Where an agent went before it was pointed here."""

    owners: Mapping[WireName, str] = field(default_factory=dict)  # the address for each wire
    named: Mapping[str, tuple[WireName, str]] = field(default_factory=dict)  # its other providers, each by a name


NOWHERE = Taken()


def directory(
    settings: Settings, flags: Sequence[str] = (), taken: Taken = NOWHERE, *, alone: bool = False
) -> Directory | Refusal:
    """Every upstream that can be named, and who owns each wire."""
    named = {name: each for name, each in _named(settings).items() if each.bases}
    owners = {wire: named[name] for wire, name in _OWNERS.items()}
    for name, (api, url) in taken.named.items():
        upstream = _taken_over(api, url, named)
        if isinstance(upstream, Refusal):
            return upstream
        named[name] = upstream
    for api, url in taken.owners.items():
        upstream = _taken_over(api, url, named)
        if isinstance(upstream, Refusal):
            return upstream
        owners[api] = upstream
    for flag in flags:
        upstream = flagged(flag, named)
        if isinstance(upstream, Refusal):
            return upstream
        named[upstream.name] = upstream
        # An upstream given on the command line takes the wires it serves; a named one only those it owns.
        bare = alone or "=" not in flag.partition("://")[0]
        for wire in owners:
            if bare or owners[wire].name == upstream.name:
                owners[wire] = upstream
    # An agent that went to one place goes there with everything.
    stray = next(iter(taken.owners)) if len(set(taken.owners.values())) == 1 else "openai_chat"
    return Directory(named, owners, stray)


def _taken_over(api: WireName, url: str, named: Mapping[str, Upstream]) -> Upstream | Refusal:
    """The upstream at an address: one that has a name already, else that address alone."""
    there = (each for each in named.values() if each.bases.get(api, "").rstrip("/") == url.rstrip("/"))
    return next(there, None) or flagged(url, named)


def owner(model: str, named: Mapping[str, Upstream]) -> tuple[Upstream, str]:
    """Whose model a name means where nobody says, and its name there: `NAME/MODEL`, or the first that knows it."""
    name, slash, rest = model.partition("/")
    if slash and name in named:
        return named[name], rest
    if slash and name in PRESETS:  # one that nobody is sent to by this program
        return _preset(name), rest
    rows = ((name, preset.rows) for name, preset in PRESETS.items() if name in named)
    knows = (name for name, held in rows if any(matches(row.pattern, model) for row in held))
    known = next(knows, None) if model else None
    return (named[known] if known else NOBODY), model


def reached(settings: Settings, address: str) -> Upstream | Refusal:
    """The upstream that an address or a name means: one that the user has named, a known one, or that address alone."""
    named = _named(settings)
    for name in settings.upstreams:
        if any(base.rstrip("/") == address.rstrip("/") for base in named[name].bases.values()):
            return named[name]
    return flagged(address, named)


def _named(settings: Settings) -> dict[str, Upstream]:
    own = {name: completed(upstream) for name, upstream in settings.upstreams.items()}
    return {name: _preset(name) for name in PRESETS} | own


def receiver(upstream: Upstream, wire: WireName = "openai_chat") -> str:
    """The name under which consent is given to an upstream: its preset's at its known address, else its host."""
    address = upstream.base(wire)
    return by_address(address) or urlsplit(address).netloc


def by_name(named: Mapping[str, Upstream], name: str) -> Upstream | None:
    """The upstream that somebody means, by its name or by the one under which consent is given to it."""
    return named.get(name) or next((each for each in named.values() if name in _receivers(each)), None)


def names_of(settings: Settings, receiver: str) -> tuple[str, ...]:
    """What the user calls whoever gets images under the name of an address."""
    own = {name: completed(each) for name, each in settings.upstreams.items()} if receiver not in PRESETS else {}
    return tuple(name for name, each in own.items() if receiver in _receivers(each))


def called(settings: Settings, name: str) -> str:
    """A receiver as the record has it, or a model of it, as people read it: by the user's name for it, then as it is.

    Which of several names a model was asked by is not known: it stays with its address.
    """
    receiver, slash, model = name.partition("/")
    names = names_of(settings, receiver)
    if not names or receiver in names or (slash and len(names) > 1):
        return name
    return f"{' and '.join(names)}{slash}{model} ({receiver})"


def _receivers(upstream: Upstream) -> set[str]:
    return {receiver(upstream, wire) for wire in upstream.bases}


def _preset(name: str) -> Upstream:
    preset = PRESETS[name]
    return Upstream(name, preset.bases, name, preset.keys, bearer=preset.bearer, stateless=preset.stateless)


def completed(own: Upstream) -> Upstream:
    """An upstream of the settings, completed by the preset that it names or that its name or address means."""
    known = own.preset or (own.name if own.name in PRESETS else "")
    known = known or next((found for url in own.bases.values() if (found := by_address(url))), "")
    preset = PRESETS.get(known)
    bases = own.bases or (preset.bases if preset else {})
    if preset is None:
        return own
    # A key goes to no host but its own: elsewhere the usual variables do not count.
    at_home = not own.bases or all(by_address(url) == known for url in own.bases.values())
    variables = preset.keys if at_home else ()
    own = replace(own, bases=bases, preset=known, key_variables=variables)
    return replace(own, bearer=preset.bearer, stateless=preset.stateless)


def flagged(flag: str, named: Mapping[str, Upstream]) -> Upstream | Refusal:
    if (there := by_name(named, flag)) is not None:
        return there
    head, _, tail = flag.partition("://")
    name, equals, scheme = head.rpartition("=")
    url = f"{scheme}://{tail}" if equals else flag
    try:
        where = urlsplit(url)
        usable = where.scheme in ("http", "https") and bool(where.hostname) and (where.port or 1) > 0
    except ValueError:
        usable = False
    if not usable:
        known = ", ".join(sorted(named))
        return Refusal(
            "invalid_input",
            f"{flag!r} is neither a known upstream nor an address",
            f"write [NAME=]http://HOST…, or one of {known}",
        )
    if where.username is not None:  # it would stand in receipts, lessons and lists
        return Refusal("invalid_input", "an upstream's address must not hold a login", "send the key in a header")
    bases: dict[WireName, str] = dict.fromkeys(_OWNERS, url)
    return completed(Upstream(name or by_address(url) or where.netloc, bases))
