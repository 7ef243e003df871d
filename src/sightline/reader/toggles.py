"""Find check boxes, radio buttons and switches by their small pictures and their surroundings, and read their states.

What they look like is learnt (control_model.py); what is not clearly a toggle is not reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.colours import crop_pixels, find_common_colour, measure_distances
from sightline.reader.control_features import list_lines, measure_toggles, propose_toggles
from sightline.reader.control_model import load_toggle_network
from sightline.reader.reading import InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import are_level, contains_centre, is_inside
from sightline.reader.regions import Segments

# What the network answers: a kind, and whether it is on; the first answer is that it is none.
ANSWERS: tuple[tuple[PartKind, bool | None], ...] = (
    ("check", False), ("check", True), ("check", None), ("radio", False), ("radio", True), ("switch", False),
    ("switch", True),
)  # fmt: skip
KINDS: tuple[PartKind, ...] = ("check", "radio", "switch")
NEAR = 3.0  # heights of a line: how far a toggle may be from its text
MATES = 2  # a toggle that has no text in its row has so many others in its row or column
STRONGEST = 92  # percent: the pixels above are the strongest of a toggle, such as those of its border
_MARKS, _RINGS = frozenset("●○◯◉⊙•■□▢▣☐☑@®©"), frozenset("O0oQ")  # what a toggle may be read as


def find_toggles(pixels: Pixels, lines: Sequence[TextLine], segments: Segments) -> list[InterfacePart]:
    """Return the toggles of an image; of several boxes around one toggle that with the best score."""
    boxes = propose_toggles(segments)
    if not len(boxes):
        return []
    network = load_toggle_network()
    scores = network.score(measure_toggles(pixels, boxes, list_lines(lines)))[:, 1:]
    found: list[tuple[float, InterfacePart]] = []
    for kind, limit in zip(KINDS, network.limits, strict=True):
        own = [at for at, (each, _) in enumerate(ANSWERS) if each == kind]
        sums = scores[:, own].sum(axis=1)
        for at in np.flatnonzero(sums >= limit):
            left, top, right, bottom = map(int, boxes[at])
            state = ANSWERS[own[int(scores[at, own].argmax())]][1]
            found.append(
                (float(sums[at]), _make_toggle(pixels, kind, Box(left, top, right - left, bottom - top), state))
            )
    kept: list[InterfacePart] = []
    for _, part in sorted(found, key=lambda each: -each[0]):
        if not any(contains_centre(part.box, other.box) or contains_centre(other.box, part.box) for other in kept):
            kept.append(part)
    kept.sort(key=lambda part: (part.box.y, part.box.x))
    level = [part for part in kept if any(are_level(part.box, line.box) for line in lines) or _has_mates(part, kept)]
    return label_toggles(level, lines)


def _has_mates(part: InterfacePart, others: Sequence[InterfacePart]) -> bool:
    """Return whether a toggle is in a row or column with two others like it."""
    box = part.box
    mates = [
        other for other in others
        if other.kind == part.kind and other is not part
        and min(abs(other.box.x - box.x), abs(other.box.y - box.y)) <= 1
    ]  # fmt: skip
    return len(mates) >= MATES


def _make_toggle(pixels: Pixels, kind: PartKind, box: Box, state: bool | None) -> InterfacePart:
    around = crop_pixels(pixels, box, margin=2)
    ground = find_common_colour(np.concatenate([around[0], around[-1], around[:, 0], around[:, -1]]))
    inner = crop_pixels(pixels, box)
    strength = int(np.percentile(measure_distances(inner, ground), STRONGEST))
    return InterfacePart(kind, box, find_common_colour(inner.reshape(-1, 3)), (), state, strength)


def label_toggles(toggles: Iterable[InterfacePart], lines: Sequence[TextLine]) -> list[InterfacePart]:
    """Return the toggles with the lines beside them."""
    return [replace(part, lines=_find_label(part.box, lines)) for part in toggles]


def remove_toggle_glyphs(lines: Sequence[TextLine], toggles: Sequence[InterfacePart]) -> list[TextLine]:
    """Remove what is a toggle, read as a letter: a whole line, or the first character of one."""
    rest = [
        line for line in lines if not (len(line.text) <= 2 and any(is_inside(line.box, part.box) for part in toggles))
    ]
    return [next((_cut_off(line, part.box) for part in toggles if _begins_with(line, part.box)), line) for line in rest]


def _begins_with(line: TextLine, box: Box) -> bool:
    """Return whether a line begins with a mark that is a shape."""
    return (
        len(line.text) > 2
        and (line.text[0] in _MARKS or (line.text[0] in _RINGS and line.text[1] == " "))
        and abs(line.box.x - box.x) <= 3
        and are_level(line.box, box)
        and box.right < line.box.x + 2 * box.width
    )


def _cut_off(line: TextLine, box: Box) -> TextLine:
    text = line.text[1:].lstrip()
    gone = len(line.text) - len(text)
    doubtful = tuple(at - gone for at in line.doubtful if at >= gone)
    left = min(line.box.right - 1, box.right + max(2, box.width // 4))
    return replace(
        line, text=text, box=Box(left, line.box.y, line.box.right - left, line.box.height), doubtful=doubtful
    )


def _find_label(box: Box, lines: Sequence[TextLine]) -> tuple[int, ...]:
    """Return the nearest line beside a toggle, after it rather than before it."""
    best: tuple[float, int] | None = None
    for place, line in enumerate(lines):
        if is_inside(line.box, box) or not are_level(box, line.box):
            continue
        if _begins_with(line, box):
            return (place,)
        after, before = line.box.x - box.right, box.x - line.box.right
        reach = NEAR * max(line.box.height, 0.6 * box.height)
        if -2 <= after <= reach or -2 <= before <= reach:
            away = after if after >= -2 else before + reach
            best = min(best or (away, place), (away, place))
    return (best[1],) if best else ()
