"""Files that are either whole or not there, whoever else writes in the same folder."""

from __future__ import annotations

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
