"""Trees: short rows at equal distances, each as far to the right as it is deep: lists of files, nested menus."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from statistics import median

from sightline.reader.page_text import measure_line_height
from sightline.reader.reading import TextLine

ROWS = 4  # of a tree, at least
LENGTH = 30  # characters of most rows, at most
_is_program_row = re.compile(r".*[{\[(,;]|[}\])].*").fullmatch  # opens, continues or ends something
EVEN = 0.2  # share of the distance of two rows by which it may differ
# In heights of a line.
STEP = (0.6, 3.5)  # from one level to the next
SHIFT = 0.25  # within a level
EQUAL = 1.5  # the widest step from level to level is at most this many times the narrowest

Rows = Sequence[list[int]]  # the lines of each row


def split_trees(lines: Sequence[TextLine], block: Rows) -> Iterator[tuple[Rows, list[int]]]:
    """Yield the rows of a block that are trees, with the level of each, and other rows with no levels."""
    runs = [(run, find_levels(lines, run)) for run in _split_at_steps(lines, block)]
    for is_tree, group in groupby(runs, key=lambda each: bool(each[1])):
        if is_tree:
            yield from group
        else:
            yield [row for run, _ in group for row in run], []


def _split_at_steps(lines: Sequence[TextLine], block: Rows) -> list[list[list[int]]]:
    """Return runs of rows that follow each other at equal distances."""
    middles = [lines[row[0]].box.y + lines[row[0]].box.height / 2 for row in block]
    runs: list[list[int]] = []
    for at, middle in enumerate(middles):
        if not runs or len(runs[-1]) == 1:
            even = bool(runs)
        else:
            before = max(1.0, middles[at - 1] - middles[at - 2])
            even = abs((middle - middles[at - 1]) / before - 1) <= EVEN
        if even:
            runs[-1].append(at)
        elif runs and len(runs[-1]) == 2:
            runs[-1:] = [runs[-1][:1], [runs[-1][1], at]]
        else:
            runs.append([at])
    return [[block[at] for at in run] for run in runs]


def find_levels(lines: Sequence[TextLine], rows: Rows) -> list[int]:
    """Return the level of each row by where it begins; nothing if the rows are no tree, such as those of a program.

    A row may be one level deeper than the row above, at the same level, or at any that is less deep. Rows of two levels
    that take turns are the labels of a form and what is in its fields.
    """
    if len(rows) < ROWS or len({len(row) for row in rows}) > 1:
        return []
    if 3 * sum(bool(_is_program_row(lines[row[-1]].text.strip())) for row in rows) >= len(rows):
        return []
    if median(sum(len(lines[at].text) for at in row) for row in rows) > LENGTH:
        return []
    em, starts = measure_line_height(lines[row[0]] for row in rows), [lines[row[0]].box.x for row in rows]
    edges: list[list[int]] = []
    for start in sorted(starts):
        if edges and start - edges[-1][0] <= SHIFT * em:
            edges[-1].append(start)
        else:
            edges.append([start])
    steps = [right[0] - left[0] for left, right in pairwise(edges)]
    if not steps or min(steps) < STEP[0] * em or max(steps) > min(STEP[1] * em, EQUAL * min(steps)):
        return []
    levels = [next(at for at, edge in enumerate(edges) if start <= edge[-1]) for start in starts]
    grows = levels[0] == 0 and all(below <= above + 1 for above, below in pairwise(levels))
    takes_turns = all(level == at % 2 for at, level in enumerate(levels))
    return levels if grows and not takes_turns and 2 * len(edges) <= len(rows) else []
