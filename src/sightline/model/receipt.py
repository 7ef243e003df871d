"""What was done to a request and why, for people: no pixels, no keys, no whole texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, assert_never

from sightline.model.base64_text import PER_TOKEN
from sightline.model.facts import Check, Facts, Keep, Kept, Probe
from sightline.model.fate import Refitted, Refused, Repeated, Retired, Shown, Told
from sightline.model.fence import plain
from sightline.model.geometry import Size
from sightline.model.image import Picture
from sightline.model.refusal import Refusal
from sightline.model.scene import Json, Path, Scene, Sight
from sightline.model.sizing import Sizing, tokens
from sightline.model.source import Inline, Source

Name = Literal["shown", "refitted", "told", "retired", "refused", "repeated"]

_LONGEST = 300  # letters of a name or a reason


@dataclass(frozen=True, slots=True)
class Line:
    """What became of one sight."""

    place: str  # as a JSON pointer into the body
    fate: Name
    why: str = ""  # empty: it went on as it came
    before: int | None = None  # tokens, estimated; None: nobody knows
    after: int | None = None

    @property
    def words(self) -> str:
        match self.fate:
            case "shown":
                return self.why or "shown as sent"
            case "refused":
                return f"not shown: {self.why}"
            case "retired":
                return f"retired ({self.why})"
            case _:
                return f"{self.fate} {self.why}"

    def __str__(self) -> str:
        return f"{self.place}: {self.words}; {_count(self.before)} -> {_count(self.after)} tokens"

    def as_json(self) -> dict[str, Json]:
        cost: Json = {"before": self.before, "after": self.after}
        return {"place": self.place, "fate": self.fate, "why": self.why, "tokens": cost}


@dataclass(frozen=True, slots=True)
class Receipt:
    upstream: str
    model: str
    sights: tuple[Line, ...] = ()
    notes: tuple[str, ...] = ()  # what concerns the whole request

    @property
    def lines(self) -> tuple[str, ...]:
        """One for each sight that was changed."""
        return tuple(line.words for line in self.sights if line.why)

    @property
    def kept(self) -> int:
        """Sights that went on as they came."""
        return len(self.sights) - len(self.lines)

    def __str__(self) -> str:
        shown = [f"{self.kept} shown as sent"] if self.kept else []
        said = "; ".join([*shown, *self.lines, *self.notes]) or "no images"
        where = " at ".join(filter(None, (self.model, self.upstream)))
        return f"{where}: {said}" if where else said

    def as_json(self) -> dict[str, Json]:
        sights: list[Json] = [line.as_json() for line in self.sights]
        return {"upstream": self.upstream, "model": self.model, "sights": sights, "notes": [*self.notes]}


@dataclass(frozen=True, slots=True)
class Filed:
    """A receipt as the record keeps it. What a client calls its session is a label beside it, and no name of ours."""

    receipt: Receipt
    wire: str
    labels: tuple[tuple[str, str], ...] = ()
    at: float = 0.0  # when it was filed; the record's clock says

    def as_json(self) -> dict[str, Json]:
        labels: Json = dict(self.labels)
        return {"at": self.at, "wire": self.wire, "labels": labels, **self.receipt.as_json()}


@dataclass(frozen=True, slots=True)
class Omission:
    """A client was seen to leave images out for a model, because it takes that model for blind."""

    client: str  # by the name of its command
    model: str
    at: float = 0.0  # when it was last seen; the record's clock says


def of(
    scene: Scene,
    upstream: str,
    sizing: Sizing | None = None,
    facts: Facts | None = None,
    notes: tuple[str, ...] = (),
) -> Receipt:
    """`sizing` is what the provider does to an image, `facts` what was found out about those of the scene."""
    known = facts or Facts()
    lines = tuple(_line(sight, sizing, known) for sight in scene.sights)
    return Receipt(_plain(upstream), _plain(scene.model), lines, notes)


def _line(sight: Sight, sizing: Sizing | None, facts: Facts) -> Line:
    size = (sight.fate.size if isinstance(sight.fate, Told) else None) or _size(sight.source, facts)
    pixels = tokens(size, sizing) if size and sizing else None
    before = pixels
    if sight.within is not None and isinstance(sight.source, Inline):
        before = len(sight.source.text) // PER_TOKEN  # a model would have read it letter by letter
    fate = sight.fate or Shown()
    match fate:
        case Shown(mime=mime):
            name: Name = "shown"
            why, after = ", ".join([*_moves(sight), *([f"declared as {mime}, which it is"] if mime else [])]), pixels
        case Refitted(image=image, why=reason):
            name, why = "refitted", ", ".join([f"to {image.size} {image.mime} ({reason})", *_moves(sight)])
            after = tokens(image.size, sizing) if sizing else None
        case Told(words=words, seer=seer):
            name, why, after = "told", f"by {seer}", _of_words(words)
        case Retired(words=words, why=reason):
            name, why, after = "retired", reason, _of_words(words)
        case Refused(words=words, refusal=refusal):
            name, why, after = "refused", str(refusal), _of_words(words)
        case Repeated():
            name, why, after = "repeated", "in a text beside the image itself", 0
        case _:
            assert_never(fate)
    return Line(_pointer(sight.place), name, _plain(why), before, after)


def _moves(sight: Sight) -> list[str]:
    out_of_text = ["taken out of a text"] if sight.within is not None else []
    return [*out_of_text, *(["moved out of a tool's result"] if sight.label and sight.role == "tool" else [])]


def _size(source: Source, facts: Facts) -> Size | None:
    if not isinstance(source, Inline):
        return None
    for need in (Probe(source), Check(source)):
        if isinstance(seen := facts.answer(need, Picture), Picture):
            return seen.size
    kept = facts.answer(Keep(source), Kept)
    return None if kept is None or isinstance(kept, Refusal) else kept.picture.size


def _of_words(words: str) -> int:
    return -(-len(words) // PER_TOKEN)


def _pointer(place: Path) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in place)


def _count(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def _plain(text: str) -> str:
    """It goes to a terminal, and names come from outside."""
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return plain(short)
