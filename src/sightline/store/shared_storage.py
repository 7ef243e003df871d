"""Which backend a shared record uses now: PostgreSQL with object storage, or memory while the server can't be used.

| state      | rows and blobs        | reads                             | writes                | consents   |
|------------|-----------------------|-----------------------------------|-----------------------|------------|
| `open`     | the servers'          | yes, what is known from a cache   | durable               | as written |
| `stand_in` | this process's memory | what was cached, or written there | lost with the process | none       |

A thread asks the server once a second for the number of changes that were announced (consents, lessons, saved
descriptions, and what was forgotten), and clears the caches if another process has announced one. It reads consents and
lessons again itself, so that the event loop never waits for them. A notification of the server makes it ask at once,
where one arrives. If the server doesn't answer, requests go on in the state `stand_in`, as
with a record on a disk that is gone: nothing is reported as durable, and no image is sent to a provider that needs
consent. The thread then tries to connect again, also once a second.

Replicas can be updated one by one. A newer one migrates the schema, which waits for transactions that are under way and
only adds to it; the older ones go on, and say once that they are outdated. An older one that starts is refused, and one
that has to connect again goes on in memory.

Object storage that fails does not change the state: images can't be stored or read until it works again.

Ages are measured by the server's clock, so that replicas whose clocks differ agree.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg

from sightline.model.refusal import Refusal
from sightline.model.shared_address import SharedAddress
from sightline.store.blobs import ByteCache, CachedBlobs
from sightline.store.migrations import MIGRATIONS, ForeignDatabaseError, OtherVersionError
from sightline.store.object_blobs import open_blobs
from sightline.store.postgres_connection import ChangeListener
from sightline.store.postgres_database import PostgresDatabase
from sightline.store.record_folder import STORAGE_ERRORS, explain_error
from sightline.store.retention import RecordBounds
from sightline.store.server_errors import ServerError
from sightline.store.storage import Backend, Clock, RowCache, StorageState

_log = logging.getLogger(__name__)
_POLL_SECONDS = 1.0
_SWEEP_SECONDS = 3600.0
_CLOCK_SECONDS = 60.0  # the server's clock is read with every poll
_CACHED_ROWS = 20_000
_UPDATE = "install that version on every replica, or use another database"
_CACHED_BYTES, _CACHED_NAMES = 128 << 20, 100_000


@dataclass(frozen=True, slots=True)
class SharedBounds:
    """The limits of a shared record, and of what replaces it in memory."""

    servers: RecordBounds
    memory: RecordBounds


class SharedStorage:
    """Implements `RecordStorage`."""

    def __init__(self, address: SharedAddress, bounds: SharedBounds, now: Clock) -> None:
        """Connect, and create or migrate the schema; raise if that is not possible."""
        self._address, self._bounds, self._now = address, bounds, now
        self._rows, self._policy = (RowCache(_CACHED_ROWS, is_polled=True) for _ in range(2))
        self._bytes = ByteCache(_CACHED_BYTES, _CACHED_NAMES)
        self._reason: Refusal | None = None
        self._is_outdated = False  # a newer version has migrated the schema
        self._offset = 0.0  # of the server's clock
        self._changes = -1
        self._lock, self._closing = threading.Lock(), threading.Event()
        self._backend = self._connect(create=True)
        self._listener = ChangeListener(address.store)
        self._poll_changes(self._backend)
        self._thread = threading.Thread(target=self._watch, name="shared record", daemon=True)
        self._thread.start()

    @property
    def folder(self) -> Path | None:
        return None

    @property
    def backend(self) -> Backend:
        return self._backend

    @property
    def state(self) -> StorageState:
        return "open" if self._reason is None else "stand_in"

    @property
    def read_refusal(self) -> Refusal | None:
        return self._reason

    @property
    def write_refusal(self) -> Refusal | None:
        return self._reason

    def ensure_current(self, *, wait: bool = True) -> bool:
        return True

    def read_clock(self) -> float:
        """Return the time of the server's clock."""
        return self._now() + self._offset

    def report_error(self, error: Exception) -> bool:
        """Use memory if the server can't be used; return whether that was logged."""
        if not (isinstance(error, ServerError) and error.is_down):
            return False
        self._switch_to_memory(error)
        return True

    def claim_sweep(self) -> bool:
        """Return whether no replica has swept for an hour; the caller then has to."""
        database = self._backend.database
        try:
            return isinstance(database, PostgresDatabase) and database.claim_sweep(self.read_clock(), _SWEEP_SECONDS)
        except ServerError as error:  # another replica may be sweeping
            self.report_error(error)
            return False

    def replace_key(self, key: bytes) -> None:
        """Replace the key for the hashes of credentials, in a record without rows that use it."""
        database = self._backend.database
        assert isinstance(database, PostgresDatabase)
        database.replace_key(key)
        self._backend = replace(self._backend, key=key)

    def close(self) -> None:
        self._closing.set()
        self._listener.interrupt()
        if threading.current_thread() is not self._thread:  # where the last reference to the store may be dropped
            self._thread.join()
        self._listener.close()
        self._backend.database.close()

    def _connect(self, *, create: bool) -> Backend:
        database = PostgresDatabase(self._address.store)
        try:
            with database.allow_long_statements() if create else nullcontext():
                database.check_schema()  # before anything is created
                blobs = open_blobs(self._address.blobs, self._address.environment, create=create)
                key = database.prepare_schema()
        except BaseException:
            database.close()
            raise
        cached = CachedBlobs(blobs, self._bytes)
        backend = Backend(database, cached, key, self._bounds.servers, row_cache=self._rows, policy_cache=self._policy)
        return replace(backend, clock_seconds=_CLOCK_SECONDS)

    def _watch(self) -> None:
        """Follow the server until the storage is closed."""
        while not self._wait_for_hint():
            try:
                if self._reason is None:
                    self._poll_changes(self._backend)
                else:
                    self._reconnect()
            except ServerError as error:
                if self._reason is None:
                    self._switch_to_memory(error)
            except STORAGE_ERRORS as error:  # another version has migrated it: this process goes on in memory
                self._note_other_version(error)
            except Exception:  # noqa: BLE001, without this thread, nothing would reach the caches
                _log.warning("The shared record could not be asked for changes.", exc_info=True)

    def _note_other_version(self, error: Exception) -> None:
        """Say once why the record can't be used again although its server can."""
        reason = Refusal("unavailable", f"the shared record cannot be used: {error}", _UPDATE)
        if reason != self._reason:
            self._reason = reason
            _log.warning("The shared record cannot be used again: %s (%s)", error, _UPDATE)

    def _wait_for_hint(self) -> bool:
        """Wait for the next poll, and return whether the storage is closed."""
        if self._reason is None:
            with suppress(psycopg.Error):
                self._listener.wait(_POLL_SECONDS)
                return self._closing.is_set()
        self._listener.close()
        return self._closing.wait(_POLL_SECONDS)

    def _poll_changes(self, backend: Backend) -> None:
        database = backend.database
        assert isinstance(database, PostgresDatabase)
        began, checked_at = self._now(), time.monotonic()
        changes, server_time, version = database.read_state()
        if version > len(MIGRATIONS) and not self._is_outdated:
            self._is_outdated = True
            _log.warning("A newer version of Sightline has migrated the shared record (%s)", _UPDATE)
        if self._now is time.time:
            self._offset = server_time - (began + self._now()) / 2
        if database.has_foreign_change(self._changes, changes):  # after its own, this process has cleared them itself
            self._bytes.clear()
            for cache in (self._policy, self._rows):
                cache.reload(database.fetch_all)
        self._changes, self._rows.checked_at = changes, checked_at

    def _switch_to_memory(self, error: ServerError) -> None:
        with self._lock:
            if self._reason is not None or self._closing.is_set():
                return
            before = self._backend
            memory = Backend.open_in_memory(self._bounds.memory, is_stand_in=True)
            blobs = CachedBlobs(memory.blobs, self._bytes, fills=False)
            self._backend = replace(memory, blobs=blobs, key=before.key, row_cache=self._rows, fills_cache=False)
            self._reason = Refusal("unavailable", f"the shared record cannot be used: {error}", error.remedy)
        _log.warning(
            "The shared record cannot be used: %s; until then new images and descriptions are only in memory, and there"
            " are no consents (%s)",
            *(error, error.remedy),
        )
        threading.Thread(target=before.database.close, daemon=True).start()  # it may wait for a server that hangs

    def _reconnect(self) -> None:
        backend = self._connect(create=False)
        self._changes = -1
        self._poll_changes(backend)
        with self._lock:
            before, self._backend, self._reason = self._backend, backend, None
        before.database.close()
        _log.warning("The shared record can be used again.")


def open_shared_storage(address: SharedAddress, bounds: SharedBounds, now: Clock) -> SharedStorage | Refusal:
    """Open a shared record, or return why that is not possible; then nothing was created."""
    if refusal := address.check():
        return refusal
    try:
        return SharedStorage(address, bounds, now)
    except ForeignDatabaseError as error:
        why, remedy = str(error), "use another database or schema"
    except OtherVersionError as error:
        why, remedy = str(error), _UPDATE
    except STORAGE_ERRORS as error:
        why, remedy = explain_error(None, error)
    return Refusal("unavailable", f"the shared record cannot be used: {why}", remedy)
