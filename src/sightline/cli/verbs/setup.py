"""`sightline setup AGENT`: the settings that point an agent at the proxy and declare its model as a vision model.

`--undo` restores what `--write` has changed, from a journal: one JSON file beside the record. For each file it has the
lines that were merged into it, the hash of the result, the copy of the old content, and the folders that were created.
Several writes in a row are one change: undo restores what was there before the first of them, exactly if nothing else
has changed the file since. Otherwise it only takes out what was written, and all other changes stay.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.agents import AGENTS
from sightline.agents.agent import CodingAgent, ProviderTarget, SetupRequest
from sightline.agents.launch import LaunchContext
from sightline.agents.settings_files import join_lines, merge_text, revert_text
from sightline.cli.proxy_server import DEFAULT_PORT, format_url, read_port
from sightline.cli.terminal import add_json, print_refusal, print_result, read_text
from sightline.disk import explain_os_error, write_atomically
from sightline.model.profile import Upstream
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load_settings

if TYPE_CHECKING:
    from sightline.model.scene import Json

EXAMPLE = """  sightline setup claude
  sightline setup claude --upstream deepseek --write
  sightline setup opencode --upstream deepseek --model deepseek-v4-pro --write
  sightline setup claude --undo"""
_KEY_PLACEHOLDER = "KEY"
_JOURNAL_NAME = "setup.json"
_LINES = "lines"  # may be missing in the journals of earlier versions
_FIELDS = ("written", "before", "mode", "backup", "owns_backup", "folders")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", choices=sorted(AGENTS), help=", ".join(AGENTS))
    parser.add_argument("--upstream", metavar="NAME", default="", help="the provider that the agent should use")
    parser.add_argument("--model", metavar="MODEL", default="", help="the model to declare as a vision model")
    parser.add_argument(
        "--port", type=read_port, default=DEFAULT_PORT, metavar="P", help="the port of `sightline serve`"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--write", action="store_true", help="merge the settings into the agent's file, and keep a copy of it"
    )
    what.add_argument("--undo", action="store_true", help="undo what --write changed in the agent's file")
    add_json(parser)


def run(args: Namespace) -> int:
    address = format_url("127.0.0.1", args.port)
    known = AGENTS[args.agent]
    settings = load_settings()
    if args.undo:
        return _undo(known, settings, as_json=args.json)
    target = _choose_target(known, args, address, settings)
    if isinstance(target, Refusal) and (args.write or args.upstream):
        return print_refusal(target, as_json=args.json)
    agent = known.render(address, None if isinstance(target, Refusal) else target, args.model)
    file = known.find_file(settings.environment)
    if isinstance(target, Refusal):
        agent = replace(agent, note=f"{target}. {agent.note}")
    if not args.write or isinstance(target, Refusal):
        found: dict[str, Json] = {
            "name": agent.name,
            "title": agent.title,
            "once": agent.one_run,
            "lines": agent.file_lines,
            "sees": agent.vision_hint,
            "mcp": agent.mcp,
            "key": _get_key_hint(agent, target),
            "note": agent.note,
            "file": str(file or ""),
            "address": address,
        }
        return print_result(
            found, _list_setup_lines(agent, file, address, _get_key_hint(agent, target)), as_json=args.json
        )
    written = _write_file(agent, file, target, args.model, SetupJournal(settings.data_folder))
    if isinstance(written, Refusal):
        return print_refusal(written, as_json=args.json)
    done: dict[str, Json] = {
        "file": str(written.file),
        "backup": str(written.backup) if written.backup else None,
        "upstream": target.upstream,
        "use": agent.after_setup,
        "key": _get_key_hint(agent, target),
    }
    return print_result(done, _list_written_lines(agent, target, written, args.port), as_json=args.json)


def _undo(agent: CodingAgent, settings: Settings, *, as_json: bool) -> int:
    file = agent.find_file(settings.environment)
    if file is None:
        refusal = Refusal("unsupported_type", f"{agent.title} has no settings file to restore", "undo it by hand")
        return print_refusal(refusal, as_json=as_json)
    restored = SetupJournal(settings.data_folder).undo(file)
    if isinstance(restored, Refusal):
        refusal = replace(restored, remedy=restored.remedy.replace("AGENT", agent.name))
        return print_refusal(refusal, as_json=as_json)
    exists = restored.file.exists()
    line = f"{restored.file} is {'as it was' if exists else 'gone, as'} before `sightline setup {agent.name} --write`"
    if not restored.is_exact:
        line = f"what `sightline setup {agent.name} --write` wrote is no longer in {restored.file}; other changes stay"
    return print_result({"file": str(restored.file), "restored": exists}, [line], as_json=as_json)


def _get_key_hint(agent: CodingAgent, target: ProviderTarget | Refusal) -> str:
    """Return where the agent gets the key of its new provider; empty: it needs none, or has it."""
    return agent.key_hint if isinstance(target, ProviderTarget) and target.needs_key else ""


def _choose_target(agent: CodingAgent, args: Namespace, address: str, settings: Settings) -> ProviderTarget | Refusal:
    """Return the provider that the agent will use: the one that the user names, else that of its own files."""
    known = _list_upstreams(settings)
    if args.upstream and args.upstream not in known:
        return Refusal("not_found", f"there is no upstream named {args.upstream!r}", "`sightline doctor` lists them")
    home = Path.home()  # permanent settings are the user's, not a project's
    context = LaunchContext(settings.environment, address, home, read_text, serve_port=DEFAULT_PORT)
    return agent.choose_target(SetupRequest(agent, args.upstream, args.model, context, known))


def _list_upstreams(settings: Settings) -> dict[str, Upstream]:
    """Return every upstream with a name and an address, the user's own first, without importing the proxy."""
    from sightline.profiles.presets import PRESETS

    presets = {name: Upstream(name, each.bases, name, each.key_variables) for name, each in PRESETS.items()}
    own = {
        name: each if each.bases else replace(presets[each.preset or name], name=name, api_key=each.api_key)
        for name, each in settings.upstreams.items()
        if each.bases or (each.preset or name) in presets
    }
    return {name: each for name, each in {**own, **presets, **own}.items() if each.bases}


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """An agent's file after a merge."""

    file: Path
    backup: Path | None  # None: nothing was there, or nothing had to be changed
    changed: bool = True
    can_undo: bool = True  # it was changed by this command, now or before


def _list_written_lines(agent: CodingAgent, target: ProviderTarget, written: WrittenFile, port: int) -> Iterator[str]:
    """List what was written, what the agent needs now, and how to undo it."""
    upstream = target.upstream
    backup_note = f"; a copy of the old file is {written.backup}" if written.backup else ""
    yield f"{agent.title} now uses {upstream} through the proxy (set in {written.file}{backup_note})"
    if hint := _get_key_hint(agent, target):
        yield hint
    if agent.after_setup:
        yield agent.after_setup
    serve = "sightline serve" + ("" if port == DEFAULT_PORT else f" --port {port}")
    yield f"Keep `{serve}` running: without it {agent.title} cannot reach {upstream}."
    nothing = "" if written.changed else "Nothing had to be changed. "
    command = f"sightline setup {agent.name}"
    by_hand = f"remove the lines that `{command}` shows from {written.file}."
    yield f"{nothing}To undo this, {f'run: {command} --undo' if written.can_undo else by_hand}"


def _write_file(
    agent: CodingAgent, file: Path | None, target: ProviderTarget, model: str, journal: SetupJournal
) -> WrittenFile | Refusal:
    if file is None:
        how = "run the command" if agent.file_lines else "set the variables"
        remedy = f"leave out --write, and {how} that it shows"
        return Refusal("unsupported_type", f"{agent.title} has no settings file to write", remedy)
    if agent.default_model and not model:
        return Refusal("invalid_input", "the model to declare as a vision model is missing", "add --model MODEL")
    if target.key == _KEY_PLACEHOLDER:
        return Refusal(
            "invalid_input",
            f"Sightline can't find the key that {agent.title} should use for {target.upstream}",
            f"replace {_KEY_PLACEHOLDER} in these lines and add them by hand: {join_lines(agent.file_lines)}",
        )
    return _merge_file(file, agent.file_lines, journal)


def _merge_file(file: Path, lines: str, journal: SetupJournal) -> WrittenFile | Refusal:
    jsonc_file = file.with_suffix(".jsonc")
    if jsonc_file.exists():
        return Refusal(
            "unsupported_type", f"{jsonc_file} overrides {file.name}", f"merge these lines into it: {join_lines(lines)}"
        )
    try:
        before = file.read_bytes() if file.exists() else None
        text = (before or b"").decode("utf-8-sig")
    except (OSError, ValueError):
        return Refusal("not_permitted", f"{file} cannot be read as text", "merge the lines by hand")
    merged = merge_text(str(file), text, lines)
    if isinstance(merged, Refusal):
        return merged
    if merged == text:
        return WrittenFile(file, None, changed=False, can_undo=journal.has_change(file))
    try:
        backup = journal.write(file, before, merged.encode(), lines)
    except OSError as error:
        return Refusal("not_permitted", f"{file} cannot be written: {error.strerror}", "merge the lines by hand")
    return WrittenFile(file, backup)


def _list_setup_lines(agent: CodingAgent, file: Path | None, address: str, key_hint: str) -> Iterator[str]:
    yield f"{agent.title}, with `sightline serve` listening on {address}"
    sections = (
        ("For one run", agent.one_run),
        (f"Permanently, in {file}" if file else "Permanently", agent.file_lines),
        ("Then", agent.after_setup),
        ("The key", key_hint),
        ("How its model is declared as a vision model", agent.vision_hint),
        ("The tools over MCP, with or without the proxy", agent.mcp),
        ("Note", agent.note),
    )
    for title, text in sections:
        if text:
            yield from ("", f"{title}:", *(f"  {line}" for line in text.splitlines()))


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
