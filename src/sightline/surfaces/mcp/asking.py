"""What a call needs of its client: the user's consent, and the folders that the client works in.

Up to 2025-11-25 the server asks while a call is under way. From 2026-07-28 on it answers what it needs, and the client
calls again with the answers to all questions of that call, so nothing has to be remembered in between. An answer about
consent counts only beside the sealed state of the question: what nobody was asked, nobody has agreed to.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from collections.abc import Coroutine, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import urlsplit
from urllib.request import url2pathname

import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from sightline.api.session import Door
from sightline.model.ports import Store
from sightline.passes.words import SENT

_MOST_ROOTS = 64


def opened(door: Door, roots: Iterable[Path]) -> Door:
    """The door with the client's folders. Hosts start a server wherever they happen to be: that all of a disk or of
    a home is the working folder is nobody's wish, unless the settings say so."""
    allowed = tuple(_real(folder) for folder in (door.settings.fs_reach if door.settings else ()))
    kept = [folder for folder in door.policy.roots if folder in allowed or not _too_wide(folder)]
    named = [folder for folder in roots if not _too_wide(folder)]
    working, rest = kept[:1] if kept[:1] == list(door.policy.roots[:1]) else [], kept
    reach = tuple(dict.fromkeys((*working, *named, *rest)))
    here = door.here if door.here is None else (*(each for each in door.here if not _too_wide(each)), *named)
    return replace(door, policy=replace(door.policy, roots=reach), here=here)


def nowhere() -> bool:
    """Has the host started this process where nobody works?"""
    try:
        return _too_wide(Path.cwd())
    except OSError:  # somebody has removed it
        return True


def paths(uris: Iterable[str]) -> Iterator[Path]:
    """The folders that `file:` addresses name, and that are there."""
    for uri, _ in zip(uris, range(_MOST_ROOTS), strict=False):
        try:
            parts = urlsplit(uri)
            ours = parts.scheme == "file" and parts.netloc in ("", "localhost")
            folder = _real(Path(url2pathname(parts.path))) if ours and parts.path else None
            if folder is not None and folder.is_dir():
                yield folder
        except (OSError, ValueError):
            continue


def _too_wide(folder: Path) -> bool:
    """Is it a whole disk, a home, or where homes are?"""
    home = _real(Path(os.path.expanduser("~")))  # noqa: PTH111, which raises nothing where there is none
    real = _real(folder)
    return real == Path(real.anchor) or home.is_relative_to(real)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


T = TypeVar("T")
_BETWEEN = 1.0  # seconds


async def attended(ctx: ServerRequestContext[Any, Any], what: str, work: Coroutine[Any, Any, T]) -> T:
    task, began = asyncio.ensure_future(work), time.monotonic()
    try:
        while not (await asyncio.wait({task}, timeout=_BETWEEN))[0]:
            seconds = time.monotonic() - began
            await ctx.session.report_progress(round(seconds, 1), message=f"{what}: {seconds:.0f} s")
    except BaseException:
        task.cancel()
        raise
    return task.result()


log = logging.getLogger("sightline")

Context = ServerRequestContext[Any, Any]
Asked = types.CallToolRequestParams | types.GetPromptRequestParams
_ROOTS = "roots"
_ROOTS_SECONDS = 10.0  # a program answers, not a person


@dataclass(frozen=True, slots=True)
class Needs:
    consent: str = ""  # the provider that would get images
    roots: bool = False
    caller: tuple[str, ...] = ()  # who would agree
    lasts: str = ""  # for how long that would be, and how it is otherwise

    @property
    def state(self) -> str | None:
        """What a question is known by when its answer comes."""
        return json.dumps([self.consent, *self.caller]) if self.consent else None


@dataclass(frozen=True, slots=True)
class Answers:
    agreed: bool | None = None  # None: nobody was asked, or nobody answered
    roots: tuple[Path, ...] | None = None  # None: the client did not tell


def can_elicit(ctx: Context) -> bool:
    """Can the client show its user a form? One that names no way of asking takes forms."""
    declared = ctx.session.client_capabilities
    elicitation = declared.elicitation if declared else None
    forms = elicitation is not None and (elicitation.form is not None or elicitation.url is None)
    return forms and (is_modern(ctx) or ctx.session.can_send_request)


def has_roots(ctx: Context) -> bool:
    declared = ctx.session.client_capabilities
    return declared is not None and declared.roots is not None and (is_modern(ctx) or ctx.session.can_send_request)


def is_modern(ctx: Context) -> bool:
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


async def answers(ctx: Context, params: Asked, needs: Needs) -> Answers | types.InputRequiredResult:
    requests: dict[str, types.ElicitRequest | types.ListRootsRequest] = {}
    if needs.consent:
        requests[_name(needs.consent)] = _question(needs.consent, needs.lasts)
    if needs.roots:
        requests[_ROOTS] = types.ListRootsRequest()
    if not requests:
        return Answers()
    if is_modern(ctx):
        given = params.input_responses or {}
        asked = needs.state is None or params.request_state == needs.state
        return _read(given, needs) if asked and requests.keys() <= given.keys() else _required(requests, needs.state)
    found = {name: answer for name, request in requests.items() if (answer := await _sent(ctx, request)) is not None}
    return _read(found, needs)


def _name(provider: str) -> str:
    """Who agrees to one provider has not agreed to another."""
    return f"consent:{provider}"


def _question(provider: str, lasts: str) -> types.ElicitRequest:
    message = f"{SENT.format(provider)}: is that all right{lasts}"
    form = types.ElicitRequestFormParams(message=message, requested_schema={"type": "object", "properties": {}})
    return types.ElicitRequest(params=form)


def _required(requests: Mapping[str, types.InputRequest], state: str | None) -> types.InputRequiredResult:
    return types.InputRequiredResult(input_requests=dict(requests), request_state=state)


async def _sent(
    ctx: Context, request: types.ElicitRequest | types.ListRootsRequest
) -> types.ElicitResult | types.ListRootsResult | None:
    beside = ServerMessageMetadata(related_request_id=ctx.request_id)
    try:
        if isinstance(request, types.ElicitRequest):
            return await ctx.session.send_request(request, types.ElicitResult, metadata=beside)
        return await ctx.session.send_request(request, types.ListRootsResult, _ROOTS_SECONDS, beside)
    except (MCPError, ValidationError) as trouble:
        log.debug("the client did not answer %s: %s", request.method, trouble)
        return None


def _read(found: Mapping[str, object], needs: Needs) -> Answers:
    agreed = found.get(_name(needs.consent)) if needs.consent else None
    roots = found.get(_ROOTS)
    return Answers(
        agreed.action == "accept" if isinstance(agreed, types.ElicitResult) else None,
        tuple(paths(str(root.uri) for root in roots.roots)) if isinstance(roots, types.ListRootsResult) else None,
    )


class _AgreedPolicy:
    """A policy in which one provider has consent; the record itself does not say so."""

    def __init__(self, record: Store, provider: str) -> None:
        self._record, self._provider = record, provider

    def read_consents(self) -> Mapping[str, bool]:
        """Return the consents. The owner's no counts, and may be there where the record cannot be read."""
        found = self._record.policy.read_consents()
        return found if self._record.find_trouble() else {self._provider: True, **found}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record.policy, name)


class _AgreedStore:
    """A record with that policy."""

    def __init__(self, record: Store, provider: str) -> None:
        self._record = record
        self.policy = _AgreedPolicy(record, provider)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


def agreed(record: Store, provider: str) -> Store:
    """Return the record for a caller whose consent counts for that caller alone.

    It is the same one each time, since seers are cached by it.
    """
    return _agreed(cast("Any", record), provider)


@lru_cache(64)
def _agreed(record: Store, provider: str) -> Store:
    return cast("Store", _AgreedStore(record, provider))
