"""Tests of the inspector: its guards, its API and what it exports. Browsers are in `tests/e2e/test_inspector.py`."""
