"""`list_images`: what can be seen again, by its `sha256:…`."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import final

from sightline.look.doors import Door
from sightline.model.fence import json_line
from sightline.model.image import Kept
from sightline.model.scene import Json

_MOST = 50
_CHARACTERS = 7_800  # of all that is listed, which leaves room for the words around it


@final
@dataclass(frozen=True, slots=True)
class Listed:
    """Images of the record, the newest first."""

    images: tuple[Kept, ...]
    more: bool = False  # there are older ones

    def as_dict(self) -> dict[str, Json]:
        return {"ok": True, "images": [_entry(each) for each in self.images], "more": self.more}

    def content(self) -> list[Json]:
        return [{"type": "text", "text": json_line(self.as_dict())}]


def list_images(door: Door) -> Listed:
    """The images that may be listed, as many as one result may hold."""
    found = images_of(door, _MOST + 1)
    fitting = _fitting(found[:_MOST])
    return Listed(tuple(fitting), more=len(fitting) < len(found))


def images_of(door: Door, most: int) -> list[Kept]:
    """Those of the folders that its user works in; where no folder is meant, those of the same scope."""
    folders = None if door.here is None else [os.path.realpath(folder) for folder in door.here]
    return [_seen_from(door, each) for each in door.record.images.list_newest(door.reach, folders, most)]


def _seen_from(door: Door, kept: Kept) -> Kept:
    """Without a place at which whoever asks may not look."""
    return kept if kept.path and door.policy.holds(Path(kept.path)) else replace(kept, path="")


def _fitting(found: list[Kept]) -> list[Kept]:
    left = _CHARACTERS
    for index, each in enumerate(found):
        left -= len(json_line(_entry(each))) + 2
        if left < 0:
            return found[:index]
    return found


def _entry(kept: Kept) -> Json:
    sides: dict[str, Json] = {"width": kept.size.width, "height": kept.size.height}
    entry: dict[str, Json] = {"image": f"sha256:{kept.sha256}", "mime": kept.mime, **sides, "bytes": kept.bytes}
    return {**entry, "path": kept.path} if kept.path else entry
