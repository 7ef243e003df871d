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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar, cast

from sightline.disk import write_whole
from sightline.model.entry import Entry, EntryKind, Spent
from sightline.model.facts import Description
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.perception import Perception
from sightline.model.profile import Lesson, Limits, ToolImages, WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.store import entries
from sightline.store.bounds import TABLES, Bounds, drop_unnamed, sweep
from sightline.store.database import Database, Row
from sightline.store.files import Blobs, Files, Held, private_folder

_log = logging.getLogger(__name__)
_DAY = 86400.0
_COARSE = 3600.0  # `used` is that exact: an image that comes with every request is not written every time
_WRITES_BETWEEN_SWEEPS = 256
_KEY_BYTES = 32
_MOMENT_BYTES = 256  # that a row about a moment takes, with its place in the index
_LATEST = 4  # requests of a conversation that are looked for when it goes on: clients still change their last words
ROWS, BYTES, KEY, SWEPT = "record.sqlite", "blobs", "scope.key", "swept"
_RETRY_SECONDS = 60.0  # a disk that could not be used is tried again that often

_EVERY_NAME = (
    "SELECT sha256 AS name FROM images UNION SELECT sha256 FROM descriptions"
    " UNION SELECT image FROM perceptions UNION SELECT pixels FROM perceptions"
    " UNION SELECT json_each.value FROM entries, json_each(entries.images)"
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

    @_spared(())
    def images_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        rows = self._database.rows(
            "SELECT DISTINCT sha256 FROM images WHERE sha256 >= ? AND sha256 < ? AND scope = ifnull(?, scope)"
            " ORDER BY sha256 LIMIT 2",
            *(prefix, prefix + "g", scope),  # no hexadecimal digit comes after g
        )
        return tuple(sha256 for (sha256,) in rows)

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
            entries.forget(connection, sha256)
            names = self._blobs.names() if sha256 is None else [sha256, *(name for (name,) in pixels)]
            drop_unnamed(connection, self._blobs, names)
        return len(chosen)

    @_spared(None)
    def keep_description(self, scope: str, description: Description, prompt: str) -> None:
        key = (scope, description.sha256, description.seer, prompt)
        weight = len(description.text.encode())
        self._recover()
        with self._database.writing() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO descriptions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*key, *_sides(description.size), description.text, weight, self._now()),
            )
        self._wrote(weight)

    @_spared(None)
    def description(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None:
        row = self._database.row(
            "SELECT rowid, used, width, height, text FROM descriptions"
            " WHERE (scope, sha256, seer, prompt) = (?, ?, ?, ?)",
            *(scope, sha256, seer, prompt),
        )
        if row is None:
            return None
        self._touch("descriptions", row)
        return Description(sha256, Size(row[2], row[3]), row[4], seer)

    @_spared(frozenset[str]())
    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> frozenset[str]:
        now, requests = self._now(), [names[end] for end in ends]
        latest = {head, *requests[-_LATEST:]}
        with self._database.writing() as connection:
            rows = connection.execute(
                "SELECT name, cold, used FROM moments WHERE scope = ? AND name IN (SELECT value FROM json_each(?))",
                (scope, json.dumps([head, *names])),
            ).fetchall()
            used = {name: at for name, _, at in rows}
            met = {name for name, cold, _ in rows if cold}
            if _is_cold(used, head, requests, now - life):
                met.add(requests[-1])
            if not touch:
                return frozenset(met)
            aged = (name for name, at in used.items() if now - at >= _COARSE)  # or they would go one by one
            connection.executemany(
                "INSERT OR REPLACE INTO moments VALUES (?, ?, ?, ?, ?)",
                [(scope, name, name in met, _MOMENT_BYTES, now) for name in latest.union(aged)],
            )
        self._wrote(_MOMENT_BYTES * len(latest - used.keys()))
        return frozenset(met)

    @_spared(None)
    def learn(self, upstream: str, model: str, lesson: Lesson, days: float) -> None:
        """What was learnt is kept apart, so that one thing does not prolong another's days; the last word counts."""
        with self._database.writing() as connection:
            known = connection.execute(
                "SELECT said FROM lessons WHERE (upstream, model, about) = (?, ?, 'limits') AND expires > ?",
                (upstream, model, self._now()),
            ).fetchone()
            limits = _limits(known[0]).tightened(lesson.limits) if known else lesson.limits
            connection.executemany(
                "INSERT OR REPLACE INTO lessons VALUES ('', ?, ?, ?, ?, ?, ?)",
                [
                    (upstream, model, about, json.dumps(said), lesson.why, self._now() + days * _DAY)
                    for about, said in _said(lesson, limits)
                ],
            )

    @_spared(None)
    def lesson(self, upstream: str, model: str) -> Lesson | None:
        rows = self._database.rows(
            "SELECT about, said, why FROM lessons WHERE (upstream, model) = (?, ?) AND expires > ?"
            " ORDER BY about = 'blind', about",
            *(upstream, model, self._now()),
        )
        return _merged(rows) if rows else None

    @_spared(())
    def lessons(self) -> Sequence[tuple[str, str, Lesson]]:
        known = self._database.rows(
            "SELECT DISTINCT upstream, model FROM lessons WHERE expires > ? ORDER BY upstream, model",
            self._now(),
        )
        found = ((upstream, model, self.lesson(upstream, model)) for upstream, model in known)
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

    @_spared(None)
    def note(self, scope: str, entry: Entry) -> None:
        self._recover()
        with self._database.writing() as connection:
            weight = entries.keep(connection, scope, entry, self._now())
        self._wrote(weight)

    @_spared(())
    def entries(self, kind: EntryKind | None = None) -> Sequence[Entry]:
        return entries.read(self._database, kind)

    @_honest
    def spent(self) -> Sequence[Spent]:
        return entries.spent(self._database)

    def scope_of(self, credential: str) -> str:
        return hashlib.blake2b(credential.encode(), key=self._key).hexdigest()[:32]

    def close(self) -> None:
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


def _is_cold(used: Mapping[str, float], head: str, requests: Sequence[str], since: float) -> bool:
    """Does a conversation go on of which hardly anything can be cached?"""
    known = ((back, used[name]) for back, name in enumerate(reversed(requests)) if name in used)
    back, last = next(known, (None, 0.0))
    if back is None:  # a beginning that is known, and nothing of what was said: the client has told it anew
        return bool(requests) and head in used
    return last < since or back > _LATEST


def _sides(size: Size) -> tuple[int, int]:
    return size.width, size.height


_TOOLS = "tools "


def _said(lesson: Lesson, limits: Limits) -> Iterator[tuple[str, Json]]:
    """What a lesson says, thing by thing; `limits` are its own with those that were known."""
    if lesson.blind is not None:
        yield "blind", lesson.blind
    if lesson.limits != Limits():
        yield "limits", asdict(limits)
    for wire, taken in lesson.tool_images.items():
        yield f"{_TOOLS}{wire}", taken


def _merged(rows: Sequence[Row]) -> Lesson:
    """What is known of a model; the row about blindness comes last, and its reason stands."""
    said = {about: text for about, text, _ in rows}
    tools = {about.removeprefix(_TOOLS): json.loads(text) for about, text in said.items() if about.startswith(_TOOLS)}
    return Lesson(
        blind=json.loads(said["blind"]) if "blind" in said else None,
        limits=_limits(said["limits"]) if "limits" in said else Limits(),
        why=rows[-1][2],
        tool_images=cast("dict[WireName, ToolImages]", tools),
    )


def _limits(text: str) -> Limits:
    """As they were written, perhaps by a version that knew other limits."""
    known = {field.name for field in fields(Limits)}
    read = {name: value for name, value in json.loads(text).items() if name in known}
    return Limits(**{**read, "formats": tuple(read["formats"])})
