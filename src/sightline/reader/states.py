"""Find what is selected or disabled by its contrast with its siblings: a menu item, a tab, a row, a control.

Which contrasts mean a state is learnt (control_model.py); item_features.py and paleness.py measure them. What isn't
sure isn't said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.control_features import list_boxes, list_lines
from sightline.reader.control_model import load_trees
from sightline.reader.item_features import find_badges, measure_items
from sightline.reader.item_pieces import cut_items
from sightline.reader.paleness import STATEFUL, measure_paleness
from sightline.reader.reading import TOGGLES, InterfacePart, ItemState, Pixels, TextLine
from sightline.reader.rectangles import contains_centre
from sightline.reader.regions import ColourRegion

LONGEST = 40  # characters of an item
MOST_LINES = 800  # of a page; of more, as each is compared with all others, none is said to be selected
MOST_SELECTED = 2  # items of one menu: an item and the one that it is in


def is_item(line: TextLine) -> bool:
    """Return whether a line may be an item of a menu, a tab or a row."""
    return 1 <= len(line.text) <= LONGEST


def find_states(
    pixels: Pixels,
    lines: Sequence[TextLine],
    parts: Sequence[InterfacePart],
    taken: Iterable[Box],
    regions: Iterable[ColourRegion] = (),
) -> Iterator[ItemState]:
    """Yield the items and controls that differ from their siblings; lines in `taken` (charts, programs) are none."""
    yield from (
        ItemState("selected", item.box, item) for item in _find_selected(pixels, lines, parts, list(taken), regions)
    )
    controls = [part for part in parts if part.kind in STATEFUL]
    if controls:
        model = load_trees("disabled")
        scores = model.score(measure_paleness(pixels, controls, list_lines(lines)))
        sure = (part for part, score in zip(controls, scores, strict=True) if score >= model.limit)
        yield from (ItemState("disabled", part.box) for part in sure)


def _find_selected(
    pixels: Pixels,
    lines: Sequence[TextLine],
    parts: Sequence[InterfacePart],
    taken: Sequence[Box],
    regions: Iterable[ColourRegion],
) -> Iterator[TextLine]:
    """Yield the items that are surely selected in their column or in their row, where few others are."""
    if not 0 < len(lines) <= MOST_LINES:
        return
    pieces, places = cut_items(pixels, lines)
    if len(pieces) > MOST_LINES:
        pieces, places = list(lines), list(range(len(lines)))
    own = {at for part in parts if part.kind in (*TOGGLES, "field") for at in part.lines}
    model, page = load_trees("selected"), list_lines(pieces)
    rows, siblings = measure_items(pixels, page, list_boxes([region.box for region in regions]), parts, places)
    chosen = np.zeros(len(pieces), dtype=bool)
    for at, (way, mates) in enumerate(zip(rows, siblings, strict=True)):
        sure = (model.score(way) >= model.limit) & (mates.count > 0)
        sure &= ~find_badges(way, mates) if at == 0 else True
        chosen |= sure & ((sure[mates.at] & mates.known).sum(axis=1) < MOST_SELECTED)
    for at in np.flatnonzero(chosen).tolist():
        piece = pieces[at]
        free = places[at] not in own and not any(contains_centre(area, piece.box) for area in taken)
        if free and is_item(piece):
            yield piece
