"""What a receipt keeps of a request until it is written."""

from __future__ import annotations

import json

from sightline.engine.trace_collector import shrink_value
from sightline.model.request_trace import IMAGE_CHIP, shorten_place
from sightline.model.scene import Json
from tests.requirements import requirement


@requirement("inspector.data")
def test_receipts_that_wait_hold_no_whole_images() -> None:
    image: Json = {"type": "image", "source": {"type": "base64", "data": "iVBO" * 500_000}}
    many: Json = [image for _ in range(5000)]
    shrunk = shrink_value(many)
    assert len(json.dumps(shrunk)) < 500_000
    assert shorten_place(shrink_value(image)).count(IMAGE_CHIP) == 1
    small: Json = {"a": [1, None, True, "text"]}
    assert shrink_value(small) == small
