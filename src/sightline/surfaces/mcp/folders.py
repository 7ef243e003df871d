"""Which folders a client's calls may read: those of the user's settings, the working one, and those it names itself."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from sightline.api.session import Door

_MOST_ROOTS = 64


def opened(door: Door, roots: Iterable[Path]) -> Door:
    """The door with the client's folders. Hosts start a server wherever they happen to be: that all of a disk or of
    a home is the working folder is nobody's wish, unless the settings say so."""
    allowed = tuple(_real(folder) for folder in (door.settings.fs_reach if door.settings else ()))
    kept = [folder for folder in door.policy.roots if folder in allowed or not _too_wide(folder)]
    named = [folder for folder in roots if not _too_wide(folder)]
    working, rest = kept[:1] if kept[:1] == list(door.policy.roots[:1]) else [], kept
    reach = tuple(dict.fromkeys((*working, *named, *rest)))
    here = door.here if door.here is None else (*(each for each in door.here if not _too_wide(each)), *named)
    return replace(door, policy=replace(door.policy, roots=reach), here=here)


def nowhere() -> bool:
    """Has the host started this process where nobody works?"""
    try:
        return _too_wide(Path.cwd())
    except OSError:  # somebody has removed it
        return True


def paths(uris: Iterable[str]) -> Iterator[Path]:
    """The folders that `file:` addresses name, and that are there."""
    for uri, _ in zip(uris, range(_MOST_ROOTS), strict=False):
        try:
            parts = urlsplit(uri)
            ours = parts.scheme == "file" and parts.netloc in ("", "localhost")
            folder = _real(Path(url2pathname(parts.path))) if ours and parts.path else None
            if folder is not None and folder.is_dir():
                yield folder
        except (OSError, ValueError):
            continue


def _too_wide(folder: Path) -> bool:
    """Is it a whole disk, a home, or where homes are?"""
    home = _real(Path(os.path.expanduser("~")))  # noqa: PTH111, which raises nothing where there is none
    real = _real(folder)
    return real == Path(real.anchor) or home.is_relative_to(real)


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))
