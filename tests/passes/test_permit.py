"""The pass `permit`: images that are never read, decoded or sent."""

from __future__ import annotations

import pytest

from sightline.model.facts import Facts
from sightline.model.image import MAX_FILE_BYTES
from sightline.model.scene import InlineSource, LinkSource, OpaqueSource, Refused, Scene
from sightline.passes import permit
from sightline.passes.wording import write_absence
from tests.passes.scenes import BLIND, Table, inline, rules, scene
from tests.requirements import requirement

ENCODED = MAX_FILE_BYTES // 3 * 4  # what so many bytes are in base64


def test_an_image_of_the_largest_size_may_be_read() -> None:
    largest = scene(inline(length=ENCODED), inline("b"))
    assert permit(largest, Facts(), rules()) == largest


@requirement("permit.size")
def test_a_larger_image_is_refused_without_being_opened() -> None:
    for laws in (rules(), BLIND):
        table = Table()
        (fate,) = table.fates(scene(inline(length=ENCODED + 5), filename="huge.png"), laws)
        assert isinstance(fate, Refused)
        assert fate.refusal.code == "too_large"
        assert fate.text == write_absence(fate.refusal, "huge.png")
        assert "64 MiB" in fate.text
        assert table.asked == []


@requirement("permit.size", "fit.figures")
@pytest.mark.parametrize(("line", "end"), [(64, b"\n"), (76, b"\n"), (76, b"\r\n"), (76, rb"\r\n")])
@pytest.mark.parametrize(("length", "allowed"), [(ENCODED, True), (ENCODED + 400, False)])
def test_line_breaks_do_not_count(line: int, end: bytes, length: int, allowed: bool) -> None:
    """The file is measured, not its base64 text."""
    lines, rest = divmod(length, line)
    text = (b"A" * line + end) * lines + b"A" * rest
    outcome = permit(scene(InlineSource("image/png", text)), Facts(), rules())
    assert isinstance(outcome, Scene)
    assert (outcome.sights[0].fate is None) is allowed


def test_links_and_opaque_sources_are_not_measured() -> None:
    elsewhere = scene(LinkSource("https://example.com/huge.png"), OpaqueSource("file_1"))
    outcome = permit(elsewhere, Facts(), rules())
    assert isinstance(outcome, Scene)
    assert outcome == elsewhere
