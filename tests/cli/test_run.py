"""`sightline run -- AGENT`, with agents that say what they were given."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ALONE, COMMAND, Ended, assert_refused, environment, sightline
from tests.proxy.clients import image_part, pasted_chat
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

SAYS = """
import json, os, sys, urllib.request
settings = json.loads(sys.argv[sys.argv.index("--settings") + 1]) if "--settings" in sys.argv else {}
said = {"argv": sys.argv[1:], "stdin": sys.stdin.read()}
anthropic = settings.get("env", os.environ).get("ANTHROPIC_BASE_URL")
openai = os.environ.get("OPENAI_BASE_URL")
for wire, url in {"anthropic": f"{anthropic}/v1/messages/x", "openai": f"{openai}/files"}.items():
    if not url.startswith("None"):
        with urllib.request.urlopen(url, timeout=60) as answer:
            said[wire] = json.load(answer)["path"]
print(json.dumps(said))
sys.exit(7)
"""

# Blocked from the start, a signal cannot come too early to be heard; one that comes again stays pending.
WAITS = """
import signal, sys
told = {signal.SIGINT, signal.SIGTERM}
signal.pthread_sigmask(signal.SIG_BLOCK, told)
print("ready", flush=True)
heard = signal.sigwait(told)
print("heard", flush=True)
sys.stdin.readline()
print(heard.name, [again.name for again in signal.sigpending()], flush=True)
sys.exit(9)
"""


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return folder


def agent(folder: Path, name: str, code: str) -> None:
    path = folder / name
    path.write_text(f"#!{sys.executable}\n{code}")
    path.chmod(0o755)


def ran(*words: str, **more: Any) -> Ended:
    return sightline("run", *words, env={**ALONE, **more.pop("env", {})}, **more)


@requirement("run.listens_first", "run.takes_over", "run.signals")
def test_the_proxy_listens_before_claude_starts(bin_folder: Path, tmp_path: Path) -> None:
    agent(bin_folder, "claude", SAYS)
    with Provider() as provider:
        (tmp_path / ".claude").mkdir()
        settings = {"env": {"ANTHROPIC_BASE_URL": f"{provider.url}/theirs"}}
        (tmp_path / ".claude" / "settings.json").write_text(json.dumps(settings))
        project = tmp_path / "project"
        project.mkdir()
        ended = ran("--", "claude", "-p", "--model", "x", given="piped", folder=project)
    assert (ended.code, ended.err) == (7, "")
    assert ended.json["argv"][2:] == ["-p", "--model", "x"]
    assert ended.json["stdin"] == "piped"
    assert ended.json["anthropic"] == "/theirs/v1/messages/x"


@requirement("run.upstream")
def test_a_named_upstream_overrides_the_one_claude_uses(bin_folder: Path) -> None:
    agent(bin_folder, "claude", SAYS)
    with Provider() as provider:
        own = {"SIGHTLINE_UPSTREAMS": json.dumps({"office": {"baseUrl": f"{provider.url}/office"}})}
        theirs = {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}
        named = ran("--upstream", "office", "claude", env={**own, **theirs})
        addressed = ran("--upstream", f"{provider.url}/there", "--", "claude", env=theirs)
    assert named.json["anthropic"] == "/office/v1/messages/x"
    assert addressed.json["anthropic"] == "/there/v1/messages/x"


@requirement("run.unknown")
def test_an_unknown_agent_is_pointed_by_variables_with_a_note(bin_folder: Path) -> None:
    agent(bin_folder, "aider", SAYS)
    with Provider() as a, Provider() as b:
        theirs = {"ANTHROPIC_BASE_URL": f"{a.url}/a", "OPENAI_BASE_URL": f"{b.url}/b/v1"}
        ended = ran("--", "aider", env=theirs)
    assert ended.code == 7
    assert ended.err.startswith("sightline: aider ")
    assert "ANTHROPIC_BASE_URL" in ended.err
    assert ended.err.count("\n") == 1
    assert (ended.json["anthropic"], ended.json["openai"]) == ("/a/v1/messages/x", "/b/v1/files")


ASKS_GEMINI = """
import json, os, urllib.request
with urllib.request.urlopen(f"{os.environ['GOOGLE_GEMINI_BASE_URL']}/v1beta/models", timeout=60) as answer:
    print(json.dumps(json.load(answer)["path"]))
"""


@requirement("run.variables")
def test_a_request_of_another_api_does_not_go_to_the_named_upstream(bin_folder: Path) -> None:
    agent(bin_folder, "somebody", ASKS_GEMINI)
    with Provider() as named, Provider() as google:
        usual = {"SIGHTLINE_UPSTREAMS": json.dumps({"gemini": {"baseUrl": f"{google.url}/usual"}})}
        for upstream in (named.url, f"deepseek={named.url}"):
            by_default = ran("--upstream", upstream, "--", "somebody", env=usual)
            theirs = ran("--upstream", upstream, "--", "somebody", env={"GOOGLE_GEMINI_BASE_URL": f"{google.url}/g"})
            assert (by_default.json, theirs.json) == ("/usual/v1beta/models", "/g/v1beta/models")
        chosen = ran("--upstream", f"gemini={named.url}/named", "--", "somebody", env=usual)
    assert chosen.json == "/named/v1beta/models"


@requirement("run.apis")
def test_gemini_cli_asks_an_unknown_address_and_no_provider_without_its_api(bin_folder: Path) -> None:
    agent(bin_folder, "gemini", ASKS_GEMINI)
    with Provider() as named:
        for upstream in (f"{named.url}/named", f"deepseek={named.url}/named"):
            assert ran("--upstream", upstream, "--", "gemini").json == "/named/v1beta/models"
    assert_refused(ran("--upstream", "deepseek", "--", "gemini"), "deepseek", "Gemini CLI")


@requirement("run.refused")
def test_a_command_that_cannot_be_run_is_refused(bin_folder: Path) -> None:
    assert_refused(ran("--", "no-such-agent"), "no-such-agent")
    agent(bin_folder, "copilot", SAYS)
    assert_refused(ran("--", "copilot"), "COPILOT_PROVIDER_BASE_URL")
    agent(bin_folder, "claude", SAYS)
    assert_refused(ran("--", "claude", "--settings", "missing.json"), "--settings")
    assert_refused(ran("--upstream", "nobody", "--", "claude"), "'nobody'")
    assert_refused(ran("--", "claude", env={"ANTHROPIC_BASE_URL": "nowhere"}), "'nowhere'")
    (bin_folder / "broken").write_text("#!/no/such/interpreter\n")
    (bin_folder / "broken").chmod(0o755)
    ended = ran("--", "broken")
    assert ended.code == 1
    assert "broken " in ended.err.splitlines()[-1]


def test_a_killed_agent_exits_with_its_signal(bin_folder: Path) -> None:
    agent(bin_folder, "claude", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert ran("--", "claude").code == 128 + signal.SIGKILL


@contextmanager
def waiting(bin_folder: Path) -> Iterator[subprocess.Popen[str]]:
    """`sightline run` in a process group of its own, as a shell starts it, with an agent that waits."""
    agent(bin_folder, "claude", WAITS)
    with subprocess.Popen(
        [*COMMAND, "run", "--", "claude"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**ALONE),
        start_new_session=True,
    ) as process:
        try:
            assert process.stdout
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)


@requirement("run.signals")
def test_an_interrupt_reaches_the_agent_once_and_ends_nothing_else(bin_folder: Path) -> None:
    with waiting(bin_folder) as process:
        assert process.stdout
        os.killpg(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "heard\n"
        out, err = process.communicate("go on\n", timeout=60)
        assert (out, err, process.returncode) == ("SIGINT []\n", "", 9)


@requirement("run.signals")
def test_sigterm_is_passed_on_to_the_agent(bin_folder: Path) -> None:
    with waiting(bin_folder) as process:
        assert process.stdout
        process.send_signal(signal.SIGTERM)
        assert process.stdout.readline() == "heard\n"
        out, err = process.communicate("go on\n", timeout=60)
        assert (out, err, process.returncode) == ("SIGTERM []\n", "", 9)


# It switches describing off as a person would meanwhile, and then sends a picture.
SWITCHES = """
import os, pathlib, sys, urllib.request
pathlib.Path(os.environ["SIGHTLINE_HOME"], "vision-proxy.json").write_text('{"mode": "off"}')
url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
request = urllib.request.Request(url, sys.stdin.buffer.read(), {"content-type": "application/json"})
with urllib.request.urlopen(request, timeout=60) as answer:
    answer.read()
"""


@requirement("settings.live")
def test_the_proxy_of_a_run_follows_the_settings_file(bin_folder: Path, tmp_path: Path) -> None:
    agent(bin_folder, "somebody", SWITCHES)
    body = {"model": "deepseek-v4-pro", "messages": pasted_chat(paint_quadrants(some_colours(1)))}
    with deepseek() as provider:
        named = {"deepseek": {"baseUrl": provider.url}}
        env = {"SIGHTLINE_UPSTREAMS": json.dumps({**json.loads(ALONE["SIGHTLINE_UPSTREAMS"]), **named})}
        given = json.dumps(body)
        assert ran("--upstream", "deepseek", "--", "somebody", given=given, env=env, folder=tmp_path).code == 0
        assert provider.asked("deepseek-v4-pro")
        assert provider.asked("deepseek-flash") == []


# It sends what it is given.
SENDS = SWITCHES.replace(next(line for line in SWITCHES.splitlines() if "vision-proxy.json" in line), "")


@requirement("retain.reach")
def test_relative_paths_start_where_the_agent_works(bin_folder: Path, tmp_path: Path) -> None:
    agent(bin_folder, "somebody", SENDS)
    picture = paint_quadrants(some_colours(1))
    (tmp_path / "shot.png").write_bytes(picture)
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path": "shot.png"}'}}
    messages = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [image_part(picture)]},
        {"role": "assistant", "content": "I see"},
        {"role": "user", "content": "go on"},
    ]
    body = {"model": "gpt-6", "messages": messages, "tools": [{"type": "function", "function": {"name": "read"}}]}
    with Provider() as provider:
        named = {"office": {"baseUrl": provider.url}}
        upstreams = json.dumps({**json.loads(ALONE["SIGHTLINE_UPSTREAMS"]), **named})
        env = {"SIGHTLINE_UPSTREAMS": upstreams, "SIGHTLINE_RETENTION": "turns:0"}
        words = ("--upstream", "office", "--", "somebody")
        assert ran(*words, given=json.dumps(body), env=env, folder=tmp_path).code == 0
        assert [b"viewed earlier" in each.body for each in provider.asked("gpt-6")] == [True]
