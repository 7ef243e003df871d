"""No dependency has a licence that must not be used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.requirements import requirement

SCRIPT = Path(__file__).parents[1] / "scripts" / "licences"


@requirement("project.licences")
def test_no_package_of_the_environment_is_agpl() -> None:
    listed = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, check=False)
    assert (listed.returncode, listed.stderr) == (0, "")
    assert {"obstore", "pillow", "psycopg"} <= {line.split()[0] for line in listed.stdout.splitlines()}
