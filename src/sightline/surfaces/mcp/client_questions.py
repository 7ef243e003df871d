"""Questions to the client during a call: which folders it works in, and whether its user gives consent.

Up to protocol version 2025-11-25 the server sends a question while a call is under way. From 2026-07-28 on, the call
returns the questions, and the client repeats the call with the answers to all of them, so that the server keeps no
state in between. An answer about consent counts only together with the sealed state of its question: an answer to a
question that was never asked is ignored.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from sightline.api.session import ToolContext
from sightline.model.ports import Store
from sightline.model.refusal import Refusal
from sightline.passes.wording import CONSENT_QUESTION
from sightline.surfaces.mcp import ClientTerms
from sightline.vision.background_loop import run_in_thread
from sightline.vision.concurrency import LruCache

log = logging.getLogger("sightline")

Context = ServerRequestContext[Any, Any]
CallParams = types.CallToolRequestParams | types.GetPromptRequestParams
FindProvider = Callable[[ToolContext], str]
"""Returns the provider that a call can't ask without the user's consent; empty: there is none."""
ClientIdentity = tuple[str, str, str]
"""Scope, name and session of a client, as far as the protocol version has them."""

_ROOTS = "roots"
_ROOTS_SECONDS = 10.0  # a program answers, not a person
_MAX_REMEMBERED = 1024  # clients
_MAX_NAME = 100  # characters of a client's name
_PERMANENT = "? To undo it, run `sightline consent no {}`."
_TEMPORARY = " ({})? To agree permanently, run `sightline consent yes {}` in a shell."


@dataclass(frozen=True, slots=True)
class ClientQuestions:
    """The questions of one call."""

    provider: str = ""  # that would receive images; empty: no consent is needed
    wants_roots: bool = False
    client: tuple[str, ...] = ()  # whose user would agree
    duration: str = ""  # of the consent, as worded in the question

    @property
    def state(self) -> str | None:
        """Identifies the consent question when its answer arrives."""
        return json.dumps([self.provider, *self.client]) if self.provider else None


@dataclass(frozen=True, slots=True)
class ClientAnswers:
    agreed: bool | None = None  # None: not asked, or not answered
    roots: tuple[str, ...] | None = None  # addresses of folders; None: not asked, or not answered


def can_elicit(ctx: Context) -> bool:
    """Return whether the client can show its user a form. A client that names no mode supports forms."""
    declared = ctx.session.client_capabilities
    elicitation = declared.elicitation if declared else None
    has_forms = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
    return has_forms and (is_modern(ctx) or ctx.session.can_send_request)


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


async def ask_client(
    ctx: Context, params: CallParams, questions: ClientQuestions
) -> ClientAnswers | types.InputRequiredResult:
    """Return the client's answers, or the result that makes it answer and repeat the call."""
    requests: dict[str, types.ElicitRequest | types.ListRootsRequest] = {}
    if questions.provider:
        requests[_build_consent_key(questions.provider)] = _build_consent_form(questions)
    if questions.wants_roots:
        requests[_ROOTS] = types.ListRootsRequest()
    if is_modern(ctx):
        responses = params.input_responses or {}
        was_asked = questions.state is None or params.request_state == questions.state
        if was_asked and requests.keys() <= responses.keys():
            return _read_answers(responses, questions)
        return types.InputRequiredResult(input_requests={**requests}, request_state=questions.state)
    answers = {name: await _send_question(ctx, request) for name, request in requests.items()}
    return _read_answers(answers, questions)


def _build_consent_key(provider: str) -> str:
    """Return the name of a consent question, which is different for each provider."""
    return f"consent:{provider}"


def _build_consent_form(questions: ClientQuestions) -> types.ElicitRequest:
    message = f"{CONSENT_QUESTION.format(questions.provider)}{questions.duration}"
    form = types.ElicitRequestFormParams(message=message, requested_schema={"type": "object", "properties": {}})
    return types.ElicitRequest(params=form)


async def _send_question(
    ctx: Context, request: types.ElicitRequest | types.ListRootsRequest
) -> types.ElicitResult | types.ListRootsResult | None:
    related = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        if isinstance(request, types.ElicitRequest):
            return await ctx.session.send_request(request, types.ElicitResult, metadata=related)
        return await ctx.session.send_request(request, types.ListRootsResult, _ROOTS_SECONDS, related)
    except (MCPError, ValidationError) as error:
        log.debug("the client did not answer %s: %s", request.method, error)
        return None


def _read_answers(responses: Mapping[str, object], questions: ClientQuestions) -> ClientAnswers:
    consent = responses.get(_build_consent_key(questions.provider)) if questions.provider else None
    roots = responses.get(_ROOTS)
    return ClientAnswers(
        consent.action == "accept" if isinstance(consent, types.ElicitResult) else None,
        tuple(str(root.uri) for root in roots.roots) if isinstance(roots, types.ListRootsResult) else None,
    )


class ConsentQuestions:
    """Asks users for consent, and remembers their answers while they are valid."""

    def __init__(self, terms: ClientTerms) -> None:
        self._terms = terms
        self._declined: LruCache[bool] = LruCache(_MAX_REMEMBERED)  # by client and provider: not asked again
        self._agreed: LruCache[bool] = LruCache(_MAX_REMEMBERED)  # by client and provider
        self._locks: LruCache[asyncio.Lock] = LruCache(_MAX_REMEMBERED)  # by client: calls may come in parallel

    async def ask(
        self, ctx: Context, params: CallParams, context: ToolContext, find_provider: FindProvider, *, with_roots: bool
    ) -> ToolContext | types.InputRequiredResult | Refusal:
        """Return the context with the consent that the call needs, if its user gives it.

        `with_roots`: the call has asked for the client's folders, so a repeated call must include them again. A refusal
        means that the user has agreed, but the consent could not be stored.
        """
        if not await self._find_unasked_provider(ctx, context, find_provider):
            return context
        client = _identify_client(ctx, context)
        async with self._locks.get(client) or self._locks.put(client, asyncio.Lock()):
            provider = await self._find_unasked_provider(ctx, context, find_provider)
            if provider and (*client, provider) not in self._agreed:
                duration = self._describe_duration(client, context, provider)
                questions = ClientQuestions(provider, with_roots and is_modern(ctx), client, duration)
                answers = await ask_client(ctx, params, questions)
                if isinstance(answers, types.InputRequiredResult):
                    return answers
                if not answers.agreed:
                    self._declined.put((*client, provider), value=True)
                    return context
                if refusal := await self._keep(client, context, provider):
                    what = f"nothing was sent to {provider}: the consent could not be written: {refusal.what}"
                    return replace(refusal, what=what)
        if context.is_owner or not provider:
            return context
        return replace(context, record=add_consent(context.record, provider))

    async def _find_unasked_provider(self, ctx: Context, context: ToolContext, find_provider: FindProvider) -> str:
        """Return the provider to ask the user about; empty: there is none, or no way to ask."""
        if not self._terms.asks_consent or not can_elicit(ctx):
            return ""
        provider = await run_in_thread(find_provider, context)
        return "" if (*_identify_client(ctx, context), provider) in self._declined else provider

    def _describe_duration(self, client: ClientIdentity, context: ToolContext, provider: str) -> str:
        if context.is_owner:
            return _PERMANENT.format(provider)
        duration = "for this client, until Sightline stops" if self._is_identifiable(client) else "for this call only"
        return _TEMPORARY.format(duration, provider)

    async def _keep(self, client: ClientIdentity, context: ToolContext, provider: str) -> Refusal | None:
        """Store a consent for as long as it is valid.

        The owner's consent is permanent and counts everywhere. Anyone on this machine may find an open port, so the
        consent of another client counts for that client, or for one call if the next one may come from another client.
        """
        if context.is_owner:
            return await asyncio.to_thread(context.record.policy.set_consent, provider, given=True)
        if self._is_identifiable(client):
            self._agreed.put((*client, provider), value=True)
        return None

    def _is_identifiable(self, client: ClientIdentity) -> bool:
        scope, _, session = client
        return bool(session) or scope != self._terms.get_shared_scope()


def _identify_client(ctx: Context, context: ToolContext) -> ClientIdentity:
    client = ctx.session.client_params
    session = ctx.request.headers.get("mcp-session-id", "") if ctx.request is not None else ""
    return context.scope, client.client_info.name[:_MAX_NAME] if client else "", session


class _AgreedPolicy:
    """The policy of a record, with consent to one more provider that the record doesn't contain."""

    def __init__(self, record: Store, provider: str) -> None:
        self._record, self._provider = record, provider

    def read_consents(self) -> Mapping[str, bool]:
        """Return the consents. The owner's answer takes precedence, so nothing is added to an unreadable record."""
        consents = self._record.policy.read_consents()
        return consents if self._record.find_trouble() else {self._provider: True, **consents}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record.policy, name)


class _AgreedStore:
    """A record with an `_AgreedPolicy`."""

    def __init__(self, record: Store, provider: str) -> None:
        self._record = record
        self.policy = _AgreedPolicy(record, provider)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


def add_consent(record: Store, provider: str) -> Store:
    """Return the record for a client whose consent is valid only for that client.

    It is the same object each time, because seers are cached by their record.
    """
    return _build_agreed_store(cast("Any", record), provider)


@lru_cache(64)
def _build_agreed_store(record: Store, provider: str) -> Store:
    return cast("Store", _AgreedStore(record, provider))
