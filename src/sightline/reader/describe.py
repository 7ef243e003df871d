"""Describe what was read: all text in reading order, then what the text can't say.

Positions are in the boxes of a report. They are also in its words if the caller asks for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from sightline.model.fence import to_one_line
from sightline.model.geometry import Box
from sightline.model.seer import LabelledBox
from sightline.reader.charts import format_value, name_mark, round_mark
from sightline.reader.colours import format_colour, name_colour
from sightline.reader.field_labels import has_disabled_state, is_pale_button, is_placeholder, label_parts
from sightline.reader.headings import find_titles
from sightline.reader.icons import GLYPH, find_icons
from sightline.reader.reading import (
    TOGGLES,
    Chart,
    Colour,
    ImageReading,
    InterfacePart,
    PartKind,
    TextLine,
    find_lines_within,
    has_unread_text,
    join_part_text,
    select_parts,
)
from sightline.reader.rectangles import contains_centre, format_box
from sightline.reader.sections import FINDINGS, PALE_MARK, POSITIONS, TOGGLE_MARKS, escape_line, write_marks
from sightline.reader.tables import add_table_heads

_PLAIN_COLOURS = frozenset({"black", "dark grey", "grey", "light grey", "white"})
_MAX_LISTED = 40  # things of one kind that are listed one by one
_MAX_PLACES, _MAX_COLOURED = 3, 8  # icons or pictures, and texts of one colour, that a summary lists
_LONGEST_QUOTE = 40  # characters of a line that a summary repeats
_MUCH_UNREAD = 0.25  # of the lines that were read: unread ones are not only single words
_COMMON = 0.05  # share of the image that a main colour covers
_SURE, _LONG = 0.97, 4  # a line of at least this many characters that is less certain may be wrong
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


def transcribe(reading: ImageReading) -> str:
    """Return the text in reading order, or one sentence if there is none."""
    if reading.text or reading.lines:
        return reading.text or write_marks("\n".join(escape_line(line.marked_text) for line in mark_toggles(reading)))
    found = reading.unread or reading.late or not reading.searched
    return "No text could be read in this image." if found else "No text was found in this image."


def mark_toggles(reading: ImageReading) -> list[TextLine]:
    """Return the lines, those that label a toggle with a mark for its state before them, and as much wider."""
    lines = list(reading.lines)
    for part, at in _find_marked_toggles(reading).items():
        mark = TOGGLE_MARKS[part.kind, part.checked is True][0]
        pale = PALE_MARK[0] if has_disabled_state(part, reading) else ""
        line = lines[at]
        shifted = tuple(place + len(mark) for place in line.doubtful)
        letter = round(line.box.width / max(1, len(line.text)))
        left, more = min(line.box.x, letter), letter * (len(mark) + len(pale))
        box = Box(line.box.x - left, line.box.y, line.box.width + more, line.box.height)
        lines[at] = replace(line, text=f"{mark}{line.text}{pale}", doubtful=shifted, box=box, middles=None)
    return lines


def _find_marked_toggles(reading: ImageReading) -> dict[InterfacePart, int]:
    """Return the toggles whose state is known and that have a label of their own, with the index of that line."""
    labels = {part: line for part, line in label_parts(reading).items() if part.kind in TOGGLES}
    counts = Counter(line.box for line in labels.values())
    places = {line.box: at for at, line in enumerate(reading.lines)}
    return {
        part: places[line.box] for part, line in labels.items() if part.checked is not None and counts[line.box] == 1
    }


def list_findings(reading: ImageReading, *, positions: bool = False) -> str:
    """Return what the text can't say as a list; with `positions`, every part of the image with its box."""
    heading, sentences = (POSITIONS, _write_sentences) if positions else (FINDINGS, _summarize)
    return "\n".join([heading, *(f"- {sentence}" for sentence in sentences(reading))])


def list_part_spots(reading: ImageReading) -> list[LabelledBox]:
    """Return a box for every control, picture, icon and barcode."""
    return [
        *(LabelledBox(each.label, each.box) for each in find_controls(reading) if each.box),
        *(LabelledBox("picture", part.box) for part in select_parts(reading, "picture")),
        *(LabelledBox("icon", box) for box in find_icons(reading)),
        *(LabelledBox(f"{code.kind}: {code.text}", code.box) for code in reading.codes),
    ]


def list_line_spots(reading: ImageReading) -> list[LabelledBox]:
    """Return a box for every line, except those of buttons, whose labels say the same."""
    covered = {at for part in select_parts(reading, "button") for at in part.lines}
    return [LabelledBox(line.text, line.box) for at, line in enumerate(reading.lines) if at not in covered]


def _summarize(reading: ImageReading) -> Iterator[str]:
    """Yield what the text can't say, briefly; only what has no text is given by its place."""
    colours = [name_colour(colour) for colour, share in reading.colours[:3] if share >= _COMMON]
    mostly = f", mostly {' and '.join(dict.fromkeys(colours))}" if colours else ""
    yield f"The image is {reading.size.width}x{reading.size.height} pixels{mostly}. Boxes are [x1, y1, x2, y2]."
    yield from _describe_whole(reading)
    if bar := find_titles(reading).bar:
        yield f'Title bar: "{bar.marked_text}".'
    yield from (f'{_name_code(code.kind)} contains "{to_one_line(code.text)}".' for code in reading.codes)
    for chart in reading.charts:
        yield from _describe_chart(chart, positions=False)
    marked, labels = _find_marked_toggles(reading), label_parts(reading)
    yield from _explain_marks({part.kind for part in marked})
    for kind, name in _CONTROLS:
        parts = [part for part in select_parts(reading, kind) if part not in marked]
        yield from _list_phrases(name, [_name_part(part, reading, labels.get(part)) for part in parts])
    chosen = [state.item for state in reading.states if state.item]
    yield from _list_phrases("perhaps selected, on another background than its neighbours", map(_quote, chosen))
    yield from _list_places("picture", [part.box for part in select_parts(reading, "picture")])
    yield from _list_places("icon", find_icons(reading))
    yield from _summarize_colours(reading)
    yield from _describe_doubts(reading, positions=False)
    yield from _describe_unread(reading, most=_MAX_PLACES)


def _explain_marks(kinds: Collection[PartKind]) -> Iterator[str]:
    """Yield what the marks of toggles in the text mean."""
    pairs = [
        f"{TOGGLE_MARKS[kind, True][1]}and {TOGGLE_MARKS[kind, False][1]}are {name}"
        for kind, name in _CONTROLS
        if kind in kinds
    ]
    if pairs:
        yield f"In the text, {', '.join(pairs)}."


def _list_phrases(name: str, phrases: Iterable[str]) -> Iterator[str]:
    """Yield one sentence with all phrases, each once."""
    counts = Counter(phrases)
    listed = [f"{each} ({count} times)" if count > 1 else each for each, count in counts.items()]
    more = [f"and {len(listed) - _MAX_LISTED} more"] if len(listed) > _MAX_LISTED else []
    if listed:
        yield f"{name[0].upper()}{name[1:]}: {'; '.join([*listed[:_MAX_LISTED], *more])}."


def _list_places(name: str, boxes: Sequence[Box]) -> Iterator[str]:
    """Yield one sentence with the first boxes of a kind; the rest are among the boxes of the report."""
    if boxes:
        yield f"{name.capitalize()} at {_list_boxes(boxes, _MAX_PLACES)}."


def _name_part(part: InterfacePart, reading: ImageReading, label: TextLine | None) -> str:
    """Return a control by its label, or by its place if it has none, and its state."""
    text = " ".join(reading.lines[at].marked_text for at in part.lines)
    if part.kind == "button":
        colour = "" if name_colour(part.colour) in _PLAIN_COLOURS else name_colour(part.colour)
        pale = "paler than others, perhaps disabled" if is_pale_button(part, reading) else ""
        details = ", ".join(filter(None, (colour, pale)))
        return f'"{text}" ({details})' if details else f'"{text}"'
    name = _quote_label(label).strip() or ("" if part.lines else f"at {format_box(part.box)}")
    doubt = " (paler than others, perhaps disabled)" if has_disabled_state(part, reading) else ""
    if part.kind != "field":
        return f"{name}: {_STATES[part.kind][part.checked]}{doubt}"
    if not part.lines:
        return f"{name}: {'could not be read' if has_unread_text(reading, part.box) else 'empty'}{doubt}"
    quoted = f'"{text}"{doubt or (" (pale, perhaps a placeholder)" if is_placeholder(part, reading) else "")}'
    return f"{name}: {quoted}" if name else quoted


def _quote(line: TextLine) -> str:
    """Return the beginning of a line: the text has the rest."""
    if len(line.text) <= _LONGEST_QUOTE:
        return f'"{line.marked_text}"'
    text = line.text[:_LONGEST_QUOTE].rstrip()
    cut = replace(line, text=text, doubtful=tuple(at for at in line.doubtful if at < len(text)))
    return f'"{cut.marked_text}…"'


def _summarize_colours(reading: ImageReading) -> Iterator[str]:
    """Yield the colours that may carry meaning: of texts, and of panels."""
    panels: dict[str, list[TextLine]] = {}
    buttons = {at for part in select_parts(reading, "button") for at in part.lines}
    for part in select_parts(reading, "panel"):
        if part.lines and _is_saturated(part.colour) and part.lines[0] not in buttons:
            panels.setdefault(name_colour(part.colour), []).append(reading.lines[part.lines[0]])
    for where, named in (("On", panels), ("In", _group_by_colour(reading))):
        for colour, lines in named.items():
            more = f" and {len(lines) - _MAX_COLOURED} more" if len(lines) > _MAX_COLOURED else ""
            quoted = dict.fromkeys(map(_quote, lines[:_MAX_COLOURED]))
            yield f"{where} {colour}: {', '.join(quoted)}{more}."


def _write_sentences(reading: ImageReading) -> Iterator[str]:
    size = f"{reading.size.width} pixels wide and {reading.size.height} pixels high"
    yield f"The image is {size}{_list_common_colours(reading)}. Boxes are [x1, y1, x2, y2]."
    yield from _describe_whole(reading)
    yield from (finding.sentence for finding in find_titles_and_codes(reading))
    for chart in reading.charts:
        yield from _describe_chart(chart)
    yield from _describe_tables(reading)
    for kind, name in (("panel", "panels"), *_CONTROLS):
        yield from _limit([finding.sentence for finding in _describe_kind(reading, kind)], name)
    yield from _limit([f"A picture at {format_box(part.box)}, not described." for part in
                       select_parts(reading, "picture")], "pictures")  # fmt: skip
    chosen = [state.item for state in reading.states if state.item]
    if chosen:
        yield f"On another background than its neighbours, perhaps selected: {', '.join(map(quote_line, chosen))}."
    if icons := find_icons(reading):
        yield f"Icons, not described, at {_list_boxes(icons)}."
    for colour, lines in _group_by_colour(reading).items():
        yield f"In {colour}: " + ", ".join(map(quote_line, lines[:_MAX_LISTED])) + "."
    yield from _describe_doubts(reading)
    yield from _describe_unread(reading)


def _describe_whole(reading: ImageReading) -> Iterator[str]:
    if reading.rotation:
        yield describe_rotation(reading)
    if reading.photograph:
        yield "Most of it is a photograph or a painting: only a vision model can describe what it shows."


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
        sentence = f'{_name_code(code.kind)} at {format_box(code.box)} contains "{to_one_line(code.text)}".'
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
    doubt = ", paler than others, perhaps disabled" if has_disabled_state(part, reading) else ""
    return f"A field{_quote_label(label)} at {format_box(part.box)} {content}{doubt}."


def _describe_toggle(part: InterfacePart, reading: ImageReading, label: TextLine | None) -> str:
    name = _NAMES[part.kind]
    doubt = ", paler than others, perhaps disabled" if has_disabled_state(part, reading) else ""
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


def _describe_chart(chart: Chart, *, positions: bool = True) -> Iterator[str]:
    title = f' "{chart.title}"' if chart.title else ""
    title += f" at {format_box(chart.box)}" if positions else ""
    unit = f", in {chart.unit}" if chart.unit else ""
    values = "; ".join(f"{name_mark(mark)} {format_value(round_mark(mark), chart)}" for mark in chart.marks)
    yield f"A {chart.kind} chart{title}{unit}: {values or 'no value could be read'}."
    colours = {mark.series: mark.colour for mark in chart.marks if mark.series}
    if colours:
        named = ", ".join(f"{series} {name_colour(colour)}" for series, colour in colours.items())
        yield f"Its colours: {named}."
    if chart.between:
        yield f"Between its labels, {chart.between}."
    if chart.doubts:
        yield f"Doubts about this chart: {chart.doubts}."


def _describe_tables(reading: ImageReading) -> Iterator[str]:
    for table in add_table_heads(reading):
        columns = max((len(row) for row in table.rows), default=0)
        yield f"A table at {format_box(table.box)} with {len(table.rows)} rows and {columns} columns."


def _group_by_colour(reading: ImageReading) -> dict[str, list[TextLine]]:
    """Return lines whose colour may carry meaning; where most text is coloured, and beside line numbers, it doesn't."""
    plain = {at for part in select_parts(reading, "button") for at in part.lines} | set(reading.headings)
    programs = [area for area in reading.code if sum(x.text.isdecimal() for x in find_lines_within(reading, area)) > 2]
    by_colour: dict[str, list[TextLine]] = {}
    for at, line in enumerate(reading.lines):
        if at in plain or any(contains_centre(area, line.box) for area in programs):
            continue
        if colour := name_text_colour(line, reading):
            by_colour.setdefault(colour, []).append(line)
    return by_colour if sum(map(len, by_colour.values())) * 2 <= max(2, len(reading.lines)) else {}


def name_text_colour(line: TextLine, reading: ImageReading) -> str:
    """Return the name of a line's colour, or "" if it is black, white or grey."""
    if line.ink is None or reading.photograph or not _is_saturated(line.ink):
        return ""
    name = name_colour(line.ink)
    return "" if name in _PLAIN_COLOURS else name


def _is_saturated(ink: Colour) -> bool:
    return max(ink) - min(ink) > _SATURATED


def _describe_doubts(reading: ImageReading, *, positions: bool = True) -> Iterator[str]:
    """Yield what may be misread; without positions, only what the text doesn't mark."""
    if any(line.doubtful for line in reading.lines):
        yield "Characters between ‹ and › may be wrong."
    if "‹?" in reading.text:
        yield "In programs, ‹?› is text that could not be read."
    unsure = [line for line in reading.lines if _is_unsure(line) and (positions or not line.doubtful)]
    if unsure:
        more = f" and {len(unsure) - _MAX_LISTED} more" if len(unsure) > _MAX_LISTED else ""
        quoted = ", ".join(map(quote_line if positions else _quote, unsure[:_MAX_LISTED]))
        yield f"Hard to read, perhaps misread: {quoted}{more}."


def _is_unsure(line: TextLine) -> bool:
    return bool(line.doubtful) or (line.confidence < _SURE and len(line.text) >= _LONG)


def quote_line(line: TextLine) -> str:
    """Return the text of a line with its box."""
    return f'"{line.marked_text}" at {format_box(line.box)}'


def _describe_unread(reading: ImageReading, most: int = _MAX_LISTED) -> Iterator[str]:
    """Yield where text was found that could not be read."""
    icons = find_icons(reading)
    unread = [box for box in reading.unread if box not in icons]
    if unread:
        several = len(unread) > 1
        one = "a letter or an icon" if unread[0].width <= GLYPH * unread[0].height else "text"
        what = f"{len(unread)} lines that look like text" if several else f"1 place that looks like {one}"
        much = several and len(unread) >= _MUCH_UNREAD * len(reading.lines) and not reading.code
        why = ", perhaps handwriting or an unknown script" if much else ""
        yield f"{what} could not be read{why}: at {_list_boxes(unread, most)}."
    if reading.late:
        lines = "line was" if len(reading.late) == 1 else "lines were"
        yield f"{len(reading.late)} more {lines} not read because time ran out: at {_list_boxes(reading.late)}."
    if not reading.searched:
        yield "Time ran out before the whole image was searched for text: ask again about a crop of it."


def _list_boxes(boxes: Sequence[Box], most: int = _MAX_LISTED) -> str:
    rest = len(boxes) - most
    more = f" and {rest} more {'place' if rest == 1 else 'places'}" if rest > 0 else ""
    return "; ".join(map(format_box, boxes[:most])) + more


def _list_common_colours(reading: ImageReading) -> str:
    common = [f"{format_colour(colour)} {share:.0%}" for colour, share in reading.colours[:3] if share >= _COMMON]
    return f", mostly {', '.join(common)}" if common else ""


def _limit(sentences: list[str], kind: str) -> list[str]:
    more = [f"And {len(sentences) - _MAX_LISTED} more {kind}."] if len(sentences) > _MAX_LISTED else []
    return [*sentences[:_MAX_LISTED], *more]
