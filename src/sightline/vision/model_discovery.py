"""Fetch what upstreams publish about their models, in the background, and keep it in the record.

A request never waits for it: the first one goes by what is known, and later ones by what was found meanwhile. The
address is one of the upstream's own, and the credential is the one that the client sent there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic

import orjson

from sightline.model.ports import HttpSender, ModelListing, PolicyStore
from sightline.model.profile import RequestOrigin
from sightline.model.refusal import Refusal
from sightline.profiles.model_listings import ListingRequest, list_requests, parse_listing
from sightline.vision.concurrency import LruCache
from sightline.wire.json_tree import parse_bounded_json

_SECONDS = 10.0
_FRESH_DAYS = 1.0
_RETRY_SECONDS = 3600.0  # after a listing could not be fetched, or says nothing
_FAILURES_KEPT = 1024
_log = logging.getLogger(__name__)


class ModelDiscovery:
    def __init__(self, http: HttpSender, policy: PolicyStore, clock: Callable[[], float] = monotonic) -> None:
        self._http = http
        self._policy = policy
        self._clock = clock
        self._paused: LruCache[float] = LruCache(_FAILURES_KEPT)  # until when, by upstream and model
        self._running: dict[tuple[str, str], asyncio.Task[None]] = {}

    def start(self, origin: RequestOrigin, model: str) -> None:
        """Fetch what the upstream publishes about a model, in the background, unless it is known or being fetched."""
        requests = list_requests(origin.upstream, origin.wire, model)
        if not requests or not (origin.has_credential or origin.upstream.is_on_loopback):
            return
        key = (origin.upstream.name, requests[0].model)
        until = self._paused.get(key)
        if key in self._running or (until is not None and self._clock() < until):
            return
        task = asyncio.get_running_loop().create_task(self._discover(key, origin, requests))
        self._running[key] = task
        task.add_done_callback(lambda _: self._running.pop(key, None))

    @property
    def is_idle(self) -> bool:
        return not self._running

    async def close(self) -> None:
        """Cancel what is being fetched."""
        running = [*self._running.values()]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def wait(self) -> None:
        """Wait for everything that is being fetched."""
        await asyncio.gather(*self._running.values())

    async def _discover(self, key: tuple[str, str], origin: RequestOrigin, requests: Sequence[ListingRequest]) -> None:
        if await asyncio.to_thread(self._policy.has_fresh_listing, *key):
            self._paused.put(key, self._clock() + _RETRY_SECONDS)  # nor is the record read again before that
            return
        for request in requests:
            found = await self._fetch(origin, request)
            if found:
                listing = ModelListing(found, requests[0].model)
                await asyncio.to_thread(self._policy.keep_listing, key[0], listing, _FRESH_DAYS)
                _log.info("%s publishes what %d of its models take", key[0], len(found))
                break
        self._paused.put(key, self._clock() + _RETRY_SECONDS)

    async def _fetch(self, origin: RequestOrigin, request: ListingRequest) -> Mapping[str, Mapping[str, bool]]:
        """Return what an answer says about models; nothing if there is no usable answer."""
        headers = {**dict(origin.headers), "accept": "application/json", "accept-encoding": "identity"}
        body = b"" if request.body is None else orjson.dumps(request.body)
        if body:
            headers["content-type"] = "application/json"
        reply = await self._http.ask("POST" if body else "GET", request.url, headers, body, _SECONDS)
        if isinstance(reply, Refusal) or reply.status != 200:
            return {}
        try:
            return parse_listing(parse_bounded_json(reply.body), request.model)
        except orjson.JSONDecodeError:
            return {}
