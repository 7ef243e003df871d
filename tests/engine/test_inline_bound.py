"""The bound of inline images: heavier ones are refitted, and the record keeps the original."""

from __future__ import annotations

import io
import struct
import zlib
from hashlib import sha256
from typing import Any

import pytest
from PIL import Image

from sightline.model.image import MAX_UNCHANGED_BYTES, decode_base64
from sightline.model.scene import Refitted, Shown
from tests.engine.parts import SEEING, Stage, encoded, picture, sent
from tests.requirements import requirement


def grow(image: bytes, size: int) -> bytes:
    """Return a PNG with a text chunk that makes it so many bytes long."""
    content = bytes(size - len(image) - 12)
    crc = zlib.crc32(b"tEXt" + content)
    return image[:-12] + struct.pack(">I", len(content)) + b"tEXt" + content + struct.pack(">I", crc) + image[-12:]


def animate() -> bytes:
    """Return a GIF of two frames."""
    red, blue = (Image.new("RGB", (64, 48), colour) for colour in ("red", "blue"))
    file = io.BytesIO()
    red.save(file, "GIF", save_all=True, append_images=[blue])
    return file.getvalue()


def ask_about(image: bytes) -> dict[str, Any]:
    source = {"type": "base64", "media_type": "image/png", "data": encoded(image)}
    return {"model": SEEING, "messages": [{"role": "user", "content": [{"type": "image", "source": source}]}]}


@requirement("bound.as_is.inline")
@pytest.mark.parametrize("extra", [0, 1])
async def test_an_inline_image_over_eight_mebibytes_is_refitted(extra: int) -> None:
    image = grow(picture(1, (64, 48)), MAX_UNCHANGED_BYTES + extra)
    stage = Stage()
    prepared = await stage.prepare(ask_about(image))
    (sight,) = prepared.scene.sights
    if not extra:
        assert (sight.fate, prepared.edits) == (Shown(), [])
        return
    assert isinstance(sight.fate, Refitted)
    assert f"{len(image):,}" in sight.fate.why
    assert f"{MAX_UNCHANGED_BYTES:,}" in sight.fate.why
    data = decode_base64(sent(prepared)["messages"][0]["content"][0]["source"]["data"].encode())
    assert data == sight.fate.image.data
    assert len(data) < MAX_UNCHANGED_BYTES
    assert sight.fate.image.size.width == 64
    (line,) = prepared.receipt.sights
    assert line.fate == "refitted"
    kept = stage.record.images.read("somebody", sha256(image).hexdigest())
    assert kept
    assert kept.data == image


@requirement("bound.as_is.inline")
@pytest.mark.parametrize("kind", ["animation", "tool result"])
async def test_every_kind_of_inline_image_has_the_bound(kind: str) -> None:
    image = grow(picture(1, (64, 48)), MAX_UNCHANGED_BYTES + 1)
    if kind == "animation":
        comment = b"!\xfe" + b"".join(b"\xff" + bytes(255) for _ in range(MAX_UNCHANGED_BYTES // 256)) + b"\0"
        image = animate()[:-1] + comment + b";"
    request = ask_about(image)
    if kind == "tool result":
        call = {"type": "tool_use", "id": "c1", "name": "shoot", "input": {}}
        result = {"type": "tool_result", "tool_use_id": "c1", "content": request["messages"][0]["content"]}
        asked = {"role": "user", "content": "look"}
        turns = [asked, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
        request = {**request, "messages": turns}
    prepared = await Stage().prepare(request)
    (sight,) = prepared.scene.sights
    assert isinstance(sight.fate, Refitted), sight.fate
    assert len(sight.fate.image.data) < MAX_UNCHANGED_BYTES
    assert ("frame" in prepared.receipt.sights[0].why) == (kind == "animation")
