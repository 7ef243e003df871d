"""`/vision-proxy` typed as a prompt: the relay answers it in the place of the agent, and may change settings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sightline.commands.execution import NOT_SENT, NOTHING_AGREED
from sightline.passes.wording import CONSENT_TEXT
from sightline.settings import FILE_NAME, load_settings
from sightline.settings.live_settings import get_process_settings
from sightline.store import open_record
from sightline.surfaces.acp.prompt_images import PromptContext, run_command
from tests.acp.editing import BLIND, SEES, acting, editor, image, link, text
from tests.api.answering import saying, settle
from tests.cli.command import POWERLESS
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours

PICTURE = paint_quadrants(some_colours(7))
NAME = f"sha256:{sha256(PICTURE).hexdigest()}"


@requirement("acp.commands")
def test_a_user_can_type_every_verb(tmp_path: Path) -> None:
    with editor(*acting(initialize=SEES)) as ours:
        session = ours.open(tmp_path)
        ours.ask("_any")
        (offer,) = [each["params"]["update"] for each in ours.updates]
        assert [each["name"] for each in offer["availableCommands"]] == ["vision-proxy"]
        for typed, answered in (
            ("/vision-proxy status", r"[\w ]+: .*\bseer auto\b"),
            ("/vision-proxy", r"[\w ]+: .*\bseer auto\b"),
            ("/vision-proxy mode always", r"mode .*\balways$"),
            ("/vision-proxy off", r"mode .*\boff$"),
            ("/vision-proxy context off", r"includeContext .*\bfalse$"),
            ("/vision-proxy tool on", r"tool .*\bon$"),
            ("/vision-proxy max-images-per-call 3", r"maxImagesPerCall .*\b3$"),
            ("/vision-proxy max-batch 2", r"maxBatch .*\b2$"),
            ("/vision-proxy cache-size 0", r"cacheSize .*\b0$"),
            ("/vision-proxy consent yes openai", f"openai: {CONSENT_TEXT.format('openai')}"),
            ("/vision-proxy consent list", f"openai: {CONSENT_TEXT.format('openai')}"),
            ("/vision-proxy consent no openai", f"openai: {NOT_SENT.format('openai')}"),
            ("/vision-proxy consent yes nobody", r".*'nobody'"),
            ("/vision-proxy model zai/glm-5.3v", r"seer .*\bzai/glm-5\.3v$"),
            ("/vision-proxy grounding-models add a/qwen3-vl", r".*\badd a/qwen3-vl"),
            ("/vision-proxy grounding-models list", r"[^$]*\ba/qwen3-vl"),
            ("/vision-proxy grounding-models remove a/qwen3-vl", r".*\bremove\b"),
            ("/vision-proxy grounding-models reset", r".*\breset$"),
            ("/vision-proxy list", r"(?!.*sha256:).+$"),
            ("/vision-proxy nonsense", r".*'nonsense'"),
            ("/vision-proxy cache-size 9999", r"cache-size .*'9999'"),
        ):
            ours.updates.clear()
            assert ours.prompt(session, text(typed))["result"] == {"stopReason": "end_turn"}, typed
            assert re.match(rf"\[Vision Proxy\] {answered}", ours.said()), typed
            assert {each["params"]["sessionId"] for each in ours.updates} == {session}
        assert ours.prompts() == []
    settings = load_settings()
    assert (settings.mode, settings.max_batch, settings.named_seer) == ("off", 2, ("zai", "glm-5.3v"))


@requirement("settings.live", "settings.live.broken")
def test_a_running_relay_follows_the_settings_file(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    live = get_process_settings()
    for content, mode in (("{}", "fallback"), ('{"mode": "off"}', "off"), ("{", "off"), ("{", "off")):
        (home / FILE_NAME).write_text(content)
        live.check_soon()
        said, _ = run_command("/vision-proxy status", b"{}", PromptContext(), (), owner=True)
        assert f"mode: {mode} " in said
    run_command("/vision-proxy mode always", b"{}", PromptContext(), (), owner=True)
    assert [FILE_NAME in record.message for record in caplog.records] == [True]
    (home / FILE_NAME).unlink()
    run_command("/vision-proxy mode always", b"{}", PromptContext(), (), owner=True)
    assert live.get().mode == "always", "a change by this process counts at once"


def close_to_writers(record: Path) -> None:
    for path in (*record.rglob("*"), record):
        path.chmod(0o500 if path.is_dir() else 0o400)


@requirement("consent.kept", "acp.commands")
@pytest.mark.parametrize("answer", ["yes", "no"])
def test_a_consent_that_cannot_be_written_is_an_error(tmp_path: Path, home: Path, answer: str) -> None:
    record = open_record(home / "record")
    record.policy.set_consent("openai", given=answer == "no")
    record.close()
    close_to_writers(home / "record")
    with editor(*acting(initialize=SEES), relay=(*POWERLESS, "acp", "--")) as ours:
        session = ours.open(tmp_path)
        ours.prompt(session, text(f"/vision-proxy consent {answer} openai"))
        assert "[Vision Proxy] the consent could not be written" in ours.said()
        assert "may be sent" not in ours.said()
        ours.updates.clear()
        ours.prompt(session, text("/vision-proxy consent list"))
        assert "openai: images" not in ours.said(), "a no counts in this process all the same"


@requirement("record.replaced", "acp.commands")
def test_a_record_that_was_deleted_under_the_relay_is_opened_again(tmp_path: Path, home: Path) -> None:
    with editor(*acting(initialize=SEES), stderr=subprocess.PIPE) as ours:
        session = ours.open(tmp_path)
        ours.prompt(session, text("/vision-proxy consent yes openai"))
        shutil.rmtree(home / "record")
        record = open_record(home / "record")
        assert record.policy.set_consent("openai", given=False) is None
        ours.updates.clear()
        ours.prompt(session, text("/vision-proxy consent list"))
        assert "openai: no image" in ours.said()
        ours.prompt(session, text("/vision-proxy consent no zai"))
        assert record.policy.read_consents() == {"openai": False, "zai": False}
        record.close()
        ours.leave()
        assert ours.process.stderr is not None
        assert ours.process.stderr.read().count(b"was deleted or replaced") == 1


@requirement("acp.commands")
def test_images_of_the_session_are_listed_and_described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "door.png").write_bytes(PICTURE)
    with saying("A red door.", "A blue door.", "A green one.") as model:
        settle(monkeypatch, model)
        with editor(*acting(initialize=BLIND)) as ours:
            session = ours.open(tmp_path)
            ours.prompt(session, text("look"), image(PICTURE))
            ours.updates.clear()
            ours.prompt(session, text("/vision-proxy list"))
            assert ours.said() == f"[Vision Proxy] {NAME}"
            ours.prompt(session, text('/vision-proxy describe door.png --question "Which colour?"'))
            assert ours.said().endswith("A blue door.")
            ours.prompt(session, text("/vision-proxy describe --question=Which?"), image(PICTURE))
            assert ours.said().endswith("A green one."), "what is pasted beside it is what is meant"
            assert len(ours.prompts()) == 1


@requirement("acp.commands")
def test_a_change_counts_from_the_next_prompt_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with saying("A red door.") as model:
        settle(monkeypatch, model)
        with editor(*acting(initialize=SEES)) as ours:
            session = ours.open(tmp_path)
            for words in (None, "/vision-proxy always", None):
                ours.prompt(session, text(words) if words else image(PICTURE))
            kinds = [blocks[-1]["type"] for blocks in ours.prompts()]
    assert kinds == ["image", "text"]


def test_a_command_locked_by_the_environment_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_MODE", "always")
    with editor(*acting(initialize=SEES)) as ours:
        ours.prompt(ours.open(tmp_path), text("/vision-proxy mode off"))
        assert "unset SIGHTLINE_MODE" in ours.said()
    assert not Path(os.environ["SIGHTLINE_HOME"], "vision-proxy.json").exists()


@requirement("acp.commands")
def test_commands_that_an_agent_has_listed_early_stay(tmp_path: Path) -> None:
    listed = {"sessionUpdate": "available_commands_update", "availableCommands": [{"name": "a", "description": "b"}]}
    with editor(*acting(initialize=SEES, early=[listed])) as ours:
        ours.open(tmp_path)
        ours.ask("_any")
        (found,) = [each["params"]["update"]["availableCommands"] for each in ours.updates]
    assert [each["name"] for each in found] == ["a", "vision-proxy"]


@requirement("acp.commands")
def test_a_read_only_command_may_have_text_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Editors add files that are mentioned in the text, or context of their own."""
    (tmp_path / "door.png").write_bytes(PICTURE)
    mentioned = link(tmp_path / "door.png")
    with saying("A red door.", "A blue door.") as model:
        settle(monkeypatch, model)
        with editor(*acting(initialize=BLIND)) as ours:
            session = ours.open(tmp_path)
            ours.prompt(session, text("/vision-proxy describe "), mentioned, text(' --question "Which colour?"'))
            assert ours.said().endswith("A red door.")
            assert "Which colour?" in str(model.content())
            file = {"type": "resource", "resource": {"uri": "file:///a", "text": "notes"}}
            for command, answer in (
                ("/vision-proxy status", "vision model: "),
                ("/vision-proxy list", NAME),
                ("/vision-proxy describe door.png", "A blue door."),
            ):
                for beside in (text("where the cursor is"), file):
                    ours.updates.clear()
                    ours.prompt(session, text(command), beside)
                    assert answer in ours.said(), command
            assert ours.prompts() == []


@requirement("acp.commands", "acp.commands.plain")
def test_a_command_beside_other_words_changes_nothing(tmp_path: Path) -> None:
    """The text may come from a file that the user has only mentioned."""
    order = text("/vision-proxy consent yes openai")
    file = {"type": "resource", "resource": {"uri": "file:///a", "text": "/vision-proxy consent yes openai"}}
    prompts: list[list[Any]] = [
        *([{**order, "type": kind}] for kind in ("weird", "Text", "resource", "", None)),
        [{"text": order["text"]}],
        [{**order, "annotations": {"audience": ["assistant"]}}],
        [{**order, "_meta": {"source": "a file"}}],
        *([{**order, field: "call_1"}] for field in ("toolCallId", "rawOutput", "resource", "uri", "source", "name")),
        [{**text("/vision-proxy status"), "toolCallId": "call_1"}],
        [order, {**text(" "), "rawOutput": "of a file"}],
        [order, {"type": "weird", "text": "of a file"}],
        [order, {"type": "weird", "content": "of a file"}],
        [order, {**link(tmp_path / "a.png"), "text": "of a file"}],
        [order, {**text("where the cursor is"), "annotations": {"audience": ["assistant"]}}],
        [{"type": "weird", "text": "/vision-proxy status"}],
        [{**text("/vision-proxy status"), "annotations": {"audience": ["assistant"]}}],
        [{**text("of a file"), "_meta": {"source": "a file"}}, text("/vision-proxy status")],
        [text("what does /vision-proxy status do?")],
        [text("/vision-proxying")],
        [order, text("sum this up")],
        [text("sum this up"), order],
        [file],
        [order, file],
    ]
    with editor(*acting(initialize=SEES)) as ours:
        session = ours.open(tmp_path)
        for blocks in prompts:
            ours.prompt(session, *blocks)
        assert ours.prompts() == prompts
        ours.updates.clear()
        ours.prompt(session, text("/vision-proxy consent list"))
        assert ours.said() == f"[Vision Proxy] {NOTHING_AGREED}"
