"""Images that come again are known by their text, and by all of it."""

from __future__ import annotations

from base64 import b64encode

from hypothesis import given
from hypothesis import strategies as st

from sightline.engine.images import ResentImages
from sightline.model.source import Inline


def inline(text: bytes) -> Inline:
    return Inline("image/png", memoryview(text))


def changed(text: bytes, at: int) -> bytes:
    return text[:at] + (b"B" if text[at : at + 1] == b"A" else b"A") + text[at + 1 :]


@given(st.binary(min_size=1, max_size=400), st.data())
def test_a_key_is_that_of_the_text_whatever_came_before(data: bytes, draw: st.DataObject) -> None:
    text, known = b64encode(data), ResentImages()
    texts = [text, *(changed(text, at) for at in draw.draw(st.lists(st.integers(0, len(text) - 1), max_size=4)))]
    for _ in range(3):
        for each in texts:
            assert known.key(inline(each)) == inline(each).key


def test_from_the_third_time_on_it_is_not_hashed() -> None:
    text, known = b64encode(bytes(3000)), ResentImages()
    met = [inline(text) for _ in range(3)]
    for image in met:
        known.key(image)
    del met[2].__dict__["_key"]
    named: list[str] = []
    met[2].__dict__["named"] = named.append
    assert known.key(met[2]) == inline(text).key
    assert named == [inline(text).key]
