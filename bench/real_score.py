"""Compare what was read of a picture with what the DOM says; every count is summed over the pictures of a part."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np

from sightline.model.geometry import Box
from sightline.reader.describe import transcribe
from sightline.reader.headings import find_titles
from sightline.reader.page_text import LayoutItem, group_rows
from sightline.reader.reading import ImageReading, InterfacePart, Table, TextLine
from sightline.reader.rectangles import contains_centre, enclose_boxes
from sightline.reader.report import ReadImage, report_images
from sightline.reader.tables import add_table_heads

Truth = dict[str, Any]
TOGGLES = ("check", "radio", "switch")
SAME = 0.5  # overlap of two boxes that are the same
CELL = 0.8  # similarity of two texts in a cell
CODE = 0.85  # similarity of two lines of code
EDITOR = 0.6  # share of the words of a page that are in an editor which fills it
VALUE, VALUES = 0.02, 0.6  # a value is right within this share of their range, a chart if this share of its values is


@dataclass(frozen=True)
class Letter:
    """A character that was read, and where."""

    text: str
    x: float
    y: float
    line: int


def score_picture(truth: Truth, reading: ImageReading) -> Counter[str]:
    """Return counts by name; `x of` counts what is there, `x said` what was claimed."""
    if truth["kind"] == "photograph":
        return Counter({"photographs": 1, "photographs, parts said": len(reading.parts) - _count(reading, "picture")
                        + len(reading.tables) + len(reading.charts)})  # fmt: skip
    counts: Counter[str] = Counter(pictures=1)
    truth = {**truth, "words": join_pieces(truth["words"])}
    for part in (_score_text, _score_order, _score_tables, score_controls, _score_charts, _score_rest, _score_states,
                 _score_code, _score_description):  # fmt: skip
        counts += part(truth, reading)
    return counts


def join_pieces(words: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join pieces of words, which nothing separates: an editor colours them one by one, and prose has code in it."""
    joined: list[dict[str, Any]] = []
    for word in words:
        last = joined[-1] if joined else None
        left, top, right, bottom = word["box"]
        shared = min(last["box"][3], bottom) - max(last["box"][1], top) if last else 0
        near = last is not None and last["block"] == word["block"] and shared >= 0.5 * (bottom - top)
        if near and last is not None and -1 <= left - last["box"][2] <= 0.08 * (bottom - top):
            box = [last["box"][0], min(last["box"][1], top), right, max(last["box"][3], bottom)]
            joined[-1] = {**last, "text": last["text"] + word["text"], "box": box}
        else:
            joined.append(word)
    return joined


def _count(reading: ImageReading, kind: str) -> int:
    return sum(part.kind == kind for part in reading.parts)


def to_box(edges: Sequence[float]) -> Box:
    left, top, right, bottom = map(round, edges)
    return Box(left, top, max(1, right - left), max(1, bottom - top))


def measure_overlap(one: Box, other: Box) -> float:
    """Return the shared area of two boxes as a share of what both cover."""
    shared = _measure_shared(one, other)
    return shared / (one.width * one.height + other.width * other.height - shared)


def _measure_shared(one: Box, other: Box) -> int:
    wide = min(one.right, other.right) - max(one.x, other.x)
    high = min(one.bottom, other.bottom) - max(one.y, other.y)
    return max(0, wide) * max(0, high)


def _list_letters(lines: Sequence[TextLine]) -> list[Letter]:
    return [
        Letter(
            letter, line.box.x + line.box.width * (at + 0.5) / len(line.text), line.box.y + line.box.height / 2, place
        )
        for place, line in enumerate(lines)
        for at, letter in enumerate(line.text)
        if not letter.isspace()
    ]


def _join_lines(words: Sequence[dict[str, Any]]) -> list[tuple[str, Box]]:
    """Return the words of one block that are in one row, joined."""
    rows: list[tuple[str, list[Box], int]] = []
    for word in words:
        box = to_box(word["box"])
        last = rows[-1] if rows else None
        if (
            last
            and last[2] == word["block"]
            and abs(last[1][-1].y - box.y) <= 0.4 * box.height
            and 0 <= box.x - last[1][-1].right + 2 < box.height
        ):
            rows[-1] = (f"{last[0]} {word['text']}", [*last[1], box], last[2])
        else:
            rows.append((word["text"], [box], word["block"]))
    return [(text, enclose_boxes(boxes)) for text, boxes, _ in rows]


def _score_text(truth: Truth, reading: ImageReading) -> Counter[str]:
    counts: Counter[str] = Counter()
    rows = _join_lines(truth["words"])
    unknown = [to_box(each["box"]) for each in truth["controls"] if each["kind"] in ("field", "input")]
    unknown += [to_box(box) for box in (*truth["pictures"], *truth.get("unknown", ()))]
    letters = _list_letters(reading.lines)
    by_line: dict[int, list[Letter]] = {}
    for letter in letters:
        by_line.setdefault(letter.line, []).append(letter)
    touching = [[at for at, line in enumerate(reading.lines) if _is_in_row(line.box, box)] for _, box in rows]
    for group in _group_rows(touching):
        wanted = "".join(rows[at][0] for at in sorted(group, key=lambda at: rows[at][1].x)).replace(" ", "")
        found = sorted({place for at in group for place in touching[at]}, key=lambda place: reading.lines[place].box.x)
        said = [letter for place in found for letter in by_line.get(place, ())]
        whole, known = (
            "".join(letter.text for letter in each)
            for each in (said, (letter for letter in said if not _is_unknown(letter, unknown)))
        )
        counts["characters of"] += len(wanted)
        counts["characters"] += max(0, len(wanted) - min(_count_edits(wanted, each) for each in (whole, known)))
    used = {at for at, each in enumerate(letters) if any(_is_near(each, box) for _, box in rows)}
    counts["characters said"] = len(letters)
    counts["characters invented"] = sum(
        at not in used and not _is_unknown(each, unknown) and not _is_at_edge(each, reading)
        for at, each in enumerate(letters)
    )
    tokens: dict[str, list[Box]] = {}
    for line in reading.lines:
        for token in line.text.split():
            tokens.setdefault(token, []).append(line.box)
    for word in truth["words"]:
        box = to_box(word["box"])
        counts["words of"] += 1
        counts["words"] += any(_measure_shared(box, found) for found in tokens.get(word["text"], ()))
    return counts


def _is_unknown(letter: Letter, unknown: Sequence[Box]) -> bool:
    """Return whether a character is where the DOM doesn't tell what is drawn."""
    return any(contains_centre(box, Box(int(letter.x), int(letter.y), 1, 1)) for box in unknown)


def _is_in_row(line: Box, row: Box) -> bool:
    """Return whether a line may say what is in a row; one of several vertical words is beside the line's middle."""
    if row.height > 1.5 * row.width and line.height > 1.5 * line.width:
        middle = line.x + line.width / 2
        return row.x <= middle <= row.right and min(line.bottom, row.bottom) - max(line.y, row.y) > 0.2 * row.width
    middle = line.y + line.height / 2
    return row.y <= middle <= row.bottom and min(line.right, row.right) - max(line.x, row.x) > 0.2 * row.height


def _is_near(letter: Letter, box: Box) -> bool:
    slack = 0.3 * box.height
    return box.y - slack <= letter.y <= box.bottom + slack and box.x - 2 * slack <= letter.x <= box.right + 2 * slack


def _group_rows(touching: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the rows that share a line that was read: a line may go over two columns."""
    groups: list[tuple[list[int], set[int]]] = []
    for at, lines in enumerate(touching):
        same = [group for group in groups if group[1] & set(lines)]
        groups = [group for group in groups if group not in same]
        groups.append(([*(row for group in same for row in group[0]), at], set(lines).union(*(g[1] for g in same))))
    return [rows for rows, _ in groups]


def _is_at_edge(letter: Letter, reading: ImageReading) -> bool:
    """Return whether a character is at the edge of the picture, where the DOM's words are cut off."""
    return letter.y < 40 or letter.y > reading.size.height - 40 or letter.x > reading.size.width - 60


def _count_edits(one: str, other: str) -> int:
    row = np.arange(len(other) + 1)
    letters = np.array(list(other)) if other else np.array([], dtype="<U1")
    for at, letter in enumerate(one, 1):
        step = np.minimum(row[1:] + 1, row[:-1] + (letters != letter))
        new = np.concatenate([[at], step])
        row = np.minimum.accumulate(new - np.arange(len(new))) + np.arange(len(new))
    return int(row[-1])


def order_words(truth: Truth) -> list[dict[str, Any]]:
    """Return the words in reading order, where the DOM has one: drawings and canvases have none.

    An editor that fills the page writes its line numbers and its lines in an order of its own: it is read by rows.
    """
    drawn = [to_box(box) for box in truth["pictures"]]
    words = [word for word in truth["words"] if not any(contains_centre(box, to_box(word["box"])) for box in drawn)]
    numbered = [line for block in truth["code"] if block["numbers"] for line in block["lines"]]
    if sum(len(line["text"].split()) for line in numbered) < EDITOR * len(words) or not numbered:
        return words
    rows = group_rows(LayoutItem(to_box(word["box"]), (at,), 0) for at, word in enumerate(words))
    return [words[item.lines[0]] for row in rows for item in row]


def _score_order(truth: Truth, reading: ImageReading) -> Counter[str]:
    """Count pairs of words in reading order, and words that follow each other in their block."""
    places: list[float | None] = []
    words = order_words(truth)
    for word in words:
        box = to_box(word["box"])
        home = next((at for at, line in enumerate(reading.lines) if contains_centre(line.box, box)), None)
        places.append(None if home is None else home + (box.x - reading.lines[home].box.x) / 1e5)
    known = np.array([place for place in places if place is not None])
    if len(known) < 2:
        return Counter()
    signs = np.sign(known[None, :] - known[:, None])[np.triu_indices(len(known), 1)]
    ranks = {
        at: rank
        for rank, at in enumerate(
            sorted((at for at, p in enumerate(places) if p is not None), key=lambda at: places[at] or 0.0)
        )
    }
    pairs = [
        (at, at + 1) for at, (one, other) in enumerate(pairwise(words))
        if one["block"] == other["block"] and at in ranks and at + 1 in ranks
    ]  # fmt: skip
    return Counter({
        "tau of": 1000, "tau": round(1000 * float(signs.mean())),
        "neighbours of": len(pairs), "neighbours": sum(ranks[b] == ranks[a] + 1 for a, b in pairs),
    })  # fmt: skip


def _score_tables(truth: Truth, reading: ImageReading) -> Counter[str]:
    counts: Counter[str] = Counter()
    found = add_table_heads(reading)
    pictures = [to_box(box) for box in truth["pictures"]]
    for table in truth["tables"]:
        if not table["asked"]:
            continue
        boxes = [to_box(table["box"]), *_find_text_box(table, truth["words"])]
        best = max(found, key=lambda each: _measure_best(each.box, boxes), default=None)
        counts["tables of"] += 1
        cells = [
            (column, text, to_box(edges)) for row in table["rows"] for column, (text, edges) in enumerate(row) if text
        ]
        counts["cells of"] += len(cells)
        if best and _measure_best(best.box, boxes) >= SAME:
            counts["tables"] += 1
            counts["cells"] += _count_kept_cells(cells, best, reading)
    known = [to_box(table["box"]) for table in truth["tables"]] + pictures
    counts["tables said"] = len(found)
    counts["tables false"] = sum(
        sum(_measure_shared(table.box, box) for box in known) < 0.4 * table.box.width * table.box.height
        for table in found
    )  # fmt: skip
    return counts


def _find_text_box(table: dict[str, Any], words: Sequence[dict[str, Any]]) -> list[Box]:
    """Return the box around the words of a table: where nothing is drawn, nobody sees how wide its cells are."""
    whole = to_box(table["box"])
    inside = [box for word in words if contains_centre(whole, box := to_box(word["box"]))]
    return [enclose_boxes(inside)] if inside else []


def _measure_best(found: Box, boxes: Sequence[Box]) -> float:
    return max(measure_overlap(found, box) for box in boxes)


def _count_kept_cells(cells: list[tuple[int, str, Box]], table: Table, reading: ImageReading) -> int:
    """Count the cells whose text is alone in a cell, in the column of most others of its column."""
    hits: list[tuple[int, int]] = []
    for column, text, box in cells:
        for row in table.rows:
            for at, cell in enumerate(row):
                if any(contains_centre(box, reading.lines[place].box) for place in cell):
                    said = "".join(reading.lines[place].text for place in cell)
                    if is_similar(text, said, CELL):
                        hits.append((column, at))
    votes = {column: Counter(at for c, at in hits if c == column).most_common(1)[0][0] for column, _ in hits}
    return min(len(cells), sum(votes[column] == at for column, at in hits))


def is_similar(one: str, other: str, share: float) -> bool:
    a, b = re.sub(r"\s", "", one), re.sub(r"\s", "", other)
    if a == b or 2 * min(len(a), len(b)) < share * (len(a) + len(b)):  # the most that can be equal
        return a == b
    return SequenceMatcher(None, a, b, autojunk=False).ratio() >= share


def score_controls(truth: Truth, reading: ImageReading) -> Counter[str]:
    counts: Counter[str] = Counter()
    pictures = [to_box(box) for box in truth["pictures"]]
    for kind, also in (("button", "pressable"), ("field", "input"), *((kind, "") for kind in TOGGLES)):
        there = [each for each in truth["controls"] if each["kind"] == kind]
        right = [each for each in truth["controls"] if each["kind"] in (kind, also)]
        said = [
            part
            for part in reading.parts
            if part.kind == kind and not any(contains_centre(box, part.box) for box in pictures)
        ]
        pairs = [(each, part) for each in there if (part := next((p for p in said if _is_same(each, p)), None))]
        counts[f"{kind} of"] += len(there)
        counts[kind] += len(pairs)
        counts[f"{kind} said"] += len(said)
        counts[f"{kind} said rightly"] += sum(any(_is_same(each, part) for each in right) for part in said)
        if kind in TOGGLES:
            counts[f"{kind} state of"] += len(pairs)
            counts[f"{kind} state"] += sum(part.checked == each["checked"] for each, part in pairs)
    return counts


def _is_same(control: dict[str, Any], part: InterfacePart) -> bool:
    boxes = [to_box(control[key]) for key in ("box", "inner") if key in control]
    if control["kind"] in TOGGLES:
        return contains_centre(part.box, boxes[0]) or (
            contains_centre(boxes[0], part.box) and part.box.width < 3 * boxes[0].width
        )
    return any(measure_overlap(box, part.box) >= SAME for box in boxes)


def _score_charts(truth: Truth, reading: ImageReading) -> Counter[str]:
    counts: Counter[str] = Counter()
    asked = [chart for chart in truth["charts"] if chart["kind"] in ("bar", "line")]
    counts["charts of"] = len(asked)
    counts["charts there"] = len(truth["charts"])
    for chart in asked:
        box = to_box(chart["box"])
        counts["charts"] += any(
            said.kind == chart["kind"] and contains_centre(box, said.box) for said in reading.charts
        )
    for said in reading.charts:
        near = next((c for c in truth["charts"] if contains_centre(to_box(c["box"]), said.box)), None)
        right = (
            near is not None
            and near["kind"] == said.kind
            and _has_right_values([m.value for m in said.marks], near["values"])
        )
        counts["charts said"] += 1
        counts["charts said wrongly"] += not right
    return counts


def _has_right_values(said: Sequence[float], known: Sequence[float]) -> bool:
    if not said or not known:
        return not said
    reach = VALUE * (max(*known, 0) - min(*known, 0))
    return sum(any(abs(value - each) <= reach for each in known) for value in said) >= VALUES * len(said)


def _score_rest(truth: Truth, reading: ImageReading) -> Counter[str]:
    """Count title bars, which no page has, icons read as letters, and headings."""
    words = [to_box(word["box"]) for word in truth["words"]]
    fields = [to_box(each["box"]) for each in truth["controls"] if each["kind"] in ("field", "input")]
    icons = [to_box(box) for box in truth["icons"]]
    letters = [
        line for line in reading.lines
        if any(contains_centre(icon, line.box) for icon in icons)
        and not any(_measure_shared(word, line.box) for word in words)
        and not any(contains_centre(box, line.box) for box in fields)
    ]  # fmt: skip
    return Counter({"title bars": int(find_titles(reading).bar is not None), "icons as letters": len(letters)})


def _score_states(truth: Truth, reading: ImageReading) -> Counter[str]:
    counts: Counter[str] = Counter()
    said = [(state.kind, state.box) for state in reading.states]
    for kind in ("selected", "disabled"):
        if kind == "selected" and truth["name"].startswith("textual "):
            continue  # the app doesn't say which of its items is selected
        there = [to_box(each["box"]) for each in truth["states"] if each["kind"] == kind and each["tag"] != "INPUT"]
        if kind == "disabled":
            there += [
                to_box(each["box"]) for each in truth["controls"] if each["disabled"] and each["kind"] != "pressable"
            ]
        claims = [box for name, box in said if name == kind]
        counts[f"{kind} of"] += len(there)
        counts[kind] += sum(
            any(contains_centre(each, box) or contains_centre(box, each) for box in claims) for each in there
        )
        counts[f"{kind} said"] += len(claims)
        counts[f"{kind} said rightly"] += sum(
            any(contains_centre(each, box) or contains_centre(box, each) for each in there) for box in claims
        )
    return counts


def _score_description(_: Truth, reading: ImageReading) -> Counter[str]:
    """Count the characters of the description, and those of its text."""
    text = report_images("", None, [ReadImage(reading, np.empty((0, 0, 3), np.uint8))]).text
    return Counter({"description": len(text), "description, text": len(transcribe(reading))})


def _score_code(truth: Truth, reading: ImageReading) -> Counter[str]:
    """Count lines of code at their column, and those after their number."""
    counts: Counter[str] = Counter()
    written = [re.sub("[‹›]", "", line) for line in reading.text.splitlines()]
    for block in truth["code"]:
        asked = [line for line in block["lines"] if len(line["text"].strip()) >= 3]
        found = list(_find_code_lines(asked, written))
        columns = [column - _measure_indent(line["text"]) for line, column, _ in found]
        offset = median(columns) if columns else 0
        counts["code lines of"] += len(asked)
        counts["code lines"] += sum(
            column - _measure_indent(line["text"]) == offset
            and (not block["numbers"] or before.strip() == line["number"])
            for line, column, before in found
        )  # fmt: skip
    return counts


def _find_code_lines(
    asked: Sequence[dict[str, Any]], written: Sequence[str]
) -> Iterator[tuple[dict[str, Any], int, str]]:
    """Yield each line with the column at which it was written, and what is before it.

    As many lines as possible are found in their order: one that was not read must not take the place of others.
    """
    matches = [[_match_code_line(line, text) for text in written] for line in asked]
    best = np.zeros((len(asked) + 1, len(written) + 1), dtype=int)
    for row in range(len(asked) - 1, -1, -1):
        for at in range(len(written) - 1, -1, -1):
            taken = 0 if matches[row][at] is None else 1 + best[row + 1, at + 1]
            best[row, at] = max(taken, best[row + 1, at], best[row, at + 1])
    row = at = 0
    while row < len(asked) and at < len(written):
        if (match := matches[row][at]) is not None and best[row, at] == 1 + best[row + 1, at + 1]:
            yield asked[row], len(match), match
            row, at = row + 1, at + 1
        elif best[row, at] == best[row, at + 1]:
            at += 1
        else:
            row += 1


def _match_code_line(line: dict[str, Any], written: str) -> str | None:
    """Return what is before a line of code in a line that was written; None if that is another one."""
    match = re.match(r"(\s*(?:\d+\s+)?)(.*)" if line.get("number") else r"(\s*)(.*)", written)
    return match[1] if match and is_similar(line["text"].strip(), match[2], CODE) else None


def _measure_indent(text: str) -> int:
    return len(text) - len(text.lstrip())
