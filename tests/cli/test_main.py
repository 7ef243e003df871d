"""The command itself: help, version, wrong usage, and that all of it stays light."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sightline import __version__
from sightline.cli import config
from sightline.cli.main import VERBS, main
from sightline.cli.verb import say
from tests.cli.command import COMMAND, environment, sightline
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


def loaded_by(*words: str) -> list[str]:
    """The heavy libraries that a command has loaded when it ends."""
    code = (
        "import sys; from sightline.cli.main import main\n"
        f"code = main({list(words)!r})\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], code, file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    last = ended.stderr.splitlines()[-1]
    assert last.endswith(" 0")
    return [name for name in HEAVY if repr(name) in last]


@requirement("cli.light")
@pytest.mark.parametrize("words", [["--help"], ["--version"], *([verb, "--help"] for verb in VERBS)])
def test_help_stays_light(words: list[str]) -> None:
    assert loaded_by(*words) == []


@requirement("cli.light")
@pytest.mark.parametrize("words", [["setup", "claude"], ["config", "get", "mode"]])
def test_what_needs_no_proxy_loads_none(words: list[str]) -> None:
    assert loaded_by(*words) == []


def test_help_lists_every_verb() -> None:
    ended = sightline("--help", command=COMMAND)
    assert ended.code == 0
    listed = {line.split()[0] for line in ended.out.splitlines() if line.startswith("    ") and line[4] != " "}
    assert listed == set(VERBS)
    assert "example:" in ended.out


@requirement("cli.help", "cli.exit")
@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_verb_has_an_example(verb: str) -> None:
    ended = sightline(verb, "--help", command=COMMAND)
    assert (ended.code, ended.err) == (0, "")
    assert f"example:\n  sightline {verb}" in ended.out


def test_the_version_is_told() -> None:
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
        ["config"],
        ["config", "dance"],
        ["config", "get"],
        ["config", "set", "mode"],
        ["consent", "perhaps"],
        ["consent", "yes", "openai", "zai"],
    ],
)
def test_wrong_usage_ends_with_2(words: list[str]) -> None:
    ended = sightline(*words, command=COMMAND)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(config, "run", interrupted)
    assert main(["config", "show"]) == 130


@requirement("cli.no_traceback")
def test_a_fault_of_our_own_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def broken(*_: object) -> int:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr(config, "run", broken)
    assert main(["config", "show"]) == 1
    assert capsys.readouterr().err == "sightline: this is a fault of Sightline's own: RuntimeError: two lines\n"


def test_a_reader_that_leaves_early_is_no_trouble() -> None:
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


def test_what_is_said_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    say("first\nsecond")
    assert capsys.readouterr().err == "sightline: first second\n"
