"""What an upstream's rejection of an image teaches about its model, and which images it names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from sightline.model.profile import Lesson, Limits
from sightline.model.scene import Path
from sightline.profiles.errors import sentences
from sightline.profiles.preset import MIB
from sightline.profiles.wordings import WHY, WORDINGS, Kind, Wording


@dataclass(frozen=True, slots=True)
class Rejection:
    kind: Kind
    lesson: Lesson
    places: tuple[Path, ...] = ()  # of the image blocks that the upstream named


DENIED = frozenset({401, 402, 403, 408, 429})  # about the caller or the moment, whatever their words
# Sentences that may hold any words at all: routing by policy, and schemas with the tools' own descriptions.
_ORDINARY = re.compile(r"data policy|^tools?[.\[]|input_schema|invalid (?:json )?schema", re.IGNORECASE)
_TOKENS = re.compile(r"tokens|\bTPM\b|rate limit|context (?:length|window)", re.IGNORECASE)


def lesson(status: int, text: str) -> Rejection | None:
    """What an error answer says about images, or None where it is about something else."""
    if status in DENIED:
        return None
    said = [sentence for sentence in sentences(text) if not _ORDINARY.search(sentence)]
    whole = "\n".join(said)
    found = next(((each, match) for each in WORDINGS if (match := each.pattern.search(whole))), None)
    kind: Kind = found[0].kind if found else "request"
    if kind == "request" and (_TOKENS.search(whole) or not (found or status == 413)):
        return None
    limits = _limits(*found) if found else Limits()
    return Rejection(kind, Lesson(blind=kind == "blind" or None, limits=limits, why=WHY[kind]), _places(said))


_NUMBERS = frozenset(each.name for each in fields(Limits)) - {"formats"}
_UNITS = {"K": 1024, "M": MIB}


def _limits(wording: Wording, match: re.Match[str]) -> Limits:
    """The limits of the wording, with those that this sentence names."""
    groups = {name: value for name, value in match.groupdict().items() if value}
    named: dict[str, Any] = {name: int(value.replace(",", "")) for name, value in groups.items() if name in _NUMBERS}
    if "size" in groups:
        whose = "encoded_bytes" if wording.kind == "bytes" else "request_bytes"
        named[whose] = int(float(groups["size"]) * _UNITS[groups["unit"].upper()])
    return replace(wording.limits, formats=_formats(wording.limits.formats, groups), **named)


def _formats(known: tuple[str, ...], groups: Mapping[str, str]) -> tuple[str, ...]:
    """The formats that are left: those that were listed, or all but the refused one."""
    listed = groups.get("listed", "").lower().replace("jpg", "jpeg")
    taken = tuple(mime for mime in known if mime.partition("/")[2] in listed)
    return taken or tuple(mime for mime in known if mime != groups.get("refused", "").lower())


_PLACE = re.compile(r"\b(?:messages|input|contents)(?:[.\[\]]+\w{1,40})+")
_STEP = re.compile(r"[A-Za-z_]\w*|\d{1,6}")
_LISTS = frozenset({"messages", "input", "contents", "content", "parts", "output"})


def _places(said: Iterable[str]) -> tuple[Path, ...]:
    """The blocks that are named like `messages.3.content.0.tool_result.content.1.image`, without types."""
    found = (_path(match[0]) for sentence in said for match in _PLACE.finditer(sentence))
    return tuple(dict.fromkeys(path for path in found if len(path) >= 4))  # a message alone names no block


def _path(place: str) -> Path:
    steps = _STEP.findall(place)
    path: list[str | int] = []
    for step, following in zip(steps, [*steps[1:], ""], strict=True):
        if step.isdigit():
            path.append(int(step))
        elif step in _LISTS and following.isdigit():
            path.append(step)
    return tuple(path)
