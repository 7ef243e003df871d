"""References as models and people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.geometry import Box
from sightline.model.refusal import Refusal
from sightline.sources.reference import Address, Named, Stored, only, parse
from tests.refusals import assert_refusal
from tests.requirements import requirement

SHA = "0123456789abcdef" * 4


@requirement("reference.sha", "reference.prefix", "reference.crop", "reference.path")
@pytest.mark.parametrize(
    ("text", "meant"),
    [
        (f"sha256:{SHA}", Stored(SHA)),
        (f"SHA256:{SHA.upper()}", Stored(SHA)),
        (f"  sha256:{SHA}\n", Stored(SHA)),
        ("sha256:0123456789ab", Stored("0123456789ab")),
        (f"sha256:{SHA}#crop:1,2,30,40", Stored(SHA, Box(1, 2, 30, 40))),
        ("sha256:0123456789AB#CROP:0,0,1,1", Stored("0123456789ab", Box(0, 0, 1, 1))),
        ("https://example.com/a.png", Address("https://example.com/a.png")),
        (" HTTP://example.com/ ", Address("HTTP://example.com/")),
        ("file:///etc/passwd", Address("file:///etc/passwd")),
        ("image.png", Named("image.png")),
        ("/a b/image.png ", Named("/a b/image.png ")),
        ("C:\\image.png", Named("C:\\image.png")),
        ("sha256/of/images.png", Named("sha256/of/images.png")),
        ("image.png#crop:1,2,3,4", Named("image.png#crop:1,2,3,4")),
        (SHA, Named(SHA)),
    ],
)
def test_a_reference_is_read_as_it_was_meant(text: str, meant: object) -> None:
    assert parse(text) == meant


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
def test_what_is_no_reference_is_invalid_input_with_a_remedy(text: str) -> None:
    found = parse(text)
    assert isinstance(found, Refusal)
    assert (found.code, bool(found.remedy)) == ("invalid_input", True)


@given(st.text() | st.text("sha256:#crop,0123456789abcdef").map("sha256:".__add__))
def test_any_text_is_a_reference_or_a_refusal(text: str) -> None:
    found = parse(text)
    assert isinstance(found, Stored | Named | Address | Refusal)
    if isinstance(found, Stored):
        assert parse(f"sha256:{found.sha256}" + (f"#crop:{found.crop}" if found.crop else "")) == found


def test_a_whole_hash_is_known_to_be_one() -> None:
    assert Stored(SHA).exact
    assert not Stored(SHA[:63]).exact


@requirement("reference.prefix")
def test_a_prefix_means_an_image_only_when_it_fits_just_one() -> None:
    prefix, other = Stored(SHA[:12]), SHA[:63] + "0"
    assert only(prefix, [SHA]) == SHA
    assert only(prefix, [SHA, SHA]) == SHA
    none, several = only(prefix, []), only(prefix, [SHA, other])
    assert isinstance(none, Refusal)
    assert none.code == "not_found"
    assert_refusal(several, "invalid_input", f"sha256:{SHA[:12]} ", "2 images")
