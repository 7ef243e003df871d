"""The file by which the processes that share a record on a disk tell each other to drop what they have cached.

It grows by a byte with each change that is announced (a consent, a lesson, an image that was forgotten, the first
answer of a client), so that one call of `stat` shows whether there was any. What is in it doesn't matter, and neither
does deleting it.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

CHANGES_NAME = "changes"
FileState = tuple[int, int, int]


class ChangeFile:
    """Announces changes to other processes, and shows theirs."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def create(self) -> None:
        """Create the file unless it is there: on a disk that is full later, its time can be changed."""
        if self.read_state() is None:
            self.announce()

    def announce(self) -> None:
        """Make the file longer. On a disk that is full, its time changes at least."""
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, b".")
            finally:
                os.close(handle)
        except OSError:
            with suppress(OSError):
                later = max(time.time_ns(), os.stat(self._path).st_mtime_ns + 1)  # noqa: PTH116
                os.utime(self._path, ns=(later, later))

    def read_state(self) -> FileState | None:
        """Return a value that changes with each announcement."""
        try:
            status = os.stat(self._path)  # noqa: PTH116  for every request with known images
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns
