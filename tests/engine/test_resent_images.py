"""Resent images are recognized by their whole text."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.engine.inline_images import InlineImages, KnownText, ResentImages
from sightline.model.scene import InlineSource
from sightline.store import open_record
from tests.engine.parts import encoded, picture, visitor
from tests.requirements import requirement


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


@requirement("record.read_once")
def test_an_image_is_not_hashed_from_the_second_time_on() -> None:
    text, known = b64encode(bytes(3000)), ResentImages()
    assert known.is_new(inline(text))
    known.find_key(inline(text))
    again, named = inline(text), list[str]()
    assert not known.is_new(again)
    again.__dict__["set_key"] = named.append
    assert known.find_key(again) == inline(text).key
    assert not again.has_key, "the key is that of the text before"
    assert named == [inline(text).key]


@given(st.lists(st.integers(0, 5), max_size=8), st.sampled_from([b'"', b"\\", b",", b""]))
def test_a_known_image_is_found_by_its_beginning(others: list[int], end: bytes) -> None:
    start = b"A" * 200
    texts = [start + b64encode(bytes([number]) * (300 + number)) for number in range(6)]
    known = ResentImages()
    for number in [0, 0, *others, *others]:
        known.find_key(inline(texts[number]))
    body = b'{"image":"data:image/png;base64,' + texts[0] + end
    found = known.find_run(body, body.index(texts[0]))
    assert found == (texts[0] if end == b'"' else None)
    assert found is None or known.find_key(InlineSource("image/png", found)) == inline(texts[0]).key
    assert known.find_run(changed(body, len(body) - 9), body.index(texts[0])) is None
    assert known.find_run(body, 0) is None


@pytest.mark.parametrize("between", [b'"}},{"type":"text","text":"do not delete it"},{"data":"', b"\\", b"\n", b" "])
def test_a_text_that_is_not_base64_hides_nothing_of_another_body(between: bytes) -> None:
    """The text of one client's image may not match what is several values in the body of another."""
    first, second = (b64encode(bytes([number]) * 900) for number in (1, 2))
    known = ResentImages()
    for _ in range(3):
        known.find_key(inline(first + between + second))
    body = b'{"data":"' + first + between + second + b'"}'
    assert known.find_run(body, body.index(first)) is None


def test_an_image_that_was_recognized_is_searched_in_the_record_each_time() -> None:
    """Another process may have deleted it meanwhile."""
    record, text = open_record(Path("unused"), kind="memory"), encoded(picture()).encode()
    images, body = InlineImages(record.images), b'{"data":"' + text + b'"}'
    for _ in range(2):
        kept = images.keep_now(inline(text), visitor())
        images.find_kept_images([inline(text)], visitor())
    assert kept is not None

    def find_again() -> dict[InlineSource, object]:
        found = images.find_run(body, body.index(text))
        assert isinstance(found, KnownText)
        source = InlineSource("image/png", found)
        assert (source, source.key, hash(source)) == (inline(text), inline(text).key, hash(inline(text)))
        return {**images.find_kept_images([source], visitor())}

    assert [find_again() for _ in range(2)] == [{inline(text): kept}] * 2
    record.forget(kept.sha256)
    assert find_again() == {}
    images.keep_now(inline(text), visitor())
    assert find_again() == {inline(text): kept}


def test_a_known_text_is_not_copied_to_be_used_as_bytes() -> None:
    known = KnownText(b"iVBORw0KGgo")
    assert bytes(known) is known
