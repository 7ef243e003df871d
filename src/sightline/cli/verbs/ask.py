"""`sightline ask` and `video`: one question about one image, PDF or video."""

from __future__ import annotations

import re
import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.cli import terminal
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.api import Failure
    from sightline.api.session import Session
    from sightline.api.tool_results import FileAnswer
    from sightline.model.scene import Json
    from sightline.settings import Settings

EXAMPLE = """  sightline ask error.png "Which file and line does the error name?"
  sightline ask invoice.pdf "Total and vendor?" --schema invoice.schema.json --model anthropic/claude-opus-4-7
  sightline ask https://example.com/diagram.png "Describe the architecture." --fit never"""

_FILE_PREFIXES = frozenset({"FILE_NOT_FOUND", "FILE_TOO_LARGE", "UNSUPPORTED_FILE_TYPE", "URL_BLOCKED"})
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def add_arguments(parser: ArgumentParser) -> None:
    _add_file(parser, "an image or a PDF")
    parser.add_argument("prompt", metavar="PROMPT", help="what you want to know")
    parser.add_argument("--schema", metavar="FILE", type=Path, help="a file with the JSON Schema of the answer")
    parser.add_argument(
        "--fit",
        choices=("auto", "never"),
        help="whether to shrink an image that is too large, and to send the pages of a PDF to a model that takes none",
    )
    _add_model(parser)


def run(args: Namespace) -> int:
    from sightline.api import Failure, vision_analyze

    settings = terminal.read_settings()
    schema = _read_schema(args.schema) if args.schema else None
    if isinstance(schema, Refusal):
        return _print(Failure(replace(schema, code="invalid_input"), "ask"), args)
    shape = {"type": "json_schema", "schema": schema} if args.schema else None
    session = _open(settings, args.model or "")
    with terminal.show_progress("asking …") as show:
        session.context = replace(session.context, report=show)
        found = vision_analyze(
            prompt=args.prompt, model=args.model, format=shape, fit=args.fit, session=session, **_locate(args.file)
        )
    return _print(found, args)


class VideoVerb:
    """The verb `video`."""

    EXAMPLE = """  sightline video demo.mp4
  sightline video https://example.com/demo.mp4 "Which errors are shown?" --model gemini/gemini-2.5-pro
  sightline video demo.mp4 --method frames --model local"""

    @staticmethod
    def add_arguments(parser: ArgumentParser) -> None:
        _add_file(parser, "a video")
        parser.add_argument("prompt", metavar="PROMPT", nargs="?", help="what you want to know; default: a description")
        parser.add_argument(
            "--method",
            choices=("auto", "native", "frames"),
            help="native: send the video; frames: send stills of it; auto (the default): what the model takes",
        )
        _add_model(parser)

    @staticmethod
    def run(args: Namespace) -> int:
        from sightline.api import video_analyze

        session = _open(terminal.read_settings(), args.model or "")
        with terminal.show_progress("asking …"):
            found = video_analyze(
                prompt=args.prompt, model=args.model, method=args.method, session=session, **_locate(args.file)
            )
        return _print(found, args)


def _add_file(parser: ArgumentParser, what: str) -> None:
    parser.add_argument(
        "file", metavar="FILE-OR-URL", help=f"{what}: a path, - for standard input, or a public https address"
    )


def _add_model(parser: ArgumentParser) -> None:
    parser.add_argument("--model", metavar="P/M", help="the provider and model to ask instead of the usual one")
    terminal.add_json(parser)  # which is the default where stdout is not a terminal


def _open(settings: Settings, model: str) -> Session:
    """Open a session for one question, and ask for the user's consent if that is needed."""
    from sightline.api import Session

    session = Session(settings, render=True)
    terminal.ask_consent(settings, session.context.record, model)
    return session


def _locate(given: str) -> dict[str, Any]:
    """Return the argument for a file that a person names: standard input, an address, or a path."""
    if given == "-":
        return {"file": sys.stdin.buffer}
    if _ADDRESS.match(given):
        return {"file_url": given}
    try:
        return {"file_path": str(Path.cwd() / given)}
    except OSError:  # the folder was removed
        return {"file_path": given}


def _print(outcome: FileAnswer | Failure, args: Namespace) -> int:
    """Print one JSON object, or text on a terminal. Return 1 if the answer does not follow the schema."""
    from sightline.api import Failure

    read = sys.stdout.isatty() and not args.json
    if not read:
        terminal.print_json(outcome.as_dict())
    if isinstance(outcome, Failure):
        about = f"{terminal.hide_login(args.file):.200}: " if outcome.prefix in _FILE_PREFIXES else ""
        return terminal.print_failure("", f"{outcome.prefix}: {about}{outcome.message}")
    if read:
        seer = "/".join(dict.fromkeys((outcome.provider, outcome.model)))
        terminal.print_text(outcome.text)
        usage = terminal.format_usage(outcome.usage, outcome.cost_usd, cached=outcome.cached)
        pages = f" (pages 1 to {outcome.pages[0]} of {outcome.pages[1]})" if outcome.pages else ""
        stills = f", from {len(outcome.frames)} stills" if outcome.frames else ""
        terminal.print_details(f"{terminal.hide_login(args.file)}{pages} by {seer}{stills}, {usage}")
    for error in outcome.schema_errors if read else outcome.schema_errors[:1]:
        terminal.print_status(f"the answer does not follow the schema: {error}")
    return 1 if outcome.schema_errors else 0


def _read_schema(path: Path) -> Json | Refusal:
    import json

    try:
        found: Json = json.loads(path.read_bytes())
    except OSError as error:
        return Refusal("not_found", f"{path} cannot be read: {error.strerror}", "give another --schema")
    except RecursionError:
        return Refusal("invalid_input", f"{path} is nested too deeply", "give a flatter --schema")
    except ValueError:
        return Refusal("invalid_input", f"{path} is not JSON", "give another --schema")
    return found
