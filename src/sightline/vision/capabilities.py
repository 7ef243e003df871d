"""What models take: images, PDFs or videos, according to the user's settings or a published table."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import orjson

from sightline.model.profile import Upstream
from sightline.profiles.presets import PRESETS
from sightline.profiles.profile_lookup import MEDIA_KINDS, MediaKind, MediaOverride, accepts_media, match_model
from sightline.settings import Settings, load_settings
from sightline.settings.upstreams import complete_upstream

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
    models: Mapping[str, str] = orjson.loads((files("sightline") / _FILE).read_bytes())["models"]
    return models
