"""Descriptions, comparisons and filled schemas of screens as they are seen when everything was read."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from sightline.look.ask_schema import errors, object_in
from sightline.look.doors import workers
from sightline.model.geometry import Box, Size
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.seers.local.boxes import corners
from sightline.seers.local.compare import compare, difference, regions
from sightline.seers.local.fill import fill
from sightline.seers.local.noes import NO
from sightline.seers.local.reply import Page, reply
from sightline.seers.local.say import NOTE, describe
from sightline.seers.local.seen import Code, Part, Seen, Table
from sightline.seers.local.subjects import Said
from tests.requirements import requirement
from tests.seers.local import screens


@requirement("seer.local.says")
@pytest.mark.parametrize("screen", screens.ALL)
def test_a_description_begins_with_every_line_and_says_once_what_was_read(screen: str) -> None:
    seen = screens.ALL[screen]()
    said = describe(seen)
    assert said.text.startswith("\n".join(line.text for line in seen.lines))
    assert said.text.count(NOTE) == 1
    assert said.text.endswith(NOTE)
    assert [(spot.label, spot.box) for spot in said.spots] == [(line.text, line.box) for line in seen.lines]


def test_a_description_tells_what_stands_where() -> None:
    said = describe(screens.form()).text
    for sentence in (
        'The largest text is "Create your account" at [108, 129, 317, 151].',
        'A field "Full name" at [108, 189, 612, 229] holds "Marguerite O\'Connell".',
        'A field "Company (optional)" at [108, 358, 612, 398] is empty.',
        'A check box "I agree to the terms" at [112, 420, 125, 433]: checked.',
        'A blue button "Create account" at [108, 450, 261, 490], white text.',
        'In red: "Enter a valid VAT number: 9 digits after GB" at [108, 308, 366, 320].',
        "The image is 1280 pixels wide and 900 high, mostly white (#ffffff) 80%.",
    ):
        assert sentence in said
    assert 'The title bar at [254, 160, 338, 172] says "Backup Manager".' in describe(screens.dialog()).text


def test_a_description_gives_every_value_of_a_chart() -> None:
    said = describe(screens.chart()).text
    values = "Q1, Europe 31; Q1, Asia 18; Q2, Europe 29; Q2, Asia 52"
    assert f'A bar chart "Revenue by region" at [30, 10, 930, 570], in million USD: {values}.' in said
    assert "Its colours: Europe blue, Asia orange." in said


def test_what_cannot_be_told_is_said() -> None:
    codes, parts = (Code("QRCode", "hello", Box(1, 2, 3, 4)),), (Part("picture", Box(0, 0, 9, 9), (1, 2, 3)),)
    seen = Seen(Size(640, 480), parts=parts, codes=codes, photograph=True, turned=90)
    said = describe(seen).text
    assert said.startswith("No text was found in this image.")
    for words in ("photograph", "turn of 90 degrees", 'QRCode code at [1, 2, 4, 6] holds "hello"'):
        assert words in said


@pytest.mark.parametrize(
    ("checked", "state"), [(True, "chosen"), (False, "not chosen"), (None, "it cannot be told whether it is chosen")]
)
def test_a_radio_button_is_told_with_its_label_and_state(checked: bool | None, state: str) -> None:
    part = Part("radio", Box(20, 30, 16, 16), (1, 2, 3), (0,), checked)
    said = describe(Seen(Size(200, 90), (screens.line("Manual", 46, 32),), parts=(part,))).text
    assert f'A radio button "Manual" at [20, 30, 36, 46]: {state}.' in said


def test_lines_that_were_not_read_are_told_with_their_places() -> None:
    one, other, last = Box(10, 20, 90, 12), Box(10, 50, 80, 12), Box(10, 80, 70, 12)
    said = describe(Seen(Size(640, 480), unread=(one, other), late=(last,), searched=False)).text
    assert said.startswith("No text could be read in this image.")
    for words in (
        "2 lines look like text that could not be read, perhaps handwriting or letters of an alphabet",
        " that is not known here: at [10, 20, 100, 32]; [10, 50, 90, 62].",
        "1 more line was left for lack of time: at [10, 80, 80, 92].",
        "There was no time to look for text everywhere",
    ):
        assert words in said
    many = describe(Seen(Size(640, 480), unread=tuple(Box(0, y, 9, 9) for y in range(100)))).text
    assert "[0, 39, 9, 48] and 60 more places." in many
    assert (
        "1 place looks like text that could not be read: at [10, 20, 100, 32]."
        in describe(Seen(Size(640, 480), (screens.line("Read", 1, 1),), unread=(one,))).text
    )
    glyph = describe(Seen(Size(640, 480), unread=(Box(114, 194, 20, 24),))).text
    assert "1 place looks like a letter or an icon that could not be read: at [114, 194, 134, 218]." in glyph


@pytest.mark.parametrize(
    ("text", "mean", "least", "doubted"),
    [
        ("Il1l", 0.96, 0.9, True),
        ("0", 0.96, 0.96, False),
        ("a long line", 0.99, 0.5, True),
        ("plain", 0.98, 0.7, False),
    ],
)
def test_a_line_that_was_hard_to_read_is_said_to_be(text: str, mean: float, least: float, *, doubted: bool) -> None:
    line = replace(screens.line(text, 1, 1), confidence=mean, least=least)
    said = describe(Seen(Size(90, 90), (line,))).text
    assert (f'Hard to read, and perhaps read wrongly: "{text}" at {corners(line.box)}.' in said) is doubted


def test_two_screens_are_compared_line_by_line() -> None:
    before = screens.dialog()
    lines = list(before.lines)
    lines[4] = screens.line("Last successful backup: 12 March 2026, 09:15", 333, 310)  # changed
    lines[6] = replace(lines[6], box=Box(300, 500, 36, 12))  # moved
    del lines[2]  # vanished
    after = replace(before, lines=(*lines, screens.line("Retrying", 260, 560)))  # appeared
    found = difference(before, after)
    assert [line.text for line in found.appeared] == ["Retrying"]
    assert [line.text[:9] for line in found.vanished] == ["The drive"]
    assert [(old.text[-5:], new.text[-5:]) for old, new in found.changed] == [("22:40", "09:15")]
    assert [(old.box.x, new.box.x) for old, new in found.moved] == [(707, 300)]
    assert found.same == 4
    said = compare(before, after, [Box(1, 2, 3, 4)])
    assert "4 of 7 lines of text are the same" in said.text
    assert 'Appeared: "Retrying" at [260, 560, 308, 572].' in said.text
    assert "Regions whose pixels differ: [1, 2, 4, 6]." in said.text
    assert {(spot.image, spot.label.partition(":")[0]) for spot in said.spots} == {
        (1, "appeared"), (0, "vanished"), (1, "changed"), (1, "moved"), (1, "changed region"),
    }  # fmt: skip


def test_changed_pixels_are_found_to_the_pixel() -> None:
    before = np.full((200, 300, 3), 255, np.uint8)
    after = before.copy()
    after[20:41, 30:62] = 0
    after[150, 280] = (255, 200, 255)
    assert regions(before, after) == [Box(30, 20, 32, 21), Box(280, 150, 1, 1)]
    assert regions(before, before) == []
    assert regions(before, after[:, :200]) is None


def _page(seen: Seen) -> Page:
    return Page(seen, np.zeros((8, 8, 3), np.uint8))


def test_a_joint_look_compares_or_answers_for_each() -> None:
    one, other = _page(screens.dialog()), Page(screens.form(), np.zeros((9, 8, 3), np.uint8))
    changed = reply("What has changed?", None, [one, other])
    assert isinstance(changed, Said)
    assert changed.text == (
        "Image 1 and Image 2 are different screens: of their 7 and 15 lines of text none is in both.\n"
        'Image 1 is titled "Backup Manager". Image 2 has the heading "Create your account".\n'
        f"The sizes differ: 1040x600 and 1280x900.\n\n{NOTE}"
    )
    assert changed.spots == ()
    both = reply("", None, [one, other])
    assert isinstance(both, Said)
    assert both.text.startswith("Image 1: Backup Manager\n")
    assert "\n\nImage 2: Shipments\n" in both.text
    assert both.text.count(NOTE) == 1
    each = reply("How many buttons are there?", None, [one, other])
    assert isinstance(each, Said)
    assert each.text == f"Image 1: 2\n\nImage 2: 1\n\n{NOTE}"
    assert {spot.image for spot in each.spots} == {0, 1}
    assert reply("What breed is the dog?", None, [one, other]) == NO


@pytest.mark.parametrize(
    "question",
    [
        "",
        "Describe this image.",
        "What do you see?",
        "describe",
        "What's in this image?",
        "What is this?",
        "whats this",
        "Describe this",
        "What am I looking at?",
        "What’s shown here?",
        "Can you describe it in detail?",
    ],
)
def test_all_that_is_to_be_seen_is_asked_for_in_many_words(question: str) -> None:
    assert reply(question, None, [_page(screens.form())]) == describe(screens.form())
    two = [_page(screens.form()), _page(screens.dialog())]
    assert reply(question, None, two) == reply("", None, two)


@requirement("seer.local.no")
@pytest.mark.parametrize("question", ["What is this icon?", "What is this for?", "What is that red thing?"])
def test_what_is_asked_of_a_thing_is_no_request_for_a_description(question: str) -> None:
    assert reply(question, None, [_page(screens.form())]) == NO


def test_an_answer_says_once_what_was_read() -> None:
    said = reply("How many buttons are there?", None, [_page(screens.form())])
    assert isinstance(said, Said)
    assert said.text == f"1\n\n{NOTE}"
    assert isinstance(reply("Why?", None, [_page(screens.form())]), Refusal)


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
    "required": ["full_name", "phone"],
}


@requirement("seer.local.fill")
def test_a_schema_is_filled_with_what_is_there_and_null_for_the_rest_and_that_is_said() -> None:
    said = fill(SCHEMA, [screens.form()], NOTE)
    found = object_in(said.text)
    assert found == {
        "full_name": "Marguerite O'Connell",
        "vatNumber": "GB 294 8371 06",
        "phone": None,
        "subtotal": 348,
        "due": 417.6,
        "i_agree_to_the_terms": True,
        "newsletter": None,
        "title": "Create your account",
        "buttons": ["Create account"],
        "plan": None,
    }
    assert errors(workers(), found, SCHEMA) == []
    assert "Not found in the image, and null: phone, newsletter, plan." in said.text
    assert said.text.endswith(NOTE)


@requirement("seer.local.fill")
def test_rows_of_a_table_and_values_of_a_chart_fill_lists() -> None:
    row: Json = {"type": "object", "properties": {"item": {"type": "string"}, "price": {"type": "number"}, "sku": {}}}
    said = fill({"type": "object", "properties": {"rows": {"type": "array", "items": row}}}, [screens.table()], NOTE)
    found = object_in(said.text)
    assert found is not None
    assert found["rows"][0] == {"item": "Floor lamp", "price": 134.16, "sku": None}  # type: ignore[index]
    assert "sku of each row" in said.text
    mark: Json = {"properties": {"category": {}, "series": {}, "value": {"type": "number"}}}
    said = fill({"properties": {"bars": {"type": "array", "items": mark}}}, [screens.chart()], NOTE)
    bars = json.loads(said.text.partition("\n")[0])["bars"]
    assert bars[0] == {"category": "Q1", "series": "Europe", "value": 31.0}
    assert len(bars) == 4


@requirement("seer.local.fill")
@pytest.mark.parametrize(
    "schema",
    [{}, True, {"type": 7}, {"properties": {"a": {"type": ["x", 3]}}}, {"properties": {"a": {"items": True}}},
     {"type": "object"}, {"properties": {"": {"enum": "x"}}}, {"properties": {"rows": {"items": {"properties": {}}}}}],
)  # fmt: skip
def test_a_schema_of_any_shape_gets_json(schema: Json) -> None:
    first = fill(schema, [screens.table()], NOTE).text.partition("\n")[0]
    json.loads(first)


@requirement("seer.local.fill")
def test_a_schema_is_filled_from_all_images_and_where_they_differ_it_is_said() -> None:
    schema: Json = {
        "properties": {
            "vat_number": {"type": "string"},
            "last_successful_backup": {"type": "string"},
            "title": {"type": "string"},
            "buttons": {"type": "array", "items": {"type": "string"}},
            "phone": {"type": "string"},
        }
    }
    said = reply("", schema, [_page(screens.dialog()), _page(screens.form())])
    assert isinstance(said, Said)
    assert object_in(said.text) == {
        "vat_number": "GB 294 8371 06",
        "last_successful_backup": "11 March 2026, 22:40",
        "title": "Backup Manager",
        "buttons": ["Try again", "Cancel", "Create account"],
        "phone": None,
    }
    assert "Not found in the images, and null: phone." in said.text
    assert "The images differ, and the first is given: title." in said.text
    assert {(spot.label.partition(":")[0], spot.image) for spot in said.spots} == {
        ("vat number", 1), ("last successful backup", 0),
    }  # fmt: skip


@requirement("seer.local.fill")
def test_rows_of_several_images_follow_each_other_and_columns_are_judged_together() -> None:
    row: Json = {"type": "object", "properties": {"item": {"type": "string"}, "price": {"type": "integer"}}}
    schema: Json = {"properties": {"rows": {"type": "array", "items": row}}}
    cells = (("Item", "Price"), ("Desk", "1.250"), ("Lamp", "80"))
    lines = tuple(
        screens.line(text, 40 + 200 * x, 80 + 40 * y) for y, r in enumerate(cells) for x, text in enumerate(r)
    )
    table = Table(Box(30, 74, 400, 120), tuple(tuple((y * 2 + x,) for x in range(2)) for y in range(3)))
    page = _page(Seen(Size(500, 300), lines, "", tables=(table,)))
    found = object_in(reply("", schema, [page, page]).text)  # type: ignore[union-attr]
    desk, lamp = {"item": "Desk", "price": 1250}, {"item": "Lamp", "price": 80}
    assert found == {"rows": [desk, lamp, desk, lamp]}


def test_a_screen_that_changed_in_much_is_still_the_same_screen() -> None:
    before = screens.dialog()
    after = replace(before, lines=tuple(replace(line, text=f"{line.text} 2") for line in before.lines))
    said = compare(before, after, [Box(254, 160, 84, 12)])
    assert said.text.startswith("From Image 1 to Image 2: 0 of 7 lines of text are the same")
    assert "Changed: " in said.text
    assert compare(before, screens.form(), None).text.count("\n") == 2
