"""The record in SQLite: rows in a database, bytes beside them, each row in the scope that made it.

Each port is in the module of its name. Here is what spans their tables: forgetting, which is one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from sightline.model.refusal import Refusal
from sightline.store.conversations import SqliteConversations, forget_conversations
from sightline.store.descriptions import SqliteDescriptions, forget_descriptions
from sightline.store.home import hash_credential, is_due
from sightline.store.images import BEYOND_HEX, SqliteImages, forget_images
from sightline.store.ledger import SqliteLedger, drop_old_receipts, forget_ledger
from sightline.store.policy import SqlitePolicy
from sightline.store.retention import drop_unnamed
from sightline.store.storage import Clock, Storage, Where
from sightline.store.transactions import (
    Deferred,
    Transactions,
    Write,
    WriteBehind,
    refuse_on_trouble,
    require_durable,
    return_on_trouble,
)

_EVERY_NAME = (
    "SELECT sha256 AS name FROM images UNION SELECT sha256 FROM descriptions"
    " UNION SELECT image FROM perceptions UNION SELECT pixels FROM perceptions"
    " UNION SELECT json_each.value FROM entries, json_each(entries.images)"
    " UNION SELECT images FROM tellings WHERE NOT instr(images, ' ')"
)


class SqliteStore:
    """Implements the port `Store`."""

    def __init__(self, storage: Storage, now: Clock) -> None:
        self.transactions = Transactions(storage, now)
        self._deferred = WriteBehind(self._write_deferred)
        self.images = SqliteImages(self.transactions)
        self.descriptions = SqliteDescriptions(self.transactions)
        self.conversations = SqliteConversations(self.transactions, self._deferred)
        self.ledger = SqliteLedger(self.transactions, self._deferred)
        self.policy = SqlitePolicy(self.transactions)

    @classmethod
    def in_folder(cls, where: Where, now: Clock, *, check: bool = True) -> SqliteStore:
        """Open the record in a folder, or what takes its place; once an hour what is too old or too much is removed.

        Without `check` damage is not looked for, and only found where it is met.
        """
        store = cls(Storage.in_folder(where, now, check=check), now)
        storage = store.transactions.storage
        if storage.state == "open" and is_due(where.folder, now()):
            store.transactions.sweep(everything=not storage.home.is_new)
        return store

    def scope_of(self, credential: str) -> str:
        return hash_credential(self.transactions.home.key, credential)

    def find_trouble(self) -> Refusal | None:
        return self.transactions.storage.trouble or self.policy.trouble

    @refuse_on_trouble
    def find_remembered(self, prefix: str) -> Sequence[str]:
        rows = self.transactions.rows(
            f"SELECT name FROM ({_EVERY_NAME}) WHERE name >= ? AND name < ? ORDER BY name LIMIT 2",  # noqa: S608
            *(prefix, prefix + BEYOND_HEX),
        )
        return tuple(name for (name,) in rows)

    @require_durable
    def forget(self, sha256: str | None) -> int:
        with self.transactions.erase() as (home, rows):
            if sha256 is None:
                self._deferred.take()
            (count,) = rows.execute(
                f"SELECT COUNT(*) FROM ({_EVERY_NAME}) WHERE ?1 IS NULL OR name = ?1",  # noqa: S608
                (sha256,),
            ).fetchone()
            pixels = forget_images(rows, sha256)
            forget_descriptions(rows, sha256)
            forget_conversations(rows, sha256)
            forget_ledger(rows, sha256)
            named = list(home.blobs.names()) if sha256 is None else [sha256, *pixels]
            drop_unnamed(rows, home.blobs, named)
            home.blobs.settle(named)
        return int(count)

    def close(self) -> None:
        self._deferred.close()
        self.transactions.write_touches()
        self.transactions.storage.close()

    @return_on_trouble(None)
    def _write_deferred(self, rows: Sequence[Deferred]) -> None:
        def write(to: Write) -> int:
            weight = sum(row(to) for row in rows)
            drop_old_receipts(to.rows)
            return weight

        self.transactions.write(write, lightly=True)
