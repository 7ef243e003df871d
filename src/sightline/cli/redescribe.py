"""`sightline redescribe`: an image looked at anew, and its description with it."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sightline.cli.describe import add_model, described
from sightline.cli.verb import add_json, in_shell, refused
from sightline.model.refusal import Refusal

EXAMPLE = """  sightline redescribe shot.png
  sightline redescribe sha256:0f343b0931126a20f133d67c --model openai/gpt-5.4"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("ref", metavar="REF", help="a path, or sha256: and at least 12 digits of an image seen before")
    add_model(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    from sightline.commands import parse_words
    from sightline.commands.values import Describe, Redescribe

    model = [f"--model={args.model}"] if args.model else []
    command = parse_words(["redescribe", *model, "--", args.ref])
    if isinstance(command, Refusal):
        return refused(in_shell(command, "redescribe"), as_json=args.json)
    assert isinstance(command, Redescribe)
    return described(Describe((command.image,), model=command.model, save=True), as_json=args.json)
