"""The record: rows in SQLite, bytes beside them, each row in the scope that made it."""

from __future__ import annotations

import functools
import hashlib
import json
import logging
import os
import secrets
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from sightline.disk import write_whole
from sightline.model.answered import Answered
from sightline.model.entry import Entry, EntryKind, Spent
from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.image import Image, Kept
from sightline.model.perception import Perception
from sightline.model.ports import Flight
from sightline.model.profile import Lesson
from sightline.model.receipt import Filed, Omission
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.telling import Telling, written
from sightline.store import entries, flights, legs, lessons, moments, places, receipts, spans, tellings
from sightline.store.bounds import TABLES, Bounds, drop_unnamed, sweep
from sightline.store.database import Database, Row
from sightline.store.files import Blobs, Files, Held, private_folder
from sightline.store.receipts import Gathered, Gathering

_log = logging.getLogger(__name__)
_DAY = 86400.0
_COARSE = 3600.0  # `used` is that exact: an image that comes with every request is not written every time
_WRITES_BETWEEN_SWEEPS = 256
_KEY_BYTES = 32
ROWS, BYTES, KEY, SWEPT = "record.sqlite", "blobs", "scope.key", "swept"
_RETRY_SECONDS = 60.0  # a disk that could not be used is tried again that often

_EVERY_NAME = (
    "SELECT sha256 AS name FROM images UNION SELECT sha256 FROM descriptions"
    " UNION SELECT image FROM perceptions UNION SELECT pixels FROM perceptions"
    " UNION SELECT json_each.value FROM entries, json_each(entries.images)"
    " UNION SELECT images FROM tellings WHERE NOT instr(images, ' ')"
)

Clock = Callable[[], float]

P = ParamSpec("P")
T = TypeVar("T")
D = TypeVar("D")
Method = Callable[Concatenate["SqliteRecord", P], T]


def _spared(default: D) -> Callable[[Method[P, T]], Method[P, T | D]]:
    """A disk that is full or gone costs the memory, not the request: the answer is `default` then."""

    def around(method: Method[P, T]) -> Method[P, T | D]:
        @functools.wraps(method)
        def spared(self: SqliteRecord, /, *args: P.args, **kwargs: P.kwargs) -> T | D:
            try:
                return method(self, *args, **kwargs)
            except (OSError, sqlite3.Error) as trouble:
                self.complain(trouble)
                return default

        return spared

    return around


def _honest(method: Method[P, T]) -> Method[P, T | Refusal]:
    """Where an answer is a promise, trouble is a refusal."""

    @functools.wraps(method)
    def honest(self: SqliteRecord, /, *args: P.args, **kwargs: P.kwargs) -> T | Refusal:
        try:
            return method(self, *args, **kwargs)
        except (OSError, sqlite3.Error) as trouble:
            return Refusal("unavailable", f"the record could not be written: {trouble}", "try again")

    return honest


@dataclass(slots=True)
class _Standby:
    """For what a record stands in."""

    again: Callable[[], SqliteRecord]
    trouble: Refusal | None
    tried: float  # when it was last tried


class SqliteRecord:
    """Implements the port `Record`."""

    def __init__(self, database: Database, blobs: Blobs, key: bytes, bounds: Bounds, now: Clock) -> None:
        self._database, self._blobs, self._key = database, blobs, key
        self._bounds, self._now = bounds, now
        # What may be written before the next sweep; a sweep leaves that much free, so the limit holds.
        self._allowance = bounds.bytes // 16
        self._writes = self._written = 0
        self._touched: dict[tuple[str, int], float] = {}
        self._touch_lock = threading.Lock()
        self._complained = False
        self._standby: _Standby | None = None
        self._former: list[Database] = []
        self._gathering = Gathering(self._write_gathered)

    @classmethod
    def on_disk(cls, folder: Path, bounds: Bounds, now: Clock) -> SqliteRecord:
        private_folder(folder)
        database = Database.on_disk(folder / ROWS)
        try:
            if not (folder / KEY).exists():
                with database.writing():  # one process at a time: the first one makes the key
                    _make_key(folder / KEY)
            record = cls(database, Files(folder / BYTES), _key_in(folder), bounds, now)
        except BaseException:
            database.close()
            raise
        if _is_due(folder / SWEPT, now()):
            record.sweep(everything=True)
        return record

    @classmethod
    def read_only(cls, folder: Path, bounds: Bounds, now: Clock) -> SqliteRecord:
        key, blobs = _key_in(folder), Files(folder / BYTES)
        return cls(Database.read_only(folder / ROWS), blobs, key, bounds, now)

    @classmethod
    def in_memory(cls, bounds: Bounds, now: Clock) -> SqliteRecord:
        return cls(Database.in_memory(), Held(), secrets.token_bytes(_KEY_BYTES), bounds, now)

    def stand_by(self, again: Callable[[], SqliteRecord], trouble: Refusal | None) -> SqliteRecord:
        """This one stands in for another that cannot be used now: nothing is kept for good, and that is tried again."""
        self._standby = _Standby(again, trouble, self._now())
        self._complained = True  # whoever opened it has said so
        return self

    def trouble(self) -> Refusal | None:
        return self._standby.trouble if self._standby else None

    @_spared(default=False)
    def keep_image(self, scope: str, image: Image) -> bool:
        known = self._database.row("SELECT used FROM images WHERE (scope, sha256) = (?, ?)", scope, image.sha256)
        return self._fresh(known, image) or self._keep(
            image,
            "INSERT OR REPLACE INTO images VALUES (?, ?, ?, ?, ?, ?, ?)",
            (scope, image.sha256, image.mime, *_sides(image.size), len(image.data), self._now()),
        )

    @_spared(None)
    def image(self, scope: str | None, sha256: str) -> Image | None:
        row = self._database.row(
            "SELECT rowid, used, mime, width, height FROM images WHERE sha256 = ? AND scope = ifnull(?, scope)",
            *(sha256, scope),
        )
        data = self._blobs.read(sha256) if row else None
        if row is None or data is None:
            return None
        self._touch("images", row)
        return Image(sha256, row[2], Size(row[3], row[4]), data)

    @_spared(frozenset[str]())
    def holds(self, scope: str, images: Collection[str]) -> frozenset[str]:
        if self._standby or not images:
            return frozenset()
        rows = self._database.rows(
            "SELECT rowid, used, sha256 FROM images WHERE scope = ? AND sha256 IN (SELECT value FROM json_each(?))",
            *(scope, json.dumps(list(images))),
        )
        held = [row for row in rows if self._blobs.holds(row[2])]
        for row in held:
            self._touch("images", row)
        return frozenset(sha256 for *_, sha256 in held)

    @_spared(())
    def images_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        rows = self._database.rows(
            "SELECT DISTINCT sha256 FROM images WHERE sha256 >= ? AND sha256 < ? AND scope = ifnull(?, scope)"
            " ORDER BY sha256 LIMIT 2",
            *(prefix, prefix + "g", scope),  # no hexadecimal digit comes after g
        )
        return tuple(sha256 for (sha256,) in rows)

    @_spared(None)
    def place(self, scope: str, sha256: str, path: str) -> None:
        known = self._database.row(
            "SELECT used FROM places WHERE (scope, sha256, path) = (?, ?, ?)", scope, sha256, path
        )
        if known is not None and self._now() - known[0] < _COARSE:
            return
        self._recover()
        with self._database.noting() as connection:
            places.keep(connection, scope, sha256, path, self._now())

    @_spared(())
    def images(self, scope: str | None, folders: Sequence[str] | None, most: int) -> Sequence[Kept]:
        return places.images(self._database, scope, folders, most)

    @_spared(default=False)
    def keep_perception(self, scope: str, perception: Perception) -> bool:
        pixels = perception.pixels
        known = self._database.row(
            "SELECT used FROM perceptions WHERE (scope, id, pixels, words) = (?, ?, ?, ?)",
            *(scope, perception.id, pixels.sha256, perception.words),
        )
        # The pixels count here too, even where they are the image's own: they stay as long as either row does.
        weight = len(perception.result) + len(perception.words) + len(pixels.data)
        about = (scope, perception.id, perception.result, perception.words, perception.image)
        return self._fresh(known, pixels) or self._keep(
            pixels,
            "INSERT OR REPLACE INTO perceptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*about, pixels.sha256, pixels.mime, *_sides(pixels.size), weight, self._now()),
        )

    @_spared(None)
    def perception(self, scope: str, perception_id: str) -> Perception | None:
        row = self._database.row(
            "SELECT rowid, used, pixels, mime, width, height, result, image, words FROM perceptions"
            " WHERE (scope, id) = (?, ?)",
            *(scope, perception_id),
        )
        data = self._blobs.read(row[2]) if row else None
        if row is None or data is None:
            return None
        self._touch("perceptions", row)
        pixels = Image(row[2], row[3], Size(row[4], row[5]), data)
        return Perception(row[6], row[7], pixels, row[8])

    @_honest
    def remembered(self, prefix: str) -> Sequence[str]:
        rows = self._database.rows(
            f"SELECT name FROM ({_EVERY_NAME}) WHERE name >= ? AND name < ? ORDER BY name LIMIT 2",  # noqa: S608
            *(prefix, prefix + "g"),
        )
        return tuple(name for (name,) in rows)

    @_honest
    def forget(self, sha256: str | None) -> int:
        with self._database.erasing() as connection:
            known = connection.execute(_EVERY_NAME).fetchall()
            chosen = [name for name in known if sha256 in (None, *name)]
            pixels = connection.execute("SELECT DISTINCT pixels FROM perceptions WHERE image = ?", (sha256,)).fetchall()
            connection.executemany("DELETE FROM images WHERE sha256 = ?", chosen)
            connection.executemany("DELETE FROM descriptions WHERE sha256 = ?", chosen)
            connection.executemany("DELETE FROM perceptions WHERE ? IN (image, pixels)", chosen)
            if sha256 is None:  # what the conversations about them were is no secret to those who can guess their words
                connection.execute("DELETE FROM moments")
                self._gathering.taken()
                receipts.forget(connection)
            entries.forget(connection, sha256)
            tellings.forget(connection, sha256)
            legs.forget(connection, sha256)
            connection.execute("DELETE FROM flights")  # what came of them, whatever they were about
            names = self._blobs.names() if sha256 is None else [sha256, *(name for (name,) in pixels)]
            drop_unnamed(connection, self._blobs, names)
        return len(chosen)

    @_spared(None)
    def keep_description(self, scope: str, description: Description, prompt: str) -> None:
        key = (scope, description.sha256, description.seer, prompt)
        weight = len(description.text.encode())
        sent = _sides(description.sent) if description.sent else (None, None)
        self._recover()
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO descriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, *_sides(description.size), description.text, weight, self._now(), description.form, *sent),
            )
        self._wrote(weight)

    @_spared(None)
    def description(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None:
        row = self._database.row(
            "SELECT rowid, used, width, height, text, form, sent_width, sent_height FROM descriptions"
            " WHERE (scope, sha256, seer, prompt) = (?, ?, ?, ?)",
            *(scope, sha256, seer, prompt),
        )
        if row is None:
            return None
        self._touch("descriptions", row)
        *_, width, height, text, form, sent_width, sent_height = row
        sent = Size(sent_width, sent_height) if sent_width else None
        return Description(sha256, Size(width, height), text, seer, form, sent)

    def tell(self, scope: str, telling: Telling) -> Telling:
        self._tell(scope, telling)
        return self.told(scope, telling.turn, telling.images) or telling

    @_spared(None)
    def _tell(self, scope: str, telling: Telling) -> None:
        self._recover()
        with self._database.writing() as connection:
            weight = tellings.keep(connection, scope, telling, self._now())
        self._wrote(weight)

    @_spared(None)
    def told(self, scope: str, turn: str, images: tuple[str, ...]) -> Telling | None:
        found = tellings.read(self._database, scope, turn, images)
        if found is None:
            return None
        self._touch("tellings", found[0])
        return found[1]

    @_spared(frozenset[str]())
    def looked(self, scope: str, turn: str) -> frozenset[str]:
        return tellings.looked(self._database, scope, turn)

    @_spared(default=False)
    def answers_in_legs(self, scope: str) -> bool:
        return legs.any_of(self._database, scope)

    @_spared(())
    def answered(self, scope: str, keys: Sequence[str]) -> Sequence[Answered]:
        found = legs.read(self._database, scope, keys)
        for row, _ in found:
            self._touch("legs", row)
        return [each for _, each in found]

    @_spared(None)
    def keep_answered(self, scope: str, answered: Answered) -> None:
        self._recover()
        with self._database.writing() as connection:
            weight = legs.keep(connection, scope, answered, self._now())
        self._wrote(weight)

    @_spared(None)
    def settle(self, scope: str, answered: Answered, results: Sequence[Json]) -> None:
        with self._database.writing() as connection:
            weight = legs.settle(connection, scope, answered, results)
        self._wrote(weight)

    @_spared(None)
    def retell(self, scope: str | None, description: Description) -> None:
        with self._database.writing() as connection:
            tellings.retell(connection, scope, description.sha256, written(description))

    @_spared(None)
    def claim(self, flight: Flight, since: float, seconds: float) -> str | None:
        now = self._now()
        with self._database.noting() as connection:
            return flights.claim(connection, flight, since, now + seconds, now)

    @_spared(None)
    def land(self, flight: Flight, answer: str | None) -> None:
        with self._database.noting() as connection:
            flights.land(connection, flight, answer, self._now())

    @_spared((False, None))
    def landed(self, flight: Flight) -> tuple[bool, str | None]:
        return flights.landed(self._database, flight, self._now())

    @_spared(frozenset[str]())
    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> frozenset[str]:
        now, here = self._now(), moments.Visit(scope, head, names, [names[end] for end in ends])
        with self._database.writing() as connection:
            cold, used = moments.met(connection, here, now - life)
            weight = moments.touch(connection, here, cold, used, _COARSE, now) if touch else 0
        if touch:
            self._wrote(weight)
        return cold

    @_spared(None)
    def learn(self, upstream: str, model: str, lesson: Lesson, days: float) -> None:
        now = self._now()
        with self._database.writing() as connection:
            lessons.keep(connection, upstream, model, lesson, now + days * _DAY, now)

    @_spared(None)
    def lesson(self, upstream: str, model: str) -> Lesson | None:
        return lessons.read(self._database, upstream, model, self._now())

    @_spared(())
    def lessons(self) -> Sequence[tuple[str, str, Lesson]]:
        found = ((*each, self.lesson(*each)) for each in lessons.known(self._database, self._now()))
        return tuple((upstream, model, lesson) for upstream, model, lesson in found if lesson)

    @_spared(default=False)
    def forget_lesson(self, upstream: str, model: str) -> bool:
        with self._database.writing() as connection:
            gone = connection.execute("DELETE FROM lessons WHERE (upstream, model) = (?, ?)", [upstream, model])
            return gone.rowcount > 0

    @_spared(None)
    def consent(self, provider: str, given: bool) -> None:
        with self._database.writing() as connection:
            connection.execute("INSERT OR REPLACE INTO consents VALUES ('', ?, ?, ?)", (provider, given, self._now()))

    def consents(self) -> Mapping[str, bool]:
        return {provider: bool(given) for provider, given in self._consents()}

    @_spared(())
    def _consents(self) -> Sequence[Row]:
        return self._database.rows("SELECT provider, given FROM consents ORDER BY provider")

    def note(self, scope: str, entry: Entry) -> None:
        self._note(scope, entry)
        spans.emit(entry)

    @_spared(None)
    def _note(self, scope: str, entry: Entry) -> None:
        self._recover()
        with self._database.noting() as connection:
            weight = entries.keep(connection, scope, entry, self._now())
        self._wrote(weight)

    @_spared(())
    def entries(self, kind: EntryKind | None = None) -> Sequence[Entry]:
        return entries.read(self._database, kind)

    @_honest
    def spent(self) -> Sequence[Spent]:
        return entries.spent(self._database)

    def file(self, scope: str, filed: Filed) -> None:
        self._gathering.add(scope, replace(filed, at=self._now()))

    def omit(self, omission: Omission) -> None:
        self._gathering.add("", replace(omission, at=self._now()))

    @_spared(())
    def receipts(self, most: int) -> Sequence[Filed]:
        self._gathering.flush()
        return receipts.read(self._database, most)

    @_spared(())
    def omissions(self) -> Sequence[Omission]:
        self._gathering.flush()
        return receipts.omissions(self._database)

    @_spared(None)
    def _write_gathered(self, found: Sequence[Gathered]) -> None:
        self._recover()
        with self._database.noting() as connection:
            weight = receipts.keep(connection, found)
        self._wrote(weight)

    def scope_of(self, credential: str) -> str:
        return hashlib.blake2b(credential.encode(), key=self._key).hexdigest()[:32]

    def close(self) -> None:
        self._gathering.end()
        self._note_reads()
        for database in (*self._former, self._database):
            database.close()

    def complain(self, trouble: Exception) -> None:
        """Once: a disk that stays full would say it with every request."""
        if not self._complained:
            self._complained = True
            _log.warning("The record cannot be used (%s); nothing new is remembered.", trouble)

    def _touch(self, table: str, row: Row) -> None:
        """A read is noted here and written with the next write: it never waits for one."""
        if (now := self._now()) - row[1] >= _COARSE:
            with self._touch_lock:
                self._touched[table, row[0]] = now

    @_spared(None)
    def _note_reads(self) -> None:
        with self._touch_lock:
            touched, self._touched = self._touched, {}
        if not touched:
            return
        with self._database.writing() as connection:
            for table in TABLES:
                connection.executemany(
                    f"UPDATE {table} SET used = ? WHERE rowid = ?",  # noqa: S608, one of TABLES
                    [(used, row) for (kind, row), used in touched.items() if kind == table],
                )

    def _fresh(self, known: Row | None, image: Image) -> bool:
        """Kept already, and not long ago: nothing has to be written."""
        if self._standby:
            return False
        return known is not None and self._now() - known[0] < _COARSE and self._blobs.holds(image.sha256)

    def _keep(self, image: Image, statement: str, row: Row) -> bool:
        """The bytes, and then the row that names them: a row never stands without its bytes."""
        self._recover()
        standby = self._standby
        if not self._blobs.holds(image.sha256):
            self._blobs.keep(image.sha256, image.data)
        with self._database.writing() as connection:
            if not self._blobs.holds(image.sha256):  # another process swept in between
                self._blobs.keep(image.sha256, image.data)
            connection.execute(statement, row)
        self._wrote(len(image.data))
        return standby is None

    def _wrote(self, weight: int) -> None:
        self._writes += 1
        self._written += weight
        if self._written > self._allowance or self._writes >= _WRITES_BETWEEN_SWEEPS:
            self.sweep()
        else:
            self._note_reads()  # whoever sweeps next, in whichever process, knows of them

    @_spared(None)
    def sweep(self, *, everything: bool = False) -> None:
        self._writes = self._written = 0
        self._note_reads()
        now, limit = self._now(), self._bounds.bytes - self._allowance
        sweep(self._database, self._blobs, limit, now - self._bounds.days * _DAY, now, everything=everything)

    def _recover(self) -> None:
        """Before something is written, where waiting is allowed: perhaps the disk can be used again by now."""
        with self._touch_lock:
            standby, now = self._standby, self._now()
            if standby is None or now - standby.tried < _RETRY_SECONDS:
                return
            standby.tried = now
        try:
            found = standby.again()
        except (OSError, sqlite3.Error):
            return
        with self._touch_lock:
            self._former.append(self._database)  # another thread may still be reading there
            for name in ("_database", "_blobs", "_key", "_bounds", "_allowance", "_touched", "_standby", "_complained"):
                setattr(self, name, getattr(found, name))
        _log.warning("The record can be used again.")


def _is_due(swept: Path, now: float) -> bool:
    """Whether the last sweep is over an hour ago; whoever is told so sweeps."""
    try:
        if swept.exists() and abs(now - swept.stat().st_mtime) < _COARSE:
            return False
        swept.touch(0o600)
        os.utime(swept, (now, now))
    except OSError:
        return False  # where no time can be written, nothing can be removed either
    return True


def _make_key(path: Path) -> None:
    if not path.exists():
        write_whole(path, secrets.token_bytes(_KEY_BYTES))


def _key_in(folder: Path) -> bytes:
    key = (folder / KEY).read_bytes()
    if len(key) != _KEY_BYTES:
        raise sqlite3.DatabaseError(f"{folder / KEY} is damaged")
    return key


def _sides(size: Size) -> tuple[int, int]:
    return size.width, size.height
