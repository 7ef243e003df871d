"""Lessons: what upstreams have said of their models, a row for each thing, each with days of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from sqlite3 import Connection
from typing import cast

from sightline.model.profile import Lesson, Limits, ToolImages, WireName
from sightline.model.scene import Json
from sightline.store.database import Database, Row

_TOOLS = "tools "


def keep(connection: Connection, upstream: str, model: str, lesson: Lesson, expires: float, now: float) -> None:
    """What was learnt is kept apart, so that one thing does not prolong another's days; the last word counts."""
    known = connection.execute(
        "SELECT said FROM lessons WHERE (upstream, model, about) = (?, ?, 'limits') AND expires > ?",
        (upstream, model, now),
    ).fetchone()
    limits = _limits(known[0]).tightened(lesson.limits) if known else lesson.limits
    connection.executemany(
        "INSERT OR REPLACE INTO lessons VALUES ('', ?, ?, ?, ?, ?, ?)",
        [(upstream, model, about, json.dumps(said), lesson.why, expires) for about, said in _said(lesson, limits)],
    )


def read(database: Database, upstream: str, model: str, now: float) -> Lesson | None:
    rows = database.rows(
        "SELECT about, said, why FROM lessons WHERE (upstream, model) = (?, ?) AND expires > ?"
        " ORDER BY about = 'blind', about",
        *(upstream, model, now),
    )
    return _merged(rows) if rows else None


def known(database: Database, now: float) -> Sequence[tuple[str, str]]:
    """The upstreams and models of which there is any."""
    query = "SELECT DISTINCT upstream, model FROM lessons WHERE expires > ? ORDER BY upstream, model"
    return tuple((upstream, model) for upstream, model in database.rows(query, now))


def forget(connection: Connection, upstream: str, model: str) -> bool:
    """Whether there was anything to forget."""
    gone = connection.execute("DELETE FROM lessons WHERE (upstream, model) = (?, ?)", (upstream, model))
    return gone.rowcount > 0


def _said(lesson: Lesson, limits: Limits) -> Iterator[tuple[str, Json]]:
    """What a lesson says, thing by thing; `limits` are its own with those that were known."""
    if lesson.blind is not None:
        yield "blind", lesson.blind
    if lesson.limits != Limits():
        yield "limits", asdict(limits)
    for wire, taken in lesson.tool_images.items():
        yield f"{_TOOLS}{wire}", taken


def _merged(rows: Sequence[Row]) -> Lesson:
    """What is known of a model; the row about blindness comes last, and its reason stands."""
    said = {about: text for about, text, _ in rows}
    tools = {about.removeprefix(_TOOLS): json.loads(text) for about, text in said.items() if about.startswith(_TOOLS)}
    return Lesson(
        blind=json.loads(said["blind"]) if "blind" in said else None,
        limits=_limits(said["limits"]) if "limits" in said else Limits(),
        why=rows[-1][2],
        tool_images=cast("dict[WireName, ToolImages]", tools),
    )


def _limits(text: str) -> Limits:
    """As they were written, perhaps by a version that knew other limits."""
    known = {field.name for field in fields(Limits)}
    read = {name: value for name, value in json.loads(text).items() if name in known}
    return Limits(**{**read, "formats": tuple(read["formats"])})
