"""Schemas that are filled only with values beside their labels."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box, Size
from sightline.model.scene import Json
from sightline.reader.phrases import split_pairs
from sightline.reader.reading import ImageReading, Table
from sightline.reader.schema_lookup import fill_schema, find_value
from sightline.reader.sections import NOTE
from sightline.runtime import get_shared_workers
from sightline.vision.json_answers import check_answer, find_object
from tests.reader import screens
from tests.reader.screens import line
from tests.reader.statements import find_statement
from tests.requirements import requirement


def grid(*rows: tuple[str, ...]) -> ImageReading:
    """Return the reading of a table."""
    cells = [(x, y, text) for y, row in enumerate(rows) for x, text in enumerate(row)]
    lines = tuple(line(text, 40 + 200 * x, 80 + 40 * y) for x, y, text in cells if text)
    places = {(x, y): at for at, (x, y, _) in enumerate(each for each in cells if each[2])}
    table = Table(
        Box(30, 74, 900, 40 * len(rows)),
        tuple(
            tuple((places[x, y],) if (x, y) in places else () for x in range(len(row))) for y, row in enumerate(rows)
        ),
    )
    return ImageReading(Size(960, 480), lines, tables=(table,))


def lines_of(*texts: str) -> ImageReading:
    return ImageReading(Size(800, 600), tuple(line(text, 40, 40 + 22 * at) for at, text in enumerate(texts)))


SCHEMA: Json = {
    "type": "object",
    "properties": {
        "full_name": {"type": "string"},
        "vatNumber": {"type": ["string", "null"]},
        "phone": {"type": ["string", "null"]},
        "subtotal": {"type": "number"},
        "due": {"type": "number", "title": "Total due today"},
        "i_agree_to_the_terms": {"type": "boolean"},
        "newsletter": {"type": ["boolean", "null"]},
        "title": {"type": "string"},
        "buttons": {"type": "array", "items": {"type": "string"}},
        "plan": {"type": ["string", "null"], "enum": ["Business", None]},
    },
    "required": ["full_name"],
}


@requirement("seer.local.fill")
def test_only_values_with_a_label_of_that_name_are_filled() -> None:
    report = fill_schema(SCHEMA, [screens.form()])
    found = find_object(report.text)
    assert found == {
        "full_name": "Marguerite O'Connell",
        "vatNumber": "GB 294 8371 06",
        "subtotal": 348,
        "due": 417.6,
        "i_agree_to_the_terms": True,
    }
    assert check_answer(get_shared_workers(), found, SCHEMA) == (found, [])
    assert find_statement(report.text, "phone, newsletter, title, buttons, plan")
    assert report.text.endswith(NOTE)


@requirement("seer.local.fill")
def test_table_heads_label_the_values_of_a_list() -> None:
    row: Json = {"type": "object", "properties": {"item": {"type": "string"}, "price": {"type": "number"}, "sku": {}}}
    report = fill_schema({"properties": {"rows": {"type": "array", "items": row}}}, [screens.table()])
    found = find_object(report.text)
    assert found is not None
    assert found["rows"][0] == {"item": "Floor lamp", "price": 134.16}  # type: ignore[index]
    assert find_statement(report.text, "sku")
    mark: Json = {"properties": {"category": {}, "value": {"type": "number"}}}
    assert find_object(fill_schema({"properties": {"bars": {"items": mark}}}, [screens.chart()]).text) == {}


@requirement("seer.local.fill", "ask.schema_optional")
def test_an_optional_object_or_list_that_is_incomplete_is_left_out() -> None:
    person: Json = {"properties": {"full_name": {"type": "string"}, "phone": {"type": "string"}}, "required": ["phone"]}
    row: Json = {"properties": {"item": {"type": "string"}, "sku": {"type": "string"}}, "required": ["sku"]}
    schema: Json = {"type": "object", "properties": {"person": person, "rows": {"type": "array", "items": row}}}
    for reading in (screens.form(), screens.table()):
        report = fill_schema(schema, [reading])
        assert find_object(report.text) == {}
        assert "person.phone" in report.text


@requirement("seer.local.fill")
@pytest.mark.parametrize(
    "schema",
    [{}, True, {"type": 7}, {"properties": {"a": {"type": ["x", 3]}}}, {"properties": {"a": {"items": True}}},
     {"type": "object"}, {"properties": {"": {"enum": "x"}}}, {"properties": {"rows": {"items": {"properties": {}}}}}],
)  # fmt: skip
def test_a_schema_of_any_shape_gets_json(schema: Json) -> None:
    json.loads(fill_schema(schema, [screens.table()]).text.partition("\n")[0])


@requirement("seer.local.fill")
def test_a_schema_is_filled_from_all_images_and_differences_are_named() -> None:
    schema: Json = {
        "properties": {
            "vat_number": {"type": "string"},
            "last_successful_backup": {"type": "string"},
            "status": {"type": "string"},
            "phone": {"type": "string"},
        }
    }
    one, other = lines_of("Status: open"), lines_of("Status: closed")
    report = fill_schema(schema, [screens.dialog(), screens.form(), one, other])
    assert find_object(report.text) == {
        "vat_number": "GB 294 8371 06",
        "last_successful_backup": "11 March 2026, 22:40",
        "status": "open",
    }
    notes = report.text.partition("\n")[2].replace(". ", ".\n")
    assert find_statement(notes, "phone") != find_statement(notes, "status")
    assert {(spot.label.partition(":")[0], spot.image) for spot in report.spots} == {
        ("vat number", 1), ("last successful backup", 0), ("status", 2), ("status", 3),
    }  # fmt: skip


@requirement("seer.local.fill")
def test_rows_of_several_images_follow_each_other() -> None:
    row: Json = {"type": "object", "properties": {"item": {"type": "string"}, "price": {"type": "integer"}}}
    schema: Json = {"properties": {"rows": {"type": "array", "items": row}}}
    page = grid(("Item", "Price"), ("Desk", "1.250"), ("Lamp", "80"))
    desk, lamp = {"item": "Desk", "price": 1250}, {"item": "Lamp", "price": 80}
    assert find_object(fill_schema(schema, [page, page]).text) == {"rows": [desk, lamp, desk, lamp]}


DEPLOY = lines_of("Release 4.2.17 did not reach web-3", "Migration orders.0042 failed:", "exit code 3, trace 7f3a-c41e")
BILL = grid(("Item", "Qty", "Price"), ("Bolt", "100", "12.50"), ("Nut", "80", "9.20"), ("Total", "", "21.70"))
TAXED = grid(("Item", "Net", "Gross"), ("Bolt", "10.00", "12.50"), ("Total", "17.30", "21.70"))
BELOW = grid(("Work", "Hours", "Fee"), ("Design", "12", "90.00"), ("", "VAT", "18.00"), ("", "Total due", "108.00"))
BALANCES = ImageReading(Size(800, 300), (line("Balance", 30, 60), line("Available", 400, 60),
                                    line("$2,310.55", 30, 84, 24), line("$1,980.00", 400, 84, 24)))  # fmt: skip
PLAIN = ImageReading(Size(800, 300), (line("Status", 30, 60), line("Paid", 400, 60),
                                 line("Owner", 30, 84), line("Ann Lee", 400, 84)))  # fmt: skip
MENU = ImageReading(Size(600, 300), tuple(line(text, 40 + 200 * x, 20) for x, text in enumerate(("Status", "Owner"))))


@requirement("seer.local.fill")
@pytest.mark.parametrize(
    ("reading", "label", "value"),
    [
        (DEPLOY, "exit code", "3"),
        (DEPLOY, "trace", "7f3a-c41e"),
        (DEPLOY, "user", None),
        (BILL, "total", "21.70"),
        (BILL, "total amount", None),  # another name
        (TAXED, "total", None),  # two amounts
        (BELOW, "total due", "108.00"),
        (BELOW, "total", None),
        (BALANCES, "balance", "$2,310.55"),
        (PLAIN, "status", "Paid"),
        (MENU, "status", None),
        (lines_of("Discount", "12 items: 40"), "discount", None),
        (lines_of("Total", "£417.60"), "total", "£417.60"),
        (lines_of("Net total: $4.00", "Total: $5.00"), "order total", None),
        (lines_of("Needed: 48.2 GB Free: 11.7 GB"), "needed", "48.2 GB"),
        (lines_of('"account": {', '"limit": 1000,'), "limit", "1000"),
        (lines_of('"account": {', '"limit": 1000,'), "account", None),
        (lines_of("def __init__(self, number: int, lines: list) -> None:"), "number", None),
    ],
)
def test_a_value_is_found_only_beside_its_own_label(reading: ImageReading, label: str, value: str | None) -> None:
    found = find_value(reading, label)
    assert (found and found.text) == value


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("exit code 3, trace 7f3a-c41e", [("exit code", "3"), ("trace", "7f3a-c41e")]),
        ("PID 4412 | CPU 3.2 % | MEM 120 MB", [("PID", "4412"), ("CPU", "3.2 %"), ("MEM", "120 MB")]),
        ("Temp: 21.5 C; Sky: clear", [("Temp", "21.5 C"), ("Sky", "clear")]),
        ("Name: Smith, John", []),
        ("Test Suites: 1 failed, 2 passed, 3 total", []),
        ("Monday, 3 May 2026", []),
        ("at 5 pm, on 3 May", []),
        ("exit code 3", []),
    ],
)
def test_only_a_line_of_labels_and_values_is_split(text: str, pairs: list[tuple[str, str]]) -> None:
    assert split_pairs(text) == pairs


@given(st.text(max_size=200) | st.text("ab1 ,;:|=$%", max_size=60))
def test_pairs_are_always_parts_of_their_line(text: str) -> None:
    found = split_pairs(text)
    assert len(found) != 1
    assert all(label and value and label in text and value in text for label, value in found)
