"""The library's front door: look at a source, read it, edit it; each a plain function that never raises.

`view(path)` waits; `await view.aio(path)` does not hold up an event loop. Both are the same function.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from sightline.look import offered, peers, text, views
from sightline.look.both import Both
from sightline.look.crops import CropLike
from sightline.look.doors import Door, door
from sightline.look.peers import Sending
from sightline.look.results import FAULT, Edited, Refused, Result, Text, View, promised
from sightline.model.scene import Json

__all__ = [
    "Door",
    "Edited",
    "Refused",
    "Result",
    "Sending",
    "Text",
    "View",
    "call",
    "door",
    "edit_file",
    "fit_for",
    "may_send",
    "read_file",
    "recall",
    "tools",
    "view",
]


@Both
@promised(Refused.of(FAULT))
def view(
    path: str | PurePath,
    *,
    crop: CropLike = None,
    page: int | None = None,
    at: float | None = None,
    through: Door | None = None,
) -> View | Refused:
    """See the image at a path, or one of the record by its `sha256:…`."""
    return views.view(through or door(), _text(path), crop=crop, page=page, at=at)


@Both
@promised(Refused.of(FAULT))
def recall(result: dict[str, Json], *, through: Door | None = None) -> View | Refused:
    """A view that was given before, by its result alone."""
    return views.recall(through or door(), result)


@Both
@promised(Refused.of(FAULT))
def read_file(
    path: str | PurePath,
    *,
    first: int = 1,
    lines: int = text.MOST_LINES,
    character: int = 1,
    through: Door | None = None,
) -> Text | Refused:
    """Read a text file, and get the token that an edit of it needs."""
    return text.read_file(through or door(), _text(path), first=first, lines=lines, character=character)


@Both
@promised(Refused.of(FAULT))
def edit_file(path: str | PurePath, old: str, new: str, token: str, *, through: Door | None = None) -> Edited | Refused:
    """Replace a text that stands once in a file that was read as it is now."""
    return text.edit_file(through or door(), _text(path), old, new, token)


@Both
@promised(Refused.of(FAULT))
def call(name: str, arguments: Mapping[str, Any], *, through: Door | None = None) -> Result:
    """Call a tool by its name, as a model does."""
    return offered.call(through or door(), name, arguments)


def tools(*, through: Door | None = None) -> list[dict[str, Json]]:
    """The tools that are offered, with their JSON schemas."""
    return offered.tools(through or door())


def _text(path: object) -> object:
    """What a model gives is text, what a program gives may be a path."""
    return str(path) if isinstance(path, PurePath) else path


fit_for = Both(promised(FAULT)(peers.fit_for))
may_send = promised(Sending(ok=False, warning=str(FAULT)))(peers.may_send)
