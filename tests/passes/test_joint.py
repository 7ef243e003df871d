"""The prompt for several images: hints from file names, and harmless names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Size
from sightline.passes.wording import (
    build_hints,
    build_joint_prompt,
    find_filename_hint,
    find_similar_pairs,
    introduce_images,
)
from tests.requirements import requirement


@requirement("FR-2.5.1", "FR-2.5.1.version")
@pytest.mark.parametrize(
    ("names", "hint"),
    [
        (["before.png", "after.png"], "before/after pair"),
        (["AFTER-login.jpg", "Before_login.png"], "before/after pair"),
        (["before1.png", "after1.png"], "before/after pair"),
        (["beforehand.png", "afternoon.png"], ""),
        (["old.png", "new.png"], "old/new pair"),
        (["older.png", "newer.png"], ""),
        (["mockup_v2.png", "mockup_v4.png"], "versioned sequence"),
        (["draft_v1.1.png", "draft_v1.2.png"], "versioned sequence"),
        (["app2.png", "APP3.PNG"], "versioned sequence"),
        (["shot_1.png", "shot_2.png"], "versioned sequence"),
        (["app2.png", "app2.jpg"], ""),
        (["app2.png", "app02.png"], ""),
        (["draft_v1.1.png", "draft_v1.10.png"], "versioned sequence"),
        (["left_1.png", "right_2.png"], "numbered sequence"),
        (["left-1.png", "right-2.png"], "numbered sequence"),
        (["left_1.png", "right-2.png"], ""),
        (["2026-01-02_a.png", "2026-03-01_b.png"], "time-ordered sequence"),
        (["2026-01-02_a.png", "b.png"], ""),
        (["before.png", "after.png", "v1.png", "v2.png"], "before/after pair"),
        (["old.png", "new.png", "a_1.png", "b_2.png"], "old/new pair"),
        (["a.png", "b.png"], ""),
        (["", "before.png"], ""),
        ([], ""),
    ],
)
def test_the_first_matching_pattern_is_the_hint(names: list[str], hint: str) -> None:
    assert find_filename_hint(names) == hint


@given(st.lists(st.text(max_size=40), max_size=6))
def test_any_names_give_one_hint_or_none(names: list[str]) -> None:
    assert find_filename_hint(names) in (
        *("", "before/after pair", "old/new pair", "versioned sequence", "numbered sequence", "time-ordered sequence"),
    )


@requirement("FR-2.5.2")
def test_only_pairs_over_the_threshold_are_named() -> None:
    likeness = [[1, 0.9, 0.0], [0.9, 1, 0.8], [0.0, 0.8, 1]]
    assert list(find_similar_pairs(likeness, 0.8)) == [(1, 2, 0.9), (2, 3, 0.8)]
    assert list(find_similar_pairs(likeness, 0.85)) == [(1, 2, 0.9)]
    (alike,) = build_hints(["a.png", "b.png"], [(1, 2, 0.9)])
    assert all(fact in alike for fact in ("Image 1", "Image 2", "0.90"))
    assert build_hints(["a.png", "b.png"], []) == []


@requirement("FR-2.5.3")
def test_hints_come_before_the_question() -> None:
    told = build_joint_prompt(3, "Warum?", ["one", "two"])
    assert told.startswith("You are analysing 3 images that the user has provided together.\n")
    assert told.endswith("\n\n[Structural hints (advisory; the user's prompt wins): one; two]\n[User's prompt: Warum?]")
    assert "hints" not in build_joint_prompt(2, "Why?")


def test_an_introduced_name_is_one_line() -> None:
    assert (
        introduce_images([(Size(2, 3), "a\nb.png"), (Size(4, 5), "")])
        == "Image 1: 2x3 pixels (a b.png)\nImage 2: 4x5 pixels"
    )
