"""`sightline describe` and `redescribe`: ask a model, or the local reader, about images."""

from __future__ import annotations

import re
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli import terminal
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api import Refused
    from sightline.api.results import Analysis
    from sightline.api.session import Door
    from sightline.commands.values import Describe
    from sightline.grounding.parse import Placed
    from sightline.settings import Settings

EXAMPLE = """  sightline describe shot.png
  sightline describe shot.png --question "Where is the error?" --crop 0:r=top-right --overlay where.png
  sightline describe before.png after.png --question "What has changed?" --model ollama/qwen3-vl --json"""

_BOXES = 20  # that are printed
_NOWHERE, _MISFIT = "of which it is not said in which image", "beyond the edges or in other units"


def arguments(parser: ArgumentParser) -> None:
    terminal.add_arguments(parser, "describe")
    parser.add_argument(
        "--overlay", metavar="FILE", type=Path,
        help=f"draw what the answer points at on the image, and write it there: {terminal.ENDINGS}",
    )  # fmt: skip
    parser.add_argument("--force", action="store_true", help="overwrite an existing --overlay file")
    terminal.add_json(parser)


def run(args: Namespace) -> terminal.Outcome:
    command = _parse("describe", args)
    if isinstance(command, Refusal):
        return command
    return describe(command, as_json=args.json, overlay=args.overlay, force=args.force)


class RedescribeVerb:
    """The verb `redescribe`."""

    EXAMPLE = """  sightline redescribe shot.png
  sightline redescribe sha256:0f343b0931126a20f133d67c --model openai/gpt-5.4"""

    @staticmethod
    def arguments(parser: ArgumentParser) -> None:
        terminal.add_arguments(parser, "redescribe")
        terminal.add_json(parser)

    @staticmethod
    def run(args: Namespace) -> terminal.Outcome:
        command = _parse("redescribe", args)
        return command if isinstance(command, Refusal) else describe(command, as_json=args.json)


def _parse(verb: str, args: Namespace) -> Describe | Refusal:
    from sightline.commands import parse_arguments, values

    command = parse_arguments(verb, {**vars(args), "model": args.model or None})
    if isinstance(command, Refusal):
        return terminal.for_shell(command, verb)
    described = command.as_describe() if isinstance(command, values.Redescribe) else command
    assert isinstance(described, values.Describe), "the two verbs are parsed as these"
    return described


def describe(command: Describe, *, as_json: bool, overlay: Path | None = None, force: bool = False) -> terminal.Outcome:
    """Look as a command asks, print the answer, and draw where it points if `overlay` is given."""
    from sightline.api import Refused
    from sightline.api.session import door

    settings = terminal.read_settings()
    if overlay and (refusal := _check_overlay(command, overlay, force=force)):
        return refusal
    at = door(settings)
    terminal.ask_consent(settings, at.record, command.model)
    found = _look(at, command)
    if isinstance(found, Refused):
        if as_json:
            terminal.show(found.as_dict())
        return terminal.say_no(*_name_image(found, command.images))
    if as_json:  # it is paid for, whatever becomes of the drawing
        terminal.show(found.as_dict())
    else:
        _print(settings, found)
    if overlay and (refusal := _draw(at, found, command.images[0], overlay, force=force)):
        return terminal.refused(refusal)
    if overlay and not as_json:
        terminal.tell(f"drawn to {overlay}")
    return 0


def _name_image(failed: Refused, images: Sequence[str]) -> tuple[str, str]:
    """Return the image that it failed over, as the user calls it, and the rest of the message."""
    if failed.reason not in terminal.OF_A_FILE:
        return "", failed.message
    numbered = re.match(r"image (\d+): ", failed.message)
    number = int(numbered[1]) if numbered else 0
    rest = failed.message[numbered.end() :] if numbered else failed.message
    return (images[number], rest) if numbered or len(images) == 1 else ("", failed.message)


def _look(at: Door, command: Describe) -> Analysis | Refused:
    from sightline.api import describe

    crops = dict(command.crops)
    with terminal.progress(f"looking at {len(command.images)} image{'s'[: len(command.images) > 1]} …"):
        return describe(
            command.images, question=command.question, crops=crops, model=command.model, save=command.save, through=at
        )


def _print(settings: Settings, found: Analysis) -> None:
    from sightline.settings.upstreams import called

    names = ", ".join(each.filename or each.id for each in found.images)
    terminal.print_answer(f"{names} by {called(settings, found.seer)}", found.text)
    for line in _list_boxes(found):
        terminal.tell(line)
    terminal.tell(terminal.format_usage(found.usage, found.cost_usd, cached=found.cached))


def _list_boxes(found: Analysis) -> Iterator[str]:
    boxes = [each for each in found.boxes if each.at]
    if boxes:
        yield "boxes are [x1, y1, x2, y2], in pixels of the image:"
    for box in boxes[:_BOXES]:
        doubt = " (doubtful)" if box.flag == "doubtful" else ""
        yield f"{box.label or 'something'} at {[*_corners(box.at or ())]}{doubt}"
    if len(boxes) > _BOXES:
        yield f"and {len(boxes) - _BOXES} more boxes; --json has them all"
    lost = Counter(each.flag for each in found.boxes if each.at is None)
    nowhere = lost.pop("no_image", 0)
    for count, why in ((nowhere, _NOWHERE), (lost.total(), _MISFIT)):
        if count:
            yield f"{count} place{'s'[: count > 1]} {why}"


def _check_overlay(command: Describe, file: Path, *, force: bool) -> Refusal | None:
    if len(command.images) > 1:
        return Refusal("invalid_input", "--overlay draws on one image", "describe one at a time")
    wanted = terminal.find_format(file, "--overlay")
    return wanted if isinstance(wanted, Refusal) else terminal.check_writable(file, "--overlay", force=force)


def _draw(at: Door, found: Analysis, reference: str, file: Path, *, force: bool) -> Refusal | None:
    """Draw on the image of the record, which is the one that was looked at, whatever has become of its file."""
    image = at.record.images.read(at.reach, found.images[0].sha256)
    if image is None:
        return Refusal(
            "unavailable",
            f"{reference} could not be kept, and is not there to be drawn on",
            "see to the disk and repeat",
        )
    boxes = [[*_corners(each.at), _label(each, found)] for each in found.boxes if each.at]
    made = at.workers.ask("overlay", image.data, {"boxes": boxes, "mime": terminal.find_format(file, "--overlay")})
    return made if isinstance(made, Refusal) else terminal.write_picture(file, made.data, "--overlay", force=force)


def _label(box: Placed, found: Analysis) -> str:
    """Return what is written beside a box; nothing where it would only repeat the line that it is around."""
    from sightline.model.asking import LOCAL

    if found.seer == LOCAL and not found.question and box.label in found.text:
        return ""
    return f"{box.label} ?".lstrip() if box.flag == "doubtful" else box.label


def _corners(at: tuple[int, ...]) -> tuple[int, ...]:
    return at if len(at) == 4 else (*at, *at)
