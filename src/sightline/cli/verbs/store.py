"""`sightline store`: how large the record is, deleting, copying and repairing it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.proxy_server import read_number
from sightline.cli.terminal import (
    VerbOutcome,
    VerbResult,
    add_json,
    print_refusal,
    print_result,
    print_warnings,
    show_progress,
)
from sightline.cli.verbs import open_disk_record
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load_settings

if TYPE_CHECKING:
    from sightline.model.image import Image
    from sightline.model.scene import Json
    from sightline.store.sql_store import SqlStore
    from sightline.store.sqlite_repair import RepairResult

EXAMPLE = """  sightline store stats
  sightline store gc --days 14
  sightline store export /backup/record
  sightline store import /backup/record
  sightline store repair"""

_NO_LIMIT = 1 << 20  # GiB
_ON_SERVERS = Refusal(
    "unavailable",
    "the record is on servers, which check and repair their own files",
    "run: sightline doctor, which says whether they can be used; what they have lost is in their own backups, or in a"
    " folder that `sightline store export` has written",
)


def _list_storage_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a record that can't be read or written. SQLite is loaded only when it is used."""
    import sqlite3

    return OSError, sqlite3.Error


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    stats = actions.add_parser("stats", help="how much the record contains")
    collect = actions.add_parser(
        "gc", help="delete what exceeds the limits of age and size, and images that nothing refers to",
        description="Delete what is too old or too much, and images that nothing refers to. What was used in the last"
        " day stays, because a conversation may need it.",
    )  # fmt: skip
    collect.add_argument("--days", type=_read_count, default=30, metavar="N", help="days without use; default: 30")
    collect.add_argument("--gib", type=_read_count, metavar="N", help="delete the least recently used beyond N GiB")
    export = actions.add_parser(
        "export", help="copy the whole record into a folder",
        description="Copy the whole record into a folder, as a record on disk. If it is interrupted, run it again.",
    )  # fmt: skip
    bring = actions.add_parser(
        "import", help="copy a record from a folder into this one",
        description="Copy the record in a folder, such as one that `export` has written, into the record that the"
        " settings name, on disk or on servers. Rows that are there already stay. If it is interrupted, run it again.",
    )  # fmt: skip
    for each in (export, bring):
        each.add_argument("folder", type=Path, metavar="FOLDER")
    for each in (stats, collect, export, bring):
        add_json(each)
    repair = actions.add_parser(
        "repair",
        help="rescue what can be read from a damaged record",
        description="Copy everything that can be read from a damaged record into a new one, and keep the damaged one"
        " beside it. Programs that use the record continue with the new one; they need not be stopped. A record on"
        " servers is not repaired here.",
    )
    add_json(repair)


def _read_count(text: str) -> int:
    return read_number(text, 1, 100_000)


def run(args: Namespace) -> VerbOutcome:
    settings = load_settings()
    print_warnings(settings.warnings)
    if args.action == "repair":
        return _repair(settings, as_json=args.json)
    with open_disk_record(settings) as record:
        if isinstance(record, Refusal):
            return record
        try:
            return _ACTIONS[args.action](record, args)
        except _list_storage_errors() as error:
            return record.transactions.refuse(error)


def _show_stats(record: SqlStore, args: Namespace) -> VerbResult:
    from sightline.store.maintenance import read_stats

    found = read_stats(record)
    counts: dict[str, Json] = {"images": found.images, "image_bytes": found.image_bytes, "scopes": found.scopes}
    lines = [f"images: {found.images} ({found.image_bytes / 1e6:.1f} MB) of {found.scopes} credentials", "rows:"]
    return VerbResult(
        {**counts, "rows": {**found.rows}}, [*lines, *(f"  {table:<13} {count}" for table, count in found.rows.items())]
    )


def _collect(record: SqlStore, args: Namespace) -> VerbResult:
    from sightline.store.maintenance import collect_garbage
    from sightline.store.retention import RecordBounds

    with show_progress() as progress:
        gone = collect_garbage(record, RecordBounds((args.gib or _NO_LIMIT) << 30, args.days), progress)
    line = f"deleted: {gone.rows} rows, and {gone.blobs} images that nothing referred to"
    return VerbResult({"rows": gone.rows, "images": gone.blobs}, [line])


def _export(record: SqlStore, args: Namespace) -> VerbResult | Refusal:
    from sightline.store import open_record_or_refuse

    folder = args.folder.expanduser().absolute()
    if record.transactions.storage.folder == folder:
        return Refusal("invalid_input", f"{folder} is the record that you export", "name another folder")
    target = open_record_or_refuse(folder)
    if isinstance(target, Refusal):
        return target
    with closing(target):
        return _copy(record, target, f"exported to {folder}")


def _import(record: SqlStore, args: Namespace) -> VerbResult | Refusal:
    from sightline.store import open_record_or_refuse
    from sightline.store.record_folder import DATABASE_NAME

    folder = args.folder.expanduser().absolute()
    if not (folder / DATABASE_NAME).is_file():
        return Refusal("not_found", f"there is no record in {folder}", "name a folder that `store export` has written")
    if record.transactions.storage.folder == folder:
        return Refusal("invalid_input", f"{folder} is the record that you import into", "name another folder")
    source = open_record_or_refuse(folder)
    if isinstance(source, Refusal):
        return source
    with closing(source):
        return _copy(source, record, f"imported from {folder}")


def _copy(source: SqlStore, target: SqlStore, done: str) -> VerbResult | Refusal:
    from sightline.store.maintenance import copy_record

    with show_progress() as progress:
        result = copy_record(source, target, progress)
    if isinstance(result, Refusal):
        return result
    copied, known = sum(result.copied.values()), sum(result.known.values())
    lines = [f"{done}: {copied} rows ({known} were there already)"]
    if result.missing:
        lines.append(f"left out: {result.missing} rows whose images are missing")
    return VerbResult({"copied": {**result.copied}, "known": {**result.known}, "missing": result.missing}, lines)


_ACTIONS: Mapping[str, Callable[[SqlStore, Namespace], VerbResult | Refusal]]
_ACTIONS = {"stats": _show_stats, "gc": _collect, "export": _export, "import": _import}


def _repair(settings: Settings, *, as_json: bool) -> int:
    from sightline.store.sqlite_repair import repair_record

    if settings.shared_address is not None:
        return print_refusal(_ON_SERVERS, as_json=as_json)
    if settings.record == "memory" and not settings.record_folder.is_dir():
        refusal = Refusal("unavailable", "the record is in memory", "there is nothing to repair")
        return print_refusal(refusal, as_json=as_json)
    with show_progress() as progress:
        result = repair_record(settings.record_folder, progress, _identify)
    if isinstance(result, Refusal):
        return print_refusal(result, as_json=as_json)
    found: dict[str, Json] = {
        "folder": str(settings.record_folder),
        "damage": result.damage or None,
        "kept": {**result.kept},
        "adopted": result.adopted,
        "left_out": result.left_out,
        "consents_lost": result.consents_lost,
        "consent_again": [*result.withdrawn],
        "aside": result.aside or None,
        "blobs_aside": result.blobs_aside or None,
    }
    return print_result(found, _list_lines(settings, result), as_json=as_json)


def _identify(sha256: str, data: bytes) -> Image | None:
    """Return bytes as an image, or None if they are not one."""
    from sightline.model.image import Image
    from sightline.pixels.probe import probe

    found = probe(data, len(data))
    if found is None or isinstance(found, Refusal):
        return None
    return Image(sha256, found.mime, found.size, data, found.is_rotated)


def _list_lines(settings: Settings, result: RepairResult) -> Iterator[str]:
    if not result.damage and not result.left_out:
        yield f"the record in {settings.record_folder} is not damaged; nothing had to be repaired"
        return
    if result.damage:
        yield f"repaired the record in {settings.record_folder}, which was damaged: {result.damage}"
        rows = ", ".join(f"{count} {table}" for table, count in result.kept.items() if count)
        yield f"kept: {rows or 'nothing that could be read'}"
    if result.adopted:
        yield f"recovered: {result.adopted} images of which only the bytes were left"
    if result.left_out:
        yield f"left out: {result.left_out} images whose bytes are missing or damaged"
    yield from _list_consent_lines(result)
    until = "until they are 30 days old or you run `sightline forget`"
    if result.aside:
        yield f"the damaged database and its log are kept as {result.aside}, {until}"
    if result.blobs_aside:
        yield f"files that are not images are kept in {result.blobs_aside}, {until}"


def _list_consent_lines(result: RepairResult) -> Iterator[str]:
    if not result.consents_lost:
        return
    yield (
        "consents were lost: no image is sent to a provider that needs your consent until you give it again,"
        " with: sightline consent yes PROVIDER"
    )
    for provider in result.withdrawn:
        yield f"  you had given it for {provider}: sightline consent yes {provider}"
