"""One kit for parts of a kind: whoever adds a part adds its folder of cases, and writes no test.

`cases/KIND/NAME/CASE.json` has what is `given` to the part of that name and what is `expected` of it. KINDS has the
kinds of parts: the package's own list that names them, and how a case is run. After a change that is meant, run
`SIGHTLINE_UPDATE_GOLDEN=1 .venv/bin/python -m pytest -n 0 tests/kit`, and read `git diff tests/kit/cases`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kit import seer_cases, source_cases, wire_cases

FOLDER = Path(__file__).parent / "cases"
UPDATE = bool(os.environ.get("SIGHTLINE_UPDATE_GOLDEN"))


@dataclass(frozen=True)
class Kind:
    """A kind of parts. `names` are those in the package's own list; `run` returns what a part makes of a case."""

    names: Collection[str]
    run: Callable[[str, Any], Any]


KINDS = {
    "wires": Kind(wire_cases.NAMES, wire_cases.run),
    "seers": Kind(seer_cases.NAMES, seer_cases.run),
    "sources": Kind(source_cases.NAMES, source_cases.run),
}


@dataclass(frozen=True)
class Case:
    kind: str
    part: str
    path: Path

    def __str__(self) -> str:
        return f"{self.kind}/{self.part}/{self.path.stem}"

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path.read_text("utf-8"))
        return found

    def make(self) -> Any:
        """What the part makes of it now, as JSON reads it back."""
        return json.loads(json.dumps(KINDS[self.kind].run(self.part, self.read()["given"])))

    def write(self, expected: Any) -> None:
        text = json.dumps({"given": self.read()["given"], "expected": expected}, indent=2, ensure_ascii=False)
        self.path.write_text(f"{text}\n", "utf-8")


def find_cases() -> list[Case]:
    return [Case(path.parts[-3], path.parts[-2], path) for path in sorted(FOLDER.glob("*/*/*.json"))]
