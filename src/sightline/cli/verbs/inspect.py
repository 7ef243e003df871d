"""`sightline inspect`: open the inspector in the browser, or write one conversation as a single HTML file."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.proxy_server import DEFAULT_PORT, bind_socket, find_url, format_url, read_port
from sightline.cli.terminal import VerbOutcome, VerbResult, print_status, read_settings
from sightline.cli.verbs import open_record
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.settings import Settings
    from sightline.surfaces.inspector.changes import InspectorAccess

EXAMPLE = """  sightline inspect
  sightline inspect --no-browser
  sightline inspect --export conversation.html"""

_PROXY_SECONDS = 2.0


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = (
        "Open a page in the browser that shows what was done to the images of each conversation and what it cost. A"
        " running proxy serves it; if there is none, this command does, until Ctrl-C. The link works once."
    )
    parser.add_argument(
        "--port", type=read_port, default=DEFAULT_PORT, metavar="P",
        help=f"the port of the proxy; default: {DEFAULT_PORT}",
    )  # fmt: skip
    parser.add_argument("--no-browser", action="store_true", help="print the link, and open nothing")
    parser.add_argument("--export", type=Path, metavar="FILE", help="write one conversation to an HTML file")
    parser.add_argument("--conversation", metavar="ID", default="", help="with --export: which one; default: the last")
    parser.add_argument(
        "--images", choices=("small", "none"), default="small", help="with --export: small copies (default), or none"
    )
    parser.add_argument("--force", action="store_true", help="with --export: overwrite FILE")


def run(args: Namespace) -> VerbOutcome:
    settings = read_settings()
    if args.export is not None:
        return _export(settings, args)
    if args.conversation or args.force or args.images != "small":
        return Refusal(
            "invalid_input", "--conversation, --images and --force work only with --export", "add --export FILE"
        )
    from sightline.cli.compose import build_inspector_access

    access = build_inspector_access(settings)
    ticket = access.issue_ticket()
    if _serves_ticket(args.port, ticket):
        _open_link(format_url("127.0.0.1", args.port), ticket, browser=not args.no_browser)
        return 0
    return _serve(settings, access, ticket, browser=not args.no_browser)


def _serves_ticket(port: int, ticket: str) -> bool:
    """Return whether a proxy of this user listens on the port and would take the ticket."""
    from http.client import HTTPConnection, HTTPException  # `--help` imports nothing heavy

    from sightline.surfaces.inspector.changes import hash_token

    connection = HTTPConnection("127.0.0.1", port, timeout=_PROXY_SECONDS)
    try:
        connection.request("GET", f"/sightline/api/ticket/{hash_token(ticket)}")
        reply = connection.getresponse()
        return reply.status == 200 and b'"known": true' in reply.read(1024)
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _open_link(address: str, ticket: str, *, browser: bool) -> None:
    """Open the link. The ticket is behind the #, so that it is in no log and no referrer."""
    link = f"{address}/sightline/#ticket={ticket}"
    if browser:
        import webbrowser

        if webbrowser.open(link):
            print_status(f"the inspector is open in your browser: {address}/sightline/")
            return
    print(f"Open this link, which works once: {link}", flush=True)


def _serve(settings: Settings, access: InspectorAccess, ticket: str, *, browser: bool) -> VerbOutcome:
    """Serve the inspector in this process until it is stopped."""
    from sightline.cli.proxy_server import ServeOptions, serve_until_signal
    from sightline.runtime import build_runtime

    listening = bind_socket("127.0.0.1", 0)
    if isinstance(listening, Refusal):
        return listening
    with listening:
        runtime = build_runtime(settings)
        if isinstance(runtime, Refusal):
            return runtime

        def ready() -> None:
            _open_link(find_url(listening), ticket, browser=browser)
            print("Ctrl-C stops it.", flush=True)

        serve_until_signal(runtime, listening, ready, ServeOptions(with_proxy=False, inspector_only=True))
    return 0


def _export(settings: Settings, args: Namespace) -> VerbOutcome:
    from sightline.cli.compose import export_conversation
    from sightline.cli.terminal import check_writable
    from sightline.disk import write_atomically

    if refusal := check_writable(args.export, "--export", force=args.force):
        return refusal
    with open_record(settings) as record:
        page = record.find_trouble() or export_conversation(
            settings, record, args.conversation, with_images=args.images == "small"
        )
    if isinstance(page, Refusal):
        return page
    write_atomically(args.export, page, mode=0o600)
    return VerbResult({"file": str(args.export)}, [f"written: {args.export}"])
