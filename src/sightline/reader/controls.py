"""Ask the trained models which places are controls, and let them confirm or reject what the rules found.

A model that is sure decides alone. What a rule found is kept unless a model finds it unlikely. The limits are in
control_model.py's weights; those of doubt are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours, crop_pixels, find_common_colour, measure_distances
from sightline.reader.control_features import (
    Ints,
    list_lines,
    measure_controls,
    measure_toggles,
    propose_controls,
    propose_toggles,
)
from sightline.reader.control_model import load_toggle_network, load_trees
from sightline.reader.reading import InterfacePart, PartKind, Pixels, TextLine
from sightline.reader.rectangles import are_level, contains_centre
from sightline.reader.regions import Segments

# What the network answers: a kind, and whether it is on; the first answer is that it is none.
ANSWERS: tuple[tuple[PartKind, bool | None], ...] = (
    ("check", False), ("check", True), ("check", None), ("radio", False), ("radio", True), ("switch", False),
    ("switch", True),
)  # fmt: skip
TOGGLE_KINDS: tuple[PartKind, ...] = ("check", "radio", "switch")
CONTROLS: tuple[Literal["button", "field"], ...] = ("button", "field")
SURE = 1  # a score, as a share of a model's limit, from which it decides alone
UNLIKELY = 0.05  # a score below it rejects what a rule found
MOST = 800  # places; about more than that, as in a large grid, no model is asked: each is compared with all others
STRONGEST = 92  # percent: the pixels above are the strongest of a toggle, such as those of its border

Scored = tuple[float, PartKind, Box]


def add_learnt_toggles(
    pixels: Pixels, lines: Sequence[TextLine], segments: Segments, found: Sequence[InterfacePart]
) -> list[InterfacePart]:
    """Return the toggles that rules found without the unlikely ones, and those of which the network is sure."""
    boxes = propose_toggles(segments)
    if not 0 < len(boxes) <= MOST:
        return list(found)
    network = load_toggle_network()
    scores = network.score(measure_toggles(pixels, boxes, list_lines(lines)))
    places = [_to_box(edges) for edges in boxes]
    best = 1 - scores[:, 0]
    kept = [part for part in found if _score_place(part.box, places, best.tolist()) >= UNLIKELY]
    sure: list[tuple[float, InterfacePart]] = []
    for kind, limit in zip(TOGGLE_KINDS, network.limits, strict=True):
        own = [at for at, (each, _) in enumerate(ANSWERS, 1) if each == kind]
        sums = scores[:, own].sum(axis=1)
        for at in np.flatnonzero(sums >= limit):
            state = ANSWERS[own[int(scores[at, own].argmax())] - 1][1]
            sure.append((float(sums[at]), _make_toggle(pixels, kind, places[at], state)))
    for _, part in sorted(sure, key=lambda each: -each[0]):
        if any(are_level(part.box, line.box) for line in lines) and not _is_taken(part.box, kept):
            kept.append(part)
    return kept


def _make_toggle(pixels: Pixels, kind: PartKind, box: Box, state: bool | None) -> InterfacePart:
    around = crop_pixels(pixels, box, margin=2)
    ground = find_common_colour(np.concatenate([around[0], around[-1], around[:, 0], around[:, -1]]))
    inner = crop_pixels(pixels, box)
    strength = int(np.percentile(measure_distances(inner, ground), STRONGEST))
    return InterfacePart(kind, box, find_common_colour(inner.reshape(-1, 3)), (), state, strength)


def score_controls(pixels: Pixels, lines: Sequence[TextLine], segments: Segments) -> list[Scored]:
    """Return how likely each place is a button and a field, the best first; at a score of 1 a model is sure."""
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
    if scores[other] >= SURE > scores[kind]:
        return other
    return "panel" if scores[kind] < UNLIKELY else kind


def choose_sure(scored: Iterable[Scored], found: Sequence[InterfacePart]) -> list[tuple[PartKind, Box]]:
    """Return the controls of which a model is sure, where none was found yet."""
    kept: list[tuple[PartKind, Box]] = []
    taken = [part.box for part in found]
    for score, kind, box in scored:
        if score >= SURE and not any(contains_centre(box, other) or contains_centre(other, box) for other in taken):
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


def _is_taken(box: Box, parts: Sequence[InterfacePart]) -> bool:
    return any(contains_centre(part.box, box) or contains_centre(box, part.box) for part in parts)


def _to_box(edges: Ints) -> Box:
    left, top, right, bottom = map(int, edges)
    return Box(left, top, right - left, bottom - top)
