"""The composition root: settings and flags in, a proxy out. Nowhere else do the doors meet the rooms behind them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from sightline.chat import answered
from sightline.look.doors import Behalf, Door, workers
from sightline.look.upstreams import directory, receiver
from sightline.look.whole import Parts, local_servers, named_seer, parts, profile, proxies
from sightline.model.receipt import Receipt
from sightline.model.upstream import Visitor
from sightline.sources.file import Policy
from sightline.surfaces.proxy.app import Proxy
from sightline.surfaces.proxy.commands import Commands

__all__ = ["Parts", "directory", "local_servers", "named_seer", "parts", "profile", "proxies", "proxy", "receiver"]


def proxy(
    whole: Parts, say: Callable[[Receipt], None] = lambda receipt: None, patience: float = 10.0, token: str = ""
) -> Proxy:
    commands = Commands(partial(_commanded, whole))
    return Proxy(whole.engine, whole.dialler, whole.directory, whole.record, say, patience, token, commands)


def _commanded(whole: Parts, text: str, visitor: Visitor, model: str, images: Sequence[str]) -> str:
    """What is typed into a conversation is answered with what its client may see, and no file of this machine."""
    known = profile(whole.settings, whole.record, visitor.upstream, visitor.wire, model)
    door = Door(
        whole.record,
        visitor.scope,
        Policy(roots=()),
        workers(),
        settings=whole.settings,
        behalf=Behalf(visitor, known),
    )
    return answered(text, door, images)
