"""Do work in the background that requests would otherwise wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

_DELAY_SECONDS = 1.0  # the agent that a proxy is started for starts meanwhile, and sends the first requests


class Preloader:
    """A thread that takes the steps of an iterator. A failing step ends it silently: requests report the error."""

    def __init__(self, steps: Iterator[None], delay: float = _DELAY_SECONDS) -> None:
        self._steps, self._delay, self._stopping = steps, delay, threading.Event()
        self._thread = threading.Thread(target=self._run, name="preload", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Skip the steps that are left, and wait until the thread has ended."""
        self._stopping.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def _run(self) -> None:
        self._stopping.wait(self._delay)
        with suppress(Exception):  # also the end of the steps
            while not self._stopping.is_set():
                next(self._steps)
