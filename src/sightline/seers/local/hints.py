"""Text in a field that may be no more than a hint at what to type there: it is paler than what is typed."""

from __future__ import annotations

from sightline.seers.local.finding import of_kind
from sightline.seers.local.labelled import labels
from sightline.seers.local.seen import Line, Part, Seen

PALE_TEXT = "; in pale letters, perhaps no more than a hint"
PALER = 0.7  # of the contrast that the other texts have


def contrast(line: Line) -> int:
    if line.ink is None or line.ground is None:
        return 0
    return max(abs(one - other) for one, other in zip(line.ink, line.ground, strict=True))


def is_hint(part: Part, seen: Seen) -> bool:
    """Whether what stands in a field is paler than what stands in others, or than the labels."""
    own = max((contrast(seen.lines[at]) for at in part.lines), default=0)
    typed = [seen.lines[at] for field in of_kind(seen, "field") if field is not part for at in field.lines]
    beside = [label for field, label in labels(seen).items() if field.kind == "field"]
    return 0 < own <= PALER * max(map(contrast, (*typed, *beside)), default=0)
