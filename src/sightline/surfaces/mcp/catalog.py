"""What a client can list: the verbs of /vision-proxy as prompts, and images of the record as resources. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sightline.commands import VERBS, parse_arguments, split_words, usage
from sightline.commands.table import Argument
from sightline.commands.values import Command
from sightline.model.fence import one_line
from sightline.model.image import Kept
from sightline.model.refusal import Refusal

SAME_TOOLS: Mapping[str, str] = {"describe": "analyze_image", "redescribe": "analyze_image", "list": "list_images"}
"""The tools that do the same as a prompt."""


def list_arguments(verb: str) -> list[tuple[Argument, str]]:
    """Return what can be filled in, each with its description. Flags are not for prompts."""
    return [
        (argument, argument.help + ("; several with spaces between them" if argument.repeatable else ""))
        for argument in VERBS[verb].arguments
        if argument.kind != "flag"
    ]


def read_prompt(verb: str, filled: Mapping[str, str]) -> Command | Refusal:
    """Build the command of a prompt whose arguments are filled in."""
    if verb not in VERBS:
        return Refusal("not_found", f"there is no prompt {verb!r:.60}", f"one of {', '.join(VERBS)}")
    arguments = [argument for argument, _ in list_arguments(verb)]
    if unknown := sorted(filled.keys() - {argument.name for argument in arguments}):
        return Refusal("invalid_input", f"{verb} has no argument {unknown[0]!r:.60}", f"usage: {usage(verb)}")
    values: dict[str, object] = {}
    for argument in arguments:
        text = filled.get(argument.name, "").strip()
        if not text and argument.required:
            return Refusal("invalid_input", f"{verb} needs {argument.name}", f"usage: {usage(verb)}")
        words = split_words(text) if argument.repeatable else text
        if isinstance(words, Refusal):
            return words
        values[argument.name] = words or None
    return parse_arguments(verb, values)


TEMPLATE = "sightline://sha256/{sha256}"
_URI = re.compile(r"sightline://sha256/([0-9a-f]{64})/?", re.IGNORECASE | re.ASCII)


def uri(sha256: str) -> str:
    return TEMPLATE.format(sha256=sha256)


def sha256_of(address: str) -> str | None:
    found = _URI.fullmatch(address)
    return found[1].lower() if found else None


def title(kept: Kept) -> str:
    """As a person finds it in a list."""
    name = one_line(re.split(r"[/\\]", kept.path)[-1]) or f"sha256:{kept.sha256[:12]}"
    return f"{name} ({kept.mime}, {kept.size})"
