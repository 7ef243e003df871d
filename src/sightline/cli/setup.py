"""`sightline setup AGENT`: the lines that point an agent here and declare its model as seeing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.address import DEFAULT_PORT, port, url_of
from sightline.cli.agents import AGENTS, Agent
from sightline.cli.verb import add_json, answer, refused
from sightline.cli.writing import written
from sightline.disk import write_whole
from sightline.model.refusal import Refusal
from sightline.settings import load

if TYPE_CHECKING:
    from sightline.model.scene import Json

EXAMPLE = """  sightline setup claude
  sightline setup claude --upstream deepseek --write
  sightline setup opencode --upstream deepseek --model deepseek-v4-pro --write"""

NOT_A_FILE = Refusal("unsupported_type", "this agent reads no file for it", "set the variables that are shown")


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", choices=sorted(AGENTS), help=", ".join(AGENTS))
    parser.add_argument("--upstream", metavar="NAME", default="", help="the provider that its requests go on to")
    parser.add_argument("--model", metavar="MODEL", default="", help="the model that is declared as seeing")
    parser.add_argument("--port", type=port, default=DEFAULT_PORT, metavar="P", help="where `sightline serve` listens")
    parser.add_argument("--write", action="store_true", help="merge them into the agent's file, kept as .bak")
    add_json(parser)


def run(args: Namespace) -> int:
    address = url_of("127.0.0.1", args.port)
    known = AGENTS[args.agent]
    if args.upstream and not _is_known(args.upstream):
        return refused(
            Refusal("not_found", f"there is no upstream named {args.upstream!r}", "sightline doctor lists them"),
            as_json=args.json,
        )
    agent = known.at(address, args.upstream, args.model, _key(args.upstream or known.provider))
    if not args.write:
        return answer({**asdict(agent), "address": address}, _lines(agent, address), as_json=args.json)
    if known.model and not args.model:
        return refused(
            Refusal("invalid_input", "it has to be said which model is declared as seeing", "add --model MODEL"),
            as_json=args.json,
        )
    kept = _write(agent)
    if isinstance(kept, Refusal):
        return refused(kept, as_json=args.json)
    found: dict[str, Json] = {"file": str(kept.file), "backup": str(kept.backup) if kept.backup else None}
    was = f"; what it was is kept in {kept.backup}" if kept.backup else ""
    return answer(found, [f"{agent.title} is pointed here by {kept.file}{was}"], as_json=args.json)


@dataclass(frozen=True, slots=True)
class Kept:
    file: Path
    backup: Path | None


def _write(agent: Agent) -> Kept | Refusal:
    if not agent.file:
        return NOT_A_FILE
    file = Path(agent.file).expanduser()
    try:
        text = file.read_text("utf-8") if file.exists() else ""
    except (OSError, ValueError):
        return Refusal("not_permitted", f"{file} cannot be read as text", "merge the lines by hand")
    made = written(agent.file, text, agent.lines)
    if isinstance(made, Refusal):
        return made
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if text else 0o600
        backup = _backed_up(file, text, mode) if text else None
        write_whole(file.resolve(), made.encode(), mode=mode)
    except OSError as trouble:
        return Refusal("not_permitted", f"{file} cannot be written: {trouble.strerror}", "merge the lines by hand")
    return Kept(file, backup)


def _backed_up(file: Path, text: str, mode: int) -> Path:
    """The first copy is the user's own, and is not written over."""
    backup = file.with_name(f"{file.name}.bak")
    if not backup.exists():
        write_whole(backup, text.encode(), mode=mode)
    return backup


def _is_known(name: str) -> bool:
    from sightline.profiles.presets import PRESETS

    return name in PRESETS or name in load().upstreams


def _key(provider: str) -> str:
    from sightline.profiles.presets import PRESETS

    preset = PRESETS.get(provider)
    return next(iter(preset.keys), "KEY") if preset else "KEY"


def _lines(agent: Agent, address: str) -> Iterator[str]:
    yield f"{agent.title}, with `sightline serve` listening on {address}"
    sections = (
        ("One run", agent.once),
        (f"For good, merged into {agent.file}" if agent.file else "", agent.lines),
        ("Its model is declared as seeing by", agent.sees),
        ("The tools over MCP, with or without the proxy", agent.mcp),
        ("Mind", agent.note),
    )
    for title, text in sections:
        if text:
            yield from ("", f"{title}:", *(f"  {line}" for line in text.splitlines()))
