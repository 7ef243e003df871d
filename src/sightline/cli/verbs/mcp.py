"""`sightline mcp`: an MCP server, over stdin and stdout or at an address of this machine."""

from __future__ import annotations

import gc
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli import set_serving_thresholds
from sightline.cli.proxy_server import DEFAULT_PORT, add_address, bind_socket, check_folder, find_url
from sightline.cli.terminal import VerbOutcome, print_warnings
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api.session import ToolContext

EXAMPLE = """  sightline mcp
  claude mcp add --scope user sightline -- sightline mcp
  codex mcp add sightline -- sightline mcp
  sightline mcp --http --root ."""

_FOR_HTTP = {"host": "127.0.0.1", "port": DEFAULT_PORT, "token": "", "root": None}
MCP_MISSING = Refusal("unavailable", "the MCP library is not installed", "pip install 'sightline[mcp]'")


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = (
        "Serve view_image, analyze_image, vision_analyze, video_analyze and list_images to an MCP host, which starts"
        " this command and talks to it over stdin and stdout, or, with --http, at a URL."
        " `sightline serve` has the same server at /mcp."
    )
    parser.add_argument("--http", action="store_true", help="listen at http://HOST:PORT/mcp instead (streamable HTTP)")
    add_address(parser)
    parser.add_argument(
        "--root", type=Path, metavar="DIR",
        help="with --http, the folder whose files may be read; default: none; images can then be named only by sha256",
    )  # fmt: skip


def run(args: Namespace) -> VerbOutcome:
    if find_spec("mcp") is None:
        return MCP_MISSING
    if args.http:
        return _serve_http(args)
    if needless := next((name for name in _FOR_HTTP if getattr(args, name) != _FOR_HTTP[name]), ""):
        what = f"--{needless} works only with --http"
        return Refusal("invalid_input", what, "add --http")
    with redirect_stdout(sys.stderr):  # stdout belongs to the protocol, also while libraries are imported
        from sightline.surfaces.mcp import ClientTerms
        from sightline.surfaces.mcp.server import serve_stdio
    gc.freeze()
    set_serving_thresholds()

    serve_stdio(ClientTerms(open_context, reads_roots=True, asks_consent=True))
    return 0


def _serve_http(args: Namespace) -> VerbOutcome:
    """Serve /mcp as the proxy does, with the same guards, but without the proxy."""
    if refusal := check_folder(args.root):
        return refusal
    from sightline.settings import load_settings

    settings = load_settings()
    print_warnings((*settings.warnings, *settings.advice))
    token = args.token or settings.environment.get("SIGHTLINE_TOKEN", "")
    listening = bind_socket(args.host, args.port, guarded=bool(token))
    if isinstance(listening, Refusal):
        return listening
    from sightline.cli import compose
    from sightline.cli.proxy_server import ServeOptions, serve_until_signal
    from sightline.runtime import build_runtime

    def ready() -> None:
        print(f"Sightline serves MCP at {find_url(listening)}{compose.MCP_PATH}. Ctrl-C stops it.", flush=True)

    with listening:
        named, looked_for = compose.find_policies(settings, args.root, args.host)
        runtime = build_runtime(settings, path_policy=looked_for)
        if isinstance(runtime, Refusal):
            return runtime
        serve_until_signal(runtime, listening, ready, ServeOptions(token=token, policy=named, with_proxy=False))
    return 0


def open_context(headers: Mapping[str, str]) -> ToolContext:
    """Return the user's own context, by the current settings: the host runs as the user, and could read all of it."""
    from sightline.api.session import Session
    from sightline.settings.live_settings import get_process_settings

    return Session(get_process_settings().get()).tool_context
