"""Labels of fields: the line before or above a field, never text in another part."""

from __future__ import annotations

from dataclasses import replace

from sightline.model.geometry import Box, Size
from sightline.reader.field_labels import label_parts
from sightline.reader.reading import ImageReading, InterfacePart, TextLine
from sightline.reader.schema_lookup import find_value
from tests.reader.screens import line

WHITE = (255, 255, 255)


def screen(lines: list[TextLine], *parts: InterfacePart) -> ImageReading:
    """Return a reading in which each part has the lines within its box."""
    held = [
        replace(part, lines=tuple(at for at, each in enumerate(lines) if _in(each.box, part.box))) for part in parts
    ]
    return ImageReading(Size(900, 600), tuple(lines), parts=tuple(held))


def _in(inner: Box, outer: Box) -> bool:
    return outer.x <= inner.x < outer.right and outer.y <= inner.y < outer.bottom


def field(x: int, y: int) -> InterfacePart:
    return InterfacePart("field", Box(x, y, 280, 32), WHITE)


def told(seen: ImageReading) -> list[str | None]:
    called = label_parts(seen)
    return [called[part].text if part in called else None for part in seen.parts if part.kind == "field"]


def test_labels_before_fields_win_over_text_in_the_field_above() -> None:
    names, held = ["Host name", "Port", "Display name"], ["printer-07", "9100", "Second floor"]
    lines = [line(text, 30, 70 + row * 46) for row, text in enumerate(names)]
    lines += [line(text, 190, 70 + row * 46) for row, text in enumerate(held)]
    seen = screen(lines, *(field(180, 60 + row * 46) for row in range(3)))
    assert told(seen) == names
    value = find_value(seen, "Port")
    assert value is not None
    assert value.text == "9100"


def test_labels_above_fields_win_over_a_menu_beside_them() -> None:
    lines = [line("Name", 200, 40), line("Street", 200, 120), line("City", 200, 200)]
    menu = [line("Overview", 20, 70), line("Account", 20, 230)]
    seen = screen([*lines, *menu], *(field(200, 60 + row * 80) for row in range(3)))
    assert told(seen) == ["Name", "Street", "City"]


def test_text_about_one_field_is_not_the_label_of_the_next() -> None:
    lines = [line("Email", 200, 40), line("This is no address", 200, 96)]
    seen = screen(lines, field(200, 60), field(200, 114))
    assert told(seen) == ["Email", None]


def test_only_text_in_the_same_panel_can_be_a_label() -> None:
    button, strip = (
        InterfacePart("button", Box(200, 30, 90, 24), WHITE),
        InterfacePart("panel", Box(20, 130, 600, 30), WHITE),
    )
    around = InterfacePart("panel", Box(10, 220, 600, 120), WHITE)
    lines = [line("Search", 210, 36), line("Delivery", 30, 140), line("Nearest shop", 200, 240)]
    seen = screen(lines, button, strip, around, field(200, 60), field(30, 170), field(200, 260))
    assert told(seen) == [None, None, "Nearest shop"]


def test_a_symbol_before_a_field_is_not_a_label() -> None:
    assert told(screen([line("£", 160, 70), line("Amount", 200, 40)], field(200, 60))) == ["Amount"]
