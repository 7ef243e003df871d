"""Who answers a question about a file, and what it can take: the call's model, the settings', or one found here."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sightline.dial import Dialler
from sightline.engine.local import local_seer
from sightline.look.ask_envelope import Unanswered
from sightline.look.capable import provider_of, supports_pdf, supports_video, supports_vision
from sightline.look.doors import reading
from sightline.look.loop import at_end
from sightline.look.once import once
from sightline.look.upstreams import directory
from sightline.look.whole import local_servers, named_seer, proxies, registry, unagreed
from sightline.model.asking import LOCAL
from sightline.model.ports import Http, Seer, Store
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory, Upstream
from sightline.seers.choice import nobody
from sightline.seers.loopback import found
from sightline.seers.registry import OURS, Named, Registry, meant
from sightline.settings import Settings

_NOBODY = Unanswered(
    "VISION_NOT_SUPPORTED",
    "no model is named, and the setting `seer` is off (name one as PROVIDER/MODEL, or set seer to auto)",
)


@dataclass(frozen=True, slots=True)
class Chosen:
    named: Named
    registry: Registry
    record: Store
    http: Http
    vision: bool
    pdf: bool
    video: bool
    nobody: Refusal | None = None  # said of everybody, where nobody is named and nothing reads here
    instead: Refusal | None = None  # why the one whom the settings name is not asked

    @property
    def upstream(self) -> Upstream:
        return self.named.upstream

    @property
    def receiver(self) -> str:
        """Who would get the file, where the user's word is all that is missing."""
        return unagreed(self.registry, self.named, self.record)

    @property
    def absent(self) -> Refusal | None:
        """Why what reads on this machine cannot, where that is who is meant."""
        local = self.registry.local
        return local if self.named is OURS and isinstance(local, Refusal) else None

    @property
    def shown(self) -> str:
        return LOCAL if self.named is OURS else f"{self.upstream.name}/{self.named.model}"

    def seer(self) -> Seer | Unanswered:
        """The provider itself, if it may and can be asked."""
        made = self.nobody or self.registry.seer(self.named)
        return Unanswered("VISION_NOT_SUPPORTED", str(made)) if isinstance(made, Refusal) else made


async def chosen(settings: Settings, record: Store, model: str | None, *, agreed: bool = False) -> Chosen | Unanswered:
    """`agreed`: as if the user let whoever is named have the file."""
    known = directory(settings)
    own = known if isinstance(known, Refusal) else named_seer(settings, known)
    if isinstance(known, Refusal) or (isinstance(own, Refusal) and model is None):
        return Unanswered("VISION_NOT_SUPPORTED", str(own))
    if isinstance(own, Refusal):  # what the settings name is of no use, and nobody asks for it
        own = None
    http = _dialler(_proxy_variables(settings.environment))
    reached = registry(settings, known, own, record, http, local_seer(settings.data, reading()))
    ours = Chosen(OURS, reached, record, http, vision=True, pdf=False, video=False)
    if model is None:
        here = await _unnamed(settings, known, ours) if own is None else None if agreed else _instead_of(own, ours)
        if here is not None:
            return here
    one = own if model is None else meant(reached.providers, model)
    if one is OURS:
        return ours
    if isinstance(one, Refusal):
        return Unanswered("VISION_NOT_SUPPORTED", str(one))
    assert one is not None
    provider = provider_of(one.upstream, settings)
    return Chosen(
        one,
        reached,
        record,
        http,
        vision=supports_vision(one.model, provider, settings),
        pdf=supports_pdf(one.model, provider, settings),
        video=supports_video(one.model, provider, settings),
    )


async def _unnamed(settings: Settings, known: Directory, ours: Chosen) -> Chosen | Unanswered:
    """With nobody named: a model of this machine that says of itself that it sees, else what reads here."""
    if settings.seer != "auto":
        return _NOBODY
    here = next(iter(await found(ours.http, local_servers(known))), None)
    if here is None:
        local = ours.registry.local
        return replace(ours, nobody=nobody(local)) if isinstance(local, Refusal) else ours
    return replace(ours, named=replace(ours.registry.providers[here.server], model=here.model))


def _instead_of(named: Named, ours: Chosen) -> Chosen | None:
    """What reads here, as long as the user has not agreed that the named one gets images."""
    if named is OURS or isinstance(ours.registry.local, Refusal):
        return None
    no = next((each for each in ours.registry.hindrances(named) if each.code == "no_consent"), None)
    return replace(ours, instead=no) if no else None


def _proxy_variables(environment: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, value) for name, value in environment.items() if name.lower().endswith("_proxy"))


@once
def _dialler(variables: frozenset[tuple[str, str]]) -> Dialler:
    """One for all calls under the same proxies: connections are kept and used again."""
    made = Dialler(proxies(dict(variables)))
    at_end(made.close)
    return made


os.register_at_fork(after_in_child=_dialler.cache_clear)
