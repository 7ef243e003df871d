"""Describe what was read: all text in reading order, then every part with its box."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sightline.model.geometry import Box
from sightline.model.seer import LabelledBox
from sightline.reader.charts import format_value, name_mark, round_mark
from sightline.reader.colours import format_colour, name_colour
from sightline.reader.field_labels import is_pale_button, is_placeholder, label_parts
from sightline.reader.page_text import find_titles
from sightline.reader.reading import (
    TOGGLES,
    Chart,
    Colour,
    ImageReading,
    InterfacePart,
    PartKind,
    TextLine,
    has_unread_text,
    join_part_text,
    select_parts,
)
from sightline.reader.rectangles import format_box
from sightline.reader.tables import add_table_heads

NOTE = (
    "Only text and shapes were read, by a reader on this machine. It does not reason, and it does not describe what"
    " pictures or icons show."
)
FINDINGS = "Parts and positions:"
_PLAIN_COLOURS = frozenset({"black", "dark grey", "grey", "light grey", "white"})
_MAX_LISTED = 40  # things of one kind that are listed one by one
_SURE, _LONG = 0.97, 4  # a line of at least this many characters that is less certain may be wrong
_GLYPH = 1.3  # the largest ratio of width to height of a single letter
_SATURATED = 60  # difference between the channels of a colour that the eye notices in text
_STATES: dict[PartKind, dict[bool | None, str]] = {
    "check": {True: "checked", False: "not checked", None: "could not tell whether it is checked"},
    "switch": {True: "on", False: "off", None: "could not tell whether it is on"},
    "radio": {True: "selected", False: "not selected", None: "could not tell whether it is selected"},
}
_NAMES: dict[PartKind, str] = {"check": "check box", "radio": "radio button", "switch": "switch"}

_CONTROLS: tuple[tuple[PartKind, str], ...] = (
    ("field", "fields"),
    ("check", "check boxes"),
    ("radio", "radio buttons"),
    ("switch", "switches"),
    ("button", "buttons"),
)


@dataclass(frozen=True, slots=True)
class Report:
    """A text for the caller, and the boxes that belong to it."""

    text: str
    spots: tuple[LabelledBox, ...] = ()


@dataclass(frozen=True, slots=True)
class DescribedItem:
    """One thing that was found: a sentence, and where it is."""

    sentence: str
    box: Box | None = None
    label: str = ""  # names the box
    lines: tuple[int, ...] = ()  # indexes of the lines that it repeats


def describe_image(reading: ImageReading) -> Report:
    """Return everything that was read, for a reader who can't see the image, with a box for every line."""
    return Report(f"{transcribe(reading)}\n\n{list_findings(reading)}\n\n{NOTE}", list_line_spots(reading))


def transcribe(reading: ImageReading) -> str:
    """Return the text in reading order, or one sentence if there is none."""
    if reading.text or reading.lines:
        return reading.text or "\n".join(line.marked_text for line in reading.lines)
    found = reading.unread or reading.late or not reading.searched
    return "No text could be read in this image." if found else "No text was found in this image."


def list_findings(reading: ImageReading) -> str:
    """Return every part of the image as a list, with its box."""
    return "\n".join([FINDINGS, *(f"- {sentence}" for sentence in _write_sentences(reading))])


def list_line_spots(reading: ImageReading) -> tuple[LabelledBox, ...]:
    """Return a box for every line and every barcode."""
    return (
        *(LabelledBox(line.text, line.box) for line in reading.lines),
        *(LabelledBox(f"{code.kind}: {code.text}", code.box) for code in reading.codes),
    )


def _write_sentences(reading: ImageReading) -> Iterator[str]:
    size = f"{reading.size.width} pixels wide and {reading.size.height} pixels high"
    yield f"The image is {size}{_list_common_colours(reading)}. Boxes are [x1, y1, x2, y2]."
    if reading.rotation:
        yield describe_rotation(reading)
    if reading.photograph:
        yield "Most of it is a photograph or a painting: only a vision model can describe what it shows."
    yield from (finding.sentence for finding in find_titles_and_codes(reading))
    for chart in reading.charts:
        yield from _describe_chart(chart)
    yield from _describe_tables(reading)
    for kind, name in (("panel", "panels"), *_CONTROLS):
        yield from _limit([finding.sentence for finding in _describe_kind(reading, kind)], name)
    yield from _limit([f"A picture at {format_box(part.box)}, not described." for part in
                       select_parts(reading, "picture")], "pictures")  # fmt: skip
    chosen = [line for line in reading.lines if any(line.box == state.box for state in reading.states)]
    if chosen:
        yield f"On another background than its neighbours, perhaps selected: {', '.join(map(quote_line, chosen))}."
    if reading.icons:
        yield f"Icons, not described, at {_list_boxes(reading.icons)}."
    yield from _describe_text_colours(reading)
    yield from _describe_doubts(reading)
    yield from _describe_unread(reading)


def describe_rotation(reading: ImageReading) -> str:
    """Return the sentence that must accompany every position in a rotated image."""
    return f"The image is not upright: positions refer to it after a clockwise rotation of {reading.rotation} degrees."


def find_titles_and_codes(reading: ImageReading) -> Iterator[DescribedItem]:
    """Yield the title bar, the heading and every barcode."""
    titles = find_titles(reading)
    if titles.bar:
        sentence = f'The title bar at {format_box(titles.bar.box)} says "{titles.bar.marked_text}".'
        yield DescribedItem(sentence, titles.bar.box, titles.bar.text, (reading.lines.index(titles.bar),))
    if titles.heading and titles.heading != titles.bar:
        size = "The largest text, a heading or title, is" if titles.largest else "A heading or title is"
        sentence = f'{size} "{titles.heading.marked_text}" at {format_box(titles.heading.box)}.'
        yield DescribedItem(sentence, titles.heading.box, titles.heading.text, (reading.lines.index(titles.heading),))
    for code in reading.codes:
        sentence = f'{_name_code(code.kind)} at {format_box(code.box)} contains "{code.text}".'
        yield DescribedItem(sentence, code.box, f"{code.kind}: {code.text}")


def find_controls(reading: ImageReading) -> Iterator[DescribedItem]:
    """Yield every field, check box, radio button and button with its state."""
    for kind, _ in _CONTROLS:
        yield from _describe_kind(reading, kind)


def _name_code(kind: str) -> str:
    """Return what a barcode is called: a "QRCode" is a QR code."""
    name = f"{kind.removesuffix('Code').rstrip()} code"
    return f"An {name}" if name[0] in "AEIO" else f"A {name}"


def _describe_kind(reading: ImageReading, kind: PartKind) -> list[DescribedItem]:
    labels = label_parts(reading) if kind in ("field", *TOGGLES) else {}
    return [_describe_part(part, reading, labels.get(part)) for part in select_parts(reading, kind)]


def _describe_part(part: InterfacePart, reading: ImageReading, label: TextLine | None) -> DescribedItem:
    name = label.text if label else join_part_text(part, reading)
    lines = (*part.lines, *((reading.lines.index(label),) if label else ()))
    sentences = {"panel": _describe_panel, "field": _describe_field, "button": _describe_button}
    write = sentences.get(part.kind, _describe_toggle)
    return DescribedItem(write(part, reading, label), part.box, f"{part.kind} {name}".strip(), lines)


def _describe_panel(part: InterfacePart, reading: ImageReading, _: TextLine | None) -> str:
    first = next((f', which begins with "{reading.lines[at].text}"' for at in part.lines[:1]), "")
    return f"{_add_article(name_colour(part.colour))} panel at {format_box(part.box)}{first}."


def _describe_field(part: InterfacePart, reading: ImageReading, label: TextLine | None) -> str:
    blank = "contains something that could not be read" if has_unread_text(reading, part.box) else "is empty"
    pale = " in pale text, perhaps a placeholder" if is_placeholder(part, reading) else ""
    text = " ".join(reading.lines[at].marked_text for at in part.lines)
    content = f'contains "{text}"{pale}' if part.lines else blank
    return f"A field{_quote_label(label)} at {format_box(part.box)} {content}."


def _describe_toggle(part: InterfacePart, reading: ImageReading, label: TextLine | None) -> str:
    name = _NAMES[part.kind]
    pale = any(state.kind == "disabled" and state.box == part.box for state in reading.states)
    doubt = ", paler than others, perhaps disabled" if pale else ""
    return f"A {name}{_quote_label(label)} at {format_box(part.box)}: {_STATES[part.kind][part.checked]}{doubt}."


def _describe_button(part: InterfacePart, reading: ImageReading, _: TextLine | None) -> str:
    line = next((reading.lines[at] for at in part.lines), None)
    ink = f", {name_colour(line.ink)} text" if line and line.ink else ""
    pale = ", paler than other buttons, perhaps disabled" if is_pale_button(part, reading) else ""
    name = " ".join(reading.lines[at].marked_text for at in part.lines)
    return f'{_add_article(name_colour(part.colour))} button "{name}" at {format_box(part.box)}{ink}{pale}.'


def _quote_label(label: TextLine | None) -> str:
    return f' "{label.marked_text}"' if label else ""


def _add_article(name: str) -> str:
    return f"An {name}" if name.startswith("o") else f"A {name}"


def _describe_chart(chart: Chart) -> Iterator[str]:
    title = f' "{chart.title}"' if chart.title else ""
    unit = f", in {chart.unit}" if chart.unit else ""
    values = "; ".join(f"{name_mark(mark)} {format_value(round_mark(mark), chart)}" for mark in chart.marks)
    yield f"A {chart.kind} chart{title} at {format_box(chart.box)}{unit}: {values or 'no value could be read'}."
    colours = {mark.series: mark.colour for mark in chart.marks if mark.series}
    if colours:
        named = ", ".join(f"{series} {name_colour(colour)}" for series, colour in colours.items())
        yield f"Its colours: {named}."
    if chart.doubts:
        yield f"Doubts about this chart: {chart.doubts}."


def _describe_tables(reading: ImageReading) -> Iterator[str]:
    for table in add_table_heads(reading):
        columns = max((len(row) for row in table.rows), default=0)
        yield f"A table at {format_box(table.box)} with {len(table.rows)} rows and {columns} columns."


def _describe_text_colours(reading: ImageReading) -> Iterator[str]:
    """Yield lines whose colour carries meaning; where most text is coloured, it doesn't."""
    in_buttons = {at for part in select_parts(reading, "button") for at in part.lines}
    by_colour: dict[str, list[TextLine]] = {}
    for at, line in enumerate(reading.lines):
        if at not in in_buttons and (colour := name_text_colour(line, reading)):
            by_colour.setdefault(colour, []).append(line)
    if sum(map(len, by_colour.values())) * 2 <= max(2, len(reading.lines)):
        for colour, lines in by_colour.items():
            yield f"In {colour}: " + ", ".join(map(quote_line, lines[:_MAX_LISTED])) + "."


def name_text_colour(line: TextLine, reading: ImageReading) -> str:
    """Return the name of a line's colour, or "" if it is black, white or grey."""
    if line.ink is None or reading.photograph or not _is_saturated(line.ink):
        return ""
    name = name_colour(line.ink)
    return "" if name in _PLAIN_COLOURS else name


def _is_saturated(ink: Colour) -> bool:
    return max(ink) - min(ink) > _SATURATED


def _describe_doubts(reading: ImageReading) -> Iterator[str]:
    if any(line.doubtful for line in reading.lines):
        yield "Characters between ‹ and › may be wrong."
    unsure = [quote_line(line) for line in reading.lines if _is_unsure(line)]
    if unsure:
        more = f" and {len(unsure) - _MAX_LISTED} more" if len(unsure) > _MAX_LISTED else ""
        yield f"Hard to read, perhaps misread: {', '.join(unsure[:_MAX_LISTED])}{more}."


def _is_unsure(line: TextLine) -> bool:
    return bool(line.doubtful) or (line.confidence < _SURE and len(line.text) >= _LONG)


def quote_line(line: TextLine) -> str:
    """Return the text of a line with its box."""
    return f'"{line.marked_text}" at {format_box(line.box)}'


def _describe_unread(reading: ImageReading) -> Iterator[str]:
    """Yield where text was found that could not be read."""
    if reading.unread:
        several = len(reading.unread) > 1
        one = "a letter or an icon" if reading.unread[0].width <= _GLYPH * reading.unread[0].height else "text"
        what = f"{len(reading.unread)} lines that look like text" if several else f"1 place that looks like {one}"
        why = ", perhaps handwriting or an unknown script" if several else ""
        yield f"{what} could not be read{why}: at {_list_boxes(reading.unread)}."
    if reading.late:
        lines = "line was" if len(reading.late) == 1 else "lines were"
        yield f"{len(reading.late)} more {lines} not read because time ran out: at {_list_boxes(reading.late)}."
    if not reading.searched:
        yield "Time ran out before the whole image was searched for text: ask again about a crop of it."


def _list_boxes(boxes: Sequence[Box]) -> str:
    rest = len(boxes) - _MAX_LISTED
    more = f" and {rest} more {'place' if rest == 1 else 'places'}" if rest > 0 else ""
    return "; ".join(map(format_box, boxes[:_MAX_LISTED])) + more


def _list_common_colours(reading: ImageReading) -> str:
    common = [f"{format_colour(colour)} {share:.0%}" for colour, share in reading.colours[:3] if share >= 0.05]
    return f", mostly {', '.join(common)}" if common else ""


def _limit(sentences: list[str], kind: str) -> list[str]:
    more = [f"And {len(sentences) - _MAX_LISTED} more {kind}."] if len(sentences) > _MAX_LISTED else []
    return [*sentences[:_MAX_LISTED], *more]
