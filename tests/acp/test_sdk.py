"""The Python SDK on both ends of the relay, and the example of a client that resizes images for its agent."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import acp
import pytest
from PIL import Image as Pillow

from sightline.model.media_capability import read_image_capability
from tests.acp.editing import RELAY
from tests.api.answering import saying, settle
from tests.requirements import requirement
from tests.scripted.pictures import encode, paint_quadrants, some_colours

ROOT = Path(__file__).parents[2]
AGENT = (sys.executable, str(Path(__file__).with_name("sdk_agent.py")))
BLIND = (sys.executable, str(Path(__file__).with_name("scripted_agent.py")))  # as one that says nothing of images is
EXAMPLE = ROOT / "examples" / "acp_client.py"
PICTURE = paint_quadrants(some_colours(9), (320, 240))
NARROW = {"imageCapability": {"maxDimension": 200, "downsampleTargetBytes": 30_000}}


class Client:
    """The text that the agent has sent."""

    def __init__(self) -> None:
        self.said = ""
        self.commands: list[str] = []

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        if update.session_update == "agent_message_chunk":
            self.said += update.content.text
        elif update.session_update == "available_commands_update":
            self.commands = [each.name for each in update.available_commands]


@requirement("acp.sdk")
async def test_the_sdk_talks_to_the_sdk_through_the_relay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"eye": {"vision": True}, "lab/*": {"vision": False}}
    with saying("A red door.") as model:
        settle(monkeypatch, model, SIGHTLINE_MODELS=json.dumps(rule))
        client = Client()
        command, *args = [*RELAY, *AGENT]
        async with acp.spawn_agent_process(client, command, *args, env=dict(os.environ)) as (agent, _):  # type: ignore[arg-type]
            about = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
            said = read_image_capability(about.model_dump(by_alias=True))
            assert said is not None
            assert said.auto_handles_wrong_model is True
            assert about.agent_capabilities is not None
            assert about.agent_capabilities.field_meta == {"imageCapability": said.as_dict()}
            session = await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
            block = acp.image_block(b64encode(PICTURE).decode(), "image/png")
            done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("what?"), block])
            assert done.stop_reason == "end_turn"
            assert client.said.startswith("sightline\nwhat?\n")
            assert "A red door." in client.said
            assert client.commands == ["vision-proxy"]
            client.said = ""
            done = await agent.prompt(session_id=session.session_id, prompt=[acp.text_block("/vision-proxy status")])
            assert done.stop_reason == "end_turn"
            assert client.said.startswith("[Vision Proxy] vision model: here/eye")


def zed(page: Path) -> list[str]:
    """Return the command in the documented settings for Zed."""
    found = re.search(r"```json\n([^`]*agent_servers[^`]*)```", page.read_text("utf-8"))
    assert found
    (server,) = json.loads(found[1])["agent_servers"].values()
    assert server["type"] == "custom"
    return [server["command"], *server["args"]]


def any_editor(page: Path) -> list[str]:
    """Return the documented command for other editors."""
    found = re.search(r"^(sightline acp -- [^#\n]+)", page.read_text("utf-8"), re.MULTILINE)
    assert found
    return found[1].split()


# Several pages document the same command, which is started once.
DOCUMENTED = {" ".join(way(ROOT / page)) for way in (zed, any_editor) for page in ("README.md", "docs/acp.md")}


@pytest.mark.parametrize("documented", sorted(DOCUMENTED))
@requirement("acp.readme")
async def test_the_documented_editor_settings_start_the_relay(tmp_path: Path, documented: str) -> None:
    """The documented agent is replaced by a scripted one of the same name."""
    command, *args = documented.split()
    stand_in = tmp_path / args[2]
    stand_in.write_text(f"#!/bin/sh\nexec {AGENT[0]} {AGENT[1]}\n")
    stand_in.chmod(0o755)
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path}
    found = shutil.which(command, path=path)
    assert found
    async with acp.spawn_agent_process(Client(), found, *args, env=env) as (agent, _):  # type: ignore[arg-type]
        about = await agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        assert read_image_capability(about.model_dump(by_alias=True)) is not None


def example(*command: str, home: Path, picture: bytes) -> subprocess.CompletedProcess[str]:
    file = home / "picture.png"
    file.write_bytes(picture)
    return subprocess.run(
        [sys.executable, EXAMPLE, file, *command],
        capture_output=True,
        text=True,
        cwd=home,
        env={**os.environ, "HOME": str(home), "SIGHTLINE_HOME": str(home)},
        timeout=120,
        check=False,
    )


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs the example in this process, where the SDK is loaded already."""

    def run(*command: str, picture: bytes) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "picture.png"
        file.write_bytes(picture)
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(file), *command])
        code: Any = 0
        try:
            runpy.run_path(str(EXAMPLE), run_name="__main__")
        except SystemExit as ended:
            code = ended.code
        out, err = capsys.readouterr()
        if isinstance(code, str):  # as the interpreter prints it
            code, err = 1, f"{err}{code}\n"
        return subprocess.CompletedProcess(command, code or 0, out, err)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return run


@requirement("acp.example")
def test_the_example_sizes_by_what_the_agent_says(run_here: Run) -> None:
    large = encode(Pillow.effect_noise((640, 480), 90))
    assert len(EXAMPLE.read_text("utf-8").splitlines()) <= 33
    fitted = run_here(*AGENT, json.dumps(NARROW), picture=large)
    assert fitted.returncode == 0, fitted.stderr
    found = re.search(r"\[(\d+)x(\d+) in (\d+) letters\]", fitted.stdout)
    assert found
    assert max(int(found[1]), int(found[2])) <= 200
    assert int(found[3]) <= 30_000 // 3 * 4
    small = run_here(*AGENT, json.dumps(NARROW), picture=paint_quadrants(some_colours(9), (100, 80)))
    assert "[100x80 in" in small.stdout
    silent = run_here(*AGENT, picture=large)
    assert "[640x480 in" in silent.stdout, "an agent that says nothing gets what there is"


@requirement("acp.example")
def test_the_example_sends_the_image_unchanged_behind_the_relay(tmp_path: Path) -> None:
    large = encode(Pillow.effect_noise((640, 480), 90))
    through = example(*RELAY, *AGENT, json.dumps(NARROW), home=tmp_path, picture=large)
    assert through.returncode == 0, through.stderr
    found = re.search(r"\[(\d+)x(\d+) in (\d+) letters\]", through.stdout)
    assert found
    assert max(int(found[1]), int(found[2])) <= 200, "it is the relay that makes it fit for the agent"
    assert "What is it?" in through.stdout


@requirement("acp.example")
def test_the_example_says_in_one_line_what_is_wrong(run_here: Run) -> None:
    """Authors of editors copy the example, so it must handle every refusal."""
    no = run_here(*AGENT, json.dumps(NARROW), picture=b"a text, not a picture")
    assert (no.returncode, no.stderr.count("\n")) == (1, 1), no.stderr
    assert no.stderr.startswith("not sent: ")
    blind = run_here(*BLIND, picture=PICTURE)
    assert (blind.returncode, blind.stderr.count("\n")) == (1, 1), blind.stderr
    assert "sightline acp --" in blind.stderr
    bare = run_here(picture=PICTURE)
    assert (bare.returncode, bare.stderr) == (1, "usage: acp_client.py PICTURE AGENT [ARGUMENT ...]\n")
    assert "pip install agent-client-protocol" in EXAMPLE.read_text("utf-8")
