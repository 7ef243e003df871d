"""`sightline view`: show a file, or an image of the record, as an agent would see it.

The picture is shown on a terminal that can: by the protocol of kitty, that of iTerm2, or sixels. Terminals that have
one of the first two say so in the environment. Any other is asked for its attributes, which every terminal answers at
once; if none come within half a second, it shows no pictures. Inside tmux and screen, only the answer counts, because
the environment is that of the terminal outside.
"""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser, Namespace
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sightline.cli import terminal
from sightline.model.geometry import CROP_FORMS
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api import View
    from sightline.api.session import ToolContext
    from sightline.pixels.workers import WorkerPool

EXAMPLE = """  sightline view shot.png
  sightline view shot.png --crop r=top-left --out part.png
  sightline view drawing.svg --out drawing.png
  sightline view demo.mp4 --at 37 --out still.png
  sightline view report.pdf --page 3
  sightline view sha256:0f343b0931126a20f133d67c --crop n=0.5,0,0.5,0.25 --json"""
GraphicsProtocol = Literal["kitty", "iterm", "sixel"]

_KITTY_TERMS = frozenset({"xterm-kitty", "xterm-ghostty"})
_PROGRAMS: Mapping[str, GraphicsProtocol] = {"ghostty": "kitty", "iTerm.app": "iterm", "WezTerm": "iterm"}
_SILENT_TERMS = frozenset({"", "dumb", "linux", "unknown"})  # that have no pictures, or answer nothing
_ASK, _ANSWER = b"\033[c", re.compile(rb"\033\[\?([\d;]*)c")
_SIXEL_ATTRIBUTE = b"4"
_SECONDS = 0.5  # in which a terminal has to answer
_MAX_ANSWER = 1024  # bytes
_CELL_WIDTH = 8  # pixels, where the terminal doesn't say
_CHUNK = 4096  # characters of base64 in one sequence of kitty
_PRINTABLE = re.compile(rb"[\n -~]*")


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
    from sightline.model.image import MAX_FILE_BYTES, ImageTarget, compute_base64_length

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


def show_picture(workers: WorkerPool, data: bytes) -> None:
    """Write a picture to standard output if that is a terminal that can show it; otherwise do nothing."""
    protocol = find_protocol()
    if protocol is None:
        return
    from sightline.pixels.encode import SIXEL_MIME

    mime = SIXEL_MIME if protocol == "sixel" else "image/png"
    made = workers.run_sync("terminal", data, {"mime": mime, "width": _measure_width()})
    if isinstance(made, Refusal) or (protocol == "sixel" and not _PRINTABLE.fullmatch(made.data)):
        return  # the lines about it say enough; what a worker sends must not control the terminal
    sys.stdout.flush()
    sys.stdout.buffer.write(_WRITERS[protocol](made.data) + b"\n")
    sys.stdout.buffer.flush()


def find_protocol() -> GraphicsProtocol | None:
    """Return how the terminal at standard output shows pictures; None: it is none, or shows none."""
    if not sys.stdout.isatty():
        return None
    term = os.environ.get("TERM", "")
    program = os.environ.get("TERM_PROGRAM") or os.environ.get("LC_TERMINAL", "")
    if term in _SILENT_TERMS or program == "Apple_Terminal":
        return None
    if not ("TMUX" in os.environ or term.startswith(("screen", "tmux"))):
        if term in _KITTY_TERMS or "KITTY_WINDOW_ID" in os.environ:
            return "kitty"
        if known := _PROGRAMS.get(program.replace("iTerm2", "iTerm.app")):
            return known
    return "sixel" if _SIXEL_ATTRIBUTE in _ask_attributes() else None


def _ask_attributes() -> list[bytes]:
    """Return the attributes that the terminal reports; none if it doesn't answer in time, or must not be asked."""
    try:
        import termios
    except ImportError:  # Windows
        return []
    try:
        descriptor = os.open(os.ttyname(sys.stdout.fileno()), os.O_RDWR | os.O_NOCTTY)
    except OSError:
        return []
    try:
        if not _is_in_foreground(descriptor):
            return []
        with _read_without_echo(descriptor):
            return _read_attributes(descriptor)
    except (OSError, termios.error):
        return []
    finally:
        os.close(descriptor)


def _is_in_foreground(descriptor: int) -> bool:
    """Return whether this process may change the terminal: a background process would be stopped."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:  # it is not the terminal of this session, so that nothing stops
        return True


@contextmanager
def _read_without_echo(descriptor: int) -> Iterator[None]:
    """Make input readable before its line ends, and don't print it."""
    import termios

    before = termios.tcgetattr(descriptor)
    changed = [*before]
    changed[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(descriptor, termios.TCSANOW, changed)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSANOW, before)


def _read_attributes(descriptor: int) -> list[bytes]:
    from select import select
    from time import monotonic

    if select([descriptor], [], [], 0)[0]:
        return []  # what the user has typed ahead is for the next command
    os.write(descriptor, _ASK)
    heard, end = b"", monotonic() + _SECONDS
    while len(heard) < _MAX_ANSWER and select([descriptor], [], [], max(0.0, end - monotonic()))[0]:
        piece = os.read(descriptor, _MAX_ANSWER)
        heard += piece
        if answer := _ANSWER.search(heard):
            return answer[1].split(b";")
        if not piece:
            break
    return []


def _measure_width() -> int:
    """Return how many pixels a row of the terminal has."""
    columns = os.get_terminal_size(sys.stdout.fileno()).columns or 80
    try:
        import struct
        from fcntl import ioctl
        from termios import TIOCGWINSZ

        (pixels,) = struct.unpack_from("4xH", ioctl(sys.stdout.fileno(), TIOCGWINSZ, bytes(8)))
    except (ImportError, OSError):
        pixels = 0
    return pixels or columns * _CELL_WIDTH


def _write_kitty(png: bytes) -> bytes:
    text = b64encode(png)
    chunks = [text[at : at + _CHUNK] for at in range(0, len(text), _CHUNK)]
    control = [b"a=T,f=100,q=2,", *[b""] * (len(chunks) - 1)]
    last = len(chunks) - 1
    return b"".join(b"\033_G%bm=%d;%b\033\\" % (control[at], at < last, chunk) for at, chunk in enumerate(chunks))


def _write_iterm(png: bytes) -> bytes:
    return b"\033]1337;File=inline=1;size=%d:%b\a" % (len(png), b64encode(png))


def _write_sixels(sixels: bytes) -> bytes:
    return b"\033Pq%b\033\\" % sixels


_WRITERS = {"kitty": _write_kitty, "iterm": _write_iterm, "sixel": _write_sixels}
