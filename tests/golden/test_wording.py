"""Every sentence of the product as it is, in one golden file for each surface. No other test pins one.

After a change of wording: `SIGHTLINE_UPDATE_GOLDEN=1 .venv/bin/python -m pytest -n 0 tests/golden/test_wording.py`
writes the files anew, and `git diff tests/golden/wording` shows what has become of each sentence.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command import ALONE
from tests.golden import wording
from tests.golden.wording import acp, cli, library, mcp, proxy, reader
from tests.requirements import requirement

SURFACES = {
    "cli": cli.CASES,
    "proxy": proxy.CASES,
    "mcp": mcp.CASES,
    "acp": acp.CASES,
    "library": library.CASES,
    "reader": reader.CASES,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working folder of a case, on a machine where nobody looks. A case may change its folder and environment."""
    wording.fill(tmp_path)
    monkeypatch.chdir(tmp_path)
    before = dict(os.environ)
    os.environ.update(ALONE)
    yield tmp_path
    os.environ.clear()
    os.environ.update(before)


@requirement("project.wording")
@pytest.mark.parametrize(("surface", "case"), [(name, case) for name, cases in SURFACES.items() for case in cases])
def test_each_surface_matches_its_golden_file(surface: str, case: str, folder: Path) -> None:
    said = wording.normalise(SURFACES[surface][case](folder), folder)
    assert said
    held = wording.read(surface)
    if wording.UPDATE:
        wording.write(
            surface, {name: {**held, case: said}[name] for name in SURFACES[surface] if name in {*held, case}}
        )
    else:
        assert said == held.get(case), f"what has changed? {wording.__name__} says how to rewrite the golden file"


@pytest.mark.parametrize("surface", SURFACES)
def test_a_golden_file_has_no_removed_cases(surface: str) -> None:
    assert list(wording.read(surface)) == list(SURFACES[surface])
