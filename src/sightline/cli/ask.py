"""`sightline ask`: one question about one image or PDF; a program gets one JSON object, a person words."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.terminal import agreed, figures, progress, tell
from sightline.cli.verb import add_json, no, say, show, warn
from sightline.model.fence import plain
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

if TYPE_CHECKING:
    from sightline.api import Envelope, Refused
    from sightline.model.scene import Json

EXAMPLE = """  sightline ask error.png "Which file and line does the error name?"
  sightline ask invoice.pdf "Total and vendor?" --schema invoice.schema.json --model anthropic/claude-opus-4-7
  sightline ask https://example.com/diagram.png "Describe the architecture." --fit never"""

_OF_A_FILE = frozenset({"FILE_NOT_FOUND", "FILE_TOO_LARGE", "UNSUPPORTED_FILE_TYPE", "URL_BLOCKED"})
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def arguments(parser: ArgumentParser) -> None:
    add_file(parser, "an image or a PDF")
    parser.add_argument("prompt", metavar="PROMPT", help="what you want to know")
    parser.add_argument("--schema", metavar="FILE", type=Path, help="a JSON Schema that the answer has to follow")
    parser.add_argument("--fit", choices=("auto", "never"), help="whether what is too large is made to fit")
    add_model(parser)


def run(args: Namespace) -> int:
    from sightline.api import Refused, door, vision_analyze

    settings = ready()
    schema = _schema(args.schema) if args.schema else None
    if isinstance(schema, Refusal):
        return told(Refused(replace(schema, code="invalid_input"), "ask"), args)
    shape = {"type": "json_schema", "schema": schema} if args.schema else None
    at = door(settings)
    agreed(settings, at.record, args.model or "")
    with progress("asking …"):
        found = vision_analyze(
            prompt=args.prompt, model=args.model, format=shape, fit=args.fit, through=at, **place(args.file)
        )
    return told(found, args)


def add_file(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("file", metavar="FILE-OR-URL", help=f"{what}: a path, or a public https address")


def add_model(parser: ArgumentParser) -> None:
    parser.add_argument("--model", metavar="P/M", help="provider and model that are asked instead of the usual one")
    add_json(parser)  # as it is printed anyway where nobody reads it


def ready() -> Settings:
    settings = load()
    warn(settings.warnings)
    return settings


def place(given: str) -> dict[str, str]:
    """An address, or a path as the person means it: from where they stand."""
    if _ADDRESS.match(given):
        return {"file_url": given}
    try:
        return {"file_path": str(Path.cwd() / given)}
    except OSError:  # somebody has removed the folder
        return {"file_path": given}


def told(outcome: Envelope | Refused, args: Namespace) -> int:
    """As one JSON object; to a person, in words."""
    from sightline.api import Refused

    read = sys.stdout.isatty() and not args.json
    if not read:
        show(outcome.as_dict())
    if isinstance(outcome, Refused):
        return no(args.file if outcome.prefix in _OF_A_FILE else "", outcome.message)
    if read:
        _printed(outcome, args.file)
    elif outcome.schema_errors:
        say(f"the answer is not as the schema says: {outcome.schema_errors[0]}")
    return 1 if outcome.schema_errors else 0  # whoever asked for a shape has not got it


def _printed(found: Envelope, file: str) -> None:
    tell(f"{file} by {'/'.join(dict.fromkeys((found.provider, found.model)))}")
    for line in found.text.splitlines():
        print(plain(line))
    for error in found.schema_errors:
        tell(f"not as the schema says: {error}")
    tell(figures(found.usage, found.cost_usd, cached=found.cached))


def _schema(path: Path) -> Json | Refusal:
    import json

    try:
        found: Json = json.loads(path.read_bytes())
    except OSError as trouble:
        return Refusal("not_found", f"{path} cannot be read: {trouble.strerror}", "give another --schema")
    except RecursionError:
        return Refusal("invalid_input", f"{path} is nested too deep", "give a flatter --schema")
    except ValueError:
        return Refusal("invalid_input", f"{path} holds no JSON", "give another --schema")
    return found
