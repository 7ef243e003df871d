"""Choose who looks: the model that the user named, else the upstream's own sibling that sees, else one found here."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from sightline.model.asking import LOCAL
from sightline.model.ports import Http, Seer
from sightline.model.profile import Profile, WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream, Visitor
from sightline.vision.providers import NO_LOCAL, OURS, Consented, ModelCheck, Named, Registry, make_seer
from sightline.vision.seers.loopback import Found, found
from sightline.vision.seers.ollama import OllamaSeer

_SERVED: tuple[WireName, ...] = ("openai_chat", "anthropic")  # by nearly every upstream that has a sibling
_OPENAIS = ("openai_chat", "openai_responses")  # take the same credential in the same header
_FRESH_SECONDS = 300.0  # servers load other models, and end
_CREDENTIALS = ("authorization", "x-goog-api-key", "x-api-key", "api-key")


@dataclass(frozen=True, slots=True)
class Caller:
    """A client on whose behalf a seer is asked, and the model that it talks to."""

    visitor: Visitor = field(repr=False)
    profile: Profile


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model or reader that may look; a refusal in the place of the seer says why it can't be asked."""

    seer: Seer | Refusal
    named: Named | None = None
    found: bool = False  # on this machine, where nobody had named one: it is known to see

    @property
    def name(self) -> str:
        """The name of the seer; empty: it can't be asked."""
        return "" if isinstance(self.seer, Refusal) else self.seer.name

    @property
    def refusal(self) -> Refusal | None:
        """Why it can't be asked."""
        return self.seer if isinstance(self.seer, Refusal) else None

    @property
    def askable(self) -> Seer:
        """The seer of a candidate that can be asked."""
        assert not isinstance(self.seer, Refusal), "a refusal cannot be asked"
        return self.seer

    @property
    def shown(self) -> str:
        """The model as people read it."""
        if self.named is None or self.named is OURS:
            return self.name or LOCAL
        return f"{self.named.upstream.name}/{self.named.model}"

    @property
    def lacks_consent(self) -> bool:
        return isinstance(self.seer, Refusal) and self.seer.code == "no_consent"


Find = Callable[[str | None, ModelCheck], Named | Refusal | None]
"""Finds the model that a call names, or else the settings do (see `Providers.find`)."""


class Chooser:
    """Finds the candidates for a request, best first. Nothing else decides who looks."""

    def __init__(
        self,
        http: Http,
        consented: Consented,
        find: Find = lambda model, check: None,
        loopback: Mapping[str, str] | None = None,
        auto: bool = True,
        local: Callable[[], Seer | Refusal | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        *,
        lent_only: bool = False,
    ) -> None:
        """`lent_only`: an upstream's sibling looks only where the client has lent a credential for it."""
        self._http = http
        self._consented = consented
        self._registry = Registry(http, consented)
        self._find = find
        self._local = local
        self._loopback = dict(loopback or {})
        self._auto = auto
        self._clock = clock
        self._lent_only = lent_only
        self._found: asyncio.Task[list[Found]] | None = None
        self._searched_at = 0.0

    async def choose(
        self, caller: Caller | None = None, model: str | None = None, check: ModelCheck = "not blind"
    ) -> list[Candidate]:
        """Return who may look, best first; none: the user has named nobody and wants nobody to be searched for.

        A call that names a model means that one. Where the settings name it, the reader on this machine answers until
        the user agrees that the named model gets images.
        """
        named = self._find(model, check)
        if isinstance(named, Refusal):
            return [Candidate(named)]
        if named is not None:
            return await self._choose_named(named, falls_back=not model or named is OURS)
        return await self._search(caller) if self._auto else []

    def find_unagreed(self, model: str | None, check: ModelCheck) -> tuple[Candidate, str] | None:
        """Return the candidate that only the user's consent keeps from being asked, and who would get the images.

        None: there is none, more is missing, or the user has refused.
        """
        named = self._find(model, check)
        if not isinstance(named, Named) or named is OURS:
            return None
        match self._registry.hindrances(named):
            case [Refusal(code="no_consent") as no] if self._consented(named.receiver) is None:
                return Candidate(no, named), named.receiver
        return None

    def find_hindrances(self, named: Named) -> list[Refusal]:
        """Return all that stands in the way of asking a model, the user's consent first."""
        return self._registry.hindrances(named)

    def find_local(self) -> Seer | Refusal | None:
        """Return the reader on this machine, or why it can't read."""
        return self._local()

    async def _choose_named(self, named: Named, *, falls_back: bool) -> list[Candidate]:
        local = self._local()
        if named is OURS:
            return [Candidate(local or NO_LOCAL, OURS)]
        chosen = Candidate(await self._agreed(self._registry.seer(named)), named)
        if chosen.lacks_consent and falls_back and local is not None and not isinstance(local, Refusal):
            return [chosen, Candidate(local, OURS)]
        return [chosen]

    async def _agreed(self, named: Seer | Refusal) -> Seer | Refusal:
        """Return the seer; a refusal if its server says that it runs elsewhere, and the user has not agreed to that."""
        no = await named.hindrance() if isinstance(named, OllamaSeer) else None
        return no if no is not None and no.code == "no_consent" else named

    async def _search(self, caller: Caller | None) -> list[Candidate]:
        sibling = self._sibling(caller) if caller else None
        chosen = [sibling] if sibling else []
        chosen += [self._on_loopback(one) for one in await self.search_loopback()]
        local = self._local()
        if isinstance(local, Refusal):
            return chosen or [Candidate(nobody(local), OURS)]
        return chosen + ([Candidate(local, OURS)] if local is not None else [])

    async def search_loopback(self) -> list[Found]:
        """Return the vision models on loopback. While there are none, each call searches again."""
        if self._found is None or (self._found.done() and self._is_stale(self._found)):
            self._searched_at = self._clock()
            self._found = asyncio.ensure_future(found(self._http, self._loopback))
        return await asyncio.shield(self._found)

    def _is_stale(self, search: asyncio.Task[list[Found]]) -> bool:
        return search.cancelled() or not search.result() or self._clock() - self._searched_at >= _FRESH_SECONDS

    def _sibling(self, caller: Caller) -> Candidate | None:
        """The client itself addressed the image to this provider: its own credential goes nowhere else."""
        visitor, profile = caller.visitor, caller.profile
        if profile.sibling is None or (profile.sibling == profile.model and profile.vision is False):
            return None
        wire = _asked_on(visitor)
        if wire is None or (self._lent_only and not visitor.headers and not visitor.upstream.on_loopback):
            return None
        upstream = visitor.upstream
        name = f"{upstream.name}/{profile.sibling}"
        seer = make_seer(self._http, name, profile.sibling, upstream, wire, _lent(visitor, wire))
        return Candidate(seer, Named(upstream.name, profile.sibling, upstream, wire))

    def _on_loopback(self, one: Found) -> Candidate:
        upstream = Upstream(one.server, {"openai_chat": one.base}, preset=one.server)
        seer = make_seer(self._http, f"{one.server}/{one.model}", one.model, upstream, "openai_chat", {})
        return Candidate(seer, Named(one.server, one.model, upstream), found=True)


def nobody(local: Refusal) -> Refusal:
    """Said where nobody is named, no model was found, and what reads on this machine cannot, either."""
    what = f"no model that could look was found, and {local.what}"
    others = "start a vision model here (for example `ollama pull qwen3-vl`)"
    return replace(
        local,
        what=what,
        remedy=f"{local.remedy}, or {others}, or name one: `sightline vision-proxy model PROVIDER/MODEL`",
    )


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
