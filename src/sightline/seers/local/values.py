"""What stands for a label: in its field, behind it in its line or its row, or below it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sightline.model.geometry import Box
from sightline.seers.local.boxes import has_middle_of, in_row, overlap_across, spacing
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
    value_in,
    without_asides,
    words,
)
from sightline.seers.local.seen import Line, Part, PartKind, Seen

_BRIEF = 4  # words that a value under its label has at most; more are a text under its heading
_sentence = re.compile(r"(?<=[.;!?])\s+")


@dataclass(frozen=True, slots=True)
class Value:
    text: str
    box: Box
    label: Line
    part: Part | None = None


def value_of(seen: Seen, label: str) -> Value | None:
    """What stands for a label: in its field, behind it in its line or its row, or below it."""
    lines = [line for line in seen.lines if match(line.text, label) in (EXACT, LABEL)]
    for value in (_valued_by(line, seen) for line in lines):
        if value:
            return value
    return next(_in_sentences(seen, label), None) or _of_one_field(seen, label) or _of_one_sort(seen, label)


def _of_one_sort(seen: Seen, label: str) -> Value | None:
    """Of the one label that ends in these words: "total" asks for the "Grand total", not for "Total items"."""
    asked = words(label)
    lines = [line for line in seen.lines if _is_label(label_of(line.text)) and _ends_in(label_of(line.text), asked)]
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
    if _holder(line, seen, "button") or _is_cell(line, seen):
        return None  # what a button is called stands for nothing else, nor does a head for the next head
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
        if other is not label and abs(other.box.x - label.box.x) <= slack:
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
