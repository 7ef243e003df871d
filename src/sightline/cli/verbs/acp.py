"""`sightline acp -- AGENT ARGS`: a relay between an ACP editor and its agent, with eyes for the agent."""

from __future__ import annotations

import shutil
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from pathlib import PurePath
from typing import TYPE_CHECKING

from sightline.cli.terminal import USAGE_ERROR, Outcome, say
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.model.scene import Json

EXAMPLE = """  sightline acp -- qwen --acp
  sightline acp -- npx -y @agentclientprotocol/claude-agent-acp"""

_UNSHADOWED = ("-P", "-m", "sightline")
_PLACES = ("SIGHTLINE_HOME", "SIGHTLINE_CONFIG")  # agents do not hand on all of their environment


def arguments(parser: ArgumentParser) -> None:
    parser.usage = "sightline acp [-h] -- AGENT [ARGS ...]"
    parser.description = (
        "Started by an ACP editor in the place of an agent, it starts the agent and passes on what both say. Images"
        " that are too large are made to fit, and a model that does not see gets them described."
    )
    parser.add_argument("command", nargs=REMAINDER, metavar="AGENT ARGS", help="the command of the agent")


def run(args: Namespace) -> Outcome:
    """Start the relay at once: settings are read when they are first needed, because an editor waits."""
    from sightline.surfaces.acp.agent import relay
    from sightline.surfaces.acp.relay import Relay

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        say("no agent is named; write: sightline acp -- AGENT ARGS")
        return USAGE_ERROR
    found = shutil.which(command[0])
    if found is None:
        return Refusal("not_found", f"{command[0]} is not found", "install it, or give its whole path")
    name = PurePath(found).stem
    try:
        return relay([found, *command[1:]], lambda to_agent, to_editor: Relay(to_agent, to_editor, name, say, _server))
    except OSError as trouble:
        return Refusal("not_permitted", f"{found} cannot be started: {trouble.strerror}", "see whether it is a program")


def _server() -> dict[str, Json] | None:
    """Ours, as an agent starts it: this very program, and where its user has put settings and record.

    It starts in the folder of a project, out of which nothing is to be imported: hence -P.
    """
    from importlib.util import find_spec

    from sightline.surfaces.acp.capability import LOADING

    with LOADING:
        from sightline.settings import load

    settings = load()
    if not settings.acp_mcp_server or find_spec("mcp") is None:
        return None  # an agent would complain in each session about a server that ends at once
    held: list[Json] = [{"name": name, "value": value} for name in _PLACES if (value := settings.variable([name]))]
    return {"name": "sightline", "command": sys.executable, "args": [*_UNSHADOWED, "mcp"], "env": held}
