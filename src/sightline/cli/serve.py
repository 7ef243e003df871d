"""`sightline serve`: the proxy on this machine, until it is stopped."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

from sightline.cli.address import DEFAULT_PORT, bind, port, url_on
from sightline.cli.agents import AGENTS
from sightline.cli.verb import refused, warn
from sightline.model.refusal import Refusal
from sightline.settings import load

EXAMPLE = """  sightline serve
  sightline serve --upstream deepseek
  sightline serve --upstream work=https://llm.example.com/v1"""


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", metavar="H", help="default: 127.0.0.1")
    parser.add_argument(
        "--port", type=port, default=DEFAULT_PORT, metavar="P", help=f"default: {DEFAULT_PORT}; 0: any free one"
    )
    parser.add_argument(
        "--upstream", action="append", default=[], metavar="[NAME=]URL",
        help="where requests go on to, also the NAME of a known provider; default: the one that owns the wire",
    )  # fmt: skip
    parser.add_argument("--config", type=Path, metavar="FILE", help="the settings file to use")
    parser.add_argument("-v", "--verbose", action="store_true", help="say on stderr what is done to requests")


def run(args: Namespace) -> int:
    if args.config and not args.config.is_file():
        return refused(Refusal("not_found", f"there is no file {args.config}", "--config names a settings file"))
    settings = load(config=args.config)
    warn(settings.warnings)
    listening = bind(args.host, args.port)
    if isinstance(listening, Refusal):
        return refused(listening)
    from sightline.cli import compose
    from sightline.cli.listening import in_front

    with listening:
        whole = compose.parts(settings, args.upstream)
        if isinstance(whole, Refusal):
            return refused(whole)
        address = url_on(listening)
        in_front(whole, listening, lambda: print("\n".join(_banner(address)), flush=True), verbose=args.verbose)
    return 0


def _banner(address: str) -> Iterator[str]:
    yield f"Sightline listens on {address}"
    yield "Point an agent here:"
    for agent in AGENTS.values():
        yield f"  {agent.title:<12} {agent.at(address).brief}"
    yield f"  {'any other':<12} {address} (Anthropic), {address}/v1 (OpenAI), {address}/u/NAME/v1 (provider NAME)"
    yield "`sightline setup AGENT` tells more. Ctrl-C stops it."
