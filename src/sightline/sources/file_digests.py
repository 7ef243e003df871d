"""Compare a local file with an image by its sha256.

This is the only way in which a file outside the allowed folders is read, and only for clients on this machine. The
answer is yes or no, and only for a regular file that is as long as the image, which the client has sent in full.
"""

from __future__ import annotations

import os
import re
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

from sightline.model.image import MAX_FILE_BYTES
from sightline.model.refusal import Refusal
from sightline.sources.files import PathPolicy, open_permitted_file

_ANY_FILE = PathPolicy((), is_unlimited=True)
_CHUNK = 1024 * 1024
_DIGESTS_KEPT = 4096
_SETTLED_NS = 2_000_000_000  # a file that has just changed may change again without getting another time
# On Windows, opening a file on a share of another machine sends that machine a hash of the user's password.
_match_share = re.compile(r"[/\\]{2}").match


class FileDigests:
    """The sha256 of files, cached until the file's device, inode, size or times change. Thread-safe."""

    def __init__(self) -> None:
        self._digests: dict[tuple[int, ...], str] = {}

    def matches(self, path: str, size: int, digest: str, policy: PathPolicy | None, folder: Path | None = None) -> bool:
        """Return whether a file has this size and this sha256; `policy` is None if any file may be compared.

        `path` is a path or a `file:` address. A relative one starts at `folder`, where the caller works; if that is not
        known, it never matches.
        """
        path = _resolve_path(path, folder)
        if not 0 < size <= MAX_FILE_BYTES or not path or _match_share(path):
            return False
        opened = open_permitted_file(path, policy or _ANY_FILE)
        if isinstance(opened, Refusal):
            return False
        try:
            return self._find_digest(opened.descriptor, size) == digest
        except OSError:
            return False
        finally:
            os.close(opened.descriptor)

    def _find_digest(self, descriptor: int, size: int) -> str | None:
        """Return the sha256 of an open file; None if it has another size, or changes while it is read."""
        before = os.fstat(descriptor)
        version = _get_version(before)
        if before.st_size != size:
            return None
        if known := self._digests.get(version):
            return known
        found = _hash(descriptor, size)
        if found is None or _get_version(os.fstat(descriptor)) != version:
            return None
        if time.time_ns() - before.st_mtime_ns > _SETTLED_NS:
            self._digests[version] = found
            for oldest in list(self._digests)[:-_DIGESTS_KEPT]:
                self._digests.pop(oldest, None)
        return found


def _resolve_path(path: str, folder: Path | None) -> str:
    """Return the absolute path that a caller means; empty: it is not known, or on another machine."""
    if path.startswith("file:"):
        from urllib.request import url2pathname  # imports HTTP and email, too

        try:
            address = urlsplit(path)
        except ValueError:
            return ""
        path = url2pathname(address.path) if address.netloc in ("", "localhost") else ""
    if os.path.isabs(path) or _match_share(path):  # noqa: PTH117
        return path
    return os.path.join(folder, path) if folder is not None and path and path[0] != "~" else ""  # noqa: PTH118


def _hash(descriptor: int, size: int) -> str | None:
    """Return the sha256 of the next `size` bytes; None if there are fewer."""
    digest, remaining = sha256(), size
    while remaining and (chunk := os.read(descriptor, min(remaining, _CHUNK))):
        digest.update(chunk)
        remaining -= len(chunk)
    return None if remaining else digest.hexdigest()


def _get_version(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
