"""Waiting for another process, with a bound."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest


def try_again(seconds: float = 60.0) -> Iterator[None]:
    """Yield until the loop is left, and fail the test after so many seconds: it must not hang."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield
    pytest.fail(f"nothing changed in {seconds:.0f} seconds")
