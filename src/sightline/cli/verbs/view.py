"""`sightline view`: show a file, or an image of the record, as an agent would see it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli import terminal
from sightline.model.geometry import CROP_FORMS
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api import View
    from sightline.api.session import ToolContext

EXAMPLE = """  sightline view shot.png
  sightline view shot.png --crop r=top-left --out part.png
  sightline view drawing.svg --out drawing.png
  sightline view demo.mp4 --at 37 --out still.png
  sightline view report.pdf --page 3
  sightline view sha256:0f343b0931126a20f133d67c --crop n=0.5,0,0.5,0.25 --json"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "ref",
        metavar="REF",
        help="a path, - for standard input, or sha256:DIGITS[#crop:X,Y,W,H] of an image seen before",
    )
    parser.add_argument("--crop", metavar="FORM", help=f"the part of it to see: {CROP_FORMS}")
    parser.add_argument("--page", metavar="N", type=int, help="the page of a document, from 1")
    parser.add_argument(
        "--at", metavar="SECONDS", type=float, help="the time in a video or an animated image, in seconds"
    )
    parser.add_argument("--lines", metavar="A-B", help="the lines of a text, from A to B")
    parser.add_argument(
        "--sheet", action="store_true", help="show several pages or stills as one image, from --page on"
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        type=Path,
        help=f"write the pixels to FILE, in the format of its name: {terminal.IMAGE_SUFFIXES}",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    terminal.add_json(parser)


def run(args: Namespace) -> terminal.VerbOutcome:
    from sightline.api import Failure, Session
    from sightline.api.views import view
    from sightline.cli.terminal_graphics import show_picture

    settings = terminal.read_settings()
    wanted = terminal.find_format(args.out, "--out") if args.out else ""
    if isinstance(wanted, Refusal):
        return wanted
    context = Session(settings, render=True).context
    if wanted:
        context = _fit_file(context, wanted)
    document = {"page": args.page, "at": args.at, "lines": args.lines, "sheet": args.sheet}
    with terminal.show_progress("rendering …"):
        seen = view(context, terminal.read_image(args.ref), crop=args.crop, **document)
    if isinstance(seen, Failure):
        if args.json:
            terminal.print_json(seen.as_dict())
        return terminal.print_failure(args.ref, seen.message)
    if args.out and (refusal := terminal.write_picture(args.out, seen.pixels.data, "--out", force=args.force)):
        return refusal
    if not (args.out or args.json):
        show_picture(context.workers, seen.pixels.data)
    return terminal.VerbResult(seen.as_dict(), _list_lines(seen, args.out))


def _fit_file(context: ToolContext, mime: str) -> ToolContext:
    """Return a context that makes pixels for a file of this format, whether or not a model would take them."""
    from sightline.model.base64_text import compute_base64_length
    from sightline.model.image import MAX_FILE_BYTES, ImageTarget

    return replace(
        context,
        target=ImageTarget((mime,), encoded_bytes=compute_base64_length(MAX_FILE_BYTES)),
        untouched_bytes=MAX_FILE_BYTES,
    )


def _list_lines(seen: View, out: Path | None) -> Iterator[str]:
    yield f"{seen.source}: {seen.mime}, {seen.size} pixels, {seen.bytes:,} bytes, {seen.image}"
    if seen.rendered:
        text = {None: "", True: ", with a text layer", False: ", without a text layer"}[seen.rendered.has_text]
        yield f"rendered by {seen.rendered.by}: page {seen.rendered.page} of {seen.rendered.pages}{text}"
    if seen.crop:
        yield f"crop: {seen.crop}"
    shown = seen.pixels
    yield f"shown: {shown.mime}, {shown.size} pixels, {len(shown.data):,} bytes"
    if seen.note:
        yield seen.note
    if out:
        yield f"written to {out}"
