"""`sightline help [VERB]`: the same as --help."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sightline.cli.terminal import CommandLine, VerbOutcome

EXAMPLE = """  sightline help
  sightline help serve
  sightline help config set"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("words", nargs="*", metavar="VERB", help="a verb; default: list all verbs")


def run(args: Namespace) -> VerbOutcome:
    command_line: CommandLine = args.command_line
    return command_line.run([*args.words, "--help"])
