"""`sightline setup AGENT`: the lines that point an agent here and declare its model as seeing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict

from sightline.cli.address import DEFAULT_PORT, url_of
from sightline.cli.agents import AGENTS, Agent
from sightline.cli.verb import add_json, answer

EXAMPLE = "  sightline setup claude"


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", choices=sorted(AGENTS), help=", ".join(AGENTS))
    add_json(parser)


def run(args: Namespace) -> int:
    address = url_of("127.0.0.1", DEFAULT_PORT)
    agent = AGENTS[args.agent].at(address)
    return answer({**asdict(agent), "address": address}, _lines(agent, address), as_json=args.json)


def _lines(agent: Agent, address: str) -> Iterator[str]:
    yield f"{agent.title}, with `sightline serve` listening on {address}"
    sections = (
        ("One run", agent.once),
        (f"For good, merged into {agent.file}" if agent.file else "", agent.lines),
        ("Its model is declared as seeing by", agent.sees),
        ("Mind", agent.note),
    )
    for title, text in sections:
        if text:
            yield from ("", f"{title}:", *(f"  {line}" for line in text.splitlines()))
