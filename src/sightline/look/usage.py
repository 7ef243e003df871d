"""What looking costs: dollars by a maintained price list, where it is installed and knows the provider."""

from __future__ import annotations

import logging
import warnings

from sightline.model.asking import Usage
from sightline.model.upstream import Upstream

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
