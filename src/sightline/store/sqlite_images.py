"""The ports for images and descriptions in SQLite.

Images have a row in each scope that sent them, the paths where they were found, and stored views; their bytes are
blobs. A trigger deletes the paths with their image.

Descriptions are kept by image, seer and prompt. The description at one place of a conversation is pinned: the first
writer wins, and only a failure is replaced. A description that the user saves replaces it everywhere, and is used at
every new place. A lease belongs to its owner for a few seconds and has to be renewed, so
that an owner that crashes loses it. Its answer stays for the waiting processes until it expires.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from sqlite3 import Connection

from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.image import Image, ImageSummary
from sightline.model.ports import Lease
from sightline.model.records import PinnedDescription, StoredView, dump_description, load_description
from sightline.store.retention import read_record_time
from sightline.store.sqlite_database import Row
from sightline.store.transactions import RecentReads, Transactions, WriteTransaction, require_durable, return_on_error

BEYOND_HEX = "g"  # sorts after every hex digit, so prefix + "g" is after all names with that prefix
_MAX_PLACES = 8  # paths of one image that are kept

_NEWEST_IN_FOLDERS = """
    SELECT sha256, mime, width, height, images.bytes, path, MAX(places.used) AS latest
    FROM places JOIN images USING (scope, sha256)
    WHERE scope = ifnull(?, scope) AND ({}) GROUP BY sha256 ORDER BY latest DESC, sha256 LIMIT ?"""
_NEWEST = """
    SELECT sha256, mime, width, height, bytes, ifnull((
        SELECT path FROM places WHERE (places.scope, places.sha256) = (images.scope, images.sha256)
        ORDER BY places.used DESC LIMIT 1), ''), MAX(used) AS latest
    FROM images WHERE scope = ifnull(?, scope) GROUP BY sha256 ORDER BY latest DESC, sha256 LIMIT ?"""

_PIN_BYTES = 512  # a row without its text, including its index entries
_PIN_COLUMNS = "turn, images, said, failed, during"
# A saved description is pinned to no turn, and to no scope if it is for all of them. The newest one counts.
_EVERY_TURN = "saved"  # a turn has the name of a message, which is a hash
_EVERY_SCOPE = ""
_SAVED = f"FROM tellings WHERE turn = '{_EVERY_TURN}' AND images = ? AND scope IN (?, '') ORDER BY rowid DESC LIMIT 1"
_ANSWER_SECONDS = 30.0  # that an answer stays; waiting processes poll far more often
_LEASE_OWNER = "SELECT owner FROM flights WHERE (scope, name) = (?, ?) AND owner != ? AND (answer IS NULL OR at >= ?)"


class SqliteImages:
    """Implements the port `ImageStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions
        self._recent: RecentReads[bool] = RecentReads(transactions)  # images that have a row, by scope and sha256

    @return_on_error(default=False)
    def keep(self, scope: str, image: Image) -> bool:
        store = self.transactions
        store.storage.ensure_current()
        used = store.fetch_one("SELECT used FROM images WHERE (scope, sha256) = (?, ?)", scope, image.sha256)
        return store.store_blob(image, used, lambda tx: insert_image(tx.connection, scope, image, tx.now.time))

    @return_on_error(None)
    def read(self, scope: str | None, sha256: str) -> Image | None:
        store = self.transactions
        row = store.fetch_one(
            "SELECT rowid, used, mime, width, height FROM images WHERE sha256 = ? AND scope = ifnull(?, scope)",
            *(sha256, scope),
        )
        data = store.backend.blobs.read(sha256) if row else None
        if row is None or data is None:
            return None
        store.mark_used("images", row)
        _, _, mime, width, height = row
        return Image(sha256, mime, Size(width, height), data)

    @return_on_error(frozenset[str]())
    def find_kept_images(self, scope: str, hashes: Collection[str]) -> frozenset[str]:
        store = self.transactions
        if not (hashes and store.storage.ensure_current(wait=False)) or store.storage.write_refusal:
            return frozenset()
        known = self._recent.get_all()
        if unknown := [sha256 for sha256 in hashes if (scope, sha256) not in known]:
            rows = store.fetch_all(
                "SELECT rowid, used, sha256 FROM images WHERE scope = ? AND sha256 IN (SELECT value FROM json_each(?))",
                *(scope, json.dumps(unknown)),
            )
            for row in rows:
                store.mark_used("images", row)
                known[scope, row[2]] = True
        has_bytes = store.backend.blobs.has  # another process deletes the bytes with the row
        return frozenset(sha256 for sha256 in hashes if (scope, sha256) in known and has_bytes(sha256))

    @return_on_error(())
    def find_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        rows = self.transactions.fetch_all(
            "SELECT DISTINCT sha256 FROM images WHERE sha256 >= ? AND sha256 < ? AND scope = ifnull(?, scope)"
            " ORDER BY sha256 LIMIT 2",
            *(prefix, prefix + BEYOND_HEX, scope),
        )
        return tuple(sha256 for (sha256,) in rows)

    @return_on_error(())
    def list_newest(self, scope: str | None, folders: Sequence[str] | None, limit: int) -> Sequence[ImageSummary]:
        if folders is None:
            return tuple(map(_read_image_row, self.transactions.fetch_all(_NEWEST, scope, limit)))
        if not folders:
            return ()
        within = " OR ".join(["instr(path, ?) = 1"] * len(folders))
        starts = [folder.rstrip(os.sep) + os.sep for folder in folders]
        return tuple(
            map(_read_image_row, self.transactions.fetch_all(_NEWEST_IN_FOLDERS.format(within), scope, *starts, limit))
        )

    @return_on_error(None)
    def note_place(self, scope: str, sha256: str, path: str) -> None:
        store = self.transactions
        used = store.fetch_one("SELECT used FROM places WHERE (scope, sha256, path) = (?, ?, ?)", scope, sha256, path)
        if store.is_recent(used):
            return
        with store.begin(unsynced=True) as tx:
            tx.connection.execute(
                "INSERT OR REPLACE INTO places SELECT scope, sha256, ?, ? FROM images WHERE (scope, sha256) = (?, ?)",
                (path, tx.now.time, scope, sha256),
            )
            tx.connection.execute(
                "DELETE FROM places WHERE (scope, sha256) = (?1, ?2) AND rowid NOT IN (SELECT rowid FROM places"
                " WHERE (scope, sha256) = (?1, ?2) ORDER BY used DESC, rowid DESC LIMIT ?3)",
                (scope, sha256, _MAX_PLACES),
            )

    @return_on_error(default=False)
    def keep_view(self, scope: str, view: StoredView) -> bool:
        store = self.transactions
        store.storage.ensure_current()
        used = store.fetch_one(
            "SELECT used FROM perceptions WHERE (scope, id, pixels, words) = (?, ?, ?, ?)",
            *(scope, view.id, view.pixels.sha256, view.text),
        )
        return store.store_blob(view.pixels, used, lambda tx: _insert_view(tx.connection, scope, view, tx.now.time))

    @return_on_error(None)
    def read_view(self, scope: str, view_id: str) -> StoredView | None:
        store = self.transactions
        row = store.fetch_one(
            "SELECT rowid, used, pixels, mime, width, height, result, image, words FROM perceptions"
            " WHERE (scope, id) = (?, ?)",
            *(scope, view_id),
        )
        data = store.backend.blobs.read(row[2]) if row else None
        if row is None or data is None:
            return None
        store.mark_used("perceptions", row)
        _, _, sha256, mime, width, height, result, image, words = row
        return StoredView(result, image, Image(sha256, mime, Size(width, height), data), words)


def insert_image(connection: Connection, scope: str, image: Image, now: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO images VALUES (?, ?, ?, ?, ?, ?, ?)",
        (scope, image.sha256, image.mime, image.size.width, image.size.height, len(image.data), now),
    )


def forget_images(connection: Connection, sha256: str | None) -> list[str]:
    """Delete one image or all, with their views; return the blobs of the views of that one image."""
    pixels = connection.execute("SELECT DISTINCT pixels FROM perceptions WHERE image = ?", (sha256,)).fetchall()
    connection.execute("DELETE FROM images WHERE ?1 IS NULL OR sha256 = ?1", (sha256,))
    connection.execute("DELETE FROM perceptions WHERE ?1 IS NULL OR ?1 IN (image, pixels)", (sha256,))
    return [name for (name,) in pixels]


def _insert_view(connection: Connection, scope: str, view: StoredView, now: float) -> None:
    pixels = view.pixels
    # The pixels count here even if they are the image's own: they stay as long as either row does.
    size = len(view.result) + len(view.text) + len(pixels.data)
    about = (scope, view.id, view.result, view.text, view.image)
    connection.execute(
        "INSERT OR REPLACE INTO perceptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*about, pixels.sha256, pixels.mime, pixels.size.width, pixels.size.height, size, now),
    )


def _read_image_row(row: Row) -> ImageSummary:
    sha256, mime, width, height, size, path, _ = row
    return ImageSummary(sha256, mime, Size(width, height), size, path)


class SqliteDescriptions:
    """Implements the port `DescriptionStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions

    @return_on_error(None)
    def keep(self, scope: str, description: Description, prompt: str) -> None:
        self.transactions.write(lambda tx: _insert_description(tx, scope, description, prompt))

    @return_on_error(None)
    def read(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None:
        row = self.transactions.fetch_one(
            "SELECT rowid, used, width, height, text, form, sent_width, sent_height FROM descriptions"
            " WHERE (scope, sha256, seer, prompt) = (?, ?, ?, ?)",
            *(scope, sha256, seer, prompt),
        )
        if row is None:
            return None
        self.transactions.mark_used("descriptions", row)
        _, _, width, height, text, form, sent_width, sent_height = row
        sent = Size(sent_width, sent_height) if sent_width else None
        return Description(sha256, Size(width, height), text, seer, form, sent)

    @return_on_error(frozenset[str]())
    def find_seers(self, scope: str, sha256: str) -> frozenset[str]:
        query = "SELECT seer FROM descriptions WHERE (scope, sha256) = (?, ?)"
        return frozenset(seer for (seer,) in self.transactions.fetch_all(query, scope, sha256))

    @require_durable
    def save(self, reach: str | None, description: Description) -> None:
        self.transactions.write(lambda tx: _save_description(tx, reach, description))

    @return_on_error(None)
    def read_saved(self, scope: str, sha256: str) -> Description | None:
        row = self.transactions.fetch_one(f"SELECT rowid, used, said {_SAVED}", sha256, scope)
        if row is None:
            return None
        self.transactions.mark_used("tellings", row)
        found = load_description(PinnedDescription(_EVERY_TURN, (sha256,), json.loads(row[2])))
        return found if isinstance(found, Description) else None

    def pin(self, scope: str, pinned: PinnedDescription) -> PinnedDescription:
        self._write_pin(scope, pinned)
        return self.read_pin(scope, pinned.turn, pinned.images) or pinned

    @return_on_error(None)
    def _write_pin(self, scope: str, pinned: PinnedDescription) -> None:
        self.transactions.write(lambda tx: _insert_pin(tx, scope, pinned))

    @return_on_error(None)
    def read_pin(self, scope: str, turn: str, images: tuple[str, ...]) -> PinnedDescription | None:
        row = self.transactions.fetch_one(
            f"SELECT rowid, used, {_PIN_COLUMNS} FROM tellings WHERE (scope, turn, images) = (?, ?, ?)",  # noqa: S608
            *(scope, turn, " ".join(images)),
        )
        if row is None:
            return None
        _, _, turn, _, result, failed, asked_in_turn = row
        pinned = PinnedDescription(turn, images, json.loads(result), bool(failed), asked_in_turn)
        self.transactions.mark_used("tellings", row)
        return pinned

    @return_on_error(frozenset[str]())
    def find_asked_images(self, scope: str, turn: str) -> frozenset[str]:
        rows = self.transactions.fetch_all("SELECT images FROM tellings WHERE (scope, during) = (?, ?)", scope, turn)
        return frozenset(images for (images,) in rows if " " not in images)

    @return_on_error(None)
    def claim_lease(self, lease: Lease, since: float, seconds: float) -> str | None:
        with self.transactions.begin(unsynced=True) as tx:
            now = tx.now.steady
            finished_since = now - (self.transactions.wall_clock() - since)
            tx.connection.execute("DELETE FROM flights WHERE until <= ?", (now,))
            owner = tx.connection.execute(
                _LEASE_OWNER, (lease.scope, lease.name, lease.owner, finished_since)
            ).fetchone()
            if owner:
                return str(owner[0])
            tx.connection.execute(
                "INSERT OR REPLACE INTO flights (scope, name, owner, at, until) VALUES (?, ?, ?, ?, ?)",
                (lease.scope, lease.name, lease.owner, now, now + seconds),
            )
            return None

    @return_on_error(None)
    def finish_lease(self, lease: Lease, answer: str | None) -> None:
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
            "SELECT 1 FROM flights WHERE scope = ? AND instr(name, ?) AND answer IS NULL AND until > ?",
            *(scope, part, now),
        )
        return row is not None


def forget_descriptions(connection: Connection, sha256: str | None) -> None:
    """Delete the descriptions of one image, alone or with others, or of all images; and every lease."""
    connection.execute("DELETE FROM descriptions WHERE ?1 IS NULL OR sha256 = ?1", (sha256,))
    connection.execute("DELETE FROM tellings WHERE ?1 IS NULL OR instr(images, ?1)", (sha256,))
    connection.execute("DELETE FROM flights")


def _insert_description(tx: WriteTransaction, scope: str, description: Description, prompt: str) -> int:
    """Write a description, and return its size."""
    key = (scope, description.sha256, description.seer, prompt)
    size = len(description.text.encode())
    image, sent = description.size, description.sent_size
    sides = (sent.width, sent.height) if sent else (None, None)
    tx.connection.execute(
        "INSERT OR REPLACE INTO descriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*key, image.width, image.height, description.text, size, tx.now.time, description.coordinate_format, *sides),
    )
    return size


def _save_description(tx: WriteTransaction, reach: str | None, description: Description) -> int:
    """Write a description at every place in its reach, and for places that are still to come; return its size."""
    result = json.dumps(dump_description(description))
    size = _PIN_BYTES + len(result)
    tx.connection.execute(
        "DELETE FROM tellings WHERE turn = ? AND images = ? AND scope = ifnull(?, scope)",
        (_EVERY_TURN, description.sha256, reach),
    )
    tx.connection.execute(
        "UPDATE tellings SET said = ?, failed = 0 WHERE images = ? AND scope = ifnull(?, scope)",
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
        " during = excluded.during, bytes = excluded.bytes, used = excluded.used WHERE failed",
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
