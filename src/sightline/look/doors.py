"""Whose eyes these are: the record, the folders that may be read, the limits, the tools that are offered."""

from __future__ import annotations

import atexit
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.engine.local import readers
from sightline.engine.shelf import Shelf
from sightline.look.ask_schema import TASK as SCHEMA
from sightline.look.once import once
from sightline.look.part import TASK
from sightline.model.image import Target
from sightline.model.ports import Store
from sightline.model.profile import Profile
from sightline.model.upstream import Visitor
from sightline.pixels.worker import TASKS, Workers
from sightline.settings import Settings, load
from sightline.sources.file import Policy, policy_for
from sightline.store import open_record

if TYPE_CHECKING:
    from sightline.sources.web import Grant

NATIVE = ("image/png", "image/jpeg", "image/webp", "image/gif")  # what every provider takes
AS_IT_IS = 8 * 1024 * 1024  # bytes that are sent as they are
UNNAMED = ""  # the turn of calls whose host names none
_TURNS = 1024  # of a session whose calls are counted
_SILENCE = 60.0  # seconds after which calls without a name are of another turn
_LONG_SILENCE = 3600.0  # … and those with one
_EDGE = 8000  # the widest that any known provider takes
SEEN_BY_ALL = 2000  # pixels of an edge that every provider takes, however many images there are
ANYONE = Target(NATIVE, encoded_bytes=4 * -(-AS_IT_IS // 3), edge=_EDGE)


class Turns:
    """How often somebody was asked in each turn of a session. Those that were spoken of least lately are forgotten.

    A turn is over when nobody was asked for a while, sooner where nobody names turns: else a long life would be one
    turn, and so would be a question that is asked in the same words again and again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._asked: Shelf[tuple[int, float]] = Shelf(_TURNS)  # how often, and when last
        self._lock = threading.Lock()
        self._clock = clock

    def takes(self, turn: str, most: int) -> bool:
        """Whether a turn may ask once more, of so many times (0: always); if so, that counts."""
        with self._lock:
            now = self._clock()
            asked = self._so_far(turn, now)
            if most and asked >= most:
                return False
            self._asked.put(turn, (asked + 1, now))
            return True

    def gives_back(self, turn: str) -> None:
        """A call that was counted and did not take place after all."""
        with self._lock:
            asked, last = self._asked.get(turn) or (0, self._clock())
            self._asked.put(turn, (max(0, asked - 1), last))

    def _so_far(self, turn: str, now: float) -> int:
        asked, last = self._asked.get(turn) or (0, now)
        return 0 if now - last > (_SILENCE if turn == UNNAMED else _LONG_SILENCE) else asked


@dataclass(frozen=True, slots=True)
class Behalf:
    """A client, and the model that it talks to."""

    visitor: Visitor = field(repr=False)
    profile: Profile


@dataclass(frozen=True, slots=True)
class Door:
    record: Store
    scope: str  # what one scope has seen, no other finds by its sha256
    policy: Policy
    workers: Workers  # that know the task `part` beside those of their own
    target: Target = ANYONE  # of whoever will look at the pixels
    as_it_is: int = AS_IT_IS  # bytes of a bitmap that is shown untouched, where the target admits it
    toolset: frozenset[str] = frozenset({"vision"})
    owner: bool = False  # of the record: who can read its files anyway may see every image in it
    here: tuple[Path, ...] | None = None  # folders whose images are listed; None: all within reach
    network: Grant | None = None  # to view what is at a web address, by the setting `network` or by the host's code
    settings: Settings | None = None  # of its user; None: no tool that asks somebody is offered
    turn: str | None = None  # of the conversation that asks, as its host names it; else a model's are UNNAMED
    turns: Turns = field(default_factory=Turns, compare=False, repr=False)
    behalf: Behalf | None = field(default=None, repr=False)  # of a client: its own provider may be asked as well

    @property
    def reach(self) -> str | None:
        """The scope whose images may be seen by their sha256."""
        return None if self.owner else self.scope


def door(settings: Settings | None = None, *, network: bool | None = None, turn: str | None = None) -> Door:
    """The user's own: settings, record, and the folder in which this process works now.

    settings: else those of the user's file and environment.
    network: whether a view may fetch what is at a public https address; None: as the setting `network` says. It does
        not concern `file_url` of the tools that ask about a file, which permits the fetch of that one address.
    turn: a name for the turn of the conversation that looks; without one a model's calls here are of one turn, until
        nobody was asked for a minute.
    """
    known = settings or load()
    record = opened(known.folder, known.record)
    scope, grant = record.scope_of(""), granted(network=known.network if network is None else network)
    return Door(
        record,
        scope,
        folders(known),
        workers(),
        toolset=known.toolset,
        owner=True,
        here=None if known.values["listImages"] == "all" else tuple(filter(None, [_working()])),
        network=grant,
        settings=known,
        turn=turn,
        turns=_session(known.folder, known.record),
    )


def folders(known: Settings) -> Policy:
    """The folders that may be read, seen from where this process works now."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111, which raises nothing where there is none
    asked, own = home if home in known.fs_reach else None, (known.file, known.folder)
    return policy_for(_working(), _temporary(), known.fs_reach, asked, closed=own)


def granted(*, network: bool) -> Grant | None:
    """Return the permission to fetch; the dialler is loaded only where it is given."""
    if not network:
        return None
    from sightline.sources.web import Grant

    return Grant()


def _working() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # somebody has removed it
        return None


def _temporary() -> Path | None:
    try:
        return Path(tempfile.gettempdir())
    except OSError:  # there is none that can be written
        return None


@once
def opened(folder: Path, kind: str) -> Store:
    """Open as long as the process is: one record serves every call and every thread."""
    record = open_record(folder, kind="memory" if kind == "memory" else "disk")
    atexit.register(record.close)
    return record


@once
def _session(folder: Path, kind: str) -> Turns:
    """What this process has asked, for the user of a record."""
    return Turns()


@once
def workers() -> Workers:
    """The processes in which this one has its pixels decoded."""
    shared = Workers({**TASKS, **TASK, **SCHEMA})
    atexit.register(shared.end)
    return shared


@once
def reading() -> Workers:
    """The processes in which the local seer reads for this one."""
    shared = readers()
    atexit.register(shared.end)
    return shared


def _forked() -> None:
    """A fork has none of the threads that wait for them."""
    workers.cache_clear()
    reading.cache_clear()


os.register_at_fork(after_in_child=_forked)
