"""A description of what was read: every text verbatim in reading order, then what stands where."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sightline.model.asking import Spot
from sightline.model.geometry import Box
from sightline.seers.local.boxes import corners
from sightline.seers.local.colours import name as colour_name
from sightline.seers.local.figures import mark_name, number, told
from sightline.seers.local.finding import of_kind, text_of, unread_in
from sightline.seers.local.headed import tables
from sightline.seers.local.hints import PALE_TEXT, is_hint
from sightline.seers.local.hues import hued
from sightline.seers.local.labelled import labels
from sightline.seers.local.seen import Chart, Colour, Line, Part, Seen
from sightline.seers.local.subjects import Said
from sightline.seers.local.titles import titles

NOTE = "Only text and shapes were read, on this machine: what pictures or icons show is not described."
_PLAIN = frozenset({"black", "dark grey", "grey", "light grey", "white"})
_MOST = 40  # things of one kind that are told one by one
_SURE, _LONG = 0.97, 4  # a line that was read less surely may be wrong; one of fewer letters says nothing by that
_GLYPH = 1.3  # times as wide as it is high: a single letter is no wider
_LEAST = 0.6  # nor is one right for sure with a letter that was hardly told from another


def describe(seen: Seen) -> Said:
    """Words for somebody who cannot see it, and a place for every line."""
    text = seen.text or "\n".join(line.text for line in seen.lines) or _no_text(seen)
    layout = "\n".join(f"- {sentence}" for sentence in _layout(seen))
    return Said(f"{text}\n\nWhat stands where:\n{layout}\n\n{NOTE}", spots(seen))


def spots(seen: Seen) -> tuple[Spot, ...]:
    """Every line; and every code, whose text stands nowhere else."""
    return (
        *(Spot(line.text, line.box) for line in seen.lines),
        *(Spot(f"{code.kind}: {code.text}", code.box) for code in seen.codes),
    )


def _layout(seen: Seen) -> Iterator[str]:
    size = f"{seen.size.width} pixels wide and {seen.size.height} high"
    yield f"The image is {size}{_colours(seen)}. Boxes are [x1, y1, x2, y2]."
    if seen.turned:
        yield turn(seen)
    if seen.photograph:
        yield "Most of it is a photograph or a painting: what that shows cannot be told by reading."
    yield from _headed(seen)
    for chart in seen.charts:
        yield from _charted(chart)
    yield from _tabled(seen)
    yield from _parted(seen)
    yield from _written(seen)
    yield from (f'A {code.kind} code at {corners(code.box)} holds "{code.text}".' for code in seen.codes)
    yield from _unread(seen)


def turn(seen: Seen) -> str:
    """Said of a turned image whenever places are told in words."""
    return f"The image lies turned: places are told as it stands after a turn of {seen.turned} degrees clockwise."


def _no_text(seen: Seen) -> str:
    found = seen.unread or seen.late or not seen.searched
    return "No text could be read in this image." if found else "No text was found in this image."


def _unread(seen: Seen) -> Iterator[str]:
    """What was seen to be text and is missing above."""
    if seen.unread:
        several = len(seen.unread) > 1
        one = "a letter or an icon" if seen.unread[0].width <= _GLYPH * seen.unread[0].height else "text"
        what = f"{len(seen.unread)} lines look like text that" if several else f"1 place looks like {one} that"
        why = ", perhaps handwriting or letters of an alphabet that is not known here" if several else ""
        yield f"Not everything could be read: {what} could not be read{why}: at {_places(seen.unread)}."
    if seen.late:
        lines = "line was" if len(seen.late) == 1 else "lines were"
        yield f"{len(seen.late)} more {lines} left for lack of time: at {_places(seen.late)}."
    if not seen.searched:
        yield "There was no time to look for text everywhere: ask again about a part of the image."


def _places(boxes: Sequence[Box]) -> str:
    more = f" and {len(boxes) - _MOST} more places" if len(boxes) > _MOST else ""
    return "; ".join(map(corners, boxes[:_MOST])) + more


def _colours(seen: Seen) -> str:
    common = [f"{hued(colour)} {share:.0%}" for colour, share in seen.colours[:3] if share >= 0.05]
    return f", mostly {', '.join(common)}" if common else ""


def _headed(seen: Seen) -> Iterator[str]:
    there = titles(seen)
    if there.bar:
        yield f'The title bar at {corners(there.bar.box)} says "{there.bar.text}".'
    if there.heading and there.heading != there.bar:
        size = "The largest text is" if there.largest else "Larger than most of the text is"
        yield f'{size} "{there.heading.text}" at {corners(there.heading.box)}.'


def _charted(chart: Chart) -> Iterator[str]:
    title = f' "{chart.title}"' if chart.title else ""
    unit = f", in {chart.unit}" if chart.unit else ""
    values = "; ".join(f"{mark_name(mark)} {number(told(mark), chart)}" for mark in chart.marks)
    yield f"A {chart.kind} chart{title} at {corners(chart.box)}{unit}: {values or 'no value of it could be read'}."
    hues = {mark.series: mark.colour for mark in chart.marks if mark.series}
    if hues:
        yield "Its colours: " + ", ".join(f"{series} {colour_name(colour)}" for series, colour in hues.items()) + "."
    if chart.doubts:
        yield f"Of this chart, {chart.doubts}."


def _tabled(seen: Seen) -> Iterator[str]:
    for table in tables(seen):
        columns = max((len(row) for row in table.rows), default=0)
        yield f"A table at {corners(table.box)} with {len(table.rows)} rows and {columns} columns."


def _parted(seen: Seen) -> Iterator[str]:
    yield from _few([_panel(part, seen) for part in of_kind(seen, "panel")], "panels")
    called = labels(seen)
    yield from _few([_field(part, seen, called.get(part)) for part in of_kind(seen, "field")], "fields")
    yield from _few([_check(part, called.get(part)) for part in of_kind(seen, "check")], "check boxes")
    yield from _few([_radio(part, called.get(part)) for part in of_kind(seen, "radio")], "radio buttons")
    yield from _few([_button(part, seen) for part in of_kind(seen, "button")], "buttons")
    yield from _few(
        [f"A picture at {corners(part.box)}, not described." for part in of_kind(seen, "picture")], "pictures"
    )


def _few(sentences: list[str], kind: str) -> Iterable[str]:
    more = [f"And {len(sentences) - _MOST} more {kind}."] if len(sentences) > _MOST else []
    return [*sentences[:_MOST], *more]


def _an(name: str) -> str:
    return f"An {name}" if name.startswith("o") else f"A {name}"


def _panel(part: Part, seen: Seen) -> str:
    first = next((f', which begins with "{seen.lines[at].text}"' for at in part.lines[:1]), "")
    return f"{_an(colour_name(part.colour))} panel at {corners(part.box)}{first}."


def _field(part: Part, seen: Seen, label: Line | None) -> str:
    blank = "holds something that could not be read" if unread_in(seen, part.box) else "is empty"
    pale = PALE_TEXT if is_hint(part, seen) else ""
    held = f'holds "{text_of(part, seen)}"{pale}' if part.lines else blank
    return f"A field{_quoted(label)} at {corners(part.box)} {held}."


def _check(part: Part, label: Line | None) -> str:
    state = {
        True: "checked",
        False: "not checked",
        None: "a check box of which it cannot be told whether it is checked",
    }
    return f"A check box{_quoted(label)} at {corners(part.box)}: {state[part.checked]}."


def _radio(part: Part, label: Line | None) -> str:
    state = {True: "chosen", False: "not chosen", None: "it cannot be told whether it is chosen"}
    return f"A radio button{_quoted(label)} at {corners(part.box)}: {state[part.checked]}."


def _quoted(label: Line | None) -> str:
    return f' "{label.text}"' if label else ""


def _button(part: Part, seen: Seen) -> str:
    line = next((seen.lines[at] for at in part.lines), None)
    ink = f", {colour_name(line.ink)} text" if line and line.ink else ""
    return f'{_an(colour_name(part.colour))} button "{text_of(part, seen)}" at {corners(part.box)}{ink}.'


def _written(seen: Seen) -> Iterator[str]:
    """Lines that say something by their colour, and those that were hard to read."""
    held = {at for part in of_kind(seen, "button") for at in part.lines}
    by_ink: dict[str, list[Line]] = {}
    for at, line in enumerate(seen.lines):
        if (
            line.ink
            and not seen.photograph
            and at not in held
            and (ink := colour_name(line.ink)) not in _PLAIN
            and _bright(line.ink)
        ):
            by_ink.setdefault(ink, []).append(line)
    if sum(map(len, by_ink.values())) * 2 <= max(2, len(seen.lines)):  # where most is coloured, colour says nothing
        for ink, lines in by_ink.items():
            yield f"In {ink}: " + ", ".join(f'"{line.text}" at {corners(line.box)}' for line in lines[:_MOST]) + "."
    unsure = [f'"{line.text}" at {corners(line.box)}' for line in seen.lines if _doubtful(line)]
    if unsure:
        more = f" and {len(unsure) - _MOST} more" if len(unsure) > _MOST else ""
        yield f"Hard to read, and perhaps read wrongly: {', '.join(unsure[:_MOST])}{more}."


def _doubtful(line: Line) -> bool:
    return line.least < _LEAST or (line.confidence < _SURE and len(line.text) >= _LONG)


def _bright(ink: Colour) -> bool:
    return max(ink) - min(ink) > 60
