"""Choose which seer looks at images: the model that the user named, else the best one that can be found."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace

from sightline.model.ports import HttpSender
from sightline.model.profile import CREDENTIAL_HEADERS, Profile, RequestOrigin, Upstream, WireName
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER, Seer
from sightline.model.value import value_class
from sightline.settings import Settings
from sightline.vision.providers import (
    GET_VISION_MODEL,
    LOCAL_READER,
    NO_LOCAL_READER,
    OLLAMA_CLOUD,
    ModelCheck,
    ReadConsent,
    VisionModel,
    get_base_wire,
    make_wire_seer,
)
from sightline.vision.seers import litellm_client
from sightline.vision.seers.loopback import LoopbackModel, OllamaSeer, search_servers

_SIBLING_WIRES: tuple[WireName, ...] = ("openai_chat", "anthropic")  # nearly every upstream with a sibling has one
_OPENAI_WIRES = ("openai_chat", "openai_responses")  # they take the same credential in the same header
_FRESH_SECONDS = 300.0  # servers load other models, and stop


@value_class
class Caller:
    """A client on whose behalf a seer is asked, and the model that it talks to."""

    origin: RequestOrigin = field(repr=False)
    profile: Profile


@value_class
class Candidate:
    """A seer that may look, or a refusal that says why it can't be asked."""

    seer: Seer | Refusal
    vision_model: VisionModel | None = None
    on_loopback: bool = False  # found on this machine without being named, and known to see

    @property
    def name(self) -> str:
        """The name of the seer; empty if it can't be asked."""
        return "" if isinstance(self.seer, Refusal) else self.seer.name

    @property
    def refusal(self) -> Refusal | None:
        """Why it can't be asked."""
        return self.seer if isinstance(self.seer, Refusal) else None

    @property
    def available_seer(self) -> Seer:
        """The seer of a candidate that can be asked."""
        assert not isinstance(self.seer, Refusal), "a refusal cannot be asked"
        return self.seer

    @property
    def display_name(self) -> str:
        """The name of the model in messages to people."""
        if self.vision_model is None or self.vision_model is LOCAL_READER:
            return self.name or LOCAL_SEER
        return f"{self.vision_model.upstream.name}/{self.vision_model.model}"

    @property
    def lacks_consent(self) -> bool:
        return isinstance(self.seer, Refusal) and self.seer.code == "no_consent"


Search = Callable[[Sequence[Candidate]], Awaitable[Sequence[Candidate]]]
"""Looks for more candidates, given those that were found before."""


class Candidates:
    """The candidates for a request, best first; further ones are searched for only when an iteration gets there."""

    def __init__(self, found: Sequence[Candidate] = (), searches: Sequence[Search] = ()) -> None:
        """`found` are the best; `searches` find the others. Only `found` may contain one that lacks consent."""
        self._found = list(found)
        self._searches = list(searches)
        self.has_fallbacks = len(found) > 1 or bool(searches)

    async def __aiter__(self) -> AsyncIterator[Candidate]:
        index = 0
        while index < len(self._found) or self._searches:
            if index < len(self._found):
                yield self._found[index]
                index += 1
            else:
                search = self._searches[0]
                more = await search(self._found)
                if search in self._searches:  # else another iteration has finished it meanwhile
                    self._searches.remove(search)
                    self._found += more

    async def list_all(self) -> list[Candidate]:
        """Return every candidate."""
        return [each async for each in self]

    async def find_first(self) -> Candidate | None:
        """Return the best candidate that can be asked."""
        async for each in self:
            if each.name:
                return each
        return None

    async def limit_to_first(self) -> Candidates:
        """Return the best candidate that doesn't lack the user's consent, or else the best of all, without others."""
        async for each in self:
            if not each.lacks_consent:
                return Candidates([each])
        return Candidates(self._found[:1])

    @property
    def missing_consent(self) -> Refusal | None:
        """Why the model that the user named isn't asked, if only the user's consent is missing."""
        return next((each.refusal for each in self._found if each.lacks_consent), None)


FindModel = Callable[[str | None, ModelCheck], VisionModel | Refusal | None]
"""Finds the model that a call names, or else the settings do (see `VisionProviders.find_model`)."""


class Chooser:
    """Finds the candidates for a request. Nothing else decides which seer looks.

    The model that the call or the settings name is the only candidate. Without one, the candidates are: the vision
    model of the upstream that the client talks to anyway (its sibling), models on loopback, and the local reader.
    """

    def __init__(
        self,
        http: HttpSender,
        read_consent: ReadConsent,
        find_model: FindModel = lambda model, check: None,
        loopback: Mapping[str, str] | None = None,
        auto: bool = True,
        find_local: Callable[[], Seer | Refusal | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`auto`: search if no model is named."""
        self._http = http
        self._read_consent = read_consent
        self._find_model = find_model
        self._find_local = find_local
        self._loopback = dict(loopback or {})
        self._auto = auto
        self._clock = clock
        self._loopback_search: asyncio.Task[list[LoopbackModel]] | None = None
        self._searched_at = 0.0
        self._local_models: dict[str, set[str]] = {}  # models known to run on an Ollama server itself, by its address

    def configure(self, find_model: FindModel, loopback: Mapping[str, str], *, auto: bool) -> None:
        """Choose in another way from the next request on. Servers at other addresses are searched for again."""
        self._find_model, self._auto = find_model, auto
        if loopback != self._loopback:
            self._loopback = dict(loopback)
            self._loopback_search = None

    async def choose(
        self, caller: Caller | None = None, model: str | None = None, check: ModelCheck = "not blind"
    ) -> Candidates:
        """Return the candidates for a request; none if no model is named and the user wants no search.

        If the settings name a model, the local reader answers until the user consents to sending images to it. If the
        call itself names one, nothing else answers.
        """
        named = self._find_model(model, check)
        if isinstance(named, Refusal):
            return Candidates([Candidate(named)])
        if named is not None:
            return await self._choose_model(named, falls_back=not model)
        if not self._auto:
            return Candidates()
        sibling = self._find_sibling(caller) if caller else None
        return Candidates([sibling] if sibling else [], [self._find_on_loopback, self._find_reader])

    async def has_seer(self) -> bool:
        """Return whether a seer can be asked now, for a client whose upstream has none of its own."""
        return await (await self.choose()).find_first() is not None

    def find_missing_consent(self, model: str | None, check: ModelCheck) -> tuple[Candidate, str] | None:
        """Return the candidate that only lacks the user's consent, and the provider that would get the images.

        None: there is none, something else is missing too, or the user has refused consent.
        """
        named = self._find_model(model, check)
        if not isinstance(named, VisionModel) or named is LOCAL_READER:
            return None
        match self.find_obstacles(named):
            case [Refusal(code="no_consent") as refusal] if self._read_consent(named.receiver) is None:
                return Candidate(refusal, named), named.receiver
        return None

    def make_seer(self, model: VisionModel) -> Seer | Refusal:
        """Return the seer for a model, or why it can't be asked."""
        if model.provider == LOCAL_SEER:
            return self._find_local() or NO_LOCAL_READER
        for obstacle in self.find_obstacles(model):
            return obstacle
        wire = get_base_wire(model.wire)
        headers = dict([model.upstream.build_credential(wire, model.api_key)]) if model.api_key else {}
        http = litellm_client.LitellmClient() if model.wire == "others" else self._http
        seer = make_wire_seer(http, f"{model.provider}/{model.model}", model.model, model.upstream, model.wire, headers)
        seer = replace(seer, display_name=model.display_name)
        if isinstance(seer, OllamaSeer) and model.upstream.is_on_loopback and not self._read_consent(OLLAMA_CLOUD):
            refusal = _refuse_without_consent(seer.name, OLLAMA_CLOUD)
            return replace(seer, consent_refusal=refusal, local_models=self._local_models.setdefault(seer.url, set()))
        return seer

    def find_obstacles(self, model: VisionModel) -> list[Refusal]:
        """Return everything that prevents asking a model, missing consent first."""
        name, receiver, on_loopback = model.display_name, model.receiver, model.upstream.is_on_loopback
        obstacles = []
        if (not on_loopback or receiver != model.provider) and not self._read_consent(receiver):
            obstacles.append(_refuse_without_consent(name, receiver))
        if model.wire == "others":  # LiteLLM finds the key itself
            missing = litellm_client.check_installation(model.provider)
            return [*obstacles, missing] if missing else obstacles
        if not model.api_key and not on_loopback:
            variable = next(iter(model.upstream.key_variables), "its key variable")
            obstacles.append(Refusal("unavailable", f"there is no key for {name}", f"set {variable}"))
        return obstacles

    def find_local(self) -> Seer | Refusal | None:
        """Return the local reader, or why it can't read."""
        return self._find_local()

    async def search_loopback(self) -> list[LoopbackModel]:
        """Return the vision models on loopback. The result is kept for a while, unless there are none."""
        if self._loopback_search is None or (self._loopback_search.done() and self._is_stale(self._loopback_search)):
            self._searched_at = self._clock()
            self._loopback_search = asyncio.ensure_future(search_servers(self._http, self._loopback))
        return await asyncio.shield(self._loopback_search)

    def _is_stale(self, search: asyncio.Task[list[LoopbackModel]]) -> bool:
        return search.cancelled() or not search.result() or self._clock() - self._searched_at >= _FRESH_SECONDS

    async def _choose_model(self, model: VisionModel, *, falls_back: bool) -> Candidates:
        seer = self.make_seer(model)
        if isinstance(seer, OllamaSeer):
            obstacle = await seer.find_obstacle()
            seer = obstacle if obstacle is not None and obstacle.code == "no_consent" else seer
        chosen = Candidate(seer, model)
        local = self._find_local() if chosen.lacks_consent and falls_back else None
        if local is None or isinstance(local, Refusal):
            return Candidates([chosen])
        return Candidates([chosen, Candidate(local, LOCAL_READER)])

    def _find_sibling(self, caller: Caller) -> Candidate | None:
        """Return the upstream's own vision model.

        It needs no consent: the client itself addressed the image to this provider, whose credential it brought.
        """
        origin, profile = caller.origin, caller.profile
        if profile.sibling is None or (profile.sibling == profile.model and profile.vision is False):
            return None
        wire = _choose_sibling_wire(origin)
        if wire is None or (origin.needs_credential and not (origin.has_credential or origin.upstream.is_on_loopback)):
            return None
        upstream = origin.upstream
        name = f"{upstream.name}/{profile.sibling}"
        seer = make_wire_seer(self._http, name, profile.sibling, upstream, wire, _build_headers(origin, wire))
        return Candidate(seer, VisionModel(upstream.name, profile.sibling, upstream, wire))

    async def _find_on_loopback(self, found: Sequence[Candidate]) -> list[Candidate]:
        return [self._make_loopback_candidate(one) for one in await self.search_loopback()]

    def _make_loopback_candidate(self, one: LoopbackModel) -> Candidate:
        upstream = Upstream(one.server, {"openai_chat": one.base}, preset=one.server)
        seer = make_wire_seer(self._http, f"{one.server}/{one.model}", one.model, upstream, "openai_chat", {})
        return Candidate(seer, VisionModel(one.server, one.model, upstream), on_loopback=True)

    async def _find_reader(self, found: Sequence[Candidate]) -> list[Candidate]:
        """Return the local reader; that it isn't installed matters only if there is no other candidate."""
        local = self._find_local()
        if isinstance(local, Refusal):
            return [] if found else [Candidate(explain_no_seer(local), LOCAL_READER)]
        return [] if local is None else [Candidate(local, LOCAL_READER)]


def _refuse_without_consent(name: str, receiver: str) -> Refusal:
    what = f"{name} was not asked, because the user has not consented to sending images to {receiver}"
    return Refusal("no_consent", what, f"run: sightline consent yes {receiver}")


def explain_no_seer(local: Refusal) -> Refusal:
    """Return the refusal for when no model is named or found, and the local reader can't read either."""
    run = "" if local.remedy.startswith("run: ") else "run: "
    return replace(
        local,
        what=f"no vision model was found, and {local.what}",
        remedy=f"{local.remedy}, or {run}{GET_VISION_MODEL}",
    )


def _choose_sibling_wire(origin: RequestOrigin) -> WireName | None:
    """Return the wire on which the upstream's sibling is asked: the client's own, else another that it serves.

    None: it serves none, or its address is not known.
    """
    if origin.wire in _SIBLING_WIRES and origin.upstream.bases:
        return origin.wire
    return next((wire for wire in _SIBLING_WIRES if wire in origin.upstream.bases), None)


def _build_headers(origin: RequestOrigin, wire: WireName) -> Mapping[str, str]:
    """Return the client's headers, with its credential in the header that this wire uses."""
    headers = dict(origin.headers)
    if wire == origin.wire or (wire in _OPENAI_WIRES and origin.wire in _OPENAI_WIRES):
        return headers
    credential = next((headers[name] for name in CREDENTIAL_HEADERS if name in headers), "")
    others = {name: value for name, value in headers.items() if name not in CREDENTIAL_HEADERS}
    if credential:
        name, value = origin.upstream.build_credential(wire, credential.removeprefix("Bearer "))
        others[name] = value
    return others


def advise_user(refusal: Refusal, candidate: Candidate, settings: Settings) -> Refusal:
    """Return a provider's refusal with a remedy that fits its HTTP status."""
    match refusal.status:
        case 401 | 403:
            upstream = candidate.vision_model.upstream if candidate.vision_model else None
            source = _describe_key_source(upstream, settings)
            return replace(refusal, remedy=f"its key was refused; set a valid one in {source}")
        case 404:
            return replace(refusal, remedy="there is no such model there; name another one")
        case 400 | 413 | 415 | 422:  # the same request would fail again
            return replace(refusal, remedy="it rejects this request; try another file, question or model")
    return refusal


def _describe_key_source(upstream: Upstream | None, settings: Settings) -> str:
    """Return where the user finds the key that was sent."""
    if upstream is not None and upstream.api_key:
        return f"the apiKey of {upstream.name} in the settings"
    if upstream is not None and upstream.name in litellm_client.LITELLM_PROVIDERS:
        return f"the credentials that {upstream.name}'s own tools use"
    variables = () if upstream is None else upstream.key_variables
    return next((name for name in variables if settings.environment.get(name)), "apiKey in the settings")
