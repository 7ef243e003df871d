"""`sightline config`: show and change settings, and what was learnt about models."""

from __future__ import annotations

import json
import sys
from argparse import SUPPRESS, ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sightline.cli.terminal import VerbOutcome, VerbResult, add_json, print_warnings, read_settings
from sightline.cli.verbs import list_lessons, open_disk_record, open_record
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings import KEYS, Settings, find_key, load_settings

if TYPE_CHECKING:
    from sightline.model.ports import PolicyStore
    from sightline.model.profile import Profile, WireName

EXAMPLE = """  sightline config
  sightline config set mode always
  sightline config unset mode
  sightline config model deepseek/deepseek-v4-pro
  sightline config forget deepseek/deepseek-v4-pro"""

_KEY = {"key": ("KEY", "the name of a setting; `sightline config show` lists them")}
_FROM_INPUT = "the new value; - reads it from standard input, which is safer for a key"
_MODEL = {"model": ("UPSTREAM/MODEL", None)}
_ACTIONS: Mapping[str, tuple[str, Mapping[str, tuple[str, str | None]]]] = {
    "show": ("show every setting, and what was learnt about models", {}),
    "get": ("show one setting", _KEY),
    "set": ("change one setting in the file", _KEY | {"value": ("VALUE", _FROM_INPUT)}),
    "unset": ("remove one setting from the file, so that its default applies", _KEY),
    "model": ("show what is known about a model, and why", _MODEL),
    "forget": ("forget what was learnt about a model", _MODEL),
}
_DEFAULT = ("", "default")  # values by which people mean `unset`


def add_arguments(parser: ArgumentParser) -> None:
    parser.description = "Show or change settings; the default is show."
    add_json(parser)
    actions = parser.add_subparsers(dest="action", metavar="show|get|set|unset|model|forget")
    for name, (summary, words) in _ACTIONS.items():
        action = actions.add_parser(name, help=summary)
        for word, (metavar, help_) in words.items():
            action.add_argument(word, metavar=metavar, help=help_)
        add_json(action, default=SUPPRESS)  # or else it would overrule a --json before the action


def run(args: Namespace) -> VerbOutcome:
    settings = read_settings()
    match args.action:
        case "show" | None:
            return _show(settings)
        case "get":
            return _get(settings, args.key)
        case "set":
            return _set(settings, args.key, args.value)
        case "unset":
            return _unset(settings, args.key)
        case "model":
            return _explain_model(settings, args.model)
        case _:
            return _forget(settings, args.model)


def _show(settings: Settings) -> VerbOutcome:
    decided: dict[str, Json] = {
        key.name: {"value": settings.mask_value(key.name), "source": settings.sources[key.name]} for key in KEYS
    }
    with open_record(settings) as record:
        lessons: list[Json] = [dict(lesson) for lesson in list_lessons(record.policy)]
    found: dict[str, Json] = {
        "file": str(settings.file),
        "settings": decided,
        "learnt": lessons,
        "warnings": list(settings.warnings),
    }
    return VerbResult(found, _list_lines(settings, lessons))


def _list_lines(settings: Settings, lessons: list[Json]) -> Iterator[str]:
    yield f"settings file: {settings.file}"
    width = max(len(key.name) for key in KEYS)
    for key in KEYS:
        value = _format_value(settings.mask_value(key.name)) or "not set"
        yield f"  {key.name:<{width}} {value:<12} ({settings.sources[key.name]})"
    from sightline.settings.upstreams import format_provider

    yield "learnt about models:" if lessons else "learnt about models: nothing"
    for lesson in lessons:
        assert isinstance(lesson, dict)
        model = format_provider(settings, f"{lesson['upstream']}/{lesson['model']}")
        yield f"  {model}: {lesson['learnt']} ({lesson['why']})"


def _get(settings: Settings, name: str) -> VerbOutcome:
    key = find_key(name)
    if isinstance(key, Refusal):
        return key
    value, source = settings.mask_value(name), settings.sources[name]
    return VerbResult({"key": name, "value": value, "source": source}, _format_value(value).split("\n"))


def _set(settings: Settings, name: str, text: str) -> VerbOutcome:
    value = sys.stdin.readline().strip() if text == "-" else text
    if value is text and settings.has_secret(name, text):
        safer = f"`sightline config set {name} -` reads it from standard input"
        print_warnings([f"the key may be in your shell's history now; {safer}"])
    if name == "seer" and "/" in value:
        from sightline.commands.execution import check_model

        if unusable := check_model(settings, value):
            return unusable
    if refusal := settings.save(name, value):
        back = refusal.code == "invalid_input" and value in _DEFAULT
        return replace(refusal, remedy=f"to use the default, run: sightline config unset {name}") if back else refusal
    if name == "seer" and value != "auto":
        print_warnings(filter(None, [settings.overriding_model]))
    return _report_change(settings, name, f"(saved in {settings.file})")


def _unset(settings: Settings, name: str) -> VerbOutcome:
    if refusal := settings.unset(name):
        return refusal
    return _report_change(settings, name, "(no longer set in the file)")


def _report_change(settings: Settings, name: str, where: str) -> VerbOutcome:
    """Report the new value of a setting, and whether running processes have to be restarted to use it."""
    key = find_key(name)
    assert not isinstance(key, Refusal), "it was set"
    shown = load_settings(settings.environment).mask_value(name)
    found: Mapping[str, Json] = {
        "key": name,
        "value": shown,
        "file": str(settings.file),
        "needs_restart": key.needs_restart,
    }
    return VerbResult(found, [f"{name} is now {_format_value(shown) or 'empty'} {where}{key.restart_note}"])


def _explain_model(settings: Settings, name: str) -> VerbOutcome:
    from sightline.runtime import find_model_profile
    from sightline.settings.upstreams import build_directory, find_upstream
    from sightline.wire import WIRES

    split = _split_model(name)
    if isinstance(split, Refusal):
        return split
    found = build_directory(settings)
    if isinstance(found, Refusal):
        return found
    upstream = find_upstream(found.by_name, split[0])
    if upstream is None:
        known = ", ".join(sorted(found.by_name))
        return Refusal("not_found", f"there is no upstream named {split[0]!r}", f"known: {known}")
    with open_record(settings) as record:
        seen = {wire.name: find_model_profile(settings, record, upstream, wire.name, split[1]) for wire in WIRES}
    said: dict[str, Json] = {
        wire: {"vision": each.vision, "why": each.why, "sibling": each.sibling} for wire, each in seen.items()
    }
    served = {wire: each for wire, each in seen.items() if wire in upstream.bases}
    return VerbResult({"model": name, "wires": said}, _list_wire_lines(name, served or seen))


def _list_wire_lines(name: str, seen: Mapping[WireName, Profile]) -> Iterator[str]:
    """List what is known, with the wires of which it is true."""
    same: dict[tuple[bool | None, str], list[str]] = {}
    for wire, each in seen.items():
        same.setdefault((each.vision, each.why), []).append(wire)
    for (vision, why), wires in same.items():
        yield f"{name} {_SIGHT[vision]} on {', '.join(wires)}: {why}"


_SIGHT = {True: "sees", False: "takes text only", None: "is assumed to see until it rejects an image"}


def _split_model(name: str) -> tuple[str, str] | Refusal:
    upstream, slash, model = name.partition("/")
    if not (upstream and slash and model):
        return Refusal("invalid_input", f"{name!r} is not the name of a model", "write UPSTREAM/MODEL")
    return upstream, model


def _find_upstream_names(settings: Settings, upstream: str) -> set[str]:
    """Return the names of an upstream, both the user's and its address: lessons may be under either."""
    from sightline.settings.upstreams import build_directory, find_user_names, get_consent_name

    found = build_directory(settings)
    own = found.by_name.get(upstream) if upstream in settings.upstreams and not isinstance(found, Refusal) else None
    return {upstream, *([get_consent_name(own)] if own else find_user_names(settings, upstream))}


def _forget_lessons(policy: PolicyStore, upstreams: Iterable[str], model: str) -> bool | Refusal:
    found = [policy.forget_lesson(each, model) for each in upstreams]
    return next((each for each in found if isinstance(each, Refusal)), any(found))


def _forget(settings: Settings, name: str) -> VerbOutcome:
    split = _split_model(name)
    if isinstance(split, Refusal):
        return split
    upstream, model = split
    with open_disk_record(settings) as record:
        known = (
            record
            if isinstance(record, Refusal)
            else _forget_lessons(record.policy, _find_upstream_names(settings, upstream), model)
        )
    if isinstance(known, Refusal):
        return known
    if not known:
        return Refusal("not_found", f"nothing was learnt about {name}", "`sightline config show` lists what was learnt")
    return VerbResult({"forgotten": name}, [f"forgotten: {name}"])


def _format_value(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
