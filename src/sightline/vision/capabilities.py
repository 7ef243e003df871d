"""What models take and cost, as far as the user's settings or a published table say."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import orjson

from sightline.model.asking import Usage
from sightline.model.upstream import Upstream
from sightline.profiles.lookup import KINDS, Kind, Said, takes
from sightline.profiles.presets import PRESETS
from sightline.settings import Settings, load
from sightline.settings.upstreams import completed

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


_log = logging.getLogger(__name__)


def cost(upstream: Upstream, model: str, usage: Usage) -> float | None:
    """None: nobody here knows the price, or the provider has not said what it counted.

    The list goes by the provider's own address: a model of the same name elsewhere has another price, or none.
    """
    if not upstream.bases:  # it has no address: this machine itself
        return 0.0
    if usage.input is None or usage.output is None:
        return None
    try:
        import genai_prices
    except ImportError:
        return None
    counted = genai_prices.Usage(
        input_tokens=usage.input, output_tokens=usage.output, cache_read_tokens=min(usage.cached or 0, usage.input)
    )
    for address in dict.fromkeys(upstream.bases.values()):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return float(genai_prices.calc_price(counted, model, provider_api_url=address).total_price)
        except LookupError:
            continue
        except Exception:  # noqa: BLE001, a list that fails is a price that is not known
            _log.debug("the price list failed", exc_info=True)
    return None
