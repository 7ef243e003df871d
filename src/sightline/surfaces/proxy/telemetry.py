"""What is known about requests: counters for Prometheus, receipts for the record, a log line for each, and warnings.

No image byte, no text of a conversation and no key is in any of it. Any of several processes on one port may be asked
for the counters, so each returns the sum over all of them: a counter must not fall.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import struct
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import orjson

from sightline.engine import Reading
from sightline.model.fence import plain
from sightline.model.ports import Store
from sightline.model.receipt import Filed, Omission, Receipt
from sightline.model.scene import Json
from sightline.server import App, Message, Receive, Scope, Send
from sightline.surfaces.proxy.context import LogEntry, RequestContext
from sightline.surfaces.proxy.headers import Request
from sightline.surfaces.proxy.routes import Route
from sightline.vision.lru_cache import LruCache
from sightline.wire.jsontext import Document
from sightline.wire.omitted import omitted_by

log = logging.getLogger("sightline")

LOG_ENTRY = "sightline.log_entry"  # the key of a request's `LogEntry` in its scope
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_HELP: Mapping[str, str] = {
    "sightline_requests_total": "Requests answered, by the wire they came on, their upstream and the answer's status.",
    "sightline_sights_total": "Images found in requests, by what became of them.",
    "sightline_tokens_total": "Estimated tokens of images, as they came and as they went on.",
    "sightline_repairs_total": "Requests sent once more after the upstream refused an image.",
}
_SESSIONS = (  # what clients call a session, or a part of one
    b"x-claude-code-session-id session-id session_id thread-id x-session-id x-session-affinity"
    b" x-codex-window-id".split()
)
_LONGEST = 200  # letters of a label or of a model's name
_WARNED = 1024  # models of clients that were warned about: names come from outside

Counts = Counter[tuple[str, tuple[tuple[str, str], ...]]]


class SharedCounts:
    """The counts of several processes, in memory that is shared before they fork; each writes to its own place."""

    _ROOM = 256 * 1024
    _HEAD = struct.Struct("<II")  # length and checksum: one may read while another writes
    _TRIES = 100

    def __init__(self, number: int) -> None:
        self._memory = mmap.mmap(-1, number * self._ROOM)
        self._number = number

    def write(self, who: int, counts: Counts, under_way: int) -> None:
        data = orjson.dumps((under_way, [(name, labels, count) for (name, labels), count in counts.items()]))
        if len(data) + self._HEAD.size <= self._ROOM:
            at = who * self._ROOM
            self._memory[at : at + self._HEAD.size] = self._HEAD.pack(len(data), zlib.crc32(data))
            self._memory[at + self._HEAD.size : at + self._HEAD.size + len(data)] = data

    def read(self, who: int) -> tuple[Counts, int]:
        """Return the counts of one process, and how many requests it is serving."""
        at = who * self._ROOM
        for _ in range(self._TRIES):
            length, checksum = self._HEAD.unpack_from(self._memory, at)
            data = self._memory[at + self._HEAD.size : at + self._HEAD.size + length]
            if length and zlib.crc32(data) == checksum:
                under_way, rows = orjson.loads(data)
                pairs = ((name, tuple((key, value) for key, value in labels), count) for name, labels, count in rows)
                return Counter({(name, labels): count for name, labels, count in pairs}), under_way
        return Counter(), 0

    def read_others(self, who: int) -> Iterator[tuple[Counts, int]]:
        return (self.read(each) for each in range(self._number) if each != who)


class Metrics:
    def __init__(self, shared: SharedCounts | None = None, who: int = 0) -> None:
        """`who`: the number of this process; one that replaces another goes on from its counts."""
        self._shared = shared
        self._who = who
        self._counts = shared.read(who)[0] if shared else Counts()
        self._under_way = 0
        self._share()

    def start_request(self) -> None:
        self._under_way += 1
        self._share()

    def end_request(self, wire: str, upstream: str, status: int) -> None:
        self._under_way -= 1
        self._add("sightline_requests_total", wire=wire, upstream=upstream, status=str(status))
        self._share()

    def _share(self) -> None:
        if self._shared is not None:
            self._shared.write(self._who, self._counts, self._under_way)

    def count_receipt(self, receipt: Receipt, *, again: bool) -> None:
        if again:
            self._add("sightline_repairs_total", upstream=receipt.upstream)
            return
        if not receipt.sights:
            return
        fates: dict[str, int] = {}
        before = after = 0
        for line in receipt.sights:
            fates[line.fate] = fates.get(line.fate, 0) + 1
            before += line.before or 0
            after += line.after or 0
        for fate, count in fates.items():
            self._add("sightline_sights_total", count, fate=fate)
        self._add("sightline_tokens_total", before, side="before")
        self._add("sightline_tokens_total", after, side="after")

    def _add(self, name: str, count: int = 1, **labels: str) -> None:
        self._counts[name, tuple(labels.items())] += count

    def render(self) -> str:
        counts, under_way = Counts(self._counts), self._under_way
        for others, theirs in self._shared.read_others(self._who) if self._shared else ():
            counts.update(others)
            under_way += theirs
        return "\n".join(_render(counts, under_way)) + "\n"


def _render(counts: Counts, under_way: int) -> Iterator[str]:
    for name, about in _HELP.items():
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} counter"
        yield from (f"{each}{{{_render_labels(of)}}} {n}" for (each, of), n in sorted(counts.items()) if each == name)
    yield "# HELP sightline_requests_under_way Requests that are being answered."
    yield "# TYPE sightline_requests_under_way gauge"
    yield f"sightline_requests_under_way {under_way}"


def _render_labels(labels: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f'{label}="{_escape(value)}"' for label, value in labels)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class RequestLog:
    def __init__(
        self,
        record: Store,
        write: Callable[[Mapping[str, Json]], None] | None = None,
        warn: Callable[[Omission], None] = lambda omission: None,
    ) -> None:
        self._record = record
        self._write = write  # None: no line for each request is wanted
        self._warn = warn
        self._warned: LruCache[bool] = LruCache(_WARNED)

    def wrap(self, app: App) -> App:
        """Return an application that writes a line for each request, if one is wanted."""
        write = self._write
        if write is None:
            return app

        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return
            entry = scope[LOG_ENTRY] = LogEntry()

            async def observe(message: Message) -> None:
                entry.status = message.get("status", entry.status)
                await send(message)

            try:
                await app(scope, receive, observe)
            finally:
                write(_describe(entry))

        return serve

    def note_model(self, context: RequestContext, reading: Reading, client: str | None) -> None:
        """Note which model a request asks for; `client` has left an image out of it."""
        model = context.entry.model = plain(reading.scene.model[:_LONGEST])
        if client and (client, model) not in self._warned:
            self._warned.put((client, model), value=True)
            asyncio.get_running_loop().run_in_executor(None, self._notice, Omission(client, model))

    def _notice(self, omission: Omission) -> None:
        """Warn once for all processes that share the record; in a thread, since the record may be slow."""
        known = {(one.client, one.model) for one in self._record.conversations.list_omissions()}
        self._record.conversations.note_omission(omission)
        if (omission.client, omission.model) not in known:
            self._warn(omission)

    def file_receipt(self, context: RequestContext, receipt: Receipt) -> None:
        context.entry.receipt = receipt
        filed = Filed(receipt, context.route.api, _find_labels(context.request))
        self._record.ledger.file_receipt(context.caller.scope, filed)


def find_omission(reading: Reading, route: Route) -> str | None:
    """Return the client that has left an image out of a request, by the name of its command."""
    assert route.wire is not None
    try:
        return omitted_by(reading.texts, route.wire.items) if isinstance(reading.texts, Document) else None
    except Exception:  # fail open
        log.exception("a request could not be looked through for what its client left out")
        return None


def _describe(entry: LogEntry) -> dict[str, Json]:
    route, receipt = entry.route, entry.receipt
    return {
        "wire": route.wire.name if route and route.wire else "other",
        "upstream": route.upstream.name if route else "",
        "model": entry.model,
        "status": entry.status,
        "ms": round((time.perf_counter() - entry.began) * 1000),
        "fates": {**Counter(each.fate for each in receipt.sights)} if receipt else {},
        "notes": [*receipt.notes] if receipt else [],
    }


def _find_labels(request: Request) -> tuple[tuple[str, str], ...]:
    """Return what the client calls its session. Nothing is ever looked up by it."""
    return tuple([(name.decode(), plain(value[:_LONGEST])) for name in _SESSIONS if (value := request.header(name))])
