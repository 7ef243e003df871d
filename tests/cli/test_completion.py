"""`sightline completion`, `sightline help`, and verbs without an action."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sightline.agents import AGENTS
from sightline.cli.main import VERBS, build_verb_parser, main
from sightline.cli.terminal import CommandLine
from sightline.cli.verbs.completion import list_command_words
from sightline.settings import KEYS
from tests.cli.command import sightline
from tests.requirements import requirement

# A function that completes the last of its words, one answer per line.
_BASH = """
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _sightline; printf '%s\\n' "${COMPREPLY[@]}"; }
"""


@pytest.fixture(scope="module")
def scripts() -> dict[str, str]:
    found = {shell: sightline("completion", shell) for shell in ("bash", "zsh", "fish")}
    assert {(ended.code, ended.err) for ended in found.values()} == {(0, "")}
    return {shell: ended.out for shell, ended in found.items()}


def run_shell(*command: str, given: str = "") -> str:
    ended = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout


@requirement("cli.completion")
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("sightline se", {"serve", "setup"}),
        ("sightline --v", {"--version"}),
        ("sightline config un", {"unset"}),
        ("sightline config set mo", {"mode", "model", "modelId", "models"}),
        ("sightline config set mode ''", {"fallback", "always", "off", "route", "--help", "--json"}),
        ("sightline config set seer o", {"off"}),
        ("sightline config set model a", {""}),
        ("sightline config get mode m", {""}),
        ("sightline config get --j", {"--json"}),
        ("sightline setup c", {name for name in AGENTS if name.startswith("c")}),
        ("sightline setup claude --u", {"--upstream", "--undo"}),
        ("sightline setup claude --upstream deeps", {"deepseek"}),
        ("sightline serve --log j", {"json"}),
        ("sightline serve --port 1", {""}),
        ("sightline run -- serv", {""}),
        ("sightline models li", {"list"}),
        ("sightline consent y", {"yes"}),
        ("sightline help us", {"usage"}),
        ("sightline completion z", {"zsh"}),
        ("sightline nothing s", {""}),
    ],
)
def test_bash_completes(scripts: dict[str, str], typed: str, expected: set[str]) -> None:
    out = run_shell("bash", "--norc", "-s", given=f"{scripts['bash']}{_BASH}try {typed}\n")
    assert set(out.removesuffix("\n").split("\n")) == expected


@requirement("cli.completion")
def test_completions_are_generated_from_the_parsers(scripts: dict[str, str]) -> None:
    summaries = {name: summary for name, (summary, _) in VERBS.items()}
    table = {each.name: each for each in list_command_words(CommandLine(summaries, build_verb_parser, main))}
    assert set(table[""].words) == set(VERBS)
    assert set(table["config set"].words) == {key.name for key in KEYS}
    for name in VERBS:
        shown = sightline("help", name).out
        assert all(option in shown for option in table[name].options), name
    options = {option for each in table.values() for option in each.options}
    assert {"--upstream", "--undo", "--workers", "--usage", "--overlay"} <= options
    for shell, script in scripts.items():
        prefix = "-l " if shell == "fish" else "--"
        assert all(prefix + option.removeprefix("--") in script for option in options), shell


@requirement("cli.completion")
@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_fish_completes(scripts: dict[str, str]) -> None:
    words = ("se", "config un", "config set mod", "serve --log j", "config set mode al")
    script = scripts["fish"] + "".join(f"complete -C 'sightline {each}'\n" for each in words)
    out = [line.split("\t")[0] for line in run_shell("fish", "--no-config", given=script).splitlines()]
    assert out == ["serve", "setup", "unset", "mode", "model", "modelId", "models", "json", "always"]


@requirement("cli.completion")
@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_zsh_accepts_the_script(scripts: dict[str, str]) -> None:
    given = f"autoload -U compinit; compinit -u -D\n{scripts['zsh']}print ok $+functions[_sightline]\n"
    assert run_shell("zsh", "-f", given=given) == "ok 1\n"


@requirement("cli.help.verb")
def test_help_explains_the_command_a_verb_or_an_action() -> None:
    for words in ([], ["serve"], ["config"], ["config", "set"]):
        ended = sightline("help", *words)
        assert (ended.code, ended.err) == (0, "")
        assert ended.out == sightline(*words, "--help").out
    wrong = sightline("help", "serv")
    assert (wrong.code, wrong.out) == (2, "")
    assert "serve?" in wrong.err


@requirement("cli.bare")
@pytest.mark.parametrize(
    ("bare", "full"), [("config", ["config", "show"]), ("models", ["models", "list"]), ("consent", ["consent", "list"])]
)
def test_a_verb_without_an_action_shows(bare: str, full: list[str]) -> None:
    for flags in ([], ["--json"]):
        ended = sightline(bare, *flags)
        assert ended.code == 0
        assert ended.out == sightline(*full, *flags).out
    assert sightline("config", "--json", "get", "mode").json["value"] == "fallback"
