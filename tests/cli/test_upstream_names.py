"""An upstream that the user has named: people read its name with its address, and commands take either."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.model.profile import Lesson
from sightline.passes.wording import CONSENT_TEXT
from sightline.store import open_record
from tests.api.bad import PNG
from tests.cli.command import ALONE, Ended, sightline
from tests.requirements import requirement
from tests.scripted.provider import Provider

EYE = "glm-5.3-flash"
SETTINGS = "vision-proxy.json"


def held(home: Path, base: str, *names: str, **more: object) -> None:
    """In the settings, with no other server of models on this machine."""
    own = {**json.loads(ALONE["SIGHTLINE_UPSTREAMS"]), **{name: {"baseUrl": base} for name in names}}
    (home / SETTINGS).write_text(json.dumps({"upstreams": own, **more}))


@pytest.fixture
def address(home: Path) -> Iterator[str]:
    """Of an upstream that is called `mine`."""
    with Provider() as provider:
        held(home, f"{provider.url}/v1", "mine")
        yield provider.url.removeprefix("http://")


def look(folder: Path, name: str) -> Ended:
    (folder / "shot.png").write_bytes(PNG)
    return sightline("describe", "shot.png", "--model", f"{name}/{EYE}", folder=folder)


@requirement("upstream.called")
def test_messages_show_the_users_name_and_the_address(home: Path, tmp_path: Path, address: str) -> None:
    shown = f"mine/{EYE} ({address})"
    assert f" {shown}, " in look(tmp_path, "mine").err
    assert f"  {shown}  1 " in sightline("usage").out
    assert f" {shown}: " in sightline("vision-proxy", "list").out
    for said in (sightline("consent", "yes", "mine"), sightline("consent", "list")):
        assert said.out.startswith(f"mine ({address}): {CONSENT_TEXT.format(address)}")
    record = open_record(home / "record")
    record.policy.keep_lesson(address, "eye", Lesson(blind=True, why="it said so"), days=7)
    assert record.policy.read_consents() == {address: True}, "kept by the address, whatever it is called"
    record.close()
    report = sightline("doctor").out
    assert f": mine ({address}), local\n" in report
    assert re.search(rf"^consents .* mine \({re.escape(address)}\)$", report, re.MULTILINE)
    for listed in (report, sightline("config", "show").out):
        assert f"  mine/eye ({address}): blind (it said so)\n" in listed


@requirement("upstream.called")
def test_a_refusal_shows_the_users_name(home: Path, tmp_path: Path) -> None:
    held(home, "http://127.0.0.1:1/v1", "mine")
    assert f"mine/{EYE} (127.0.0.1:1) " in look(tmp_path, "mine").err
    held(home, "https://llm.example.com/v1", "mine", provider="mine", modelId="eye")
    said = sightline("doctor").out
    assert re.search(r"^  mine/eye \(llm\.example\.com\) .*sightline consent yes llm\.example\.com", said, re.MULTILINE)


@requirement("upstream.called")
@pytest.mark.parametrize("by_address", [False, True], ids=["name", "address"])
def test_commands_accept_the_name_or_the_address(home: Path, tmp_path: Path, address: str, by_address: bool) -> None:
    name = address if by_address else "mine"
    assert f" mine/{EYE} ({address})" in look(tmp_path, name).err
    assert sightline("config", "model", f"{name}/eye").code == 0
    assert sightline("probe", "--base-url", name, "--model", EYE).code == 0
    record = open_record(home / "record")
    assert [(upstream, model) for upstream, model, _ in record.policy.list_lessons()] == [("mine", EYE)]
    record.close()
    assert sightline("config", "forget", f"{name}/{EYE}").code == 0
    assert sightline("consent", "yes", name, "--json").json["provider"] == address
    assert sightline("vision-proxy", "model", f"{name}/{EYE}").code == 0
    assert f"\n  mine/{EYE} ({address})\n" in sightline("doctor").out


@requirement("upstream.called")
def test_two_names_for_one_address_are_both_shown(home: Path) -> None:
    held(home, "https://llm.example.com/v1", "mine", "ours")
    assert sightline("consent", "yes", "ours").out.startswith("mine and ours (llm.example.com): ")
    record = open_record(home / "record")
    record.policy.keep_lesson("llm.example.com", "eye", Lesson(blind=True, why="it said so"), days=7)
    record.close()
    assert "  llm.example.com/eye: blind" in sightline("config", "show").out
