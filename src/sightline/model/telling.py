"""What was said at a place of a conversation: whoever comes by there again finds the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sightline.model.facts import NO_FORM, Description, Joint, Member
from sightline.model.geometry import Size
from sightline.model.refusal import Refusal
from sightline.model.scene import Json

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
