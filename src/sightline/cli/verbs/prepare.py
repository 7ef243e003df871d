"""`sightline prepare`: what the proxy would make of a request body, and on stderr why."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from sightline.cli.terminal import VerbOutcome, add_json, print_json, print_status, read_settings
from sightline.model.profile import ContentName, WireName
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api.body_preparation import PreparedBody

EXAMPLE = """  sightline prepare --wire openai_chat --explain < body.json > sent.json
  sightline prepare --wire anthropic --upstream deepseek --model deepseek-v4-pro --json < body.json
  sightline prepare --wire mcp --model claude-opus-5 < result.json"""

# How an image begins on each wire, where that is characteristic.
_SIGNS: Mapping[str, bytes] = {
    "openai_chat": rb'"type"\s*:\s*"image_url"',
    "openai_responses": rb'"type"\s*:\s*"input_image"',
    "gemini": rb'"inline_?[dD]ata"\s*:',
    "anthropic": rb'"source"\s*:\s*\{\s*"type"\s*:\s*"base64"',
}


def add_arguments(parser: ArgumentParser) -> None:
    names = (*get_args(WireName), *get_args(ContentName))
    parser.add_argument(
        "--wire", metavar="W", required=True, choices=names, help=f"the API of the body: {', '.join(names)}"
    )
    parser.add_argument(
        "--model", metavar="M", help="the model it goes to, if the body does not name it; a Gemini body never does"
    )
    parser.add_argument(
        "--upstream", metavar="NAME", help="the provider, by name or address; default: the owner of the API"
    )
    parser.add_argument("--retention", metavar="R", help="auto, turns:N or off; default: as in the settings")
    parser.add_argument("--explain", action="store_true", help="print on stderr what became of each image, and why")
    add_json(parser)


def run(args: Namespace) -> VerbOutcome:
    from sightline.api import Failure, Session
    from sightline.api.body_preparation import find_runtime, parse_retention, prepare

    at = find_runtime(read_settings())
    if isinstance(at, Refusal):
        return at
    if isinstance(retention := parse_retention(at.settings, args.retention), Refusal):
        return retention
    body = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    if not body.strip():
        return Refusal(
            "invalid_input", "there is no body on standard input", "run: sightline prepare --wire W < body.json"
        )
    session = Session(at.settings)
    done = prepare(
        body, wire=args.wire, model=args.model, upstream=args.upstream, retention=args.retention, session=session
    )
    if isinstance(done, Failure):
        if args.json:
            print_json(done.as_dict())
        print_status(done.message)
        return 1
    if args.json:
        fields = {"ok": True, "body": _parse_body(done), "changed": done.changed, "receipt": done.receipt.as_json()}
        print(json.dumps(fields))
    else:
        sys.stdout.buffer.write(done.body)
        sys.stdout.buffer.flush()
    _explain(done, explain=args.explain)
    if not done.receipt.sights and (other := _recognize_wire(body, args.wire)):
        print_status(f"no image was found; the body looks like {other} (use --wire {other})")
    if args.explain and not args.upstream and (owner := _find_owner(done.receipt.model, done.receipt.upstream)):
        print_status(f"{done.receipt.model} is a model of {owner} (use --upstream {owner} to see what happens there)")
    return 0


def _recognize_wire(body: bytes, wire: str) -> str:
    """Return the wire whose images a body has, if it is not the named one."""
    found = [other for other, sign in _SIGNS.items() if re.search(sign, body)]
    return found[0] if found and wire not in found else ""


def _find_owner(model: str, upstream: str) -> str:
    """Return the provider whose name the model's name begins with, if the body goes to another one."""
    from sightline.profiles.presets import PRESETS

    owners = (name for name in PRESETS if model.startswith(f"{name}-"))
    return next((name for name in owners if name != upstream), "")


def _parse_body(done: PreparedBody) -> object:
    """Return the body as JSON, or as text if it is not JSON."""
    text = bytes(done.body).decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _explain(done: PreparedBody, *, explain: bool) -> None:
    receipt = done.receipt
    if explain and receipt.upstream:
        print_status(f"{receipt.model or 'unnamed model'} at {receipt.upstream}: {_count_images(len(receipt.sights))}")
        for line in receipt.sights:
            print_status(str(line))
    elif done.changed:
        print_status(str(receipt))
    for note in receipt.notes if explain or not done.changed else ():
        print_status(note)


def _count_images(count: int) -> str:
    return "1 image" if count == 1 else f"{count or 'no'} images"
