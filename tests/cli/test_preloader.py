"""What a server imports and builds in the background, once it listens."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event

from sightline.cli.compose import Preloader
from tests.cli.command import ALONE, environment
from tests.requirements import requirement

PRELOADED = {
    "sightline.api.tool_registry",
    "sightline.commands.execution",
    "sightline.surfaces.inspector",
    "sightline.surfaces.proxy.prepare_endpoint",
}

# `serve`, which stops itself when it has preloaded everything. What is loaded then goes to stderr, and whether an error
# response, and a text with numbers that may be bytes, can be read without compiling a pattern.
_PRELOADING = """
import json, os, re, signal, sys
from sightline.cli import compose
from sightline.profiles.rejections import is_page_limit
from sightline.profiles.rejections import is_about_shape, parse_rejection
from sightline.wire.image_bytes import find_printed_images

numbers = "7, " * 99 + "7"

def refuse(*args):
    raise AssertionError("a pattern was compiled")

class Telling(compose.Preloader):
    def _run(self):
        super()._run()
        re.purge()
        re._compiler.compile = refuse
        try:
            found = [parse_rejection(400, "no idea"), is_about_shape("no idea"), is_page_limit(400, "no idea")]
            found += find_printed_images(numbers, numbers.encode(), None)
            print(json.dumps([found, *sys.modules]), file=sys.stderr)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

compose.Preloader = Telling
from sightline.cli.main import main
main(["serve", "--port", "0"])
"""

# `serve`, which is stopped while it says that it listens.
_STOPPED = """
import os, signal, sys
class Stopping:
    def write(self, text):
        if "listens on" in text:
            os.kill(os.getpid(), signal.SIGTERM)
    def flush(self): pass
    def isatty(self): return False
sys.stdout = Stopping()
from sightline.cli.main import main
sys.exit(main(["serve", "--port", "0"]))
"""


def run(code: str, home: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment(SIGHTLINE_HOME=str(home), **ALONE),
        check=False,
        timeout=120,
    )


@requirement("serve.preload")
def test_a_server_that_listens_preloads_what_requests_would_wait_for(tmp_path: Path) -> None:
    ended = run(_PRELOADING, tmp_path)
    assert ended.stderr.count("\n") == 1, ended.stderr
    found, *loaded = json.loads(ended.stderr)
    assert found == [None, False, False]
    assert {*loaded} >= PRELOADED


@requirement("serve.preload")
def test_a_server_that_is_stopped_at_once_ends_silently(tmp_path: Path) -> None:
    ended = run(_STOPPED, tmp_path)
    assert (ended.returncode, ended.stderr) == (143, "")


@requirement("serve.preload")
def test_a_preloader_that_is_stopped_takes_no_more_steps() -> None:
    taken = []

    def take_steps() -> Iterator[None]:
        taken.append("a step")
        yield

    preloader = Preloader(take_steps(), delay=0)
    preloader.stop()
    preloader.start()
    preloader.stop()
    assert taken == []


@requirement("serve.preload")
def test_a_step_that_fails_ends_the_preloader_silently() -> None:
    failing = Event()

    def fail() -> Iterator[None]:
        yield
        failing.set()
        raise OSError("gone")

    preloader = Preloader(fail(), delay=0)
    preloader.start()
    assert failing.wait(60)
    preloader.stop()
