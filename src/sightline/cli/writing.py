"""The lines of an agent, merged into the file that it reads. Pure: the file's text in, its new text out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any

from sightline.cli.launch.started import merged, parsed
from sightline.model.refusal import Refusal

_TABLE = "model_providers.sightline"


def written(name: str, text: str, lines: str) -> str | Refusal:
    """`name` is the file's, `text` what it holds now."""
    write = _KINDS.get(PurePath(name).suffix) or _KINDS.get(PurePath(name).name)
    if write is None:
        return Refusal("unsupported_type", f"{name} is not for us to write", "run the command that is shown")
    return write(name, text, lines)


def _json(name: str, text: str, lines: str) -> str | Refusal:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        if parsed(text) is not None:
            return Refusal("unsupported_type", f"{name} has comments, which would be lost", "merge the lines by hand")
        return Refusal("corrupt", f"{name} is not JSON", "mend it, or merge the lines by hand")
    if not isinstance(found, dict):
        return Refusal("corrupt", f"{name} is not a JSON object", "mend it, or merge the lines by hand")
    return json.dumps(_joined(found, json.loads(lines)), indent=2, ensure_ascii=False) + "\n"


def _joined(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merged key by key; in a list of models, each by its id."""
    whole = merged(below, above)
    for name, value in above.items():
        theirs = below.get(name)
        if isinstance(value, dict) and isinstance(theirs, dict):
            whole[name] = _joined(theirs, value)
        elif isinstance(value, list) and isinstance(theirs, list) and all(isinstance(one, dict) for one in value):
            whole[name] = _listed(theirs, value)
    return whole


def _listed(theirs: list[Any], ours: list[dict[str, Any]]) -> list[Any]:
    known = {one["id"]: one for one in ours if "id" in one}
    kept = [
        _joined(one, known.pop(one["id"])) if isinstance(one, dict) and one.get("id") in known else one
        for one in theirs
    ]
    return [*kept, *known.values()]


def _toml(name: str, text: str, lines: str) -> str | Refusal:
    """The first line is a key above the first table, the rest is a table of our own."""
    key, _, table = lines.partition("\n")
    top, tables = _parted(text)
    setting = key.partition("=")[0].strip()
    kept = [line for line in top.splitlines() if line.partition("=")[0].strip() != setting]
    others = re.sub(rf"(?ms)^\[{re.escape(_TABLE)}\]$.*?(?=^\[|\Z)", "", tables)
    whole = "\n".join([key.partition("#")[0].rstrip(), *kept]).rstrip() + "\n\n" + others.strip()
    whole = whole.rstrip() + "\n\n" + table.strip() + "\n"
    try:
        before, after = tomllib.loads(text), tomllib.loads(whole)
    except tomllib.TOMLDecodeError:
        return Refusal("corrupt", f"{name} is not TOML", "mend it, or merge the lines by hand")
    if merged(before, tomllib.loads(lines)) != after:
        return Refusal("unsupported_type", f"{name} is laid out in an unusual way", "merge the lines by hand")
    return whole


def _parted(text: str) -> tuple[str, str]:
    """What stands above the first table, and from there on."""
    found = re.search(r"(?m)^\s*\[", text)
    at = found.start() if found else len(text)
    return text[:at], text[at:]


def _dotenv(name: str, text: str, lines: str) -> str | Refusal:
    setting = lines.partition("=")[0]
    kept = [line for line in text.splitlines() if line.partition("=")[0].strip() != setting]
    return "\n".join([*kept, lines]) + "\n"


_KINDS: Mapping[str, Callable[[str, str, str], str | Refusal]] = {".json": _json, ".toml": _toml, ".env": _dotenv}
