"""Reports about requests: counters for Prometheus, receipts for the record, log lines, and warnings.

None of it contains an image byte, a text of a conversation or a key. If several processes serve one port, any of them
may be asked for the counters; so each returns the sum over all of them, because a counter must not decrease.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache

import orjson

from sightline.dial import Exchange
from sightline.engine import Reading
from sightline.model.fence import to_printable
from sightline.model.ports import Ledger, Store
from sightline.model.profile import WireName
from sightline.model.records import FateName, FiledReceipt, Omission, Receipt
from sightline.model.request_trace import AnswerSlot, TraceParts
from sightline.model.scene import Json
from sightline.model.value import value_class
from sightline.server import App, Message, Receive, Scope, Send
from sightline.surfaces.proxy.http_headers import ClientNames, ClientRequest
from sightline.surfaces.proxy.request_context import LogEntry, RequestContext
from sightline.surfaces.proxy.routes import Route
from sightline.vision.concurrency import LruCache
from sightline.vision.vision_request import SEER_ACTIVITY, SeerActivity
from sightline.wire.answer_usage import AnswerEnds
from sightline.wire.json_document import JsonDocument
from sightline.wire.message_texts import find_omission_note

log = logging.getLogger("sightline")

LOG_ENTRY = "sightline.log_entry"  # the key of a request's `LogEntry` in its scope
CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"
_HELP: Mapping[str, str] = {
    "sightline_requests_total": "Requests answered, by wire, upstream and status of the response.",
    "sightline_sights_total": "Images found in requests, by what was done with them.",
    "sightline_tokens_total": "Estimated tokens of images, before and after.",
    "sightline_repairs_total": "Requests sent once more after the upstream rejected an image.",
}
_SESSION_HEADERS = (  # in which clients name a session or a part of one
    b"x-claude-code-session-id session-id session_id thread-id x-session-id x-session-affinity"
    b" x-codex-window-id".split()
)
_MAX_LABEL_LENGTH = 200  # characters of a label or of a model's name
_MAX_CLIENT_LENGTH = 80
SLOW_SECONDS = 2.0  # after which a question to a seer is reported as still open
_MAX_WARNED = 1024  # pairs of client and model that were warned about; requests choose these names

CountName = tuple[str, tuple[tuple[str, str], ...]]
Counts = Counter[CountName]
_TOKENS_BEFORE: CountName = ("sightline_tokens_total", (("side", "before"),))
_TOKENS_AFTER: CountName = ("sightline_tokens_total", (("side", "after"),))


@lru_cache(1024)  # each request has one, of few
def _name_requests(wire: str, upstream: str, status: int) -> CountName:
    return "sightline_requests_total", (("wire", wire), ("upstream", upstream), ("status", str(status)))


@cache
def _name_sights(fate: FateName) -> CountName:
    return "sightline_sights_total", (("fate", fate),)


class SharedCounts:
    """The counts of several processes, in memory that they share since before they forked; each has its own part."""

    _PART_BYTES = 256 * 1024
    _HEAD = struct.Struct("<II")  # length and checksum: a process may read while another writes
    _MAX_READS = 100

    def __init__(self, workers: int) -> None:
        self._memory = mmap.mmap(-1, workers * self._PART_BYTES)
        self._workers = workers

    def write(self, worker: int, counts: Counts, active: int) -> None:
        data = orjson.dumps((active, [(name, labels, count) for (name, labels), count in counts.items()]))
        if len(data) + self._HEAD.size <= self._PART_BYTES:
            at = worker * self._PART_BYTES
            self._memory[at : at + self._HEAD.size] = self._HEAD.pack(len(data), zlib.crc32(data))
            self._memory[at + self._HEAD.size : at + self._HEAD.size + len(data)] = data

    def read(self, worker: int) -> tuple[Counts, int]:
        """Return the counts of one process, and how many requests it is serving."""
        at = worker * self._PART_BYTES
        for _ in range(self._MAX_READS):
            length, checksum = self._HEAD.unpack_from(self._memory, at)
            data = self._memory[at + self._HEAD.size : at + self._HEAD.size + length]
            if length and zlib.crc32(data) == checksum:
                under_way, rows = orjson.loads(data)
                pairs = ((name, tuple((key, value) for key, value in labels), count) for name, labels, count in rows)
                return Counter({(name, labels): count for name, labels, count in pairs}), under_way
        return Counter(), 0

    def read_others(self, worker: int) -> Iterator[tuple[Counts, int]]:
        return (self.read(each) for each in range(self._workers) if each != worker)


class Metrics:
    def __init__(self, shared: SharedCounts | None = None, worker: int = 0) -> None:
        """`worker` is the number of this process; a process that replaces another continues its counts."""
        self._shared = shared
        self._worker = worker
        self._counts = shared.read(worker)[0] if shared else Counts()
        self._active = 0
        self._share()

    def start_request(self) -> None:
        self._active += 1
        if self._shared is not None:
            self._share()

    def end_request(self, wire: str, upstream: str, status: int) -> None:
        self._active -= 1
        self._counts[_name_requests(wire, upstream, status)] += 1
        if self._shared is not None:
            self._share()

    def _share(self) -> None:
        if self._shared is not None:
            self._shared.write(self._worker, self._counts, self._active)

    def count_receipt(self, receipt: Receipt, *, is_retry: bool) -> None:
        if is_retry:
            self._counts["sightline_repairs_total", (("upstream", receipt.upstream),)] += 1
            return
        if not receipt.sights:
            return
        counts, before, after = self._counts, 0, 0
        for line in receipt.sights:
            counts[_name_sights(line.fate)] += 1
            before += line.before or 0
            after += line.after or 0
        counts[_TOKENS_BEFORE] += before
        counts[_TOKENS_AFTER] += after

    def render(self) -> str:
        counts, active = Counts(self._counts), self._active
        for other_counts, other_active in self._shared.read_others(self._worker) if self._shared else ():
            counts.update(other_counts)
            active += other_active
        return "\n".join(_render_lines(counts, active)) + "\n"


def _render_lines(counts: Counts, active: int) -> Iterator[str]:
    for name, about in _HELP.items():
        yield f"# HELP {name} {about}"
        yield f"# TYPE {name} counter"
        yield from (f"{each}{{{_render_labels(of)}}} {n}" for (each, of), n in sorted(counts.items()) if each == name)
    yield "# HELP sightline_requests_under_way Requests that are being answered."
    yield "# TYPE sightline_requests_under_way gauge"
    yield f"sightline_requests_under_way {active}"


def _render_labels(labels: tuple[tuple[str, str], ...]) -> str:
    return ",".join(f'{label}="{_escape(value)}"' for label, value in labels)


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@value_class
class RequestPrinter:
    """What a person at a terminal reads about requests: those that were changed, and those that wait for a seer."""

    print_change: Callable[[LogEntry], None]
    print_wait: Callable[[LogEntry], None]


class RequestLog:
    def __init__(
        self,
        record: Store,
        write: Callable[[Mapping[str, Json]], None] | None = None,
        warn: Callable[[Omission], None] = lambda omission: None,
        printer: RequestPrinter | None = None,
        on_receipt: Callable[[Receipt], None] = lambda receipt: None,
    ) -> None:
        """`write` gets the fields of each request, for a log for programs; `printer` prints lines for people."""
        self._record = record
        self._write = write
        self._warn = warn
        self._printer = printer
        self._on_receipt = on_receipt
        self._warned: LruCache[bool] = LruCache(_MAX_WARNED)

    def wrap(self, app: App) -> App:
        """Return an application that logs each request, if there is a log."""
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
                write(_build_log_fields(entry))

        return serve

    def start_activity(self, entry: LogEntry) -> None:
        """Follow the questions to seers that the current task and its subtasks ask, if there is a printer."""
        if self._printer is not None:
            loop = asyncio.get_running_loop()

            def on_question() -> None:  # perhaps in another thread
                loop.call_soon_threadsafe(loop.call_later, SLOW_SECONDS, self._print_wait, entry)

            entry.activity = SeerActivity(on_question)
            SEER_ACTIVITY.set(entry.activity)

    def _print_wait(self, entry: LogEntry) -> None:
        if self._printer is not None and entry.activity is not None and entry.activity.is_waiting:
            self._printer.print_wait(entry)

    def finish_request(self, entry: LogEntry) -> None:
        """Print what was changed in a request, if anything was and there is a printer."""
        if entry.receipts and self._printer is not None and any(each.changes or each.notes for each in entry.receipts):
            self._printer.print_change(entry)

    def note_model(self, context: RequestContext, reading: Reading, client: str | None) -> None:
        """Note the model of a request, and warn if `client` has left an image out of it."""
        model = context.entry.model = to_printable(reading.scene.model[:_MAX_LABEL_LENGTH])
        if client and (client, model) not in self._warned:
            self._warned.put((client, model), value=True)
            asyncio.get_running_loop().run_in_executor(None, self._warn_once, Omission(client, model))

    def _warn_once(self, omission: Omission) -> None:
        """Warn once for all processes that share the record; runs in a thread, because the record may be slow."""
        known = {(one.client, one.model) for one in self._record.conversations.list_omissions()}
        self._record.conversations.note_omission(omission)
        if (omission.client, omission.model) not in known:
            self._warn(omission)

    def file_receipt(
        self,
        context: RequestContext,
        receipt: Receipt,
        parts: TraceParts | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        """File a receipt with its trace; the usage of the answer in `exchange` is added to it when that ends."""
        context.entry.receipts.append(receipt)
        self._on_receipt(receipt)
        names = context.head.client_names
        if names is None:
            names = context.head.client_names = _find_client_names(context.request)
        slot = None
        if exchange is not None and exchange.status == 200 and not exchange.get_header(b"content-encoding"):
            observer = _AnswerObserver(context.route.api, self._record.ledger)
            exchange.observe(observer)
            slot = observer.slot
        filed = FiledReceipt(receipt, context.route.api, names.labels, client=names.client, answer=slot, parts=parts)
        self._record.ledger.file_receipt(context.caller.scope, filed)


class _AnswerObserver:
    """Adds the usage of an answer to its receipt when the answer ends."""

    __slots__ = ("_ends", "_ledger", "_wire", "add", "slot")

    def __init__(self, wire: WireName, ledger: Ledger) -> None:
        self._wire, self._ledger, self._ends = wire, ledger, AnswerEnds()
        self.add = self._ends.add
        self.slot = AnswerSlot()

    def end(self) -> None:
        try:
            self.slot.usage = self._ends.find_usage(self._wire)
            self._ledger.add_usage(self.slot)
        except Exception:  # fail open
            log.exception("the usage of an answer could not be read")


def find_omitting_client(reading: Reading, route: Route) -> str | None:
    """Return the command name of the client that has left an image out of a request, or None."""
    assert route.wire is not None
    try:
        return (
            find_omission_note(reading.texts, route.wire.messages_key)
            if isinstance(reading.texts, JsonDocument)
            else None
        )
    except Exception:  # fail open
        log.exception("a request could not be searched for omitted images")
        return None


def _build_log_fields(entry: LogEntry) -> dict[str, Json]:
    route, receipt = entry.route, entry.receipts[-1] if entry.receipts else None
    return {
        "wire": route.wire.name if route and route.wire else "other",
        "upstream": route.upstream.name if route else "",
        "model": entry.model,
        "status": entry.status,
        "ms": round(entry.seconds * 1000),
        "fates": {**Counter(each.fate for each in receipt.sights)} if receipt else {},
        "notes": [*receipt.notes] if receipt else [],
    }


def _find_client_names(request: ClientRequest) -> ClientNames:
    """Return the client's names for itself and its session. They are only shown, never used as keys."""
    labels = tuple(
        [
            (name.decode(), to_printable(value[:_MAX_LABEL_LENGTH]))
            for name in request.list_names(_SESSION_HEADERS)
            if (value := request.get_header(name))
        ]
    )
    return ClientNames(to_printable(request.get_header(b"user-agent")[:_MAX_CLIENT_LENGTH]), labels)
