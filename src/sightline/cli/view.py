"""`sightline view`: an image file, or one of the record, as an agent would see it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.out import ENDINGS, format_of, write
from sightline.cli.verb import FORMS, add_json, answer, no, refused, show, warn
from sightline.model.refusal import Refusal
from sightline.settings import load

if TYPE_CHECKING:
    from sightline.api import View
    from sightline.api.session import Door

EXAMPLE = """  sightline view shot.png
  sightline view shot.png --crop r=top-left --out part.png
  sightline view sha256:0f343b0931126a20f133d67c --crop n=0.5,0,0.5,0.25 --json"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="a path, or sha256:DIGITS[#crop:X,Y,W,H] of an image seen before")
    parser.add_argument("--crop", metavar="FORM", help=f"look at a part of it only: {FORMS}")
    parser.add_argument("--page", metavar="N", type=int, help="the page of a document, from 1; nothing draws pages yet")
    parser.add_argument("--at", metavar="SECONDS", type=float, help="the moment of a video; nothing makes stills yet")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help=f"write the pixels there; its ending says as what: {ENDINGS}"
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    add_json(parser)


def run(args: Namespace) -> int:
    from sightline.api import Refused, door, view

    settings = load()
    warn(settings.warnings)
    wanted = format_of(args.out, "--out") if args.out else ""
    if isinstance(wanted, Refusal):
        return refused(wanted, as_json=args.json)
    at = _for_file(door(settings), wanted) if wanted else door(settings)
    seen = view(args.ref, crop=args.crop, page=args.page, at=args.at, through=at)
    if isinstance(seen, Refused):
        if args.json:
            show(seen.as_dict())
        return no(args.ref, seen.message)
    if args.out and (refusal := write(args.out, seen.pixels.data, "--out", force=args.force)):
        return refused(refusal, as_json=args.json)
    return answer(seen.as_dict(), _lines(seen, args.out), as_json=args.json)


def _for_file(door: Door, mime: str) -> Door:
    """Pixels for a file of this format: whatever may be read may be written, whether or not a model would take it."""
    from sightline.model.image import Target, base64_length
    from sightline.model.limits import MAX_BYTES

    return replace(door, target=Target((mime,), encoded_bytes=base64_length(MAX_BYTES)), as_it_is=MAX_BYTES)


def _lines(seen: View, out: Path | None) -> Iterator[str]:
    yield f"{seen.source}: {seen.mime}, {seen.size} pixels, {seen.bytes:,} bytes, sha256:{seen.image}"
    if seen.crop:
        yield f"crop: {seen.crop}"
    shown = seen.pixels
    yield f"shown: {shown.mime}, {shown.size} pixels, {len(shown.data):,} bytes"
    if seen.words:
        yield seen.words
    if out:
        yield f"written to {out}"
