"""The command line: the composition root, and one file per verb.

It also says how often Python collects garbage: seldom while a command starts, more often once it serves.
"""

from __future__ import annotations

import gc

_STARTING = 100_000  # new objects before garbage is collected: importing makes many, and next to no garbage
_SERVING = (5_000, 20, 20)  # hardly anything in a server is a reference cycle


def set_starting_threshold() -> None:
    """Collect hardly anything: by default it takes up to a fifth of the start."""
    gc.set_threshold(_STARTING)


def set_serving_thresholds() -> None:
    """Collect what a process leaves behind that goes on for long."""
    gc.set_threshold(*_SERVING)
