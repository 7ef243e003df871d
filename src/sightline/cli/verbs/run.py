"""`sightline run -- AGENT ARGS`: an agent with a proxy of its own, which listens before it starts and ends with it."""

from __future__ import annotations

import shutil
import signal
import subprocess
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from socket import socket
from tempfile import TemporaryDirectory
from types import FrameType

from sightline.agents.launch import FILES, Launch, Place
from sightline.agents.programs import launch
from sightline.cli.listening import DEFAULT_PORT, bind, url_on
from sightline.cli.terminal import list_files, refused, say, text_of, warn
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

EXAMPLE = """  sightline run -- claude
  sightline run --upstream deepseek -- claude -p "What is wrong in screenshot.png?\""""

_USAGE = 2


def arguments(parser: ArgumentParser) -> None:
    parser.usage = "sightline run [-h] [--upstream NAME|URL] [-v] -- AGENT [ARGS ...]"
    parser.add_argument(
        "--upstream", metavar="NAME|URL", help="where requests go on to; default: where the agent goes now"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="say on stderr what is done to requests")
    parser.add_argument("command", nargs=REMAINDER, metavar="AGENT ARGS", help="the command of the agent")


def run(args: Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        say("no agent is named; write: sightline run -- AGENT ARGS")
        return _USAGE
    settings = load()
    warn((*settings.warnings, *settings.advice))
    found = shutil.which(command[0], path=settings.environment.get("PATH"))
    if found is None:
        return refused(Refusal("not_found", f"{command[0]} is not found", "install it, or give its whole path"))
    listening = bind("127.0.0.1", 0)
    if isinstance(listening, Refusal):
        return refused(listening)
    with listening:
        started = launch([found, *command[1:]], _place(settings, url_on(listening), flagged=bool(args.upstream)))
        code = started if isinstance(started, Refusal) else _through(started, listening, settings, args)
    return refused(code) if isinstance(code, Refusal) else code


def _place(settings: Settings, address: str, *, flagged: bool) -> Place:
    place = Place(settings.environment, address, Path.cwd(), text_of, flagged=flagged, serve_port=DEFAULT_PORT)
    return replace(place, real_home=place.home.resolve(), list_files=list_files, real_path=Path.resolve)


def _through(started: Launch, listening: socket, settings: Settings, args: Namespace) -> int | Refusal:
    """The agent's exit code, with the proxy listening from before its start to after its end."""
    from sightline.cli.listening import Beside, Manner
    from sightline.runtime import build_runtime
    from sightline.settings.upstreams import NOWHERE, Taken

    flags = [args.upstream] if args.upstream else []
    taken = NOWHERE if flags else Taken(started.formerly, started.named)
    whole = build_runtime(settings, flags, taken, alone=True)
    if isinstance(whole, Refusal):
        return whole
    proxy = Beside(whole, listening, Manner(verbose=args.verbose))
    if not proxy.start():
        return Refusal("unavailable", "the proxy could not be started", "sightline serve shows why")
    try:
        with _filed(started) as ready:
            return _agent(ready)
    finally:
        proxy.stop()


@contextmanager
def _filed(started: Launch) -> Iterator[Launch]:
    """The agent's files, in a folder that is the user's alone: they may hold keys."""
    if not started.files:
        yield started
        return
    with TemporaryDirectory(prefix="sightline-") as folder:  # mode 0700
        for name, text in started.files.items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
        argv = tuple(word.replace(FILES, folder) for word in started.argv)
        yield replace(started, argv=argv, env={name: text.replace(FILES, folder) for name, text in started.env.items()})


def _agent(started: Launch) -> int | Refusal:
    """Its exit code. The terminal sends an interrupt to it as well as to us: it alone decides what that means."""
    if started.note:
        say(started.note)
    agent: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # what came before there was somebody to pass it on to

    def pass_on(signum: int, frame: FrameType | None) -> None:
        if agent is None:
            early.append(signum)
        else:
            agent.send_signal(signum)

    # Not SIG_IGN: what is ignored here, the agent would ignore too.
    former = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda signum, frame: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
    }
    try:
        agent = subprocess.Popen(started.argv, env=dict(started.env))
        for signum in early:
            agent.send_signal(signum)
        code = agent.wait()
    except OSError as trouble:
        return Refusal(
            "not_permitted", f"{started.argv[0]} cannot be started: {trouble.strerror}", "see whether it is a program"
        )
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
    return code if code >= 0 else 128 - code
