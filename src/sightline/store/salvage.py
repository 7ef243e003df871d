"""The rows that can be read of a damaged database, each with its table, written into a new one.

A row counts if its values have the types of its table, and if what has to be JSON or a sha256 is. One that the tree of
a table leads to must fit that table; one whose tree is damaged must fit exactly one. A row of `consents` that no tree
leads to may be an old one, so only a no is taken from there.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sightline.store.clamp import MOST_ROWS
from sightline.store.pages import Pages, Value, roots

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and how much there is."""

BATCH = 256  # pages, or images, between two reports of progress
_JSON = {
    "lessons": {"said"},
    "entries": {"images", "about"},
    "tellings": {"said"},
    "receipts": {"labels", "sights", "notes"},
    "legs": {"legs", "results"},
}
_NAMES = {"images": {"sha256"}, "perceptions": {"pixels"}}
_TYPES: Mapping[str, tuple[type, ...]] = {"TEXT": (str,), "INTEGER": (int,), "REAL": (int, float)}
_is_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch


@dataclass(frozen=True, slots=True)
class _Column:
    name: str
    types: tuple[type, ...]
    optional: bool  # it may be NULL
    late: bool  # rows that are older than the column do not have it

    def takes(self, value: Value) -> bool:
        return self.optional if value is None else isinstance(value, self.types)


Shapes = Mapping[str, tuple[_Column, ...]]


def copy_rows(pages: Pages, connection: sqlite3.Connection, progress: Progress) -> None:
    """Write what can be read into the tables of a new database, within a transaction."""
    shapes = _shapes(connection)
    for table, rowid, values in _readable(pages, shapes, progress):
        _insert(connection, table, shapes[table], rowid, values)


def count_rows(connection: sqlite3.Connection) -> dict[str, int]:
    """Return how many rows each table has that people know of."""
    return {
        table: int(connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0])  # noqa: S608
        for table in sorted(_shapes(connection).keys() - {"clock"})
    }


def _shapes(connection: sqlite3.Connection) -> Shapes:
    tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    return {table: tuple(_columns(connection, table)) for table in tables if table != "flights"}


def _columns(connection: sqlite3.Connection, table: str) -> Iterator[_Column]:
    for _, name, kind, is_required, default, is_key in connection.execute(f"PRAGMA table_info({table})"):
        late = default is not None or (not is_required and not is_key)
        yield _Column(name, _TYPES[kind], not is_required, late)


def _readable(pages: Pages, shapes: Shapes, progress: Progress) -> Iterator[tuple[str, int, tuple[Value, ...]]]:
    """Return all rows with their tables: first those that the trees lead to, then those of leaves without a tree."""
    trees = {leaf: table for table, root in roots(pages).items() for leaf in pages.leaves(root)}
    others = set(range(2, pages.count + 1)) - trees.keys() - pages.free()
    for done, number in enumerate((*trees, *sorted(others))):
        if done % BATCH == 0:
            progress("reading", done, len(trees) + len(others))
        for rowid, values in pages.rows(number):
            if table := _table_of(values, trees.get(number), shapes):
                yield table, rowid, values


def _table_of(values: tuple[Value, ...], expected: str | None, shapes: Shapes) -> str | None:
    """Return the table that a row is of. One that no tree leads to must fit exactly one, and no consent is taken."""
    if expected is not None:
        return expected if expected in shapes and _fits(values, expected, shapes) else None
    fitting = [table for table in shapes if table != "clock" and _fits(values, table, shapes)]
    if len(fitting) != 1 or (fitting == ["consents"] and values[2]):
        return None
    return fitting[0]


def _fits(values: tuple[Value, ...], table: str, shapes: Shapes) -> bool:
    columns = shapes[table]
    if len(values) > len(columns) or not all(column.late for column in columns[len(values) :]):
        return False
    pairs = list(zip(columns, values, strict=False))
    return all(column.takes(value) for column, value in pairs) and all(
        _is_sound(table, column.name, value) for column, value in pairs
    )


def _is_sound(table: str, column: str, value: Value) -> bool:
    if column in _NAMES.get(table, ()):
        return isinstance(value, str) and _is_sha256(value) is not None
    if column not in _JSON.get(table, ()) or not isinstance(value, str):
        return True
    try:
        json.loads(value)
    except ValueError:
        return False
    return True


def _insert(
    connection: sqlite3.Connection, table: str, columns: tuple[_Column, ...], rowid: int, values: tuple[Value, ...]
) -> None:
    """Write a row under its own number: entries and receipts are read in that order."""
    names = [column.name for column in columns[: len(values)]]
    if "one" in names:  # the key of `clock`, which is the number of its row
        values = tuple(rowid if name == "one" else value for name, value in zip(names, values, strict=True))
    else:
        names, values = ["rowid", *names], (rowid if 0 < rowid < MOST_ROWS else None, *values)
    marks = ", ".join("?" * len(values))
    connection.execute(f"INSERT OR IGNORE INTO {table} ({', '.join(names)}) VALUES ({marks})", values)  # noqa: S608
