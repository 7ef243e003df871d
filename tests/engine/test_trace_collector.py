"""What a receipt keeps of a request until it is written."""

from __future__ import annotations

import json
from hashlib import sha256

import pytest

from sightline.engine.trace_collector import shrink_value
from sightline.model.labels import build_reference
from sightline.model.request_trace import IMAGE_CHIP, EditedPlace, replace_images, shorten_place
from sightline.model.scene import Json
from sightline.wire import OPENAI_CHAT
from tests.engine.parts import SEEING, Stage, asking, picture
from tests.requirements import requirement
from tests.wire.bodies import text


@requirement("inspector.data")
def test_receipts_that_wait_hold_no_whole_images() -> None:
    image: Json = {"type": "image", "source": {"type": "base64", "data": "iVBO" * 500_000}}
    many: Json = [image for _ in range(5000)]
    shrunk = shrink_value(many)
    assert len(json.dumps(shrunk)) < 500_000
    assert shorten_place(shrink_value(image)).count(IMAGE_CHIP) == 1
    small: Json = {"a": [1, None, True, "text"]}
    assert shrink_value(small) == small


@requirement("inspector.data")
@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("no image", "no image"),
        ("A" * 63, "A" * 63),
        (f"see {'A' * 64}; and ü{'b/c_' * 30}ü", "see [image] and ü[image]ü"),
        (f'"data:image/png;base64,{"A" * 64}=="', '"[image]"'),
        ('"data:image/png;base64,sightline-0123456789abcdef-12;"', '"data:image/png;base64,[image]"'),
        (f"[image sha256:{'0a' * 32}]", f"[image sha256:{'0a' * 32}]"),
        (f"{'0a' * 32}, {'0a' * 33}", f"{'0a' * 32}, [image]"),
        ("A" * 64 + "data:text/x+y;base64," + "A" * 64, "[image]:text/x+y;base64,[image]"),
    ],
)
def test_a_text_of_a_receipt_has_a_chip_for_each_image(text: str, kept: str) -> None:
    assert replace_images(text) == kept


@requirement("inspector.data")
async def test_a_receipt_has_the_references_of_new_images_as_they_were_written() -> None:
    stage = Stage(references=True)
    block = text(build_reference(sha256(picture()).hexdigest()))
    for _ in range(3):  # new, resent, and found by its first bytes
        prepared = await stage.prepare(asking(picture(), model=SEEING, wire=OPENAI_CHAT), wire=OPENAI_CHAT)
        assert prepared.trace.build().edits == (EditedPlace("/messages/0/content/0", "", shorten_place(block)),)
