"""Every asynchronous test of the server runs on both event loops, as those of the outbound client do."""

from __future__ import annotations

from tests.dial.conftest import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
