"""What `/vision-proxy …` means and does, once for the shell, the proxy, MCP and ACP.

`verb_table` has the verbs, their arguments and their commands, `grammar` parses a text into one of these commands, and
`execution` does what it says.
"""

from sightline.commands.grammar import (
    find_command,
    format_shell,
    is_answer,
    is_command,
    parse,
    parse_arguments,
    parse_words,
    quote_word,
    split_words,
)
from sightline.commands.verb_table import ANSWER_PREFIX, NAME, SETTINGS, VERBS, format_usage

__all__ = [
    "ANSWER_PREFIX",
    "NAME",
    "SETTINGS",
    "VERBS",
    "find_command",
    "format_shell",
    "format_usage",
    "is_answer",
    "is_command",
    "parse",
    "parse_arguments",
    "parse_words",
    "quote_word",
    "split_words",
]
