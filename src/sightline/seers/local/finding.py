"""Where something stands in what was read: by its words, by its label, by its row and column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sightline.model.geometry import Box
from sightline.seers.local.seen import Line, Part, PartKind, Seen, Table

_ALIKE = str.maketrans("oil", "011")  # letters that a reader takes for digits, and the other way round
_BRIEF = 4  # words that a value under its label has at most; more are a text under its heading
_LARGER = 1.1  # times the usual size of letters is a heading
_LONG = 8  # letters from which on a name is known with one of them lost
_PLAIN = 5  # letters from which on a word is looked for also where a reader has lost the spaces around it
_word = re.compile(r"[^\W_]+")
_aside = re.compile(r"\s*[(\[][^()\[\]]*[)\]]\s*|\s*\*\s*")
_sentence = re.compile(r"(?<=[.;!?])\s+")
_number_of = re.compile(r"\b(?:no|nr)(?:\.|$)|#", re.IGNORECASE)
_valued = re.compile(r"[\d$€£¥+\-−\"“'#(]")

_next_label = re.compile(r"(?<=\d)(?P<unit> ?[^\W\d]{1,3}|%)?,? +[A-Z]\w*:(?: .*)?$")  # behind a number and its unit
_opening = re.compile(r"[\[{(]+")  # of what goes on below

EXACT, LABEL, WITHIN = 0, 1, 2


def words(text: str) -> list[str]:
    return _word.findall(text.casefold())


def key(text: str) -> str:
    """A text as it is compared: spaces, signs and letters that look alike make no difference."""
    return "".join(words(text)).translate(_ALIKE)


def match(text: str, phrase: str) -> int | None:
    """How well a text that was read answers to a phrase; None: not at all."""
    wanted = key(phrase)
    if not wanted:
        return None
    if key(text) == wanted:
        return EXACT
    label = _number_of.sub(" number ", label_of(text))
    if key(label) == wanted or key(_aside.sub(" ", text)) == wanted:
        return LABEL
    if _one_letter_lost("".join(words(text)), "".join(words(phrase))):
        return LABEL
    if f" {' '.join(words(phrase))} " in f" {' '.join(words(text))} ":
        return WITHIN
    return WITHIN if len(wanted) >= _PLAIN and wanted in key(text) and " " in phrase.strip() else None


def _one_letter_lost(read: str, meant: str, least: int = _LONG) -> bool:
    """Whether a reader has lost one letter of a long name, or seen one twice. A figure less is another name."""
    short, long = sorted((read, meant), key=len)
    if len(short) < least or len(long) != len(short) + 1:
        return False
    at = next((n for n, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return long[at].isalpha() and short[at:] == long[at + 1 :]


def label_of(text: str) -> str:
    """What stands before a colon, or before a value; an aside is no part of it."""
    head, colon, _ = text.partition(":")
    if not colon:
        value = value_in(text)
        head = text.removesuffix(value) if value else text
    return _aside.sub(" ", head).strip(" :=–-")


def value_in(text: str) -> str:
    """The value within a line that has its label in front of it."""
    head, colon, rest = text.partition(":")
    if colon:
        return _after_colon(head, rest)
    pieces = text.split(" ")
    for at in range(1, len(pieces)):
        if _valued.match(pieces[at]) and re.search(r"\d", pieces[at]) and not pieces[at].startswith("("):
            return " ".join(pieces[at:])
    return ""


def _after_colon(head: str, rest: str) -> str:
    value = _next_label.sub(r"\g<unit>", rest.strip())
    value = value.removesuffix(",") if head.lstrip().startswith('"') else value  # a member of an object
    return "" if _opening.fullmatch(value) else value


def found(seen: Seen, phrase: str) -> list[Line]:
    """The lines that say something, those that say nothing else first."""
    ranked = [(rank, line) for line in seen.lines if (rank := match(line.text, phrase)) is not None]
    best = min((rank for rank, _ in ranked), default=EXACT)
    return [line for rank, line in ranked if rank == best]


def text_of(part: Part, seen: Seen) -> str:
    return " ".join(seen.lines[at].text for at in part.lines)


def unread_in(seen: Seen, box: Box) -> bool:
    """Whether something stands in a box that could not be read."""
    return any(_holds(box, each) for each in (*seen.unread, *seen.late, *seen.marked))


def _holds(box: Box, other: Box) -> bool:
    """Whether the middle of another box lies in a box."""
    x, y = other.x + other.width / 2, other.y + other.height / 2
    return box.x <= x <= box.right and box.y <= y <= box.bottom


def unread(seen: Seen) -> str:
    """What a count must add: something may be where nothing was read."""
    marks = [part.box for part in of_kind(seen, "check", "radio", "picture")]  # which are no text
    count = sum(not any(_holds(mark, box) for mark in marks) for box in (*seen.unread, *seen.late))
    places = f"in {count} place{'s' if count > 1 else ''} text could not be read" if count else ""
    return places or ("" if seen.searched else "not all of it was searched")


def of_kind(seen: Seen, *kinds: PartKind) -> list[Part]:
    return [part for part in seen.parts if part.kind in kinds]


def named(seen: Seen, phrase: str, *kinds: PartKind) -> list[Part]:
    """The parts in which, or beside which, something is said."""
    inside = [
        (rank, part) for part in of_kind(seen, *kinds) if (rank := match(text_of(part, seen), phrase)) is not None
    ]
    if inside:
        best = min(rank for rank, _ in inside)
        return [part for rank, part in inside if rank == best]
    beside = (_part_of(line, seen) for line in found(seen, phrase))
    return [part for part in beside if part and part.kind in kinds]


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
    return any(_one_letter_lost(word, last, _PLAIN) for line in seen.lines for word in words(line.text))


def _in_sentences(seen: Seen, label: str) -> Iterator[Value]:
    """A label and its value in the middle of a text."""
    for line in seen.lines:
        for sentence in _sentence.split(line.text):
            head, colon, rest = sentence.partition(":")
            if (value := _after_colon(head, rest)) and colon and key(_aside.sub(" ", head)) == key(label) != "":
                yield Value(value.removesuffix("."), line.box, line)


def _valued_by(line: Line, seen: Seen) -> Value | None:
    inline = value_in(line.text)
    if inline:
        return Value(inline, line.box, line)
    if part := _part_of(line, seen):
        return Value(text_of(part, seen), part.box, line, part)
    if _holder(line, seen, "button") or _is_cell(line, seen):
        return None  # what a button is called stands for nothing else, nor does a head for the next head
    right, below = _right_of(line, seen), _below(line, seen)
    heads = right and below and not _valued.match(right.text) and _valued.match(below.text)
    other = below if heads else right or below
    return Value(other.text, other.box, line) if other else None


def labels(seen: Seen) -> dict[Part, Line]:
    """The line that each field and each check box is labelled by, where there is one.

    A form has its labels all before its fields or all above them: where a field has lines at both places, the way of
    the most decides, else the nearest.
    """
    checks, fields = of_kind(seen, "check", "radio"), of_kind(seen, "field")
    near = {part: [line for line in _free(part, seen) if _beside(line, part, seen)] for part in (*checks, *fields)}
    over = {part: [line for line in _free(part, seen) if _above(line, part, fields)] for part in fields}
    before = sum(map(bool, near.values())) - sum(bool(near[part]) for part in checks)
    above = sum(map(bool, over.values()))
    found = {part: seen.lines[part.lines[0]] for part in checks if part.lines}
    for part in (*checks, *fields):
        ways = [near[part], over.get(part, [])]
        lines = ways[above > before] or ways[above < before] if above != before else [*ways[0], *ways[1]]
        if lines and part not in found:
            found[part] = min(lines, key=lambda line: _apart(line.box, part.box))
    return found


def _free(part: Part, seen: Seen) -> Iterator[Line]:
    """Lines with words that stand in no other part, unless that one is around this one as well."""
    others = [
        other for other in of_kind(seen, "field", "button", "bar", "panel", "check", "radio")
        if other.kind != "panel" or not _around(other.box, part.box)
    ]  # fmt: skip
    held = {at for other in (part, *others) for at in other.lines}
    return (line for at, line in enumerate(seen.lines) if at not in held and any(map(str.isalpha, line.text)))


def _around(outer: Box, inner: Box) -> bool:
    x, y = inner.x + inner.width / 2, inner.y + inner.height / 2
    return outer.x <= x <= outer.right and outer.y <= y <= outer.bottom


def _beside(line: Line, part: Part, seen: Seen) -> bool:
    """In its row, and nothing between: the label of a field stands before it, that of a check box mostly behind."""
    before, behind = part.box.x - line.box.right, line.box.x - part.box.right
    reach = 0 <= before <= 24 * line.box.height or (
        part.kind in ("check", "radio") and 0 <= behind <= 3 * line.box.height
    )
    return reach and in_row(line.box, part.box) and _nothing_between(line, part.box, seen)


def _above(line: Line, part: Part, fields: Sequence[Part]) -> bool:
    """Right over it; what is nearer to another field above is a word about that one."""
    height, gap = line.box.height, part.box.y - line.box.bottom
    if not (-2 <= gap <= 2 * height and part.box.x - height <= line.box.x < part.box.right):
        return False
    return not any(
        field is not part and 0 <= line.box.y - field.box.bottom < gap and _over(line.box, field.box)
        for field in fields
    )


def _apart(one: Box, other: Box) -> int:
    across = max(other.x - one.right, one.x - other.right, 0)
    return across + max(other.y - one.bottom, one.y - other.bottom, 0)


def _part_of(line: Line, seen: Seen) -> Part | None:
    """The field or the box that a line is the label of."""
    return next((part for part, label in labels(seen).items() if label is line), None)


def _nothing_between(line: Line, box: Box, seen: Seen) -> bool:
    left, right = min(line.box.right, box.right), max(line.box.x, box.x)
    return not any(in_row(line.box, each.box) and left <= each.box.x and each.box.right <= right for each in seen.lines)


def _holder(line: Line, seen: Seen, kind: PartKind) -> Part | None:
    own = seen.lines.index(line)
    return next((part for part in of_kind(seen, kind) if own in part.lines), None)


def tables(seen: Seen) -> list[Table]:
    """The tables, each with its heads: where they stand on a ground of their own, they are found apart."""
    return [_headed(_untitled(table), seen) for table in seen.tables]


def _untitled(table: Table) -> Table:
    """Without a first row of one cell over several columns: that is a title."""
    wide = max(map(len, table.rows), default=0) > 2 and len(table.rows) > 2
    return Table(table.box, table.rows[1:]) if wide and sum(map(bool, table.rows[0])) == 1 else table


def _headed(table: Table, seen: Seen) -> Table:
    held = {at for row in table.rows for cell in row for at in cell}
    if not table.rows or not any(_valued.match(cell_text(seen, cell)) for cell in table.rows[0]):
        return table  # its first row is no row of values
    height = max(seen.lines[at].box.height for at in held)
    above = [
        at for at, line in enumerate(seen.lines)
        if at not in held and 0 <= table.box.y - line.box.bottom <= 3 * height
        and table.box.x - height <= line.box.x < table.box.right
    ]  # fmt: skip
    last = max(above, key=lambda at: seen.lines[at].box.bottom, default=None)
    row = [at for at in above if last is not None and in_row(seen.lines[at].box, seen.lines[last].box)]
    heads = tuple(tuple(at for at in row if _over(seen.lines[at].box, span)) for span in _spans(table, seen))
    if sum(map(bool, heads)) < max(2, len(heads) / 2):
        return table
    return Table(around([table.box, *(seen.lines[at].box for at in row)]), (heads, *table.rows))


def _spans(table: Table, seen: Seen) -> list[Box]:
    """The rectangle around each column."""
    columns = range(max(map(len, table.rows)))
    cells = [[at for row in table.rows if column < len(row) for at in row[column]] for column in columns]
    return [around(seen.lines[at].box for at in cell) if cell else Box(0, 0, 0, 0) for cell in cells]


def _over(head: Box, column: Box) -> bool:
    return head.x < column.right and column.x < head.right


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
    around_it = [part.box for part in of_kind(seen, "panel") if _holds(part.box, line.box)]
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
        and (line.text.rstrip().endswith(":") or (_valued.match(each.text) and len(each.text.split()) <= _BRIEF))
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
        if each is not value and in_row(each.box, value.box) and _apart(each.box, value.box) <= near
    ]  # fmt: skip
    return all(any(head.x < box.right and box.x < head.right for head in level) for box in beside)


def in_row(one: Box, other: Box) -> bool:
    """Whether the middle of the lower one lies within the higher one."""
    small, large = (one, other) if one.height < other.height else (other, one)
    return large.y <= small.y + small.height / 2 <= large.bottom


def cell_text(seen: Seen, cell: Sequence[int]) -> str:
    return " ".join(seen.lines[at].text for at in cell)


def around(boxes: Iterable[Box]) -> Box:
    found = list(boxes)
    x, y = min(box.x for box in found), min(box.y for box in found)
    return Box(x, y, max(box.right for box in found) - x, max(box.bottom for box in found) - y)


@dataclass(frozen=True, slots=True)
class Titles:
    bar: Line | None  # in a title bar
    heading: Line | None  # larger than the rest beside bars and buttons,
    largest: bool = False  # and than everything else that was read


def titles(seen: Seen) -> Titles:
    bars = sorted((part for part in of_kind(seen, "bar") if part.lines), key=lambda part: part.box.y)
    heads = [seen.lines[part.lines[0]] for part in bars if _has_most_below(part.box, seen)]
    head = heading(seen)
    others = [letter_size(line) for line in seen.lines if line is not head]
    largest = head is not None and all(letter_size(head) > size for size in others)
    return Titles(heads[0] if heads else None, head, largest)


def _has_most_below(box: Box, seen: Seen) -> bool:
    """A bar at the foot of a window titles nothing."""
    level = [line.box for line in seen.lines if line.box.x < box.right and box.x < line.box.right]
    return sum(each.y >= box.bottom for each in level) > sum(each.bottom <= box.y for each in level)


def heading(seen: Seen) -> Line | None:
    """The largest line beside those of bars, buttons and cells, if clearly larger than most; of equals the first."""
    held = {at for part in of_kind(seen, "button", "field", "bar") for at in part.lines}
    cells = {at for table in seen.tables for row in table.rows[1:] for cell in row for at in cell}
    free = [at for at, line in enumerate(seen.lines) if at not in held and any(map(str.isalpha, line.text))]
    sizes = {at: letter_size(seen.lines[at]) for at in free}
    largest = max((at for at in free if at not in cells), key=sizes.__getitem__, default=None)
    if largest is None:
        return None
    usual = sorted(sizes.values())[len(sizes) // 2]
    return seen.lines[largest] if sizes[largest] >= usual * _LARGER or len(free) == 1 else None


def letter_size(line: Line) -> float:
    """The size of its letters, by the height of its ink: letters with a tail, or without a head, differ in that."""
    head = 0.74 if re.search(r"[^\W_acegmnopqrsuvwxyz]|[()\[\]{}/|]", line.text) else 0.54
    tail = 0.21 if re.search(r"[gjpqyQ,;()\[\]{}/|_]", line.text) else 0.0
    upright = line.box.height <= 2 * line.box.width or len(line.text) < 3
    return (line.box.height if upright else line.box.width) / (head + tail)


def within(seen: Seen, box: Box) -> Iterator[Line]:
    """The lines whose middle lies in a box."""
    yield from (line for line in seen.lines if _holds(box, line.box))
