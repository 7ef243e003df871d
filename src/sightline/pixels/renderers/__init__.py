"""The renderers, which make pictures of files, and the workers in which they run: isolated, limited, and kept warm.

`renderer.py` says how to write a renderer; `choose_renderer.py` lists them. Neither the list nor a renderer is imported
before the first file: that is an eighth of what a proxy imports.
"""

from __future__ import annotations

from sightline.pixels.workers import WorkerLimits, WorkerPool

_MODULE = "sightline.pixels.renderers.choose_renderer"
_TASKS = {"render": f"{_MODULE}:render_task", "text": f"{_MODULE}:text_task", "check": f"{_MODULE}:check_task"}
_ISOLATE = "sightline.pixels.renderers.isolation:isolate_worker"
LIMITS = WorkerLimits(seconds=9.0, memory=1024 * 1024 * 1024, max_wall_seconds=20.0)


def start_renderers(limits: WorkerLimits = LIMITS) -> WorkerPool:
    """Return the pool of rendering processes; each starts with its first file."""
    return WorkerPool(_TASKS, limits=limits, prepare=_ISOLATE, subject="file")
