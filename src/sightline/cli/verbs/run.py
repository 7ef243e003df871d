"""`sightline run -- AGENT ARGS`: start an agent with its own proxy, which ends with it."""

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

from sightline.agents.command_lines import launch
from sightline.agents.launch import FILES, Launch, LaunchContext
from sightline.cli.proxy_server import DEFAULT_PORT, bind_socket, find_url
from sightline.cli.terminal import list_files, print_refusal, print_status, print_warnings, read_text
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load_settings

EXAMPLE = """  sightline run -- claude
  sightline run --upstream deepseek -- claude -p "What is wrong in screenshot.png?\""""

_USAGE = 2


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "sightline run [-h] [--upstream NAME|URL] [-v] -- AGENT [ARGS ...]"
    parser.add_argument(
        "--upstream", metavar="NAME|URL", help="the provider to use; default: the one that the agent uses now"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="print on stderr what is done to requests")
    parser.add_argument("command", nargs=REMAINDER, metavar="AGENT ARGS", help="the command of the agent")


def run(args: Namespace) -> int:
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        print_status("no agent is given; run: sightline run -- AGENT ARGS")
        return _USAGE
    settings = load_settings()
    print_warnings((*settings.warnings, *settings.advice))
    found = shutil.which(command[0], path=settings.environment.get("PATH"))
    if found is None:
        return print_refusal(Refusal("not_found", f"{command[0]} was not found", "install it, or give its full path"))
    context = _build_context(settings, args.upstream)
    if isinstance(context, Refusal):
        return print_refusal(context)
    listening = bind_socket("127.0.0.1", 0)
    if isinstance(listening, Refusal):
        return print_refusal(listening)
    with listening:
        started = launch([found, *command[1:]], replace(context, address=find_url(listening)))
        code = started if isinstance(started, Refusal) else _run_with_proxy(started, listening, settings, args)
    return print_refusal(code) if isinstance(code, Refusal) else code


def _build_context(settings: Settings, upstream: str | None) -> LaunchContext | Refusal:
    """Return the context of the agent, without the proxy's address."""
    from sightline.settings.upstreams import find_flag_upstream, has_known_apis

    context = LaunchContext(settings.environment, "", Path.cwd(), read_text, serve_port=DEFAULT_PORT)
    if upstream:
        named = find_flag_upstream(settings, upstream)
        if isinstance(named, Refusal):
            return named
        context = replace(
            context, upstream=named.name, upstream_apis=tuple(named.bases), is_upstream_known=has_known_apis(named)
        )
    return replace(context, real_home=context.home.resolve(), list_files=list_files, real_path=Path.resolve)


def _run_with_proxy(started: Launch, listening: socket, settings: Settings, args: Namespace) -> int | Refusal:
    """Run the agent and return its exit code. The proxy listens from before its start to after its end."""
    from sightline.cli.proxy_server import ProxyThread, ServeOptions
    from sightline.runtime import build_runtime, find_working_folder
    from sightline.settings.upstreams import PreviousUpstreams

    flags = [args.upstream] if args.upstream else []
    previous = PreviousUpstreams({} if flags else started.former_upstreams, started.named_upstreams)
    runtime = build_runtime(
        settings, flags, previous, single_agent=True, local_clients=True, client_folder=find_working_folder()
    )
    if isinstance(runtime, Refusal):
        return runtime
    proxy = ProxyThread(runtime, listening, ServeOptions(verbose=args.verbose))
    if not proxy.start():
        return Refusal("unavailable", "the proxy could not be started", "run `sightline serve` to see why")
    try:
        with _write_files(started) as ready:
            return _run_agent(ready)
    finally:
        proxy.stop()


@contextmanager
def _write_files(started: Launch) -> Iterator[Launch]:
    """Write the agent's files into a folder that only the user can read: they may contain keys."""
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


def _run_agent(started: Launch) -> int | Refusal:
    """Run the agent and return its exit code. It alone handles an interrupt, which the terminal sends to both."""
    if started.note:
        print_status(started.note)
    agent: subprocess.Popen[bytes] | None = None
    early: list[int] = []  # signals that came before the agent was started

    def pass_on(signum: int, frame: FrameType | None) -> None:
        if agent is None:
            early.append(signum)
        else:
            agent.send_signal(signum)

    # Not SIG_IGN, which the agent would inherit.
    former = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda signum, frame: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
    }
    try:
        agent = subprocess.Popen(started.argv, env=dict(started.env))
        for signum in early:
            agent.send_signal(signum)
        code = agent.wait()
    except OSError as error:
        return Refusal(
            "not_permitted", f"{started.argv[0]} cannot be started: {error.strerror}", "check that it is a program"
        )
    finally:
        for each, handler in former.items():
            signal.signal(each, handler)
    return code if code >= 0 else 128 - code
