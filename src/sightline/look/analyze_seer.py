"""Who looks for a call: the model that it names, else the one of the settings, else one on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sightline.dial import Dialler
from sightline.engine.local import local_seer
from sightline.engine.shelf import Shelf
from sightline.look.capable import provider_of, supports_vision
from sightline.look.doors import Behalf, reading
from sightline.look.loop import at_end
from sightline.look.once import Alone
from sightline.look.upstreams import NOBODY, directory
from sightline.look.whole import named_seer, providers, proxies, registry, seeing, seers, unagreed
from sightline.model.ports import Seer, Store
from sightline.model.profile import Profile
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory, Visitor
from sightline.seers.choice import Seers
from sightline.seers.registry import OURS, Named, meant
from sightline.settings import Settings

_KEPT = 8  # for as many different settings
_ASKED = 16  # of as many different names
_NO_ONE = Refusal(
    "unavailable",
    "no model that could look was found",
    "start a vision model on this machine (for example `ollama pull qwen3-vl`), or name one: "
    "`sightline vision-proxy model PROVIDER/MODEL`",
)


@dataclass(frozen=True, slots=True)
class _Place:
    settings: Settings
    record: Store
    found: Directory
    dialler: Dialler
    asked: Shelf[tuple[Seers, Named | None]] = field(default_factory=lambda: Shelf(_ASKED))

    def seers(self, model: str, *, by_tool: bool) -> tuple[Seers, Named | None] | Refusal:
        """Who is asked where this model is named, and who that is: found out once, unless something is missing."""
        if known := self.asked.get((model, by_tool)):
            return known
        one = named(self.settings, self.found, model, by_tool=by_tool)
        if isinstance(one, Refusal):
            return one
        local = local_seer(self.settings.data, reading())
        fallen_to = local if not model or one is OURS else None  # whom a call names, it means
        made = seers(self.settings, self.found, one, self.record, self.dialler, fallen_to), one
        return made if isinstance(local, Refusal) else self.asked.put((model, by_tool), made)


_places: list[_Place] = []
_alone = Alone()


def _place(settings: Settings, record: Store) -> _Place | Refusal:
    with _alone:
        return _found(settings, record)


def _found(settings: Settings, record: Store) -> _Place | Refusal:
    for each in _places:
        if each.settings == settings and each.record is record:
            return each
    found = directory(settings)
    if isinstance(found, Refusal):
        return found
    dialler = Dialler(proxies(settings.environment))
    at_end(dialler.close)
    _places[_KEPT - 1 :] = []
    _places.insert(0, _Place(settings, record, found, dialler))
    return _places[0]


def named(settings: Settings, found: Directory, model: str, *, by_tool: bool = False) -> Named | Refusal | None:
    """The model of a call; without any, that of the settings. Whom a model names must be known to see."""
    own = named_seer(settings, found)
    one = _named(settings, found, own, model) if model else own
    if not (by_tool and model) or not isinstance(one, Named) or one is OURS:
        return one
    if isinstance(own, Named) and (one.provider, one.model) == (own.provider, own.model):
        return one
    if supports_vision(one.model, provider_of(one.upstream, settings), settings):
        return one
    what = f"VISION_NOT_SUPPORTED: {model:.80} is not known to see images"
    return Refusal("invalid_input", what, "name one that sees; the user's setting `models` can say that this one does")


def _named(settings: Settings, found: Directory, own: Named | Refusal | None, model: str) -> Named | Refusal:
    one = meant(providers(settings, found, own if isinstance(own, Named) else None), model)
    if isinstance(one, Refusal):
        return replace(one, what=f"VISION_NOT_SUPPORTED: {one.what}")
    return one if one is OURS else seeing(settings, one)


def receiver_of(settings: Settings, model: str) -> str:
    """The provider that a call with this model would send images to; empty: none beyond this machine."""
    found = directory(settings)
    one = found if isinstance(found, Refusal) else named(settings, found, model)
    if not isinstance(one, Named) or (one.upstream.on_loopback and one.receiver == one.provider):
        return ""
    return one.receiver


def receiver_unagreed(settings: Settings, record: Store, model: str, *, by_tool: bool = False) -> str:
    """The provider that only the user's consent keeps from being asked; empty: there is none."""
    place = _place(settings, record)
    one = place if isinstance(place, Refusal) else named(settings, place.found, model, by_tool=by_tool)
    if isinstance(place, Refusal) or not isinstance(one, Named):
        return ""
    return unagreed(registry(settings, place.found, None, record, place.dialler), one, record)


async def lookers(
    settings: Settings, record: Store, model: str, behalf: Behalf | None = None, *, by_tool: bool = False
) -> tuple[Sequence[Seer | Refusal], Named | None]:
    """Who may look, best first, and never nobody: a refusal says why one cannot be asked. And who was named."""
    place = _place(settings, record)
    found = place if isinstance(place, Refusal) else place.seers(model, by_tool=by_tool)
    if isinstance(found, Refusal):
        return [found], None
    asked, one = found
    nobody = Behalf(Visitor(NOBODY, "openai_chat", record.scope_of("")), Profile(NOBODY.name, "openai_chat", ""))
    whose = behalf or nobody
    return await asked.of(whose.visitor, whose.profile) or [_NO_ONE], one


os.register_at_fork(after_in_child=_places.clear)
