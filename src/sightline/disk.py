"""Atomic writes of files, what is wrong with files that cannot be written, and files too large for memory."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from pathlib import Path

PART_SUFFIX = ".part"
MAX_LARGE_BYTES = 4 * 1024 * 1024 * 1024  # of a file that stays open
_CHUNK = 1024 * 1024


def write_atomically(
    path: Path, data: bytes, *, mode: int = 0o600, exclusive: bool = False, force_mode: bool = False
) -> None:
    """Write a file so that it has the old or the new bytes, even after a crash.

    `exclusive`: raise if the file exists. `force_mode`: set the mode exactly, ignoring the umask.

    The temporary file has a random name and must not exist, so that no planted file or link is opened.
    """
    folder, _ = os.path.split(path)  # texts instead of paths: each new image is written here
    part = os.path.join(folder, f".{secrets.token_hex(8)}{PART_SUFFIX}")  # noqa: PTH118
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        try:
            if force_mode and os.name == "posix":
                os.fchmod(handle, mode)
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(handle, rest) :]
            os.fsync(handle)
        finally:
            os.close(handle)
        if exclusive:
            path.open("xb").close()  # raises if the file exists
        os.replace(part, path)  # noqa: PTH105
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    sync_folder(folder)


def sync_folder(folder: str | Path) -> None:
    """Make the names in a folder survive a power failure."""
    if os.name != "posix":
        return  # Windows cannot open a folder
    handle = os.open(folder or os.curdir, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def explain_os_error(error: OSError) -> tuple[str, str]:
    """Return what is wrong with a file or a folder, and what the user can do."""
    path = Path(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else None
    if path is not None and (link := find_broken_link(path)):
        return f"{link} is a link to {link.readlink()}, which does not exist", "restore its target, or delete the link"
    if path is not None and error.errno == errno.ENOTDIR:  # what is no folder may be above it
        path = next((each for each in (path, *path.parents) if _exists(each)), path)
    of = f" ({path})" if path is not None else ""
    if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.EISDIR):
        found, needed = ("folder", "file") if error.errno == errno.EISDIR else ("file", "folder")
        return f"there is a {found} where a {needed} is needed{of}", f"move that {found} away"
    if error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        return f"the disk is full{of}", "free some space, then try again"
    if error.errno == errno.EROFS:
        return f"the file system is read-only{of}", "make it writable, or use another folder"
    if error.errno in (errno.EACCES, errno.EPERM):
        return f"permission denied{of}", "check the permissions of the file and of its folder"
    return f"{(error.strerror or type(error).__name__).lower()}{of}", "check that it can be read and written"


def find_broken_link(path: Path) -> Path | None:
    """Return `path` or the folder above it that is a broken link, or None."""
    return next((each for each in (path, *path.parents) if _exists(each, follow=False) and not _exists(each)), None)


def find_write_error(path: Path) -> OSError | None:
    """Return why a file or a folder cannot be written or created, as far as that can be known without trying."""
    if find_broken_link(path):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    nearest = next(each for each in (path, *path.absolute().parents) if _exists(each))
    mode = os.R_OK | os.W_OK | (os.X_OK if nearest.is_dir() else 0)
    if os.access(nearest, mode, effective_ids=os.access in os.supports_effective_ids):
        return None
    number = errno.EROFS if _is_read_only(nearest) else errno.EACCES
    return OSError(number, os.strerror(number), str(nearest))


def _exists(path: Path, *, follow: bool = True) -> bool:
    """Return whether a path exists and can be accessed; without `follow`, a broken link exists."""
    try:
        path.stat(follow_symlinks=follow)
    except OSError:
        return False
    return True


def _is_read_only(path: Path) -> bool:
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)


class LargeFile:
    """A regular file that is too large for memory, open for reading. It is closed with the last reference to it."""

    __slots__ = ("_sha256", "_version", "descriptor", "size")

    def __init__(self, descriptor: int) -> None:
        """Take over a descriptor."""
        status = os.fstat(descriptor)
        self.descriptor = descriptor
        self.size = status.st_size
        self._version = (status.st_size, status.st_mtime_ns)
        self._sha256 = ""

    def __del__(self) -> None:
        os.close(self.descriptor)

    @property
    def has_changed(self) -> bool:
        """Whether the file was written to since it was opened."""
        status = os.fstat(self.descriptor)
        return (status.st_size, status.st_mtime_ns) != self._version

    def read_head(self, count: int) -> bytes:
        """Return the first bytes."""
        return os.pread(self.descriptor, count, 0)

    def compute_sha256(self) -> str:
        """Return the sha256 of the whole file, which is read for it once."""
        if not self._sha256:
            found, at = hashlib.sha256(), 0
            while chunk := os.pread(self.descriptor, _CHUNK, at):
                found.update(chunk)
                at += len(chunk)
            self._sha256 = found.hexdigest()
        return self._sha256
