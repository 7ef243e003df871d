"""The values that the record keeps: ledger entries, answers of the tool loop, views and descriptions."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from sightline.model.asking import Usage
from sightline.model.facts import NO_FORM, Description, Joint, Member
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.refusal import Refusal
from sightline.model.scene import Json

EntryKind = Literal[
    "vision_proxy.description",
    "vision_proxy.tool_call",
    "vision_proxy.joint_description",
    "vision_proxy.command",
    "vision_proxy.skip",
]


@dataclass(frozen=True, slots=True)
class Entry:
    kind: EntryKind
    images: tuple[str, ...] = ()  # the sha256 of each
    seer: str = ""  # provider/model; empty: nobody was asked
    usage: Usage = Usage()  # noqa: RUF009, a frozen value
    cost_usd: float | None = None  # None: the price is not known
    cache_hit: bool = False
    latency_ms: int | None = None
    about: Mapping[str, Json] = field(default_factory=dict)  # question, reason, crop and the like, whole
    error: str = ""  # the code of what went wrong, never a provider's own words
    at: float = 0.0  # when it was noted; the record's clock says


@dataclass(frozen=True, slots=True)
class Spent:
    """What one seer was asked on one day."""

    day: str  # YYYY-MM-DD, where the user is
    seer: str
    calls: int  # that went out
    usage: Usage
    cost_usd: float | None  # of those whose price is known
    unpriced: int  # calls whose price is not known
    failed: int = 0  # calls without an answer that could be used


@dataclass(frozen=True, slots=True)
class Answered:
    key: str  # by which it is looked for
    visible: str  # all that the client saw, hashed
    before: str  # the name of the conversation that it answered; empty: the key says enough
    legs: Sequence[Json]
    results: Sequence[Json] | None = ()  # of the calls in its last leg; None: they are still being answered
    made: float = 0.0  # when


@dataclass(frozen=True, slots=True)
class Perception:
    result: str  # the JSON object that the caller got, as `json.dumps` writes it with sorted keys
    image: str  # sha256 of the whole image that was looked at
    pixels: Image  # what was shown of it
    words: str = ""  # that stood beside them

    @property
    def id(self) -> str:
        return perception_id(self.result)


def perception_id(result: str) -> str:
    """The result names its perception: whoever has kept the one finds the other."""
    return hashlib.sha256(result.encode("utf-8", "surrogatepass")).hexdigest()


Said = Description | Joint | Refusal


@dataclass(frozen=True, slots=True)
class Telling:
    """A place is a turn, by its name, and the images there, by their sorted sha256."""

    turn: str
    images: tuple[str, ...]
    said: Mapping[str, Json] = field(default_factory=dict)
    failed: bool = False  # nobody could say anything: better words may stand there later
    during: str = ""  # the turn in which somebody was asked for it; empty: nobody was


def written(said: Said) -> dict[str, Json]:
    match said:
        case Refusal():
            return {"code": said.code, "what": said.what, "remedy": said.remedy}
        case Description():
            return _words(said, [said.image])
        case Joint():
            return _words(said, said.images)


def _words(said: Description | Joint, images: Sequence[Member]) -> dict[str, Json]:
    """Coordinates have rows of their own only where there are any: most words are without."""
    pointed: dict[str, Json] = {} if said.form == NO_FORM else {"form": said.form, "boxes": said.boxes}
    return {"text": said.text, "seer": said.seer, "images": [_row(each) for each in images], **pointed}


def _row(one: Member) -> Json:
    sent: dict[str, Json] = {"sent": [one.sent.width, one.sent.height]} if one.sent else {}
    return {"sha256": one.sha256, "width": one.size.width, "height": one.size.height, "filename": one.filename, **sent}


def read(telling: Telling) -> Said:
    """What was written, as it was said."""
    match telling.said:
        case {"code": code, "what": str(what), "remedy": str(remedy)}:
            return Refusal(code, what, remedy)  # type: ignore[arg-type] # as it was written
        case {"text": str(text), "seer": str(seer), "images": list(rows)}:
            members = tuple(_member(row) for row in rows if isinstance(row, dict))
            form, boxes = str(telling.said.get("form", NO_FORM)), str(telling.said.get("boxes", ""))
            if len(telling.images) > 1:
                return Joint(members, text, seer, form, boxes)
            (one,) = members
            return Description(one.sha256, one.size, text, seer, form, one.sent, boxes)
    raise ValueError(telling)


def _member(row: Mapping[str, Json]) -> Member:
    sent = row.get("sent")
    seen = _size(*sent) if isinstance(sent, list) else None
    return Member(str(row["sha256"]), _size(row["width"], row["height"]), str(row["filename"]), seen)


def _size(width: Json, height: Json) -> Size:
    assert isinstance(width, int)
    assert isinstance(height, int)
    return Size(width, height)
