"""Whose eyes these are: the record, the folders that may be read, the limits, the tools that are offered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.model.image import Target
from sightline.model.ports import Store
from sightline.pixels.part import AS_IT_IS
from sightline.pixels.worker import Workers
from sightline.runtime import (
    find_working_folder,
    grant_network,
    open_shared_record,
    readable_folders,
    shared_workers,
)
from sightline.settings import Settings, load
from sightline.sources.file import Policy
from sightline.vision.bridge import once
from sightline.vision.lru_cache import LruCache

if TYPE_CHECKING:
    from sightline.sources.web import Grant
    from sightline.vision.chooser import Caller


NATIVE = ("image/png", "image/jpeg", "image/webp", "image/gif")  # what every provider takes
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
        self._asked: LruCache[tuple[int, float]] = LruCache(_TURNS)  # how often, and when last
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
    caller: Caller | None = field(default=None, repr=False)  # of a client: its own provider may be asked as well

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
    record = open_shared_record(known.folder, known.record)
    scope, grant = record.scope_of(""), grant_network(network=known.network if network is None else network)
    return Door(
        record,
        scope,
        readable_folders(known),
        shared_workers(),
        toolset=known.toolset,
        owner=True,
        here=None if known.list_images == "all" else tuple(filter(None, [find_working_folder()])),
        network=grant,
        settings=known,
        turn=turn,
        turns=_session(known.folder, known.record),
    )


@once
def _session(folder: Path, kind: str) -> Turns:
    """What this process has asked, for the user of a record."""
    return Turns()
