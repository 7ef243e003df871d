"""Text in unknown scripts is reported as unread, whatever it looks like."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sightline.model.refusal import Refusal
from sightline.reader.ocr.page import read_page
from sightline.reader.ocr.recognizer import Character, is_doubtful_script, is_foreign_script
from sightline.reader.ocr.weights import open_engine
from tests.requirements import requirement

KEPT = Path(__file__).parent / "kept"


def spelt(text: str) -> list[Character]:
    return [Character(letter, 0.5, 1.0) for letter in text]


@requirement("read.unknown")
def test_only_latin_text_of_a_mixed_page_is_read() -> None:
    """Seven lines of Russian, four of Greek, one each of Hebrew and Arabic; some look like Latin to the letter."""
    engine = open_engine()
    assert not isinstance(engine, Refusal), engine
    found = read_page(np.asarray(Image.open(KEPT / "alphabets.png").convert("RGB")), engine)
    texts = [line.text for line in found.lines]
    assert texts == ["Windows 11", "install.log", "user_42@example.org", "192.168.0.17"]
    assert len(found.unread) == 13
    assert (found.unread[4].x, found.unread[4].width) == (21, 60)


@pytest.mark.parametrize("text", ["MocKBa", "CepBep 7", "KoT Ha OKHe oKHa", "Aθνα", "T αρχε", "00000 0000"])
def test_a_line_that_mixes_alphabets_was_not_read(text: str) -> None:
    assert is_foreign_script(spelt(text), 0.98)


@pytest.mark.parametrize(
    "text", ["MacBook Pro", "copyTo(there)", "Δt = 3 μm", "JavaScript", "0000", "σ² + α", "pH 7", "PayPal", "東京 2026"]
)
def test_names_formulas_and_figures_are_read(text: str) -> None:
    assert not is_foreign_script(spelt(text), 0.999)


@pytest.mark.parametrize(("text", "other"), [("TIMH", True), ("Tema", True), ("Windows", False), ("42", False)])
def test_ambiguous_letters_on_a_page_in_other_scripts_are_not_read(text: str, *, other: bool) -> None:
    assert is_doubtful_script(spelt(text), 0.999) is other
    assert is_doubtful_script(spelt(text), 0.95)


@given(st.text(), st.floats(0, 1))
def test_any_text_can_be_classified_by_script(text: str, sure: float) -> None:
    assert is_foreign_script(spelt(text), sure) in (True, False)
    assert is_doubtful_script(spelt(text), sure) in (True, False)


def test_text_in_other_scripts_is_reported_as_unread() -> None:
    engine = open_engine()
    assert not isinstance(engine, Refusal), engine
    pixels = np.asarray(Image.open(KEPT / "alphabets.png").convert("RGB"))[:, :290]
    page = read_page(pixels, engine)
    assert page.lines == ()
    assert len(page.unread) == 11
