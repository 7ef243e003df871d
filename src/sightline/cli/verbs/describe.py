"""`sightline describe` and `redescribe`: ask a vision model, or the local reader, about images."""

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
    from sightline.api import Failure
    from sightline.api.session import ToolContext
    from sightline.api.tool_results import Analysis
    from sightline.commands import Describe
    from sightline.grounding.parse import OriginalPlace
    from sightline.settings import Settings

EXAMPLE = """  sightline describe shot.png
  sightline describe shot.png --question "Where is the error?" --crop 0:r=top-right --overlay where.png
  sightline describe report.pdf --page 3
  sightline describe before.png after.png --question "What has changed?" --model ollama/qwen3-vl --json"""


def add_arguments(parser: ArgumentParser) -> None:
    terminal.add_command_arguments(parser, "describe")
    parser.add_argument(
        "--overlay", metavar="FILE", type=Path,
        help=f"draw the boxes of the answer on the image, and write it to FILE: {terminal.IMAGE_SUFFIXES}",
    )  # fmt: skip
    parser.add_argument("--page", metavar="N", type=int, help="the page of a document, from 1")
    parser.add_argument("--boxes", action="store_true", help="also print the boxes of the answer")
    parser.add_argument("--force", action="store_true", help="overwrite an existing --overlay file")
    terminal.add_json(parser)


def run(args: Namespace) -> terminal.VerbOutcome:
    command = _parse("describe", args)
    if isinstance(command, Refusal):
        return command
    return describe(
        command, as_json=args.json, boxes=args.boxes, overlay=args.overlay, force=args.force, page=args.page
    )


class RedescribeVerb:
    """The verb `redescribe`."""

    EXAMPLE = """  sightline redescribe shot.png
  sightline redescribe sha256:0f343b0931126a20f133d67c --model openai/gpt-5.4"""

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        terminal.add_command_arguments(parser, "redescribe")
        terminal.add_json(parser)

    @staticmethod
    def run(args: Namespace) -> terminal.VerbOutcome:
        command = _parse("redescribe", args)
        return command if isinstance(command, Refusal) else describe(command, as_json=args.json)


def _parse(verb: str, args: Namespace) -> Describe | Refusal:
    from sightline.commands import Describe, Redescribe
    from sightline.commands.grammar import parse_arguments

    command = parse_arguments(verb, {**vars(args), "model": args.model or None})
    if isinstance(command, Refusal):
        return terminal.for_shell(command, verb)
    described = command.as_describe() if isinstance(command, Redescribe) else command
    assert isinstance(described, Describe), "the two verbs are parsed as these"
    return described


def describe(
    command: Describe,
    *,
    as_json: bool,
    boxes: bool = False,
    overlay: Path | None = None,
    force: bool = False,
    prefix: str = "",
    page: int | None = None,
) -> terminal.VerbOutcome:
    """Run a describe command, print the answer, and draw its boxes on the image if `overlay` is given.

    `prefix` starts the answer to a /vision-proxy command, followed by the name of the seer.
    """
    from sightline.api import Failure, Session

    settings = terminal.read_settings()
    if overlay and (refusal := _check_overlay(command, overlay, force=force)):
        return refusal
    if command.images.count("-") > 1:
        what = "- is given more than once, but standard input has only one image"
        return Refusal("invalid_input", what, "give the other images as files")
    context = Session(settings, render=True).context
    terminal.ask_consent(settings, context.record, command.model)
    found = _look(context, command, page)
    if isinstance(found, Failure):
        if as_json:
            terminal.print_json(found.as_dict())
        return terminal.print_failure(*_name_image(found, command.images))
    if as_json:  # before the drawing, which may fail: the answer is paid for
        terminal.print_json(found.as_dict())
    else:
        _print_analysis(settings, found, boxes=boxes, prefix=prefix)
    if overlay and (refusal := _draw(context, found, command.images[0], overlay, force=force)):
        return terminal.print_refusal(refusal)
    if overlay and not as_json:
        terminal.print_details(f"boxes drawn to {overlay}")
    return 0


def _name_image(failure: Failure, images: Sequence[str]) -> tuple[str, str]:
    """Return the image that the failure is about, as the user named it, and the rest of the message."""
    if failure.reason not in terminal.FILE_CODES:
        return "", failure.message
    numbered = re.match(r"image (\d+): ", failure.message)
    number = int(numbered[1]) if numbered else 0
    rest = failure.message[numbered.end() :] if numbered else failure.message
    return (images[number], rest) if numbered or len(images) == 1 else ("", failure.message)


def _look(context: ToolContext, command: Describe, page: int | None) -> Analysis | Failure:
    from sightline.api.analysis import describe

    images = [terminal.read_image(reference) for reference in command.images]
    with terminal.show_progress(f"looking at {len(images)} image{'s'[: len(images) > 1]} …"):
        return describe(context, images, **command.options, page=page)


def _print_analysis(settings: Settings, found: Analysis, *, boxes: bool, prefix: str) -> None:
    """Print the text, and the boxes if they are wanted; print the seer and the cost on stderr."""
    from sightline.settings.upstreams import format_provider

    names = ", ".join(each.filename or each.id for each in found.members)
    summary = f"{names} by {format_provider(settings, found.seer)}"
    terminal.print_text(f"{prefix} {summary}\n\n{found.text}" if prefix else found.text)
    if boxes:
        terminal.print_text("\n".join(_list_boxes(found)))
    usage = terminal.format_usage(found.usage, found.cost_usd, cached=found.cached)
    terminal.print_details(", ".join([summary, usage, *_count_boxes(found, printed=boxes)]))


def _list_boxes(found: Analysis) -> Iterator[str]:
    yield "boxes as [x1, y1, x2, y2] in pixels of the image:"
    placed = [(box, box.coordinates) for box in found.boxes if box.coordinates]
    for number, (box, coordinates) in enumerate(placed, 1):  # as --overlay numbers them
        doubt = " (doubtful)" if box.flag == "doubtful" else ""
        yield f"{number}. {box.label or 'unnamed'} at {[*_find_corners(coordinates)]}{doubt}"


def _count_boxes(found: Analysis, *, printed: bool) -> Iterator[str]:
    placed = sum(each.coordinates is not None for each in found.boxes)
    if placed and not printed:
        yield f"{placed} box{'es'[: 2 * (placed > 1)]} (--boxes prints them)"
    lost = Counter(each.flag for each in found.boxes if each.coordinates is None)
    unassigned = lost.pop("no_image", 0)
    for count, why in ((unassigned, "not assigned to an image"), (lost.total(), "outside the image or in other units")):
        if count:
            yield f"{count} place{'s'[: count > 1]} {why}"


def _check_overlay(command: Describe, file: Path, *, force: bool) -> Refusal | None:
    if len(command.images) > 1:
        return Refusal("invalid_input", "--overlay works with one image only", "describe one image at a time")
    mime = terminal.find_format(file, "--overlay")
    return mime if isinstance(mime, Refusal) else terminal.check_writable(file, "--overlay", force=force)


def _draw(context: ToolContext, found: Analysis, reference: str, file: Path, *, force: bool) -> Refusal | None:
    """Draw the boxes on the image in the record, because its file may have changed since."""
    image = context.record.images.read(context.visible_scope, found.members[0].sha256)
    if image is None:
        return Refusal(
            "unavailable",
            f"{reference} could not be kept in the record, so nothing was drawn",
            "check the disk and try again",
        )
    boxes = [[*_find_corners(each.coordinates), _choose_label(each, found)] for each in found.boxes if each.coordinates]
    drawn = context.workers.run_sync(
        "overlay", image.data, {"boxes": boxes, "mime": terminal.find_format(file, "--overlay")}
    )
    if isinstance(drawn, Refusal):
        return drawn
    if not drawn.facts["has_font"] and any(box[4] for box in boxes):
        terminal.print_details(
            "no font is installed, so the boxes have no labels; install one, such as fonts-dejavu-core"
        )
    return terminal.write_picture(file, drawn.data, "--overlay", force=force)


def _choose_label(box: OriginalPlace, found: Analysis) -> str:
    """Return what is written beside a box: nothing if that would only repeat the text inside it."""
    from sightline.model.seer import LOCAL_SEER

    if found.seer == LOCAL_SEER and not found.question and box.label in found.text:
        return ""
    return f"{box.label} ?".lstrip() if box.flag == "doubtful" else box.label


def _find_corners(coordinates: tuple[int, ...]) -> tuple[int, ...]:
    return coordinates if len(coordinates) == 4 else (*coordinates, *coordinates)
