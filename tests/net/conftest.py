"""Like the other client, this one is tried on both event loops."""

from __future__ import annotations

from tests.dial.conftest import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
