"""What every test gets: a home of its own, nobody's keys or settings, and steady examples."""

from __future__ import annotations

import gc
import importlib
import itertools
import os
import signal
import sys
import tempfile
from collections.abc import Generator
from contextlib import suppress
from pathlib import Path

import pytest

# A suite in the background of a script ignores Ctrl-C, and so would all that it starts; people start things in front.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Hundreds of processes are started here: where nothing compiled may be kept, each compiles everything anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

from hypothesis import settings  # noqa: E402 - a hundred modules that are kept as well

from sightline.vision import seers  # noqa: E402
from tests.lent_workers import lend_workers  # noqa: E402

lend_workers()

# Before a failed question is repeated: dozens of tests ask where nothing answers, and forked commands pause as long.
seers.RETRY_SECONDS = 0.02

# A slow machine is no failure, and a failure is the same one every time. `make fuzz` tries more, and others each time.
settings.register_profile("sightline", deadline=None, derandomize=True, database=None, max_examples=50)
settings.register_profile("fuzz", deadline=None, database=None, max_examples=300)
settings.load_profile("fuzz" if "FUZZ_EXAMPLES" in os.environ else "sightline")

# Settings, keys and proxies of the machine that would change what a test sees.
PERSONAL = ("SIGHTLINE_", "PI_VISION_PROXY_", "ANTHROPIC_", "OPENAI_", "CLAUDE_")
PERSONAL_ENDINGS = ("_API_KEY", "_AUTH_TOKEN", "_PROXY", "_proxy")
_HOME_NUMBERS = itertools.count()

_MEMORY_FOLDER = Path("/dev/shm")
_MEMORY_NEEDED = 2 << 30  # bytes; a whole run leaves about half a gigabyte of files until its end


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Two more than there are processors: many tests wait, for a process or for a clock."""
    return (os.cpu_count() or 1) + 2


def pytest_configure(config: pytest.Config) -> None:
    """Keep the files of a parallel run in memory if it has room: each write to a record waits for its disk."""
    if config.getoption("numprocesses", None) and "TMPDIR" not in os.environ and _has_room(_MEMORY_FOLDER):
        os.environ["TMPDIR"] = str(_MEMORY_FOLDER)
        tempfile.tempdir = None  # it is looked up again


def _has_room(folder: Path) -> bool:
    """Return whether programs can be run from a folder in memory that is large enough."""
    if not folder.is_dir():
        return False
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize >= _MEMORY_NEEDED and not status.f_flag & os.ST_NOEXEC


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Ten thousand tests are found and stay to the end: nobody need look through them for garbage, then or later."""
    gc.disable()
    if session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        _import_share(session.config.rootpath)
    found = yield
    gc.enable()
    gc.freeze()
    return found


def _import_share(root: Path) -> None:
    """Import some of the test modules, others in each process: in a fresh clone, each compiles only its share."""
    count = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    files = sorted(path.relative_to(root).with_suffix("") for path in root.glob("tests/**/test_*.py"))
    for file in files[number::count] if count > 1 else ():
        if "e2e" not in file.parts:
            with suppress(Exception):  # it fails again when it is collected, and that is reported
                importlib.import_module(".".join(file.parts))


@pytest.fixture(autouse=True)
def _a_home_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in tuple(os.environ):
        if name.startswith(PERSONAL) or name.endswith(PERSONAL_ENDINGS):
            monkeypatch.delenv(name)
    # Not by `mktemp`: it reads all the names of its folder for each new one, and these are thousands.
    home = tmp_path_factory.getbasetemp() / "homes" / f"home{next(_HOME_NUMBERS)}"
    home.mkdir(mode=0o700, parents=True)
    monkeypatch.setenv("SIGHTLINE_HOME", str(home))
    return home


@pytest.fixture
def home(_a_home_of_its_own: Path) -> Path:
    """Where settings and record of this test stand."""
    return _a_home_of_its_own
