"""`sightline describe`: somebody who sees is asked what is to be seen in an image, or anything else about some."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.verb import add_json, refused, say, show, warn
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

if TYPE_CHECKING:
    from sightline.commands.values import Describe
    from sightline.look import Analysis, Failed
    from sightline.look.doors import Door

EXAMPLE = """  sightline describe shot.png
  sightline describe shot.png --question "Where is the error?" --crop 0:r=top-right --overlay where.png
  sightline describe before.png after.png --question "What has changed?" --model ollama/qwen3-vl --json"""

NAME = "[Vision Proxy]"
_BOXES = 20  # as many as somebody reads
_BOLD, _PLAIN, _BACK = "\033[1;36m", "\033[0m", "\r\033[K"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "refs", metavar="REF", nargs="+", help="a path, or sha256: and its digits, perhaps #crop:X,Y,W,H"
    )
    parser.add_argument("--question", metavar="TEXT", help="what you want to know; default: all that is to be seen")
    parser.add_argument(
        "--crop",
        metavar="I:FORM",
        action="append",
        default=[],
        help="a part of image I, from 0: r=NAME, n=X,Y,W,H in fractions, or p=X,Y,W,H in pixels",
    )
    add_model(parser)
    parser.add_argument("--save", action="store_true", help="from now on this is the description of the image")
    parser.add_argument("--overlay", metavar="FILE", type=Path, help="draw what the answer points at on the image")
    add_json(parser)


def add_model(parser: ArgumentParser) -> None:
    parser.add_argument("--model", metavar="PROVIDER/MODEL", help="that looks; default: as in the settings")


def run(args: Namespace) -> int:
    from sightline.commands import parse_words

    question = [] if args.question is None else [f"--question={args.question}"]
    model = [f"--model={args.model}"] if args.model else []
    flags = [*question, *model, *(f"--crop={crop}" for crop in args.crop), *(["--save"] if args.save else [])]
    command = parse_words(["describe", *flags, "--", *args.refs])
    if isinstance(command, Refusal):
        return refused(command, as_json=args.json)
    return described(command, as_json=args.json, overlay=args.overlay)  # type: ignore[arg-type] # its verb says so


def described(command: Describe, *, as_json: bool, overlay: Path | None = None) -> int:
    """What a command asks for, printed; and drawn, where that is wanted."""
    from sightline.look import Failed, door

    settings = load()
    warn(settings.warnings)
    if overlay and (no := _undrawable(command, overlay)):
        return refused(no, as_json=as_json)
    at = door(settings)
    _agreed(settings, at, command.model)
    found = _looked(at, command)
    if isinstance(found, Failed):
        if as_json:
            show(found.as_dict())
        say(found.message)
        return 1
    if overlay and (no := _drawn(at, found, command.images[0], overlay)):
        return refused(no, as_json=as_json)
    _printed(found, overlay, as_json=as_json)
    return 0


def _looked(at: Door, command: Describe) -> Analysis | Failed:
    from sightline.look import describe

    crops = dict(command.crops)
    with _progress(f"looking at {len(command.images)} image{'s'[: len(command.images) > 1]} …"):
        return describe(
            command.images, question=command.question, crops=crops, model=command.model, save=command.save, through=at
        )


@contextmanager
def _progress(words: str) -> Iterator[None]:
    """A line on a terminal while something takes its time, and gone when it is done."""
    live = sys.stderr.isatty()
    if live:
        print(f"sightline: {words}", end="", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        if live:
            print(_BACK, end="", file=sys.stderr, flush=True)


def _agreed(settings: Settings, at: Door, model: str) -> None:
    """On a terminal, the user is asked there and then; the answer counts for that provider alone."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return
    from sightline.cli.consent import SENT
    from sightline.look.analyze_seer import receiver_of

    provider = receiver_of(settings, model)
    if not provider or at.record.consents().get(provider, False):
        return
    print(f"{NAME} {SENT.format(provider)}: is that all right? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        at.record.consent(provider, given=True)


def _printed(found: Analysis, overlay: Path | None, *, as_json: bool) -> None:
    if as_json:
        show(found.as_dict())
        return
    from sightline.model.fence import plain

    live = sys.stdout.isatty()
    named = f"{_BOLD}{NAME}{_PLAIN}" if live else NAME
    print(f"{named} {plain(', '.join(each.filename or each.id for each in found.images))} by {plain(found.seer)}")
    for line in found.text.splitlines():
        print(plain(line))
    boxes = [each for each in found.boxes if each.at]
    for box in boxes[:_BOXES]:
        print(plain(f"{named if live else NAME} {box.label or 'something'} at {[*_corners(box.at or ())]}"))
    if len(boxes) > _BOXES:
        print(plain(f"{NAME} and {len(boxes) - _BOXES} more boxes; --json has them all"))
    if overlay:
        print(plain(f"{NAME} drawn to {overlay}"))
    print(plain(f"{NAME} {_figures(found)}"))


def _figures(found: Analysis) -> str:
    if found.cached:
        return "remembered: nobody was asked"
    counts = [
        f"{count:,} tokens {way}" for way, count in (("in", found.usage.input), ("out", found.usage.output)) if count
    ]
    price = [f"${found.cost_usd:.4f}"] if found.cost_usd is not None else []
    return ", ".join([*counts, *price]) or "done"


def _undrawable(command: Describe, file: Path) -> Refusal | None:
    if len(command.images) > 1:
        return Refusal("invalid_input", "--overlay draws on one image", "describe one at a time")
    return Refusal("not_permitted", f"{file} is there already", "give another --overlay") if file.exists() else None


def _drawn(at: Door, found: Analysis, reference: str, file: Path) -> Refusal | None:
    """The image that was looked at, by its sha256: it is in the record by now, whatever has become of its file."""
    from sightline.disk import write_whole

    image = at.record.image(at.reach, found.images[0].sha256)
    if image is None:
        return Refusal(
            "unavailable",
            f"{reference} could not be kept, and is not there to be drawn on",
            "see to the disk and repeat",
        )
    boxes = [[*box, label] for each in found.boxes if each.at for box, label in [(_corners(each.at), each.label)]]
    made = at.workers.ask("overlay", image.data, {"boxes": boxes})
    if isinstance(made, Refusal):
        return made
    try:
        write_whole(file, made.data, mode=0o666, fresh=True)
    except (OSError, ValueError) as trouble:
        return Refusal("not_permitted", f"{file} cannot be written: {trouble}", "give another --overlay")
    return None


def _corners(at: tuple[int, ...]) -> tuple[int, ...]:
    return at if len(at) == 4 else (*at, *at)
