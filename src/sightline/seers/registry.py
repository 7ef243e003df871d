"""Vision models by `provider/model`: how each provider is asked, and what stands in the way of asking it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sightline.model.asking import LOCAL
from sightline.model.ports import Http, Seer
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, joined
from sightline.profiles.lookup import profile
from sightline.seers import gemini, ollama, others
from sightline.seers.asking import WireSeer
from sightline.seers.chat import ChatSeer
from sightline.seers.loopback import is_elsewhere
from sightline.seers.messages import MessagesSeer
from sightline.seers.responses import ResponsesSeer

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
        http = others.Library() if named.wire == "others" else self._http
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
            return [*found, *filter(None, [others.missing(named.provider)])]
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
    if provider not in others.PROVIDERS or not model:
        return None
    return Named(provider, model, others.upstream(provider), "others")


def wire_of(upstream: Upstream) -> SeerWire:
    """How the models of an upstream are asked to look."""
    own = _OWN.get(upstream.preset)
    if own is not None and api_of(own) in upstream.bases:
        return own
    return next((wire for wire in _USUAL if wire in upstream.bases), "openai_chat")


def api_of(wire: SeerWire) -> WireName:
    """The kind of address below which a wire is found: Ollama's own is beside its OpenAI-compatible one."""
    return "openai_chat" if wire == "ollama" or wire == "others" else wire
