"""Fixtures that the tests of the proxy share."""

from __future__ import annotations

import pytest

from sightline.model.refusal import Refusal


@pytest.fixture
def no_local_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """Act as if the weights of the local reader were not installed."""
    no = Refusal("unavailable", "nothing is installed", "pip install sightline[local]")
    monkeypatch.setattr("sightline.runtime.find_local_seer", lambda *_: no)
