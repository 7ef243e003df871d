"""The record in SQL: the store itself, and its policy port (consents, lessons).

Each of the other four ports has a module of its own. Each row belongs to the scope that made it. Forgetting
an image concerns the tables of all ports and is one transaction here.

A lesson has one row for each thing that was learnt, so that each expires on its own.
"""

from __future__ import annotations

import json
import math
import weakref
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from functools import lru_cache
from itertools import groupby
from typing import cast

from sightline.model.ports import ModelListing
from sightline.model.profile import ImageLimits, Lesson, ToolImagePlacement, WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.store.record_folder import STORAGE_ERRORS, claim_sweep
from sightline.store.retention import BLOB_NAMES, DAY, ORPHAN_SECONDS
from sightline.store.sql import Row, SqlConnection, build_upsert
from sightline.store.sql_conversations import SqlConversations, forget_conversations
from sightline.store.sql_descriptions import SqlDescriptions, forget_descriptions
from sightline.store.sql_images import BEYOND_HEX, SqlImages, forget_images
from sightline.store.sql_ledger import SqlLedger, forget_ledger
from sightline.store.storage import Clock, RecordLocation, ReloadedQuery, Storage, hash_credential
from sightline.store.sweeps import delete_orphans, delete_orphans_in_steps, sweep
from sightline.store.transactions import (
    RecordStorage,
    Transactions,
    WriteBehind,
    refuse_on_error,
    require_durable,
    return_on_error,
)

_ALL_DIGESTS = (
    "SELECT sha256 AS name FROM images UNION SELECT sha256 FROM descriptions"
    " UNION SELECT image FROM perceptions UNION SELECT pixels FROM perceptions"
    " UNION SELECT json_each.value FROM entries, json_each(entries.images)"
    " UNION SELECT images FROM tellings WHERE instr(images, ' ') = 0"
)
_WRITE_LESSON = build_upsert("lessons", "scope, upstream, model, about, said, why, expires", "upstream, model, about")
_LESSON_QUERY = (
    "SELECT about, said, why, expires FROM lessons WHERE (upstream, model) = (?, ?)"
    " AND about != 'listed' ORDER BY about = 'blind', about"
)
_CONSENT_QUERY = "SELECT provider, given, at FROM consents NOT INDEXED"
_OWN_TOOLS, _PDF = "own tools", "pdf"  # in the column `about` of lessons
_LISTING_DAYS = 30.0  # that a published fact counts, if it can't be fetched again
_TOOLS_PREFIX = "tools "  # before the name of a wire, in the column `about` of lessons


class SqlStore:
    """Implements the port `Store`."""

    def __init__(self, storage: RecordStorage, now: Clock) -> None:
        self.transactions = Transactions(storage, now, sweep)
        self._deferred = WriteBehind(self.transactions)
        self.images = SqlImages(self.transactions)
        self.descriptions = SqlDescriptions(self.transactions)
        self.conversations = SqlConversations(self.transactions, self._deferred)
        self.ledger = SqlLedger(self.transactions, self._deferred)
        self.policy = SqlPolicy(self.transactions)
        self._finalizer = weakref.finalize(self, _close, self._deferred, self.transactions)

    @classmethod
    def open_folder(cls, location: RecordLocation, now: Clock, *, check: bool = True) -> SqlStore:
        """Open the record in a folder, or a fallback, and sweep it if the last sweep is over an hour ago.

        Without `check`, damage is only noticed where it is read.
        """
        store = cls(Storage.open_with_fallback(location, now, check=check), now)
        storage = store.transactions.storage
        if storage.state == "open" and claim_sweep(location.folder, now()):
            sweep(store.transactions, include_orphans=not storage.backend.is_new)
        return store

    def compute_scope(self, credential: str) -> str:
        return hash_credential(self.transactions.backend.key, credential)

    def find_trouble(self) -> Refusal | None:
        return self.transactions.storage.read_refusal or self.policy.read_refusal

    @refuse_on_error
    def find_known_images(self, prefix: str) -> Sequence[str]:
        rows = self.transactions.fetch_all(
            f"SELECT name FROM ({_ALL_DIGESTS}) AS digests WHERE name >= ? AND name < ? ORDER BY name LIMIT 2",  # noqa: S608
            *(prefix, prefix + BEYOND_HEX),
        )
        return tuple(name for (name,) in rows)

    @require_durable
    def forget(self, sha256: str | None, *, usage: bool = False) -> int:
        with self.transactions.backend.database.allow_long_statements():
            return self._forget(sha256, usage=usage)

    def _forget(self, sha256: str | None, *, usage: bool) -> int:
        """Forget an image with its bytes, or all images: then first all rows, and then the bytes, in portions."""
        if sha256 is not None:
            self._deferred.flush()  # receipts that name the image
        old = [*self._list_old_blobs()] if sha256 is None else []  # this fails before anything is deleted
        with self.transactions.begin_erasing() as (backend, connection):
            if sha256 is None:
                self._deferred.take_all()
            (count,) = connection.execute(
                f"SELECT COUNT(*) FROM ({_ALL_DIGESTS}) AS digests WHERE CAST(?1 AS TEXT) IS NULL OR name = ?1",  # noqa: S608
                (sha256,),
            ).fetchone()
            named = [name for (name,) in connection.execute(BLOB_NAMES)] if sha256 is None else []
            pixels = forget_images(connection, sha256)
            forget_descriptions(connection, sha256)
            forget_conversations(connection, sha256)
            forget_ledger(connection, sha256, usage=usage)
            backend.database.announce_change(connection)
            names = [] if sha256 is None else [sha256, *pixels]
            delete_orphans(connection, backend.blobs, names)
            backend.blobs.sync(names)
        if sha256 is None:
            names = [*{*named, *old}]
            delete_orphans_in_steps(self.transactions, names)
            backend.blobs.sync(names)
        return int(count)

    def _list_old_blobs(self) -> Iterator[str]:
        """Return every blob of a record on a disk. In shared storage, new ones may be those of another record."""
        is_shared = self.transactions.storage.folder is None
        return self.transactions.backend.blobs.list_names(
            self.transactions.wall_clock() - ORPHAN_SECONDS if is_shared else math.inf
        )

    def flush(self) -> None:
        """Write what is deferred."""
        self._deferred.flush()
        self.transactions.write_last_uses()

    def close(self) -> None:
        """Write what is deferred, and close all files. This also happens when the store is collected, and at exit."""
        self._finalizer()


def _close(deferred: WriteBehind, transactions: Transactions) -> None:
    deferred.close()
    transactions.write_last_uses()
    transactions.storage.close()


class SqlPolicy:
    """Implements the port `PolicyStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions
        self.read_refusal: Refusal | None = None  # why the consents could not be read
        # Withdrawals that could not be written: for each provider, the times of the rows that the record had then. A
        # row with another time was written later. None: the rows could not be read.
        self._withdrawn: dict[str, frozenset[float] | None] = {}

    @property
    def may_wait(self) -> bool:
        return self.transactions.backend.database.may_wait

    def set_consent(self, provider: str, given: bool) -> Refusal | None:
        """Store a consent. A withdrawal is effective in this process even if it cannot be written."""
        refusal = self._write_consent(provider, given)
        if refusal is None:
            self._withdrawn.pop(provider, None)
        elif not given:
            self._withdrawn[provider] = self._read_times(provider)
        return refusal

    def _read_times(self, provider: str) -> frozenset[float] | None:
        """Return when the rows of a consent were written, or None if the user's record cannot be read."""
        if self.transactions.storage.state == "stand_in":
            return None
        try:
            rows = self.transactions.fetch_all("SELECT at FROM consents NOT INDEXED WHERE provider = ?", provider)
        except STORAGE_ERRORS:
            return None
        return frozenset(at for (at,) in rows)

    @require_durable
    def _write_consent(self, provider: str, given: bool) -> None:
        """Write a consent, and empty the log: SQLite ignores what follows damage there."""
        with self.transactions.begin_exclusive() as tx:
            row = ("", provider, given, self.transactions.wall_clock())
            tx.connection.execute(build_upsert("consents", "scope, provider, given, at", "provider"), row)
        tx.backend.database.empty_log()

    def read_consents(self) -> Mapping[str, bool]:
        if not self.transactions.storage.ensure_current(wait=False):
            return {}
        try:
            rows = self.transactions.fetch_policy(_CONSENT_QUERY, reload=True)
        except STORAGE_ERRORS as error:
            self.transactions.log_error(error)
            self.read_refusal = self.transactions.refuse(error)
            return {}
        self.read_refusal = None
        return self._merge_consents(rows)

    def _merge_consents(self, rows: Sequence[Row]) -> Mapping[str, bool]:
        """Return whether each provider has consent. If a damaged index has left several rows, all must agree.

        For a withdrawal that could not be written, only a row that was written later counts. Times are only compared
        for equality, because the clock may have been set back since.
        """
        consents: dict[str, bool] = {}
        for provider, known in self._withdrawn.items():
            if known is None:
                self._withdrawn[provider] = self._read_times(provider)
        for provider, given, at in rows:
            before = self._withdrawn.get(provider, frozenset())
            is_given = bool(given) and before is not None and at not in before
            consents[provider] = is_given and consents.get(provider, True)
        return dict(sorted(consents.items()))

    @require_durable
    def keep_lesson(self, upstream: str, model: str, lesson: Lesson, days: float) -> None:
        with self.transactions.begin_exclusive() as tx:
            _insert_lesson(tx.connection, upstream, model, lesson, tx.now.time + days * DAY, tx.now.time)

    @return_on_error(None)
    def read_lesson(self, upstream: str, model: str) -> Lesson | None:
        key = _name_lesson(upstream, model)
        rows = self.transactions.fetch_cached(key, key.query, *key.values, absent=True)
        if not rows:  # nearly always
            return None
        now = self.transactions.read_record_time()
        known = [row[:3] for row in rows if row[3] > now]
        return _merge_lesson(known) if known else None

    @return_on_error(())
    def list_lessons(self) -> Sequence[tuple[str, str, Lesson]]:
        rows = self.transactions.fetch_all(
            "SELECT upstream, model, about, said, why FROM lessons WHERE expires > ? AND about != 'listed'"
            " ORDER BY upstream, model, about = 'blind', about",
            self.transactions.read_record_time(),
        )
        grouped = groupby(rows, key=lambda row: (str(row[0]), str(row[1])))
        return tuple((*model, _merge_lesson([row[2:] for row in group])) for model, group in grouped)

    @return_on_error(None)
    def keep_listing(self, upstream: str, listing: ModelListing, fresh_days: float) -> None:
        with self.transactions.begin_exclusive() as tx:
            counts, fresh = tx.now.time + _LISTING_DAYS * DAY, tx.now.time + fresh_days * DAY
            rows = [
                ("", upstream, model, "published", json.dumps(dict(kinds)), "", counts)
                for model, kinds in listing.models.items()
            ]
            if not listing.model:  # a model that is no longer listed
                tx.connection.execute("DELETE FROM lessons WHERE (upstream, about) = (?, 'published')", (upstream,))
            tx.connection.executemany(
                _WRITE_LESSON,
                [*rows, ("", upstream, listing.model, "listed", "true", "", fresh)],
            )

    @return_on_error(default=False)
    def has_fresh_listing(self, upstream: str, model: str) -> bool:
        return (
            self.transactions.fetch_one(
                "SELECT 1 FROM lessons WHERE (upstream, model, about) = (?, ?, 'listed') AND expires > ?",
                *(upstream, model, self.transactions.read_record_time()),
            )
            is not None
        )

    @require_durable
    def forget_lesson(self, upstream: str, model: str) -> bool:
        with self.transactions.begin_exclusive() as tx:
            deleted = tx.connection.execute("DELETE FROM lessons WHERE (upstream, model) = (?, ?)", (upstream, model))
            return deleted.rowcount > 0


@lru_cache(256)  # requests with images or tools have one, of few
def _name_lesson(upstream: str, model: str) -> ReloadedQuery:
    return ReloadedQuery(_LESSON_QUERY, (upstream, model))


def _insert_lesson(
    connection: SqlConnection, upstream: str, model: str, lesson: Lesson, expires: float, now: float
) -> None:
    """Write the rows of a lesson; known limits are tightened, not replaced."""
    known = connection.execute(
        "SELECT said FROM lessons WHERE (upstream, model, about) = (?, ?, 'limits') AND expires > ?",
        (upstream, model, now),
    ).fetchone()
    limits = _read_limits(known[0]).tighten(lesson.limits) if known else lesson.limits
    connection.executemany(
        _WRITE_LESSON,
        [
            ("", upstream, model, about, json.dumps(text), lesson.why, expires)
            for about, text in _split_lesson(lesson, limits)
        ],
    )


def _split_lesson(lesson: Lesson, limits: ImageLimits) -> Iterator[tuple[str, Json]]:
    """Split a lesson into its rows; `limits` are its own combined with the known ones.

    The names of the fields of `ImageLimits` are written to the database, so they cannot change.
    """
    if lesson.blind is not None:
        yield "blind", lesson.blind
    if lesson.limits != ImageLimits():
        yield "limits", asdict(limits)
    if lesson.takes_own_tools is not None:
        yield _OWN_TOOLS, lesson.takes_own_tools
    if lesson.takes_pdf is not None:
        yield _PDF, lesson.takes_pdf
    for wire, taken in lesson.tool_images.items():
        yield f"{_TOOLS_PREFIX}{wire}", taken


def _merge_lesson(rows: Sequence[Row]) -> Lesson:
    """Build the lesson about a model from its rows. The last row, if any about blindness, gives the reason."""
    texts = {about: text for about, text, _ in rows}
    tools = {
        about.removeprefix(_TOOLS_PREFIX): json.loads(text)
        for about, text in texts.items()
        if about.startswith(_TOOLS_PREFIX)
    }
    return Lesson(
        blind=json.loads(texts["blind"]) if "blind" in texts else None,
        limits=_read_limits(texts["limits"]) if "limits" in texts else ImageLimits(),
        why=next((why for about, _, why in reversed(rows) if about != "published"), ""),
        tool_images=cast("dict[WireName, ToolImagePlacement]", tools),
        takes_own_tools=json.loads(texts[_OWN_TOOLS]) if _OWN_TOOLS in texts else None,
        takes_pdf=json.loads(texts[_PDF]) if _PDF in texts else None,
        published=json.loads(texts["published"]) if "published" in texts else {},
    )


def _read_limits(text: str) -> ImageLimits:
    """Read limits, which another version with other fields may have written."""
    known = {field.name for field in fields(ImageLimits)}
    read = {name: value for name, value in json.loads(text).items() if name in known}
    return ImageLimits(**{**read, "formats": tuple(read["formats"])})
