"""All lines as one text: paragraphs, rows of tables, code with its indentation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby, pairwise
from statistics import median

from sightline.model.geometry import Box
from sightline.seers.local.order import em_of, holds
from sightline.seers.local.seen import Line, Table

APART = 1.3  # heights of a line: the blank above a new paragraph
MONO = 0.04  # what the width of a character may vary by where all are equally wide


def laid_out(lines: Sequence[Line], found: Sequence[Table] = (), plots: Sequence[Box] = ()) -> str:
    """All lines, each as it is, in the order they have: rows of tables as rows, code with its indentation.

    What stands in `plots` is written row by row and close together: labels all over a chart are no paragraphs.
    """
    if not lines:
        return ""
    em = em_of(lines)
    homes: dict[int, Table | Box] = {place: table for table in found for row in table.rows for c in row for place in c}
    for place, line in enumerate(lines):
        if plot := next((box for box in plots if holds(box, line.box)), None):
            homes[place] = plot
    written: list[str] = []
    told: list[Table] = []
    for home, places in groupby(range(len(lines)), key=homes.get):
        match home:
            case Table():
                written += [] if home in told else [_as_rows(lines, home)]
                told.append(home)
            case Box():
                rows = _level(lines, list(places))
                written.append("\n".join("  ".join(lines[place].text for place in row) for row in rows))
            case None:
                written += _written(lines, list(places), em)
    return "\n\n".join(written)


def _as_rows(lines: Sequence[Line], table: Table) -> str:
    return "\n".join(
        " | ".join(" ".join(lines[place].text for place in cell) for cell in row).rstrip() for row in table.rows
    )


def _level(lines: Sequence[Line], places: Sequence[int]) -> list[list[int]]:
    """Lines that stand behind each other, row by row."""
    rows: list[list[int]] = []
    for place in places:
        if rows and _goes_on(lines[rows[-1][-1]].box, lines[place].box):
            rows[-1].append(place)
        else:
            rows.append([place])
    return rows


def _written(lines: Sequence[Line], places: Sequence[int], em: float) -> list[str]:
    """Paragraphs of lines that follow each other."""
    blocks: list[list[list[int]]] = []
    for row in _level(lines, places):
        if blocks and _follows(lines, blocks[-1][-1], row, em):
            blocks[-1].append(row)
        else:
            blocks.append([row])
    return [text for block in blocks for text in _paragraphs(lines, block, em)]


def _goes_on(before: Box, box: Box) -> bool:
    """Whether a line stands to the right of the one before it."""
    level = abs(before.y + before.height / 2 - box.y - box.height / 2) <= 0.5 * min(before.height, box.height)
    return level and box.x >= before.right - 2


def _follows(lines: Sequence[Line], above: Sequence[int], row: Sequence[int], em: float) -> bool:
    """Whether a row stands right below another, as far down as a blank line or two of code."""
    before, box = lines[above[0]].box, lines[row[0]].box
    near = -0.5 * em <= box.y - before.bottom <= 3.5 * em
    return near and box.x < max(lines[place].box.right for place in above) and abs(box.x - before.x) < 40 * em


def _paragraphs(lines: Sequence[Line], block: Sequence[list[int]], em: float) -> list[str]:
    width = _letter(lines, block)
    if width is not None:
        return [_code(lines, block, width)]
    texts = ["  ".join(lines[place].text for place in row) for row in block]
    out = [texts[0]]
    for (above, row), text in zip(pairwise(block), texts[1:], strict=True):
        gap = lines[row[0]].box.y - max(lines[place].box.bottom for place in above)
        if gap > APART * em:
            out.append(text)
        else:
            out[-1] += f"\n{text}"
    return out


def _letter(lines: Sequence[Line], block: Sequence[list[int]]) -> float | None:
    """The width of a character where all are equally wide, as in code; None in any other text."""
    long = [lines[place] for row in block for place in row if len(lines[place].text) >= 8]
    if len(long) < 3 or len(block) < 3:
        return None
    widths = [line.box.width / (len(line.text) - 0.15) for line in long]  # its last character's blank is not ink
    width = median(widths)
    alike = sum(abs(each / width - 1) <= MONO for each in widths)
    return width if alike >= 0.75 * len(widths) else None


def _code(lines: Sequence[Line], block: Sequence[list[int]], width: float) -> str:
    """Each line at its own column, blank lines kept."""
    left = min(lines[place].box.x for row in block for place in row)
    steps = [lines[b[0]].box.bottom - lines[a[0]].box.bottom for a, b in pairwise(block)]
    pitch = max(1.0, min(median(steps), median([step for step in steps if step <= 1.5 * min(steps)])))
    out: list[str] = []
    for number, row in enumerate(block):
        text = ""
        for place in row:
            column = round((lines[place].box.x - left) / width)
            text += " " * max(column - len(text), 1 if text else 0) + lines[place].text
        out += [""] * (max(0, round(steps[number - 1] / pitch) - 1) if number else 0)
        out.append(text)
    return "\n".join(out)
