"""The verbs, one file each. This module opens the record for them, and describes what it has learnt."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sightline.model.refusal import Refusal

if TYPE_CHECKING:  # some verbs must start quickly
    from sightline.model.ports import PolicyStore, Store
    from sightline.model.profile import Lesson, ToolImagePlacement
    from sightline.model.scene import Json
    from sightline.settings import Settings
    from sightline.store.sql_store import SqlStore

_TOOL_IMAGES: Mapping[ToolImagePlacement, str] = {
    "native": "stay in their results",
    "hoist": "are moved out of their results",
    "bridge": "are moved out of their results, after a message of the assistant",
    "as_sent": "stay as the client sends them",
}


@contextmanager
def silence_warnings(name: str, *, when: bool = True) -> Iterator[None]:
    """Log no warnings of one package inside the block."""
    log = logging.getLogger(name)
    before = log.level
    log.setLevel(logging.ERROR if when else before)
    try:
        yield
    finally:
        log.setLevel(before)


@contextmanager
def open_record(settings: Settings) -> Iterator[Store]:
    """Open the record to read it, or to note something."""
    from sightline import store  # SQLite loads when it is used

    if address := settings.shared_address:
        opened = store.open_server_record(address)
        record = store.open_stand_in(opened) if isinstance(opened, Refusal) else opened
    else:
        record = store.open_record(settings.record_folder, kind=settings.record, check=False)
    try:
        yield record
    finally:
        record.close()


@contextmanager
def open_disk_record(settings: Settings) -> Iterator[SqlStore | Refusal]:
    """Open the record on disk or on servers for a verb that must change it, or yield why that is not possible."""
    from sightline.store import open_record_or_refuse, open_server_record

    address = settings.shared_address
    if address is None and settings.record == "memory" and not settings.record_folder.is_dir():
        yield Refusal("unavailable", "the record is in memory", "it is deleted when its process ends")
        return
    record = open_server_record(address) if address else open_record_or_refuse(settings.record_folder)
    try:
        yield record
    finally:
        if not isinstance(record, Refusal):
            record.close()


def measure_record(settings: Settings) -> int:
    """Return the size of the record on disk."""
    return sum(path.stat().st_size for path in settings.record_folder.rglob("*") if path.is_file())


def list_lessons(policy: PolicyStore) -> list[dict[str, Json]]:
    """Return what rejections and trials taught; `sightline models` also has what upstreams publish."""
    return [
        {"upstream": upstream, "model": model, "learnt": describe_lesson(lesson), "why": lesson.why}
        for upstream, model, lesson in policy.list_lessons()
        if lesson.is_learnt
    ]


def describe_lesson(lesson: Lesson) -> str:
    """Describe a lesson in a few words: sight, limits, where images of tools go, our own tools, and PDFs."""
    from sightline.model.profile import ImageLimits

    none = ImageLimits()
    limits = [
        f"{name.replace('_', ' ')} {value}"
        for name in ImageLimits.__dataclass_fields__
        if (value := getattr(lesson.limits, name)) != getattr(none, name)
    ]
    sight = {True: ["blind"], False: ["sees"], None: []}[lesson.blind]
    tools = [f"images of tools {_TOOL_IMAGES[taken]} ({wire})" for wire, taken in lesson.tool_images.items()]
    own = {True: ["takes Sightline's tools"], False: ["rejects Sightline's tools"], None: []}[lesson.takes_own_tools]
    pdf = ["takes PDFs"] if lesson.takes_pdf else []
    return ", ".join([*sight, *limits, *tools, *own, *pdf]) or "nothing"
