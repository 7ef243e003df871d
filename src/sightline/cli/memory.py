"""The record, as verbs that only look at it or note a word need it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sightline.model.ports import Record
from sightline.model.profile import Lesson, Limits
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings import Settings


@contextmanager
def opened(settings: Settings) -> Iterator[Record]:
    from sightline.store import open_record  # SQLite loads when it is used

    record = open_record(settings.folder, kind=settings.record)
    try:
        yield record
    finally:
        record.close()


@contextmanager
def kept(settings: Settings) -> Iterator[Record | Refusal]:
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


def learnt(record: Record) -> list[dict[str, Json]]:
    return [
        {"upstream": upstream, "model": model, "learnt": _words(lesson), "why": lesson.why}
        for upstream, model, lesson in record.lessons()
    ]


def _words(lesson: Lesson) -> str:
    """A lesson in a few words: blindness, and each limit that is stricter than none."""
    none = Limits()
    limits = [
        f"{name.replace('_', ' ')} {value}"
        for name in Limits.__dataclass_fields__
        if (value := getattr(lesson.limits, name)) != getattr(none, name)
    ]
    return ", ".join([*(["blind"] if lesson.blind else []), *limits]) or "nothing"
