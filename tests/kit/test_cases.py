"""Every part has a folder of cases, and does what they say."""

from __future__ import annotations

import pytest

from tests.kit import FOLDER, KINDS, UPDATE, Case, find_cases
from tests.requirements import requirement


@requirement("rooms.kit")
@pytest.mark.parametrize("case", find_cases(), ids=str)
def test_each_part_matches_its_case(case: Case) -> None:
    made = case.make()
    if UPDATE:
        case.write(made)
    assert made == case.read()["expected"]


@requirement("rooms.kit")
@pytest.mark.parametrize("kind", KINDS)
def test_each_listed_part_has_a_folder_of_cases(kind: str) -> None:
    found = {folder.name for folder in (FOLDER / kind).iterdir() if any(folder.glob("*.json"))}
    assert found == set(KINDS[kind].names)
    assert {folder.name for folder in FOLDER.iterdir()} == KINDS.keys()
