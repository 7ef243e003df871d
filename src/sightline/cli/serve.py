"""`sightline serve`: the proxy on this machine, until it is stopped."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from socket import socket

from sightline.cli import logs
from sightline.cli.address import add_address, bind, no_folder, url_on, whole
from sightline.cli.agents import AGENTS
from sightline.cli.verb import refused, warn
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

EXAMPLE = """  sightline serve
  sightline serve --upstream deepseek
  sightline serve --upstream work=https://llm.example.com/v1"""

_MOST_WORKERS = 64


def arguments(parser: ArgumentParser) -> None:
    add_address(parser)
    parser.add_argument(
        "--upstream", action="append", default=[], metavar="[NAME=]URL",
        help="where requests go on to, also the NAME of a known provider; default: the one that owns the wire",
    )  # fmt: skip
    parser.add_argument(
        "--workers", type=count, default=1, metavar="N", help="processes that share the port and the record; default: 1"
    )
    parser.add_argument(
        "--root", type=Path, metavar="DIR",
        help="the folder whose files may be named to the proxy, as in `/vision-proxy describe PATH`; default: none,"
        " and images go by their sha256",
    )  # fmt: skip
    parser.add_argument("--config", type=Path, metavar="FILE", help="the settings file to use")
    parser.add_argument("-v", "--verbose", action="store_true", help="say on stderr what is done to requests")
    parser.add_argument(
        "--log", choices=("text", "json"),
        help="json: one JSON object on stderr for each request, without its images, texts and keys; also SIGHTLINE_LOG",
    )  # fmt: skip


def count(text: str) -> int:
    return whole(text, 1, _MOST_WORKERS)


def run(args: Namespace) -> int:
    if args.config and not args.config.is_file():
        return refused(Refusal("not_found", f"there is no file {args.config}", "give another --config"))
    if no := no_folder(args.root):
        return refused(no)
    settings = load(config=args.config)
    as_json = (args.log or settings.environment.get("SIGHTLINE_LOG")) == "json"
    (logs.warned if as_json else warn)((*settings.warnings, *settings.advice))
    token = args.token or settings.environment.get("SIGHTLINE_TOKEN", "")
    listening = bind(args.host, args.port, guarded=bool(token))
    if isinstance(listening, Refusal):
        return refused(listening)
    from sightline.cli import compose
    from sightline.cli.listening import Manner, in_front
    from sightline.cli.workers import side_by_side
    from sightline.surfaces.proxy.telemetry import Metrics, SharedCounts

    if no := _unservable(settings, args.upstream):
        listening.close()
        return refused(no)
    named, looked_for = compose.reaches(settings, args.root, args.host)

    address = url_on(listening)
    together = SharedCounts(args.workers) if args.workers > 1 else None

    def serve(listening: socket, ready: Callable[[], None], who: int = 0) -> int:
        if as_json:
            logs.begin()
        with logs.quiet("sightline.store", when=who > 0):  # what is wrong with the record, the first worker says
            whole = compose.parts(settings, args.upstream, reach=looked_for)
        if isinstance(whole, Refusal):
            return refused(whole)
        metrics = Metrics(together, who)
        alone = args.workers == 1
        in_front(whole, listening, ready, Manner(args.verbose, as_json, token, named, metrics, alone))
        return 0

    def ready() -> None:
        print("\n".join(_banner(address, guarded=bool(token))), flush=True)

    with listening:
        return serve(listening, ready) if args.workers == 1 else side_by_side(args.workers, listening, serve, ready)


def _unservable(settings: Settings, flags: Sequence[str]) -> Refusal | None:
    """What no worker could do anything about; said once, before there are any."""
    from sightline.cli import compose

    found = compose.directory(settings, flags)
    named = found if isinstance(found, Refusal) else compose.named_seer(settings, found)
    return named if isinstance(named, Refusal) else None


def _banner(address: str, *, guarded: bool) -> Iterator[str]:
    yield f"Sightline listens on {address}"
    yield "Point an agent here:"
    for agent in AGENTS.values():
        yield f"  {agent.title:<12} {agent.at(address).brief}"
    yield f"  {'any other':<12} {address} (Anthropic), {address}/v1 (OpenAI), {address}/u/NAME/v1 (provider NAME)"
    if find_spec("mcp") is not None:
        yield f"  {'MCP hosts':<12} {address}/mcp"
    if guarded:
        yield "Nobody is served who does not send the header x-sightline-token: TOKEN"
        yield "  Claude Code sends it where ANTHROPIC_CUSTOM_HEADERS='x-sightline-token: TOKEN' is set"
    yield "`sightline setup AGENT` tells more. Ctrl-C stops it."
