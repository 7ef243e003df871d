"""The port for descriptions, pinned descriptions and leases.

Descriptions are kept by image, seer and prompt. The description at one place of a conversation is pinned: the first
writer wins, and only a failure is replaced. A description that the user saves replaces it everywhere, and is used at
every new place. A lease belongs to its owner for a few seconds and has to be renewed, so
that an owner that crashes loses it. Its answer stays for the waiting processes until it expires.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.ports import Lease
from sightline.model.records import PinnedDescription, dump_description, load_description
from sightline.store.retention import read_record_time
from sightline.store.sql import SqlConnection, build_upsert
from sightline.store.transactions import Transactions, WriteTransaction, require_durable, return_on_error

_PIN_BYTES = 512  # a row without its text, including its index entries
_PIN_COLUMNS = "turn, images, said, failed, during"
# A saved description is pinned to no turn, and to no scope if it is for all of them. The newest one counts.
_EVERY_TURN = "saved"  # a turn has the name of a message, which is a hash
_EVERY_SCOPE = ""
_SAVED = f"FROM tellings WHERE turn = '{_EVERY_TURN}' AND images = ? AND scope IN (?, '') ORDER BY rowid DESC LIMIT 1"
_ANSWER_SECONDS = 30.0  # that an answer stays; waiting processes poll far more often
# One statement, so that of two owners in two transactions only one gets the lease.
_CLAIM_LEASE = """
    INSERT INTO flights (scope, name, owner, at, until, answer) VALUES (?1, ?2, ?3, ?4, ?5, NULL)
    ON CONFLICT (scope, name) DO UPDATE SET
        owner = excluded.owner, at = excluded.at, until = excluded.until, answer = NULL
    WHERE flights.owner = excluded.owner OR flights.until <= ?4 OR (flights.answer IS NOT NULL AND flights.at < ?6)"""
_DESCRIPTION_COLUMNS = "scope, sha256, seer, prompt, width, height, text, bytes, used, form, sent_width, sent_height"


_REPLACE_DESCRIPTION = build_upsert("descriptions", _DESCRIPTION_COLUMNS, "scope, sha256, seer, prompt")
_ADD_DESCRIPTION = f"INSERT INTO descriptions ({_DESCRIPTION_COLUMNS}) VALUES ({'?, ' * 11}?) ON CONFLICT DO NOTHING"  # noqa: S608


class SqlDescriptions:
    """Implements the port `DescriptionStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions
        self._claimed: set[Lease] = set()  # leases that this process has, or has lost, and has not finished

    @return_on_error(None)
    def keep(
        self,
        scope: str,
        description: Description,
        prompt: str,
        lease: Lease | None = None,
        *,
        image_stored: bool = False,
    ) -> None:
        def write(tx: WriteTransaction) -> int:
            if image_stored and self._has_lost_images(tx, scope, [description.sha256]):
                return 0
            return _insert_description(tx, scope, description, prompt, lease)

        self.transactions.write(write)
        key = ("descriptions", scope, description.sha256, description.seer, prompt)
        self.transactions.backend.row_cache.discard(key)

    @return_on_error(None)
    def read(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None:
        key = ("descriptions", scope, sha256, seer, prompt)
        rows = self.transactions.fetch_cached(
            key,
            "SELECT rowid, used, width, height, text, form, sent_width, sent_height FROM descriptions"
            " WHERE (scope, sha256, seer, prompt) = (?, ?, ?, ?)",
            *key[1:],
        )
        if not rows:
            return None
        (row,) = rows
        self.transactions.mark_used("descriptions", row, key)
        _, _, width, height, text, form, sent_width, sent_height = row
        sent = Size(sent_width, sent_height) if sent_width else None
        return Description(sha256, Size(width, height), text, seer, form, sent)

    @return_on_error(())
    def list_texts(self, sha256: str) -> Sequence[tuple[str, str]]:
        shared = self.transactions.fetch_all("SELECT seer, text FROM descriptions WHERE sha256 = ?", sha256)
        rows = self.transactions.fetch_all(
            "SELECT said FROM tellings WHERE instr(images, ?) > 0 AND failed = 0 ORDER BY rowid", sha256
        )
        results = [json.loads(said) for (said,) in rows]
        told = [each for each in results if "text" in each]
        pinned = [(str(each["seer"]), f"{each['text']}\n{each.get('boxes', '')}".strip()) for each in told]
        return tuple(dict.fromkeys([(str(seer), str(text)) for seer, text in shared] + pinned))

    @return_on_error(MappingProxyType[str, str]({}))
    def find_openings(self, hashes: Collection[str], length: int) -> Mapping[str, str]:
        query = """SELECT sha256, SUBSTR(text, 1, CAST(? AS INTEGER)) FROM descriptions
            WHERE sha256 IN (SELECT value FROM json_each(?)) ORDER BY rowid DESC"""
        rows = self.transactions.fetch_all(query, length, json.dumps([*hashes]))
        return {str(sha256): str(text) for sha256, text in rows}

    @return_on_error(frozenset[str]())
    def find_seers(self, scope: str, sha256: str) -> frozenset[str]:
        query = "SELECT seer FROM descriptions WHERE (scope, sha256) = (?, ?)"
        return frozenset(seer for (seer,) in self.transactions.fetch_all(query, scope, sha256))

    @require_durable
    def save(self, reach: str | None, description: Description) -> None:
        with self.transactions.begin_exclusive() as tx:
            size = _save_description(tx, reach, description)
        self.transactions.count_write(size)

    @return_on_error(None)
    def read_saved(self, scope: str, sha256: str) -> Description | None:
        rows = self.transactions.fetch_policy(f"SELECT rowid, used, said {_SAVED}", sha256, scope)
        if not rows:
            return None
        (row,) = rows
        self.transactions.mark_used("tellings", row)
        found = load_description(PinnedDescription(_EVERY_TURN, (sha256,), json.loads(row[2])))
        return found if isinstance(found, Description) else None

    def pin(self, scope: str, pinned: PinnedDescription, *, images_stored: bool = False) -> PinnedDescription:
        self._write_pin(scope, pinned, images_stored=images_stored)
        return self.read_pin(scope, pinned.turn, pinned.images) or pinned

    @return_on_error(None)
    def _write_pin(self, scope: str, pinned: PinnedDescription, *, images_stored: bool) -> None:
        def write(tx: WriteTransaction) -> int:
            if images_stored and self._has_lost_images(tx, scope, pinned.images):
                return 0
            return _insert_pin(tx, scope, pinned)

        self.transactions.write(write)

    def _has_lost_images(self, tx: WriteTransaction, scope: str, images: Collection[str]) -> bool:
        """Return whether one of these images, which were stored, is gone. A stand-in in memory never had them."""
        if self.transactions.storage.state == "stand_in":
            return False
        query = "SELECT COUNT(*) FROM images WHERE scope = ? AND sha256 IN (SELECT value FROM json_each(?))"
        (count,) = tx.connection.execute(query, (scope, json.dumps([*images]))).fetchone()
        return int(count) < len(set(images))

    @return_on_error(None)
    def read_pin(self, scope: str, turn: str, images: tuple[str, ...]) -> PinnedDescription | None:
        key = ("tellings", scope, turn, " ".join(images))
        rows = self.transactions.fetch_cached(
            key,
            f"SELECT rowid, used, {_PIN_COLUMNS} FROM tellings WHERE (scope, turn, images) = (?, ?, ?)",  # noqa: S608
            *key[1:],
        )
        if not rows:
            return None
        ((_, _, turn, _, result, failed, asked_in_turn),) = rows
        pinned = PinnedDescription(turn, images, json.loads(result), bool(failed), asked_in_turn)
        if failed:  # it is replaced as soon as there is a description
            self.transactions.backend.row_cache.discard(key)
        self.transactions.mark_used("tellings", rows[0], key)
        return pinned

    @return_on_error(frozenset[str]())
    def find_asked_images(self, scope: str, turn: str) -> frozenset[str]:
        rows = self.transactions.fetch_all("SELECT images FROM tellings WHERE (scope, during) = (?, ?)", scope, turn)
        return frozenset(images for (images,) in rows if " " not in images)

    @return_on_error(None)
    def claim_lease(self, lease: Lease, since: float, seconds: float) -> str | None:
        with self.transactions.begin(unsynced=True) as tx:
            now = tx.now.steady
            if lease in self._claimed:
                return _renew_lease(tx, lease, now + seconds)
            finished_since = now - (self.transactions.wall_clock() - since)
            claim = (lease.scope, lease.name, lease.owner, now, now + seconds, finished_since)
            if tx.connection.execute(_CLAIM_LEASE, claim).rowcount:
                self._claimed.add(lease)
                return None
            query = "SELECT owner FROM flights WHERE (scope, name) = (?, ?)"
            return str(tx.connection.execute(query, (lease.scope, lease.name)).fetchone()[0])

    @return_on_error(None)
    def finish_lease(self, lease: Lease, answer: str | None) -> None:
        self._claimed.discard(lease)
        key = (lease.scope, lease.name, lease.owner)
        with self.transactions.begin(unsynced=True) as tx:
            if answer is None:
                tx.connection.execute("DELETE FROM flights WHERE (scope, name, owner) = (?, ?, ?)", key)
                return
            tx.connection.execute(
                "UPDATE flights SET answer = ?, at = ?, until = ? WHERE (scope, name, owner) = (?, ?, ?)",
                (answer, tx.now.steady, tx.now.steady + _ANSWER_SECONDS, *key),
            )

    @return_on_error((False, None))
    def read_lease(self, lease: Lease) -> tuple[bool, str | None]:
        now = read_record_time(self.transactions.backend.database, self.transactions.wall_clock()).steady
        row = self.transactions.fetch_one(
            "SELECT answer FROM flights WHERE (scope, name, owner) = (?, ?, ?) AND until > ?",
            *(lease.scope, lease.name, lease.owner, now),
        )
        return row is not None, row[0] if row else None

    @return_on_error(default=False)
    def has_open_lease(self, scope: str, part: str) -> bool:
        now = read_record_time(self.transactions.backend.database, self.transactions.wall_clock()).steady
        row = self.transactions.fetch_one(
            "SELECT 1 FROM flights WHERE scope = ? AND instr(name, ?) > 0 AND answer IS NULL AND until > ?",
            *(scope, part, now),
        )
        return row is not None


def forget_descriptions(connection: SqlConnection, sha256: str | None) -> None:
    """Delete the descriptions of one image, alone or with others, or of all images; and every lease."""
    connection.execute("DELETE FROM descriptions WHERE CAST(?1 AS TEXT) IS NULL OR sha256 = ?1", (sha256,))
    connection.execute("DELETE FROM tellings WHERE CAST(?1 AS TEXT) IS NULL OR instr(images, ?1) > 0", (sha256,))
    connection.execute("DELETE FROM flights")


def _insert_description(
    tx: WriteTransaction, scope: str, description: Description, prompt: str, lease: Lease | None
) -> int:
    """Write a description, and return its size. If the lease was lost, a description that is there stays."""
    key = (scope, description.sha256, description.seer, prompt)
    size = len(description.text.encode())
    image, sent = description.size, description.sent_size
    sides = (sent.width, sent.height) if sent else (None, None)
    may_replace = lease is None or _hold_lease(tx, lease)
    tx.connection.execute(
        _REPLACE_DESCRIPTION if may_replace else _ADD_DESCRIPTION,
        (*key, image.width, image.height, description.text, size, tx.now.time, description.coordinate_format, *sides),
    )
    return size


def _hold_lease(tx: WriteTransaction, lease: Lease) -> bool:
    """Return whether an owner still has its lease. If so, no other owner can take it until the transaction ends."""
    key = (lease.scope, lease.name, lease.owner)
    held = tx.connection.execute("UPDATE flights SET until = until WHERE (scope, name, owner) = (?, ?, ?)", key)
    return held.rowcount > 0


def _renew_lease(tx: WriteTransaction, lease: Lease, until: float) -> str | None:
    """Renew a lease, and return its owner if that is another one now.

    One that is gone stays so: its image was forgotten, or it was not renewed in time, and no answer may be stored.
    """
    key = (lease.scope, lease.name)
    renew = "UPDATE flights SET at = ?, until = ? WHERE (scope, name, owner) = (?, ?, ?)"
    if tx.connection.execute(renew, (tx.now.steady, until, *key, lease.owner)).rowcount:
        return None
    row = tx.connection.execute("SELECT owner FROM flights WHERE (scope, name) = (?, ?)", key).fetchone()
    return str(row[0]) if row else None


def _save_description(tx: WriteTransaction, reach: str | None, description: Description) -> int:
    """Write a description at every place in its reach, and for places that are still to come; return its size."""
    result = json.dumps(dump_description(description))
    size = _PIN_BYTES + len(result)
    tx.connection.execute(
        "DELETE FROM tellings WHERE turn = ? AND images = ? AND scope = coalesce(?, scope)",
        (_EVERY_TURN, description.sha256, reach),
    )
    tx.connection.execute(
        "UPDATE tellings SET said = ?, failed = 0 WHERE images = ? AND scope = coalesce(?, scope)",
        (result, description.sha256, reach),
    )
    tx.connection.execute(
        f"INSERT INTO tellings (scope, bytes, used, {_PIN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, 0, '')",  # noqa: S608
        (_EVERY_SCOPE if reach is None else reach, size, tx.now.time, _EVERY_TURN, description.sha256, result),
    )
    return size


def _insert_pin(tx: WriteTransaction, scope: str, pinned: PinnedDescription) -> int:
    """Pin a description unless another one is pinned at its place; return its size.

    One that was saved while this one was made takes its place.
    """
    images = " ".join(pinned.images)
    saved = tx.connection.execute(f"SELECT said {_SAVED}", (images, scope)).fetchone()
    result, failed = (saved[0], False) if saved else (json.dumps(pinned.result), pinned.failed)
    size = _PIN_BYTES + len(result)
    tx.connection.execute(
        f"INSERT INTO tellings (scope, bytes, used, {_PIN_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608
        " ON CONFLICT (scope, turn, images) DO UPDATE SET said = excluded.said, failed = excluded.failed,"
        " during = excluded.during, bytes = excluded.bytes, used = excluded.used WHERE tellings.failed != 0",
        (
            scope,
            size,
            tx.now.time,
            pinned.turn,
            images,
            result,
            failed,
            pinned.asked_in_turn,
        ),
    )
    return size
