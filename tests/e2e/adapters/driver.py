"""Reads conversations as JSON from stdin, holds them by a framework, and writes what came of them as JSON to stdout.

All conversations of a framework are held in one process, because importing a framework takes seconds.
"""

import importlib
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, Protocol

EXAMPLES = Path(__file__).parents[3] / "examples"


class Conversation(Protocol):
    """A conversation of one agent. `say` may be called with another model each time."""

    def say(self, task: str, model: str, image: bytes | None) -> str: ...

    def count_images(self) -> int:
        """Return how many images the framework's own history holds."""
        ...


def load_example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / name))


def main(start: Callable[[dict[str, Any]], Conversation]) -> None:
    given = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):  # some frameworks print
        outcomes = [hold(start, each) for each in given["conversations"]]
        error = import_without(**given["without"])
    json.dump({"outcomes": outcomes, "error": error}, sys.stdout)


def hold(start: Callable[[dict[str, Any]], Conversation], given: dict[str, Any]) -> dict[str, Any]:
    """Return the answers, and how many images the framework's history holds at the end; or what went wrong."""
    before = dict(os.environ)
    os.environ |= given["env"]
    try:
        if given["kind"] == "example":
            return {"answers": [run_example(given["example"], given["tasks"][0]["text"])]}
        conversation = start(given)
        answers = []
        for task in given["tasks"]:
            image = Path(task["image"]).read_bytes() if task.get("image") else None
            answers.append(conversation.say(task["text"], task["model"], image))
        return {"answers": answers, "kept": conversation.count_images()}
    except Exception:  # noqa: BLE001, the test shows it
        return {"error": traceback.format_exc()}
    finally:
        os.environ.clear()
        os.environ |= before


def run_example(name: str, task: str) -> str:
    """Return what an example prints that is run as its page says."""
    sys.argv = [name, task]
    with redirect_stdout(StringIO()) as printed:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return printed.getvalue()


def import_without(adapter: str, module: str, name: str) -> str:
    """Return the error of importing an adapter if the framework doesn't have what it uses, as an old version hasn't."""
    holder: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for each in path:
        holder = getattr(holder, each)
    delattr(holder, last)
    sys.modules.pop(adapter, None)
    try:
        importlib.import_module(adapter)
    except ImportError as error:
        return str(error)
    return ""
