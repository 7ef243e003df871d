"""Policy: which providers the user lets see images, and what upstreams have said of their models.

A lesson has a row for each thing that was learnt, with days of its own, so that one thing does not prolong another's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from sqlite3 import Connection
from typing import cast

from sightline.model.profile import Lesson, Limits, ToolImages, WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.store.database import Row
from sightline.store.retention import DAY
from sightline.store.storage import TROUBLES
from sightline.store.transactions import Transactions, require_durable, return_on_trouble

_TOOLS = "tools "


class SqlitePolicy:
    """Implements the port `PolicyStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions
        self.trouble: Refusal | None = None  # why the consents could not be read
        # Consents that were withdrawn and that could not be written, with the times of their rows at that moment, by
        # which a row that was written later can be told; None: they could not be read.
        self._withdrawn: dict[str, frozenset[float] | None] = {}

    def set_consent(self, provider: str, given: bool) -> Refusal | None:
        """Store a consent. One that is withdrawn counts in this process even if it cannot be written."""
        refusal = self._write_consent(provider, given)
        if refusal is None:
            self._withdrawn.pop(provider, None)
        elif not given:
            self._withdrawn[provider] = self._read_times(provider)
        return refusal

    def _read_times(self, provider: str) -> frozenset[float] | None:
        """Return when the rows of a consent were written, or None if the user's own rows cannot be read."""
        if self.transactions.storage.state == "stand_in":
            return None
        try:
            rows = self.transactions.rows("SELECT at FROM consents NOT INDEXED WHERE provider = ?", provider)
        except TROUBLES:
            return None
        return frozenset(at for (at,) in rows)

    @require_durable
    def _write_consent(self, provider: str, given: bool) -> None:
        """Write a consent, and leave nothing of it in the log: SQLite ignores what follows damage there."""
        with self.transactions.begin() as to:
            row = (provider, given, self.transactions.wall())
            to.rows.execute("INSERT OR REPLACE INTO consents VALUES ('', ?, ?, ?)", row)
        to.home.database.empty_log()

    def read_consents(self) -> Mapping[str, bool]:
        if not self.transactions.storage.check(wait=False):
            return {}
        try:
            rows = self.transactions.rows("SELECT provider, given, at FROM consents NOT INDEXED")
        except TROUBLES as trouble:
            self.transactions.complain(trouble)
            self.trouble = self.transactions.refuse(trouble)
            return {}
        self.trouble = None
        return self._merge_consents(rows)

    def _merge_consents(self, rows: Sequence[Row]) -> Mapping[str, bool]:
        """Return whether each provider has consent. Where a damaged index has left several rows, a no counts.

        Of a consent that was withdrawn without being written, only a row that was written later counts. Times are
        compared for equality alone: the clock may have been put back since the consent was given.
        """
        said: dict[str, bool] = {}
        for provider, known in self._withdrawn.items():
            if known is None:
                self._withdrawn[provider] = self._read_times(provider)
        for provider, given, at in rows:
            before = self._withdrawn.get(provider, frozenset())
            is_given = bool(given) and before is not None and at not in before
            said[provider] = is_given and said.get(provider, True)
        return dict(sorted(said.items()))

    @require_durable
    def keep_lesson(self, upstream: str, model: str, lesson: Lesson, days: float) -> None:
        with self.transactions.begin() as to:
            _insert_lesson(to.rows, upstream, model, lesson, to.now.time + days * DAY, to.now.time)

    @return_on_trouble(None)
    def read_lesson(self, upstream: str, model: str) -> Lesson | None:
        rows = self.transactions.rows(
            "SELECT about, said, why FROM lessons WHERE (upstream, model) = (?, ?) AND expires > ?"
            " ORDER BY about = 'blind', about",
            *(upstream, model, self.transactions.read_now()),
        )
        return _merge_lesson(rows) if rows else None

    @return_on_trouble(())
    def list_lessons(self) -> Sequence[tuple[str, str, Lesson]]:
        query = "SELECT DISTINCT upstream, model FROM lessons WHERE expires > ? ORDER BY upstream, model"
        known = self.transactions.rows(query, self.transactions.read_now())
        found = ((upstream, model, self.read_lesson(upstream, model)) for upstream, model in known)
        return tuple((upstream, model, lesson) for upstream, model, lesson in found if lesson)

    @require_durable
    def forget_lesson(self, upstream: str, model: str) -> bool:
        with self.transactions.begin() as to:
            gone = to.rows.execute("DELETE FROM lessons WHERE (upstream, model) = (?, ?)", (upstream, model))
            return gone.rowcount > 0


def _insert_lesson(
    connection: Connection, upstream: str, model: str, lesson: Lesson, expires: float, now: float
) -> None:
    """Write what a lesson says; limits that are known already are tightened."""
    known = connection.execute(
        "SELECT said FROM lessons WHERE (upstream, model, about) = (?, ?, 'limits') AND expires > ?",
        (upstream, model, now),
    ).fetchone()
    limits = _read_limits(known[0]).tightened(lesson.limits) if known else lesson.limits
    connection.executemany(
        "INSERT OR REPLACE INTO lessons VALUES ('', ?, ?, ?, ?, ?, ?)",
        [(upstream, model, about, json.dumps(said), lesson.why, expires) for about, said in _split(lesson, limits)],
    )


def _split(lesson: Lesson, limits: Limits) -> Iterator[tuple[str, Json]]:
    """Return what a lesson says, thing by thing; `limits` are its own with those that were known."""
    if lesson.blind is not None:
        yield "blind", lesson.blind
    if lesson.limits != Limits():
        yield "limits", asdict(limits)
    for wire, taken in lesson.tool_images.items():
        yield f"{_TOOLS}{wire}", taken


def _merge_lesson(rows: Sequence[Row]) -> Lesson:
    """Return what is known of a model; the row about blindness comes last, and its reason counts."""
    said = {about: text for about, text, _ in rows}
    tools = {about.removeprefix(_TOOLS): json.loads(text) for about, text in said.items() if about.startswith(_TOOLS)}
    return Lesson(
        blind=json.loads(said["blind"]) if "blind" in said else None,
        limits=_read_limits(said["limits"]) if "limits" in said else Limits(),
        why=rows[-1][2],
        tool_images=cast("dict[WireName, ToolImages]", tools),
    )


def _read_limits(text: str) -> Limits:
    """Read limits, which a version that knew others may have written."""
    known = {field.name for field in fields(Limits)}
    read = {name: value for name, value in json.loads(text).items() if name in known}
    return Limits(**{**read, "formats": tuple(read["formats"])})
