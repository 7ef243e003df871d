"""Commands that a person has typed into a conversation: the newest one, and earlier ones with their answers.

A command is the first words of a text block in a user's message. Whoever answers it here answers in the model's place;
the model itself never gets to know of either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeGuard

from sightline.model.scene import Json

IsCommand = Callable[[str], bool]

_PASSED_OVER = ("system", "developer")  # what a client adds behind the person's words
_RESULTS = ("tool_result", "functionResponse", "function_response")


def newest(items: Json, is_command: IsCommand) -> str | None:
    """The command that this request is, if it is one."""
    for item in reversed(items) if isinstance(items, list) else ():
        if not _is_item(item):
            return None
        if item.get("role") not in _PASSED_OVER:
            return _command(item, is_command)
    return None


def earlier(items: Json, is_command: IsCommand) -> frozenset[int]:
    """The places of all messages that are commands or their answers; a command beside a tool's result stays."""
    if not isinstance(items, list):
        return frozenset()
    cut: set[int] = set()
    answers = False
    for number, item in enumerate(items):
        if not _is_item(item):
            answers = False
        elif item.get("role") == "user":
            answers = _command(item, is_command) is not None and not _holds_results(item)
            if answers:
                cut.add(number)
        elif answers and item.get("role") not in _PASSED_OVER:
            cut.add(number)
    return frozenset(cut)


def _is_item(item: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(item, dict)


def _command(item: Mapping[str, Json], is_command: IsCommand) -> str | None:
    if item.get("role") != "user":
        return None
    return next((text for text in _texts(item) if is_command(text)), None)


def _texts(item: Mapping[str, Json]) -> Iterator[str]:
    content = item.get("content", item.get("parts"))
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


def _holds_results(item: Mapping[str, Json]) -> bool:
    parts: Sequence[Json] = content if isinstance(content := item.get("content", item.get("parts")), list) else ()
    return any(isinstance(part, dict) and (part.get("type") in _RESULTS or part.keys() & {*_RESULTS}) for part in parts)
