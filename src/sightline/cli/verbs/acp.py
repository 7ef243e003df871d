"""`sightline acp -- AGENT ARGS`: a relay between an ACP editor and its agent that fits and describes images."""

from __future__ import annotations

import shutil
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from pathlib import PurePath
from typing import TYPE_CHECKING

from sightline.cli import set_serving_thresholds
from sightline.cli.terminal import USAGE_ERROR, VerbOutcome, print_status
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.model.scene import Json

EXAMPLE = """  sightline acp -- qwen --acp
  sightline acp -- npx -y @agentclientprotocol/claude-agent-acp"""

_UNSHADOWED = ("-P", "-m", "sightline")
_PLACES = ("SIGHTLINE_HOME", "SIGHTLINE_CONFIG")  # agents don't pass on all of their environment


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = "sightline acp [-h] -- AGENT [ARGS ...]"
    parser.description = (
        "An ACP editor starts this command instead of the agent; it starts the agent and relays their messages. Images"
        " that are too large are refitted, and images for a text-only model are described."
    )
    parser.add_argument("command", nargs=REMAINDER, metavar="AGENT ARGS", help="the command of the agent")


def run(args: Namespace) -> VerbOutcome:
    """Start the relay at once: settings are read when they are first needed, because an editor waits."""
    from sightline.surfaces.acp.relay import run_agent

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        print_status("no agent is given; run: sightline acp -- AGENT ARGS")
        return USAGE_ERROR
    found = shutil.which(command[0])
    if found is None:
        return Refusal("not_found", f"{command[0]} was not found", "install it, or give its full path")
    name = PurePath(found).stem
    set_serving_thresholds()
    try:
        return run_agent([found, *command[1:]], name, print_status, _build_mcp_server)
    except OSError as error:
        return Refusal("not_permitted", f"{found} cannot be started: {error.strerror}", "check that it is a program")


def _build_mcp_server() -> dict[str, Json] | None:
    """Return our MCP server as an agent starts it: this program, with the same settings and record.

    It starts in the folder of a project, from which nothing must be imported: hence -P.
    """
    from importlib.util import find_spec

    from sightline.surfaces.acp import IMPORT_LOCK

    with IMPORT_LOCK:
        from sightline.settings.live_settings import get_process_settings

    settings = get_process_settings().get()
    if not settings.acp_mcp_server or find_spec("mcp") is None:
        return None  # an agent would complain in every session about a server that fails
    held: list[Json] = [{"name": name, "value": value} for name in _PLACES if (value := settings.find_variable([name]))]
    return {"name": "sightline", "command": sys.executable, "args": [*_UNSHADOWED, "mcp"], "env": held}
