"""Find check boxes, radio buttons and switches, and read their states.

Trained networks name each small shape: a kind of toggle and its state, or none (control_model.py). What they aren't
sure of isn't reported. They must be surer where something speaks against a toggle: that it has no text beside it, that
nothing else has its size, that it is one of a column of icons. The limits were chosen on pages around packages that
nothing is trained on; bench/score_kits.py shows what others would give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.colours import crop_pixels, find_common_colour, measure_distances
from sightline.reader.control_features import Floats, Ints, Mask, list_boxes, list_lines
from sightline.reader.control_model import load_toggle_networks
from sightline.reader.page_text import measure_letter_size
from sightline.reader.reading import TOGGLES, InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import are_level, contains_centre, is_inside, overlap_horizontally
from sightline.reader.regions import Segments
from sightline.reader.toggle_features import (
    find_letters,
    measure_asymmetry,
    measure_crookedness,
    measure_mates,
    measure_toggles,
    propose_toggles,
)

# What the network answers: a kind, and whether it is on; the first answer is that it is none.
ANSWERS: tuple[tuple[PartKind, bool | None], ...] = (
    ("check", False), ("check", True), ("check", None), ("radio", False), ("radio", True), ("switch", False),
    ("switch", True),
)  # fmt: skip
Limits = Sequence[Mapping[PartKind, float]]
# The least scores of a toggle against which nothing speaks, one thing does, and more do.
LIMITS: Limits = (
    {"check": 0.95, "radio": 0.9, "switch": 0.5},
    {"check": 0.96, "radio": 0.96, "switch": 0.9},
    {"check": 0.98, "radio": 0.98, "switch": 0.98},
)
MOST = 800  # places; about more than that, as in a large grid, the network isn't asked
MATE_SLACK = 2  # pixels between the sizes and edges of check boxes in one column or row
LIKELY_MATES = {"check": 0.57, "radio": 0.6}  # the least scores in line with a sure toggle of that kind and size
LIKELY = 0.6  # of the limit: the score of a shape that may be the border of a toggle
RING = (0.3, 2.2)  # heights between the middles of a shape and its border, twice; how much larger that is
NEAR = 3.0  # heights of a line: how far a toggle may be from its text
FAR_LABEL = 40.0  # heights of a line: how far from a switch the text may be with which its row begins
STRONGEST = 92  # percent: the pixels above are the strongest of a toggle, such as those of its border
_WHOLE = (1.4, 1.5)  # ratio of the width of a switch to that of its knob, at least, and of their heights, at most
_BULLET = 0.6  # of the letter size of its text: a toggle is larger
_UNEVEN = {"check": 0.18, "radio": 0.12}  # how much a toggle may differ from itself with its rows as columns
_UPSIDE_DOWN = {"check": 0.06, "switch": 0.13}  # how much an empty check box, or a switch, from itself upside down
_CROOKED = {"check": 0.33, "radio": 0.3}  # how much the border of one that is alone may differ from itself turned round
_MARK = 1.6  # sizes of a toggle: how large a place is at most that is the toggle or its tick
_ALIKE = 2  # pixels between the sizes of toggles of one kind on a page
_ICONS, _ICON_SIZE = 2, 0.2  # others in a row or column of icons, at least; share by which their sizes differ, at most
_ICON_LINE, _ICON_REACH = 0.2, 8.0  # sizes: how far icons are out of line, and apart, at most
_MARKS, _RINGS = frozenset("●○◯◉⊙•■□▢▣☐☑@®©"), frozenset("O0oQ")  # what a toggle may be read as


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the networks say of a place."""

    kind: PartKind
    state: bool | None
    place: int
    score: float


def find_toggles(
    pixels: Pixels, lines: Sequence[TextLine], segments: Segments, limits: Limits = LIMITS
) -> list[InterfacePart]:
    """Return the toggles of an image from top to bottom, each with the line beside it."""
    boxes, page = propose_toggles(segments), list_lines(lines)
    if not 0 < len(boxes) <= MOST:
        return []
    in_text, letters = find_letters(boxes, page)
    alike, in_text, boxes = measure_mates(boxes)[~letters], in_text[~letters], boxes[~letters]
    if not len(boxes):
        return []
    measures = measure_toggles(pixels, boxes, page, alike)
    places = [Box(left, top, right - left, bottom - top) for left, top, right, bottom in boxes.tolist()]
    answers = _rank_answers(load_toggle_networks().score(measures), limits[0])
    chosen = _choose_toggles(answers, places, in_text, limits)
    if not chosen:
        return []
    drawn = [_make_toggle(pixels, each.kind, _find_whole(each, answers, places), each.state) for each in chosen]
    parts = label_toggles(drawn, lines)
    icons = _find_others(boxes[~in_text], [part.box for part in parts])
    kept = []
    own = measures.own[[each.place for each in chosen]]
    evenness = zip(_find_uneven(chosen, own), measure_crookedness(own), strict=True)
    for each, part, (is_uneven, crooked) in zip(chosen, parts, evenness, strict=True):
        if crooked > _CROOKED.get(each.kind, 1) and _is_alone(part, parts):
            continue  # an icon, such as one of two sheets
        cut = min(part.box.x, part.box.y) <= 0 or part.box.right >= pixels.shape[1] or part.box.bottom >= len(pixels)
        doubts = is_uneven + cut + _count_doubts(part, parts, lines, icons, in_text=bool(in_text[each.place]))
        if not doubts or each.score >= limits[min(doubts, 2)][each.kind]:
            kept.append(part)
    return sorted(kept, key=lambda part: (part.box.y, part.box.x))


def _count_doubts(
    part: InterfacePart, others: Sequence[InterfacePart], lines: Sequence[TextLine], icons: Ints, *, in_text: bool
) -> int:
    """Count what speaks against a toggle, of what is around it."""
    return sum((
        in_text or not (part.lines or _has_mates(part, others)), _is_bullet(part, lines), _is_alone(part, others),
        part.kind != "switch" and _is_icon(part.box, icons),
    ))  # fmt: skip


def _choose_toggles(answers: Sequence[_Answer], places: Sequence[Box], in_text: Mask, limits: Limits) -> list[_Answer]:
    """Return the sure answers, then those in line with them; of places that share a centre only the first."""
    switches = [places[each.place] for each in answers if each.kind == "switch"]
    answers = [
        each for each in answers
        if each.kind == "switch" or not any(_is_knob_of(places[each.place], other) for other in switches)
    ]  # fmt: skip
    sure = [each for each in answers if each.score >= limits[int(in_text[each.place])][each.kind]]
    known = {kind: [places[each.place] for each in sure if each.kind == kind] for kind in LIKELY_MATES}
    mates = [
        each for each in answers
        if LIKELY_MATES.get(each.kind, 1) <= each.score < limits[0][each.kind] and not in_text[each.place]
        and _has_sure_mate(places[each.place], known[each.kind])
    ]  # fmt: skip
    chosen: list[_Answer] = []
    for each in (*sure, *mates):
        if not any(_share_centre(places[other.place], places[each.place]) for other in chosen):
            chosen.append(each)
    return chosen


def _find_whole(answer: _Answer, answers: Sequence[_Answer], places: Sequence[Box]) -> Box:
    """Return the largest box that is likely a toggle of the same kind, and is its border or all of the switch."""
    box = places[answer.place]
    same = [places[each.place] for each in answers if each.kind == answer.kind]
    whole = [
        each for each in same if _is_ring_of(each, box) or (answer.kind == "switch" and _is_whole_of(each, box))
    ]  # fmt: skip
    return max(whole, key=lambda each: each.width * each.height)


def _find_uneven(answers: Sequence[_Answer], own: Floats) -> list[bool]:
    """Return which toggles are not as even as a drawn one: avatars, logos and most icons."""
    turned, mirrored = measure_asymmetry(own)
    return [
        bool(turned[at] > _UNEVEN.get(each.kind, 1))
        or bool((each.kind == "switch" or each.state is False) and mirrored[at] > _UPSIDE_DOWN.get(each.kind, 1))
        for at, each in enumerate(answers)
    ]


def _is_alone(part: InterfacePart, others: Sequence[InterfacePart]) -> bool:
    """Return whether no other toggle is of the same kind and size."""
    return not any(
        other.kind == part.kind and other.box != part.box
        and max(abs(other.box.width - part.box.width), abs(other.box.height - part.box.height)) <= _ALIKE
        for other in others
    )  # fmt: skip


def _find_others(boxes: Ints, toggles: Sequence[Box]) -> Ints:
    """Return the boxes whose middle is in no toggle."""
    known, middle = list_boxes(toggles)[None], (boxes[:, None, :2] + boxes[:, None, 2:]) / 2
    inside = ((middle >= known[..., :2] - 1) & (middle <= known[..., 2:] + 1)).min(axis=2)
    others: Ints = boxes[~inside.max(axis=1)]
    return others


def _is_icon(box: Box, others: Ints) -> bool:
    """Return whether some of the other boxes are about as large as a box and in its row or column."""
    away = np.abs((others[:, :2] + others[:, 2:]) / 2 - (box.x + box.width / 2, box.y + box.height / 2))
    differ = np.abs(others[:, 2:] - others[:, :2] - (box.width, box.height)) / (box.width, box.height)
    away = away / (box.width, box.height)
    line = (away.min(axis=1) <= _ICON_LINE) & (away.max(axis=1) <= _ICON_REACH)
    return len(np.unique(np.rint(2 * away[line & (differ.max(axis=1) <= _ICON_SIZE)]), axis=0)) >= _ICONS


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


def _is_knob_of(inner: Box, outer: Box) -> bool:
    """Return whether a box may be the knob of a switch: at its end, and nearly as high."""
    return is_inside(inner, outer, slack=2) and _WHOLE[0] * inner.width <= outer.width and (
        outer.height <= _WHOLE[1] * inner.height
    )  # fmt: skip


def _rank_answers(scores: Floats, limits: Mapping[PartKind, float]) -> list[_Answer]:
    """Return what is likely a kind of toggle, with its state, the surest first."""
    likely = []
    for kind in TOGGLES:
        own = [at for at, (each, _) in enumerate(ANSWERS, 1) if each == kind]
        sums = scores[:, own].sum(axis=1)
        for at in np.flatnonzero(sums >= LIKELY * limits[kind]):
            state = ANSWERS[own[int(scores[at, own].argmax())] - 1][1]
            likely.append(_Answer(kind, state, int(at), float(sums[at])))
    return sorted(likely, key=lambda each: -each.score)


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


def remove_toggle_marks(boxes: Iterable[Box], parts: Iterable[InterfacePart]) -> tuple[Box, ...]:
    """Return the boxes without those that are a toggle or a part of one, such as its tick."""
    toggles = [part.box for part in parts if part.kind in TOGGLES]
    return tuple(box for box in boxes if not any(_is_mark_of(box, toggle) for toggle in toggles))


def _is_mark_of(box: Box, toggle: Box) -> bool:
    near = box.width <= _MARK * toggle.width and box.height <= _MARK * toggle.height
    return near and contains_centre(toggle, box)


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
    """Return whether a check box or radio button without a text is in a row or column of others like it."""
    box = part.box
    same = [
        other for other in others
        if other.kind == part.kind != "switch" and other is not part
        and abs(other.box.width - box.width) <= 1 and abs(other.box.height - box.height) <= 1
        and (abs(other.box.x - box.x) <= 1 or abs(other.box.y - box.y) <= 1)
    ]  # fmt: skip
    return len(same) >= 2
