"""The port for images.

Images have a row in each scope that sent them, the paths where they were found, and stored views; their bytes are
blobs. A trigger deletes the paths with their image.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Hashable, Sequence

from sightline.model.geometry import Size
from sightline.model.image import Image, ImageSummary
from sightline.model.records import StoredView
from sightline.store.retention import USED_PRECISION
from sightline.store.sql import Row, SqlConnection, build_upsert
from sightline.store.storage import Backend
from sightline.store.transactions import Transactions, WriteTransaction, return_on_error

BEYOND_HEX = "g"  # sorts after every hex digit, so prefix + "g" is after all names with that prefix
_MAX_PLACES = 8  # paths of one image that are kept

# An image may have rows in several scopes, and several paths: the newest one counts.
_NEWEST_IN_FOLDERS = """
    SELECT sha256, mime, width, height, bytes, path FROM (
        SELECT sha256, mime, width, height, images.bytes, path, places.used AS latest,
            ROW_NUMBER() OVER (PARTITION BY sha256 ORDER BY places.used DESC) AS number
        FROM places JOIN images USING (scope, sha256) WHERE scope = coalesce(?, scope) AND ({})) AS found
    WHERE number = 1 ORDER BY latest DESC, sha256 LIMIT ?"""
_NEWEST = """
    SELECT sha256, mime, width, height, bytes, coalesce((
        SELECT path FROM places WHERE (places.scope, places.sha256) = (found.scope, found.sha256)
        ORDER BY places.used DESC LIMIT 1), '') FROM (
        SELECT scope, sha256, mime, width, height, bytes, used,
            ROW_NUMBER() OVER (PARTITION BY sha256 ORDER BY used DESC) AS number
        FROM images WHERE scope = coalesce(?, scope)) AS found
    WHERE number = 1 ORDER BY used DESC, sha256 LIMIT ?"""

_IMAGE_COLUMNS = "rowid, used, sha256, mime, width, height"
_WRITE_IMAGE = build_upsert("images", "scope, sha256, mime, width, height, bytes, used", "scope, sha256")
_WRITE_VIEW = build_upsert(
    "perceptions", "scope, id, result, words, image, pixels, mime, width, height, bytes, used", "scope, id"
)


class SqlImages:
    """Implements the port `ImageStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions

    @return_on_error(default=False)
    def keep(self, scope: str, image: Image) -> bool:
        store = self.transactions
        store.storage.ensure_current()
        row = self._find_rows(scope, [image.sha256], store.backend).get(image.sha256)
        used = row[1:2] if row else None
        key = _name_image(scope, image.sha256)
        return _store_blob(store, image, used, lambda tx: insert_image(tx.connection, scope, image, tx.now.time), key)

    @return_on_error(None)
    def read(self, scope: str | None, sha256: str) -> Image | None:
        store = self.transactions
        row = (
            store.fetch_one(f"SELECT {_IMAGE_COLUMNS} FROM images WHERE sha256 = ?", sha256)  # noqa: S608
            if scope is None
            else self._find_rows(scope, [sha256], store.backend).get(sha256)
        )
        data = store.backend.blobs.read(sha256) if row else None
        if row is None or data is None:
            return None
        store.mark_used("images", row, _name_image(scope, sha256))
        _, _, _, mime, width, height = row
        return Image(sha256, mime, Size(width, height), data)

    @return_on_error(frozenset[str]())
    def find_kept_images(self, scope: str, hashes: Collection[str]) -> frozenset[str]:
        store = self.transactions
        storage = store.storage
        if not (hashes and storage.ensure_current(wait=False)) or storage.write_refusal:
            return frozenset()
        backend = storage.backend
        known = self._find_rows(scope, hashes, backend)
        now = store.read_rough_time(backend)
        for sha256, row in known.items():
            if now - row[1] >= USED_PRECISION:  # nearly never
                store.mark_used("images", row, _name_image(scope, sha256))
        return frozenset(filter(backend.blobs.has, known))  # another process deletes the bytes with the row

    @return_on_error(frozenset[str]())
    def find_stored(self, hashes: Collection[str]) -> frozenset[str]:
        query = "SELECT DISTINCT sha256 FROM images WHERE sha256 IN (SELECT value FROM json_each(?))"
        return frozenset(sha256 for (sha256,) in self.transactions.fetch_all(query, json.dumps([*hashes])))

    def _find_rows(self, scope: str, hashes: Collection[str], backend: Backend) -> dict[str, Row]:
        """Return the rows of images, by sha256, from the cache or with one query."""
        cache = backend.row_cache
        cache.look_for_changes()
        generation = cache.generation
        cached = {sha256: rows[0] for sha256 in hashes if (rows := cache.get(_name_image(scope, sha256)))}
        if not (missing := [sha256 for sha256 in hashes if sha256 not in cached]):
            return cached
        query = f"""SELECT {_IMAGE_COLUMNS} FROM images
            WHERE scope = ? AND sha256 IN (SELECT value FROM json_each(?))"""  # noqa: S608
        found = {row[2]: row for row in backend.database.fetch_all(query, scope, json.dumps(missing))}
        for sha256, row in found.items() if backend.fills_cache else ():
            cache.put(_name_image(scope, sha256), [row], generation)
        return cached | found

    @return_on_error(())
    def find_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        rows = self.transactions.fetch_all(
            "SELECT DISTINCT sha256 FROM images WHERE sha256 >= ? AND sha256 < ? AND scope = coalesce(?, scope)"
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
                "INSERT INTO places (scope, sha256, path, used) SELECT scope, sha256, CAST(? AS TEXT), CAST(? AS REAL)"
                " FROM images WHERE (scope, sha256) = (?, ?)"
                " ON CONFLICT (scope, sha256, path) DO UPDATE SET used = excluded.used",
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
        key = ("perceptions", scope, view.id)
        return _store_blob(
            store, view.pixels, used, lambda tx: _insert_view(tx.connection, scope, view, tx.now.time), key
        )

    @return_on_error(None)
    def read_view(self, scope: str, view_id: str) -> StoredView | None:
        store = self.transactions
        key = ("perceptions", scope, view_id)
        rows = store.fetch_cached(
            key,
            "SELECT rowid, used, pixels, mime, width, height, result, image, words FROM perceptions"
            " WHERE (scope, id) = (?, ?)",
            *key[1:],
        )
        row = rows[0] if rows else None
        data = store.backend.blobs.read(row[2]) if row else None
        if row is None or data is None:
            return None
        store.mark_used("perceptions", row, key)
        _, _, sha256, mime, width, height, result, image, words = row
        return StoredView(result, image, Image(sha256, mime, Size(width, height), data), words)

    @return_on_error(())
    def list_views(self, sha256: str, limit: int) -> Sequence[StoredView]:
        rows = self.transactions.fetch_all(
            "SELECT pixels, mime, width, height, result, words FROM perceptions WHERE image = ?"
            " ORDER BY used DESC, rowid DESC LIMIT ?",
            *(sha256, limit),
        )
        return tuple(
            StoredView(result, sha256, Image(pixels, mime, Size(width, height), b""), words)
            for pixels, mime, width, height, result, words in rows
        )

    @return_on_error(None)
    def read_pixels(self, sha256: str) -> Image | None:
        row = self.transactions.fetch_one(
            "SELECT mime, width, height FROM perceptions WHERE pixels = ? LIMIT 1", sha256
        )
        data = self.transactions.backend.blobs.read(sha256) if row else None
        return None if row is None or data is None else Image(sha256, row[0], Size(row[1], row[2]), data)


def _store_blob(
    store: Transactions, image: Image, used: Row | None, write: Callable[[WriteTransaction], None], key: Hashable = None
) -> bool:
    """Store the bytes of an image, then the row that names them, and return whether they are durable.

    So there is never a row without its bytes. Nothing is written if both were used recently; `used` is what was
    read of the row, and `key` is that of its cache.
    """
    backend = store.backend
    blobs = backend.blobs
    is_durable = store.storage.write_refusal is None and not backend.is_stand_in
    if is_durable and store.is_recent(used) and blobs.has(image.sha256):
        return True
    if not blobs.has(image.sha256):
        blobs.write(image.sha256, image.data)
    with store.begin() as tx:
        if not tx.backend.blobs.confirm(image.sha256):  # another process swept in between
            tx.backend.blobs.write(image.sha256, image.data)
        write(tx)
    store.backend.row_cache.discard(key)
    store.count_write(len(image.data))
    return is_durable and not tx.backend.is_stand_in


def _name_image(scope: str | None, sha256: str) -> tuple[str | None, ...]:
    """Return the key of an image's row in the cache."""
    return "images", scope, sha256


def insert_image(connection: SqlConnection, scope: str, image: Image, now: float) -> None:
    connection.execute(
        _WRITE_IMAGE,
        (scope, image.sha256, image.mime, image.size.width, image.size.height, len(image.data), now),
    )


def forget_images(connection: SqlConnection, sha256: str | None) -> list[str]:
    """Delete one image or all, with their views; return the blobs of the views of that one image."""
    pixels = connection.execute("SELECT DISTINCT pixels FROM perceptions WHERE image = ?", (sha256,)).fetchall()
    connection.execute("DELETE FROM images WHERE CAST(?1 AS TEXT) IS NULL OR sha256 = ?1", (sha256,))
    connection.execute("DELETE FROM perceptions WHERE CAST(?1 AS TEXT) IS NULL OR ?1 IN (image, pixels)", (sha256,))
    return [name for (name,) in pixels]


def _insert_view(connection: SqlConnection, scope: str, view: StoredView, now: float) -> None:
    pixels = view.pixels
    # The pixels count here even if they are the image's own: they stay as long as either row does.
    size = len(view.result) + len(view.text) + len(pixels.data)
    about = (scope, view.id, view.result, view.text, view.image)
    connection.execute(
        _WRITE_VIEW,
        (*about, pixels.sha256, pixels.mime, pixels.size.width, pixels.size.height, size, now),
    )


def _read_image_row(row: Row) -> ImageSummary:
    sha256, mime, width, height, size, path = row
    return ImageSummary(sha256, mime, Size(width, height), size, path)
