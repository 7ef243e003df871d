"""What `/vision-proxy …` means and does, once for the shell, the proxy, MCP and ACP.

`table` lists the verbs and their arguments, `grammar` parses them into the `values`, `answer` does what they say.
"""

from sightline.commands.grammar import (
    find_command,
    format_shell,
    is_command,
    parse,
    parse_arguments,
    parse_words,
    quote_word,
    split_words,
)
from sightline.commands.table import NAME, SETTINGS, VERBS, usage

__all__ = [
    "NAME",
    "SETTINGS",
    "VERBS",
    "find_command",
    "format_shell",
    "is_command",
    "parse",
    "parse_arguments",
    "parse_words",
    "quote_word",
    "split_words",
    "usage",
]
