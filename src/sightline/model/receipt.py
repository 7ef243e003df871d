"""What was done to a request and why, for people."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.model.fate import Fate, Refitted, Refused, Shown, Told
from sightline.model.fence import plain
from sightline.model.scene import Scene


@dataclass(frozen=True, slots=True)
class Receipt:
    upstream: str
    model: str
    lines: tuple[str, ...]  # one for each sight that was changed
    kept: int  # sights that went on as they came
    notes: tuple[str, ...] = ()  # what concerns the whole request

    def __str__(self) -> str:
        shown = [f"{self.kept} shown as sent"] if self.kept else []
        # Names come from outside, and it goes to a terminal.
        return plain(f"{self.model} at {self.upstream}: " + "; ".join([*shown, *self.lines, *self.notes]))


def of(scene: Scene, upstream: str, notes: tuple[str, ...] = ()) -> Receipt:
    lines = tuple(line for sight in scene.sights if (line := _line(sight.fate)))
    return Receipt(upstream, scene.model, lines, len(scene.sights) - len(lines), notes)


def _line(fate: Fate | None) -> str | None:
    match fate:
        case None | Shown(mime=None):
            return None
        case Shown(mime=mime):
            return f"declared as {mime}, which it is"
        case Refitted(image=image, why=why):
            return f"refitted to {image.size} {image.mime} ({why})"
        case Told(seer=seer):
            return f"told by {seer}"
        case Refused(refusal=refusal):
            return f"not shown: {refusal}"
