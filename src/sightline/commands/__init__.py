"""The one grammar of `/vision-proxy …`, wherever it is typed. Pure: words in, a command or a refusal out."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence

from sightline.commands.forms import NAME, USAGE, usage
from sightline.commands.given import given_to
from sightline.commands.values import Command, Status
from sightline.commands.verbs import parsed
from sightline.commands.words import quoted, split
from sightline.model.refusal import Refusal

__all__ = ["NAME", "USAGE", "command_in", "is_command", "parse", "parse_words", "shell", "usage"]

_BARE = ("fallback", "always", "off", "route")  # modes that need no verb


def is_command(text: str) -> bool:
    """Do these words begin with the command?"""
    return text.split(maxsplit=1)[:1] == [NAME]


def command_in(text: str) -> str | None:
    """The command that a text is, if it is one; a client may have put it between quotes, as one word of a shell."""
    bare = text.strip()
    if bare.startswith(f'"{NAME}') and bare.endswith('"'):
        bare = bare[1:-1].replace('\\"', '"')
    return bare if is_command(bare) else None


def parse(text: str) -> Command | Refusal:
    """A command as a person types it into a chat."""
    if not is_command(text):
        return Refusal("invalid_input", f"it does not begin with {NAME}", usage("status"))
    words = split(text.lstrip()[len(NAME) :])
    return words if isinstance(words, Refusal) else parse_words(words)


def parse_words(words: Sequence[str]) -> Command | Refusal:
    """A command whose words a shell has told apart already."""
    if not words:
        return Status()
    verb, rest = words[0], words[1:]
    if verb in _BARE:
        verb, rest = "mode", words
    if verb not in USAGE:
        close = difflib.get_close_matches(verb, USAGE, 1)
        remedy = f"did you mean {close[0]}?" if close else f"one of {', '.join(USAGE)}"
        return Refusal("invalid_input", f"there is no command {quoted(verb)}", remedy)
    given = given_to(verb, rest)
    return given if isinstance(given, Refusal) else parsed(given)


def shell(command: Command) -> str:
    """A command as it is given to a shell."""
    return shlex.join(["sightline", "vision-proxy", *command.words])
