"""Files that are either whole or not there, whoever else writes in the same folder."""

from __future__ import annotations

import errno
import os
import secrets
from pathlib import Path

UNFINISHED = ".part"


def write_whole(path: Path, data: bytes, *, mode: int = 0o600, fresh: bool = False, kept: bool = False) -> None:
    """The file has these bytes or the ones it had before, also after a crash. `fresh`: it must not be there yet.

    `kept`: `mode` is that of a file which was there, and stays so whatever new files get here.

    The name of the part cannot be guessed, and nothing that is planted under it is opened.
    """
    part = path.with_name(f".{secrets.token_hex(8)}{UNFINISHED}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with os.fdopen(handle, "wb") as file:
            if kept and os.name == "posix":
                os.fchmod(handle, mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if fresh:
            path.open("xb").close()  # the name is ours now, or was somebody's
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    settle(path.parent)


def settle(folder: Path) -> None:
    """The names in a folder survive a power cut, not only the bytes behind them."""
    if os.name != "posix":
        return  # a folder cannot be opened there
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def explain_os_error(trouble: OSError) -> tuple[str, str]:
    """Return what is wrong with a file or a folder, and what the user can do about it."""
    path = Path(os.fsdecode(trouble.filename)) if isinstance(trouble.filename, str | bytes) else None
    if path is not None and (link := find_broken_link(path)):
        return f"{link} is a link to {link.readlink()}, which is not there", "restore what it leads to, or remove it"
    of = f" ({path})" if path is not None else ""
    if trouble.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", None)):
        return f"the disk is full{of}", "free some space, and try again"
    if trouble.errno == errno.EROFS:
        return f"the file system is read-only{of}", "make it writable, or use another folder"
    if trouble.errno in (errno.EACCES, errno.EPERM):
        return f"permission denied{of}", "check the permissions of the file and of its folder"
    if trouble.errno in (errno.EEXIST, errno.ENOTDIR):
        return f"there is a file where a folder has to be{of}", "move that file away"
    return f"{(trouble.strerror or type(trouble).__name__).lower()}{of}", "check that it can be read and written"


def find_broken_link(path: Path) -> Path | None:
    """Return the link that leads nowhere, if `path` or a folder above it is one."""
    return next((each for each in (path, *path.parents) if _is_there(each, follow=False) and not _is_there(each)), None)


def find_obstacle(path: Path) -> OSError | None:
    """Return why a file or a folder cannot be written or created, as far as can be found out without trying."""
    if find_broken_link(path):
        return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
    there = next(each for each in (path, *path.absolute().parents) if _is_there(each))
    mode = os.R_OK | os.W_OK | (os.X_OK if there.is_dir() else 0)
    if os.access(there, mode, effective_ids=os.access in os.supports_effective_ids):
        return None
    number = errno.EROFS if _is_read_only(there) else errno.EACCES
    return OSError(number, os.strerror(number), str(there))


def _is_there(path: Path, *, follow: bool = True) -> bool:
    """Return whether a path leads to something that can be looked at; without `follow`, a link is something."""
    try:
        path.stat(follow_symlinks=follow)
    except OSError:
        return False
    return True


def _is_read_only(path: Path) -> bool:
    return hasattr(os, "statvfs") and bool(os.statvfs(path).f_flag & os.ST_RDONLY)
