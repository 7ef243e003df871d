"""Sights, rules and facts for the tests of passes, and a driver that answers from a table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sightline.model.facts import (
    Check,
    CompareFile,
    ConversationHistory,
    DescribeImage,
    DescribeTogether,
    Description,
    Fact,
    Facts,
    Fetch,
    Keep,
    KeptImage,
    Need,
    Needs,
    Probe,
    RecallHistory,
    Refit,
    ReopenFile,
    Rules,
)
from sightline.model.geometry import PixelMap, Size
from sightline.model.image import FitPart, Image, ImageInfo
from sightline.model.profile import ImageLimits, Profile
from sightline.model.refusal import Refusal
from sightline.model.scene import Fate, InlineSource, Scene, Sight, Source, ToolCall
from sightline.passes import Pass, decide

PNG = ImageInfo("image/png", Size(100, 80), 500)


def inline(name: str = "a", length: int = 700, declared: str = "image/png") -> InlineSource:
    return InlineSource(declared, name.encode().ljust(length, b"."))


def name_of(source: Source) -> str:
    return bytes(source.text[:50]).decode().rstrip(".") if isinstance(source, InlineSource) else ""


def scene(*sources: Source, filename: str | None = None) -> Scene:
    places = ((("messages", 0, "content", index), source) for index, source in enumerate(sources))
    call = ToolCall("c1", "Read", filename) if filename else None
    return Scene("m", tuple(Sight(place, source, "user", call) for place, source in places))


def rules(limits: ImageLimits | None = None, *, vision: bool | None = None, **fields: Any) -> Rules:
    return Rules(Profile("up", "anthropic", "m", vision, limits or ImageLimits()), **fields)


BLIND = rules(vision=False)


def description(sha256: str = "5" * 64, text: str = "A red square.") -> Description:
    return Description(sha256, Size(640, 480), text, "up/eye")


def image() -> Image:
    return Image("9" * 64, "image/jpeg", Size(50, 40), b"pixels")


def fitted(note: str = "") -> FitPart:
    return FitPart(image(), PixelMap.from_scaling(PNG.size, image().size), note)


class Table:
    """Answers every need of a kind alike, and records what it was asked, round by round."""

    def __init__(
        self,
        picture: Fact | Callable[[InlineSource], Fact] = PNG,
        refit: Fact | None = None,
        look: Fact | Callable[[Source], Fact] | None = None,
        history: ConversationHistory | None = None,
        present: Callable[[str], bool] = lambda _: True,
        kept: Fact | None = None,
        joint: Fact | Callable[[DescribeTogether], Fact] | None = None,
        reopened: Fact | None = None,
    ) -> None:
        self._reopened = reopened or Refusal("corrupt", "it is damaged")
        self._picture = picture
        self._refit = refit or fitted()
        self._look = look or description()
        self._history = history or ConversationHistory(())
        self._present = present
        self._kept = kept or KeptImage("5" * 64, PNG)
        self._joint = joint or Refusal("unavailable", "nothing was said of them together")
        self.rounds: list[frozenset[Need]] = []

    @property
    def asked(self) -> list[Need]:
        return [need for each in self.rounds for need in each]

    def answer(self, need: Need) -> Fact:
        match need:
            case Probe(image=source) | Check(image=source):
                return self._picture(source) if callable(self._picture) else self._picture
            case Refit():
                return self._refit
            case DescribeImage(image=where):
                return self._look(where) if callable(self._look) else self._look
            case DescribeTogether():
                return self._joint(need) if callable(self._joint) else self._joint
            case Keep():
                return self._kept
            case Fetch():
                return inline("fetched")
            case ReopenFile():
                return self._reopened
            case CompareFile(path=path):
                return self._present(path)
            case RecallHistory():
                return self._history

    def decided(self, what: Scene, laws: Rules, by: Pass = decide) -> Scene:
        facts = Facts()
        for _ in range(8):
            outcome = by(what, facts, laws)
            if isinstance(outcome, Scene):
                return outcome
            assert isinstance(outcome, Needs)
            assert outcome.needs, "a pass that lacks nothing asked all the same"
            assert not any(need in facts for need in outcome.needs), "a pass asked for what it knew"
            self.rounds.append(outcome.needs)
            facts = facts.with_facts({need: self.answer(need) for need in outcome.needs})
        raise AssertionError("the passes ask without end")

    def fates(self, what: Scene, laws: Rules, by: Pass = decide) -> list[Fate | None]:
        return [sight.fate for sight in self.decided(what, laws, by).sights]
