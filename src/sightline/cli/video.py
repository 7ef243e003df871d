"""`sightline video`: one question about one video; a program gets one JSON object, a person words."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sightline.cli.ask import add_file, add_model, place, ready, told
from sightline.cli.terminal import agreed, progress

EXAMPLE = """  sightline video demo.mp4
  sightline video https://example.com/demo.mp4 "Which errors are shown?" --model gemini/gemini-2.5-pro"""


def arguments(parser: ArgumentParser) -> None:
    add_file(parser, "a video")
    parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="what you want to know; default: a description")
    parser.add_argument(
        "--method",
        choices=("auto", "native", "frames"),
        help="native: the video itself is sent; frames: stills of it, which nothing makes yet; auto: as can be",
    )
    add_model(parser)


def run(args: Namespace) -> int:
    from sightline.api import door, video_analyze

    settings = ready()
    at = door(settings)
    agreed(settings, at.record, args.model or "")
    with progress("asking …"):
        found = video_analyze(prompt=args.prompt, model=args.model, method=args.method, through=at, **place(args.file))
    return told(found, args)
