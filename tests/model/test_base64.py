"""Base64 as clients write it: standard, URL-safe, folded, escaped, without padding; and text that is not base64."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.image import compute_decoded_size, decode_base64, decode_head
from sightline.model.refusal import Refusal
from tests.requirements import requirement

PICTURE = bytes(range(256)) * 40


def folded(text: bytes) -> bytes:
    return b"\r\n".join(text[at : at + 76] for at in range(0, len(text), 76)) + b"\n"


WAYS: dict[str, Callable[[bytes], bytes]] = {
    "standard": base64.b64encode,
    "url-safe": base64.urlsafe_b64encode,
    "without padding": lambda data: base64.b64encode(data).rstrip(b"="),
    "url-safe without padding": lambda data: base64.urlsafe_b64encode(data).rstrip(b"="),
    "folded": lambda data: folded(base64.b64encode(data)),
    "a slash escaped": lambda data: base64.b64encode(data).replace(b"/", rb"\/"),
    "a plus escaped": lambda data: base64.b64encode(data).replace(b"+", rb"\u002B"),
    "folded and escaped": lambda data: json.dumps(folded(base64.b64encode(data)).decode())[1:-1].encode(),
    "a data URL": lambda data: b"data:image/png;base64," + base64.b64encode(data),
    "a data URL of an odd spelling": lambda data: rb"DATA:image\/png;name=a b;Base64," + base64.b64encode(data),
    "too much padding": lambda data: base64.b64encode(data) + b"==",
}
each_way = pytest.mark.parametrize("way", WAYS)


@requirement("body.base64")
@each_way
@given(data=st.binary(max_size=400))
def test_every_way_of_writing_gives_the_bytes_back(way: str, data: bytes) -> None:
    text = WAYS[way](data)
    assert decode_base64(text) == data
    assert decode_base64(memoryview(text)) == data


@given(st.binary() | st.text("ABab01+/-_= \n\\").map(str.encode))
def test_any_text_is_decoded_as_the_standard_library_would_or_refused(text: bytes) -> None:
    found = decode_base64(text)
    try:
        expected = base64.b64decode(text, validate=True)
    except binascii.Error:
        assert isinstance(found, (bytes, Refusal))
    else:
        assert found == expected


@requirement("body.base64")
@pytest.mark.parametrize(
    "text",
    [
        b"A",
        b"AAAAA",
        b"AA=A",
        b"=AAA",
        b"AA*A",
        b"\xff\xfe\x00",
        b"data:image/png,AAAA",
        b"data:;base64,A",
        b"data:AAAA",
        b"\\",
    ],
)
def test_text_that_is_not_base64_is_refused_with_a_remedy(text: bytes) -> None:
    found = decode_base64(text)
    assert isinstance(found, Refusal)
    assert (found.code, bool(found.remedy)) == ("corrupt", True)


@each_way
@given(data=st.binary(max_size=400), size=st.integers(1, 500))
def test_a_decoded_head_is_the_beginning_of_the_bytes(way: str, data: bytes, size: int) -> None:
    found = decode_head(WAYS[way](data), size)
    assert data.startswith(found)
    assert len(found) <= size


@each_way
@pytest.mark.parametrize("size", [1, 2, 3, 64, 4096])
def test_a_decoded_head_has_about_the_requested_length(way: str, size: int) -> None:
    if "escaped" not in way:  # an escape may be cut in two, and the whole text must be read then
        assert len(decode_head(WAYS[way](PICTURE), size)) >= size * 0.97 - 2


def test_a_decoded_head_of_plain_text_has_the_exact_length() -> None:
    assert decode_head(memoryview(base64.b64encode(PICTURE)), 100) == PICTURE[:100]


def test_decoding_a_head_reads_no_more_than_needed() -> None:
    assert decode_head(base64.b64encode(PICTURE)[:400] + b"*" * 1000, 64) == PICTURE[:64]
    assert decode_head(b"*" * 1000, 64) == b""


@each_way
@given(data=st.binary(max_size=400))
def test_the_size_is_known_without_decoding(way: str, data: bytes) -> None:
    assert compute_decoded_size(memoryview(WAYS[way](data))) == len(data)
