"""Resent images are recognized by their whole text."""

from __future__ import annotations

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from sightline.engine.inline_images import ResentImages
from sightline.model.scene import InlineSource


def inline(text: bytes) -> InlineSource:
    return InlineSource("image/png", memoryview(text))


def changed(text: bytes, at: int) -> bytes:
    return text[:at] + (b"B" if text[at : at + 1] == b"A" else b"A") + text[at + 1 :]


@given(st.binary(min_size=1, max_size=400), st.data())
def test_a_key_depends_only_on_the_text(data: bytes, draw: st.DataObject) -> None:
    text, known = b64encode(data), ResentImages()
    texts = [text, *(changed(text, at) for at in draw.draw(st.lists(st.integers(0, len(text) - 1), max_size=4)))]
    for _ in range(3):
        for each in texts:
            assert known.find_key(inline(each)) == inline(each).key


def test_an_image_is_not_hashed_from_the_third_time_on() -> None:
    text, known = b64encode(bytes(3000)), ResentImages()
    met = [inline(text) for _ in range(3)]
    for image in met:
        known.find_key(image)
    del met[2].__dict__["_key"]
    named: list[str] = []
    met[2].__dict__["set_key"] = named.append
    assert known.find_key(met[2]) == inline(text).key
    assert named == [inline(text).key]
