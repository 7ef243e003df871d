"""The key that scopes are made with: a credential is never written down, and another record's scopes are others."""

from __future__ import annotations

import hashlib
import secrets
from pathlib import Path

from sightline.disk import write_whole
from sightline.store.damage import DamagedError

NAME = "scope.key"
_BYTES = 32


def made() -> bytes:
    return secrets.token_bytes(_BYTES)


def make_in(folder: Path) -> None:
    if not (folder / NAME).exists():
        write_whole(folder / NAME, made())


def read_in(folder: Path) -> bytes:
    key = (folder / NAME).read_bytes()
    if len(key) != _BYTES:
        raise DamagedError(f"{folder / NAME} is damaged")
    return key


def scope_of(key: bytes, credential: str) -> str:
    return hashlib.blake2b(credential.encode(), key=key).hexdigest()[:32]
