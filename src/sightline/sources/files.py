"""Local files as a source: read whole and within bounds, and written back, only in the folders that a policy allows.

A path is checked twice: when it is resolved, and again by where the opened file really is, because a link may have
been created in between. A path outside the allowed folders is refused with the same message whether or not the file
exists.

A file is written back through a descriptor of its folder, which is checked once it is open. All later steps use names
within that folder, so that a folder on the path can't be replaced by a link in the meantime.

`FileDigests` compares a file with an image by its sha256. This is the only way in which a file outside the allowed
folders is read, and only for clients on this machine. The answer is yes or no, and only for a regular file that is as
long as the image, which the client has sent in full.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from hashlib import sha256
from pathlib import Path

from sightline.disk import MAX_LARGE_BYTES, LargeFile
from sightline.model.image import MAX_FILE_BYTES
from sightline.model.refusal import Refusal, RefusalCode
from sightline.model.value import value_class
from sightline.sources import parse_file_url

_MAX_PATH_LENGTH = 4096
_SEPARATORS = re.compile(r"[/\\]")
_CHUNK = 1024 * 1024
_HEAD = 4096  # bytes of a large file that tell its kind

# Don't wait for the writer of a FIFO, don't make a terminal the controlling one, don't follow a link.
_READ_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))
_FOLDER_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_DIRECTORY", "O_NOFOLLOW"))
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_BINARY"))
_CAN_OPEN_FOLDERS = os.open in os.supports_dir_fd

OUTSIDE_FOLDERS = Refusal(
    "not_permitted", "the path is outside the folders that may be read", "copy the file into the working folder"
)
NO_FOLDERS = Refusal(
    "not_permitted",
    "no files may be read here",
    "name an image by its sha256:…; the user can allow a folder with --root",
)
STALE_FILE = Refusal(
    "not_permitted", "the file was never read, or has changed since", "call read_file, then edit with its token"
)
_IS_FOLDER = Refusal("invalid_input", "the path is a folder", "give the path of a file")
_INVALID_PATH = Refusal("invalid_input", "that is not a valid path", "give the path of a file")
_OS_ERRORS: tuple[tuple[type[OSError], RefusalCode, str], ...] = (
    (FileNotFoundError, "not_found", "there is no such file"),
    (NotADirectoryError, "not_found", "there is no such file"),
    (PermissionError, "not_permitted", "the file may not be read"),
)


@value_class
class SourceFile:
    data: bytes = field(repr=False)  # of a large file, only the beginning
    path: Path  # resolved
    name: str  # the last part of the path as requested
    large: LargeFile | None = None


@value_class
class OpenFile:
    descriptor: int
    path: Path  # resolved
    name: str  # the last part of the path as requested


@value_class
class PathPolicy:
    """The folders that may be read, as resolved paths. A relative path starts at the first of them."""

    roots: tuple[Path, ...]
    home: Path | None = None  # what `~` means, and also a root; None: not allowed
    excluded: tuple[Path, ...] = ()  # files and folders that are never allowed
    is_unlimited: bool = False  # for paths from a person or from code: anything that the process may read

    def allows(self, path: Path) -> bool:
        if self.is_unlimited:
            return True
        # Some file systems ignore case.
        folded = Path(str(path).casefold())
        is_excluded = any(folded.is_relative_to(str(each).casefold()) for each in self.excluded)
        return not is_excluded and any(path.is_relative_to(root) for root in self.roots)


def build_path_policy(
    working: Path | None,
    temporary: Path | None,
    allowed: Sequence[Path],
    home: Path | None,
    excluded: Sequence[Path] = (),
) -> PathPolicy:
    """Build a policy that allows the working and temporary folders, those that the user allows, and perhaps home.

    `excluded` are Sightline's own files: a tool that could write them could grant itself any permission.
    """
    folders = [working, temporary, *allowed, home]
    roots = tuple(dict.fromkeys(_resolve_path(folder) for folder in folders if folder))
    return PathPolicy(roots, home, tuple(_resolve_path(each) for each in excluded))


def read_permitted_file(
    path: str,
    policy: PathPolicy,
    max_bytes: int = MAX_FILE_BYTES,
    min_bytes: int = 1,
    may_stay_open: Callable[[bytes], bool] | None = None,
) -> SourceFile | Refusal:
    """Read a whole file whose size is from `min_bytes` to `max_bytes`.

    may_stay_open: whether a larger file is returned open instead, by its beginning; None: it is refused.
    """
    opened = open_permitted_file(path, policy)
    if isinstance(opened, Refusal):
        return opened
    try:
        if may_stay_open and (large := _keep_open(opened.descriptor, max_bytes)):
            head = large.read_head(_HEAD)
            if may_stay_open(head):
                return SourceFile(head, opened.path, opened.name, large)
        data = _read_descriptor(opened.descriptor, max_bytes, min_bytes)
    except OSError as error:
        return _refuse_os_error(error)
    finally:
        os.close(opened.descriptor)
    return data if isinstance(data, Refusal) else SourceFile(data, opened.path, opened.name)


def _keep_open(descriptor: int, more_than: int) -> LargeFile | None:
    """Return a file of more than so many bytes with a descriptor of its own; None: it is smaller, or far too large."""
    status = os.fstat(descriptor)
    fits = stat.S_ISREG(status.st_mode) and more_than < status.st_size <= MAX_LARGE_BYTES
    return LargeFile(os.dup(descriptor)) if fits and sys.platform != "win32" else None  # no worker inherits it there


def open_permitted_file(path: str, policy: PathPolicy) -> OpenFile | Refusal:
    """Open a regular file that the policy allows. The caller closes its descriptor."""
    parsed = _parse_path(path, policy)
    if isinstance(parsed, Refusal):
        return parsed
    try:
        resolved = _resolve_path(parsed)
        if not policy.allows(resolved):
            return OUTSIDE_FOLDERS
        ends_as_folder = _SEPARATORS.split(path)[-1] in ("", ".")
        refusal = _check_file_type(resolved.stat()) or (_IS_FOLDER if ends_as_folder else None)
        return refusal or _open_and_check(resolved, parsed.name, policy)
    except OSError as error:
        return _refuse_os_error(error)
    except ValueError:  # characters that the file system does not support
        return _INVALID_PATH


def is_outside(path: str, policy: PathPolicy) -> bool:
    """Return whether a path is refused because of where it leads, and not because it is invalid or contains `..`."""
    parsed = _parse_path(path, policy)
    if isinstance(parsed, Refusal):
        return parsed in (OUTSIDE_FOLDERS, NO_FOLDERS)
    try:
        return not policy.allows(_resolve_path(parsed))
    except (OSError, ValueError):
        return False


def _parse_path(text: str, policy: PathPolicy) -> Path | Refusal:
    """Return the path that a text means, without looking at the disk."""
    if not text.strip() or "\0" in text or len(text) > _MAX_PATH_LENGTH:
        return _INVALID_PATH
    if policy.is_unlimited:
        return Path(*policy.roots[:1], os.path.expanduser(text))  # noqa: PTH111, doesn't fail without a home
    return _parse_limited_path(text, policy)


def _parse_limited_path(text: str, policy: PathPolicy) -> Path | Refusal:
    parts = _SEPARATORS.split(text)
    if ".." in parts:
        return Refusal("not_permitted", "paths that contain .. are not read", "give the path without ..")
    if not policy.roots:
        return NO_FOLDERS
    if parts[0] == "~":
        if policy.home is None:
            return Refusal(
                "not_permitted", "the home folder may not be read", "the user can allow it in the setting fsReach"
            )
        return policy.home.joinpath(*filter(None, parts[1:]))
    return policy.roots[0] / text


def _resolve_path(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _open_and_check(path: Path, name: str, policy: PathPolicy) -> OpenFile | Refusal:
    """Open a file, and check again where it is and of what type, because it may have been replaced."""
    descriptor = os.open(path, _READ_FLAGS)
    try:
        refusal = None if policy.allows(_locate_descriptor(descriptor, path)) else OUTSIDE_FOLDERS
        refusal = refusal or _check_file_type(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    if refusal:
        os.close(descriptor)
    return refusal or OpenFile(descriptor, path, name)


def _read_descriptor(descriptor: int, max_bytes: int, min_bytes: int) -> bytes | Refusal:
    """Read all of an open file, if it is a regular file within the bounds that does not change while it is read."""
    before = os.fstat(descriptor)
    if refusal := _check_file_type(before):
        return refusal
    if before.st_size > max_bytes:
        return Refusal("too_large", f"the file is larger than {_format_size(max_bytes)}", "give a smaller file")
    if before.st_size < min_bytes:
        return Refusal("corrupt", "the file is empty", "give a file that has content")
    data = _read_bytes(descriptor, before.st_size)
    if len(data) != before.st_size or _get_version(before) != _get_version(os.fstat(descriptor)):
        return Refusal("corrupt", "the file changed while it was read", "try again when it is complete")
    return data


def _check_file_type(status: os.stat_result) -> Refusal | None:
    if stat.S_ISREG(status.st_mode):
        return None
    if stat.S_ISDIR(status.st_mode):
        return _IS_FOLDER
    return Refusal("not_permitted", "it is a device, a pipe or a socket", "give a regular file")


def _locate_descriptor(descriptor: int, path: Path) -> Path:
    """Return where an open file really is."""
    try:
        return Path(f"/proc/self/fd/{descriptor}").readlink()
    except OSError:  # only Linux has this link; elsewhere the path must still lead to the same file
        resolved = _resolve_path(path)
        return resolved if os.path.samestat(resolved.stat(), os.fstat(descriptor)) else Path("(moved)")


def _read_bytes(descriptor: int, size: int) -> bytes:
    """Read `size` bytes, and one more if the file has grown."""
    chunks: list[bytes] = []
    remaining = size + 1
    while remaining > 0 and (chunk := os.read(descriptor, min(remaining, _CHUNK))):
        chunks.append(chunk)
        remaining -= len(chunk)
    return b"".join(chunks)


def _get_version(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _format_size(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} bytes"


@value_class
class _OpenFolder:
    path: Path
    descriptor: int | None  # None where a folder cannot be opened (Windows): then whole paths are used

    def __truediv__(self, name: str) -> str | Path:
        return self.path / name if self.descriptor is None else name


def write_back(file: SourceFile, data: bytes, policy: PathPolicy) -> Refusal | None:
    """Replace a file atomically, unless it has changed since it was read."""
    try:
        with _open_folder(file.path.parent) as folder:
            if folder.descriptor is not None and not policy.allows(_locate_descriptor(folder.descriptor, folder.path)):
                return OUTSIDE_FOLDERS
            return _replace_file(folder, file, data)
    except OSError as error:
        return Refusal(
            "not_permitted",
            f"the file cannot be written: {error.strerror}",
            "check the permissions of the file and its folder",
        )


@contextmanager
def _open_folder(path: Path) -> Iterator[_OpenFolder]:
    if not _CAN_OPEN_FOLDERS:
        yield _OpenFolder(path, None)
        return
    descriptor = os.open(path, _FOLDER_FLAGS)
    try:
        yield _OpenFolder(path, descriptor)
    finally:
        os.close(descriptor)


def _replace_file(folder: _OpenFolder, file: SourceFile, data: bytes) -> Refusal | None:
    temporary, folder_fd = f".{file.path.name[:100]}.{secrets.token_hex(8)}", folder.descriptor
    mode = stat.S_IMODE(os.stat(folder / file.path.name, dir_fd=folder_fd, follow_symlinks=False).st_mode)
    handle = os.open(folder / temporary, _CREATE_FLAGS, 0o600, dir_fd=folder_fd)
    try:
        with os.fdopen(handle, "wb") as file_object:
            file_object.write(data)
            file_object.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(handle, mode)
            os.fsync(handle)
        if _read_current(folder, file.path.name, len(file.data)) != file.data:
            return STALE_FILE
        os.replace(folder / temporary, folder / file.path.name, src_dir_fd=folder_fd, dst_dir_fd=folder_fd)
    finally:
        _delete_temporary(folder, temporary)
    return None


def _read_current(folder: _OpenFolder, name: str, max_bytes: int) -> bytes | Refusal:
    descriptor = os.open(folder / name, _READ_FLAGS, dir_fd=folder.descriptor)
    try:
        return _read_descriptor(descriptor, max_bytes, min_bytes=0)
    finally:
        os.close(descriptor)


def _delete_temporary(folder: _OpenFolder, temporary: str) -> None:
    try:
        os.unlink(folder / temporary, dir_fd=folder.descriptor)
    except FileNotFoundError:
        return  # it was renamed to the file


def _refuse_os_error(error: OSError) -> Refusal:
    for kind, code, what in _OS_ERRORS:
        if isinstance(error, kind):
            return Refusal(code, what, "check the path and the permissions of the file")
    return Refusal("not_found", f"the file cannot be read: {error.strerror or 'unknown error'}", "check the path")


# Files that are compared with an image


_ANY_FILE = PathPolicy((), is_unlimited=True)
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
        path = _find_absolute_path(path, folder)
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
        version = _get_identity(before)
        if before.st_size != size:
            return None
        if known := self._digests.get(version):
            return known
        found = _hash(descriptor, size)
        if found is None or _get_identity(os.fstat(descriptor)) != version:
            return None
        if time.time_ns() - before.st_mtime_ns > _SETTLED_NS:
            self._digests[version] = found
            for oldest in list(self._digests)[:-_DIGESTS_KEPT]:
                self._digests.pop(oldest, None)
        return found


def _find_absolute_path(path: str, folder: Path | None) -> str:
    """Return the absolute path that a caller means; empty: it is not known, or on another machine."""
    path = parse_file_url(path) if path.startswith("file:") else path
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


def _get_identity(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
