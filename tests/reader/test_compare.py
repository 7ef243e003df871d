"""Comparisons of two screens: text, states and pixels."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from sightline.model.geometry import Box, Size
from sightline.reader.compare import compare_images, find_changed_regions, find_state_changes, match_lines
from sightline.reader.reading import Colour, ImageReading, InterfacePart, PartKind
from tests.reader import screens
from tests.reader.screens import BLACK, BLUE, WHITE, line
from tests.reader.statements import find_statement
from tests.requirements import requirement


def test_two_screens_are_compared_line_by_line() -> None:
    before = screens.dialog()
    lines = list(before.lines)
    lines[4] = line("Last successful backup: 12 March 2026, 09:15", 333, 310)  # changed
    lines[6] = replace(lines[6], box=Box(300, 500, 36, 12))  # moved
    del lines[2]  # vanished
    after = replace(before, lines=(*lines, line("Retrying", 260, 560)), parts=())  # appeared
    found = match_lines(before, after)
    assert [line.text for line in found.appeared] == ["Retrying"]
    assert [line.text[:9] for line in found.vanished] == ["The drive"]
    assert [(old.text[-5:], new.text[-5:]) for old, new in found.changed] == [("22:40", "09:15")]
    assert [(old.box.x, new.box.x) for old, new in found.moved] == [(707, 300)]
    assert len(found.same) == 4
    report = compare_images(before, after, [Box(1, 2, 3, 4)])
    assert re.findall(r"\d+", report.text.splitlines()[0]) == ["1", "2", "4", "7"], "4 of 7 lines are the same"
    assert find_statement(report.text, '"Retrying"', "[260, 560, 308, 572]")
    assert find_statement(report.text, "[1, 2, 4, 6]")
    assert {(spot.image, spot.label.partition(":")[0]) for spot in report.spots} == {
        (1, "appeared"), (0, "vanished"), (1, "changed"), (1, "moved"), (1, "changed region"),
    }  # fmt: skip


def control(kind: PartKind, checked: bool | None = None, ink: Colour = BLACK, colour: Colour = WHITE) -> ImageReading:
    """Return a control between a button and a text that don't change."""
    lines = (line("Cancel", 30, 20), line("Dark mode", 60, 60, ink=ink, ground=colour), line("Version 4", 60, 100))
    box = Box(40, 60, 13, 13) if kind in ("check", "radio") else Box(40, 50, 140, 30)
    cancel = InterfacePart("button", Box(20, 10, 90, 30), WHITE, (0,))
    return ImageReading(Size(300, 150), lines, parts=(cancel, InterfacePart(kind, box, colour, (1,), checked)))


@requirement("seer.local.compare")
@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        (control("check", False), control("check", True), [('check box "Dark mode"', "not checked → checked")]),
        (control("radio", True), control("radio", False), [('radio button "Dark mode"', "selected → not selected")]),
        (control("check", None), control("check", True), []),
        (
            control("button", ink=(190, 190, 190)),
            control("button"),
            [('button "Dark mode"', "pale text, perhaps disabled → enabled")],
        ),
        (
            control("button"),
            control("button", ink=WHITE, colour=BLUE),
            [('button "Dark mode"', "white (#ffffff) → blue (#1d5fd1)")],
        ),
        (control("button"), control("button"), []),
    ],
)
def test_changed_states_of_controls_are_reported(
    before: ImageReading, after: ImageReading, changes: list[tuple[str, str]]
) -> None:
    found = find_state_changes(before, after, match_lines(before, after))
    assert [(each.name, each.change) for each in found] == changes
    report = compare_images(before, after, [])
    assert all(f"{name}: {change} at [" in report.text for name, change in changes)
    assert [spot.label for spot in report.spots] == [f"{name}: {change}" for name, change in changes]


@requirement("seer.local.compare")
def test_a_row_that_was_selected_has_new_colours() -> None:
    before = ImageReading(Size(300, 90), (line("General", 20, 20), line("Network", 20, 50)))
    after = replace(before, lines=(before.lines[0], line("Network", 20, 50, ink=WHITE, ground=BLUE)))
    (found,) = find_state_changes(before, after, match_lines(before, after))
    assert found.name == '"Network"'
    assert found.change == "text black (#000000) → white (#ffffff), background white (#ffffff) → blue (#1d5fd1)"
    assert find_state_changes(before, replace(after, photograph=True), match_lines(before, after)) == []


def test_a_control_that_moved_is_found_by_its_name() -> None:
    before, after = control("check", False), control("check", True)
    parts = tuple(replace(part, box=Box(part.box.x, part.box.y + 300, 13, 13)) for part in after.parts)
    lines = tuple(replace(each, box=replace(each.box, y=each.box.y + 300)) for each in after.lines)
    moved = replace(after, parts=parts, lines=lines)
    assert [each.change for each in find_state_changes(before, moved, match_lines(before, moved))] == [
        "not checked → checked"
    ]


def test_changed_pixels_are_found_to_the_pixel() -> None:
    before = np.full((200, 300, 3), 255, np.uint8)
    after = before.copy()
    after[20:41, 30:62] = 0
    after[150, 280] = (255, 200, 255)
    assert find_changed_regions(before, after) == [Box(30, 20, 32, 21), Box(280, 150, 1, 1)]
    assert find_changed_regions(before, before) == []
    assert find_changed_regions(before, after[:, :200]) is None


def test_a_screen_with_many_changes_is_still_the_same_screen() -> None:
    before = screens.dialog()
    after = replace(before, lines=tuple(replace(line, text=f"{line.text} 2") for line in before.lines))
    report = compare_images(before, after, [Box(254, 160, 84, 12)])
    assert re.findall(r"\d+", report.text.splitlines()[0]) == ["1", "2", "0", "7"], "none of 7 lines is the same"
    assert any(spot.label.startswith("changed: ") for spot in report.spots)
    assert compare_images(before, screens.form(), None).text.count("\n") == 2


def test_different_screens_are_reported_as_different() -> None:
    report = compare_images(screens.dialog(), screens.form(), None)
    counts, titles, sizes = report.text.splitlines()
    assert re.findall(r"\d+", counts) == ["1", "2", "7", "15"]
    assert re.findall(r'"[^"]*"', titles) == ['"Backup Manager"', '"Create your account"']
    assert re.findall(r"\d+x\d+", sizes) == ["1040x600", "1280x900"]
    assert report.spots == ()
