"""`sightline mcp`: the tools for any MCP host, on stdin and stdout."""

from __future__ import annotations

import gc
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sightline.cli.verb import refused
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.look.doors import Door

EXAMPLE = """  sightline mcp
  claude mcp add --scope user sightline -- sightline mcp
  codex mcp add sightline -- sightline mcp"""

ABSENT = Refusal("unavailable", "the MCP library is not installed", "pip install 'sightline[mcp]'")


def arguments(parser: ArgumentParser) -> None:
    parser.description = (
        "Serve view_image, analyze_image, vision_analyze, video_analyze and list_images to an MCP host, which starts"
        " this command and speaks to it over stdin and stdout. `sightline serve` has the same at /mcp."
    )


def run(args: Namespace) -> int:
    if find_spec("mcp") is None:
        return refused(ABSENT)
    gc.disable()  # thousands of classes are made and stay: a fifth of a start is looking through them for garbage
    with redirect_stdout(sys.stderr):  # also what a library says when it is loaded
        from sightline.surfaces.mcp.stdio import serve
        from sightline.surfaces.mcp.terms import Terms
    gc.freeze()
    gc.enable()

    serve(Terms(_door, roots=True, consents=True))
    return 0


def _door(headers: Mapping[str, str]) -> Door:
    """The user's own, as the settings are by now: whoever started this process could read all of it anyway."""
    from sightline.look import door

    return door()
