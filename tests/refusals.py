"""How tests compare a refusal: by its code and the facts that it names. Its wording is in tests/golden/wording."""

from __future__ import annotations

from sightline.model.refusal import Refusal, RefusalCode
from sightline.passes.wording import write_absence

NOT_SHOWN = write_absence(Refusal("corrupt", "|")).partition("|. ")[2].rstrip(".]")
"""The words that stand in every sentence which replaces an image, whatever the reason."""
assert NOT_SHOWN


def assert_refusal(found: object, code: RefusalCode, *facts: str, status: int | None = None) -> None:
    """Assert that this is a refusal with this code that names these facts, from an answer with this status if given."""
    assert isinstance(found, Refusal), found
    assert found.code == code, found
    assert [fact for fact in facts if fact not in str(found)] == [], found
    assert status is None or found.status == status, found
