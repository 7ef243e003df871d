"""The ledger entries of calls that are refused, and of crops in references."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api import Analysis, Failure, FileAnswer, Session
from sightline.model.records import LedgerEntry
from tests.api.answering import saying, settle
from tests.api.eyes import eyes, named
from tests.engine.parts import picture
from tests.requirements import requirement

IMAGE = picture(1, (640, 480))
SHA = hashlib.sha256(IMAGE).hexdigest()


@pytest.fixture(autouse=True)
def _working(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.png").write_bytes(IMAGE)
    for name, value in named("http://127.0.0.1:9").items():
        monkeypatch.setenv(name, value)


def list_entries() -> list[LedgerEntry]:
    return [*Session().tool_context.record.ledger.list_entries()]


@requirement("telemetry.crop")
def test_a_crop_in_a_reference_is_recorded_in_pixels(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("words") as provider:
        for name, value in named(provider).items():
            monkeypatch.setenv(name, value)
        assert isinstance(sightline.analyze("shot.png", "What?"), Analysis)
        reference = f"sha256:{SHA}#crop:10,20,30,40"
        assert isinstance(sightline.analyze([reference, "shot.png"], "What?"), Analysis)
    entry = list_entries()[-1]
    assert entry.about["crop_form"] == ["pixels", "none"]
    assert entry.about["crop_resolved_pixels"] == ["10,20,30,40", None]


@requirement("telemetry.refused")
@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"images": ["absent.png"]}, "not_found"),
        ({"images": [f"sha256:{SHA}"]}, "not_found"),
        ({"images": ["shot.png"], "question": " "}, "invalid_input"),
        ({"images": ["shot.png"], "crop": [{"image_index": 3, "region": "top"}]}, "invalid_input"),
        ({"images": ["shot.png"], "crop": [{"image_index": 0, "pixels": [1]}]}, "invalid_input"),
        ({"images": ["shot.png"], "colour": "red"}, "invalid_input"),
        ({"images": ["shot.png"], "model": "mine/who-knows"}, "invalid_input"),
        ({"images": "shot.png"}, "invalid_input"),
        ({}, "invalid_input"),
    ],
)
def test_a_refused_tool_call_is_recorded_with_its_code(given: dict[str, Any], error: str) -> None:
    arguments = {"question": "Why?", "reason": "curious", **given}
    assert isinstance(sightline.call("analyze_image", arguments), Failure)
    (entry,) = list_entries()
    assert (entry.kind, entry.error, entry.seer, entry.cost_usd) == ("vision_proxy.tool_call", error, "", None)
    assert (entry.about["question"], entry.about["reason"]) == (arguments["question"], "curious")
    assert entry.about["grounding_format"] == "none"
    assert entry.images == ((SHA,) if f"sha256:{SHA}" in given.get("images", "") or "model" in given else ())


@requirement("telemetry.refused")
def test_a_refused_command_is_recorded_with_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(sightline.describe("shot.png", question="What?", save=True), Failure)
    assert isinstance(sightline.describe("shot.png", crop="r=middle"), Failure)
    monkeypatch.setenv("SIGHTLINE_MODE", "off")
    assert isinstance(sightline.describe(["shot.png", "absent.png"]), Failure)
    monkeypatch.setenv("SIGHTLINE_MODE", "fallback")
    monkeypatch.setenv("SIGHTLINE_PROVIDER", "")
    monkeypatch.setenv("SIGHTLINE_MODEL_ID", "")
    monkeypatch.setenv("SIGHTLINE_SEER", "off")
    assert isinstance(sightline.describe("shot.png"), Failure)
    noted = list_entries()
    assert {each.kind for each in noted} == {"vision_proxy.command"}
    assert [each.error for each in noted] == ["invalid_input", "invalid_input", "not_permitted", "unavailable"]
    assert noted[3].images == (SHA,)


@requirement("telemetry.refused", "telemetry.entries")
def test_a_question_about_a_file_is_recorded_with_format_or_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    with saying("a flag") as model:
        settle(monkeypatch, model)
        path = str(Path.cwd() / "shot.png")
        assert isinstance(sightline.vision_analyze(file_path=path, prompt="What?"), FileAnswer)
        refused: list[dict[str, Any]] = [
            {"file_path": path, "prompt": ""},
            {"file_path": f"{path}.absent", "prompt": "What?"},
            {"file_path": path, "prompt": "What?", "model": "here/stone"},
            {"file_path": path, "prompt": "What?", "colour": "red"},
        ]
        for given in refused:
            assert isinstance(sightline.call("vision_analyze", given), Failure)
        assert isinstance(sightline.video_analyze(file_path=path), Failure)
        assert len(model.asked) == 1
    answered, *noted = list_entries()
    assert (answered.error, answered.about["grounding_format"], answered.about["crop_form"]) == ("", "none", "none")
    prefixes = ["INVALID_INPUT", "FILE_NOT_FOUND", "VISION_NOT_SUPPORTED", "INVALID_INPUT", "UNSUPPORTED_FILE_TYPE"]
    assert [each.error for each in noted] == prefixes
    assert {each.kind for each in noted} == {"vision_proxy.tool_call"}
    assert [each.about["tool"] for each in noted] == ["vision_analyze"] * 4 + ["video_analyze"]
    assert noted[2].images == (SHA,)


@requirement("crop.never_whole")
def test_a_crop_is_refused_by_tools_that_take_whole_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with saying("a flag") as model:
        settle(monkeypatch, model)
        sightline.view("shot.png")
        answer = sightline.vision_analyze(f"sha256:{SHA}#crop:10,20,30,40", prompt="What?")
        assert isinstance(answer, Failure)
        assert answer.prefix == "INVALID_INPUT"
        assert model.asked == []
