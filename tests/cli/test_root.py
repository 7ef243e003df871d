"""`serve --root`: the files that may be named to the proxy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sightline.cli import compose
from sightline.settings import load_settings
from tests.cli.command import assert_refused
from tests.cli.command import sightline as command
from tests.cli.test_serve import serving
from tests.proxy.clients import ask_chat, image_part
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

COLOURS = some_colours(32)
PICTURE = paint_quadrants(COLOURS)
SHOWN = describe_quadrants(COLOURS)
MODEL = "deepseek-v4-pro"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a picture, and one beside it."""
    for name in ("project", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "shot.png").write_bytes(PICTURE)
    (tmp_path / "project" / "link.png").symlink_to(tmp_path / "elsewhere" / "shot.png")
    return tmp_path / "project"


def described(url: str, path: Path | str) -> str:
    return ask_chat(f"{url}/u/deepseek", MODEL, [{"role": "user", "content": f"/vision-proxy describe {path}"}])


@requirement("path.root")
def test_a_command_reads_only_files_under_the_root(tmp_path: Path, project: Path) -> None:
    with deepseek() as blind, serving("--upstream", f"deepseek={blind.url}", "--root", str(project)) as (_, address):
        assert SHOWN in described(address, project / "shot.png")
        assert SHOWN in described(address, "shot.png")
        looks = len(blind.exchanges)
        for path in (tmp_path / "elsewhere" / "shot.png", project / "link.png", "../elsewhere/shot.png", "~/shot.png"):
            assert SHOWN not in described(address, path), path
        assert len(blind.exchanges) == looks


@requirement("path.root")
def test_no_file_is_read_without_a_root(project: Path) -> None:
    with deepseek() as blind, serving("--upstream", f"deepseek={blind.url}") as (_, address):
        said = described(address, project / "shot.png")
        assert SHOWN not in said
        assert not blind.exchanges


@requirement("path.root", "path.own")
def test_sightlines_own_files_are_protected_under_a_root_too(tmp_path: Path) -> None:
    (tmp_path / "record").mkdir(mode=0o700)
    (tmp_path / "record" / "shot.png").write_bytes(PICTURE)
    with deepseek() as blind, sightline(tmp_path, f"deepseek={blind.url}", root=tmp_path) as proxy:
        assert SHOWN not in described(proxy.url, tmp_path / "record" / "shot.png")
        assert not blind.exchanges


def reread(file: Path) -> list[dict[str, Any]]:
    """A conversation whose agent has read a file, a turn ago."""
    call = {"id": "c1", "type": "function", "function": {"name": "read", "arguments": json.dumps({"path": str(file)})}}
    return [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [image_part(PICTURE)]},
        {"role": "assistant", "content": "I see"},
        {"role": "user", "content": "go on"},
    ]


@requirement("path.root", "retain.reach")
@pytest.mark.parametrize(
    ("name", "local", "fate"),
    [("project", False, "retired"), ("elsewhere", False, "shown"), ("elsewhere", True, "retired")],
)
def test_clients_on_other_machines_retire_only_files_under_the_root(
    tmp_path: Path, project: Path, name: str, local: bool, fate: str
) -> None:
    tools = [{"type": "function", "function": {"name": "read"}}]
    env = {"SIGHTLINE_RETENTION": "turns:0"}
    with (
        Provider() as provider,
        sightline(tmp_path / "home", provider.url, env=env, root=project, local_clients=local) as proxy,
    ):
        ask_chat(proxy.url, "gpt-6", reread(tmp_path / name / "shot.png"), tools=tools)
        (receipt,) = proxy.receipts
    assert [line.fate for line in receipt.sights] == [fate]


@requirement("retain.reach", "retain.reviewable")
def test_a_file_with_the_same_bytes_retires_without_a_root(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(project))  # else the temporary folder has all files of the test in it
    monkeypatch.setenv("SIGHTLINE_RETENTION", "turns:0")
    same, changed = (project.parent / "elsewhere" / name for name in ("shot.png", "changed.png"))
    changed.write_bytes(PICTURE[:-1] + b"x")
    tools = [{"type": "function", "function": {"name": "read"}}]
    with Provider() as provider, serving("--upstream", f"openai={provider.url}") as (_, address):
        for file in (same, changed):
            ask_chat(f"{address}/u/openai", "gpt-6", reread(file), tools=tools)
    assert [b"viewed earlier" in each.body for each in provider.exchanges] == [True, False]


@requirement("path.root")
def test_local_files_do_not_retire_images_of_remote_clients(tmp_path: Path) -> None:
    settings = load_settings({"SIGHTLINE_HOME": str(tmp_path / "home")})
    rooted = compose.limit_to_folder(settings, tmp_path)
    assert rooted.roots == (tmp_path.resolve(),)
    assert compose.find_policies(settings, None, "127.0.0.1") == (compose.NO_FILES, None)
    assert compose.find_policies(settings, None, "192.0.2.1") == (compose.NO_FILES, compose.NO_FILES)
    for host in ("127.0.0.1", "192.0.2.1"):
        assert compose.find_policies(settings, tmp_path, host) == (rooted, rooted)


@requirement("path.root")
def test_a_root_that_is_not_a_folder_is_refused(tmp_path: Path, project: Path) -> None:
    for wrong in (tmp_path / "nowhere", project / "shot.png"):
        assert_refused(command("serve", "--port", "0", "--root", str(wrong)), str(wrong), "--root")
