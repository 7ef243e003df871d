"""`sightline view`: an image file, or one of the record, as an agent would see it."""

from __future__ import annotations

import os
import stat
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.verb import add_json, answer, refused, say, show, warn
from sightline.disk import write_whole
from sightline.model.refusal import Refusal
from sightline.settings import load

if TYPE_CHECKING:
    from sightline.look import View

EXAMPLE = """  sightline view shot.png
  sightline view shot.png --crop r=top-left --out part.png
  sightline view sha256:0f343b0931126a20f133d67c --crop n=0.5,0,0.5,0.25 --json"""


_ENDINGS = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".webp": "image/webp",
    ".gif": "image/gif",
}  # which claim what a file holds


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="a path, or sha256: and at least 12 digits of an image seen before")
    parser.add_argument("--crop", metavar="FORM", help="r=NAME, n=X,Y,W,H in fractions, or p=X,Y,W,H in pixels")
    parser.add_argument("--page", metavar="N", type=int, help="of a document, from 1")
    parser.add_argument("--at", metavar="SECONDS", type=float, help="of a video")
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the pixels there")
    parser.add_argument("--force", action="store_true", help="also where a file is already")
    add_json(parser)


def run(args: Namespace) -> int:
    from sightline.look import Refused, door, view

    settings = load()
    warn(settings.warnings)
    seen = view(args.ref, crop=args.crop, page=args.page, at=args.at, through=door(settings))
    if isinstance(seen, Refused):
        if args.json:
            show(seen.as_dict())
        say(f"{seen.reason}: {seen.message}")
        return 1
    if args.out and (refusal := _write(args.out, seen.pixels.data, force=args.force)):
        return refused(refusal, as_json=args.json)
    if args.out and (claimed := _ENDINGS.get(args.out.suffix.lower(), seen.pixels.mime)) != seen.pixels.mime:
        warn([f"{args.out} is called as {claimed} is, and holds {seen.pixels.mime}"])
    return answer(seen.as_dict(), _lines(seen, args.out), as_json=args.json)


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


def _write(path: Path, data: bytes, *, force: bool) -> Refusal | None:
    """All of it or nothing, and nothing in the place of a device, a pipe, a folder or a link."""
    try:
        if force and os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            return Refusal("not_permitted", f"{path} cannot be written: it is no regular file", "give another --out")
        write_whole(path, data, mode=0o666, fresh=not force)
    except FileExistsError:
        return _taken(path)
    except OSError as trouble:
        return Refusal("not_permitted", f"{path} cannot be written: {trouble.strerror}", "give another --out")
    except ValueError:
        return Refusal("invalid_input", "that is no path of a file", "give another --out")
    return None


def _taken(path: Path) -> Refusal:
    return Refusal("not_permitted", f"{path} is there already", "--force writes over it")
