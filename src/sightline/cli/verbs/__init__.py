"""The verbs, one file each; here is how they open the record, and how they describe what it has learnt."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sightline.model.refusal import Refusal

if TYPE_CHECKING:  # some verbs must start quickly
    from sightline.model.ports import PolicyStore, Store
    from sightline.model.profile import Lesson, ToolImages
    from sightline.model.scene import Json
    from sightline.settings import Settings

_TOOL_IMAGES: Mapping[ToolImages, str] = {
    "native": "stay in their results",
    "hoist": "are moved out of their results",
    "bridge": "are moved out of their results behind a word of the assistant",
}


@contextmanager
def quiet(name: str, *, when: bool = True) -> Iterator[None]:
    """Log no warnings of one package meanwhile."""
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(logging.ERROR if when else before)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def opened(settings: Settings) -> Iterator[Store]:
    """Open the record to look at it or to note something."""
    from sightline.store import open_record  # SQLite loads when it is used

    record = open_record(settings.folder, kind=settings.record, check=False)
    try:
        yield record
    finally:
        record.close()


@contextmanager
def kept(settings: Settings) -> Iterator[Store | Refusal]:
    """Open the record on the disk, or return why that is not possible: for verbs that must change it."""
    from sightline.store import open_on_disk

    if settings.record == "memory" and not settings.folder.is_dir():
        yield Refusal("unavailable", "the record is in memory", "what it holds goes with the process that holds it")
        return
    record = open_on_disk(settings.folder)
    try:
        yield record
    finally:
        if not isinstance(record, Refusal):
            record.close()


def bytes_in(settings: Settings) -> int:
    """Return the size of the record on the disk."""
    return sum(path.stat().st_size for path in settings.folder.rglob("*") if path.is_file())


def learnt(policy: PolicyStore) -> list[dict[str, Json]]:
    return [
        {"upstream": upstream, "model": model, "learnt": describe_lesson(lesson), "why": lesson.why}
        for upstream, model, lesson in policy.list_lessons()
    ]


def describe_lesson(lesson: Lesson) -> str:
    """Describe a lesson in a few words: sight, each limit that is stricter than none, and where images of tools go."""
    from sightline.model.profile import Limits

    none = Limits()
    limits = [
        f"{name.replace('_', ' ')} {value}"
        for name in Limits.__dataclass_fields__
        if (value := getattr(lesson.limits, name)) != getattr(none, name)
    ]
    sight = {True: ["blind"], False: ["sees"], None: []}[lesson.blind]
    tools = [f"images of tools {_TOOL_IMAGES[taken]} ({wire})" for wire, taken in lesson.tool_images.items()]
    return ", ".join([*sight, *limits, *tools]) or "nothing"
