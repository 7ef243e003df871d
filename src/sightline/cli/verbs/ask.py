"""`sightline ask` and `video`: one question about one image, PDF or video; JSON for programs, text for people."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli import terminal
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api import Refused
    from sightline.api.results import Envelope
    from sightline.api.session import Door
    from sightline.model.scene import Json
    from sightline.settings import Settings

EXAMPLE = """  sightline ask error.png "Which file and line does the error name?"
  sightline ask invoice.pdf "Total and vendor?" --schema invoice.schema.json --model anthropic/claude-opus-4-7
  sightline ask https://example.com/diagram.png "Describe the architecture." --fit never"""

_OF_A_FILE = frozenset({"FILE_NOT_FOUND", "FILE_TOO_LARGE", "UNSUPPORTED_FILE_TYPE", "URL_BLOCKED"})
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def arguments(parser: ArgumentParser) -> None:
    _add_file(parser, "an image or a PDF")
    parser.add_argument("prompt", metavar="PROMPT", help="what you want to know")
    parser.add_argument("--schema", metavar="FILE", type=Path, help="a JSON Schema that the answer has to follow")
    parser.add_argument("--fit", choices=("auto", "never"), help="whether what is too large is made to fit")
    _add_model(parser)


def run(args: Namespace) -> int:
    from sightline.api import Refused, vision_analyze

    settings = terminal.read_settings()
    schema = _read_schema(args.schema) if args.schema else None
    if isinstance(schema, Refusal):
        return _print(Refused(replace(schema, code="invalid_input"), "ask"), args)
    shape = {"type": "json_schema", "schema": schema} if args.schema else None
    at = _open(settings, args.model or "")
    with terminal.progress("asking …"):
        found = vision_analyze(
            prompt=args.prompt, model=args.model, format=shape, fit=args.fit, through=at, **_locate(args.file)
        )
    return _print(found, args)


class VideoVerb:
    """The verb `video`."""

    EXAMPLE = """  sightline video demo.mp4
  sightline video https://example.com/demo.mp4 "Which errors are shown?" --model gemini/gemini-2.5-pro"""

    @staticmethod
    def arguments(parser: ArgumentParser) -> None:
        _add_file(parser, "a video")
        parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="what you want to know; default: a description")
        parser.add_argument(
            "--method",
            choices=("auto", "native", "frames"),
            help="native: the video itself is sent; frames: stills of it, which nothing makes yet; auto: as can be",
        )
        _add_model(parser)

    @staticmethod
    def run(args: Namespace) -> int:
        from sightline.api import video_analyze

        at = _open(terminal.read_settings(), args.model or "")
        with terminal.progress("asking …"):
            found = video_analyze(
                prompt=args.prompt, model=args.model, method=args.method, through=at, **_locate(args.file)
            )
        return _print(found, args)


def _add_file(parser: ArgumentParser, what: str) -> None:
    parser.add_argument("file", metavar="FILE-OR-URL", help=f"{what}: a path, or a public https address")


def _add_model(parser: ArgumentParser) -> None:
    parser.add_argument("--model", metavar="P/M", help="provider and model that are asked instead of the usual one")
    terminal.add_json(parser)  # as it is printed anyway where no terminal shows it


def _open(settings: Settings, model: str) -> Door:
    """Open the door for one question, with the user's consent if that can be asked for."""
    from sightline.api.session import door

    at = door(settings)
    terminal.ask_consent(settings, at.record, model)
    return at


def _locate(given: str) -> dict[str, str]:
    """Return an address, or a path as the person means it: relative to the working folder."""
    if _ADDRESS.match(given):
        return {"file_url": given}
    try:
        return {"file_path": str(Path.cwd() / given)}
    except OSError:  # the folder was removed
        return {"file_path": given}


def _print(outcome: Envelope | Refused, args: Namespace) -> int:
    """Print one JSON object, or text on a terminal; exit with 1 where the answer does not follow the schema."""
    from sightline.api import Refused

    read = sys.stdout.isatty() and not args.json
    if not read:
        terminal.show(outcome.as_dict())
    if isinstance(outcome, Refused):
        return terminal.say_no(args.file if outcome.prefix in _OF_A_FILE else "", outcome.message)
    if read:
        seer = "/".join(dict.fromkeys((outcome.provider, outcome.model)))
        terminal.print_answer(f"{args.file} by {seer}", outcome.text)
        for error in outcome.schema_errors:
            terminal.tell(f"not as the schema says: {error}")
        terminal.tell(terminal.format_usage(outcome.usage, outcome.cost_usd, cached=outcome.cached))
    elif outcome.schema_errors:
        terminal.say(f"the answer is not as the schema says: {outcome.schema_errors[0]}")
    return 1 if outcome.schema_errors else 0


def _read_schema(path: Path) -> Json | Refusal:
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
