"""The size in which a model that answers in pixels sees an image."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.grounding import GRIDS, PixelGrid
from sightline.model.geometry import Size
from tests.requirements import requirement

SIDES = st.integers(1, 16_384)


@requirement("grounding.presized")
@pytest.mark.parametrize(
    ("given_size", "seen"),
    [
        (Size(3840, 2160), Size(1316, 728)),
        (Size(1920, 1080), Size(1316, 728)),
        (Size(280, 140), Size(280, 140)),
        (Size(100, 100), Size(112, 112)),
        (Size(1, 1), Size(56, 56)),
    ],
)
def test_qwen_sees_an_image_in_multiples_of_28(given_size: Size, seen: Size) -> None:
    assert GRIDS["qwen_pixels"].compute_seen_size(given_size) == seen


@requirement("grounding.presized")
@given(st.sampled_from(sorted(GRIDS)), SIDES, SIDES)
def test_a_seen_size_is_stable(name: str, width: int, height: int) -> None:
    grid: PixelGrid = GRIDS[name]
    once = grid.compute_seen_size(Size(width, height))
    assert once.width % grid.step == once.height % grid.step == 0
    if max(width, height) <= 100 * min(width, height):  # beyond that, no whole grid has the shape
        assert grid.compute_seen_size(once) == once
