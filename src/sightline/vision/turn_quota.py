"""How often models are asked in one turn of a conversation, and for which callers that is counted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from sightline.vision.concurrency import LruCache

UNNAMED_TURN = ""  # the turn of calls whose host doesn't name one
_TURNS = 1024  # whose calls are counted, per session
_IDLE_SECONDS = 60.0  # after which calls without a turn's name belong to another turn
_NAMED_IDLE_SECONDS = 3600.0  # … and calls with a name


class TurnQuota:
    """Counts how often a model was asked in each turn of a conversation, for the turns that were used last.

    A turn ends when no model was asked for a while, sooner where the host doesn't name its turns: otherwise a long
    conversation would be one turn, and so would a question that is asked in the same words again and again.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._counts: LruCache[tuple[int, float]] = LruCache(_TURNS)  # how often, and when last
        self._lock = threading.Lock()
        self._clock = clock

    def try_take(self, turn: str, limit: int) -> bool:
        """Count one more call of a turn and return True, or return False at `limit` calls (0: no limit)."""
        with self._lock:
            now = self._clock()
            count = self._count_calls(turn, now)
            if limit and count >= limit:
                return False
            self._counts.put(turn, (count + 1, now))
            return True

    def give_back(self, turn: str) -> None:
        """Uncount a call that did not take place after all."""
        with self._lock:
            count, last = self._counts.get(turn) or (0, self._clock())
            self._counts.put(turn, (max(0, count - 1), last))

    def _count_calls(self, turn: str, now: float) -> int:
        count, last = self._counts.get(turn) or (0, now)
        return 0 if now - last > (_IDLE_SECONDS if turn == UNNAMED_TURN else _NAMED_IDLE_SECONDS) else count


class CallerQuotas:
    """A quota for each caller, for the callers that called last. Thread-safe: a caller never has two."""

    def __init__(self, capacity: int) -> None:
        self._quotas: LruCache[TurnQuota] = LruCache(capacity)
        self._lock = threading.Lock()

    def find(self, caller: str) -> TurnQuota:
        """Return the quota of a caller, which is a new one for a new caller."""
        with self._lock:
            return self._quotas.get(caller) or self._quotas.put(caller, TurnQuota())
