"""Find what is selected or disabled by its contrast with its siblings: a menu item, a tab, a toggle's label."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise

from sightline.model.geometry import Box
from sightline.reader.colours import compare_colours
from sightline.reader.reading import TOGGLES, Colour, InterfacePart, ItemState, TextLine
from sightline.reader.rectangles import is_inside
from sightline.reader.regions import ColourRegion

SIBLINGS = 3  # items of a menu or a row of tabs, at least
SHORT = 28  # characters of an item, at most
NEAR = 8.0  # heights of a line between two items
SAME, OTHER = 12, 28  # differences of backgrounds: of siblings, and of the one that is selected
ALIKE = 30  # the same of the colours of siblings' texts
MOST = 2  # items of one menu that are selected, at most: an item and the one that it is in
LOW = 7.0  # heights of a line: the background of a selected item is no higher
CLEAR = 0.6  # of the contrast of siblings: a selected item has no less
PALE, FADED = 0.7, 0.55  # of the contrast of others: a disabled toggle or its text, and a text beside other kinds
LINE, DRAWN = (2, 8), 60  # pixels: the thickness of a line below a selected tab; how much it differs in colour
BELOW = (0.35, 2.6)  # heights of a line: how far it is below the text


def find_states(
    lines: Sequence[TextLine],
    parts: Sequence[InterfacePart],
    taken: Iterable[Box],
    regions: Iterable[ColourRegion] = (),
) -> Iterator[ItemState]:
    """Yield the items that differ from their siblings; lines in `taken` (tables, charts, programs) are none."""
    own = (*TOGGLES, "field")
    areas = [*taken, *(lines[at].box for part in parts if part.kind in own for at in part.lines)]
    pressed = {lines[at].box for part in parts if part.kind == "button" for at in part.lines}
    items = [
        line for line in lines
        if line.ground and line.ink and 1 < len(line.text) <= SHORT
        and not any(_has_centre(area, line.box) for area in areas)
    ]  # fmt: skip
    seen: set[Box] = set()
    known = list(regions)
    drawn = [each for each in known if LINE[0] <= each.box.height <= LINE[1] and each.box.width >= 3 * LINE[1]]
    rows = list(_find_rows(items))
    for group in (*_find_columns(items), *rows):
        odd = _find_odd(group, pressed, known)
        if not odd and group in rows and not any(line.box in pressed for line in group):
            odd = _find_underlined(group, drawn)
        for line in odd:
            if line.box not in seen:
                seen.add(line.box)
                yield ItemState("selected", line.box)
    yield from _find_disabled(lines, parts)


def _has_centre(area: Box, box: Box) -> bool:
    return area.x <= box.x + box.width / 2 <= area.right and area.y <= box.y + box.height / 2 <= area.bottom


def _find_columns(items: Sequence[TextLine]) -> Iterator[list[TextLine]]:
    """Yield items below each other that begin in one column."""
    groups: list[list[TextLine]] = []
    for line in sorted(items, key=lambda each: each.box.y):
        home = next((group for group in groups if _follows_below(group[-1], line)), None)
        if home is None:
            groups.append([line])
        else:
            home.append(line)
    yield from (group for group in groups if len(group) >= SIBLINGS)


def _follows_below(above: TextLine, line: TextLine) -> bool:
    high = above.box.height
    gap = line.box.y - above.box.bottom
    return abs(above.box.x - line.box.x) <= 3 and 0.5 * high <= gap <= NEAR * high and _have_one_size(above, line)


def _find_rows(items: Sequence[TextLine]) -> Iterator[list[TextLine]]:
    """Yield items beside each other, as tabs are."""
    groups: list[list[TextLine]] = []
    for line in sorted(items, key=lambda each: each.box.x):
        home = next((group for group in groups if _follows_beside(group[-1], line)), None)
        if home is None:
            groups.append([line])
        else:
            home.append(line)
    yield from (group for group in groups if len(group) >= SIBLINGS)


def _follows_beside(left: TextLine, line: TextLine) -> bool:
    gap = line.box.x - left.box.right
    level = abs(left.box.y + left.box.height / 2 - line.box.y - line.box.height / 2) <= 0.3 * line.box.height
    return level and 0.8 * line.box.height <= gap <= NEAR * line.box.height and _have_one_size(left, line)


def _have_one_size(one: TextLine, other: TextLine) -> bool:
    return abs(one.box.height - other.box.height) <= 0.4 * max(one.box.height, other.box.height)


def _find_odd(group: Sequence[TextLine], pressed: Collection[Box], regions: Sequence[ColourRegion]) -> list[TextLine]:
    """Return the items that are drawn on a background of their own: one, or one in a menu and one below it.

    All others are alike and have none; an item with its own background looks like a button.
    """
    plain = [line for line in group if line.box not in pressed]
    for home in plain:
        odd = [line for line in group if _compare(line.ground, home.ground) >= OTHER]
        others = [line for line in group if line not in odd]
        enough = len(others) >= max(SIBLINGS - 1, 2 * len(odd) if len(odd) > 1 else 0)
        if not odd or len(odd) > MOST or not enough or any(line.box in pressed for line in others):
            continue
        if _are_alike(others) and all(_is_backed(line, others, regions) for line in odd):
            return odd
    return []


def _is_backed(line: TextLine, others: Sequence[TextLine], regions: Sequence[ColourRegion]) -> bool:
    """Return whether an item is written as clearly as others, on a low region of its own."""
    clear = _compare(line.ink, line.ground) >= CLEAR * min(_compare(other.ink, other.ground) for other in others)
    return clear and any(
        is_inside(line.box, region.box)
        and region.box.height <= LOW * line.box.height
        and line.ground is not None
        and compare_colours(region.colour, line.ground) <= OTHER
        and not any(is_inside(other.box, region.box) for other in others)
        for region in regions
    )


def _find_underlined(group: Sequence[TextLine], drawn: Sequence[ColourRegion]) -> list[TextLine]:
    """Return the one tab with a line of its own below it."""
    marked = [line for line in group if any(_underlines(each, line) for each in drawn)]
    return marked if len(marked) == 1 else []


def _underlines(region: ColourRegion, line: TextLine) -> bool:
    box, gap = region.box, region.box.y - line.box.bottom
    over = box.x <= line.box.x + 2 and box.right >= line.box.right - 2
    near = BELOW[0] * line.box.height <= gap <= BELOW[1] * line.box.height
    apart = line.ground is not None and compare_colours(region.colour, line.ground) >= DRAWN
    return over and near and apart and box.width <= line.box.width + 8 * line.box.height


def _are_alike(lines: Sequence[TextLine]) -> bool:
    """Return whether each has the colours of the next one, as on a gradient."""
    return all(
        _compare(one.ground, other.ground) <= SAME and _compare(one.ink, other.ink) <= ALIKE
        for one, other in pairwise(lines)
    )


def _compare(one: Colour | None, other: Colour | None) -> int:
    return compare_colours(one, other) if one and other else 0


def _find_disabled(lines: Sequence[TextLine], parts: Sequence[InterfacePart]) -> Iterator[ItemState]:
    """Yield the toggles that are paler than others of their kind, or whose texts are."""
    toggles = [part for part in parts if part.kind in TOGGLES]
    texts = [(part.kind, _measure_label(part, lines)) for part in toggles]
    every = [label for _, label in texts]
    for part, (kind, label) in zip(toggles, texts, strict=True):
        mates = [other for own, other in texts if own == kind]
        pale_text = _is_pale(label, mates, PALE) or _is_pale(label, every, FADED)
        like = max(other.contrast for other in toggles if (other.kind, other.checked) == (kind, part.checked))
        if pale_text or 0 < part.contrast <= PALE * like:
            yield ItemState("disabled", part.box)


def _measure_label(part: InterfacePart, lines: Sequence[TextLine]) -> int:
    line = lines[part.lines[0]] if part.lines else None
    return _compare(line.ink, line.ground) if line else 0


def _is_pale(label: int, others: Sequence[int], share: float) -> bool:
    """Return whether a text is paler than the strongest of others, if those are at least two."""
    strongest = max(others)
    return 0 < label <= share * strongest and sum(other >= 0.9 * strongest for other in others) >= 2
