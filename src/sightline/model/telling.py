"""What was said at a place of a conversation: whoever comes by there again finds the same words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sightline.model.facts import Description, Joint, Member
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
            return {"text": said.text, "seer": said.seer, "images": [_row(said.sha256, said.size)]}
        case Joint():
            images: list[Json] = [_row(each.sha256, each.size, each.filename) for each in said.images]
            return {"text": said.text, "seer": said.seer, "images": images}


def _row(sha256: str, size: Size, filename: str = "") -> Json:
    return {"sha256": sha256, "width": size.width, "height": size.height, "filename": filename}


def read(telling: Telling) -> Said:
    """What was written, as it was said."""
    match telling.said:
        case {"code": code, "what": str(what), "remedy": str(remedy)}:
            return Refusal(code, what, remedy)  # type: ignore[arg-type] # as it was written
        case {"text": str(text), "seer": str(seer), "images": list(rows)}:
            members = tuple(_member(row) for row in rows if isinstance(row, dict))
            if len(telling.images) > 1:
                return Joint(members, text, seer)
            return Description(members[0].sha256, members[0].size, text, seer)
    raise ValueError(telling)


def _member(row: Mapping[str, Json]) -> Member:
    width, height = row["width"], row["height"]
    assert isinstance(width, int)
    assert isinstance(height, int)
    return Member(str(row["sha256"]), Size(width, height), str(row["filename"]))
