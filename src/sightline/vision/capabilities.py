"""What models take: images, PDFs or videos, by the user's settings, a published table, or what upstreams publish.

`ModelDiscovery` fetches what upstreams publish in the background, and keeps it in the record. A request never waits for
it: the first one goes by what is known, and later ones by what was found meanwhile. The address is one of the
upstream's own, and the credential is the one that the client sent there.

An answer is read by its shape, not by its sender: gateways copy the shapes of others. A model is left out if an answer
says nothing about it.
"""

from __future__ import annotations

import asyncio
import logging
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from time import monotonic

import orjson

from sightline.model.ports import HttpSender, ModelListing, PolicyStore
from sightline.model.profile import RequestOrigin, Upstream, WireName, join_url, strip_version
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.value import value_class
from sightline.profiles.presets import PRESETS
from sightline.profiles.profile_lookup import MEDIA_KINDS, MediaKind, MediaOverride, accepts_media, match_model
from sightline.settings import Settings, load_settings
from sightline.settings.upstreams import complete_upstream
from sightline.vision.concurrency import LruCache
from sightline.wire.json_tree import parse_bounded_json

_FILE = "profiles/capabilities.json"
_READS_PDF = frozenset({"anthropic", "openai", "chatgpt", "gemini", "openrouter"})  # presets whose models all take PDFs


def supports_vision(model: str, provider: str = "", settings: Settings | None = None) -> bool:
    """Return whether a model is known to see images; False for an unknown model, since a wrong guess costs money.

    model: its exact id, optionally as PROVIDER/MODEL.
    provider: the provider that serves it, if the id doesn't say so.
    settings: their `models` override the table; the user's own if left out.
    """
    return _supports("vision", model, provider, settings)


def write_declaration(settings: Settings, model: str, kind: MediaKind) -> str:
    """Return the command that declares that a model, named PROVIDER/MODEL, takes images, PDFs or videos."""
    facts = {**settings.models.get(model, {}), kind: True}
    others = {name: each for name, each in settings.models.items() if name != model}
    return shlex.join(["sightline", "config", "set", "models", orjson.dumps({model: facts, **others}).decode()])


def get_provider_name(upstream: Upstream, settings: Settings) -> str:
    """Return the name under which the models of an upstream are looked up: the user's own, or its preset's."""
    return upstream.name if upstream.name in settings.upstreams else upstream.preset or upstream.name


def supports_pdf(model: str, provider: str = "", settings: Settings | None = None) -> bool:
    """Return whether a model is known to take PDFs; False for an unknown model.

    model: its exact id, optionally as PROVIDER/MODEL.
    provider: the provider that serves it, if the id doesn't say so.
    settings: their `models` override the table; the user's own if left out.
    """
    return _supports("pdf", model, provider, settings)


def may_take_pdf(model: str, provider: str, settings: Settings) -> bool:
    """Return whether a PDF that a client addressed to a model is sent to it: unless it is known to take none.

    That is known from the user's settings, or if the table says that the model sees images but not that it takes PDFs.
    Some providers read PDFs for all their models, whatever the table says.
    """
    names = (model, f"{provider}/{model}")
    for each in read_capability_settings(settings):
        if "pdf" in each.kinds and any(match_model(each.pattern, name) for name in names):
            return each.kinds["pdf"]
    preset = complete_upstream(settings.upstreams[provider]).preset if provider in settings.upstreams else provider
    if preset in _READS_PDF or supports_pdf(model, provider, settings):
        return True
    return not supports_vision(model, provider, settings)


def supports_video(model: str, provider: str = "", settings: Settings | None = None) -> bool:
    """Return whether a model is known to take videos; False for an unknown model.

    model: its exact id, optionally as PROVIDER/MODEL.
    provider: the provider that serves it, if the id doesn't say so.
    settings: their `models` override the table; the user's own if left out.
    """
    return _supports("video", model, provider, settings)


def _supports(kind: MediaKind, model: str, provider: str, settings: Settings | None) -> bool:
    known = settings or load_settings()
    own = known.upstreams
    head, slash, rest = model.partition("/")
    if not provider and slash and (head in PRESETS or head in own):
        provider, model = head, rest
    hosts = [provider, complete_upstream(own[provider]).preset] if provider in own else [provider]
    hosts = [host for host in hosts if host]
    return accepts_media(kind, model, hosts, read_capability_settings(known), load_capability_table())


def read_capability_settings(settings: Settings) -> Sequence[MediaOverride]:
    """Return what the user's settings say about models, in their order."""
    return [
        MediaOverride(pattern, {kind: value for kind in MEDIA_KINDS if isinstance(value := facts.get(kind), bool)})
        for pattern, facts in settings.models.items()
    ]


@cache
def load_capability_table() -> Mapping[str, str]:
    """Return the kinds that each known model takes. The table is large, and read on first use."""
    from importlib.resources import files

    models: Mapping[str, str] = orjson.loads((files("sightline") / _FILE).read_bytes())["models"]
    return models


# What upstreams publish


_SECONDS = 10.0
_FRESH_DAYS = 1.0
_RETRY_SECONDS = 3600.0  # after a listing could not be fetched, or says nothing
_FAILURES_KEPT = 1024
_log = logging.getLogger(__name__)
_MAX_MODELS = 5000
_MAX_NAME = 256
_LISTS = ("data", "models")
_NAMES = ("id", "key", "slug", "name")
_PUBLISHED_KINDS = ("vision", "pdf", "video")  # the kinds of media that are kept of an answer
_MODALITIES = {"image": "vision", "vision": "vision", "pdf": "pdf", "file": "pdf", "video": "video"}


class ModelDiscovery:
    def __init__(self, http: HttpSender, policy: PolicyStore, clock: Callable[[], float] = monotonic) -> None:
        self._http = http
        self._policy = policy
        self._clock = clock
        self._paused: LruCache[float] = LruCache(_FAILURES_KEPT)  # until when, by upstream and model
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}

    def start(self, origin: RequestOrigin, model: str) -> None:
        """Fetch what the upstream publishes about a model, in the background, unless it is known or being fetched."""
        requests = list_requests(origin.upstream, origin.wire, model)
        if not requests or not (origin.has_credential or origin.upstream.is_on_loopback):
            return
        key = (origin.upstream.name, requests[0].model)
        until = self._paused.get(key)
        if key in self._running or (until is not None and self._clock() < until):
            return
        task = asyncio.get_running_loop().create_task(self._discover(key, origin, requests))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    @property
    def is_idle(self) -> bool:
        return not self._running

    async def close(self) -> None:
        """Cancel what is being fetched."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def wait(self) -> None:
        """Wait for everything that is being fetched."""
        await asyncio.gather(*self._running.values())

    async def _discover(self, key: tuple[str, str], origin: RequestOrigin, requests: Sequence[ListingRequest]) -> None:
        if await asyncio.to_thread(self._policy.has_fresh_listing, *key):
            self._paused.put(key, self._clock() + _RETRY_SECONDS)  # nor is the record read again before that
            return
        for request in requests:
            found = await self._fetch(origin, request)
            if found:
                listing = ModelListing(found, requests[0].model)
                await asyncio.to_thread(self._policy.keep_listing, key[0], listing, _FRESH_DAYS)
                _log.info("%s publishes what %d of its models take", key[0], len(found))
                break
        self._paused.put(key, self._clock() + _RETRY_SECONDS)

    async def _fetch(self, origin: RequestOrigin, request: ListingRequest) -> Mapping[str, Mapping[str, bool]]:
        """Return what an answer says about models; nothing if there is no usable answer."""
        headers = {**dict(origin.headers), "accept": "application/json", "accept-encoding": "identity"}
        body = b"" if request.body is None else orjson.dumps(request.body)
        if body:
            headers["content-type"] = "application/json"
        reply = await self._http.ask("POST" if body else "GET", request.url, headers, body, _SECONDS)
        if isinstance(reply, Refusal) or reply.status != 200:
            return {}
        try:
            return parse_listing(parse_bounded_json(reply.body), request.model)
        except orjson.JSONDecodeError:
            return {}


_FLAGS = {
    "supports_image_in": "vision",  # Kimi
    "supports_video_in": "video",
    "supports_image_input": "vision",  # Fireworks
    "supports_vision": "vision",  # LiteLLM
}
_CAPABILITIES = {
    "vision": "vision",  # Mistral, LM Studio
    "image_input": "vision",  # Anthropic
    "pdf_input": "pdf",
}


@value_class
class ListingRequest:
    """A request for what is published. `model` is the only model that the answer is about; empty: it lists them."""

    url: str
    body: Json = None  # None: a GET
    model: str = ""


def list_requests(upstream: Upstream, wire: WireName, model: str) -> Sequence[ListingRequest]:
    """Return the requests that tell what a model takes; the first one with an answer counts."""
    if not upstream.bases or upstream.preset in _SILENT:
        return ()
    if wire == "gemini" or (not upstream.preset and upstream.is_on_loopback):
        return ()  # Gemini's API doesn't say it, and an unknown server on this machine is most often another proxy
    base = upstream.get_base(wire)
    root = strip_version(base)
    match upstream.preset:
        case "ollama" | "ollama-cloud":
            return (ListingRequest(f"{root}/api/show", {"model": model}, model),)
        case "lmstudio":
            return ListingRequest(f"{root}/api/v1/models"), ListingRequest(f"{root}/api/v0/models")
        case "llamacpp":
            return ListingRequest(join_url(base, "/v1/models")), ListingRequest(f"{root}/props", model=model)
        case _:
            return (ListingRequest(join_url(base, "/v1/models")),)


# They list names only, or have no such list; all models of Anthropic see.
_SILENT = frozenset(
    """anthropic openai chatgpt gemini deepseek zai zai-coding moonshot minimax dashscope dashscope-coding bedrock xai
    groq vllm""".split()
)


def parse_listing(answer: Json, model: str = "") -> Mapping[str, Mapping[str, bool]]:
    """Return what each model takes, as far as an answer says; `model`: the only one that it is about, if not empty."""
    if model:
        said = _read_model(answer) if isinstance(answer, dict) else {}
        return {model: said} if said else {}
    found: dict[str, dict[str, bool]] = {}
    for entry in _list_entries(answer):
        name = next((entry[key] for key in _NAMES if isinstance(entry.get(key), str)), "")
        said = _read_model(entry)
        if isinstance(name, str) and 0 < len(name) <= _MAX_NAME and said and len(found) < _MAX_MODELS:
            found[name] = said
    return found


def _list_entries(answer: Json) -> Iterator[dict[str, Json]]:
    lists = [answer.get(key) for key in _LISTS] if isinstance(answer, dict) else [answer]
    for each in lists:
        yield from (entry for entry in each if isinstance(entry, dict)) if isinstance(each, list) else ()


def _read_model(entry: dict[str, Json]) -> dict[str, bool]:
    """Return what one entry says, in any of the known shapes."""
    architecture = entry.get("architecture")
    modalities = [entry.get("input_modalities"), entry.get("modalities")]
    if isinstance(architecture, dict):
        modalities.insert(0, architecture.get("input_modalities"))
    said: dict[str, bool] = {}
    for each in modalities:
        said |= _read_names(each, _MODALITIES) if isinstance(each, list) else _read_flags(each, _MODALITIES)
    capabilities = entry.get("capabilities")
    if isinstance(capabilities, list):  # Ollama
        said |= {"vision": "vision" in capabilities}
    elif isinstance(capabilities, dict):
        supports = capabilities.get("supports")  # Copilot
        said |= _read_flags(capabilities, _CAPABILITIES) | _read_flags(supports, _CAPABILITIES)
    said |= _read_flags(entry, _FLAGS)
    if entry.get("type") in ("vlm", "llm") and "vision" not in said:  # LM Studio
        said["vision"] = entry["type"] == "vlm"
    return said


def _read_names(names: Sequence[Json], kinds: Mapping[str, str]) -> dict[str, bool]:
    """Return all kinds by a list of those that are taken; a list without text is about something else."""
    if "text" not in names:
        return {}
    taken = {kinds[name] for name in names if isinstance(name, str) and name in kinds}
    return {kind: kind in taken for kind in _PUBLISHED_KINDS}


def _read_flags(flags: Json, kinds: Mapping[str, str]) -> dict[str, bool]:
    """Return kinds by flags, each a boolean or an object with `supported`."""
    found = {}
    for name, kind in kinds.items():
        value = flags.get(name) if isinstance(flags, dict) else None
        value = value.get("supported") if isinstance(value, dict) else value
        if isinstance(value, bool):
            found[kind] = value
    return found
