"""How a long task says how far it is."""

from __future__ import annotations

from collections.abc import Callable

ReportProgress = Callable[[str, int, int], None]
"""Called with what is being done, how many steps are done, and how many there are."""


def ignore_progress(what: str, done: int, total: int) -> None:
    """Report nothing."""
