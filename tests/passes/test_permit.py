"""What is never read, decoded or sent."""

from __future__ import annotations

import pytest

from sightline.model.facts import Facts
from sightline.model.fate import Refused
from sightline.model.image import MAX_BYTES
from sightline.model.scene import Scene
from sightline.model.source import Inline, Link, Opaque
from sightline.passes.permit import permit
from sightline.passes.words import absence
from tests.passes.scenes import BLIND, Table, inline, rules, scene
from tests.requirements import requirement

ENCODED = MAX_BYTES // 3 * 4  # what so many bytes are in base64


def test_an_image_of_the_largest_size_may_be_read() -> None:
    largest = scene(inline(length=ENCODED), inline("b"))
    assert permit(largest, Facts(), rules()) == largest


@requirement("permit.size")
def test_a_larger_one_is_refused_and_nobody_is_asked_to_open_it() -> None:
    for laws in (rules(), BLIND):
        table = Table()
        (fate,) = table.fates(scene(inline(length=ENCODED + 5), filename="huge.png"), laws)
        assert isinstance(fate, Refused)
        assert fate.refusal.code == "too_large"
        assert fate.words == absence(fate.refusal, "huge.png")
        assert "64 MiB" in fate.words
        assert table.asked == []


@requirement("permit.size", "fit.figures")
@pytest.mark.parametrize("line", [64, 76])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", rb"\r\n"])
@pytest.mark.parametrize(("length", "allowed"), [(ENCODED, True), (ENCODED + 400, False)])
def test_line_breaks_do_not_count(line: int, end: bytes, length: int, allowed: bool) -> None:
    """What is measured is the file, not the text that it is written in."""
    lines, rest = divmod(length, line)
    text = (b"A" * line + end) * lines + b"A" * rest
    outcome = permit(scene(Inline("image/png", text)), Facts(), rules())
    assert isinstance(outcome, Scene)
    assert (outcome.sights[0].fate is None) is allowed


def test_what_is_kept_elsewhere_is_not_measured() -> None:
    elsewhere = scene(Link("https://example.com/huge.png"), Opaque("file_1"))
    outcome = permit(elsewhere, Facts(), rules())
    assert isinstance(outcome, Scene)
    assert outcome == elsewhere
