"""The requirements manifest: every behaviour that is asked of Sightline, and which of them do not hold yet.

The rows stand in `tests/requirements/`, a page for each subject. To add one, append a row to its page: an id, one
sentence in the present tense, where it comes from, and `shown` or `open`. The test that shows it carries
`@requirement("id")`; what no test shows yet, or only in part, is open.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PAGES = Path(__file__).with_suffix("")

# In the order of the packages, then of the surfaces.
SUBJECTS = (
    *("laws", "wire", "lowering", "profiles", "permits", "retention", "fit", "describing", "fences", "analyze"),
    *("grounding", "pixels", "view", "ask", "record", "telemetry", "engine", "settings"),
    *("library", "proxy", "loop", "mcp_acp", "cli", "project"),
)
HEADER = ["id", "what holds", "source", "state"]


@dataclass(frozen=True, slots=True)
class Requirement:
    id: str
    sentence: str
    source: str


def _rows() -> Iterator[tuple[Requirement, bool]]:
    """Each requirement, and whether it is open."""
    pages = {page.stem for page in PAGES.glob("*.md")}
    assert pages == set(SUBJECTS), f"not a page and a subject: {pages ^ set(SUBJECTS)}"
    for subject in SUBJECTS:
        lines = (PAGES / f"{subject}.md").read_text("utf-8").splitlines()
        head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line[:1] == "|"]
        assert head == HEADER, f"{subject}.md: {head}"
        for name, sentence, source, state in rows:
            assert state in ("shown", "open"), f"{subject}.md: {name} is {state!r}"
            yield Requirement(name, sentence, source), state == "open"


_ALL = tuple(_rows())
REQUIREMENTS: tuple[Requirement, ...] = tuple(each for each, _ in _ALL)
OPEN: frozenset[str] = frozenset(each.id for each, is_open in _ALL if is_open)


def requirement(*ids: str) -> pytest.MarkDecorator:
    """Say which requirements a test shows; the ids are written out, so that they can be found by reading."""
    return pytest.mark.requirement(*ids)
