"""What stands for a label: in its field, behind it in its line or its row, or below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sightline.model.geometry import Box
from sightline.seers.local.boxes import has_middle_of, in_row, overlap_across, spacing
from sightline.seers.local.cells import SUMS, grids
from sightline.seers.local.finding import of_kind, text_of, within
from sightline.seers.local.headed import tables
from sightline.seers.local.labelled import labels, part_of
from sightline.seers.local.phrases import (
    EXACT,
    LABEL,
    PLAIN,
    WITHIN,
    after_colon,
    begins_value,
    key,
    label_of,
    match,
    one_letter_lost,
    pairs,
    value_in,
    without_asides,
    words,
)
from sightline.seers.local.seen import Line, Part, PartKind, Seen

_BRIEF = 4  # words that a value under its label has at most; more are a text under its heading
_money = re.compile(r"[$€£¥]|\d[.,]\d\d(?!\d)")
_total = re.compile(
    r"(?:(?:grand|overall|final|invoice|order) )?total(?: (?:amount|sum|price|cost|due|payable|amount due|to pay))?"
    r"|amount (?:due|payable|to pay)|balance due"
)
_OWED = frozenset({"due", "payable", "pay"})
_sentence = re.compile(r"(?<=[.;!?])\s+")


@dataclass(frozen=True, slots=True)
class Value:
    text: str
    box: Box
    label: Line
    part: Part | None = None


def value_of(seen: Seen, label: str) -> Value | None:
    """What stands for a label: in its field, behind it in its line or its row, or below it."""
    lines = [line for line in _single(seen) if match(line.text, label) in (EXACT, LABEL)]
    for value in (*(_valued_by(line, seen) for line in lines), _in_pairs(seen, label)):
        if value:
            return value
    found = next(_in_sentences(seen, label), None) or _of_one_field(seen, label) or _of_one_sort(seen, label)
    return found or _of_totals(seen, label)


def _of_totals(seen: Seen, label: str) -> Value | None:
    """What is to be paid goes by several names; where those that are there stand for one amount, that is it."""
    if not _total.fullmatch(" ".join(words(label))):
        return None
    called = {line: words(label_of(line.text)) for line in _single(seen)}
    if any("total" in name and not _total.fullmatch(" ".join(name)) for name in called.values()):
        return None
    owed = not _OWED.isdisjoint(words(label))  # of a total some may be paid already
    lines = [
        line for line, name in called.items()
        if _total.fullmatch(" ".join(name)) and (not owed or not _OWED.isdisjoint(name))
    ]  # fmt: skip
    found = [value for value in (_valued_by(line, seen) for line in lines) if value and _money.search(value.text)]
    same = len({key(value.text) for value in found}) == 1
    return found[0] if same and len(found) == len(lines) else None


def _single(seen: Seen) -> list[Line]:
    """The lines with no more than one label and its value."""
    return [line for line in seen.lines if not pairs(line.text)]


def _in_pairs(seen: Seen, label: str) -> Value | None:
    """Of one of several labels in a line; what two lines say differently is not known."""
    there = [(line, *pair) for line in seen.lines for pair in pairs(line.text)]
    named = [each for each in there if key(each[1]) == key(label)] or [
        each for each in there if _ends_in(each[1], words(label)) and not _another_alike(seen, label)
    ]
    return Value(named[0][2], named[0][0].box, named[0][0]) if len({key(text) for _, _, text in named}) == 1 else None


def _of_one_sort(seen: Seen, label: str) -> Value | None:
    """Of the one label that ends in these words: "total" asks for the "Grand total", not for "Total items"."""
    asked = words(label)
    lines = [line for line in _single(seen) if _is_label(label_of(line.text)) and _ends_in(label_of(line.text), asked)]
    if _another_alike(seen, label):
        return None
    found = [value for value in (_valued_by(line, seen) for line in lines) if value and value.text != value.label.text]
    return found[0] if len(lines) == len(found) == 1 else None


def _of_one_field(seen: Seen, label: str) -> Value | None:
    """Of the one field whose label has these words among others: "Email" asks for the "Email address"."""
    named = [(part, line) for part, line in labels(seen).items() if match(line.text, label) == WITHIN]
    if _another_alike(seen, label) or len(named) != 1 or named[0][0].kind != "field":
        return None
    part, line = named[0]
    return Value(text_of(part, seen), part.box, line, part)


def _is_label(text: str) -> bool:
    """A few words, none of them a number or a word of sentences."""
    sentence = re.search(r"[\d=*()\[\]{}]|\b(?:an?|the|is|are|your?|to|of|in|for)\b", text.casefold())
    return len(words(text)) <= _BRIEF and sentence is None


def _ends_in(text: str, asked: list[str]) -> bool:
    return bool(asked) and words(text)[-len(asked) :] == asked


def _another_alike(seen: Seen, label: str) -> bool:
    """Whether a line has the last word of a label but for one letter: what a reader saw wrongly may be meant too."""
    last = "".join(words(label)[-1:])
    return any(one_letter_lost(word, last, PLAIN) for line in seen.lines for word in words(line.text))


def _in_sentences(seen: Seen, label: str) -> Iterator[Value]:
    """A label and its value in the middle of a text."""
    for line in seen.lines:
        for sentence in _sentence.split(line.text):
            head, colon, rest = sentence.partition(":")
            if (value := after_colon(head, rest)) and colon and key(without_asides(head)) == key(label) != "":
                yield Value(value.removesuffix("."), line.box, line)


def _valued_by(line: Line, seen: Seen) -> Value | None:
    inline = value_in(line.text)
    if inline:
        return Value(inline, line.box, line)
    if part := part_of(line, seen):
        return Value(text_of(part, seen), part.box, line, part)
    if _holder(line, seen, "button"):
        return None  # what a button is called stands for nothing else
    if _is_cell(line, seen):
        return _in_its_row(line, seen)
    right, below = _right_of(line, seen), _below(line, seen)
    heads = right and below and not begins_value(right.text) and begins_value(below.text)
    other = below if heads else right or below
    return Value(other.text, other.box, line) if other else None


def _holder(line: Line, seen: Seen, kind: PartKind) -> Part | None:
    own = seen.lines.index(line)
    return next((part for part in of_kind(seen, kind) if own in part.lines), None)


def _is_cell(line: Line, seen: Seen) -> bool:
    """Of a table with more columns than a name and a value."""
    at = seen.lines.index(line)
    wide = (table for table in tables(seen) if max(map(len, table.rows), default=0) > 2)
    return any(at in cell for table in wide for row in table.rows for cell in row)


def _in_its_row(line: Line, seen: Seen) -> Value | None:
    """The only other cell of a row, where it has a number; in a row of sums the only one with money, if it is last."""
    for grid in (grid for grid in grids(seen) if grid.width > 2):
        for at in range(1, len(grid.cells)):  # a head stands for no other head
            texts, boxes = grid.cells[at], grid.boxes[at]
            filled = [place for place, text in enumerate(texts) if text]
            if not filled or boxes[filled[0]] != line.box or any(row == at for row, _ in grid.unread):
                continue
            money = [place for place in filled[1:] if _money.search(texts[place])]
            if len(filled) > 2 and not (SUMS & set(words(line.text)) and money == filled[-1:]):
                return None
            box = boxes[filled[-1]]
            if len(filled) > 1 and box and re.search(r"\d", texts[filled[-1]]):
                return Value(texts[filled[-1]], box, line)
    return None


def _right_of(line: Line, seen: Seen) -> Line | None:
    """The only other text of its row, where it is a number or stands in a column of such: words of a menu do not."""
    row = [each for each in _same_panel(line, seen) if each is not line and in_row(line.box, each.box)]
    if len(row) != 1 or row[0].box.x <= line.box.right or _holder(row[0], seen, "button"):
        return None
    return row[0] if line.text.endswith(":") or _in_columns(line, row[0], seen) else None


def _in_columns(label: Line, value: Line, seen: Seen) -> bool:
    """Whether another row has a label under this one, and a value under that."""
    slack = label.box.height
    for other in seen.lines:
        level = abs(other.box.x - label.box.x) <= slack or abs(other.box.right - label.box.right) <= slack
        if other is not label and level:
            beside = (each for each in seen.lines if each.box.x > other.box.right and in_row(other.box, each.box))
            if any(
                abs(each.box.x - value.box.x) <= slack or abs(each.box.right - value.box.right) <= slack
                for each in beside
            ):
                return True
    return False


def _same_panel(line: Line, seen: Seen) -> list[Line]:
    """The lines in the smallest panel around a line."""
    around_it = [part.box for part in of_kind(seen, "panel") if has_middle_of(part.box, line.box)]
    whole = Box(0, 0, seen.size.width, seen.size.height)
    return list(within(seen, min(around_it, key=lambda box: box.size.pixels, default=whole)))


def _below(line: Line, seen: Seen) -> Line | None:
    """A value under its label; words under words are more likely a text under its heading."""
    height = line.box.height
    under = [
        each
        for each in seen.lines
        if 0 <= each.box.y - line.box.bottom <= 1.5 * max(height, each.box.height)
        and abs(each.box.x - line.box.x) <= height
        and (line.text.rstrip().endswith(":") or (begins_value(each.text) and len(each.text.split()) <= _BRIEF))
        and _unlabelled(each, line, seen)
    ]
    return min(under, key=lambda each: each.box.y, default=None)


def _unlabelled(value: Line, label: Line, seen: Seen) -> bool:
    """Whether a line has no label but the one above it: none within it, and none beside it in its row."""
    if re.match(r"[^:]*[^\W\d_][^:]*:(?:\s|$)", value.text):
        return False
    near, level = 12 * label.box.height, [each.box for each in seen.lines if in_row(each.box, label.box)]
    beside = [
        each.box for each in _same_panel(value, seen)
        if each is not value and in_row(each.box, value.box) and spacing(each.box, value.box) <= near
    ]  # fmt: skip
    return all(any(overlap_across(head, box) for head in level) for box in beside)
