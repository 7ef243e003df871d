"""Descriptions: what a seer said about an image, what was said at the places of conversations, and leases to ask.

What was said at a place is pinned: the first writer wins, and only a failure is replaced. A lease is its owner's for a
few seconds at a time, which the owner prolongs, so that one that crashed loses it. Its answer stays for those who wait,
until the next claim clears the table.
"""

from __future__ import annotations

import json
from dataclasses import replace
from sqlite3 import Connection

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.ports import Lease
from sightline.model.records import Telling, written
from sightline.store.retention import read_time
from sightline.store.transactions import Transactions, Write, require_durable, return_on_trouble

_PINNED_ROW_BYTES = 512  # of a row beside its text, with its places in the indexes
_PINNED = "turn, images, said, failed, during"
_ANSWER_SECONDS = 30.0  # that an answer stays for those who wait; far longer than they take to look again
_OWNER = "SELECT owner FROM flights WHERE (scope, name) = (?, ?) AND owner != ? AND (answer IS NULL OR at >= ?)"


class SqliteDescriptions:
    """Implements the port `DescriptionStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions

    @return_on_trouble(None)
    def keep(self, scope: str, description: Description, prompt: str) -> None:
        self.transactions.write(lambda to: _insert(to, scope, description, prompt))

    @return_on_trouble(None)
    def read(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None:
        row = self.transactions.row(
            "SELECT rowid, used, width, height, text, form, sent_width, sent_height FROM descriptions"
            " WHERE (scope, sha256, seer, prompt) = (?, ?, ?, ?)",
            *(scope, sha256, seer, prompt),
        )
        if row is None:
            return None
        self.transactions.touch("descriptions", row)
        _, _, width, height, text, form, sent_width, sent_height = row
        sent = Size(sent_width, sent_height) if sent_width else None
        return Description(sha256, Size(width, height), text, seer, form, sent)

    @require_durable
    def replace(self, scope: str, reach: str | None, description: Description, prompt: str) -> None:
        def write(to: Write) -> int:
            to.rows.execute(
                "UPDATE tellings SET said = ?, failed = 0 WHERE images = ? AND scope = ifnull(?, scope)",
                (json.dumps(written(description)), description.sha256, reach),
            )
            return _insert(to, scope, replace(description, boxes=""), prompt)

        self.transactions.write(write)

    def pin(self, scope: str, telling: Telling) -> Telling:
        self._pin(scope, telling)
        return self.read_pinned(scope, telling.turn, telling.images) or telling

    @return_on_trouble(None)
    def _pin(self, scope: str, telling: Telling) -> None:
        self.transactions.write(lambda to: _insert_pinned(to, scope, telling))

    @return_on_trouble(None)
    def read_pinned(self, scope: str, turn: str, images: tuple[str, ...]) -> Telling | None:
        row = self.transactions.row(
            f"SELECT rowid, used, {_PINNED} FROM tellings WHERE (scope, turn, images) = (?, ?, ?)",  # noqa: S608
            *(scope, turn, " ".join(images)),
        )
        if row is None:
            return None
        _, _, turn, _, said, failed, during = row
        telling = Telling(turn, images, json.loads(said), bool(failed), during)
        self.transactions.touch("tellings", row)
        return telling

    @return_on_trouble(frozenset[str]())
    def find_asked(self, scope: str, turn: str) -> frozenset[str]:
        rows = self.transactions.rows("SELECT images FROM tellings WHERE (scope, during) = (?, ?)", scope, turn)
        return frozenset(images for (images,) in rows if " " not in images)

    @return_on_trouble(None)
    def claim_lease(self, lease: Lease, since: float, seconds: float) -> str | None:
        with self.transactions.begin(lightly=True) as to:
            now = to.now.steady
            finished_since = now - (self.transactions.wall() - since)
            to.rows.execute("DELETE FROM flights WHERE until <= ?", (now,))
            owner = to.rows.execute(_OWNER, (lease.scope, lease.name, lease.owner, finished_since)).fetchone()
            if owner:
                return str(owner[0])
            to.rows.execute(
                "INSERT OR REPLACE INTO flights (scope, name, owner, at, until) VALUES (?, ?, ?, ?, ?)",
                (lease.scope, lease.name, lease.owner, now, now + seconds),
            )
            return None

    @return_on_trouble(None)
    def finish_lease(self, lease: Lease, answer: str | None) -> None:
        key = (lease.scope, lease.name, lease.owner)
        with self.transactions.begin(lightly=True) as to:
            if answer is None:
                to.rows.execute("DELETE FROM flights WHERE (scope, name, owner) = (?, ?, ?)", key)
                return
            to.rows.execute(
                "UPDATE flights SET answer = ?, at = ?, until = ? WHERE (scope, name, owner) = (?, ?, ?)",
                (answer, to.now.steady, to.now.steady + _ANSWER_SECONDS, *key),
            )

    @return_on_trouble((False, None))
    def read_lease(self, lease: Lease) -> tuple[bool, str | None]:
        now = read_time(self.transactions.home.database, self.transactions.wall()).steady
        row = self.transactions.row(
            "SELECT answer FROM flights WHERE (scope, name, owner) = (?, ?, ?) AND until > ?",
            *(lease.scope, lease.name, lease.owner, now),
        )
        return row is not None, row[0] if row else None


def forget_descriptions(connection: Connection, sha256: str | None) -> None:
    """Delete what was said about an image, alone or among others, or about all; and every lease with its answer."""
    connection.execute("DELETE FROM descriptions WHERE ?1 IS NULL OR sha256 = ?1", (sha256,))
    connection.execute("DELETE FROM tellings WHERE ?1 IS NULL OR instr(images, ?1)", (sha256,))
    connection.execute("DELETE FROM flights")


def _insert(to: Write, scope: str, description: Description, prompt: str) -> int:
    """Write a description, and return its bytes."""
    key = (scope, description.sha256, description.seer, prompt)
    weight = len(description.text.encode())
    size, sent = description.size, description.sent
    sides = (sent.width, sent.height) if sent else (None, None)
    to.rows.execute(
        "INSERT OR REPLACE INTO descriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, size.width, size.height, description.text, weight, to.now.time, description.form, *sides),
    )
    return weight


def _insert_pinned(to: Write, scope: str, telling: Telling) -> int:
    """Write what is said at a place, unless something is said there already; return its bytes."""
    said = json.dumps(telling.said)
    weight = _PINNED_ROW_BYTES + len(said)
    to.rows.execute(
        f"INSERT INTO tellings (scope, bytes, used, {_PINNED}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
        " ON CONFLICT (scope, turn, images) DO UPDATE SET said = excluded.said, failed = excluded.failed,"
        " during = excluded.during, bytes = excluded.bytes, used = excluded.used WHERE failed",
        (scope, weight, to.now.time, telling.turn, " ".join(telling.images), said, telling.failed, telling.during),
    )
    return weight
