"""What tests of the proxy share."""

from __future__ import annotations

import pytest

from sightline.model.refusal import Refusal


@pytest.fixture
def no_local_eyes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the weights are not installed: nobody reads an image on this machine."""
    no = Refusal("unavailable", "nothing is installed", "pip install sightline[local]")
    monkeypatch.setattr("sightline.runtime.find_local_seer", lambda *_: no)
