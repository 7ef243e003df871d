"""The command `sightline`: a table of verbs. A verb's module is imported when the verb is used."""

from __future__ import annotations

import errno
import os
import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper

from sightline import __version__

TYPE_CHECKING = False  # as in the package itself: `--help` loads nothing that it does not show
if TYPE_CHECKING:
    from sightline.cli.terminal import Verb

VERBS: Mapping[str, tuple[str, Callable[[], Verb]]] = {
    "serve": ("start the proxy on this machine", lambda: import_module("sightline.cli.verbs.serve")),
    "run": ("start an agent with a proxy of its own", lambda: import_module("sightline.cli.verbs.run")),
    "setup": ("show the lines that point an agent here", lambda: import_module("sightline.cli.verbs.setup")),
    "doctor": ("show what is set up and what is missing", lambda: import_module("sightline.cli.verbs.doctor")),
    "view": ("see an image, or a part of it", lambda: import_module("sightline.cli.verbs.view")),
    "describe": ("ask what is to be seen in images", lambda: import_module("sightline.cli.verbs.describe")),
    "redescribe": ("describe an image anew", lambda: import_module("sightline.cli.verbs.describe").RedescribeVerb),
    "vision-proxy": ("the commands of /vision-proxy", lambda: import_module("sightline.cli.verbs.vision_proxy")),
    "ask": ("ask about an image or a PDF", lambda: import_module("sightline.cli.verbs.ask")),
    "video": ("ask about a video", lambda: import_module("sightline.cli.verbs.ask").VideoVerb),
    "prepare": ("show what the proxy does to a request body", lambda: import_module("sightline.cli.verbs.prepare")),
    "mcp": ("serve the tools to an MCP host", lambda: import_module("sightline.cli.verbs.mcp")),
    "acp": ("stand between an ACP editor and its agent", lambda: import_module("sightline.cli.verbs.acp")),
    "probe": ("find out whether a model really sees", lambda: import_module("sightline.cli.verbs.probe")),
    "models": ("show or fetch what reads images on this machine", lambda: import_module("sightline.cli.verbs.models")),
    "config": ("show or change settings", lambda: import_module("sightline.cli.verbs.config")),
    "usage": ("show what looking has cost", lambda: import_module("sightline.cli.verbs.usage")),
    "forget": ("forget images and all that was said of them", lambda: import_module("sightline.cli.verbs.forget")),
    "store": ("repair the record", lambda: import_module("sightline.cli.verbs.store")),
    "consent": ("say where images may be sent", lambda: import_module("sightline.cli.verbs.vision_proxy").ConsentVerb),
}

_INTERRUPTED, _USAGE = 130, 2
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code: 0 done, 1 refused, 2 wrong usage."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr is: no letter of a name is a fault of ours
    try:
        code = _run(sys.argv[1:] if argv is None else list(argv))
        print(end="", flush=True)  # here it can still be said that it cannot be written
        return code
    except SystemExit as ended:  # argparse has said what there is to say
        return ended.code if isinstance(ended.code, int) else 1
    except KeyboardInterrupt:
        return _INTERRUPTED
    except BrokenPipeError:  # the reader of our output has left; what is still buffered has no reader either
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as trouble:
        return _report_full_disk(trouble) if trouble.errno in _FULL else _report_fault(trouble)
    except Exception as fault:  # noqa: BLE001, the outermost edge
        return _report_fault(fault)


def _report_fault(fault: Exception) -> int:
    import logging

    from sightline.cli.terminal import say

    logging.getLogger(__name__).debug("a fault of Sightline's own", exc_info=fault)
    say(f"this is a fault of Sightline's own: {type(fault).__name__}: {fault}")
    return 1


def _report_full_disk(trouble: OSError) -> int:
    """Say that a disk is full, and drop what is still buffered."""
    from sightline.cli.terminal import say

    say(f"it cannot be written: {trouble.strerror} (see to the disk, or write elsewhere)")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _run(argv: list[str]) -> int:
    if not argv:
        _top().print_help(sys.stderr)
        return _USAGE
    if argv[0] not in VERBS and not argv[0].startswith("-"):
        return _no_verb(argv[0])
    name = _top().parse_known_args(argv[:1])[0].verb
    summary, load = VERBS[name]
    verb = load()
    parser = ArgumentParser(
        prog=f"sightline {name}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n{verb.EXAMPLE}",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.arguments(parser)
    if {"-h", "--help"} & set(argv):
        parser.description = _wrap(parser.description or "")
    args = parser.parse_args(argv[1:])
    _name_logs()
    from sightline.cli.terminal import finish

    return finish(verb.run(args), as_json=getattr(args, "json", False))


def _no_verb(word: str) -> int:
    import difflib

    from sightline.cli.terminal import say

    close = difflib.get_close_matches(word, VERBS, 1)
    say(f"there is no verb {word!r:.60} ({f'did you mean {close[0]}?' if close else 'sightline --help lists them'})")
    return _USAGE


def _wrap(text: str) -> str:
    """Break a text into lines that fit a terminal."""
    from textwrap import fill

    return fill(text, 100)


def _name_logs() -> None:
    """Print what libraries log as everything else is printed, where logging is not set up."""
    import logging

    if logging.lastResort is not None:
        logging.lastResort.setFormatter(logging.Formatter("sightline: %(message)s"))


def _top() -> ArgumentParser:
    parser = ArgumentParser(
        prog="sightline",
        description="Sightline gives AI agents eyes.",
        epilog="example:\n  sightline run -- claude\n\nsightline VERB --help tells more about each.",
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sightline {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name, (summary, _) in VERBS.items():
        verbs.add_parser(name, help=summary, add_help=False)
    return parser
