"""Settings that reach the pipeline: what is written means what the passes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline.model.rules import Retention
from sightline.settings import load
from tests.requirements import requirement
from tests.settings.test_settings import env, write


@requirement("retain.off", "retain.turns")
@pytest.mark.parametrize(
    ("how", "pasted", "means"),
    [
        ("auto", "keep", Retention()),
        ("turns:0", "keep", Retention(turns=0)),
        ("turns:3", "retire", Retention(turns=3, pasted=True)),
        ("off", "keep", Retention(off=True)),
    ],
)
def test_retention_is_read_as_it_is_written(tmp_path: Path, how: str, pasted: str, means: Retention) -> None:
    settings = load(env(tmp_path, SIGHTLINE_RETENTION=how, SIGHTLINE_RETENTION_PASTED=pasted))
    assert settings.retention == means


@requirement("lower.override")
def test_lowering_is_said_for_all_and_for_single_upstreams(tmp_path: Path) -> None:
    base = {"baseUrl": "http://localhost:1"}
    write(
        tmp_path,
        {
            "lowering": "hoist",
            "upstreams": {"a": base, "b": {**base, "lowering": "byWire"}, "c": {**base, "lowering": "hoist"}},
        },
    )
    settings = load(env(tmp_path))
    assert settings.hoist
    assert {name: each.hoist for name, each in settings.upstreams.items()} == {"a": None, "b": False, "c": True}


def test_a_lowering_that_nobody_knows_is_a_warning(tmp_path: Path) -> None:
    write(tmp_path, {"upstreams": {"a": {"baseUrl": "http://localhost:1", "lowering": "sideways"}}})
    settings = load(env(tmp_path))
    assert settings.upstreams == {}
    assert any("sideways" in warning for warning in settings.warnings)
