"""The record: rows in SQLite, bytes beside them, each row in the scope that made it.

What a table holds, and the statements for it, are in the file of its name. Here is what goes for all of them: trouble
with the disk, reads that are noted, and what is swept away when there is too much.
"""

from __future__ import annotations

import functools
import json
import logging
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec, TypeVar

from sightline.model.facts import Description
from sightline.model.image import Image, Kept
from sightline.model.ports import Flight
from sightline.model.profile import Lesson
from sightline.model.receipt import Filed, Omission
from sightline.model.records import Answered, Entry, EntryKind, Perception, Spent, Telling, written
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
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
from sightline.store.bounds import sweep
from sightline.store.clock import DAY, RecordTime, note_time, read_time
from sightline.store.damage import is_damage
from sightline.store.database import Row
from sightline.store.home import Home, drop_asides, is_due
from sightline.store.receipts import Gathered, Gathering
from sightline.store.storage import REPAIR, TROUBLES, Clock, ReplacedError, Storage, Where, describe_trouble
from sightline.store.touches import COARSE

_log = logging.getLogger(__name__)
_WRITES_BETWEEN_SWEEPS = 256
_TIME_SECONDS = 1.0
_ATTEMPTS = 3  # to write to a record that is replaced at the same time
_UNREADABLE = (*TROUBLES, json.JSONDecodeError)

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
            except _UNREADABLE as trouble:
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
        except _UNREADABLE as trouble:
            return self.refuse(trouble)

    return honest


def _promised(method: Method[P, T]) -> Method[P, T | Refusal]:
    """Return a refusal unless what was asked for is in the record that the user has, and survives a crash."""

    @functools.wraps(method)
    def promised(self: SqliteRecord, /, *args: P.args, **kwargs: P.kwargs) -> T | Refusal:
        trouble: Exception = ReplacedError()
        for _ in range(_ATTEMPTS):
            try:
                self.storage.check()
                if self.storage.obstacle:
                    return self.storage.obstacle
                return method(self, *args, **kwargs)
            except ReplacedError as replaced:  # by whom a new one was made, which has to be told, too
                trouble = replaced
            except _UNREADABLE as other:
                trouble = other
                break
        return self.refuse(trouble)

    return promised


@dataclass(frozen=True, slots=True)
class _Write:
    """A transaction: where it is, and when."""

    home: Home
    rows: sqlite3.Connection
    now: RecordTime


class SqliteRecord:
    """Implements the port `Record`."""

    def __init__(self, storage: Storage, now: Clock) -> None:
        self.storage, self._wall = storage, now
        self._writes = self._written = 0
        self._complained: Home | None = None  # of which it was said that it fails
        self._unread: Refusal | None = None  # why the consents could not be read
        self._withdrawn: dict[str, float] = {}  # when a consent was withdrawn and that could not be written
        self._read_time: tuple[Home | None, RecordTime] = None, RecordTime(0.0, 0.0)
        self._gathering = Gathering(self._write_gathered)

    @classmethod
    def in_folder(cls, where: Where, now: Clock, *, check: bool = True) -> SqliteRecord:
        """Open the record in a folder, or what takes its place; once an hour what is too old or too much is removed.

        Without `check` damage is not looked for, and only found where it is met.
        """
        record = cls(Storage.in_folder(where, now, check=check), now)
        if record.storage.state == "open" and is_due(where.folder, now()):
            record.sweep(everything=not record.home.is_new)
        return record

    @property
    def home(self) -> Home:
        return self.storage.home

    def trouble(self) -> Refusal | None:
        return self.storage.trouble or self._unread

    @_spared(default=False)
    def keep_image(self, scope: str, image: Image) -> bool:
        self.storage.check()
        used = images.used(self.home.database, scope, image.sha256)
        return self._fresh(used, image) or self._keep(image, lambda to: images.keep(to.rows, scope, image, to.now.time))

    @_spared(None)
    def image(self, scope: str | None, sha256: str) -> Image | None:
        return self._touched("images", images.read(self.home.database, self.home.blobs, scope, sha256))

    @_spared(frozenset[str]())
    def holds(self, scope: str, names: Collection[str]) -> frozenset[str]:
        if not (names and self.storage.check(wait=False)) or self.storage.obstacle:
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
        with self._writing(lightly=True) as to:
            places.keep(to.rows, scope, sha256, path, to.now.time)

    @_spared(())
    def images(self, scope: str | None, folders: Sequence[str] | None, most: int) -> Sequence[Kept]:
        return places.images(self.home.database, scope, folders, most)

    @_spared(default=False)
    def keep_perception(self, scope: str, perception: Perception) -> bool:
        self.storage.check()
        used, pixels = perceptions.used(self.home.database, scope, perception), perception.pixels
        return self._fresh(used, pixels) or self._keep(
            pixels, lambda to: perceptions.keep(to.rows, scope, perception, to.now.time)
        )

    @_spared(None)
    def perception(self, scope: str, perception_id: str) -> Perception | None:
        return self._touched("perceptions", perceptions.read(self.home.database, self.home.blobs, scope, perception_id))

    @_honest
    def remembered(self, prefix: str) -> Sequence[str]:
        return forgetting.remembered(self.home.database, prefix)

    @_promised
    def forget(self, sha256: str | None) -> int:
        home = self.home
        with home.database.erasing() as connection:
            if sha256 is None:
                self._gathering.taken()
            count = forgetting.forget(connection, home.blobs, sha256)
        self._confirm(home)
        if self.storage.folder:  # what a repair has kept may speak of the image, too
            drop_asides(self.storage.folder)
        return count

    @_spared(None)
    def keep_description(self, scope: str, description: Description, prompt: str) -> None:
        self._write(lambda to: descriptions.keep(to.rows, scope, description, prompt, to.now.time))

    @_promised
    def redescribe(self, scope: str, reach: str | None, description: Description, prompt: str) -> None:
        plain = replace(description, boxes="")

        def write(to: _Write) -> int:
            weight = descriptions.keep(to.rows, scope, plain, prompt, to.now.time)
            tellings.retell(to.rows, reach, description.sha256, written(description))
            return weight

        self._write(write)

    @_spared(None)
    def description(self, scope: str, sha256: str, seer: str, prompt: str) -> Description | None:
        return self._touched("descriptions", descriptions.read(self.home.database, scope, sha256, seer, prompt))

    def tell(self, scope: str, telling: Telling) -> Telling:
        self._tell(scope, telling)
        return self.told(scope, telling.turn, telling.images) or telling

    @_spared(None)
    def _tell(self, scope: str, telling: Telling) -> None:
        self._write(lambda to: tellings.keep(to.rows, scope, telling, to.now.time))

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
        self._write(lambda to: legs.keep(to.rows, scope, answered, to.now.time))

    @_spared(None)
    def settle(self, scope: str, answered: Answered, results: Sequence[Json]) -> None:
        self._write(lambda to: legs.settle(to.rows, scope, answered, results))

    @_spared(None)
    def claim(self, flight: Flight, since: float, seconds: float) -> str | None:
        with self._writing(lightly=True) as to:
            now = to.now.steady
            return flights.claim(to.rows, flight, now - (self._wall() - since), now + seconds, now)

    @_spared(None)
    def land(self, flight: Flight, answer: str | None) -> None:
        with self._writing(lightly=True) as to:
            flights.land(to.rows, flight, answer, to.now.steady)

    @_spared((False, None))
    def landed(self, flight: Flight) -> tuple[bool, str | None]:
        return flights.landed(self.home.database, flight, read_time(self.home.database, self._wall()).steady)

    @_spared(frozenset[str]())
    def visit(
        self, scope: str, head: str, names: Sequence[str], ends: Sequence[int], life: float, touch: bool = True
    ) -> frozenset[str]:
        here = moments.Visit(scope, head, names, [names[end] for end in ends])
        with self._writing() as to:
            cold, used = moments.met(to.rows, here, to.now.steady - life)
            weight = moments.touch(to.rows, here, cold, used, COARSE, to.now) if touch else 0
        if touch:
            self._wrote(weight)
        return cold

    @_promised
    def learn(self, upstream: str, model: str, lesson: Lesson, days: float) -> None:
        with self._writing() as to:
            lessons.keep(to.rows, upstream, model, lesson, to.now.time + days * DAY, to.now.time)

    @_spared(None)
    def lesson(self, upstream: str, model: str) -> Lesson | None:
        return lessons.read(self.home.database, upstream, model, self._now())

    @_spared(())
    def lessons(self) -> Sequence[tuple[str, str, Lesson]]:
        found = ((*each, self.lesson(*each)) for each in lessons.known(self.home.database, self._now()))
        return tuple((upstream, model, lesson) for upstream, model, lesson in found if lesson)

    @_promised
    def forget_lesson(self, upstream: str, model: str) -> bool:
        with self._writing() as to:
            return lessons.forget(to.rows, upstream, model)

    def consent(self, provider: str, given: bool) -> Refusal | None:
        """A no that cannot be written counts in this process all the same."""
        refusal = self._consent(provider, given)
        if refusal is None:
            self._withdrawn.pop(provider, None)
        elif not given:
            self._withdrawn[provider] = self._wall()
        return refusal

    @_promised
    def _consent(self, provider: str, given: bool) -> None:
        with self._writing() as to:
            consents.keep(to.rows, provider, given, self._wall())

    def consents(self) -> Mapping[str, bool]:
        if not self.storage.check(wait=False):
            return {}
        try:
            found = consents.read(self.home.database, self._withdrawn)
        except TROUBLES as trouble:
            self.complain(trouble)
            self._unread = self.refuse(trouble)
            return {}
        self._unread = None
        return found

    def note(self, scope: str, entry: Entry) -> None:
        self._note(scope, entry)
        spans.emit(entry)

    @_spared(None)
    def _note(self, scope: str, entry: Entry) -> None:
        self._write(lambda to: entries.keep(to.rows, scope, entry, self._wall(), to.now.time), lightly=True)

    @_spared(())
    def entries(self, kind: EntryKind | None = None) -> Sequence[Entry]:
        return entries.read(self.home.database, kind)

    @_honest
    def spent(self) -> Sequence[Spent]:
        return entries.spent(self.home.database)

    def file(self, scope: str, filed: Filed) -> None:
        self._gathering.add(scope, replace(filed, at=self._wall()))

    def omit(self, omission: Omission) -> None:
        self._gathering.add("", replace(omission, at=self._wall()))

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
        self._write(lambda to: receipts.keep(to.rows, found, to.now.time), lightly=True)

    def scope_of(self, credential: str) -> str:
        return scope_key.scope_of(self.home.key, credential)

    def close(self) -> None:
        self._gathering.end()
        self._note_reads()
        self.storage.close()

    def complain(self, trouble: Exception) -> None:
        """Say that the record fails, once: a disk that stays full would say it with every request."""
        if is_damage(trouble):
            self.storage.note_damage(trouble)
        elif self._complained is not self.home and not isinstance(trouble, ReplacedError):
            self._complained = self.home
            if not self.storage.obstacle:  # which was said when it was found
                why, remedy = describe_trouble(self.storage.folder, trouble)
                _log.warning("The record cannot be used: %s; nothing new is remembered (%s)", why, remedy)

    def refuse(self, trouble: Exception) -> Refusal:
        if is_damage(trouble):
            self.storage.note_damage(trouble)
            return Refusal("corrupt", f"the record is damaged: {trouble}", REPAIR)
        why, remedy = describe_trouble(self.storage.folder, trouble)
        return Refusal("unavailable", f"the record could not be written: {why}", remedy)

    def _now(self) -> float:
        """Return the record time, by which things grow old. It is read from the record once a second at the most."""
        wall, home = self._wall(), self.home
        if self._read_time[0] is not home or not 0 <= wall - self._read_time[1].wall < _TIME_SECONDS:
            self._read_time = home, read_time(home.database, wall)
        return self._read_time[1].advance(wall).time

    def _touch(self, table: str, row: Row) -> None:
        self.home.touches.add(table, row, self._now())

    def _touched(self, table: str, found: tuple[Row, T] | None) -> T | None:
        """What was found, and that it was read."""
        if found is None:
            return None
        self._touch(table, found[0])
        return found[1]

    @_spared(None)
    def _note_reads(self) -> None:
        self.home.touches.write(self.home.database)

    def _fresh(self, used: float | None, image: Image) -> bool:
        """Kept already, and not long ago: nothing has to be written."""
        if self.storage.obstacle:
            return False
        return used is not None and self._now() - used < COARSE and self.home.blobs.holds(image.sha256)

    def _keep(self, image: Image, write: Callable[[_Write], None]) -> bool:
        """The bytes, and then the row that names them: a row never stands without its bytes."""
        blobs, is_durable = self.home.blobs, self.storage.obstacle is None
        if not blobs.holds(image.sha256):
            blobs.keep(image.sha256, image.data)
        with self._writing() as to:
            if not to.home.blobs.holds(image.sha256):  # another process swept in between
                to.home.blobs.keep(image.sha256, image.data)
            write(to)
        self._wrote(len(image.data))
        return is_durable

    def _write(self, write: Callable[[_Write], int], *, lightly: bool = False) -> None:
        """Write rows, of which `write` gives the weight; `lightly`: a loss of power may take them."""
        with self._writing(lightly=lightly) as to:
            weight = write(to)
        self._wrote(weight)

    @contextmanager
    def _writing(self, *, lightly: bool = False) -> Iterator[_Write]:
        """Begin a transaction in the record that the folder holds now, and raise if it has lost its file by the end."""
        self.storage.check()
        home = self.home
        with home.database.noting() if lightly else home.database.writing() as rows:
            yield _Write(home, rows, note_time(rows, self._wall()))
        self._confirm(home)

    def _confirm(self, home: Home) -> None:
        if self.storage.obstacle is None and not home.database.is_current():
            raise ReplacedError("it was replaced meanwhile")

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
        with self._writing() as to:
            limit, oldest = to.home.bounds.bytes - self._allowance, to.now.time - to.home.bounds.days * DAY
            sweep(to.rows, to.home.blobs, limit, oldest, to.now.time, everything=everything)
            if everything and self.storage.folder:
                drop_asides(self.storage.folder, oldest)
