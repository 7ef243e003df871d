"""One thread at a time loads what is heavy.

Two that load modules of the same packages, each from another end, see each other's half, or wait for each other.
"""

from __future__ import annotations

import threading

LOADING = threading.RLock()
