"""`sightline config`: the settings, what decided each, and what was learnt about models."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sightline.cli.terminal import CliAnswer, Outcome, add_json, read_settings, warn
from sightline.cli.verbs import kept, learnt, opened
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.settings import KEYS, Settings, find, load

if TYPE_CHECKING:
    from sightline.model.ports import PolicyStore
    from sightline.model.profile import Profile, WireName

EXAMPLE = """  sightline config show
  sightline config set mode always
  sightline config unset mode
  sightline config model deepseek/deepseek-v4-pro
  sightline config forget deepseek/deepseek-v4-pro"""

_KEY = {"key": ("KEY", "the name of a setting; `sightline config show` lists them")}
_FROM_INPUT = "- reads it from standard input, as a key should be"
_MODEL = {"model": ("UPSTREAM/MODEL", None)}
_ACTIONS: Mapping[str, tuple[str, Mapping[str, tuple[str, str | None]]]] = {
    "show": ("every setting and what was learnt about models", {}),
    "get": ("one setting", _KEY),
    "set": ("change one setting in the file", _KEY | {"value": ("VALUE", _FROM_INPUT)}),
    "unset": ("take one setting out of the file: its default counts again", _KEY),
    "model": ("what is known of a model, and the rule that decided it", _MODEL),
    "forget": ("forget what was learnt about a model", _MODEL),
}
_DEFAULT = ("", "default")  # what people write who want a setting to be as if they had never set it


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="show|get|set|unset|model|forget", required=True)
    for name, (summary, words) in _ACTIONS.items():
        action = actions.add_parser(name, help=summary)
        for word, (metavar, help_) in words.items():
            action.add_argument(word, metavar=metavar, help=help_)
        add_json(action)


def run(args: Namespace) -> Outcome:
    settings = read_settings()
    match args.action:
        case "show":
            return _show(settings)
        case "get":
            return _get(settings, args.key)
        case "set":
            return _set(settings, args.key, args.value)
        case "unset":
            return _unset(settings, args.key)
        case "model":
            return _model(settings, args.model)
        case _:
            return _forget(settings, args.model)


def _show(settings: Settings) -> Outcome:
    decided: dict[str, Json] = {
        key.name: {"value": settings.shown(key.name), "source": settings.sources[key.name]} for key in KEYS
    }
    with opened(settings) as record:
        lessons: list[Json] = [dict(lesson) for lesson in learnt(record.policy)]
    found: dict[str, Json] = {
        "file": str(settings.file),
        "settings": decided,
        "learnt": lessons,
        "warnings": list(settings.warnings),
    }
    return CliAnswer(found, _lines(settings, lessons))


def _lines(settings: Settings, lessons: list[Json]) -> Iterator[str]:
    yield f"settings file: {settings.file}"
    width = max(len(key.name) for key in KEYS)
    for key in KEYS:
        yield f"  {key.name:<{width}} {_text(settings.shown(key.name)) or 'not set':<12} ({settings.sources[key.name]})"
    from sightline.settings.upstreams import called

    yield "learnt about models:" if lessons else "learnt about models: nothing"
    for lesson in lessons:
        assert isinstance(lesson, dict)
        model = called(settings, f"{lesson['upstream']}/{lesson['model']}")
        yield f"  {model}: {lesson['learnt']} ({lesson['why']})"


def _get(settings: Settings, name: str) -> Outcome:
    key = find(name)
    if isinstance(key, Refusal):
        return key
    value, source = settings.shown(name), settings.sources[name]
    return CliAnswer({"key": name, "value": value, "source": source}, _text(value).split("\n"))


def _set(settings: Settings, name: str, text: str) -> Outcome:
    value = sys.stdin.readline().strip() if text == "-" else text
    if value is text and settings.is_secret(name, text):
        warn([f"the key may stand in your shell's history now; `sightline config set {name} -` reads standard input"])
    if refusal := settings.save(name, value):
        back = refusal.code == "invalid_input" and value in _DEFAULT
        return replace(refusal, remedy=f"sightline config unset {name}") if back else refusal
    return _report_change(settings, name, f"in {settings.file}")


def _unset(settings: Settings, name: str) -> Outcome:
    if refusal := settings.unset(name):
        return refusal
    return _report_change(settings, name, "by default")


def _report_change(settings: Settings, name: str, where: str) -> Outcome:
    """Report what a setting is, now that it has been changed."""
    shown = load(settings.environment).shown(name)
    found: Mapping[str, Json] = {"key": name, "value": shown, "file": str(settings.file)}
    return CliAnswer(found, [f"{name} is {_text(shown) or 'empty'} {where}"])


def _model(settings: Settings, name: str) -> Outcome:
    from sightline.runtime import known_profile
    from sightline.settings.upstreams import by_name, directory
    from sightline.wire import WIRES

    split = _split(name)
    if isinstance(split, Refusal):
        return split
    found = directory(settings)
    if isinstance(found, Refusal):
        return found
    upstream = by_name(found.named, split[0])
    if upstream is None:
        known = ", ".join(sorted(found.named))
        return Refusal("not_found", f"there is no upstream named {split[0]!r}", f"known: {known}")
    with opened(settings) as record:
        seen = {wire.name: known_profile(settings, record, upstream, wire.name, split[1]) for wire in WIRES}
    said: dict[str, Json] = {
        wire: {"vision": each.vision, "why": each.why, "sibling": each.sibling} for wire, each in seen.items()
    }
    spoken = {wire: each for wire, each in seen.items() if wire in upstream.bases}
    return CliAnswer({"model": name, "wires": said}, _ways(name, spoken or seen))


def _ways(name: str, seen: Mapping[WireName, Profile]) -> Iterator[str]:
    """Say once what is the same on several wires."""
    same: dict[tuple[bool | None, str], list[str]] = {}
    for wire, each in seen.items():
        same.setdefault((each.vision, each.why), []).append(wire)
    for (vision, why), wires in same.items():
        yield f"{name} {_SIGHT[vision]} on {', '.join(wires)}: {why}"


_SIGHT = {True: "sees", False: "is blind", None: "is taken as seeing until it refuses an image"}


def _split(name: str) -> tuple[str, str] | Refusal:
    upstream, slash, model = name.partition("/")
    if not (upstream and slash and model):
        return Refusal("invalid_input", f"{name!r} names no model", "write UPSTREAM/MODEL")
    return upstream, model


def _names(settings: Settings, upstream: str) -> set[str]:
    """Return the names of an upstream, the user's own and that of its address: lessons may be under either."""
    from sightline.settings.upstreams import directory, names_of, receiver

    found = directory(settings)
    own = found.named.get(upstream) if upstream in settings.upstreams and not isinstance(found, Refusal) else None
    return {upstream, *([receiver(own)] if own else names_of(settings, upstream))}


def _forget_lessons(policy: PolicyStore, upstreams: Iterable[str], model: str) -> bool | Refusal:
    found = [policy.forget_lesson(each, model) for each in upstreams]
    return next((each for each in found if isinstance(each, Refusal)), any(found))


def _forget(settings: Settings, name: str) -> Outcome:
    split = _split(name)
    if isinstance(split, Refusal):
        return split
    upstream, model = split
    with kept(settings) as record:
        known = (
            record if isinstance(record, Refusal) else _forget_lessons(record.policy, _names(settings, upstream), model)
        )
    if isinstance(known, Refusal):
        return known
    if not known:
        return Refusal("not_found", f"nothing was learnt about {name}", "config show lists it")
    return CliAnswer({"forgotten": name}, [f"forgotten: {name}"])


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
