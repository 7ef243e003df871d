"""The settings of a process that runs for long: they follow the settings file.

Surfaces ask for the settings once per request. That costs a comparison of clocks, and once a second a stat of the file.
Changed settings are used as a whole or not at all: a file that can't be used leaves the old ones in place. An invalid
entry of a setting is left out, as when the process starts.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from sightline.settings import COMMAND_LINE, KEYS, Settings, load_settings

_log = logging.getLogger(__name__)

CHECK_SECONDS = 1.0
_FIXED_KEYS = tuple(key.name for key in KEYS if key.needs_restart)
_Stamp = tuple[int, ...]  # changes whenever the file does; empty: there is no file


class LiveSettings:
    """The current settings of a process. Its environment and the place of the file stay as they were at the start."""

    def __init__(
        self,
        settings: Settings,
        report: Callable[[str], None] = _log.warning,
        find_fault: Callable[[Settings], object] = lambda settings: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`report` gets one line about a change that can't be used, `find_fault` says why the process can't use it."""
        self._current = self._loaded = settings
        self._given = {name for name in _FIXED_KEYS if settings.sources[name] == COMMAND_LINE}
        self._report, self._find_fault = report, find_fault
        self._clock = clock
        self._next_check = 0.0
        self._stamp: _Stamp | None = None  # None: the file may have changed since `settings` were loaded
        self._missing = False  # at the last check there was no file, although settings of one are in use
        self._reported = ""  # why the file can't be used

    def get(self) -> Settings:
        """Return the current settings: the same object as before unless they have changed."""
        now = self._clock()
        if now >= self._next_check:
            self._next_check = now + CHECK_SECONDS
            self._check_file()
        return self._current

    def check_soon(self) -> None:
        """Check the file at the next call of `get`, because this process has changed it."""
        self._next_check = 0.0

    def _check_file(self) -> None:
        stamp = _read_stamp(self._current.file)
        if stamp == self._stamp:
            return
        if not stamp and self._stamp and not self._missing:  # an editor may be about to replace it
            self._missing = True
            return
        self._missing = False
        self._stamp = stamp
        self._use(load_settings(self._current.environment, self._current.file))

    def _use(self, loaded: Settings) -> None:
        new_warnings = [each for each in loaded.warnings if each not in self._loaded.warnings]
        warning = next((each for each in new_warnings if each not in loaded.entry_warnings), "")
        if fault := str(warning or self._find_fault(loaded) or ""):
            if fault != self._reported:
                self._report(f"{loaded.file} was changed, but the old settings stay in use: {fault}")
            self._reported = fault
            return
        before, self._loaded, self._reported = self._loaded, loaded, ""
        for each in new_warnings:
            self._report(f"{loaded.file} was changed: {each}")
        for name in _FIXED_KEYS:
            if name not in self._given and loaded.json_values[name] != before.json_values[name]:
                self._report(f"{name} was changed in {loaded.file}: restart this command to use the new value")
        settings = loaded.override({name: self._current.json_values[name] for name in _FIXED_KEYS})
        if settings != self._current:
            self._current = settings


def _read_stamp(file: Path) -> _Stamp:
    try:
        found = file.stat()
    except OSError:  # a file that exists and can't be read has a stamp too
        return ()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


_process_settings: LiveSettings | None = None


def get_process_settings() -> LiveSettings:
    """Return the live settings of this process, for surfaces that share a runtime. Another environment starts anew."""
    global _process_settings  # noqa: PLW0603, one for each process
    if _process_settings is None or _process_settings.get().environment != os.environ:
        settings = load_settings()
        for warning in settings.warnings:
            _log.warning("%s", warning)
        _process_settings = LiveSettings(settings)
    return _process_settings
