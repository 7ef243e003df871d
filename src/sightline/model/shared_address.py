"""The addresses of a shared record: `postgresql://…` for its rows, `s3://…` or `file://…` for its bytes.

Pure: nothing is connected, and no library of a server is imported. An address may contain a password, so none is shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from urllib.parse import SplitResult, unquote, urlsplit

from sightline.model.refusal import Refusal
from sightline.model.value import value_class

_STORE_SCHEMES = ("postgresql", "postgres")
_STORE_EXAMPLE = "postgresql://USER@HOST:5432/DATABASE"
_BLOBS_EXAMPLE = "s3://BUCKET/PREFIX or file:///FOLDER"


@value_class
class SharedAddress:
    """Where a shared record is; the environment has the credentials for object storage."""

    store: str = field(repr=False)
    blobs: str
    environment: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def check(self) -> Refusal | None:
        """Return what is wrong with the addresses."""
        if not self.blobs:
            return Refusal("invalid_input", "store works only with blobs", f"also give blobs, like {_BLOBS_EXAMPLE}")
        if not self.store:
            return Refusal("invalid_input", "blobs works only with store", f"also give store, like {_STORE_EXAMPLE}")
        for name, fault, example in (
            ("store", find_store_fault(self.store), _STORE_EXAMPLE),
            ("blobs", find_blobs_fault(self.blobs), _BLOBS_EXAMPLE),
        ):
            if fault:
                return Refusal("invalid_input", f"{name}: {fault}", f"write it like {example}")
        return None


def find_store_fault(address: str) -> str:
    """Return what is wrong with the address of the rows, or an empty string."""
    parts = _split(address)
    if parts is None:
        return "the address can't be read"
    if parts.scheme not in _STORE_SCHEMES:
        return "the address doesn't begin with postgresql://"
    if _has_raw_at(parts):  # a driver takes what follows the first one for a host, and shows it
        return "the address has an @ too many; in a password, write @ as %40 and / as %2F"
    return "" if parts.path.strip("/") else "the address names no database"


def find_blobs_fault(address: str) -> str:
    """Return what is wrong with the address of the bytes, or an empty string."""
    parts = _split(address)
    if parts is None:
        return "the address can't be read"
    if parts.scheme not in ("s3", "file"):
        return "the address doesn't begin with s3:// or file://"
    if parts.username or parts.password or parts.query:
        return "the address must not contain a login or options"
    if parts.scheme == "s3":
        return "" if parts.netloc else "the address names no bucket"
    is_folder = parts.netloc in ("", "localhost") and parts.path.strip("/")
    return "" if is_folder else "the address names no folder"


def get_folder(address: str) -> str:
    """Return the folder that a checked `file://` address names."""
    return unquote(urlsplit(address).path)


def has_password(address: str) -> bool:
    """Return whether an address contains a password."""
    parts = _split(address)
    return parts is None or bool(parts.password) or _has_raw_at(parts) or "password=" in parts.query.lower()


def mask_address(address: str) -> str:
    """Return an address without its login and options."""
    parts = _split(address)
    if parts is None or _has_raw_at(parts):
        return "(an address)"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _has_raw_at(parts: SplitResult) -> bool:
    """Return whether the address of the rows has an @ that isn't the end of the login."""
    return parts.netloc.count("@") > 1 or "@" in parts.path


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        return parts if parts.port != 0 else None
    except ValueError:
        return None
