"""`sightline store repair`: rescue what can be read from a damaged record."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sightline.cli.terminal import add_json, print_refusal, print_result, print_warnings, show_progress
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load_settings

if TYPE_CHECKING:
    from sightline.model.image import Image
    from sightline.model.scene import Json
    from sightline.store.sqlite_repair import RepairResult

EXAMPLE = "  sightline store repair"


def add_arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="repair", required=True)
    repair = actions.add_parser(
        "repair",
        help="rescue what can be read from a damaged record",
        description="Copy everything that can be read from a damaged record into a new one, and keep the damaged one"
        " beside it. Programs that use the record continue with the new one; they need not be stopped.",
    )
    add_json(repair)


def run(args: Namespace) -> int:
    settings = load_settings()
    print_warnings(settings.warnings)
    return _repair(settings, as_json=args.json)


def _repair(settings: Settings, *, as_json: bool) -> int:
    from sightline.store.sqlite_repair import repair_record

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
