"""Adapters for agent frameworks: each prepares the messages of its framework on their way to the model.

An adapter is a module with the name of its framework. It only translates: what becomes of an image is decided by
`sightline.prepare`, and tools are those of `sightline.tools`. A new one is a module and an entry in `TESTED_VERSIONS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata

# The lowest and the newest version of each framework, by the name of its distribution, that the tests run. Some older
# ones have the hook, too, but do not run themselves with what pip installs beside them today.
TESTED_VERSIONS = {
    "google-adk": ("2.8.0", "2.13.0"),
    "langchain": ("1.0.0", "1.4.7"),
    "litellm": ("1.100.0", "1.106.2"),
    "llm": ("0.34", "0.36"),
    "openai-agents": ("0.20.0", "0.24.0"),
    "pydantic-ai-slim": ("2.60.0", "2.66.0"),
    "smolagents": ("1.24.0", "1.26.0"),
}


@contextmanager
def require_hook(distribution: str) -> Iterator[Callable[[object, str], None]]:
    """Turn the failure to import a framework's hook into one clear ImportError.

    The context is a function that fails in the same way if an object doesn't have the hook: it would never be called.
    """
    try:
        yield _require_attribute
    except ImportError as error:
        lowest, newest = TESTED_VERSIONS[distribution]
        try:
            found = f"{distribution} {metadata.version(distribution)} doesn't have what this adapter uses"
        except metadata.PackageNotFoundError:
            found = f"{distribution} is not installed"
        tested = newest if lowest == newest else f"{lowest} to {newest}"
        raise ImportError(
            f"{found} ({error}); it was tested with {tested}: pip install '{distribution}=={newest}'"
        ) from error


def _require_attribute(holder: object, name: str) -> None:
    if not hasattr(holder, name):
        raise ImportError(f"{holder!r} has no {name}")
