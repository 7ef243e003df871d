"""Reads a conversation as JSON from stdin, holds it by a framework, and writes what came of it as JSON to stdout."""

import json
import runpy
import sys
from collections.abc import Callable
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
    conversation = start(given)
    answers = []
    for task in given["tasks"]:
        image = Path(task["image"]).read_bytes() if task.get("image") else None
        answers.append(conversation.say(task["text"], task["model"], image))
    json.dump({"answers": answers, "kept": conversation.count_images()}, sys.stdout)
