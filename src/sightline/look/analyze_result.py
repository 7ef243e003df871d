"""What a look with a question answers: words in a fence, places in pixels of the original; or a no."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from sightline.grounding.place import Placed
from sightline.model.asking import Usage
from sightline.model.facts import Member
from sightline.model.fence import one_line
from sightline.model.refusal import Code, Refusal
from sightline.model.scene import Json


@final
@dataclass(frozen=True, slots=True)
class Analysis:
    images: tuple[Member, ...]
    question: str
    seer: str
    text: str
    fence: str  # as an agent reads it, with the boxes behind it
    boxes: tuple[Placed, ...] = ()
    usage: Usage = Usage()  # noqa: RUF009, a frozen value
    cost_usd: float | None = None  # None: the price is not known
    cached: bool = False

    def as_dict(self) -> dict[str, Json]:
        lost = sum(each.at is None for each in self.boxes)
        usage: dict[str, Json] = {each: getattr(self.usage, each) for each in ("input", "output", "cached")}
        return {
            "ok": True,
            "images": [each.id for each in self.images],
            "question": self.question,
            "seer": self.seer,
            "text": self.text,
            "fence": self.fence,
            "boxes": [_box(each) for each in self.boxes if each.at is not None],
            **({"misfits": lost} if lost else {}),  # places that the answer speaks of, and nobody can find
            "usage": usage,
            "cost_usd": self.cost_usd,
            "cached": self.cached,
        }

    def content(self) -> list[Json]:
        return [{"type": "text", "text": self.fence}]


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """A tool error: which no it is, and what can be done about it. It is false, as every no is."""

    reason: Code
    message: str

    def __bool__(self) -> Literal[False]:
        return False

    def __str__(self) -> str:
        return self.message

    def as_dict(self) -> dict[str, Json]:
        return {"ok": False, "reason": self.reason, "message": self.message}

    def content(self) -> list[Json]:
        return [{"type": "text", "text": f"Error ({self.reason}): {self.message}"}]

    @staticmethod
    def of(refusal: Refusal) -> Failed:
        return Failed(refusal.code, str(refusal))


def _box(one: Placed) -> Json:
    assert one.at is not None
    box: list[Json] = [*one.at] if len(one.at) == 4 else [*one.at, *one.at]
    doubt: dict[str, Json] = {"doubtful": True} if one.flag == "doubtful" else {}
    return {"image": one.image, "label": one_line(one.label), "box": box, **doubt}
