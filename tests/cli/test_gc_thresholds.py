"""How often garbage is collected in commands that run for long."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import ALONE, environment
from tests.requirements import requirement

# A command, which says in the end how often garbage was collected.
_TELLING = """
import gc, sys
from sightline.cli.main import main
code = main(sys.argv[1:])
print(code, *gc.get_threshold(), file=sys.stderr)
"""


@requirement("cli.garbage")
@pytest.mark.parametrize("words", [["mcp"], ["run", "--", "true"], ["acp", "--", "true"]], ids=lambda words: words[0])
def test_a_command_that_goes_on_for_long_collects_its_garbage(words: list[str], tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _TELLING, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(SIGHTLINE_HOME=str(tmp_path), **ALONE),
        check=False,
        timeout=120,
    )
    assert "0 5000 20 20" in ended.stderr.splitlines()  # a slow machine may warn of an open file after it
