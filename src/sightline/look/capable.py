"""Whether a model sees, reads PDFs or watches videos, as far as anybody has said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import orjson

from sightline.look.upstreams import completed
from sightline.model.upstream import Upstream
from sightline.profiles.capabilities import KINDS, Kind, Said, takes
from sightline.profiles.presets import PRESETS
from sightline.settings import Settings, load

_FILE = "profiles/capabilities.json"


def supports_vision(model: str, provider: str = "", settings: Settings | None = None) -> bool:
    """Whether a model is known to see images. A tool sends it one only then, so one that nobody knows does not see.

    model: its id, perhaps with its provider, as PROVIDER/MODEL; an alias or another spelling is another id.
    provider: where the model is asked, when its id does not say so.
    settings: whose `models` counts first; else the user's.
    """
    return _takes("vision", model, provider, settings)


def provider_of(upstream: Upstream, settings: Settings) -> str:
    """Under which it is known what the models of an upstream take: the user's name for it, or that of its preset."""
    return upstream.name if upstream.name in settings.upstreams else upstream.preset or upstream.name


def supports_pdf(model: str, provider: str = "", settings: Settings | None = None) -> bool:
    """Whether a model is known to take PDFs; one that nobody knows does not.

    model: its id, perhaps with its provider, as PROVIDER/MODEL; an alias or another spelling is another id.
    provider: where the model is asked, when its id does not say so.
    settings: whose `models` counts first; else the user's.
    """
    return _takes("pdf", model, provider, settings)


def supports_video(model: str, provider: str = "", settings: Settings | None = None) -> bool:
    """Whether a model is known to take videos; one that nobody knows does not.

    model: its id, perhaps with its provider, as PROVIDER/MODEL; an alias or another spelling is another id.
    provider: where the model is asked, when its id does not say so.
    settings: whose `models` counts first; else the user's.
    """
    return _takes("video", model, provider, settings)


def _takes(kind: Kind, model: str, provider: str, settings: Settings | None) -> bool:
    known = settings or load()
    own = known.upstreams
    head, slash, rest = model.partition("/")
    if not provider and slash and (head in PRESETS or head in own):
        provider, model = head, rest
    hosts = [provider, completed(own[provider]).preset] if provider in own else [provider]
    return takes(kind, model, [host for host in hosts if host], said(known), table())


def said(settings: Settings) -> Sequence[Said]:
    """What the user's settings say of models, in their order."""
    return [
        Said(pattern, {kind: value for kind in KINDS if isinstance(value := held.get(kind), bool)})
        for pattern, held in settings.models.items()
    ]


@cache
def table() -> Mapping[str, str]:
    """The kinds of each known id. Read when somebody first asks: it is longer than all the rest."""
    held = orjson.loads((files("sightline") / _FILE).read_bytes())
    models: Mapping[str, str] = held["models"]
    return models
