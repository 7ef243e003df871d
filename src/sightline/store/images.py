"""Images: a row for each in the scope that brought it, the places where it was found, views of it, and bytes beside.

Places are forgotten with their images (by a trigger), and name none that is not there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from sqlite3 import Connection

from sightline.model.geometry import Size
from sightline.model.image import Image, Kept
from sightline.model.records import Perception
from sightline.store.database import Row
from sightline.store.transactions import Transactions, return_on_trouble

BEYOND_HEX = "g"  # sorts after every hexadecimal digit: prefix + "g" is past all names with that prefix
_MOST_PLACES = 8  # of one image: a file can be copied without end

_FOUND_IN = """
    SELECT sha256, mime, width, height, images.bytes, path, MAX(places.used) AS latest
    FROM places JOIN images USING (scope, sha256)
    WHERE scope = ifnull(?, scope) AND ({}) GROUP BY sha256 ORDER BY latest DESC, sha256 LIMIT ?"""
_ALL = """
    SELECT sha256, mime, width, height, bytes, ifnull((
        SELECT path FROM places WHERE (places.scope, places.sha256) = (images.scope, images.sha256)
        ORDER BY places.used DESC LIMIT 1), ''), MAX(used) AS latest
    FROM images WHERE scope = ifnull(?, scope) GROUP BY sha256 ORDER BY latest DESC, sha256 LIMIT ?"""


class SqliteImages:
    """Implements the port `ImageStore`."""

    def __init__(self, transactions: Transactions) -> None:
        self.transactions = transactions

    @return_on_trouble(default=False)
    def keep(self, scope: str, image: Image) -> bool:
        store = self.transactions
        store.storage.check()
        used = store.row("SELECT used FROM images WHERE (scope, sha256) = (?, ?)", scope, image.sha256)
        return store.keep_bytes(image, used, lambda to: insert_image(to.rows, scope, image, to.now.time))

    @return_on_trouble(None)
    def read(self, scope: str | None, sha256: str) -> Image | None:
        store = self.transactions
        row = store.row(
            "SELECT rowid, used, mime, width, height FROM images WHERE sha256 = ? AND scope = ifnull(?, scope)",
            *(sha256, scope),
        )
        data = store.home.blobs.read(sha256) if row else None
        if row is None or data is None:
            return None
        store.touch("images", row)
        _, _, mime, width, height = row
        return Image(sha256, mime, Size(width, height), data)

    @return_on_trouble(frozenset[str]())
    def find_kept(self, scope: str, names: Collection[str]) -> frozenset[str]:
        store = self.transactions
        if not (names and store.storage.check(wait=False)) or store.storage.obstacle:
            return frozenset()
        rows = store.rows(
            "SELECT rowid, used, sha256 FROM images WHERE scope = ? AND sha256 IN (SELECT value FROM json_each(?))",
            *(scope, json.dumps(list(names))),
        )
        kept = [row for row in rows if store.home.blobs.holds(row[2])]
        for row in kept:
            store.touch("images", row)
        return frozenset(sha256 for *_, sha256 in kept)

    @return_on_trouble(())
    def find_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        rows = self.transactions.rows(
            "SELECT DISTINCT sha256 FROM images WHERE sha256 >= ? AND sha256 < ? AND scope = ifnull(?, scope)"
            " ORDER BY sha256 LIMIT 2",
            *(prefix, prefix + BEYOND_HEX, scope),
        )
        return tuple(sha256 for (sha256,) in rows)

    @return_on_trouble(())
    def list_newest(self, scope: str | None, folders: Sequence[str] | None, most: int) -> Sequence[Kept]:
        if folders is None:
            return tuple(map(_read_kept, self.transactions.rows(_ALL, scope, most)))
        if not folders:
            return ()
        within = " OR ".join(["instr(path, ?) = 1"] * len(folders))
        starts = [folder.rstrip(os.sep) + os.sep for folder in folders]
        return tuple(map(_read_kept, self.transactions.rows(_FOUND_IN.format(within), scope, *starts, most)))

    @return_on_trouble(None)
    def note_place(self, scope: str, sha256: str, path: str) -> None:
        store = self.transactions
        used = store.row("SELECT used FROM places WHERE (scope, sha256, path) = (?, ?, ?)", scope, sha256, path)
        if store.is_recent(used):
            return
        with store.begin(lightly=True) as to:
            to.rows.execute(
                "INSERT OR REPLACE INTO places SELECT scope, sha256, ?, ? FROM images WHERE (scope, sha256) = (?, ?)",
                (path, to.now.time, scope, sha256),
            )
            to.rows.execute(
                "DELETE FROM places WHERE (scope, sha256) = (?1, ?2) AND rowid NOT IN (SELECT rowid FROM places"
                " WHERE (scope, sha256) = (?1, ?2) ORDER BY used DESC, rowid DESC LIMIT ?3)",
                (scope, sha256, _MOST_PLACES),
            )

    @return_on_trouble(default=False)
    def keep_view(self, scope: str, view: Perception) -> bool:
        store = self.transactions
        store.storage.check()
        used = store.row(
            "SELECT used FROM perceptions WHERE (scope, id, pixels, words) = (?, ?, ?, ?)",
            *(scope, view.id, view.pixels.sha256, view.words),
        )
        return store.keep_bytes(view.pixels, used, lambda to: _insert_view(to.rows, scope, view, to.now.time))

    @return_on_trouble(None)
    def read_view(self, scope: str, view_id: str) -> Perception | None:
        store = self.transactions
        row = store.row(
            "SELECT rowid, used, pixels, mime, width, height, result, image, words FROM perceptions"
            " WHERE (scope, id) = (?, ?)",
            *(scope, view_id),
        )
        data = store.home.blobs.read(row[2]) if row else None
        if row is None or data is None:
            return None
        store.touch("perceptions", row)
        _, _, sha256, mime, width, height, result, image, words = row
        return Perception(result, image, Image(sha256, mime, Size(width, height), data), words)


def insert_image(connection: Connection, scope: str, image: Image, now: float) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO images VALUES (?, ?, ?, ?, ?, ?, ?)",
        (scope, image.sha256, image.mime, image.size.width, image.size.height, len(image.data), now),
    )


def forget_images(connection: Connection, sha256: str | None) -> list[str]:
    """Delete an image, or all, and its views; return the blobs that the views of that image named."""
    pixels = connection.execute("SELECT DISTINCT pixels FROM perceptions WHERE image = ?", (sha256,)).fetchall()
    connection.execute("DELETE FROM images WHERE ?1 IS NULL OR sha256 = ?1", (sha256,))
    connection.execute("DELETE FROM perceptions WHERE ?1 IS NULL OR ?1 IN (image, pixels)", (sha256,))
    return [name for (name,) in pixels]


def _insert_view(connection: Connection, scope: str, view: Perception, now: float) -> None:
    pixels = view.pixels
    # The pixels count here too, even where they are the image's own: they stay as long as either row does.
    weight = len(view.result) + len(view.words) + len(pixels.data)
    about = (scope, view.id, view.result, view.words, view.image)
    connection.execute(
        "INSERT OR REPLACE INTO perceptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*about, pixels.sha256, pixels.mime, pixels.size.width, pixels.size.height, weight, now),
    )


def _read_kept(row: Row) -> Kept:
    sha256, mime, width, height, size, path, _ = row
    return Kept(sha256, mime, Size(width, height), size, path)
