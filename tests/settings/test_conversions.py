"""Settings are converted to the values that the passes use."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.model.facts import Retention
from sightline.settings import load_settings
from tests.requirements import requirement
from tests.settings.test_settings import env, write


@requirement("retain.off", "retain.turns")
@pytest.mark.parametrize(
    ("how", "pasted", "means"),
    [
        ("auto", "keep", Retention()),
        ("turns:0", "keep", Retention(kept_turns=0)),
        ("turns:3", "retire", Retention(kept_turns=3, includes_pasted=True)),
        ("off", "keep", Retention(is_off=True)),
    ],
)
def test_retention_is_converted(tmp_path: Path, how: str, pasted: str, means: Retention) -> None:
    settings = load_settings(env(tmp_path, SIGHTLINE_RETENTION=how, SIGHTLINE_RETENTION_PASTED=pasted))
    assert settings.retention == means


@requirement("lower.override")
def test_lowering_is_set_for_all_or_single_upstreams(tmp_path: Path) -> None:
    base = {"baseUrl": "http://localhost:1"}
    write(
        tmp_path,
        {
            "lowering": "hoist",
            "upstreams": {"a": base, "b": {**base, "lowering": "byWire"}, "c": {**base, "lowering": "hoist"}},
        },
    )
    settings = load_settings(env(tmp_path))
    assert settings.hoist
    assert {name: each.hoist for name, each in settings.upstreams.items()} == {"a": None, "b": False, "c": True}


def test_an_unknown_lowering_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, {"upstreams": {"a": {"baseUrl": "http://localhost:1", "lowering": "sideways"}}})
    settings = load_settings(env(tmp_path))
    assert settings.upstreams == {}
    assert any("sideways" in warning for warning in settings.warnings)
