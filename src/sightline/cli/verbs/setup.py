"""`sightline setup AGENT`: the lines that point an agent here and declare its model as seeing."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.agents import AGENTS
from sightline.agents.agent import Agent, SetupRequest, Target
from sightline.agents.launch import Place
from sightline.agents.settings_files import join_lines, merge_text
from sightline.cli.listening import DEFAULT_PORT, port, url_of
from sightline.cli.terminal import add_json, answer, refused, text_of
from sightline.disk import write_whole
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream
from sightline.settings import Settings, load

if TYPE_CHECKING:
    from sightline.model.scene import Json

EXAMPLE = """  sightline setup claude
  sightline setup claude --upstream deepseek --write
  sightline setup opencode --upstream deepseek --model deepseek-v4-pro --write"""
_UNKNOWN = "KEY"
_SAID = ("name", "title", "once", "lines", "sees", "mcp", "note")  # of an agent, to programs


def arguments(parser: ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", choices=sorted(AGENTS), help=", ".join(AGENTS))
    parser.add_argument("--upstream", metavar="NAME", default="", help="the provider that its requests go on to")
    parser.add_argument("--model", metavar="MODEL", default="", help="the model that is declared as seeing")
    parser.add_argument("--port", type=port, default=DEFAULT_PORT, metavar="P", help="where `sightline serve` listens")
    parser.add_argument("--write", action="store_true", help="merge them into the agent's file; a copy is kept")
    add_json(parser)


def run(args: Namespace) -> int:
    address = url_of("127.0.0.1", args.port)
    known = AGENTS[args.agent]
    settings = load()
    target = _choose_target(known, args, address, settings)
    if isinstance(target, Refusal) and (args.write or args.upstream):
        return refused(target, as_json=args.json)
    agent = known.render(address, None if isinstance(target, Refusal) else target, args.model)
    file = known.find_file(settings.environment)
    if isinstance(target, Refusal):
        agent = replace(agent, note=f"{target}. {agent.note}")
    if not args.write or isinstance(target, Refusal):
        found: dict[str, Json] = {part: getattr(agent, part) for part in _SAID}
        found |= {"file": str(file or ""), "address": address}
        return answer(found, _lines(agent, file, address), as_json=args.json)
    kept = _written(agent, file, target, args.model)
    if isinstance(kept, Refusal):
        return refused(kept, as_json=args.json)
    done: dict[str, Json] = {
        "file": str(kept.file),
        "backup": str(kept.backup) if kept.backup else None,
        "upstream": target.upstream,
        "use": agent.use,
    }
    return answer(done, _done(agent, target.upstream, kept, args.port), as_json=args.json)


def _choose_target(agent: Agent, args: Namespace, address: str, settings: Settings) -> Target | Refusal:
    """Whom the agent is to ask: as the user says, else as its own files say now."""
    known = _upstreams(settings)
    if args.upstream and args.upstream not in known:
        return Refusal("not_found", f"there is no upstream named {args.upstream!r}", "sightline doctor lists them")
    home = Path.home()  # what counts for good is the user's own, and no project's
    place = Place(settings.environment, address, home, text_of, serve_port=DEFAULT_PORT)
    return agent.choose_target(SetupRequest(agent, args.upstream, args.model, place, known))


def _upstreams(settings: Settings) -> dict[str, Upstream]:
    """Every one that has a name and an address, the user's own first; nothing of the proxy is loaded for that."""
    from sightline.profiles.presets import PRESETS

    presets = {name: Upstream(name, each.bases, name, each.keys) for name, each in PRESETS.items()}
    own = {
        name: each if each.bases else replace(presets[each.preset or name], name=name, api_key=each.api_key)
        for name, each in settings.upstreams.items()
        if each.bases or (each.preset or name) in presets
    }
    return {name: each for name, each in {**own, **presets, **own}.items() if each.bases}


@dataclass(frozen=True, slots=True)
class Kept:
    file: Path
    backup: Path | None  # None: nothing was there, or nothing had to be changed
    changed: bool = True


def _done(agent: Agent, upstream: str, kept: Kept, listening: int) -> Iterator[str]:
    """What it means that an agent's file was written: it now needs us, until somebody takes that back."""
    was = f"; what it was is kept in {kept.backup}" if kept.backup else ""
    yield f"{agent.title} asks {upstream} through here, by {kept.file}{was}"
    if agent.use:
        yield agent.use
    serve = "sightline serve" + ("" if listening == DEFAULT_PORT else f" --port {listening}")
    yield f"Keep `{serve}` running: without it {agent.title} does not reach {upstream}."
    if kept.backup:
        yield f"To undo it, put {kept.backup} back in the place of {kept.file}."
    elif kept.changed:
        yield f"To undo it, remove {kept.file}."
    else:
        shown = f"sightline setup {agent.name}"
        yield f"Nothing had to be changed. To undo it, take the lines that `{shown}` shows out of {kept.file}."


def _written(agent: Agent, file: Path | None, target: Target, model: str) -> Kept | Refusal:
    if file is None:
        how = "run the command that is shown" if agent.lines else "set the variables that are shown"
        return Refusal("unsupported_type", f"{agent.title} reads no file that we could write", f"{how} without --write")
    if agent.model and not model:
        return Refusal("invalid_input", "it has to be said which model is declared as seeing", "add --model MODEL")
    if target.key == _UNKNOWN:
        return Refusal(
            "invalid_input",
            f"where {agent.title} finds the key of {target.upstream} is not known",
            f"write what belongs in the place of {_UNKNOWN}, by hand: {join_lines(agent.lines)}",
        )
    return _merged(file, agent.lines)


def _merged(file: Path, lines: str) -> Kept | Refusal:
    commented = file.with_suffix(".jsonc")
    if commented.exists():
        return Refusal("unsupported_type", f"{commented} has the last word", f"merge into it: {join_lines(lines)}")
    try:
        before = file.read_bytes() if file.exists() else b""
        text = before.decode("utf-8-sig")
    except (OSError, ValueError):
        return Refusal("not_permitted", f"{file} cannot be read as text", "merge the lines by hand")
    made = merge_text(str(file), text, lines)
    if isinstance(made, Refusal):
        return made
    if made == text:
        return Kept(file, None, changed=False)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if before else 0o600
        backup = _backed_up(file, before, mode) if before else None
        write_whole(file.resolve(), made.encode(), mode=mode, kept=file.exists())
    except OSError as trouble:
        return Refusal("not_permitted", f"{file} cannot be written: {trouble.strerror}", "merge the lines by hand")
    return Kept(file, backup)


def _backed_up(file: Path, data: bytes, mode: int) -> Path:
    """A copy under a name of its own: no earlier one is written over."""
    names = (file.with_name(f"{file.name}.bak{number or ''}") for number in count())
    backup = next(name for name in names if not name.exists() or name.read_bytes() == data)
    if not backup.exists():
        write_whole(backup, data, mode=mode, kept=True)
    return backup


def _lines(agent: Agent, file: Path | None, address: str) -> Iterator[str]:
    yield f"{agent.title}, with `sightline serve` listening on {address}"
    sections = (
        ("One run", agent.once),
        (f"For good, merged into {file}" if file else "For good", agent.lines),
        ("Then", agent.use),
        ("Its model is declared as seeing by", agent.sees),
        ("The tools over MCP, with or without the proxy", agent.mcp),
        ("Mind", agent.note),
    )
    for title, text in sections:
        if text:
            yield from ("", f"{title}:", *(f"  {line}" for line in text.splitlines()))
