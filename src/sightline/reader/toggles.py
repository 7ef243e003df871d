"""Find check boxes, radio buttons and switches, and read their states.

Trained networks name each small shape: a kind of toggle and its state, or none (control_model.py). What they aren't
sure of isn't reported, and neither is a shape without a text beside it or others like it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.colours import crop_pixels, find_common_colour, measure_distances
from sightline.reader.control_features import Floats, list_lines
from sightline.reader.control_model import load_toggle_networks
from sightline.reader.page_text import measure_letter_size
from sightline.reader.reading import TOGGLES, InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import are_level, contains_centre, is_inside, overlap_horizontally
from sightline.reader.regions import Segments
from sightline.reader.toggle_features import find_letters, measure_mates, measure_toggles, propose_toggles

# What the network answers: a kind, and whether it is on; the first answer is that it is none.
ANSWERS: tuple[tuple[PartKind, bool | None], ...] = (
    ("check", False), ("check", True), ("check", None), ("radio", False), ("radio", True), ("switch", False),
    ("switch", True),
)  # fmt: skip
MOST = 800  # places; about more than that, as in a large grid, the network isn't asked
MATE_SLACK = 2  # pixels between the sizes and edges of check boxes in one column or row
LIKELY_MATE = 0.6  # of the limit: the score of a check box in line with a sure one of its size
LIKELY = 0.6  # of the limit: the score of a shape that may be the border of a toggle
RING = (0.3, 2.2)  # heights between the middles of a shape and its border, twice; how much larger that is
NEAR = 3.0  # heights of a line: how far a toggle may be from its text
FAR_LABEL = 40.0  # heights of a line: how far from a switch the text may be with which its row begins
STRONGEST = 92  # percent: the pixels above are the strongest of a toggle, such as those of its border
_BULLET = 0.6  # of the letter size of its text: a toggle is larger
_MARKS, _RINGS = frozenset("●○◯◉⊙•■□▢▣☐☑@®©"), frozenset("O0oQ")  # what a toggle may be read as


def find_toggles(pixels: Pixels, lines: Sequence[TextLine], segments: Segments) -> list[InterfacePart]:
    """Return the toggles of an image from top to bottom, each with the line beside it."""
    boxes, page = propose_toggles(segments), list_lines(lines)
    if not 0 < len(boxes) <= MOST:
        return []
    free = ~find_letters(boxes, page)
    alike, boxes = measure_mates(boxes)[free], boxes[free]
    if not len(boxes):
        return []
    networks = load_toggle_networks()
    scores = networks.score(measure_toggles(pixels, boxes, page, alike))
    places = [Box(left, top, right - left, bottom - top) for left, top, right, bottom in boxes.tolist()]
    likely = [(kind, places[at]) for kind, _, at in _rank_answers(scores, LIKELY * networks.limits)]
    found: list[InterfacePart] = []
    sure = _rank_answers(scores, networks.limits)
    known = [places[at] for kind, _, at in sure if kind == "check"]
    doubtful = [each for each in _rank_answers(scores, LIKELY_MATE * networks.limits) if each not in sure]
    mates = [each for each in doubtful if each[0] == "check" and _has_sure_mate(places[each[2]], known)]
    for kind, state, at in [*sure, *mates]:
        box = places[at]
        if not any(_share_centre(part.box, box) for part in found):
            same = (
                other for each, other in likely
                if each == kind and (_is_ring_of(other, box) or (kind == "switch" and _is_whole_of(other, box)))
            )  # fmt: skip
            found.append(_make_toggle(pixels, kind, max(same, key=lambda each: each.width * each.height), state))
    named = [part for part in label_toggles(found, lines) if part.lines or _has_mates(part, found)]
    kept = [part for part in named if not _is_bullet(part, lines)]
    return sorted(kept, key=lambda part: (part.box.y, part.box.x))


def _has_sure_mate(box: Box, sure: Sequence[Box]) -> bool:
    """Return whether one of the sure boxes has the same size and is in the same column or row."""
    return any(
        max(abs(other.width - box.width), abs(other.height - box.height)) <= MATE_SLACK
        and min(abs(other.x - box.x), abs(other.y - box.y)) <= MATE_SLACK
        for other in sure
    )


def _is_bullet(part: InterfacePart, lines: Sequence[TextLine]) -> bool:
    """Return whether a shape is too small for its text: the mark of a list, or the dot of a status."""
    return any(part.box.height < _BULLET * measure_letter_size(lines[at]) for at in part.lines)


def _share_centre(one: Box, other: Box) -> bool:
    return contains_centre(one, other) or contains_centre(other, one)


def _is_ring_of(outer: Box, inner: Box) -> bool:
    """Return whether a box is another one or its border: around the same middle, and not much larger."""
    away = max(
        abs(2 * outer.x + outer.width - 2 * inner.x - inner.width),
        abs(2 * outer.y + outer.height - 2 * inner.y - inner.height),
    )
    area = inner.width * inner.height
    return away <= RING[0] * inner.height and area <= outer.width * outer.height <= RING[1] * area


def _is_whole_of(outer: Box, inner: Box) -> bool:
    """Return whether a box is a switch of which another one is a part: its knob with what is left of the track."""
    area = inner.width * inner.height
    return is_inside(inner, outer, slack=1) and area <= outer.width * outer.height <= RING[1] * area


def _rank_answers(scores: Floats, limits: Floats) -> list[tuple[PartKind, bool | None, int]]:
    """Return the kinds and states of which the network is sure, with their places, the surest first."""
    sure: list[tuple[float, PartKind, bool | None, int]] = []
    for kind, limit in zip(TOGGLES, limits, strict=True):
        own = [at for at, (each, _) in enumerate(ANSWERS, 1) if each == kind]
        sums = scores[:, own].sum(axis=1)
        for at in np.flatnonzero(sums >= limit):
            state = ANSWERS[own[int(scores[at, own].argmax())] - 1][1]
            sure.append((float(sums[at]), kind, state, int(at)))
    return [(kind, state, at) for _, kind, state, at in sorted(sure, key=lambda each: -each[0])]


def _make_toggle(pixels: Pixels, kind: PartKind, box: Box, state: bool | None) -> InterfacePart:
    around = crop_pixels(pixels, box, margin=2)
    ground = find_common_colour(np.concatenate([around[0], around[-1], around[:, 0], around[:, -1]]))
    inner = crop_pixels(pixels, box)
    strength = int(np.percentile(measure_distances(inner, ground), STRONGEST))
    return InterfacePart(kind, box, find_common_colour(inner.reshape(-1, 3)), (), state, strength)


def label_toggles(toggles: Sequence[InterfacePart], lines: Sequence[TextLine]) -> list[InterfacePart]:
    """Return the toggles with the lines beside them."""
    return [
        replace(
            part,
            lines=_find_label(part.box, lines) or (_find_far_label(part.box, lines) if part.kind == "switch" else ()),
        )
        for part in toggles
    ]


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


def _find_far_label(box: Box, lines: Sequence[TextLine]) -> tuple[int, ...]:
    """Return the line of a switch that has none beside it: right below or above it, or where its row begins."""
    level = [
        (box.x - line.box.right, place)
        for place, line in enumerate(lines)
        if are_level(box, line.box) and 0 <= box.x - line.box.right <= FAR_LABEL * line.box.height
    ]
    stacked = [
        (max(line.box.y - box.bottom, box.y - line.box.bottom), place)
        for place, line in enumerate(lines)
        if overlap_horizontally(line.box, box) and abs(line.box.x - box.x) <= box.width
        and -2 <= max(line.box.y - box.bottom, box.y - line.box.bottom) <= line.box.height
    ]  # fmt: skip
    found = min(stacked, default=None) or min(level, default=None)
    return (found[1],) if found else ()


def _has_mates(part: InterfacePart, others: Sequence[InterfacePart]) -> bool:
    """Return whether a toggle without a text is in a row or column of toggles like it."""
    box = part.box
    same = [
        other for other in others
        if other.kind == part.kind and other is not part
        and abs(other.box.width - box.width) <= 1 and abs(other.box.height - box.height) <= 1
        and (abs(other.box.x - box.x) <= 1 or abs(other.box.y - box.y) <= 1)
    ]  # fmt: skip
    return len(same) >= 2
