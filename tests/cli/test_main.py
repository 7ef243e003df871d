"""The command itself: help, version, wrong usage, errors, and that it imports nothing heavy."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sightline import __version__
from sightline.cli.main import VERBS, main
from sightline.cli.terminal import print_status
from sightline.cli.verbs import config
from tests.api.bad import PNG
from tests.cli.command import ALONE, COMMAND, assert_refused, environment, sightline
from tests.requirements import requirement

HEAVY = (
    "aiohttp",
    "uvicorn",
    "uvloop",
    "PIL",
    "sqlite3",
    "asyncio",
    "ssl",
    "orjson",
    "httptools",
    "numpy",
    "onnxruntime",
)

# What `serve` imports with the first request that needs it.
LATER = (
    "sightline.api",
    "sightline.commands.execution",
    "sightline.grounding.readers",
    "sightline.pixels.decode",
    "sightline.pixels.encode",
    "sightline.pixels.fit_image",
    "sightline.pixels.renderers.",
    "sightline.reader",
    "sightline.surfaces.inspector",
    "sightline.surfaces.mcp.server",
    "sightline.surfaces.proxy.prepare_endpoint",
)


def loaded_by(commands: list[list[str]]) -> dict[str, list[str]]:
    """Return for each command the heavy libraries that are loaded when it ends; all run in one process."""
    code = (
        "import json, sys; from sightline.cli.main import main\n"
        f"for words in {commands!r}:\n"
        "    code = main(words)\n"
        f"    loaded = [name for name in {HEAVY!r} if name in sys.modules]\n"
        "    print(json.dumps([' '.join(words), code, loaded]), file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in ended.stderr.splitlines() if line.startswith("[")]
    assert [code for _, code, _ in lines] == [0] * len(commands)
    return {words: loaded for words, _, loaded in lines}


@requirement("cli.light")
def test_help_imports_nothing_heavy() -> None:
    commands = [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)]
    assert loaded_by(commands) == {" ".join(words): [] for words in commands}


@requirement("cli.light")
def test_commands_without_a_proxy_do_not_import_it() -> None:
    assert loaded_by([["config", "get", "mode"], ["setup", "claude"]]) == {"config get mode": [], "setup claude": []}


# `serve`; what it had loaded when it said that it listens goes to stderr.
_TELLING = """
import os, signal, sys
class Telling:
    def write(self, text):
        if "listens on" in text:
            print(*sys.modules, file=sys.stderr)
            os.kill(os.getpid(), signal.SIGTERM)
    def flush(self): pass
    def isatty(self): return False
sys.stdout = Telling()
from sightline.cli.main import main
main(["serve", "--port", "0"])
"""


@requirement("cli.serve-light")
def test_serve_listens_before_it_imports_what_few_requests_need(tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", _TELLING],
        capture_output=True,
        text=True,
        env=environment(SIGHTLINE_HOME=str(tmp_path), **ALONE),
        check=False,
        timeout=120,
    )
    loaded = set(ended.stderr.splitlines()[0].split())
    assert "sightline.surfaces.proxy.app" in loaded
    heavy = {"PIL", "aiohttp", "numpy", "onnxruntime", "pyvips", "mcp", "uvicorn", "urllib.request", "xml.etree"}
    assert loaded & heavy == set()
    assert [name for name in loaded if name.startswith(LATER)] == []


def test_help_lists_every_verb() -> None:
    ended = sightline("--help", command=COMMAND)
    assert ended.code == 0
    listed = {line.split()[0] for line in ended.out.splitlines() if line.startswith("    ") and line[4] != " "}
    assert listed == set(VERBS)
    assert "example:" in ended.out


@requirement("cli.help", "cli.exit")
@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_has_an_example(verb: str) -> None:
    ended = sightline(verb, "--help")
    assert (ended.code, ended.err) == (0, "")
    assert f"example:\n  sightline {verb}" in ended.out


def test_the_version_is_printed() -> None:
    assert sightline("--version", command=COMMAND).out == f"sightline {__version__}\n"


@requirement("cli.exit")
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["dance"],
        ["--dance"],
        ["serve", "--port", "many"],
        ["serve", "--dance"],
        ["serve", "more"],
        ["run"],
        ["run", "--"],
        ["run", "-v"],
        ["run", "--dance", "--", "true"],
        ["setup"],
        ["setup", "emacs"],
        ["doctor", "now"],
        ["config", "dance"],
        ["config", "get"],
        ["config", "set", "mode"],
        ["consent", "perhaps"],
        ["consent", "yes", "openai", "zai"],
    ],
)
def test_wrong_usage_ends_with_2(words: list[str]) -> None:
    ended = sightline(*words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(config, "run", interrupted)
    assert main(["config", "show"]) == 130


@requirement("cli.no_traceback")
def test_an_internal_error_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> int:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(config, "run", broken)
    assert main(["config", "show"]) == 1
    said = capsys.readouterr().err
    assert (said.startswith("sightline: "), said.endswith("RuntimeError: two lines\n"), said.count("\n")) == (
        True,
        True,
        1,
    )


def test_a_closed_stdout_is_not_an_error() -> None:
    with subprocess.Popen(
        [*COMMAND, "config", "show"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0


def test_a_status_message_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_status("first\nsecond")
    assert capsys.readouterr().err == "sightline: first second\n"


@requirement("cli.wrong_usage")
def test_wrong_usage_names_the_right_usage() -> None:
    alone = sightline()
    assert (alone.code, alone.out) == (2, "")
    assert alone.err == sightline("--help").out
    for words, facts in (
        (["veiw"], ["'veiw'", " view"]),
        (["dance"], ["'dance'", "sightline --help"]),
        (["serve", "--port", "99999"], ["--port", "'99999'", "65535"]),
        (["serve", "--workers", "0"], ["--workers", "'0'", "64"]),
        (["probe", "--base-url", "x", "--model", "m", "--timeout", "-1"], ["--timeout", "'-1'", "3600"]),
        (["models", "take"], ["list|get"]),
    ):
        ended = sightline(*words)
        assert (ended.code, ended.out, [fact for fact in facts if fact not in ended.err]) == (2, "", []), ended
    assert_refused(sightline("models", "get", "big"), "'big'", "sightline models get tiny")
    assert sightline("models", "list", "tiny").code == 1


@requirement("cli.wrong_usage")
@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_a_terminal(verb: str) -> None:
    before, _, _ = sightline(verb, "--help").out.partition("example:")
    assert max(map(len, before.splitlines())) <= 100


@requirement("cli.no_traceback")
def test_a_full_disk_and_an_ascii_terminal_are_not_internal_errors(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        words = [*COMMAND, "config", "show"]
        ended = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (1, 1)
    assert ended.stderr.startswith("sightline: ")
    assert os.strerror(errno.ENOSPC) in ended.stderr
    (tmp_path / "für.png").write_bytes(PNG)
    env = {"PYTHONIOENCODING": "ascii"}
    shown = sightline("view", "für.png", env=env, folder=tmp_path, command=COMMAND)
    assert (shown.code, shown.err, shown.out.startswith("f\\xfcr.png: ")) == (0, "", True)
    assert sightline("view", "für.png", "--json", env=env, folder=tmp_path, command=COMMAND).json["source"] == "für.png"


@requirement("cli.one_line")
def test_a_log_line_starts_with_the_program_name(home: Path) -> None:
    (home / "record").write_text("in the way")
    ended = sightline("consent")
    assert ended.err.startswith("sightline: ")
    assert str(home / "record") in ended.err.splitlines()[0]
