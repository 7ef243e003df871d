"""The settings files of agents: how their text is read, and how lines are merged into it. Pure: text in, text out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from sightline.model.refusal import Refusal

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])', re.DOTALL)
_VARIABLE = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*("(?:[^"\\]|\\.)*"|'[^']*'|[^\r\n#]*)""", re.MULTILINE
)
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")
_HEAD = re.compile(r"^[^\S\n]*\[([^\[\]]+)\]\s*(?:#.*)?$", re.MULTILINE)


def parse_json(text: str) -> dict[str, Any] | None:
    """Return a JSON object, with comments and trailing commas as agents allow them; None: it is none."""
    plain = _TRAILING.sub(lambda found: found[1] or "", _COMMENT.sub(lambda found: found[1] or "", text))
    try:
        found = json.loads(plain)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def get_object(tree: object, *names: str) -> dict[str, Any]:
    """Return an object inside another one; empty if there is none."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree if isinstance(tree, dict) else {}


def merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Merge two objects key by key; `above` wins."""
    return {**below} | {
        name: merge(below[name], value) if isinstance(value, dict) and isinstance(below.get(name), dict) else value
        for name, value in above.items()
    }


def expand_variables(text: object, env: Mapping[str, str]) -> str:
    """Replace variables in a text, as $NAME or ${NAME}; one that is not set stays as it is."""
    return _REFERENCE.sub(lambda found: env.get(found[1] or found[2], found[0]), text) if isinstance(text, str) else ""


def parse_dotenv(text: str) -> dict[str, str]:
    """Return the variables that a `.env` file sets."""
    found = _VARIABLE.findall(text)
    return {name: value[1:-1] if value[:1] in ("'", '"') else value.strip() for name, value in found}


def merge_text(name: str, text: str, lines: str) -> str | Refusal:
    """Merge the lines of an agent into the text of its file; `name` is the file's."""
    write = _KINDS.get(PurePath(name).suffix) or _KINDS.get(PurePath(name).name)
    if write is None:
        return Refusal("unsupported_type", f"Sightline can't write {name}", "run the command that is shown")
    return write(name, text, lines)


def revert_text(name: str, before: str, written: str, now: str) -> str | Refusal:
    """Return the text of a file as it is `now` without what was changed from `before` to `written`.

    What was changed since then stays, also in the same settings.
    """
    revert = _REVERTERS.get(PurePath(name).suffix) or _REVERTERS.get(PurePath(name).name)
    assert revert is not None, "only files of these kinds are written"
    return revert(name, before, written, now)


def join_lines(lines: str) -> str:
    """Return the lines in one line that can be pasted: JSON stays JSON."""
    try:
        return json.dumps(json.loads(lines), ensure_ascii=False)
    except ValueError:
        return " / ".join(line.strip() for line in lines.splitlines())


def _merge_json(name: str, text: str, lines: str) -> str | Refusal:
    try:
        found = json.loads(text or "{}")
    except (ValueError, RecursionError):
        if parse_json(text) is not None:
            return Refusal(
                "unsupported_type",
                f"{name} has comments or trailing commas, which would be lost",
                f"merge into it by hand: {join_lines(lines)}",
            )
        return Refusal("corrupt", f"{name} is not JSON", "correct it, or merge the lines by hand")
    if not isinstance(found, dict):
        return Refusal("corrupt", f"{name} is not a JSON object", "correct it, or merge the lines by hand")
    merged = _merge_objects(found, json.loads(lines))
    return text if merged == found else json.dumps(merged, indent=2, ensure_ascii=False) + "\n"


def _merge_objects(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Merge key by key; in a list of models or providers, each entry with the one of the same identity."""
    merged = merge(below, above)
    for name, value in above.items():
        present = below.get(name)
        if isinstance(value, dict) and isinstance(present, dict):
            merged[name] = _merge_objects(present, value)
        elif isinstance(value, list) and isinstance(present, list) and all(isinstance(one, dict) for one in value):
            merged[name] = _merge_lists(present, value)
    return merged


def _merge_lists(present: list[Any], added: list[dict[str, Any]]) -> list[Any]:
    known = {_get_identity(one): one for one in added}
    kept = [_merge_objects(one, known.pop(by)) if (by := _get_identity(one)) in known else one for one in present]
    return [*kept, *known.values()]


def _get_identity(entry: object) -> tuple[str, str]:
    """Return the id or name of an entry, and the provider that has it; a file may hold anything there."""
    if not isinstance(entry, dict):
        return "", ""
    name, provider = entry.get("id", entry.get("name")), entry.get("provider")
    return name if isinstance(name, str) else "", provider if isinstance(provider, str) else ""


def _merge_toml(name: str, text: str, lines: str) -> str | Refusal:
    """Merge lines of which the first is a key above the first table, and the rest a table of our own."""
    try:
        before = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return Refusal("corrupt", f"{name} is not TOML", "correct it, or merge the lines by hand")
    key, _, table = lines.partition("\n")
    setting, path = key.partition("=")[0].strip(), _HEAD.findall(table)[0].split(".")
    wanted = merge(_remove_table(before, *path), tomllib.loads(lines))
    if wanted == before:
        return text
    merged = (
        f"{key.partition('#')[0].rstrip()}\n{_remove_lines(text, setting, path)}".rstrip() + f"\n\n{table.strip()}\n"
    )
    try:
        after = tomllib.loads(merged)
    except tomllib.TOMLDecodeError:
        after = {}
    if after != wanted:
        return Refusal(
            "unsupported_type", f"{name} is laid out in an unusual way", f"merge into it by hand: {join_lines(lines)}"
        )
    return merged


def _remove_table(tree: dict[str, Any], group: str, table: str) -> dict[str, Any]:
    return {**tree, group: {name: value for name, value in get_object(tree, group).items() if name != table}}


def _remove_lines(text: str, setting: str, path: Sequence[str]) -> str:
    """Remove a key above the first table, and a table, from a text, line by line."""
    group, table = path
    heads = [f"{group}.{quote}{table}{quote}" for quote in ("", '"', "'")]
    kept: list[str] = []
    top, in_table = True, False
    for line in text.splitlines():
        if head := _HEAD.match(line):
            top, in_table = False, head[1].replace(" ", "") in heads
        if not in_table and not (top and line.partition("=")[0].strip() == setting):
            kept.append(line)
    return "\n".join(kept)


def _merge_dotenv(name: str, text: str, lines: str) -> str | Refusal:
    setting = lines.partition("=")[0]
    kept = [line for line in text.splitlines() if line.partition("=")[0].strip() != setting]
    return "\n".join([*kept, lines]) + "\n"


_KINDS: Mapping[str, Callable[[str, str, str], str | Refusal]] = {
    ".json": _merge_json,
    ".toml": _merge_toml,
    ".env": _merge_dotenv,
}


_MISSING = object()  # a key that is not there


def _revert_json(name: str, before: str, written: str, now: str) -> str | Refusal:
    trees = [_load_object(text) for text in (before or "{}", written, now)]
    if any(tree is None for tree in trees):
        return Refusal("corrupt", f"{name} is not a JSON object without comments", "take the lines out by hand")
    reverted = _revert_value(*trees)
    return now if reverted == trees[2] else json.dumps(reverted, indent=2, ensure_ascii=False) + "\n"


def _load_object(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _revert_value(before: Any, written: Any, now: Any) -> Any:
    """Return a value as it is now, without what was written into it; `_MISSING` if it is to be removed."""
    if now == written:
        return before
    if isinstance(written, dict) and isinstance(now, dict):
        return _revert_object(before if isinstance(before, dict) else {}, written, now)
    if isinstance(written, list) and isinstance(now, list):
        return _revert_list(before if isinstance(before, list) else [], written, now)
    return now


def _revert_object(before: dict[str, Any], written: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in now.items():
        old, new = before.get(name, _MISSING), written.get(name, _MISSING)
        if new is not _MISSING and new != old:
            value = _revert_value(old, new, value)
            value = _MISSING if old is _MISSING and value in ({}, []) else value
        if value is not _MISSING:
            kept[name] = value
    return kept


def _revert_list(before: list[Any], written: list[Any], now: list[Any]) -> list[Any]:
    """Revert the entries of a list one by one, each found by its identity; one that was added is removed as a whole.

    A list of other values is one value: it was changed since, so it stays.
    """
    if not all(isinstance(one, dict) for one in written):
        return now
    old, new = ({_get_identity(one): one for one in entries} for entries in (before, written))
    kept = [(by, one) for one in now if (by := _get_identity(one)) in old or by not in new]
    return [_revert_value(old[by], new[by], one) if by in old and by in new else one for by, one in kept]


def _revert_toml(name: str, before: str, written: str, now: str) -> str | Refusal:
    """Remove the key above the first table and the table that were written, and put the old key back."""
    try:
        old, new, current = (tomllib.loads(text) for text in (before, written, now))
    except (tomllib.TOMLDecodeError, RecursionError):
        return Refusal("corrupt", f"{name} is not TOML", "take the lines out by hand")
    key = written.partition("\n")[0]
    setting, path = key.partition("=")[0].strip(), _HEAD.findall(written)[-1].split(".")
    wanted = _revert_object(old, new, current)
    own = next((line for line in before.splitlines() if line.partition("=")[0].strip() == setting), "")
    rest = _remove_lines(now, setting, path)
    reverted = f"{own}\n{rest}".strip() + "\n" if setting in wanted else rest.strip() + "\n"
    try:
        is_right = tomllib.loads(reverted) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    what = f"{name} was changed in the settings that `setup` has written"
    return reverted if is_right else Refusal("not_permitted", what, "take the lines out by hand")


def _revert_dotenv(name: str, before: str, written: str, now: str) -> str | Refusal:
    added = [line for line in written.splitlines() if line not in before.splitlines()]
    removed = [line for line in before.splitlines() if line not in written.splitlines()]
    kept = [line for line in now.splitlines() if line not in added]
    return "".join(f"{line}\n" for line in (*kept, *(removed if len(kept) < len(now.splitlines()) else ())))


_REVERTERS: Mapping[str, Callable[[str, str, str, str], str | Refusal]] = {
    ".json": _revert_json,
    ".toml": _revert_toml,
    ".env": _revert_dotenv,
}
