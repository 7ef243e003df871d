"""The record, as verbs that only look at it or note a word need it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sightline.model.ports import PolicyStore, Store
from sightline.model.profile import Lesson, Limits, ToolImages
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings import Settings

PLACED: Mapping[ToolImages, str] = {
    "native": "stay in their results",
    "hoist": "are moved out of their results",
    "bridge": "are moved out of their results behind a word of the assistant",
}


@contextmanager
def opened(settings: Settings) -> Iterator[Store]:
    from sightline.store import open_record  # SQLite loads when it is used

    record = open_record(settings.folder, kind=settings.record, check=False)
    try:
        yield record
    finally:
        record.close()


@contextmanager
def kept(settings: Settings) -> Iterator[Store | Refusal]:
    """The record on the disk itself, for who promises that something is done to it."""
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
    """What the record takes on the disk."""
    return sum(path.stat().st_size for path in settings.folder.rglob("*") if path.is_file())


def learnt(policy: PolicyStore) -> list[dict[str, Json]]:
    return [
        {"upstream": upstream, "model": model, "learnt": words(lesson), "why": lesson.why}
        for upstream, model, lesson in policy.list_lessons()
    ]


def words(lesson: Lesson) -> str:
    """A lesson in a few words: sight, each limit that is stricter than none, and where images of tools go."""
    none = Limits()
    limits = [
        f"{name.replace('_', ' ')} {value}"
        for name in Limits.__dataclass_fields__
        if (value := getattr(lesson.limits, name)) != getattr(none, name)
    ]
    sight = {True: ["blind"], False: ["sees"], None: []}[lesson.blind]
    tools = [f"images of tools {PLACED[taken]} ({wire})" for wire, taken in lesson.tool_images.items()]
    return ", ".join([*sight, *limits, *tools]) or "nothing"
