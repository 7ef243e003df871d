"""The record: rows in SQLite, bytes beside them, each row in the scope that made it.

What a table holds, and the statements for it, are in the file of its name. Here is what goes for all of them: trouble
with the disk, reads that are noted, and what is swept away when there is too much.
"""

from __future__ import annotations

import functools
import logging
import sqlite3
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Concatenate, ParamSpec, TypeVar

from sightline.model.answered import Answered
from sightline.model.entry import Entry, EntryKind, Spent
from sightline.model.facts import Description
from sightline.model.image import Image, Kept
from sightline.model.perception import Perception
from sightline.model.ports import Flight
from sightline.model.profile import Lesson
from sightline.model.receipt import Filed, Omission
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.telling import Telling, written
from sightline.store import (
    consents,
    descriptions,
    entries,
    flights,
    forgetting,
    images,
    legs,
    lessons,
    moments,
    perceptions,
    places,
    receipts,
    scope_key,
    spans,
    tellings,
)
from sightline.store.bounds import Bounds, sweep
from sightline.store.database import Database, Row
from sightline.store.home import Home, is_due
from sightline.store.receipts import Gathered, Gathering
from sightline.store.touches import COARSE, Touches

_log = logging.getLogger(__name__)
_DAY = 86400.0
_WRITES_BETWEEN_SWEEPS = 256
_RETRY_SECONDS = 60.0  # a disk that could not be used is tried again that often

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
    """What a record needs to know that stands in for another one."""

    again: Callable[[], SqliteRecord]
    trouble: Refusal | None
    tried: float  # when it was last tried


class SqliteRecord:
    """Implements the port `Record`."""

    def __init__(self, home: Home, now: Clock) -> None:
        self.home, self._now = home, now
        self._writes = self._written = 0
        self._touches = Touches(home.database)
        self._recovering = threading.Lock()
        self._complained = False
        self._standby: _Standby | None = None
        self._former: list[Database] = []
        self._gathering = Gathering(self._write_gathered)

    @classmethod
    def on_disk(cls, folder: Path, bounds: Bounds, now: Clock) -> SqliteRecord:
        record = cls(Home.on_disk(folder, bounds), now)
        if is_due(folder, now()):
            record.sweep(everything=True)
        return record

    def stand_by(self, again: Callable[[], SqliteRecord], trouble: Refusal | None) -> SqliteRecord:
        """This one stands in for another that cannot be used now: nothing is kept for good, and that is tried again."""
        self._standby = _Standby(again, trouble, self._now())
        self._complained = True  # whoever opened it has said so
        return self

    def trouble(self) -> Refusal | None:
        return self._standby.trouble if self._standby else None

    @_spared(default=False)
    def keep_image(self, scope: str, image: Image) -> bool:
        used, now = images.used(self.home.database, scope, image.sha256), self._now()
        return self._fresh(used, image) or self._keep(image, lambda rows: images.keep(rows, scope, image, now))

    @_spared(None)
    def image(self, scope: str | None, sha256: str) -> Image | None:
        return self._touched("images", images.read(self.home.database, self.home.blobs, scope, sha256))

    @_spared(frozenset[str]())
    def holds(self, scope: str, names: Collection[str]) -> frozenset[str]:
        if self._standby or not names:
            return frozenset()
        held = images.held(self.home.database, self.home.blobs, scope, names)
        for row in held:
            self._touch("images", row)
        return frozenset(sha256 for *_, sha256 in held)

    @_spared(())
    def images_by_prefix(self, scope: str | None, prefix: str) -> Sequence[str]:
        return images.by_prefix(self.home.database, scope, prefix)

    @_spared(None)
    def place(self, scope: str, sha256: str, path: str) -> None:
        used = places.used(self.home.database, scope, sha256, path)
        if used is not None and self._now() - used < COARSE:
            return
        self._recover()
        with self.home.database.noting() as connection:
            places.keep(connection, scope, sha256, path, self._now())

    @_spared(())
    def images(self, scope: str | None, folders: Sequence[str] | None, most: int) -> Sequence[Kept]:
        return places.images(self.home.database, scope, folders, most)

    @_spared(default=False)
    def keep_perception(self, scope: str, perception: Perception) -> bool:
        used, now = perceptions.used(self.home.database, scope, perception), self._now()
        pixels = perception.pixels
        return self._fresh(used, pixels) or self._keep(
            pixels, lambda rows: perceptions.keep(rows, scope, perception, now)
        )

    @_spared(None)
    def perception(self, scope: str, perception_id: str) -> Perception | None:
        return self._touched("perceptions", perceptions.read(self.home.database, self.home.blobs, scope, perception_id))

    @_honest
    def remembered(self, prefix: str) -> Sequence[str]:
        return forgetting.remembered(self.home.database, prefix)

    @_honest
    def forget(self, sha256: str | None) -> int:
        with self.home.database.erasing() as connection:
            if sha256 is None:
                self._gathering.taken()
            return forgetting.forget(connection, self.home.blobs, sha256)

    @_spared(None)
    def keep_description(self, scope: str, description: Description, prompt: str) -> None:
        self._write(lambda rows: descriptions.keep(rows, scope, description, prompt, self._now()))

    @_spared(None)
    def description(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None:
        return self._touched("descriptions", descriptions.read(self.home.database, scope, sha256, seer, prompt))

    def tell(self, scope: str, telling: Telling) -> Telling:
        self._tell(scope, telling)
        return self.told(scope, telling.turn, telling.images) or telling

    @_spared(None)
    def _tell(self, scope: str, telling: Telling) -> None:
        self._write(lambda rows: tellings.keep(rows, scope, telling, self._now()))

    @_spared(None)
    def told(self, scope: str, turn: str, images: tuple[str, ...]) -> Telling | None:
        return self._touched("tellings", tellings.read(self.home.database, scope, turn, images))

    @_spared(frozenset[str]())
    def looked(self, scope: str, turn: str) -> frozenset[str]:
        return tellings.looked(self.home.database, scope, turn)

    @_spared(default=False)
    def answers_in_legs(self, scope: str) -> bool:
        return legs.any_of(self.home.database, scope)

    @_spared(())
    def answered(self, scope: str, keys: Sequence[str]) -> Sequence[Answered]:
        found = legs.read(self.home.database, scope, keys)
        for row, _ in found:
            self._touch("legs", row)
        return [each for _, each in found]

    @_spared(None)
    def keep_answered(self, scope: str, answered: Answered) -> None:
        self._write(lambda rows: legs.keep(rows, scope, answered, self._now()))

    @_spared(None)
    def settle(self, scope: str, answered: Answered, results: Sequence[Json]) -> None:
        with self.home.database.writing() as connection:
            weight = legs.settle(connection, scope, answered, results)
        self._wrote(weight)

    @_spared(None)
    def retell(self, scope: str | None, description: Description) -> None:
        with self.home.database.writing() as connection:
            tellings.retell(connection, scope, description.sha256, written(description))

    @_spared(None)
    def claim(self, flight: Flight, since: float, seconds: float) -> str | None:
        now = self._now()
        with self.home.database.noting() as connection:
            return flights.claim(connection, flight, since, now + seconds, now)

    @_spared(None)
    def land(self, flight: Flight, answer: str | None) -> None:
        with self.home.database.noting() as connection:
            flights.land(connection, flight, answer, self._now())

    @_spared((False, None))
    def landed(self, flight: Flight) -> tuple[bool, str | None]:
        return flights.landed(self.home.database, flight, self._now())

    @_spared(frozenset[str]())
    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> frozenset[str]:
        now, here = self._now(), moments.Visit(scope, head, names, [names[end] for end in ends])
        with self.home.database.writing() as connection:
            cold, used = moments.met(connection, here, now - life)
            weight = moments.touch(connection, here, cold, used, COARSE, now) if touch else 0
        if touch:
            self._wrote(weight)
        return cold

    @_spared(None)
    def learn(self, upstream: str, model: str, lesson: Lesson, days: float) -> None:
        now = self._now()
        with self.home.database.writing() as connection:
            lessons.keep(connection, upstream, model, lesson, now + days * _DAY, now)

    @_spared(None)
    def lesson(self, upstream: str, model: str) -> Lesson | None:
        return lessons.read(self.home.database, upstream, model, self._now())

    @_spared(())
    def lessons(self) -> Sequence[tuple[str, str, Lesson]]:
        found = ((*each, self.lesson(*each)) for each in lessons.known(self.home.database, self._now()))
        return tuple((upstream, model, lesson) for upstream, model, lesson in found if lesson)

    @_spared(default=False)
    def forget_lesson(self, upstream: str, model: str) -> bool:
        with self.home.database.writing() as connection:
            return lessons.forget(connection, upstream, model)

    @_spared(None)
    def consent(self, provider: str, given: bool) -> None:
        with self.home.database.writing() as connection:
            consents.keep(connection, provider, given, self._now())

    @_spared(MappingProxyType[str, bool]({}))
    def consents(self) -> Mapping[str, bool]:
        return consents.read(self.home.database)

    def note(self, scope: str, entry: Entry) -> None:
        self._note(scope, entry)
        spans.emit(entry)

    @_spared(None)
    def _note(self, scope: str, entry: Entry) -> None:
        self._write(lambda rows: entries.keep(rows, scope, entry, self._now()), lightly=True)

    @_spared(())
    def entries(self, kind: EntryKind | None = None) -> Sequence[Entry]:
        return entries.read(self.home.database, kind)

    @_honest
    def spent(self) -> Sequence[Spent]:
        return entries.spent(self.home.database)

    def file(self, scope: str, filed: Filed) -> None:
        self._gathering.add(scope, replace(filed, at=self._now()))

    def omit(self, omission: Omission) -> None:
        self._gathering.add("", replace(omission, at=self._now()))

    @_spared(())
    def receipts(self, most: int) -> Sequence[Filed]:
        self._gathering.flush()
        return receipts.read(self.home.database, most)

    @_spared(())
    def omissions(self) -> Sequence[Omission]:
        self._gathering.flush()
        return receipts.omissions(self.home.database)

    @_spared(None)
    def _write_gathered(self, found: Sequence[Gathered]) -> None:
        self._write(lambda rows: receipts.keep(rows, found), lightly=True)

    def scope_of(self, credential: str) -> str:
        return scope_key.scope_of(self.home.key, credential)

    def close(self) -> None:
        self._gathering.end()
        self._note_reads()
        for database in (*self._former, self.home.database):
            database.close()

    def complain(self, trouble: Exception) -> None:
        """Once: a disk that stays full would say it with every request."""
        if not self._complained:
            self._complained = True
            _log.warning("The record cannot be used (%s); nothing new is remembered.", trouble)

    def _touch(self, table: str, row: Row) -> None:
        self._touches.add(table, row, self._now())

    def _touched(self, table: str, found: tuple[Row, T] | None) -> T | None:
        """What was found, and that it was read."""
        if found is None:
            return None
        self._touch(table, found[0])
        return found[1]

    @_spared(None)
    def _note_reads(self) -> None:
        self._touches.write()

    def _fresh(self, used: float | None, image: Image) -> bool:
        """Kept already, and not long ago: nothing has to be written."""
        if self._standby:
            return False
        return used is not None and self._now() - used < COARSE and self.home.blobs.holds(image.sha256)

    def _keep(self, image: Image, write: Callable[[sqlite3.Connection], None]) -> bool:
        """The bytes, and then the row that names them: a row never stands without its bytes."""
        self._recover()
        standby = self._standby
        if not self.home.blobs.holds(image.sha256):
            self.home.blobs.keep(image.sha256, image.data)
        with self.home.database.writing() as connection:
            if not self.home.blobs.holds(image.sha256):  # another process swept in between
                self.home.blobs.keep(image.sha256, image.data)
            write(connection)
        self._wrote(len(image.data))
        return standby is None

    def _write(self, write: Callable[[sqlite3.Connection], int], *, lightly: bool = False) -> None:
        """Rows, of which `write` gives the weight; `lightly`: a loss of power may take them."""
        self._recover()
        with self.home.database.noting() if lightly else self.home.database.writing() as connection:
            weight = write(connection)
        self._wrote(weight)

    @property
    def _allowance(self) -> int:
        """What may be written before the next sweep; a sweep leaves that much free, so the limit holds."""
        return self.home.bounds.bytes // 16

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
        home, now = self.home, self._now()
        limit, oldest = home.bounds.bytes - self._allowance, now - home.bounds.days * _DAY
        sweep(home.database, home.blobs, limit, oldest, now, everything=everything)

    def _recover(self) -> None:
        """Before something is written, where waiting is allowed: perhaps the disk can be used again by now."""
        with self._recovering:
            standby, now = self._standby, self._now()
            if standby is None or now - standby.tried < _RETRY_SECONDS:
                return
            standby.tried = now
        try:
            found = standby.again()
        except (OSError, sqlite3.Error):
            return
        with self._recovering:
            self._former.append(self.home.database)  # another thread may still be reading there
            self.home, self._touches = found.home, Touches(found.home.database)
            self._standby, self._complained = None, False
        _log.warning("The record can be used again.")
