"""`sightline store`: work on the record itself."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sightline.cli.terminal import add_json, answer, refused, warn
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

if TYPE_CHECKING:
    from sightline.model.image import Image
    from sightline.model.scene import Json
    from sightline.store.repair import Progress, Repaired

EXAMPLE = "  sightline store repair"

_SHOWN_SECONDS = 0.1  # between two lines of progress
_BACK = "\r\033[K"


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="repair", required=True)
    repair = actions.add_parser(
        "repair",
        help="rescue what can be read of a damaged record",
        description="Write everything that can be read of a damaged record into a new one, and keep the damaged one"
        " beside it. Programs that use the record go on with the new one; they need not be stopped.",
    )
    add_json(repair)


def run(args: Namespace) -> int:
    settings = load()
    warn(settings.warnings)
    return _repair(settings, as_json=args.json)


def _repair(settings: Settings, *, as_json: bool) -> int:
    from sightline.store.repair import repair

    if settings.record == "memory" and not settings.folder.is_dir():
        no = Refusal("unavailable", "the record is in memory", "there is nothing to repair")
        return refused(no, as_json=as_json)
    with _progress() as progress:
        result = repair(settings.folder, progress, _identify)
    if isinstance(result, Refusal):
        return refused(result, as_json=as_json)
    found: dict[str, Json] = {
        "folder": str(settings.folder),
        "damage": result.damage or None,
        "kept": {**result.kept},
        "adopted": result.adopted,
        "left_out": result.left_out,
        "consents_lost": result.consents_lost,
        "consent_again": [*result.withdrawn],
        "aside": result.aside or None,
        "blobs_aside": result.blobs_aside or None,
    }
    return answer(found, _lines(settings, result), as_json=as_json)


def _identify(sha256: str, data: bytes) -> Image | None:
    """Return the image that bytes are, or None."""
    from sightline.model.image import Image
    from sightline.pixels.probe import probe

    found = probe(data, len(data))
    if found is None or isinstance(found, Refusal):
        return None
    return Image(sha256, found.mime, found.size, data, found.turned)


def _lines(settings: Settings, result: Repaired) -> Iterator[str]:
    if not result.damage and not result.left_out:
        yield f"the record in {settings.folder} is whole; nothing had to be repaired"
        return
    if result.damage:
        yield f"repaired the record in {settings.folder}, which was damaged: {result.damage}"
        rows = ", ".join(f"{count} {table}" for table, count in result.kept.items() if count)
        yield f"kept: {rows or 'nothing that could be read'}"
    if result.adopted:
        yield f"kept as yours: {result.adopted} images of which only the bytes were left"
    if result.left_out:
        yield f"left out: {result.left_out} images whose bytes are missing or damaged"
    yield from _consent_lines(result)
    until = "until they are 30 days old or you run `sightline forget`"
    if result.aside:
        yield f"the damaged database and its log are kept as {result.aside}, {until}"
    if result.blobs_aside:
        yield f"files that are no images are kept in {result.blobs_aside}, {until}"


def _consent_lines(result: Repaired) -> Iterator[str]:
    if not result.consents_lost:
        return
    yield (
        "consents were lost: no image is sent to a provider that needs your consent until you give it again,"
        " with: sightline consent yes PROVIDER"
    )
    for provider in result.withdrawn:
        yield f"  you had given it for {provider}: sightline consent yes {provider}"


@contextmanager
def _progress() -> Iterator[Progress]:
    """Show how far it is on a terminal, in a line that is gone when it is done."""
    live, last = sys.stderr.isatty(), 0.0

    def show(what: str, done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if live and now - last >= _SHOWN_SECONDS:
            last = now
            print(f"{_BACK}sightline: {what}: {done} of {total} …", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        if live:
            print(_BACK, end="", file=sys.stderr, flush=True)
