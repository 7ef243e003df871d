"""The command `sightline`: its table of verbs, and how one is run. A verb's module is imported when it is used."""

from __future__ import annotations

import errno
import os
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper

from sightline import __version__
from sightline.cli import set_starting_threshold

TYPE_CHECKING = False  # true for a type checker; `--help` imports nothing that it doesn't need
if TYPE_CHECKING:
    from sightline.cli.terminal import Verb

VERBS: Mapping[str, tuple[str, Callable[[], Verb]]] = {
    "serve": ("start the proxy on this machine", lambda: import_module("sightline.cli.verbs.serve")),
    "run": ("start an agent with its own proxy", lambda: import_module("sightline.cli.verbs.run")),
    "setup": ("show or write an agent's settings for the proxy", lambda: import_module("sightline.cli.verbs.setup")),
    "doctor": ("show what is set up and what is missing", lambda: import_module("sightline.cli.verbs.doctor")),
    "view": ("show an image or a rendered file as an agent sees it", lambda: import_module("sightline.cli.verbs.view")),
    "describe": ("describe images, or ask about them", lambda: import_module("sightline.cli.verbs.describe")),
    "redescribe": ("describe an image again", lambda: import_module("sightline.cli.verbs.describe").RedescribeVerb),
    "vision-proxy": ("run a /vision-proxy command", lambda: import_module("sightline.cli.verbs.vision_proxy")),
    "ask": ("ask about an image or a PDF", lambda: import_module("sightline.cli.verbs.ask")),
    "video": ("ask about a video", lambda: import_module("sightline.cli.verbs.ask").VideoVerb),
    "prepare": ("show what the proxy does to a request body", lambda: import_module("sightline.cli.verbs.prepare")),
    "mcp": ("serve the tools to an MCP host", lambda: import_module("sightline.cli.verbs.mcp")),
    "acp": ("relay between an ACP editor and its agent", lambda: import_module("sightline.cli.verbs.acp")),
    "probe": ("test whether a model really sees", lambda: import_module("sightline.cli.verbs.probe")),
    "models": (
        "show what is known about models, and download those of the local reader",
        lambda: import_module("sightline.cli.verbs.models"),
    ),
    "config": ("show or change settings", lambda: import_module("sightline.cli.verbs.config")),
    "usage": ("show what vision models have cost", lambda: import_module("sightline.cli.verbs.usage")),
    "inspect": ("show in the browser what models saw", lambda: import_module("sightline.cli.verbs.inspect")),
    "forget": ("delete images and everything said about them", lambda: import_module("sightline.cli.verbs.forget")),
    "store": ("show, clean up, copy or repair the record", lambda: import_module("sightline.cli.verbs.store")),
    "consent": (
        "choose where images may be sent",
        lambda: import_module("sightline.cli.verbs.vision_proxy").ConsentVerb,
    ),
    "completion": ("print a script for your shell", lambda: import_module("sightline.cli.verbs.completion")),
    "help": ("explain a verb", lambda: import_module("sightline.cli.verbs.completion").HelpVerb),
}

_INTERRUPTED, _USAGE = 130, 2
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 done, 1 refused, 2 wrong usage."""
    set_starting_threshold()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # like stderr: any file name can be printed
    try:
        code = _run_verb(sys.argv[1:] if argv is None else list(argv))
        print(end="", flush=True)  # so that an error is reported here
        return code
    except SystemExit as ended:  # argparse has printed the reason
        return ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of stdout has gone; drop what is buffered
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        return _report_full_disk(error) if error.errno in _FULL else _report_fault(error)
    except Exception as bug:  # noqa: BLE001, the outermost edge
        return _report_fault(bug)


def _report_fault(fault: Exception) -> int:
    import logging

    from sightline.cli.terminal import print_status

    logging.getLogger(__name__).debug("a bug in Sightline", exc_info=fault)
    print_status(f"this is a bug in Sightline: {type(fault).__name__}: {fault}")
    return 1


def _report_full_disk(trouble: OSError) -> int:
    """Report that a disk is full, and drop what is still buffered."""
    from sightline.cli.terminal import print_status

    print_status(f"the output cannot be written: {trouble.strerror} (free some space, or write elsewhere)")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _run_verb(argv: list[str]) -> int:
    if not argv:
        _build_parser().print_help(sys.stderr)
        return _USAGE
    if argv[0] not in VERBS and not argv[0].startswith("-"):
        return _report_unknown_verb(argv[0])
    # The parser of all verbs takes 5 ms to build, and is only needed for its options.
    name = argv[0] if argv[0] in VERBS else _build_parser().parse_known_args(argv[:1])[0].verb
    verb = VERBS[name][1]()
    parser = build_verb_parser(name)
    if {"-h", "--help"} & set(argv):
        parser.description = _wrap(parser.description or "")
    from sightline.cli.terminal import CommandLine, print_outcome

    command_line = CommandLine({each: summary for each, (summary, _) in VERBS.items()}, build_verb_parser, main)
    args = parser.parse_args(argv[1:], Namespace(command_line=command_line))
    _name_logs()

    return print_outcome(verb.run(args), as_json=getattr(args, "json", False))


def build_verb_parser(name: str) -> ArgumentParser:
    """Return the parser of a verb."""
    summary, load = VERBS[name]
    verb = load()
    parser = ArgumentParser(
        prog=f"sightline {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n{verb.EXAMPLE}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.add_arguments(parser)
    return parser


def _report_unknown_verb(word: str) -> int:
    import difflib

    from sightline.cli.terminal import print_status

    close = difflib.get_close_matches(word, VERBS, 1)
    print_status(
        f"there is no verb {word!r:.60} ({f'did you mean {close[0]}?' if close else 'sightline --help lists them'})"
    )
    return _USAGE


def _wrap(text: str) -> str:
    """Wrap a text for a terminal."""
    from textwrap import fill

    return fill(text, 100)


def _name_logs() -> None:
    """Print log messages like all other messages, unless logging is configured."""
    import logging

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(logging.Formatter("sightline: %(message)s"))


def _build_parser() -> ArgumentParser:
    parser = ArgumentParser(
        prog="sightline",
        description="Sightline gives AI agents eyes.",
        epilog="example:\n  sightline run -- claude\n\nsightline help VERB explains a verb.",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sightline {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (summary, _) in VERBS.items():
        verbs.add_parser(name, help=summary, add_help=False)
    return parser
