"""`sightline mcp`: the tools for any MCP host, on stdin and stdout, or at an address of this machine."""

from __future__ import annotations

import gc
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.listening import DEFAULT_PORT, add_address, bind, check_folder, url_on
from sightline.cli.terminal import Outcome, warn
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api.session import Door

EXAMPLE = """  sightline mcp
  claude mcp add --scope user sightline -- sightline mcp
  codex mcp add sightline -- sightline mcp
  sightline mcp --http --root ."""

_FOR_HTTP = {"host": "127.0.0.1", "port": DEFAULT_PORT, "token": "", "root": None}
ABSENT = Refusal("unavailable", "the MCP library is not installed", "pip install 'sightline[mcp]'")


def arguments(parser: ArgumentParser) -> None:
    parser.description = (
        "Serve view_image, analyze_image, vision_analyze, video_analyze and list_images to an MCP host, which starts"
        " this command and speaks to it over stdin and stdout; with --http, to hosts that are given its address."
        " `sightline serve` has the same at /mcp."
    )
    parser.add_argument("--http", action="store_true", help="listen at http://HOST:PORT/mcp instead (streamable HTTP)")
    add_address(parser)
    parser.add_argument(
        "--root", type=Path, metavar="DIR",
        help="with --http, the folder whose files may be seen; default: none, and images go by their sha256",
    )  # fmt: skip


def run(args: Namespace) -> Outcome:
    if find_spec("mcp") is None:
        return ABSENT
    if args.http:
        return _over_http(args)
    if needless := next((name for name in _FOR_HTTP if getattr(args, name) != _FOR_HTTP[name]), ""):
        what = f"--{needless} is for a server that listens, and this one speaks over stdin and stdout"
        return Refusal("invalid_input", what, "write --http as well")
    gc.disable()  # a fifth of the start would go into looking for garbage among classes that stay
    with redirect_stdout(sys.stderr):  # also what a library says when it is loaded
        from sightline.surfaces.mcp.clients import Terms
        from sightline.surfaces.mcp.stdio import serve
    gc.freeze()
    gc.enable()

    serve(Terms(_door, roots=True, consents=True))
    return 0


def _over_http(args: Namespace) -> Outcome:
    """Serve the proxy's /mcp without the proxy: the same guards, and no credential sees what another has."""
    if no := check_folder(args.root):
        return no
    from sightline.settings import load

    settings = load()
    warn((*settings.warnings, *settings.advice))
    token = args.token or settings.environment.get("SIGHTLINE_TOKEN", "")
    listening = bind(args.host, args.port, guarded=bool(token))
    if isinstance(listening, Refusal):
        return listening
    from sightline.cli import compose
    from sightline.cli.listening import Manner, in_front
    from sightline.runtime import build_runtime

    def ready() -> None:
        print(f"Sightline serves MCP at {url_on(listening)}{compose.MCP}. Ctrl-C stops it.", flush=True)

    with listening:
        named, looked_for = compose.reaches(settings, args.root, args.host)
        whole = build_runtime(settings, reach=looked_for)
        if isinstance(whole, Refusal):
            return whole
        in_front(whole, listening, ready, Manner(token=token, reach=named, proxies=False))
    return 0


def _door(headers: Mapping[str, str]) -> Door:
    """Open the user's own door, with the settings of now: the host runs as the user and could read all of it anyway."""
    from sightline.api.session import door

    return door()
