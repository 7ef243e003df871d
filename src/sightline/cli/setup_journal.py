"""What `setup --write` has changed in the files of agents, so that `setup --undo` can restore them.

The journal is one JSON file beside the record. For each file it has the lines that were merged into it, the hash of the
result, the copy of the old content, and the folders that were created. Several writes in a row are one change: undo
restores what was there before the first of them, exactly if nothing else has changed the file since. Otherwise it only
takes out what was written, and all other changes stay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from sightline.agents.settings_files import merge_text, revert_text
from sightline.disk import explain_os_error, write_atomically
from sightline.model.refusal import Refusal

_JOURNAL_NAME = "setup.json"
_LINES = "lines"  # may be missing in the journals of earlier versions
_FIELDS = ("written", "before", "mode", "backup", "owns_backup", "folders")


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file that was changed."""

    written: str  # the sha256 of its content since then
    before: str  # the sha256 of its old content; empty: there was no file
    mode: int  # the permissions that it had
    backup: str  # the copy of its old content; empty: there was no file
    owns_backup: bool  # the copy was made for this change
    folders: tuple[str, ...]  # that were created for it, the innermost first
    lines: tuple[str, ...] = ()  # that were merged into it, write by write


@dataclass(frozen=True, slots=True)
class UndoneFile:
    """A file from which a change was taken out."""

    file: Path
    is_exact: bool  # it is as it was before; False: other changes were kept


class SetupJournal:
    def __init__(self, data_folder: Path) -> None:
        self._path = data_folder / _JOURNAL_NAME

    def write(self, file: Path, before: bytes | None, after: bytes, lines: str) -> Path | None:
        """Write a file of an agent, and return the copy of its old content; None: there was no file.

        `lines` were merged into `before`.

        This raises OSError. The journal is written first: a change that is not in it could not be undone.
        """
        file = file.resolve()
        changes = self._read()
        mode = 0o600 if before is None else file.stat().st_mode & 0o777
        known = changes.get(str(file))
        if known is not None and before is not None and known.written == _hash(before):
            change = replace(known, written=_hash(after), lines=(*known.lines, lines) if known.lines else ())
        else:
            earlier = None if known is None or before is None else _revert(file, known, before)
            old = earlier.encode() if isinstance(earlier, str) else before
            change = replace(_record_change(file, old, after, mode), lines=(lines,))
        file.parent.mkdir(parents=True, exist_ok=True)
        self._save({**changes, str(file): change})
        write_atomically(file, after, mode=mode, force_mode=before is not None)
        return Path(change.backup) if change.backup else None

    def has_change(self, file: Path) -> bool:
        """Return whether a file has been changed, and not been restored since."""
        return str(file.resolve()) in self._read()

    def undo(self, file: Path) -> UndoneFile | Refusal:
        """Restore a file as it was before it was first written, but for other changes since then."""
        file = file.resolve()
        changes = self._read()
        change = changes.pop(str(file), None)
        try:
            refusal = _check(file, change)
            if refusal is not None or change is None:
                return refusal or _refuse_unknown(file)
            is_exact = _hash(file.read_bytes()) == change.written
            if refusal := None if is_exact else _take_out(file, change):
                return refusal
            if is_exact:
                _restore(file, change)
            self._save(changes)
        except OSError as error:
            why, remedy = explain_os_error(error)
            return Refusal("not_permitted", f"{file} cannot be restored: {why}", remedy)
        return UndoneFile(file, is_exact)

    def _read(self) -> dict[str, FileChange]:
        try:
            entries = json.loads(self._path.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        known = entries.items() if isinstance(entries, dict) else ()
        return {
            file: _parse_change(entry)
            for file, entry in known
            if isinstance(entry, dict) and set(_FIELDS) <= set(entry)
        }

    def _save(self, changes: Mapping[str, FileChange]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        text = json.dumps({file: asdict(change) for file, change in changes.items()}, indent=2)
        write_atomically(self._path, text.encode(), mode=0o600, force_mode=True)


def _record_change(file: Path, before: bytes | None, after: bytes, mode: int) -> FileChange:
    """Return a new change, with a copy of the old content."""
    if before is None:
        folders = tuple(str(each) for each in (file.parent, *file.parent.parents) if not each.exists())
        return FileChange(_hash(after), "", mode, "", owns_backup=False, folders=folders)
    backup, is_new = _back_up(file, before, mode)
    return FileChange(_hash(after), _hash(before), mode, str(backup), is_new, ())


def _parse_change(entry: Mapping[str, Any]) -> FileChange:
    values = {name: entry[name] for name in _FIELDS}
    return FileChange(**{**values, "folders": tuple(entry["folders"]), _LINES: tuple(entry.get(_LINES, ()))})


def _check(file: Path, change: FileChange | None) -> Refusal | None:
    """Return why a file can't be restored."""
    if change is None:
        return _refuse_unknown(file)
    if not file.exists() or (not change.lines and _hash(file.read_bytes()) != change.written):
        copy = f"; a copy of what it was before is {change.backup}" if change.backup else ""
        remedy = f"take out by hand the lines that `sightline setup AGENT` shows{copy}"
        return Refusal("not_permitted", f"{file} was changed after `setup --write`", remedy)
    backup = Path(change.backup)
    if change.backup and (not backup.is_file() or _hash(backup.read_bytes()) != change.before):
        what = f"the copy {backup} of the old {file.name} is gone or was changed"
        return Refusal("not_permitted", what, "take out by hand the lines that `sightline setup AGENT` shows")
    return None


def _refuse_unknown(file: Path) -> Refusal:
    return Refusal("not_found", f"`sightline setup --write` has not changed {file}", "there is nothing to undo")


def _restore(file: Path, change: FileChange) -> None:
    if not change.backup:
        file.unlink()
        for folder in map(Path, change.folders):
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        return
    backup = Path(change.backup)
    write_atomically(file, backup.read_bytes(), mode=change.mode, force_mode=True)
    if change.owns_backup:
        backup.unlink()


def _take_out(file: Path, change: FileChange) -> Refusal | None:
    """Take out of a file what was written, and keep what has been changed since then."""
    reverted = _revert(file, change, file.read_bytes())
    if isinstance(reverted, Refusal):
        return reverted
    write_atomically(file, reverted.encode(), mode=file.stat().st_mode & 0o777, force_mode=True)
    if change.backup and change.owns_backup:
        Path(change.backup).unlink()
    return None


def _revert(file: Path, change: FileChange, now: bytes) -> str | Refusal:
    """Return the content of a file as it is `now`, without what was written."""
    try:
        before = Path(change.backup).read_bytes().decode("utf-8-sig") if change.backup else ""
        current = now.decode("utf-8-sig")
    except (OSError, ValueError):
        return Refusal("corrupt", f"{file} or its copy is not text", "take the lines out by hand")
    written: str | Refusal = before
    for lines in change.lines:
        written = written if isinstance(written, Refusal) else merge_text(str(file), written, lines)
    return written if isinstance(written, Refusal) else revert_text(str(file), before, written, current)


def _back_up(file: Path, data: bytes, mode: int) -> tuple[Path, bool]:
    """Copy a file to a new name; return that, and whether it is a new copy. Earlier copies are not overwritten."""
    names = (file.with_name(f"{file.name}.bak{number or ''}") for number in count())
    backup = next(name for name in names if not name.exists() or name.read_bytes() == data)
    if backup.exists():
        return backup, False
    write_atomically(backup, data, mode=mode, force_mode=True)
    return backup, True


def _hash(data: bytes) -> str:
    return sha256(data).hexdigest()
