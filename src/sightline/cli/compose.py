"""The composition root: settings and flags in, a proxy out. Nowhere else do the doors meet the rooms behind them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path

from sightline.chat import answered
from sightline.look.doors import Behalf, Door, Turns, workers
from sightline.look.upstreams import directory, receiver
from sightline.look.whole import Parts, local_servers, named_seer, parts, profile, proxies
from sightline.model.receipt import Receipt
from sightline.model.upstream import Visitor, is_loopback
from sightline.settings import Settings
from sightline.sources.file import Policy, policy_for
from sightline.surfaces.mcp.http import Mount
from sightline.surfaces.mcp.terms import Terms
from sightline.surfaces.proxy.app import Proxy
from sightline.surfaces.proxy.commands import Commands
from sightline.surfaces.proxy.headers import CREDENTIALS
from sightline.surfaces.proxy.watch import Watch

__all__ = [
    "NOWHERE",
    "Parts",
    "directory",
    "local_servers",
    "mcp",
    "named_seer",
    "parts",
    "profile",
    "proxies",
    "proxy",
    "reaches",
    "receiver",
    "under",
]

NOWHERE = Policy(roots=())
MCP = "/mcp"
_CALLERS = 1024  # credentials whose calls over MCP are counted


def under(settings: Settings, root: Path) -> Policy:
    """One folder and nothing else; Sightline's own files are closed there, too."""
    return policy_for(root, None, (), None, closed=(settings.file, settings.folder))


def reaches(settings: Settings, root: Path | None, host: str) -> tuple[Policy, Policy | None]:
    """Which files a command may name to a proxy that listens on `host`, and which may be counted on to be there.

    Whoever calls from this machine works on its files; a path that comes from another one means nothing here.
    """
    named = under(settings, root) if root else NOWHERE
    return named, None if root is None and is_loopback(host) else named


def proxy(
    whole: Parts,
    say: Callable[[Receipt], None] = lambda receipt: None,
    patience: float = 10.0,
    token: str = "",
    reach: Policy = NOWHERE,
    watch: Watch | None = None,
    mcp: Mount | None = None,
) -> Proxy:
    commands = Commands(partial(_commanded, whole, reach))
    mounts = {} if mcp is None else {MCP: mcp, f"{MCP}/": mcp}
    return Proxy(
        whole.engine, whole.dialler, whole.directory, whole.record, say, patience, token, commands, watch, mounts
    )


def mcp(whole: Parts, reach: Policy = NOWHERE, token: str = "", *, alone: bool = True) -> Mount:
    """The tools for MCP hosts. A host that has to bring a token is somebody else's, who cannot agree for the user.

    `alone`: no other process answers at the same address.
    """
    turns = lru_cache(_CALLERS)(lambda scope: Turns())
    return Mount(Terms(partial(_served, whole, reach, turns), consents=not token), stateless=not alone)


def _served(whole: Parts, reach: Policy, turns: Callable[[str], Turns], headers: Mapping[str, str]) -> Door:
    """With what was seen under the same credential, and no file beyond `reach`; its calls are counted."""
    credential = next(filter(None, (headers.get(name.decode(), "") for name in CREDENTIALS)), "")
    known, scope = whole.settings, whole.record.scope_of(credential)
    return Door(whole.record, scope, reach, workers(), toolset=known.toolset, settings=known, turns=turns(scope))


def _commanded(whole: Parts, reach: Policy, text: str, visitor: Visitor, model: str, images: Sequence[str]) -> str:
    """What is typed into a conversation is answered with what its client may see, and no file beyond `reach`."""
    known = profile(whole.settings, whole.record, visitor.upstream, visitor.wire, model)
    door = Door(
        whole.record,
        visitor.scope,
        reach,
        workers(),
        settings=whole.settings,
        behalf=Behalf(visitor, known),
    )
    return answered(text, door, images)
