"""References to images, as models and people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box
from sightline.model.refusal import Refusal
from sightline.sources import PathReference, RecordReference, UrlReference, choose_image, parse_reference
from tests.refusals import assert_refusal
from tests.requirements import requirement

SHA = "0123456789abcdef" * 4


@requirement("reference.sha", "reference.prefix", "reference.crop", "reference.path")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (f"sha256:{SHA}", RecordReference(SHA)),
        (f"SHA256:{SHA.upper()}", RecordReference(SHA)),
        (f"  sha256:{SHA}\n", RecordReference(SHA)),
        ("sha256:0123456789ab", RecordReference("0123456789ab")),
        (f"sha256:{SHA}#crop:1,2,30,40", RecordReference(SHA, Box(1, 2, 30, 40))),
        ("sha256:0123456789AB#CROP:0,0,1,1", RecordReference("0123456789ab", Box(0, 0, 1, 1))),
        ("https://example.com/a.png", UrlReference("https://example.com/a.png")),
        (" HTTP://example.com/ ", UrlReference("HTTP://example.com/")),
        ("file:///etc/passwd", UrlReference("file:///etc/passwd")),
        ("image.png", PathReference("image.png")),
        ("/a b/image.png ", PathReference("/a b/image.png ")),
        ("C:\\image.png", PathReference("C:\\image.png")),
        ("sha256/of/images.png", PathReference("sha256/of/images.png")),
        ("image.png#crop:1,2,3,4", PathReference("image.png#crop:1,2,3,4")),
        (SHA, PathReference(SHA)),
    ],
)
def test_references_are_parsed(text: str, meant: object) -> None:
    assert parse_reference(text) == meant


@requirement("reference.none")
@pytest.mark.parametrize(
    "text",
    [
        *("", "  ", "sha256:", "sha256:0123456789a", f"sha256:{SHA}0", "sha256:0123456789xy", "sha256: 0123456789ab"),
        *("sha256:0123456789ab#", "sha256:0123456789ab#crop:", "sha256:0123456789ab#crop:1,2,3"),
        *(
            "sha256:0123456789ab#crop:1,2,3,4,5",
            "sha256:0123456789ab#crop:-1,2,3,4",
            "sha256:0123456789ab#crop:1,2,0,4",
        ),
        *("sha256:0123456789ab#crop:1,2,3,0", "sha256:0123456789ab#crop:1.5,2,3,4", "sha256:0123456789ab#crop:1,2,3,٤"),
        *("sha256:0123456789ab#crop:1,2,3,99999999", "sha256:0123456789ab/../x", "data:image/png;base64,AAAA"),
        *("DATA:image/png,x", "x" * 9000),
    ],
)
def test_an_invalid_reference_is_invalid_input_with_a_remedy(text: str) -> None:
    found = parse_reference(text)
    assert isinstance(found, Refusal)
    assert (found.code, bool(found.remedy)) == ("invalid_input", True)


@given(st.text() | st.text("sha256:#crop,0123456789abcdef").map("sha256:".__add__))
def test_any_text_is_a_reference_or_a_refusal(text: str) -> None:
    found = parse_reference(text)
    assert isinstance(found, RecordReference | PathReference | UrlReference | Refusal)
    if isinstance(found, RecordReference):
        assert parse_reference(f"sha256:{found.sha256}" + (f"#crop:{found.crop}" if found.crop else "")) == found


def test_a_complete_hash_is_exact() -> None:
    assert RecordReference(SHA).is_exact
    assert not RecordReference(SHA[:63]).is_exact


@requirement("reference.prefix")
def test_a_prefix_must_match_exactly_one_image() -> None:
    prefix, other = RecordReference(SHA[:12]), SHA[:63] + "0"
    assert choose_image(prefix, [SHA]) == SHA
    assert choose_image(prefix, [SHA, SHA]) == SHA
    none, several = choose_image(prefix, []), choose_image(prefix, [SHA, other])
    assert isinstance(none, Refusal)
    assert none.code == "not_found"
    assert_refusal(several, "invalid_input", f"sha256:{SHA[:12]} ", "2 images")
