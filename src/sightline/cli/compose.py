"""The composition root: settings and flags in, a proxy out. Nowhere else do the rooms meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from sightline.dial import Dialler, ProxyFor
from sightline.engine import Engine, Options, known_profile
from sightline.model.ports import Record
from sightline.model.profile import Api, Profile, WireName
from sightline.model.receipt import Receipt
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream
from sightline.pixels.worker import Workers
from sightline.profiles import lookup
from sightline.profiles.lookup import by_address
from sightline.profiles.presets import PRESETS
from sightline.seers.choice import Named, Seers
from sightline.seers.loopback import SERVERS
from sightline.seers.prompt import INSTRUCTIONS, QUESTION, version
from sightline.settings import Settings
from sightline.store import open_record
from sightline.surfaces.proxy.app import Proxy
from sightline.surfaces.proxy.routes import Directory

_OWNERS: Mapping[Api, str] = {
    "anthropic": "anthropic",
    "openai_chat": "openai",
    "openai_responses": "openai",
    "gemini": "gemini",
}


@dataclass(frozen=True, slots=True)
class Parts:
    """What a verb may need of the whole; `close` gives everything back."""

    settings: Settings
    record: Record
    dialler: Dialler
    directory: Directory
    seers: Seers
    workers: Workers
    engine: Engine

    async def close(self) -> None:
        await self.dialler.close()
        await self.workers.close()
        self.record.close()


def parts(
    settings: Settings, flags: Sequence[str] = (), taken: Mapping[Api, str] | None = None, *, alone: bool = False
) -> Parts | Refusal:
    """`flags` are upstreams as the command line writes them: [NAME=]URL, or the NAME of a known one.

    `taken` are the addresses that an agent used for each wire before it was pointed here. `alone`: there is one
    agent, and what the flag names is for all that it asks.
    """
    found = directory(settings, flags, taken, alone=alone)
    if isinstance(found, Refusal):
        return found
    named = named_seer(settings, found)
    if isinstance(named, Refusal):
        return named
    record = open_record(settings.folder, kind=settings.record)
    dialler = Dialler(proxies(settings.environment))
    workers = Workers()
    instructions = settings.system_prompt or INSTRUCTIONS
    options = Options(
        instructions=instructions,
        question=QUESTION,
        prompt=version(instructions),
        mode=settings.mode,
        max_images=settings.max_images_per_turn,
        overrides=_overrides(settings),
    )
    seers = Seers(
        dialler,
        consented=lambda provider: record.consents().get(provider, False),
        named=named,
        loopback=local_servers(found),
        auto=settings.seer == "auto",
    )
    return Parts(settings, record, dialler, found, seers, workers, Engine(record, seers.of, options, workers))


def profile(settings: Settings, record: Record, upstream: Upstream, wire: WireName, model: str) -> Profile:
    return known_profile(record, upstream, wire, model, _overrides(settings))


def proxy(whole: Parts, say: Callable[[Receipt], None] = lambda receipt: None, patience: float = 10.0) -> Proxy:
    return Proxy(whole.engine, whole.dialler, whole.directory, whole.record, say, patience)


def directory(
    settings: Settings, flags: Sequence[str] = (), taken: Mapping[Api, str] | None = None, *, alone: bool = False
) -> Directory | Refusal:
    """Every upstream that can be named, and who owns each wire."""
    named = {name: _preset(name) for name in PRESETS}
    for name, own in settings.upstreams.items():
        named[name] = _own(own)
    owners = {wire: named[name] for wire, name in _OWNERS.items()}
    for api, url in (taken or {}).items():
        there = (each for each in named.values() if each.bases.get(api, "").rstrip("/") == url.rstrip("/"))
        upstream = next(there, None) or _flagged(url, named)
        if isinstance(upstream, Refusal):
            return upstream
        owners[api] = upstream
    for flag in flags:
        upstream = _flagged(flag, named)
        if isinstance(upstream, Refusal):
            return upstream
        named[upstream.name] = upstream
        # An upstream given on the command line takes the wires it serves; a named one only those it owns.
        bare = alone or "=" not in flag.partition("://")[0]
        for wire in owners:
            if bare or owners[wire].name == upstream.name:
                owners[wire] = upstream
    return Directory(named, owners)


def named_seer(settings: Settings, found: Directory) -> Named | Refusal | None:
    """The vision model that the settings name."""
    if settings.named_seer is None:
        return None
    provider, model = settings.named_seer
    if settings.base_url:
        bases: dict[Api, str] = {"openai_chat": settings.base_url}
        upstream = _own(Upstream(by_address(settings.base_url) or urlsplit(settings.base_url).netloc, bases))
    elif provider in found.named:
        upstream = found.named[provider]
    else:
        known = ", ".join(sorted(found.named))
        return Refusal(
            "invalid_input",
            f"the vision model {model!r} names no known provider",
            f"set provider to one of {known}, or set baseUrl",
        )
    wire: WireName = "openai_chat" if "openai_chat" in upstream.bases else "anthropic"
    if lookup.profile(upstream.preset, wire, model, _overrides(settings)).vision is False:
        if settings.is_main_model:
            return None
        return Refusal("invalid_input", f"{upstream.name}/{model} takes no images itself", "name a model that sees")
    key = upstream.api_key or settings.variable(upstream.key_variables) or settings.seer_key
    return Named(receiver(upstream), model, upstream, wire, key)


def local_servers(found: Directory) -> dict[str, str]:
    """The servers of vision models that are really on this machine, and where."""
    named = {name: found.named[name] for name in SERVERS}
    return {name: upstream.base("openai_chat") for name, upstream in named.items() if upstream.on_loopback}


def receiver(upstream: Upstream) -> str:
    """The name under which consent is given to an upstream: its preset's at its known address, else its host."""
    address = upstream.base("openai_chat")
    return by_address(address) or urlsplit(address).netloc


def _preset(name: str) -> Upstream:
    preset = PRESETS[name]
    return Upstream(name, preset.bases, name, preset.keys, bearer=preset.bearer)


def _own(own: Upstream) -> Upstream:
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
    return replace(own, bases=bases, preset=known, key_variables=variables, bearer=preset.bearer)


def _flagged(flag: str, named: Mapping[str, Upstream]) -> Upstream | Refusal:
    if flag in named:
        return named[flag]
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
    bases: dict[Api, str] = dict.fromkeys(_OWNERS, url)
    return _own(Upstream(name or by_address(url) or where.netloc, bases))


def _overrides(settings: Settings) -> list[tuple[str, bool]]:
    return [
        (pattern, sees) for pattern, said in settings.models.items() if isinstance(sees := said.get("vision"), bool)
    ]


def proxies(environment: Mapping[str, str]) -> ProxyFor:
    """The proxies that the environment names, in either case, for every host that it does not except."""
    lowered = {name.lower(): value for name, value in environment.items() if name.lower().endswith("_proxy") and value}

    excepted = [name.strip().lstrip(".") for name in lowered.get("no_proxy", "").lower().split(",") if name.strip()]

    def proxy_for(scheme: str, host: str) -> str | None:
        if any(name in ("*", host) or host.endswith(f".{name}") for name in excepted):
            return None
        found = lowered.get(f"{scheme}_proxy") or lowered.get("all_proxy")
        return found if found is None or "://" in found else f"http://{found}"

    return proxy_for
