"""What the local reader writes about images, comparisons and schemas, from readings that need no recognition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from sightline.model.geometry import Box, Size
from sightline.model.scene import Json
from sightline.reader.compare import compare_images
from sightline.reader.describe import list_findings, transcribe
from sightline.reader.reading import TOGGLES, Barcode, Colour, ImageReading, InterfacePart, ItemState, PartKind
from sightline.reader.report import find_related_items
from sightline.reader.schema_lookup import fill_schema
from tests.golden.wording import Case
from tests.reader import screens
from tests.reader.screens import WHITE, line
from tests.reader.statements import describe_reading

_EMPTY = ImageReading(Size(640, 480))
_PALE: Colour = (190, 190, 190)
_QUESTIONS = (
    (screens.dialog(), "What is the title of the dialog?"),
    (screens.dialog(), "Where is the Cancel button?"),
    (screens.form(), "What is entered in Full name?"),
    (screens.form(), "Are the terms agreed to?"),
    (screens.form(), "What does the message in red say?"),
    (screens.chart(), "How did Asia do in Q2?"),
    (screens.table(), "What does the floor lamp cost?"),
)
_MAPS = line("Maps", 40, 50)
_UNREAD: Mapping[str, ImageReading] = {
    "nothing": _EMPTY,
    "a photograph on its side": replace(_EMPTY, photograph=True, rotation=90),
    "a line": replace(_EMPTY, unread=(Box(10, 20, 90, 12),)),
    "a letter": replace(_EMPTY, unread=(Box(114, 194, 20, 24),)),
    "many lines": replace(_EMPTY, unread=tuple(Box(0, y, 9, 9) for y in range(41))),
    "too late": replace(_EMPTY, late=(Box(10, 80, 70, 12),), searched=False),
    "several too late": replace(_EMPTY, late=(Box(10, 80, 70, 12), Box(10, 95, 70, 12))),
    "doubtful": replace(_EMPTY, lines=(replace(line("INF0 ready", 1, 1), confidence=0.99, doubtful=(3, 9)),)),
    "icons, a selected item and a disabled switch": replace(
        _EMPTY,
        lines=(_MAPS,),
        parts=(InterfacePart("switch", Box(10, 90, 28, 16), (1, 2, 3), checked=True),),
        icons=(Box(10, 10, 14, 14), Box(30, 10, 14, 14)),
        states=(ItemState("selected", _MAPS.box, _MAPS), ItemState("disabled", Box(10, 90, 28, 16))),
    ),
    "a barcode and a picture": replace(
        _EMPTY,
        parts=(InterfacePart("picture", Box(0, 0, 9, 9), (1, 2, 3)),),
        codes=(Barcode("QRCode", "hello", Box(1, 2, 3, 4)),),
    ),
}


def _describe_screens(_: Path) -> str:
    """Each screen that the tests of the reader share."""
    return "\n\n".join(f"{name}\n{describe_reading(make()).text}" for name, make in screens.ALL.items())


def _list_positions(_: Path) -> str:
    """Each of these screens with the positions of its parts, and icons and doubtful lines."""
    readings = [*(make() for make in screens.ALL.values()), _UNREAD["doubtful"], *list(_UNREAD.values())[-2:]]
    return "\n\n".join(list_findings(each, positions=True) for each in readings)


def _describe_unread(_: Path) -> str:
    """What was not read, or not for certain."""
    return "\n\n".join(f"{name}\n{transcribe(each)}\n{list_findings(each)}" for name, each in _UNREAD.items())


def _describe_states(_: Path) -> str:
    """The states of controls: toggles, a pale button, and a field that was not read."""
    kinds: tuple[PartKind, ...] = TOGGLES
    toggles = tuple(
        InterfacePart(kind, Box(20, 30 + 20 * at, 16, 16), (1, 2, 3), (0,), checked)
        for kind in kinds
        for at, checked in enumerate((True, False, None))
    )
    lines = (line("Save", 30, 130), line("Next", 130, 130, ink=_PALE))
    field = InterfacePart("field", Box(225, 180, 200, 30), WHITE)
    buttons = tuple(InterfacePart("button", Box(20 + 100 * at, 120, 80, 30), WHITE, (at,)) for at in range(2))
    reading = replace(_EMPTY, lines=lines, parts=(*toggles, field, *buttons), unread=(Box(240, 190, 80, 12),))
    return list_findings(reading)


def _relate_questions(_: Path) -> str:
    """The first sentence that is related to a question."""
    return "\n".join(f"{question} {find_related_items(question, each)[0].sentence}" for each, question in _QUESTIONS)


def _compare_screens(_: Path) -> str:
    """A screen that has changed, one with other states, and another screen."""
    before = screens.dialog()
    lines = list(before.lines)
    lines[4] = line("Last successful backup: 12 March 2026, 09:15", 333, 310)
    lines[6] = replace(lines[6], box=Box(300, 500, 36, 12))
    del lines[2]
    after = replace(before, lines=(*lines, line("Retrying", 260, 560)), parts=())
    texts = [compare_images(before, after, [Box(1, 2, 3, 4)]).text]
    form = screens.form()
    unchecked = tuple(replace(part, checked=False) if part.checked else part for part in form.parts)
    texts.append(compare_images(form, replace(form, parts=unchecked), []).text)
    texts.append(compare_images(before, form, None).text)
    texts.append(compare_images(form, form, []).text)
    return "\n\n".join(texts)


def _fill_schemas(_: Path) -> str:
    """A schema of which a part is not found, and one for which the images differ."""
    row: Json = {"type": "object", "properties": {"item": {"type": "string"}, "price": {"type": "number"}, "sku": {}}}
    rows: Json = {"properties": {"rows": {"type": "array", "items": row}}}
    status: Json = {"properties": {"status": {"type": "string"}, "phone": {"type": "string"}}}
    read = [ImageReading(Size(300, 90), (line(f"Status: {each}", 20, 20),)) for each in ("open", "closed")]
    return "\n\n".join([fill_schema(rows, [screens.table()]).text, fill_schema(status, read).text])


def _describe_fields(_: Path) -> str:
    """A field with its value, one with a placeholder, and a heading that is not the largest text."""
    titles = (line("42", 40, 300, 60), line("Orders today", 40, 380, 24))
    labels = tuple(line(name, 80, 36 + 60 * at, ink=(68, 68, 68)) for at, name in enumerate(("Name", "Street")))
    typed = (line("Ingrid", 90, 60), line("e.g. 12 Baker Street", 90, 120, ink=(170, 170, 170)))
    parts = tuple(InterfacePart("field", Box(80, 52 + 60 * at, 300, 28), WHITE, (2 + at,)) for at in range(2))
    return list_findings(replace(_EMPTY, lines=(*labels, *typed, *titles), parts=parts))


_MADE: tuple[Callable[[Path], str], ...] = (
    _describe_screens,
    _list_positions,
    _describe_unread,
    _describe_states,
    _describe_fields,
    _relate_questions,
    _compare_screens,
    _fill_schemas,
)
CASES: Mapping[str, Case] = {case.__name__.strip("_").replace("_", " "): case for case in _MADE}
