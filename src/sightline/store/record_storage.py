"""The interface of what holds a record: a folder (`storage`), or servers (`shared_storage`)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from sightline.model.refusal import Refusal
from sightline.store.record_folder import Backend
from sightline.store.storage import StorageState


class RecordStorage(Protocol):
    """The backend that is used now, and what replaces it while it can't be used."""

    @property
    def folder(self) -> Path | None: ...

    @property
    def backend(self) -> Backend: ...

    @property
    def state(self) -> StorageState: ...

    @property
    def read_refusal(self) -> Refusal | None: ...

    @property
    def write_refusal(self) -> Refusal | None: ...

    def ensure_current(self, *, wait: bool = True) -> bool: ...

    def report_error(self, error: Exception) -> bool:
        """Use a replacement if an error means that the backend can't be used; return whether it was logged so."""
        ...

    def claim_sweep(self) -> bool:
        """Return whether a sweep is due when enough was written."""
        ...

    def replace_key(self, key: bytes) -> None:
        """Replace the key for the hashes of credentials, in a record without rows that use it."""
        ...

    def close(self) -> None: ...
