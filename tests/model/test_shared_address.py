"""The addresses of a shared record are checked without a connection, and their passwords are never shown."""

from __future__ import annotations

import pytest

from sightline.model.shared_address import SharedAddress, has_password, mask_address
from sightline.store.server_errors import clean_text
from tests.requirements import requirement

STORE, BLOBS = "postgresql://me:secret-word@db.example.com:5432/record", "s3://bucket/prefix"


@requirement("record.shared.refused")
@pytest.mark.parametrize("blobs", [BLOBS, "s3://bucket", "file:///srv/sightline", "file://localhost/srv/x"])
@pytest.mark.parametrize("store", [STORE, "postgres://db/record", "postgresql:///record?host=/run/postgresql"])
def test_addresses_that_can_be_used_are_accepted(store: str, blobs: str) -> None:
    assert SharedAddress(store, blobs).check() is None


@requirement("record.shared.refused", "record.shared.secret")
@pytest.mark.parametrize(
    ("store", "blobs"),
    [
        ("mysql://me:secret-word@db/record", BLOBS),
        ("record.sqlite", BLOBS),
        ("postgresql://me:secret-word@db", BLOBS),
        ("postgresql://me:secret-word@db:port/record", BLOBS),
        ("postgresql://me:p@secret-word@db/record", BLOBS),
        ("postgresql://me:12/secret-word@db/record", BLOBS),
        (STORE, ""),
        ("", BLOBS),
        (STORE, "gs://bucket"),
        (STORE, "https://bucket.example.com"),
        (STORE, "/srv/sightline"),
        (STORE, "s3://"),
        (STORE, "file://"),
        (STORE, "file://host/srv"),
        (STORE, "s3://key:secret-word@bucket"),
        (STORE, "s3://bucket?secret-word"),
    ],
)
def test_other_addresses_are_refused_without_their_password(store: str, blobs: str) -> None:
    refusal = SharedAddress(store, blobs).check()
    assert refusal is not None
    assert refusal.code == "invalid_input"
    assert refusal.remedy
    assert "secret-word" not in f"{refusal} {SharedAddress(store, 's3://bucket')!r}"


@requirement("record.shared.secret")
def test_a_password_is_found_and_masked() -> None:
    assert has_password(STORE)
    assert has_password("postgresql://db/record?password=secret-word")
    assert not has_password("postgresql://me@db/record")
    assert mask_address(STORE) == "postgresql://db.example.com:5432/record"


@requirement("record.shared.secret")
@pytest.mark.parametrize(
    "store", ["postgresql://me:p@secret-word@db/record", "postgresql://me:12/secret-word@db/record"]
)
def test_an_at_sign_in_a_password_has_to_be_escaped(store: str) -> None:
    refusal = SharedAddress(store, BLOBS).check()
    assert refusal is not None
    assert "%40" in refusal.what
    assert has_password(store)
    assert "secret-word" not in mask_address(store)
    assert "secret-word" not in clean_text(f"{store} can't be used")
    assert SharedAddress("postgresql://me:p%40secret-word@db/record", BLOBS).check() is None
