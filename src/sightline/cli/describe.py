"""`sightline describe`: somebody who sees is asked what is to be seen in an image, or anything else about some."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.out import ENDINGS, format_of, unwritable, write
from sightline.cli.terminal import agreed, figures, progress, tell
from sightline.cli.verb import FORMS, OF_A_FILE, add_json, in_shell, no, refused, show, warn
from sightline.model.fence import plain
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

if TYPE_CHECKING:
    from sightline.commands.values import Describe
    from sightline.grounding.place import Placed
    from sightline.look import Analysis, Failed
    from sightline.look.doors import Door

EXAMPLE = """  sightline describe shot.png
  sightline describe shot.png --question "Where is the error?" --crop 0:r=top-right --overlay where.png
  sightline describe before.png after.png --question "What has changed?" --model ollama/qwen3-vl --json"""

_BOXES = 20  # as many as somebody reads
_NOWHERE, _MISFIT = "of which it is not said in which image", "beyond the edges or in other units"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "refs", metavar="REF", nargs="+", help="a path, or sha256:DIGITS[#crop:X,Y,W,H] of an image seen before"
    )
    parser.add_argument("--question", metavar="TEXT", help="what you want to know; default: all that is to be seen")
    parser.add_argument(
        "--crop",
        metavar="[I:]FORM",
        action="append",
        default=[],
        help=f"look at a part of image I, counted from 0, only: {FORMS}",
    )
    add_model(parser)
    parser.add_argument("--save", action="store_true", help="from now on this is the description of the image")
    parser.add_argument(
        "--overlay", metavar="FILE", type=Path,
        help=f"draw what the answer points at on the image, and write it there: {ENDINGS}",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="overwrite an existing --overlay file")
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
        return refused(in_shell(command, "describe"), as_json=args.json)
    return described(command, as_json=args.json, overlay=args.overlay, force=args.force)  # type: ignore[arg-type] # its verb says so


def described(command: Describe, *, as_json: bool, overlay: Path | None = None, force: bool = False) -> int:
    """What a command asks for, printed; and drawn, where that is wanted."""
    from sightline.look import Failed, door

    settings = load()
    warn(settings.warnings)
    if overlay and (refusal := _undrawable(command, overlay, force=force)):
        return refused(refusal, as_json=as_json)
    at = door(settings)
    agreed(settings, at.record, command.model)
    found = _looked(at, command)
    if isinstance(found, Failed):
        if as_json:
            show(found.as_dict())
        return no(*_about(found, command.images))
    _printed(settings, found, as_json=as_json)  # it is paid for, whatever becomes of the drawing
    if overlay and (refusal := _drawn(at, found, command.images[0], overlay, force=force)):
        return refused(refusal)
    if overlay and not as_json:
        tell(f"drawn to {overlay}")
    return 0


def _about(failed: Failed, images: Sequence[str]) -> tuple[str, str]:
    """The image that it failed over, as the user calls it, and the rest of what is said of it."""
    if failed.reason not in OF_A_FILE:
        return "", failed.message
    numbered = re.match(r"image (\d+): ", failed.message)
    number = int(numbered[1]) if numbered else 0
    rest = failed.message[numbered.end() :] if numbered else failed.message
    return (images[number], rest) if numbered or len(images) == 1 else ("", failed.message)


def _looked(at: Door, command: Describe) -> Analysis | Failed:
    from sightline.look import describe

    crops = dict(command.crops)
    with progress(f"looking at {len(command.images)} image{'s'[: len(command.images) > 1]} …"):
        return describe(
            command.images, question=command.question, crops=crops, model=command.model, save=command.save, through=at
        )


def _printed(settings: Settings, found: Analysis, *, as_json: bool) -> None:
    from sightline.look.upstreams import called

    if as_json:
        show(found.as_dict())
        return
    tell(f"{', '.join(each.filename or each.id for each in found.images)} by {called(settings, found.seer)}")
    for line in found.text.splitlines():
        print(plain(line))
    boxes = [each for each in found.boxes if each.at]
    if boxes:
        tell("boxes are [x1, y1, x2, y2], in pixels of the image:")
    for box in boxes[:_BOXES]:
        doubt = " (doubtful)" if _doubtful(box) else ""
        tell(f"{box.label or 'something'} at {[*_corners(box.at or ())]}{doubt}")
    if len(boxes) > _BOXES:
        tell(f"and {len(boxes) - _BOXES} more boxes; --json has them all")
    for lost, why in _lost(found):
        tell(f"{lost} place{'s'[: lost > 1]} {why}")
    tell(figures(found.usage, found.cost_usd, cached=found.cached))


def _lost(found: Analysis) -> list[tuple[int, str]]:
    """How many of the places in an answer are nowhere to be found, and why."""
    flags = Counter(each.flag for each in found.boxes if each.at is None)
    nowhere = flags.pop("no_image", 0)
    return [(count, why) for count, why in ((nowhere, _NOWHERE), (flags.total(), _MISFIT)) if count]


def _doubtful(box: Placed) -> bool:
    return box.flag == "doubtful"


def _undrawable(command: Describe, file: Path, *, force: bool) -> Refusal | None:
    if len(command.images) > 1:
        return Refusal("invalid_input", "--overlay draws on one image", "describe one at a time")
    wanted = format_of(file, "--overlay")
    return wanted if isinstance(wanted, Refusal) else unwritable(file, "--overlay", force=force)


def _drawn(at: Door, found: Analysis, reference: str, file: Path, *, force: bool) -> Refusal | None:
    """The image that was looked at, by its sha256: it is in the record by now, whatever has become of its file."""
    image = at.record.images.read(at.reach, found.images[0].sha256)
    if image is None:
        return Refusal(
            "unavailable",
            f"{reference} could not be kept, and is not there to be drawn on",
            "see to the disk and repeat",
        )
    boxes = [[*_corners(each.at), _written(each, found)] for each in found.boxes if each.at]
    made = at.workers.ask("overlay", image.data, {"boxes": boxes, "mime": format_of(file, "--overlay")})
    return made if isinstance(made, Refusal) else write(file, made.data, "--overlay", force=force)


def _written(box: Placed, found: Analysis) -> str:
    """What is written beside a box; nothing where it would only repeat the line that it is around."""
    from sightline.model.asking import LOCAL

    if found.seer == LOCAL and not found.question and box.label in found.text:
        return ""
    return f"{box.label} ?".lstrip() if _doubtful(box) else box.label


def _corners(at: tuple[int, ...]) -> tuple[int, ...]:
    return at if len(at) == 4 else (*at, *at)
