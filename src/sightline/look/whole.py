"""Settings in, an engine and all that it needs out: what the library and every door are built of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import cast
from urllib.parse import urlsplit

from sightline.dial import Dialler, ProxyFor
from sightline.engine import Engine, Options, SeersOf, known_profile
from sightline.engine.local import local_seer, readers
from sightline.engine.options import Grounds, Price
from sightline.look.doors import folders, granted
from sightline.look.grounds import coordinates_of
from sightline.look.upstreams import NOWHERE, Taken, by_name, completed, directory, receiver
from sightline.look.usage import cost
from sightline.model.asking import LOCAL, Usage
from sightline.model.ports import Http, Seer, Store
from sightline.model.profile import Profile, WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.upstream import Directory, Upstream
from sightline.pixels.worker import Workers
from sightline.profiles import lookup
from sightline.profiles.lookup import Override, by_address
from sightline.seers.choice import Named, Seers
from sightline.seers.loopback import SERVERS
from sightline.seers.prompt import INSTRUCTIONS, QUESTION
from sightline.seers.registry import NO_LOCAL, OURS, Consented, Registry, api_of, elsewhere, wire_of
from sightline.settings import Settings
from sightline.sources.file import Policy
from sightline.store import open_record


@dataclass(frozen=True, slots=True)
class Parts:
    """What a verb may need of the whole; `close` gives everything back."""

    settings: Settings
    record: Store
    dialler: Dialler
    directory: Directory
    seers: Seers
    registry: Registry
    workers: Workers
    readers: Workers  # of the local seer
    engine: Engine

    async def close(self) -> None:
        await self.readers.close()
        await self.dialler.close()
        await self.workers.close()
        self.record.close()


def parts(
    settings: Settings,
    flags: Sequence[str] = (),
    taken: Taken = NOWHERE,
    *,
    alone: bool = False,
    reach: Policy | None = None,
) -> Parts | Refusal:
    """`flags` are upstreams as the command line writes them: [NAME=]URL, or the NAME of a known one.

    `taken` is where an agent went before it was pointed here. `alone`: there is one agent, and what the flag names is
    for all that it asks. `reach` is where files may be looked for; None: where the user's own tools may look.
    """
    found = directory(settings, flags, taken, alone=alone)
    if isinstance(found, Refusal):
        return found
    named = named_seer(settings, found)
    if isinstance(named, Refusal):
        return named
    record = open_record(settings.folder, kind=settings.record)
    dialler = Dialler(proxies(settings.environment))
    workers, reading = Workers(), readers()
    local = local_seer(settings.data, reading)
    asked = seers(settings, found, named, record, dialler, local)
    known = registry(settings, found, named, record, dialler, local)
    references = settings.values["references"] is True
    driver = engine(settings, record, asked.of, workers, found, reach, references=references)
    return Parts(settings, record, dialler, found, asked, known, workers, reading, driver)


def seers(
    settings: Settings,
    found: Directory,
    named: Named | None,
    record: Store,
    dialler: Dialler,
    local: Seer | Refusal | None,
) -> Seers:
    return Seers(
        dialler,
        consented=_consented(record),
        named=named,
        loopback=local_servers(found),
        auto=settings.seer == "auto",
        local=local,
    )


def engine(
    settings: Settings,
    record: Store,
    asked: SeersOf,
    workers: Workers,
    found: Directory,
    reach: Policy | None = None,
    *,
    references: bool = False,
) -> Engine:
    """`references`: pasted images get theirs beside them, which a program that prepares a body has to ask for."""
    named = named_seer(settings, found)
    options = Options(
        instructions=settings.system_prompt or INSTRUCTIONS,
        question=QUESTION,
        mode=settings.mode,
        max_images=settings.max_images_per_turn,
        context=settings.values["includeContext"] is True,
        max_batch=cast("int", settings.values["maxBatch"]),
        alike=cast("float", settings.values["pHashSimilarityThreshold"]),
        joint_turns=settings.values["joint"] == "turn",
        price=price_of(settings, found),
        grounds=_grounds(settings, named if isinstance(named, Named) else None),
        boxes=settings.values["boxes"] is True,
        overrides=_overrides(settings),
        retention=settings.retention,
        hoist=settings.hoist,
        web=granted(network=settings.network),
        reach=lambda: folders(settings) if reach is None else reach,
        references=references,
        image_model=str(settings.values["imageModel"]),
    )
    return Engine(record, asked, options, workers)


def _grounds(settings: Settings, named: Named | None) -> Grounds:
    """Asked with every look; a client's words may be among the names."""
    return lru_cache(maxsize=256)(lambda seer: coordinates_of(settings, seer, named))


def price_of(settings: Settings, found: Directory) -> Price:
    """What a look has cost, by the list of the provider that made it: under its own name, or as it gets images."""
    named = named_seer(settings, found)
    own = {named.provider: named.upstream} if isinstance(named, Named) else {}
    known = {**{_receiver(each): each for each in found.named.values()}, **found.named, **own}

    def of(seer: str, usage: Usage) -> float | None:
        provider, _, model = seer.partition("/")
        upstream = OURS.upstream if provider == LOCAL else known.get(provider)
        return None if upstream is None else cost(upstream, model, usage)

    return of


def profile(settings: Settings, record: Store, upstream: Upstream, wire: WireName, model: str) -> Profile:
    return known_profile(record, upstream, wire, model, _overrides(settings), hoist=settings.hoist)


def named_seer(settings: Settings, found: Directory) -> Named | Refusal | None:
    """The vision model that the settings name."""
    if settings.named_seer is None:
        return None
    provider, model = settings.named_seer
    if LOCAL in (provider, provider or model):
        return OURS
    if settings.base_url:
        bases: dict[WireName, str] = {"openai_chat": settings.base_url}
        upstream = completed(Upstream(by_address(settings.base_url) or urlsplit(settings.base_url).netloc, bases))
    elif (known := by_name(found.named, provider)) is not None:
        upstream = known
    elif other := elsewhere(provider, model):
        return other
    else:
        names = ", ".join(sorted(found.named))
        return Refusal(
            "invalid_input",
            f"the vision model {model!r} names no known provider",
            f"set provider to one of {names}, or set baseUrl",
        )
    found_there = seer_at(settings, upstream, model, settings.seer_key)
    if isinstance(found_there, Named):
        return replace(found_there, said=provider)
    return None if settings.is_main_model else found_there


def seer_at(settings: Settings, upstream: Upstream, model: str, key: str = "") -> Named | Refusal:
    """A model of an upstream as one that looks; `key` where neither the upstream nor a usual variable has one."""
    return seeing(settings, replace(_provider(settings, upstream, key), model=model))


def seeing(settings: Settings, one: Named) -> Named | Refusal:
    """The model itself, unless it is known to take no images."""
    upstream, wire = one.upstream, api_of(one.wire)
    if lookup.profile(upstream.preset, wire, one.model, _overrides(settings)).vision is False:
        return Refusal("invalid_input", f"{upstream.name}/{one.model} takes no images itself", "name a model that sees")
    return one


def registry(
    settings: Settings,
    found: Directory,
    named: Named | None,
    record: Store,
    http: Http,
    local: Seer | Refusal = NO_LOCAL,
) -> Registry:
    """Everybody who can be asked for a model by name. The one whom the settings name is asked as they say."""
    return Registry(http, _consented(record), providers(settings, found, named), local)


def unagreed(known: Registry, one: Named, record: Store) -> str:
    """Who would get images, where the user's word is all that is missing; empty: it was given, or more is missing."""
    match [] if one is OURS else known.hindrances(one):
        case [Refusal(code="no_consent")] if one.receiver not in record.policy.read_consents():
            return one.receiver
    return ""


def providers(settings: Settings, found: Directory, named: Named | None) -> dict[str, Named]:
    """Of whom models can be asked for, by every name that the user may have for them."""
    own = {name: _provider(settings, each) for name, each in found.named.items() if each.bases}
    known = {each.provider: each for each in reversed(own.values())} | own
    if named is None or named is OURS or settings.named_seer is None:
        return known
    aliases = filter(None, (named.provider, settings.named_seer[0]))
    return known | {alias: replace(named, model="", said=alias) for alias in aliases}


def _provider(settings: Settings, upstream: Upstream, key: str = "") -> Named:
    own = upstream.api_key or settings.variable(upstream.key_variables)
    return Named(_receiver(upstream), "", upstream, wire_of(upstream), own or key)


def _receiver(upstream: Upstream) -> str:
    """Who gets the images that a model of it looks at."""
    return receiver(upstream, api_of(wire_of(upstream)))


def _consented(record: Store) -> Consented:
    return lambda provider: record.policy.read_consents().get(provider, False)


def local_servers(found: Directory) -> dict[str, str]:
    """The servers of vision models that are really on this machine, and where."""
    named = {name: found.named[name] for name in SERVERS}
    return {name: upstream.base("openai_chat") for name, upstream in named.items() if upstream.on_loopback}


def _overrides(settings: Settings) -> list[Override]:
    return [
        Override(pattern, _flag(said, "vision"), _flag(said, "toolResultImages"))
        for pattern, said in settings.models.items()
    ]


def _flag(said: Mapping[str, Json], name: str) -> bool | None:
    value = said.get(name)
    return value if isinstance(value, bool) else None


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
