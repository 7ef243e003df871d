"""What a look with a question answers: words in a fence, places in pixels of the original; or a no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sightline.grounding.parse import Found, parse
from sightline.grounding.place import Placed, boxes_block, shown, to_original
from sightline.model.asking import Spot, Usage
from sightline.model.fence import fenced, one_line
from sightline.model.geometry import Box, Size
from sightline.model.refusal import Code, Refusal
from sightline.model.scene import Json
from sightline.passes.words import together


@dataclass(frozen=True, slots=True)
class Seen:
    """One image of a look: which part of it was shown, and in what size."""

    sha256: str
    whole: Size
    sent: Size
    box: Box | None = None
    filename: str = ""

    @property
    def region(self) -> Size:
        return self.box.size if self.box else self.whole

    @property
    def id(self) -> str:
        return f"sha256:{self.sha256}" + (f"#crop:{self.box}" if self.box else "")


@dataclass(frozen=True, slots=True)
class Analysis:
    images: tuple[Seen, ...]
    question: str
    seer: str
    text: str
    fence: str  # as an agent reads it, with the boxes behind it
    boxes: tuple[Placed, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009, a frozen value
    cost_usd: float | None = None  # None: the price is not known
    cached: bool = False

    def as_dict(self) -> dict[str, Json]:
        usage: dict[str, Json] = {each: getattr(self.usage, each) for each in ("input", "output", "cached")}
        return {
            "images": [each.id for each in self.images],
            "question": self.question,
            "seer": self.seer,
            "text": self.text,
            "fence": self.fence,
            "boxes": [_box(each) for each in self.boxes if each.at is not None],
            "usage": usage,
            "cost_usd": self.cost_usd,
            "cached": self.cached,
        }

    def content(self) -> list[Json]:
        return [{"type": "text", "text": self.fence}]


@dataclass(frozen=True, slots=True)
class Failed:
    """A tool error: which no it is, and what can be done about it."""

    reason: Code
    message: str

    def as_dict(self) -> dict[str, Json]:
        return {"ok": False, "reason": self.reason, "message": self.message}

    def content(self) -> list[Json]:
        return [{"type": "text", "text": f"Error ({self.reason}): {self.message}"}]

    @staticmethod
    def of(refusal: Refusal) -> Failed:
        return Failed(refusal.code, str(refusal))


def placed(text: str, form: str, images: Sequence[Seen]) -> tuple[Placed, ...]:
    """All that an answer points at, in pixels of the originals."""
    found = parse(text, form, [each.sent for each in images])
    views = [shown(each.whole, each.sent, each.box) for each in images]
    lost = (Placed(None, each.label, each.values, None, each.flag) for each in found if each.image is None)
    return (*(to_original(each, views[each.image]) for each in found if each.image is not None), *lost)


def measured(spots: Sequence[Spot], images: Sequence[Seen]) -> tuple[Placed, ...]:
    """All that a seer has told beside its words, in pixels of the originals."""
    views = [shown(each.whole, each.sent, each.box) for each in images]
    found = []
    for spot in spots:
        corners = (float(spot.box.x), float(spot.box.y), float(spot.box.right), float(spot.box.bottom))
        found.append(to_original(Found(spot.image, spot.label, corners, corners), views[spot.image]))
    return tuple(found)


def fence(images: Sequence[Seen], text: str, form: str, seer: str, *, generic: bool) -> str:
    """The fence of one image, or of several."""
    sent = ",".join(str(each.sent) for each in images) if any(each.sent != each.region for each in images) else ""
    last = {"grounding_format": form, "seer": seer, "sent": sent}
    if len(images) > 1:
        return together([_dimensions(each) for each in images], last, text)
    (one,) = images
    attributes = {
        "image": one.id,
        "width": str(one.region.width),
        "height": str(one.region.height),
        "crop_origin": f"{one.box.x},{one.box.y}" if one.box else "",
        "filename": one.filename,
    }
    return fenced("description" if generic and not one.box else "analysis", {**attributes, **last}, text)


def blocks(images: Sequence[Seen], found: Sequence[Placed], room: int) -> list[str]:
    """The boxes of each image; those of none stand with the first. So many as there is room for."""
    while len("\n".join(whole := _blocks(images, found))) > room and found:
        found = found[: len(found) * 3 // 4]
    return whole


def _blocks(images: Sequence[Seen], found: Sequence[Placed]) -> list[str]:
    return [
        boxes_block(f"sha256:{each.sha256}", each.whole, own)
        for index, each in enumerate(images)
        if (own := [one for one in found if one.image == index or (one.image is None and index == 0)])
    ]


def _dimensions(seen: Seen) -> Mapping[str, Json]:
    size: dict[str, Json] = {"image": seen.id, "width": seen.region.width, "height": seen.region.height}
    return {**size, "filename": one_line(seen.filename)} if seen.filename else size


def _box(one: Placed) -> Json:
    assert one.at is not None
    box: list[Json] = [*one.at] if len(one.at) == 4 else [*one.at, *one.at]
    return {"image": one.image, "label": one_line(one.label), "box": box}
