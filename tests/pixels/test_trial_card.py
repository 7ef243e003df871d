"""The trial card: its picture shows its colours and its code."""

from __future__ import annotations

import io
from itertools import combinations
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sightline.pixels.trial_card import CODE_LENGTH, COLOURS, GLYPHS, LETTERS, SIZE, TrialCard
from tests.requirements import requirement
from tests.scripted.eye import look


@requirement("probe.unguessable")
@given(st.integers(0, 2**64))
def test_a_card_shows_its_colours_and_code(seed: int) -> None:
    card = TrialCard.from_random(Random(seed))
    seen = look(card.to_png())
    assert seen is not None
    assert (seen.plain, seen.code) == (card.colours, card.code)


@requirement("probe.unguessable")
def test_cards_differ_and_are_drawn_from_very_many() -> None:
    cards = {TrialCard.from_random(Random(seed)) for seed in range(500)}
    assert len(cards) == 500
    assert all(len(set(card.colours)) == 4 for card in cards)
    assert len(LETTERS) ** CODE_LENGTH * len(COLOURS) * (len(COLOURS) - 1) > 10**9


def test_every_letter_looks_different() -> None:
    assert set(GLYPHS) == set(LETTERS)
    assert len(GLYPHS) == len(LETTERS)
    for one, other in combinations(GLYPHS.values(), 2):
        assert sum(a != b for a, b in zip("".join(one), "".join(other), strict=True)) >= 3
    assert {(len(rows), *map(len, rows)) for rows in GLYPHS.values()} == {(7, *[5] * 7)}


def test_a_card_is_a_plain_png_that_survives_a_small_jpeg() -> None:
    card = TrialCard.from_random(Random(1))
    image = Image.open(io.BytesIO(card.to_png()))
    assert (image.format, image.mode, image.size) == ("PNG", "RGB", SIZE)
    assert len(card.to_png()) < 8192
    file = io.BytesIO()
    image.resize((360, 270), Image.Resampling.LANCZOS).save(file, "jpeg", quality=60)
    seen = look(file.getvalue())
    assert seen is not None
    assert (seen.plain, seen.code) == (card.colours, card.code)
