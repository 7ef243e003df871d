"""The relay between an ACP editor and its agent."""

import threading

IMPORT_LOCK = threading.RLock()
"""Held while heavy modules are imported: threads that import the same modules in another order could deadlock."""
