"""Vision models by `provider/model`: how each provider is asked, and what stands in the way of asking it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from sightline.model.asking import LOCAL
from sightline.model.ports import Http, Seer, Store
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.upstream import Directory, Upstream, joined
from sightline.profiles import lookup
from sightline.profiles.lookup import Override, by_address
from sightline.settings import Settings
from sightline.settings.upstreams import by_name, completed, directory, receiver
from sightline.vision.capabilities import provider_of, supports_vision
from sightline.vision.seers import gemini, litellm, ollama
from sightline.vision.seers.chat_completions import ChatSeer
from sightline.vision.seers.loopback import SERVERS, is_elsewhere
from sightline.vision.seers.messages import MessagesSeer
from sightline.vision.seers.responses import ResponsesSeer
from sightline.vision.seers.wire_seer import WireSeer

SeerWire = WireName | Literal["ollama", "others"]
Consented = Callable[[str], bool | None]
"""Whether the user lets a provider have images; None: the user has not been asked."""

SEERS: Mapping[SeerWire, tuple[type[WireSeer], Callable[[str], str]]] = {
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
        made = make_seer(http, f"{named.provider}/{named.model}", named.model, named.upstream, named.wire, headers)
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


def make_seer(
    http: Http, name: str, model: str, upstream: Upstream, wire: SeerWire, headers: Mapping[str, str]
) -> WireSeer:
    """Return the seer that asks a model of an upstream on one of its wires."""
    kind, path = SEERS[wire]
    api = api_of(wire)
    base = upstream.base(api)
    url = joined(base.rstrip("/").removesuffix("/v1") if wire == "ollama" else base, path(model))
    made = kind(name, model, url, lookup.profile(upstream.preset, api, model).limits, http, headers)
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
    if lookup.profile(upstream.preset, wire, one.model, overrides_of(settings)).vision is False:
        return Refusal("invalid_input", f"{upstream.name}/{one.model} takes no images itself", "name a model that sees")
    return one


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


def local_servers(found: Directory) -> dict[str, str]:
    """The servers of vision models that are really on this machine, and where."""
    named = {name: found.named[name] for name in SERVERS}
    return {name: upstream.base("openai_chat") for name, upstream in named.items() if upstream.on_loopback}


def overrides_of(settings: Settings) -> list[Override]:
    return [
        Override(pattern, _flag(said, "vision"), _flag(said, "toolResultImages"))
        for pattern, said in settings.models.items()
    ]


def _flag(said: Mapping[str, Json], name: str) -> bool | None:
    value = said.get(name)
    return value if isinstance(value, bool) else None


ModelCheck = Literal["none", "not blind", "known to see"]
"""What has to be known of a model that a call names."""


class Providers:
    """The vision models that can be asked for by name, as the user's settings have them."""

    def __init__(self, settings: Settings, directory: Directory) -> None:
        self._settings = settings
        self.own = named_seer(settings, directory)  # the one that the settings name
        self.known = providers(settings, directory, self.own if isinstance(self.own, Named) else None)

    def find(self, model: str | None, check: ModelCheck) -> Named | Refusal | None:
        """Return the model that a call names, else the one of the settings; None: neither names any."""
        if model is None or (not model and check != "none"):
            return self.own
        one = meant(self.known, model)
        if check == "none":
            return one
        if isinstance(one, Refusal):
            return replace(one, what=f"VISION_NOT_SUPPORTED: {one.what}")
        one = one if one is OURS else seeing(self._settings, one)
        return self._check_known(one, model) if check == "known to see" else one

    def _check_known(self, one: Named | Refusal, model: str) -> Named | Refusal:
        """Return the model if it is the user's own choice, or known to see."""
        if isinstance(one, Refusal) or one is OURS:
            return one
        if isinstance(self.own, Named) and (one.provider, one.model) == (self.own.provider, self.own.model):
            return one
        if supports_vision(one.model, provider_of(one.upstream, self._settings), self._settings):
            return one
        what = f"VISION_NOT_SUPPORTED: {model:.80} is not known to see images"
        remedy = "name one that sees; the user's setting `models` can say that this one does"
        return Refusal("invalid_input", what, remedy)


def find_named_receiver(settings: Settings, model: str | None = None) -> str:
    """Return the provider that a call with this model would send images to; empty: none beyond this machine."""
    found = directory(settings)
    one = found if isinstance(found, Refusal) else Providers(settings, found).find(model, "not blind")
    if not isinstance(one, Named) or (one.upstream.on_loopback and one.receiver == one.provider):
        return ""
    return one.receiver


def is_consented(record: Store) -> Consented:
    """Return a function that says whether the user lets a provider have images."""
    return lambda provider: record.policy.read_consents().get(provider)
