"""Ask the trained models which places are controls, and let them confirm or reject what the rules found.

A model that is sure decides alone. What a rule found is kept unless a model finds it unlikely. The limits are in
control_model.py's weights; those of doubt are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours
from sightline.reader.control_features import (
    Ints,
    list_lines,
    measure_controls,
    propose_controls,
)
from sightline.reader.control_model import load_trees
from sightline.reader.reading import InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import contains_centre
from sightline.reader.regions import Segments

CONTROLS: tuple[Literal["button", "field"], ...] = ("button", "field")
SURE = 0.94  # a score, as a share of a model's limit, from which it decides alone: rules mostly agree with it
LIKELY = 0.8  # the same from which it names what a rule found
CERTAIN = 1.0  # the same of a place that looks like the bar of a window
UNLIKELY = 0.05  # a score below it rejects what a rule found
MOST = 800  # places; about more than that, as in a large grid, no model is asked: each is compared with all others

Scored = tuple[float, PartKind, Box]


def score_controls(pixels: Pixels, lines: Sequence[TextLine], segments: Segments) -> list[Scored]:
    """Return how likely each place is a button and a field, the best first, as a share of its model's limit."""
    page = list_lines(lines if all(line.ink for line in lines) else add_colours(pixels, lines))
    boxes, shapes = propose_controls(segments, page, (pixels.shape[1], pixels.shape[0]))
    if not 0 < len(boxes) <= MOST:
        return []
    rows = measure_controls(pixels, boxes, shapes, page)
    found: list[Scored] = []
    for question in CONTROLS:
        model = load_trees(question)
        scores = model.score(rows) / model.limit
        found += [(float(score), question, _to_box(edges)) for score, edges in zip(scores, boxes, strict=True)]
    return sorted(found, key=lambda each: -each[0])


def judge_control(kind: PartKind, box: Box, scored: Sequence[Scored]) -> PartKind:
    """Return what a button or field that a rule found is: that, the other one, or only a panel; others are as found."""
    if kind not in CONTROLS:
        return kind
    scores: dict[PartKind, float] = {}
    for each in CONTROLS:
        own = [(score, place) for score, question, place in scored if question == each]
        scores[each] = _score_place(box, [place for _, place in own], [score for score, _ in own])
    other: PartKind = "field" if kind == "button" else "button"
    if scores[other] > scores[kind] and scores[other] >= LIKELY:
        return other
    return "panel" if scores[kind] < UNLIKELY else kind


def choose_sure(
    scored: Iterable[Scored], found: Sequence[InterfacePart], bars: Sequence[Box]
) -> list[tuple[PartKind, Box]]:
    """Return the controls of which a model is sure, where none was found yet; a bar of a window hardly is one."""
    kept: list[tuple[PartKind, Box]] = []
    taken = [part.box for part in found]
    for score, kind, box in scored:
        if score < SURE or (score < CERTAIN and any(_is_nearly(box, bar) for bar in bars)):
            continue
        if not any(contains_centre(box, other) or contains_centre(other, box) for other in taken):
            kept.append((kind, box))
            taken.append(box)
    return kept


def _score_place(box: Box, places: Sequence[Box], scores: Iterable[float]) -> float:
    """Return the best score of the places that are nearly the same; a doubtful one where there is none."""
    own = [float(score) for place, score in zip(places, scores, strict=True) if _is_nearly(box, place)]
    return max(own, default=UNLIKELY)


def _is_nearly(one: Box, other: Box) -> bool:
    return (
        abs(one.x - other.x) <= 4
        and abs(one.y - other.y) <= 4
        and abs(one.right - other.right) <= 4
        and abs(one.bottom - other.bottom) <= 4
    )


def _to_box(edges: Ints) -> Box:
    left, top, right, bottom = map(int, edges)
    return Box(left, top, right - left, bottom - top)
