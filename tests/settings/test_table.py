"""The documentation of the settings matches the settings."""

from __future__ import annotations

from pathlib import Path

from tests.requirements import requirement
from tests.settings.table import table

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"


@requirement("settings.table")
def test_the_documented_table_matches_the_settings() -> None:
    text = DOCUMENT.read_text("utf-8")
    first = text.partition("\n## ")[0]
    rows = [line for line in first.splitlines() if line.startswith("|")]
    assert "\n".join(rows) == table(), "run: python -m tests.settings.table, and paste it into docs/settings.md"
