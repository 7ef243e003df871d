"""What is told of requests when they have passed: receipts for the record, a line for the log, a word of warning.

No image byte, no text of a conversation and no key is in any of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping

from sightline.engine import Reading
from sightline.model.fence import plain
from sightline.model.ports import Store
from sightline.model.receipt import Filed, Omission, Receipt
from sightline.model.scene import Json
from sightline.surfaces.proxy.headers import Request, credential_of
from sightline.surfaces.proxy.passing import Passing
from sightline.surfaces.proxy.routes import Route
from sightline.vision.lru_cache import LruCache
from sightline.wire.jsontext import Document
from sightline.wire.omitted import omitted_by

log = logging.getLogger("sightline")

_SESSIONS = (  # what clients call a session, or a part of one
    b"x-claude-code-session-id",
    b"session-id",
    b"session_id",
    b"thread-id",
    b"x-session-id",
    b"x-session-affinity",
    b"x-codex-window-id",
)
_LONGEST = 200  # letters of a label or of a model's name
_WARNED = 1024  # models of clients that a word was said about: names come from outside


class Watch:
    def __init__(
        self,
        record: Store,
        write: Callable[[Mapping[str, Json]], None] | None = None,
        warn: Callable[[Omission], None] = lambda omission: None,
    ) -> None:
        self._record = record
        self._write = write  # None: nobody wants a line for each request
        self._warn = warn
        self._warned: LruCache[bool] = LruCache(_WARNED)

    def read(self, request: Request, reading: Reading, client: str | None) -> None:
        """What a request asks for is known; `client` has left an image out of it."""
        model = request.passing.model = plain(reading.scene.model[:_LONGEST])
        if client and (client, model) not in self._warned:
            self._warned.put((client, model), value=True)
            asyncio.get_running_loop().run_in_executor(None, self._notice, Omission(client, model))

    def _notice(self, omission: Omission) -> None:
        """A word for all who share the record, once; beside the loop, since the record may be slow."""
        known = {(one.client, one.model) for one in self._record.conversations.list_omissions()}
        self._record.conversations.note_omission(omission)
        if (omission.client, omission.model) not in known:
            self._warn(omission)

    def prepared(self, request: Request, way: Route, receipt: Receipt) -> None:
        request.passing.receipt = receipt
        scope = self._record.scope_of(credential_of(request, way))
        self._record.ledger.file_receipt(scope, Filed(receipt, way.api, labels(request)))

    def ended(self, request: Request, status: int, way: Route | None = None) -> None:
        """Without a way it was refused before it had one."""
        if self._write is not None:
            self._write(line(request.passing, status, way))


def find_omission(reading: Reading, way: Route) -> str | None:
    """Return the client that has left an image out of a request, by the name of its command."""
    assert way.wire is not None
    try:
        return omitted_by(reading.texts, way.wire.items) if isinstance(reading.texts, Document) else None
    except Exception:  # a fault of ours must not be worse than our absence
        log.exception("a request could not be looked through for what its client left out")
        return None


def line(passing: Passing, status: int, way: Route | None) -> dict[str, Json]:
    receipt = passing.receipt
    return {
        "wire": way.wire.name if way and way.wire else "other",
        "upstream": way.upstream.name if way else "",
        "model": passing.model,
        "status": status,
        "ms": round((time.perf_counter() - passing.began) * 1000),
        "fates": {**Counter(each.fate for each in receipt.sights)} if receipt else {},
        "notes": [*receipt.notes] if receipt else [],
    }


def labels(request: Request) -> tuple[tuple[str, str], ...]:
    """What the client calls its session. Nothing is ever looked up by it."""
    return tuple([(name.decode(), plain(value[:_LONGEST])) for name in _SESSIONS if (value := request.header(name))])
