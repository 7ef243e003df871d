"""`sightline prepare`: a request body in, the body as the proxy would send it on out, and on stderr what was done."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from sightline.cli.terminal import Outcome, add_json, read_settings, say, show
from sightline.model.profile import ContentName, WireName
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api.bodies import Prepared

EXAMPLE = """  sightline prepare --wire openai_chat --explain < body.json > sent.json
  sightline prepare --wire anthropic --upstream deepseek --model deepseek-v4-pro --json < body.json
  sightline prepare --wire mcp --model claude-opus-5 < result.json"""

# How an image begins on each wire that has a way of its own.
_SIGNS: Mapping[str, bytes] = {
    "openai_chat": rb'"type"\s*:\s*"image_url"',
    "openai_responses": rb'"type"\s*:\s*"input_image"',
    "gemini": rb'"inline_?[dD]ata"\s*:',
    "anthropic": rb'"source"\s*:\s*\{\s*"type"\s*:\s*"base64"',
}


def arguments(parser: ArgumentParser) -> None:
    names = (*get_args(WireName), *get_args(ContentName))
    parser.add_argument("--wire", metavar="W", required=True, choices=names, help=f"of the body: {', '.join(names)}")
    parser.add_argument(
        "--model", metavar="M", help="that it goes to, if the body does not name it; Gemini's never does"
    )
    parser.add_argument(
        "--upstream", metavar="NAME", help="a provider by its name or address; default: the wire's owner"
    )
    parser.add_argument("--retention", metavar="R", help="auto, turns:N or off; default: as in the settings")
    parser.add_argument("--explain", action="store_true", help="say on stderr what became of each image, and why")
    add_json(parser)


def run(args: Namespace) -> Outcome:
    from sightline.api import Refused
    from sightline.api.bodies import find_runtime, prepare

    at = find_runtime(read_settings(), args.retention)
    if isinstance(at, Refusal):
        return at
    body = b"" if sys.stdin.isatty() else sys.stdin.buffer.read()
    if not body.strip():
        return Refusal("invalid_input", "there is no body", "sightline prepare --wire W < body.json")
    done = prepare(body, wire=args.wire, model=args.model, upstream=args.upstream, through=at)
    if isinstance(done, Refused):
        if args.json:
            show(done.as_dict())
        say(done.message)
        return 1
    if args.json:
        told = {"ok": True, "body": _read(done), "changed": done.changed, "receipt": done.receipt.as_json()}
        print(json.dumps(told))
    else:
        sys.stdout.buffer.write(done.body)
        sys.stdout.buffer.flush()
    _tell(done, explain=args.explain)
    if not done.receipt.sights and (other := _looks_like(body, args.wire)):
        say(f"no image was found, and this looks like {other}: --wire {other}")
    if args.explain and not args.upstream and (owner := _owner(done.receipt.model, done.receipt.upstream)):
        say(f"{done.receipt.model} is a model of {owner}: --upstream {owner} tells what becomes of it there")
    return 0


def _looks_like(body: bytes, wire: str) -> str:
    """Return the wire whose images a body has, if that is another one than the one named."""
    found = [other for other, sign in _SIGNS.items() if re.search(sign, body)]
    return found[0] if found and wire not in found else ""


def _owner(model: str, upstream: str) -> str:
    """Return the provider whose name a model's begins with, where another one is asked."""
    from sightline.profiles.presets import PRESETS

    owners = (name for name in PRESETS if model.startswith(f"{name}-"))
    return next((name for name in owners if name != upstream), "")


def _read(done: Prepared) -> object:
    """Return the body as JSON, or as text where it is none."""
    text = bytes(done.body).decode("utf-8", "replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _tell(done: Prepared, *, explain: bool) -> None:
    receipt = done.receipt
    if explain and receipt.upstream:
        say(f"{receipt.model or 'a model without a name'} at {receipt.upstream}: {_images(len(receipt.sights))}")
        for line in receipt.sights:
            say(str(line))
    elif done.changed:
        say(str(receipt))
    for note in receipt.notes if explain or not done.changed else ():
        say(note)


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count or 'no'} images"
