"""Blobs in S3-compatible object storage, or in a folder that replicas share.

An object has the name `ab/cd/abcd…` below the prefix of the address. It is created only if it is absent, so replicas
that store the same image don't overwrite each other. Credentials, region and endpoint come from the usual variables
(AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on), never from the address.

After an error, requests fail at once for two seconds: a server that is down must not delay every request. An outage
lasts from the first error to the next success; if it was storing that failed, storing has to succeed.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Literal

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError, PermissionDeniedError, UnauthenticatedError
from obstore.store import ObjectStore, S3Store

from sightline.model.image import MAX_BITMAP_BYTES
from sightline.model.shared_address import get_folder
from sightline.store.blobs import Blobs, FileBlobs
from sightline.store.server_errors import ServerError, clean_text

_log = logging.getLogger(__name__)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PAUSE_SECONDS = 2.0
_Operation = Literal["store", "use"]
# What servers without DeleteObjects answer.
_NO_BULK_DELETE = re.compile(r"\b(400|404|405|501)\b|NotImplemented|MethodNotAllowed|MalformedXML")
_ABSENT = (NotFoundError, FileNotFoundError)  # obstore raises either
_MAX_BYTES = MAX_BITMAP_BYTES  # of a blob: neither a file nor the pixels of a view are larger


class SharedFolderBlobs(FileBlobs):
    """Blobs in a folder that replicas share. Who may access an existing folder is its operator's choice."""

    def __init__(self, folder: Path, *, create: bool = True, max_bytes: int = _MAX_BYTES) -> None:
        if create:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        super().__init__(folder, create=False)
        self._max_bytes = max_bytes
        self._damaged: set[str] = set()

    def has(self, sha256: str) -> bool:
        return sha256 not in self._damaged and super().has(sha256)

    confirm = has

    def write(self, sha256: str, data: bytes) -> None:
        super().write(sha256, data)
        self._damaged.discard(sha256)

    def read(self, sha256: str) -> bytes | None:
        try:
            is_too_large = self._path(sha256).stat().st_size > self._max_bytes
        except FileNotFoundError:
            return None
        if is_too_large:
            self._reject(sha256)
            return None
        data = super().read(sha256)
        if data is not None:
            self._damaged.discard(sha256)
        return data

    def _reject(self, sha256: str) -> None:
        """Store the image again with the next write. The file stays: another replica may just have replaced it."""
        self._damaged.add(sha256)


class ObjectBlobs:
    """Implements `Blobs`."""

    def __init__(
        self,
        store: ObjectStore,
        place: str,
        open_for_single_deletes: Callable[[], ObjectStore] | None = None,
        *,
        max_bytes: int = _MAX_BYTES,
    ) -> None:
        """Use a store; `open_for_single_deletes` returns the same one, through which objects are deleted one by one."""
        self._store, self._place, self._max_bytes = store, place, max_bytes
        self._deleting, self._open_for_single_deletes = store, open_for_single_deletes
        self._paused_until, self._last_error = 0.0, ServerError("", "")
        self._failing: set[_Operation] = set()
        self._outages = 0
        self._damaged: set[str] = set()  # names that were read with wrong bytes, and have to be stored again

    def has(self, sha256: str) -> bool:
        if sha256 in self._damaged:
            return False
        with self._convert_errors():
            try:
                obstore.head(self._store, _locate(sha256))
            except _ABSENT:
                return False
            return True

    confirm = has

    def write(self, sha256: str, data: bytes) -> None:
        mode: Literal["create", "overwrite"] = "overwrite" if sha256 in self._damaged else "create"
        with self._convert_errors("store"):
            try:
                obstore.put(self._store, _locate(sha256), data, mode=mode, use_multipart=False)
            except AlreadyExistsError:
                return
        self._damaged.discard(sha256)

    def read(self, sha256: str) -> bytes | None:
        """Return the bytes, or None if there are none, they are too large, or they don't match their hash.

        Those are stored again with the next write. They aren't deleted: perhaps only this answer was wrong.
        """
        with self._convert_errors():
            try:
                found = obstore.get(self._store, _locate(sha256))
                is_too_large = found.meta["size"] > self._max_bytes
                data = b"" if is_too_large else bytes(found.bytes())
            except _ABSENT:
                return None
        if is_too_large and sha256 not in self._damaged:
            _log.warning("The object %s in %s is larger than any image, and is not read.", sha256, self._place)
        if not is_too_large and hashlib.sha256(data).hexdigest() == sha256:
            self._damaged.discard(sha256)
            return data
        self._damaged.add(sha256)
        return None

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects with one request for each 1000, or one by one if the server can't do that."""
        if names:
            with self._convert_errors():
                self._delete([*map(_locate, names)])

    def _delete(self, paths: Sequence[str]) -> None:
        try:
            obstore.delete(self._deleting, paths)  # S3 doesn't say which were absent
        except (BaseError, OSError) as error:
            if self._open_for_single_deletes is None or not _NO_BULK_DELETE.search(str(error)):
                raise
            single = self._open_for_single_deletes()
            obstore.delete(single, paths)
            self._deleting, self._open_for_single_deletes = single, None  # it will not be able to later, either

    def sync(self, names: Iterable[str]) -> None:
        """Do nothing: what the server has acknowledged is durable."""

    def list_names(self, stored_before: float = math.inf) -> Iterator[str]:
        with self._convert_errors():
            for chunk in obstore.list(self._store):
                for entry in chunk:
                    name = entry["path"].rpartition("/")[2]
                    if _SHA256.fullmatch(name) and entry["last_modified"].timestamp() < stored_before:
                        yield name

    def check(self) -> None:
        """Raise unless objects can be created, read and deleted. Nothing is left behind."""
        name = f"sightline-check-{secrets.token_hex(8)}"
        with self._convert_errors():
            obstore.put(self._store, name, b"", use_multipart=False)
            obstore.head(self._store, name)
            self._delete([name])

    @contextmanager
    def _convert_errors(self, operation: _Operation = "use") -> Iterator[None]:
        began = time.monotonic()
        if began < self._paused_until:
            raise self._last_error
        try:
            yield
        except (BaseError, OSError) as error:
            self._outages += not self._failing
            self._failing.add(operation)
            self._last_error = _explain_error(self._place, error)
            self._last_error.outage = self._outages
            self._paused_until = time.monotonic() + _PAUSE_SECONDS
            raise self._last_error from None
        if self._failing and began >= self._paused_until:
            self._end_outage(operation)

    def _end_outage(self, operation: _Operation) -> None:
        """Note that an operation works again, and log it if all do. What can be stored can be used, too."""
        self._failing -= {operation, "use"}
        if not self._failing:
            _log.warning("The images of the record in %s can be used again.", self._place)


def _locate(sha256: str) -> str:
    if not _SHA256.fullmatch(sha256):
        raise ValueError("not a sha256")  # untrusted names must not become paths
    return f"{sha256[:2]}/{sha256[2:4]}/{sha256}"


def _explain_error(place: str, error: Exception) -> ServerError:
    text = str(error)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or "AccessDenied" in text or " 403" in text:
        remedy = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to a key that may read, write and delete there"
        return ServerError(f"{place} denies access", remedy)
    if "NoSuchBucket" in text:
        return ServerError(f"the bucket of {place} does not exist", "create it, or name another one")
    return ServerError(f"{place} can't be used: {_shorten(text)}", "check AWS_ENDPOINT_URL and that the server runs")


def _shorten(text: str) -> str:
    """Return the interesting part of an error of obstore, which has a chain of causes in several lines."""
    for part in ("Connection refused", "dns error", "operation timed out", "503", "500"):
        if part in text:
            return part
    return clean_text(text)[:120]


def _open_bucket(address: str, *, is_plain: bool, single_deletes: bool = False) -> S3Store:
    return S3Store.from_url(
        address.rstrip("/"),
        config={"disable_bulk_delete": single_deletes},
        client_options={"allow_http": is_plain, "timeout": "10s", "connect_timeout": "3s"},
        retry_config={"max_retries": 2, "retry_timeout": timedelta(seconds=10)},
    )


def open_blobs(address: str, environment: Mapping[str, str], *, create: bool = True) -> Blobs:
    """Open the blobs at a checked address, or raise.

    With `create`, a missing folder is created, and object storage is tried out.
    """
    if address.startswith("file:"):
        return _open_folder(Path(get_folder(address)), create=create)
    endpoint = environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or ""
    open_bucket = partial(_open_bucket, address, is_plain=endpoint.startswith("http://"))
    try:
        blobs = ObjectBlobs(open_bucket(), address, partial(open_bucket, single_deletes=True))
    except (BaseError, ValueError) as error:
        raise _explain_error(address, error) from None
    if create:
        blobs.check()
    return blobs


def _open_folder(folder: Path, *, create: bool) -> SharedFolderBlobs:
    if not create and not folder.is_dir():
        raise ServerError(f"there is no folder {folder}", "mount or create it")
    blobs = SharedFolderBlobs(folder, create=create)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ServerError(f"the folder {folder} can't be written", "change its owner or its rights")
    return blobs
