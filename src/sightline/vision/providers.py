"""Vision models by `provider/model`: how to reach each provider from the settings, and what it costs."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Literal
from urllib.parse import urlsplit

from sightline.model.ports import HttpSender, PolicyStore
from sightline.model.profile import Upstream, UpstreamDirectory, WireName, join_url
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import LOCAL_SEER, Usage
from sightline.model.value import value_class
from sightline.profiles import profile_lookup
from sightline.profiles.presets import PRESET_ALIASES
from sightline.profiles.profile_lookup import ProfileOverride, find_preset_name
from sightline.settings import Settings
from sightline.settings.setting_kinds import API_KEY_NAME
from sightline.settings.upstreams import build_directory, complete_upstream, find_upstream, get_consent_name
from sightline.vision.capabilities import get_provider_name, supports_vision, write_declaration
from sightline.vision.seers import WireSeer, gemini, litellm_client
from sightline.vision.seers.loopback import LOOPBACK_SERVERS, OLLAMA_PATH, OllamaSeer, is_cloud_name
from sightline.vision.seers.messages import MessagesSeer
from sightline.vision.seers.openai import ChatSeer, ResponsesSeer

_log = logging.getLogger(__name__)

SeerWire = WireName | Literal["ollama", "others"]
ReadConsent = Callable[[str], bool | None]
"""Returns whether the user consents to sending images to a provider; None: the user has not decided."""

SEER_TYPES: Mapping[SeerWire, tuple[type[WireSeer], Callable[[str], str]]] = {
    "anthropic": (MessagesSeer, lambda model: "/v1/messages"),
    "openai_chat": (ChatSeer, lambda model: "/v1/chat/completions"),
    "openai_responses": (ResponsesSeer, lambda model: "/v1/responses"),
    "gemini": (gemini.GeminiSeer, gemini.build_stream_path),
    "ollama": (OllamaSeer, lambda model: OLLAMA_PATH),
    "others": (ChatSeer, lambda model: "/v1/chat/completions"),
}
# Providers whose own API can do more than Chat Completions, which is used for all others.
_NATIVE_WIRES: Mapping[str, SeerWire] = {
    "anthropic": "anthropic",
    "openai": "openai_responses",
    "chatgpt": "openai_responses",
    "gemini": "gemini",
    "ollama": "ollama",
    "ollama-cloud": "ollama",
}
_WIRES_IN_ORDER: tuple[WireName, ...] = ("openai_chat", "anthropic", "openai_responses", "gemini")
# They can answer in JSON, but reject requests with a schema.
_WITHOUT_SCHEMAS = frozenset({"deepseek", "zai", "zai-coding", "moonshot", "kimi-coding", "minimax"})
OLLAMA_CLOUD = "ollama-cloud"
GET_VISION_MODEL = (
    "`ollama pull qwen3-vl` to get a vision model for this machine, or `sightline config set seer PROVIDER/MODEL`"
    " to name one"
)
NO_LOCAL_READER = Refusal(
    "unavailable",
    "no local reader is available",
    "name a model as PROVIDER/MODEL, or start a vision model in Ollama",
)


@value_class
class VisionModel:
    """A vision model at a provider; with an empty `model`, just the provider."""

    provider: str  # the name under which the user consents to it
    model: str
    upstream: Upstream
    wire: SeerWire = "openai_chat"
    api_key: str = field(default="", repr=False)
    alias: str = ""  # the user's own name for the provider
    key_name: str = ""  # the setting or the variable that has the key

    @property
    def all_names(self) -> tuple[str, ...]:
        """All names under which the user may know this model."""
        providers = dict.fromkeys((self.alias, self.upstream.name, self.provider))
        return tuple(f"{name}/{self.model}" for name in providers if name)

    @property
    def display_name(self) -> str:
        """The name of the model in messages to people, with the provider that gets the images if that differs."""
        name = f"{self.upstream.name}/{self.model or 'MODEL'}"
        return name if self.upstream.name == self.provider else f"{name} ({self.provider})"

    @property
    def receiver(self) -> str:
        """The provider that gets the image: a server on this machine may pass it on."""
        return OLLAMA_CLOUD if self.upstream.is_on_loopback and is_cloud_name(self.model) else self.provider


LOCAL_READER = VisionModel(LOCAL_SEER, LOCAL_SEER, Upstream(LOCAL_SEER, {}))
"""The local reader, as a model that can be named."""


def find_named_model(providers: Mapping[str, VisionModel], name: str) -> VisionModel | Refusal:
    """Return the model that `provider/model` names. A provider is required: several serve models of the same name."""
    provider, _, model = name.partition("/")
    if provider == LOCAL_SEER:
        return LOCAL_READER
    if model and (known := providers.get(provider) or providers.get(PRESET_ALIASES.get(provider, ""))):
        return replace(known, model=model)
    if other := find_litellm_model(provider, model):
        return other
    names = ", ".join(sorted({*providers, LOCAL_SEER}))
    what = "has no known provider" if model and provider else "names no provider"
    return Refusal(
        "invalid_input", f"the model {name!r:.80} {what}", f"write PROVIDER/MODEL, with one of these providers: {names}"
    )


def make_wire_seer(
    http: HttpSender, name: str, model: str, upstream: Upstream, wire: SeerWire, headers: Mapping[str, str]
) -> WireSeer:
    """Return the seer for a model of an upstream on one of its wires."""
    kind, path = SEER_TYPES[wire]
    api = get_base_wire(wire)
    base = upstream.get_base(api)
    url = join_url(base.rstrip("/").removesuffix("/v1") if wire == "ollama" else base, path(model))
    seer = kind(name, model, url, profile_lookup.look_up_profile(upstream.preset, api, model).limits, http, headers)
    if isinstance(seer, ChatSeer) and upstream.preset in _WITHOUT_SCHEMAS:
        return replace(seer, takes_schema=False)
    return seer


def find_litellm_model(provider: str, model: str) -> VisionModel | None:
    """Return a model of a provider that is only reached through LiteLLM."""
    if provider not in litellm_client.LITELLM_PROVIDERS or not model:
        return None
    return VisionModel(provider, model, litellm_client.make_upstream(provider), "others")


def find_seer_wire(upstream: Upstream) -> SeerWire:
    """Return the wire for the vision models of an upstream."""
    own = _NATIVE_WIRES.get(upstream.preset)
    if own is not None and get_base_wire(own) in upstream.bases:
        return own
    return next((wire for wire in _WIRES_IN_ORDER if wire in upstream.bases), "openai_chat")


def get_base_wire(wire: SeerWire) -> WireName:
    """Return the wire whose base address is used: Ollama's own API is found beside its OpenAI-compatible one."""
    return "openai_chat" if wire == "ollama" or wire == "others" else wire


def find_configured_model(settings: Settings, directory: UpstreamDirectory) -> VisionModel | Refusal | None:
    """Return the vision model that the settings name; None: they name none."""
    if settings.named_seer is None:
        return None
    provider, model = settings.named_seer
    if LOCAL_SEER in (provider, provider or model):
        return LOCAL_READER
    if settings.base_url:
        upstream = _move_upstream(directory, provider, settings.base_url)
    elif (known := find_upstream(directory.by_name, provider)) is not None:
        upstream = known
    elif other := find_litellm_model(provider, model):
        return other
    else:
        names = ", ".join(sorted(directory.by_name))
        return Refusal(
            "invalid_input",
            f"the vision model {'/'.join(filter(None, (provider, model)))!r} names no known provider",
            f"run: sightline config set seer PROVIDER/MODEL, with one of these providers: {names}; or set baseUrl",
        )
    named = replace(_make_provider(settings, upstream, settings.api_key_name), model=model, alias=provider)
    found = check_not_blind(settings, named)
    return None if isinstance(found, Refusal) and settings.uses_main_model else found


def _move_upstream(directory: UpstreamDirectory, provider: str, address: str) -> Upstream:
    """Return a provider at another address: with its own wire and its way to send a key, but without its key.

    OpenAI's own wire is Chat Completions then, because most servers that are compatible with it have no other.
    """
    known = find_upstream(directory.by_name, provider) or directory.by_name.get(find_preset_name(address))
    wire = get_base_wire(find_seer_wire(known)) if known and known.preset != "openai" else "openai_chat"
    name = find_preset_name(address) or urlsplit(address).netloc
    return complete_upstream(Upstream(name, {wire: address}, known.preset if known else ""))


def check_not_blind(settings: Settings, model: VisionModel) -> VisionModel | Refusal:
    """Return the model, or a refusal if it is known to take no images."""
    upstream, wire, overrides = model.upstream, get_base_wire(model.wire), read_overrides(settings)
    names = filter(None, dict.fromkeys((model.alias, upstream.name, model.provider)))
    known = [profile_lookup.look_up_profile(upstream.preset, wire, model.model, overrides, name=name) for name in names]
    if next((each for each in known if each.vision_by_user), known[0]).vision is False:
        what = f"{upstream.name}/{model.model} takes text only"
        return Refusal("invalid_input", what, "name a vision model")
    return model


def list_providers(
    settings: Settings, directory: UpstreamDirectory, named: VisionModel | None
) -> dict[str, VisionModel]:
    """Return the providers whose models can be asked, by every name that the user may have for them."""
    own = {name: _make_provider(settings, each) for name, each in directory.by_name.items() if each.bases}
    known = {each.provider: each for each in reversed(own.values())} | own
    if named is None or named is LOCAL_READER or settings.named_seer is None:
        return known
    aliases = filter(None, (named.provider, settings.named_seer[0]))
    return known | {alias: replace(named, model="", alias=alias) for alias in aliases}


def _make_provider(settings: Settings, upstream: Upstream, key_name: str = "") -> VisionModel:
    name, key = find_upstream_key(settings, upstream)
    if key_name and (not key or key_name != API_KEY_NAME):  # the auxiliary model's own key comes first
        name, key = key_name, str(settings.json_values[key_name])
    wire = find_seer_wire(upstream)
    return VisionModel(_find_receiver(upstream), "", upstream, wire, key, key_name=name if key else "")


def find_upstream_key(settings: Settings, upstream: Upstream) -> tuple[str, str]:
    """Return the key for an upstream, after the name of the setting or variable that has it. Both may be empty."""
    if upstream.api_key:
        return f"upstreams.{upstream.name}.{API_KEY_NAME}", upstream.api_key
    return settings.find_variable_name(upstream.key_variables), settings.find_variable(upstream.key_variables)


def _find_receiver(upstream: Upstream) -> str:
    """Return the provider that gets the images for a model of this upstream."""
    return get_consent_name(upstream, get_base_wire(find_seer_wire(upstream)))


def find_loopback_servers(directory: UpstreamDirectory) -> dict[str, str]:
    """Return the model servers that are really on this machine, with their addresses."""
    named = {name: directory.by_name[name] for name in LOOPBACK_SERVERS}
    return {name: upstream.get_base("openai_chat") for name, upstream in named.items() if upstream.is_on_loopback}


def read_overrides(settings: Settings) -> list[ProfileOverride]:
    """Return what the setting `models` says about the models that match each pattern."""
    return [
        ProfileOverride(pattern, _read_flag(facts, "vision"), _read_flag(facts, "toolResultImages"))
        for pattern, facts in settings.models.items()
    ]


def _read_flag(facts: Mapping[str, Json], name: str) -> bool | None:
    value = facts.get(name)
    return value if isinstance(value, bool) else None


ModelCheck = Literal["none", "not blind", "known to see"]
"""What must be known about a model that a call names."""


class VisionProviders:
    """The vision models that can be asked by name."""

    def __init__(self, settings: Settings, directory: UpstreamDirectory) -> None:
        self._settings = settings
        self.configured = find_configured_model(settings, directory)  # the model that the settings name
        configured = self.configured if isinstance(self.configured, VisionModel) else None
        self.by_name = list_providers(settings, directory, configured)

    def find_model(self, model: str | None, check: ModelCheck) -> VisionModel | Refusal | None:
        """Return the model that a call names, else the one in the settings; None: neither names one."""
        if model is None or (not model and check != "none"):
            return self.configured
        one = find_named_model(self.by_name, model)
        if check == "none" or isinstance(one, Refusal):
            return one
        one = one if one is LOCAL_READER else check_not_blind(self._settings, one)
        return self._require_vision(one, model) if check == "known to see" else one

    def _require_vision(self, one: VisionModel | Refusal, model: str) -> VisionModel | Refusal:
        """Return the model if the settings name it too, or if it is known to see."""
        if isinstance(one, Refusal) or one is LOCAL_READER:
            return one
        own = self.configured
        if isinstance(own, VisionModel) and (one.provider, one.model) == (own.provider, own.model):
            return one
        provider = get_provider_name(one.upstream, self._settings)
        if supports_vision(one.model, provider, self._settings):
            return one
        what = f"{model:.80} is not known to see images"
        command = write_declaration(self._settings, f"{provider}/{one.model}", "vision")
        remedy = f"name another model; if this one does, run: {command}"
        return Refusal("invalid_input", what, remedy)


def find_image_receiver(settings: Settings, model: str | None = None) -> str:
    """Return the provider that would get the images of a call; empty: they stay on this machine."""
    found = build_directory(settings)
    one = found if isinstance(found, Refusal) else VisionProviders(settings, found).find_model(model, "not blind")
    if not isinstance(one, VisionModel) or (one.upstream.is_on_loopback and one.receiver == one.provider):
        return ""
    return one.receiver


def make_consent_reader(policy: PolicyStore) -> ReadConsent:
    """Return a function that reads from the record whether the user consents to a provider."""
    return lambda provider: policy.read_consents().get(provider)


def calculate_cost(upstream: Upstream, model: str, usage: Usage) -> float | None:
    """Return the price of an answer in dollars; None: the price or the usage is not known.

    Prices go by the provider's own address: a model of the same name elsewhere has another price, or none.
    """
    if not upstream.bases:  # the local reader
        return 0.0
    if usage.input is None or usage.output is None:
        return None
    try:
        import genai_prices
    except ImportError:
        return None
    cached = min(usage.cached or 0, usage.input)
    counts = genai_prices.Usage(
        input_tokens=usage.input,
        output_tokens=usage.output,
        cache_read_tokens=cached,
        cache_write_tokens=min(usage.written or 0, usage.input - cached),
    )
    for address in dict.fromkeys(upstream.bases.values()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return float(genai_prices.calc_price(counts, model, provider_api_url=address).total_price)
        except LookupError:
            continue
        except Exception:  # noqa: BLE001, a price list that fails must not fail the answer
            _log.debug("the price list failed", exc_info=True)
    return None
