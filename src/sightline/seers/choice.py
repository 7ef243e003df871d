"""Who looks: the model that the user named, else the upstream's own seeing sibling, else one on this machine.

What reads on this machine without any model comes last, and where the named one may not be asked yet.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeGuard

from sightline.model.ports import Http, Seer
from sightline.model.profile import Profile, WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, Visitor
from sightline.seers.loopback import Found, found
from sightline.seers.ollama import OllamaSeer
from sightline.seers.registry import NO_LOCAL, Consented, Named, Registry, seer

__all__ = ["Named", "Seers"]

_SERVED: tuple[WireName, ...] = ("openai_chat", "anthropic")  # by nearly every upstream that has a sibling
_OPENAIS = ("openai_chat", "openai_responses")  # take the same credential in the same header
_FRESH_SECONDS = 300.0  # servers load other models, and end
_CREDENTIALS = ("authorization", "x-goog-api-key", "x-api-key", "api-key")


class Seers:
    """Finds the seers for a visitor, best first; a refusal says why one cannot be asked."""

    def __init__(
        self,
        http: Http,
        consented: Consented,
        named: Named | None = None,
        loopback: Mapping[str, str] | None = None,
        auto: bool = True,
        local: Seer | Refusal | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._http = http
        self._registry = Registry(http, consented, local=local or NO_LOCAL)
        self._local = local
        self._named = named
        self._loopback = dict(loopback or {})
        self._auto = auto
        self._clock = clock
        self._found: asyncio.Task[list[Found]] | None = None
        self._asked = 0.0  # when

    async def of(self, visitor: Visitor, profile: Profile) -> list[Seer | Refusal]:
        if self._named is not None:
            return self._asked_for(await self._agreed(self._registry.seer(self._named)))
        if not self._auto:
            return []
        sibling = self._sibling(visitor, profile)
        found: list[Seer | Refusal] = [sibling] if sibling else []
        found += [self._loopback_seer(one) for one in await self.on_this_machine()]
        if isinstance(self._local, Refusal):
            return found or [nobody(self._local)]
        return found + ([self._local] if self._local is not None else [])

    async def _agreed(self, named: Seer | Refusal) -> Seer | Refusal:
        """Nobody of whom his server says that he is elsewhere, where the user has not agreed to that."""
        no = await named.hindrance() if isinstance(named, OllamaSeer) else None
        return no if no is not None and no.code == "no_consent" else named

    def _asked_for(self, named: Seer | Refusal) -> list[Seer | Refusal]:
        """Until the user agrees that the named one gets images, nothing leaves the machine, and something is read."""
        unagreed = isinstance(named, Refusal) and named.code == "no_consent"
        return [named, self._local] if unagreed and _is_seer(self._local) else [named]

    async def on_this_machine(self) -> list[Found]:
        """The vision models on loopback. None found: asked again the next time, somebody may have started one."""
        if self._found is None or (self._found.done() and self._is_stale(self._found)):
            self._asked = self._clock()
            self._found = asyncio.ensure_future(found(self._http, self._loopback))
        return await asyncio.shield(self._found)

    def _is_stale(self, asked: asyncio.Task[list[Found]]) -> bool:
        return asked.cancelled() or not asked.result() or self._clock() - self._asked >= _FRESH_SECONDS

    def _sibling(self, visitor: Visitor, profile: Profile) -> Seer | None:
        """The client itself addressed the image to this provider: its own credential goes nowhere else."""
        if profile.sibling is None or (profile.sibling == profile.model and profile.vision is False):
            return None
        wire = _asked_on(visitor)
        if wire is None:
            return None
        name = f"{visitor.upstream.name}/{profile.sibling}"
        return seer(self._http, name, profile.sibling, visitor.upstream, wire, _lent(visitor, wire))

    def _loopback_seer(self, one: Found) -> Seer:
        upstream = Upstream(one.server, {"openai_chat": one.base}, preset=one.server)
        return seer(self._http, f"{one.server}/{one.model}", one.model, upstream, "openai_chat", {})


def nobody(local: Refusal) -> Refusal:
    """Said where nobody is named, no model was found, and what reads on this machine cannot, either."""
    what = f"no model that could look was found, and {local.what}"
    others = "start a vision model here (for example `ollama pull qwen3-vl`)"
    return replace(
        local,
        what=what,
        remedy=f"{local.remedy}, or {others}, or name one: `sightline vision-proxy model PROVIDER/MODEL`",
    )


def _is_seer(one: Seer | Refusal | None) -> TypeGuard[Seer]:
    return one is not None and not isinstance(one, Refusal)


def _asked_on(visitor: Visitor) -> WireName | None:
    """The wire on which the upstream is asked to look: the visitor's own, else one that it serves beside that."""
    if visitor.wire in _SERVED:
        return visitor.wire
    return next((wire for wire in _SERVED if wire in visitor.upstream.bases), None)


def _lent(visitor: Visitor, wire: WireName) -> Mapping[str, str]:
    """The client's headers, with its credential in the header that this wire has for it."""
    headers = dict(visitor.headers)
    if wire == visitor.wire or (wire in _OPENAIS and visitor.wire in _OPENAIS):
        return headers
    given = next((headers[name] for name in _CREDENTIALS if name in headers), "")
    kept = {name: value for name, value in headers.items() if name not in _CREDENTIALS}
    if given:
        name, value = visitor.upstream.credential(wire, given.removeprefix("Bearer "))
        kept[name] = value
    return kept
