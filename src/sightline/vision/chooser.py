"""Choose who looks: the model that the user named, else the upstream's own sibling that sees, else one found here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeGuard

from sightline.model.asking import LOCAL
from sightline.model.ports import Http, Seer
from sightline.model.profile import Profile, WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, Visitor, joined
from sightline.profiles.lookup import profile
from sightline.vision.seers import gemini, litellm, ollama
from sightline.vision.seers.chat_completions import ChatSeer
from sightline.vision.seers.loopback import Found, found, is_elsewhere
from sightline.vision.seers.messages import MessagesSeer
from sightline.vision.seers.ollama import OllamaSeer
from sightline.vision.seers.responses import ResponsesSeer
from sightline.vision.seers.wire_seer import WireSeer

SeerWire = WireName | Literal["ollama", "others"]
Consented = Callable[[str], bool]

_KINDS: Mapping[SeerWire, tuple[type[WireSeer], Callable[[str], str]]] = {
    "anthropic": (MessagesSeer, lambda model: "/v1/messages"),
    "openai_chat": (ChatSeer, lambda model: "/v1/chat/completions"),
    "openai_responses": (ResponsesSeer, lambda model: "/v1/responses"),
    "gemini": (gemini.GeminiSeer, gemini.stream_path),
    "ollama": (ollama.OllamaSeer, lambda model: ollama.PATH),
    "others": (ChatSeer, lambda model: "/v1/chat/completions"),
}
# Where a provider's own wire can do more than Chat Completions, which all others are asked on.
_OWN: Mapping[str, SeerWire] = {
    "anthropic": "anthropic",
    "openai": "openai_responses",
    "chatgpt": "openai_responses",
    "gemini": "gemini",
    "ollama": "ollama",
    "ollama-cloud": "ollama",
}
_USUAL: tuple[WireName, ...] = ("openai_chat", "anthropic", "openai_responses", "gemini")
# They know JSON as a wish, but refuse a request that says which.
_UNSHAPED = frozenset({"deepseek", "zai", "zai-coding", "moonshot", "kimi-coding", "minimax"})
_CLOUD = "ollama-cloud"
NO_LOCAL = Refusal(
    "unavailable",
    "nothing here reads images by itself",
    "name a model as PROVIDER/MODEL, or start a vision model in Ollama",
)


@dataclass(frozen=True, slots=True)
class Named:
    """A vision model that somebody names; without a model, the provider that it would be asked of."""

    provider: str  # as consent is given to it
    model: str
    upstream: Upstream
    wire: SeerWire = "openai_chat"
    api_key: str = field(default="", repr=False)
    said: str = ""  # the provider, as the user names it

    @property
    def names(self) -> tuple[str, ...]:
        """All names that somebody may use for this model."""
        known = dict.fromkeys((self.said, self.upstream.name, self.provider))
        return tuple(f"{name}/{self.model}" for name in known if name)

    @property
    def shown(self) -> str:
        """The model, or what its place would be, as people read it."""
        name = f"{self.upstream.name}/{self.model or 'MODEL'}"
        return name if self.upstream.name == self.provider else f"{name} ({self.provider})"

    @property
    def receiver(self) -> str:
        """Who gets the image: a server of this machine may pass it on."""
        return _CLOUD if self.upstream.on_loopback and is_elsewhere(self.model) else self.provider


OURS = Named(LOCAL, LOCAL, Upstream(LOCAL, {}))
"""What reads on this machine, where somebody names it."""


def meant(providers: Mapping[str, Named], name: str) -> Named | Refusal:
    """Whom somebody means by `provider/model`. A model alone is nobody's: several serve models of one name."""
    provider, _, model = name.partition("/")
    if provider == LOCAL:
        return OURS
    if model and provider in providers:
        return replace(providers[provider], model=model)
    known = ", ".join(sorted({*providers, LOCAL}))
    no = Refusal("invalid_input", f"{name!r:.80} names no known provider", f"write PROVIDER/MODEL; known are {known}")
    return elsewhere(provider, model) or no


class Registry:
    """The seers of those who are named; a refusal says why one cannot be asked."""

    def __init__(
        self,
        http: Http,
        consented: Consented,
        providers: Mapping[str, Named] | None = None,
        local: Seer | Refusal = NO_LOCAL,
    ) -> None:
        self._http = http
        self._consented = consented
        self.local = local
        self.providers = dict(providers or {})
        self._here: dict[str, set[str]] = {}  # by their server's address, models of Ollama that run on this machine

    def seer(self, named: Named) -> Seer | Refusal:
        if named.provider == LOCAL:
            return self.local
        for hindrance in self.hindrances(named):
            return hindrance
        api = api_of(named.wire)
        headers = dict([named.upstream.credential(api, named.api_key)]) if named.api_key else {}
        http = litellm.Library() if named.wire == "others" else self._http
        made = seer(http, f"{named.provider}/{named.model}", named.model, named.upstream, named.wire, headers)
        made = replace(made, shown=named.shown)
        if isinstance(made, ollama.OllamaSeer) and named.upstream.on_loopback and not self._consented(_CLOUD):
            return replace(made, unagreed=_unagreed(made.name, _CLOUD), here=self._here.setdefault(made.url, set()))
        return made

    def hindrances(self, named: Named) -> list[Refusal]:
        """All that stands in the way of asking, the user's consent first."""
        name, receiver = named.shown, named.receiver
        here = named.upstream.on_loopback
        found = []
        if (not here or receiver != named.provider) and not self._consented(receiver):
            found.append(_unagreed(name, receiver))
        if named.wire == "others":  # the library knows where its keys are
            return [*found, *filter(None, [litellm.missing(named.provider)])]
        if not named.api_key and not here:
            variable = next(iter(named.upstream.key_variables), "its key variable")
            found.append(Refusal("unavailable", f"there is no key for {name}", f"the user sets {variable}"))
        return found


def _unagreed(name: str, receiver: str) -> Refusal:
    what = f"{name} may look at it only when the user agrees that images are sent to {receiver}"
    return Refusal("no_consent", what, f"the user runs: sightline consent yes {receiver}")


def seer(http: Http, name: str, model: str, upstream: Upstream, wire: SeerWire, headers: Mapping[str, str]) -> WireSeer:
    """A model of an upstream, asked on one of its wires."""
    kind, path = _KINDS[wire]
    api = api_of(wire)
    base = upstream.base(api)
    url = joined(base.rstrip("/").removesuffix("/v1") if wire == "ollama" else base, path(model))
    made = kind(name, model, url, profile(upstream.preset, api, model).limits, http, headers)
    return replace(made, shapes=False) if isinstance(made, ChatSeer) and upstream.preset in _UNSHAPED else made


def elsewhere(provider: str, model: str) -> Named | None:
    """A model of a provider that only a library of many providers reaches."""
    if provider not in litellm.PROVIDERS or not model:
        return None
    return Named(provider, model, litellm.upstream(provider), "others")


def wire_of(upstream: Upstream) -> SeerWire:
    """How the models of an upstream are asked to look."""
    own = _OWN.get(upstream.preset)
    if own is not None and api_of(own) in upstream.bases:
        return own
    return next((wire for wire in _USUAL if wire in upstream.bases), "openai_chat")


def api_of(wire: SeerWire) -> WireName:
    """The kind of address below which a wire is found: Ollama's own is beside its OpenAI-compatible one."""
    return "openai_chat" if wire == "ollama" or wire == "others" else wire


__all__ = ["Named", "Seers"]

_SERVED: tuple[WireName, ...] = ("openai_chat", "anthropic")  # by nearly every upstream that has a sibling
_OPENAIS = ("openai_chat", "openai_responses")  # take the same credential in the same header
_FRESH_SECONDS = 300.0  # servers load other models, and end
_CREDENTIALS = ("authorization", "x-goog-api-key", "x-api-key", "api-key")


class Seers:
    """Finds the seers for a visitor, best first; a refusal says why one cannot be asked."""

    def __init__(
        self,
        http: Http,
        consented: Consented,
        named: Named | None = None,
        loopback: Mapping[str, str] | None = None,
        auto: bool = True,
        local: Seer | Refusal | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http = http
        self._registry = Registry(http, consented, local=local or NO_LOCAL)
        self._local = local
        self._named = named
        self._loopback = dict(loopback or {})
        self._auto = auto
        self._clock = clock
        self._found: asyncio.Task[list[Found]] | None = None
        self._asked = 0.0  # when

    async def of(self, visitor: Visitor, profile: Profile) -> list[Seer | Refusal]:
        if self._named is not None:
            return self._asked_for(await self._agreed(self._registry.seer(self._named)))
        if not self._auto:
            return []
        sibling = self._sibling(visitor, profile)
        found: list[Seer | Refusal] = [sibling] if sibling else []
        found += [self._loopback_seer(one) for one in await self.on_this_machine()]
        if isinstance(self._local, Refusal):
            return found or [nobody(self._local)]
        return found + ([self._local] if self._local is not None else [])

    async def _agreed(self, named: Seer | Refusal) -> Seer | Refusal:
        """Nobody of whom his server says that he is elsewhere, where the user has not agreed to that."""
        no = await named.hindrance() if isinstance(named, OllamaSeer) else None
        return no if no is not None and no.code == "no_consent" else named

    def _asked_for(self, named: Seer | Refusal) -> list[Seer | Refusal]:
        """Until the user agrees that the named one gets images, nothing leaves the machine, and something is read."""
        unagreed = isinstance(named, Refusal) and named.code == "no_consent"
        return [named, self._local] if unagreed and _is_seer(self._local) else [named]

    async def on_this_machine(self) -> list[Found]:
        """The vision models on loopback. None found: asked again the next time, somebody may have started one."""
        if self._found is None or (self._found.done() and self._is_stale(self._found)):
            self._asked = self._clock()
            self._found = asyncio.ensure_future(found(self._http, self._loopback))
        return await asyncio.shield(self._found)

    def _is_stale(self, asked: asyncio.Task[list[Found]]) -> bool:
        return asked.cancelled() or not asked.result() or self._clock() - self._asked >= _FRESH_SECONDS

    def _sibling(self, visitor: Visitor, profile: Profile) -> Seer | None:
        """The client itself addressed the image to this provider: its own credential goes nowhere else."""
        if profile.sibling is None or (profile.sibling == profile.model and profile.vision is False):
            return None
        wire = _asked_on(visitor)
        if wire is None:
            return None
        name = f"{visitor.upstream.name}/{profile.sibling}"
        return seer(self._http, name, profile.sibling, visitor.upstream, wire, _lent(visitor, wire))

    def _loopback_seer(self, one: Found) -> Seer:
        upstream = Upstream(one.server, {"openai_chat": one.base}, preset=one.server)
        return seer(self._http, f"{one.server}/{one.model}", one.model, upstream, "openai_chat", {})


def nobody(local: Refusal) -> Refusal:
    """Said where nobody is named, no model was found, and what reads on this machine cannot, either."""
    what = f"no model that could look was found, and {local.what}"
    others = "start a vision model here (for example `ollama pull qwen3-vl`)"
    return replace(
        local,
        what=what,
        remedy=f"{local.remedy}, or {others}, or name one: `sightline vision-proxy model PROVIDER/MODEL`",
    )


def _is_seer(one: Seer | Refusal | None) -> TypeGuard[Seer]:
    return one is not None and not isinstance(one, Refusal)


def _asked_on(visitor: Visitor) -> WireName | None:
    """The wire on which the upstream is asked to look: the visitor's own, else one that it serves beside that."""
    if visitor.wire in _SERVED:
        return visitor.wire
    return next((wire for wire in _SERVED if wire in visitor.upstream.bases), None)


def _lent(visitor: Visitor, wire: WireName) -> Mapping[str, str]:
    """The client's headers, with its credential in the header that this wire has for it."""
    headers = dict(visitor.headers)
    if wire == visitor.wire or (wire in _OPENAIS and visitor.wire in _OPENAIS):
        return headers
    given = next((headers[name] for name in _CREDENTIALS if name in headers), "")
    kept = {name: value for name, value in headers.items() if name not in _CREDENTIALS}
    if given:
        name, value = visitor.upstream.credential(wire, given.removeprefix("Bearer "))
        kept[name] = value
    return kept
