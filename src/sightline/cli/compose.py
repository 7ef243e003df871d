"""The composition root: settings and flags in, a proxy out. Nowhere else do the doors meet the rooms behind them."""

from __future__ import annotations

from collections.abc import Callable

from sightline.look.upstreams import directory, receiver
from sightline.look.whole import Parts, local_servers, named_seer, parts, profile, proxies
from sightline.model.receipt import Receipt
from sightline.surfaces.proxy.app import Proxy

__all__ = ["Parts", "directory", "local_servers", "named_seer", "parts", "profile", "proxies", "proxy", "receiver"]


def proxy(
    whole: Parts, say: Callable[[Receipt], None] = lambda receipt: None, patience: float = 10.0, token: str = ""
) -> Proxy:
    return Proxy(whole.engine, whole.dialler, whole.directory, whole.record, say, patience, token)
