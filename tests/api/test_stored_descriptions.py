"""A description that was paid for is kept, and no answer that was cut is taken as whole."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.api import Analysis, Session
from sightline.model.seer import TRUNCATION_MARK
from sightline.settings import load_settings
from tests.api.answering import saying, settle
from tests.api.eyes import eyes, named
from tests.engine.parts import picture
from tests.requirements import requirement


@pytest.fixture(autouse=True)
def _working(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.png").write_bytes(picture(1, (640, 480)))


def described(**given: Any) -> tuple[str, bool]:
    found = sightline.describe("shot.png", **given)
    assert isinstance(found, Analysis), found
    return found.text, found.cached


@requirement("record.paid_once", "FR-3.2.save")
def test_a_described_image_is_not_paid_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("first", "a part", "an answer", "saved", "more") as provider:
        for name, value in named(provider, SIGHTLINE_CACHE_SIZE="0").items():
            monkeypatch.setenv(name, value)
        assert [described(), described()] == [("first", False), ("first", True)]
        assert described(crop="r=top") == ("a part", False)
        assert described(question="What?") == ("an answer", False)
        assert described() == ("first", True), "neither is what the image shows"
        assert described(save=True) == ("saved", False)
        assert described() == ("saved", True)
        assert len(provider.exchanges) == 4


@requirement("tell.cut", "ask.envelope")
@pytest.mark.parametrize("cache", ["on", "off"])
def test_a_cached_truncated_answer_says_so(monkeypatch: pytest.MonkeyPatch, cache: str) -> None:
    cut = {"choices": [{"finish_reason": "length", "message": {"content": "A red squ"}}]}
    with saying((200, cut)) as model:
        settle(monkeypatch, model, SIGHTLINE_VISION_CACHE=cache)
        for _ in range(2):
            found = sightline.vision_analyze(prompt="What?", file_path=Path("shot.png").resolve())
            said = json.loads(json.dumps(found.as_dict()))
            assert (said["text"], said["truncated"]) == (f"A red squ\n{TRUNCATION_MARK}", True)
        assert described()[0] == f"A red squ\n{TRUNCATION_MARK}"
        assert len(model.asked) == (2 if cache == "on" else 3)


@requirement("record.reference_alive")
def test_the_image_of_a_cached_answer_is_stored_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with eyes("first") as provider:
        for name, value in named(provider).items():
            monkeypatch.setenv(name, value)
        described()
        folder, sha256 = load_settings().record_folder, hashlib.sha256(Path("shot.png").read_bytes()).hexdigest()
        for _ in range(2):
            (blob,) = folder.rglob(sha256)
            blob.unlink()
            assert described() == ("first", True)
            assert Session().tool_context.record.images.read(None, sha256) is not None
