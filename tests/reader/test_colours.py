"""Names of colours, the most common ones of an image, those of a line, and photographs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box
from sightline.reader.colours import add_colours, find_dominant_colours, is_photograph, name_colour
from sightline.reader.reading import TextLine
from tests.reader.sketch import Sketch

CHANNEL = st.integers(0, 255)


@pytest.mark.parametrize(
    ("colour", "word"),
    [
        ((0, 0, 0), "black"),
        ((255, 255, 255), "white"),
        ((127, 127, 127), "grey"),
        ((214, 39, 40), "red"),
        ((255, 127, 14), "orange"),
        ((44, 160, 44), "green"),
        ((0, 103, 192), "blue"),
        ((148, 103, 189), "purple"),
        ((227, 119, 194), "pink"),
        ((140, 86, 75), "brown"),
        ((238, 243, 255), "light blue"),
    ],
)
def test_a_colour_has_its_plain_name(colour: tuple[int, int, int], word: str) -> None:
    assert name_colour(colour) == word


@given(st.tuples(CHANNEL, CHANNEL, CHANNEL))
def test_every_colour_has_a_name(colour: tuple[int, int, int]) -> None:
    assert name_colour(colour)


def test_the_colours_of_a_line_and_its_background_are_found() -> None:
    sketch = Sketch()
    sketch.box((0, 0, 320, 100), "#0067c0")
    sketch.write(20, 50, "Try again", 18, "#ffffff")
    sketch.write(20, 200, "Cancel", 18, "#d02020")
    first, second = add_colours(sketch.pixels, sketch.lines)
    assert first.ground == (0, 103, 192)
    assert first.ink is not None
    assert name_colour(first.ink) == "white"
    assert second.ground == (255, 255, 255)
    assert second.ink is not None
    assert name_colour(second.ink) == "red"


def test_a_line_beyond_the_image_is_unchanged() -> None:
    line = TextLine("gone", Box(900, 900, 40, 12))
    assert add_colours(Sketch().pixels, [line]) == (line,)


def test_the_commonest_colours_come_with_their_shares() -> None:
    sketch = Sketch((100, 100))
    sketch.box((0, 0, 100, 30), "#ff0000")
    sketch.box((0, 30, 100, 40), "#f5f6f8")
    assert find_dominant_colours(sketch.pixels) == (((255, 255, 255), 0.6), ((255, 0, 0), 0.3), ((245, 246, 248), 0.1))


def test_a_photograph_is_distinguished_from_a_screen() -> None:
    chance = np.random.default_rng(1)
    rough = np.cumsum(chance.integers(-9, 10, (200, 300, 3)), axis=1) + 128
    assert is_photograph(np.clip(rough, 0, 255).astype(np.uint8))
    page = 235 + chance.integers(0, 20, (200, 300, 3))
    assert not is_photograph(page.astype(np.uint8)), "a scanned page is mostly paper"
    slope = np.repeat(np.linspace(0, 255, 300)[None, :, None], 200, axis=0).repeat(3, axis=2)
    assert not is_photograph(slope.astype(np.uint8))
    assert not is_photograph(Sketch().pixels)
    assert not is_photograph(np.zeros((1, 1, 3), dtype=np.uint8))
