"""Files: read whole and within bounds, from the folders that the policy names and from nowhere else.

The path is judged when it is resolved, and once more by where the opened file really is: between the two somebody
may have put a link in its way. What a caller may not read is refused in the same words whether it is there or not.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sightline.model.image import MAX_BYTES
from sightline.model.refusal import Code, Refusal

_LONGEST_PATH = 4096
_SEPARATORS = re.compile(r"[/\\]")
_PIECE = 1024 * 1024

# A fifo that nobody writes must not hold us up, a terminal must not become ours, a link must not be followed.
READING = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))


@dataclass(frozen=True, slots=True)
class File:
    data: bytes = field(repr=False)
    path: Path  # where it really is
    name: str  # as it was asked for, without its folders


@dataclass(frozen=True, slots=True)
class Policy:
    """The folders that may be read, links in them resolved. A relative path starts at the first of them."""

    roots: tuple[Path, ...]
    home: Path | None = None  # a root as well, and what `~` means; None: nobody asked for it
    closed: tuple[Path, ...] = ()  # what is in none of them, wherever it stands

    def holds(self, path: Path) -> bool:
        # Some file systems take small letters for large ones.
        folded = Path(str(path).casefold())
        closed = any(folded.is_relative_to(str(each).casefold()) for each in self.closed)
        return not closed and any(path.is_relative_to(root) for root in self.roots)


def policy_for(
    working: Path | None,
    temporary: Path | None,
    allowed: Sequence[Path],
    home: Path | None,
    closed: Sequence[Path] = (),
) -> Policy:
    """The working folder, the system's temporary folder, what the user allows, and home if the user asks for it.

    Sightline's own files are `closed`: a tool that could write them would give itself whatever it likes.
    """
    folders = [working, temporary, *allowed, home]
    roots = tuple(dict.fromkeys(_resolved(folder) for folder in folders if folder))
    return Policy(roots, home, tuple(_resolved(each) for each in closed))


def read(path: str, policy: Policy, most: int = MAX_BYTES, least: int = 1) -> File | Refusal:
    """The whole file, of at least `least` and at most `most` bytes."""
    asked = _asked(path, policy)
    if isinstance(asked, Refusal):
        return asked
    try:
        found = _resolved(asked)
        if not policy.holds(found):
            return OUTSIDE
        ends_as_folder = _SEPARATORS.split(path)[-1] in ("", ".")
        refusal = _kind(found.stat()) or (_FOLDER if ends_as_folder else None)
        return refusal or _opened(found, asked.name, policy, most, least)
    except OSError as trouble:
        return _trouble(trouble)
    except ValueError:  # characters that no file system knows
        return _NO_PATH


def outside(path: str, policy: Policy) -> bool:
    """Is it refused because of where it is? A path that is none, or goes up, is refused wherever it leads."""
    asked = _asked(path, policy)
    if isinstance(asked, Refusal):
        return asked is OUTSIDE
    try:
        return not policy.holds(_resolved(asked))
    except (OSError, ValueError):
        return False


def there(path: str, policy: Policy) -> bool:
    """Is there a file that may be read? Of any other, nobody learns whether it is there.

    Only a whole path says where: whoever names it may work in another folder.
    """
    if not os.path.isabs(path):  # noqa: PTH117, which would not take every text
        return False
    asked = _asked(path, policy)
    try:
        found = None if isinstance(asked, Refusal) else _resolved(asked)
        return found is not None and policy.holds(found) and stat.S_ISREG(found.stat().st_mode)
    except (OSError, ValueError):
        return False


def _asked(text: str, policy: Policy) -> Path | Refusal:
    """The path that is meant, before anybody has looked for it."""
    if not text.strip() or "\0" in text or len(text) > _LONGEST_PATH:
        return _NO_PATH
    parts = _SEPARATORS.split(text)
    if ".." in parts:
        return Refusal("not_permitted", "a path with .. in it is not read", "give the path without going up")
    if not policy.roots:
        return OUTSIDE
    if parts[0] == "~":
        if policy.home is None:
            return Refusal("not_permitted", "the home folder is read only on request", "the setting fsReach allows it")
        return policy.home.joinpath(*filter(None, parts[1:]))
    return policy.roots[0] / text


def _resolved(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _opened(found: Path, name: str, policy: Policy, most: int, least: int) -> File | Refusal:
    descriptor = os.open(found, READING)
    try:
        if not policy.holds(place(descriptor, found)):
            return OUTSIDE
        data = contents(descriptor, most, least)
    finally:
        os.close(descriptor)
    return data if isinstance(data, Refusal) else File(data, found, name)


def contents(descriptor: int, most: int, least: int) -> bytes | Refusal:
    """All of an opened file, if it is a regular one of such a size that nobody writes meanwhile."""
    before = os.fstat(descriptor)
    if refusal := _kind(before):
        return refusal
    if before.st_size > most:
        return Refusal("too_large", f"the file is larger than {_amount(most)}", "give a smaller one")
    if before.st_size < least:
        return Refusal("corrupt", "the file is empty", "write it again")
    data = _pieces(descriptor, before.st_size)
    if len(data) != before.st_size or _version(before) != _version(os.fstat(descriptor)):
        return Refusal("corrupt", "the file changed while it was read", "try again when it is complete")
    return data


def _kind(status: os.stat_result) -> Refusal | None:
    if stat.S_ISREG(status.st_mode):
        return None
    if stat.S_ISDIR(status.st_mode):
        return _FOLDER
    return Refusal("not_permitted", "it is a device, a pipe or a socket", "give a regular file")


def place(descriptor: int, found: Path) -> Path:
    """Where the opened file really is."""
    try:
        return Path(f"/proc/self/fd/{descriptor}").readlink()
    except OSError:  # only Linux tells; elsewhere the path must still lead to the very same file
        again = _resolved(found)
        return again if os.path.samestat(again.stat(), os.fstat(descriptor)) else Path("(moved)")


def _pieces(descriptor: int, size: int) -> bytes:
    """So many bytes and, where the file has grown, one more."""
    pieces: list[bytes] = []
    left = size + 1
    while left > 0 and (piece := os.read(descriptor, min(left, _PIECE))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _version(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _amount(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size} bytes"


OUTSIDE = Refusal(
    "not_permitted", "the path is outside the folders that may be read", "copy the file into the working folder"
)
_FOLDER = Refusal("invalid_input", "it is the path of a folder", "give a file in it")
_NO_PATH = Refusal("invalid_input", "that is no path of a file", "give the path of a file")
_TROUBLES: tuple[tuple[type[OSError], Code, str], ...] = (
    (FileNotFoundError, "not_found", "there is no such file"),
    (NotADirectoryError, "not_found", "there is no such file"),
    (PermissionError, "not_permitted", "the file may not be read"),
)


def _trouble(trouble: OSError) -> Refusal:
    for kind, code, words in _TROUBLES:
        if isinstance(trouble, kind):
            return Refusal(code, words, "check the path and who may read it")
    return Refusal("not_found", f"the file cannot be read: {trouble.strerror or 'unknown trouble'}", "check the path")
