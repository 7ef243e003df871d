"""Who looks: the model that the user named, else the upstream's own seeing sibling, else one on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sightline.model.ports import Http, Seer
from sightline.model.profile import Profile, WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, Visitor, joined
from sightline.profiles.lookup import profile as known_profile
from sightline.seers.chat import ChatSeer
from sightline.seers.loopback import Found, found
from sightline.seers.messages import MessagesSeer

_ENDPOINTS: Mapping[WireName, str] = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
}
_OPENAIS = ("openai_chat", "openai_responses")  # take the same credential in the same header
_CREDENTIALS = ("authorization", "x-goog-api-key", "x-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class Named:
    """A vision model that the user's settings name."""

    provider: str
    model: str
    upstream: Upstream
    wire: WireName = "openai_chat"
    api_key: str = field(default="", repr=False)


Consented = Callable[[str], bool]


class Seers:
    """Finds the seers for a visitor, best first; a refusal says why one cannot be asked."""

    def __init__(
        self,
        http: Http,
        consented: Consented,
        named: Named | None = None,
        loopback: Mapping[str, str] | None = None,
        auto: bool = True,
    ) -> None:
        self._http = http
        self._consented = consented
        self._named = named
        self._loopback = dict(loopback or {})
        self._auto = auto
        self._found: asyncio.Task[list[Found]] | None = None

    async def of(self, visitor: Visitor, profile: Profile) -> list[Seer | Refusal]:
        if self._named is not None:
            return [self._by_name(self._named)]
        if not self._auto:
            return []
        sibling = self._sibling(visitor, profile)
        found: list[Seer | Refusal] = [sibling] if sibling else []
        return found + [self._local(one) for one in await self.on_this_machine()]

    async def on_this_machine(self) -> list[Found]:
        """The vision models on loopback. None found: asked again the next time, somebody may have started one."""
        if self._found is None or (self._found.done() and not self._found.result()):
            self._found = asyncio.ensure_future(found(self._http, self._loopback))
        return await asyncio.shield(self._found)

    def _by_name(self, named: Named) -> Seer | Refusal:
        name = f"{named.provider}/{named.model}"
        if not named.upstream.on_loopback and not self._consented(named.provider):
            return Refusal(
                "no_consent",
                f"{name} may look at it only when the user agrees that images are sent to {named.provider}",
                f"the user runs: sightline consent yes {named.provider}",
            )
        if not named.api_key and not named.upstream.on_loopback:
            variable = next(iter(named.upstream.key_variables), "its key variable")
            return Refusal("unavailable", f"there is no key for {name}", f"the user sets {variable}")
        headers = dict([named.upstream.credential(named.wire, named.api_key)]) if named.api_key else {}
        return self._seer(name, named.model, named.upstream, named.wire, headers)

    def _sibling(self, visitor: Visitor, profile: Profile) -> Seer | None:
        """The client itself addressed the image to this provider: its own credential goes nowhere else."""
        if profile.sibling is None or (profile.sibling == profile.model and profile.vision is False):
            return None
        wire = _asked_on(visitor)
        if wire is None:
            return None
        name = f"{visitor.upstream.name}/{profile.sibling}"
        return self._seer(name, profile.sibling, visitor.upstream, wire, _lent(visitor, wire))

    def _local(self, one: Found) -> Seer:
        upstream = Upstream(one.server, {"openai_chat": one.base}, preset=one.server)
        return self._seer(f"{one.server}/{one.model}", one.model, upstream, "openai_chat", {})

    def _seer(self, name: str, model: str, upstream: Upstream, wire: WireName, headers: Mapping[str, str]) -> Seer:
        kind = MessagesSeer if wire == "anthropic" else ChatSeer
        url = joined(upstream.base(wire), _ENDPOINTS[wire])
        limits = known_profile(upstream.preset, wire, model).limits
        return kind(name, model, url, limits, self._http, headers)


def _asked_on(visitor: Visitor) -> WireName | None:
    """The wire on which the upstream is asked to look: the visitor's own, else one that it serves beside that."""
    if visitor.wire in _ENDPOINTS:
        return visitor.wire
    served: tuple[WireName, ...] = ("openai_chat", "anthropic")
    return next((wire for wire in served if wire in visitor.upstream.bases), None)


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
