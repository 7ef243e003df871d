"""`sightline view`: show an image file, or one of the record, as an agent would see it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli import terminal
from sightline.model.crop import CROP_FORMS
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api import View
    from sightline.api.session import Door

EXAMPLE = """  sightline view shot.png
  sightline view shot.png --crop r=top-left --out part.png
  sightline view sha256:0f343b0931126a20f133d67c --crop n=0.5,0,0.5,0.25 --json"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="a path, or sha256:DIGITS[#crop:X,Y,W,H] of an image seen before")
    parser.add_argument("--crop", metavar="FORM", help=f"look at a part of it only: {CROP_FORMS}")
    parser.add_argument("--page", metavar="N", type=int, help="the page of a document, from 1; nothing draws pages yet")
    parser.add_argument("--at", metavar="SECONDS", type=float, help="the moment of a video; nothing makes stills yet")
    parser.add_argument(
        "--out", metavar="FILE", type=Path, help=f"write the pixels there; its ending says as what: {terminal.ENDINGS}"
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    terminal.add_json(parser)


def run(args: Namespace) -> terminal.Outcome:
    from sightline.api import Refused, view
    from sightline.api.session import door

    settings = terminal.read_settings()
    wanted = terminal.find_format(args.out, "--out") if args.out else ""
    if isinstance(wanted, Refusal):
        return wanted
    at = _for_file(door(settings), wanted) if wanted else door(settings)
    seen = view(args.ref, crop=args.crop, page=args.page, at=args.at, through=at)
    if isinstance(seen, Refused):
        if args.json:
            terminal.show(seen.as_dict())
        return terminal.say_no(args.ref, seen.message)
    if args.out and (refusal := terminal.write_picture(args.out, seen.pixels.data, "--out", force=args.force)):
        return refusal
    return terminal.CliAnswer(seen.as_dict(), _lines(seen, args.out))


def _for_file(door: Door, mime: str) -> Door:
    """Return a door that makes pixels for a file of this format, whether or not a model would take them."""
    from sightline.model.image import MAX_BYTES, Target, base64_length

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
