"""The lines of an agent, merged into the file that it reads. Pure: the file's text in, its new text out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from sightline.cli.launch.started import merged, parsed, part
from sightline.model.refusal import Refusal

_GROUP, _OWN = "model_providers", "sightline"
_TABLE = f"{_GROUP}.{_OWN}"
_QUOTED = re.compile(r"[\s\"']")
_HEAD = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?\Z")


def written(name: str, text: str, lines: str) -> str | Refusal:
    """`name` is the file's, `text` what it holds now."""
    write = _KINDS.get(PurePath(name).suffix) or _KINDS.get(PurePath(name).name)
    if write is None:
        return Refusal("unsupported_type", f"{name} is not for us to write", "run the command that is shown")
    return write(name, text, lines)


def in_one_line(lines: str) -> str:
    """The lines as they can be pasted from one: JSON stays JSON."""
    try:
        return json.dumps(json.loads(lines), ensure_ascii=False)
    except ValueError:
        return " / ".join(line.strip() for line in lines.splitlines())


def _json(name: str, text: str, lines: str) -> str | Refusal:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        if parsed(text) is not None:
            return Refusal(
                "unsupported_type",
                f"{name} has comments or last commas, which would be lost",
                f"merge into it by hand: {in_one_line(lines)}",
            )
        return Refusal("corrupt", f"{name} is not JSON", "mend it, or merge the lines by hand")
    if not isinstance(found, dict):
        return Refusal("corrupt", f"{name} is not a JSON object", "mend it, or merge the lines by hand")
    made = _joined(found, json.loads(lines))
    return text if made == found else json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def _joined(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merged key by key; in a list of models or providers, each by what it goes by."""
    whole = merged(below, above)
    for name, value in above.items():
        theirs = below.get(name)
        if isinstance(value, dict) and isinstance(theirs, dict):
            whole[name] = _joined(theirs, value)
        elif isinstance(value, list) and isinstance(theirs, list) and all(isinstance(one, dict) for one in value):
            whole[name] = _listed(theirs, value)
    return whole


def _listed(theirs: list[Any], ours: list[dict[str, Any]]) -> list[Any]:
    known = {_known_by(one): one for one in ours}
    kept = [_joined(one, known.pop(by)) if (by := _known_by(one)) in known else one for one in theirs]
    return [*kept, *known.values()]


def _known_by(entry: object) -> tuple[str, str]:
    """The id or the name of an entry, and the provider that has it; a file may hold anything in its place."""
    if not isinstance(entry, dict):
        return "", ""
    name, provider = entry.get("id", entry.get("name")), entry.get("provider")
    return name if isinstance(name, str) else "", provider if isinstance(provider, str) else ""


def _toml(name: str, text: str, lines: str) -> str | Refusal:
    """The first line is a key above the first table, the rest is a table of our own."""
    try:
        before = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return Refusal("corrupt", f"{name} is not TOML", "mend it, or merge the lines by hand")
    wanted = _laid(before, tomllib.loads(lines))
    if wanted == before:
        return text
    key, _, table = lines.partition("\n")
    setting = key.partition("=")[0].strip()
    made = f"{key.partition('#')[0].rstrip()}\n{_without(text, setting)}".rstrip() + f"\n\n{table.strip()}\n"
    try:
        after = tomllib.loads(made)
    except tomllib.TOMLDecodeError:
        after = {}
    if after != wanted:
        return Refusal(
            "unsupported_type", f"{name} is laid out in an unusual way", f"merge into it by hand: {in_one_line(lines)}"
        )
    return made


def _laid(before: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """Both in one: our table replaces what stood in its place."""
    kept = {name: value for name, value in part(before, _GROUP).items() if name != _OWN}
    return merged({**before, _GROUP: kept}, ours)


def _without(text: str, setting: str) -> str:
    """The text without a key above the first table and without the table that is ours, line by line."""
    kept: list[str] = []
    top, ours = True, False
    for line in text.splitlines():
        if head := _HEAD.match(line):
            top, ours = (
                False,
                head[1].replace(" ", "") in (_TABLE, *(f"{_GROUP}.{quote}{_OWN}{quote}" for quote in "\"'")),
            )
        if not ours and not (top and line.partition("=")[0].strip() == setting):
            kept.append(line)
    return "\n".join(kept)


def _dotenv(name: str, text: str, lines: str) -> str | Refusal:
    setting = lines.partition("=")[0]
    kept = [line for line in text.splitlines() if line.partition("=")[0].strip() != setting]
    return "\n".join([*kept, lines]) + "\n"


_KINDS: Mapping[str, Callable[[str, str, str], str | Refusal]] = {".json": _json, ".toml": _toml, ".env": _dotenv}
