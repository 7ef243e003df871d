"""`sightline config`: the settings, what decided each, and what was learnt about models."""

from __future__ import annotations

import json
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sightline.cli.memory import kept, learnt, opened
from sightline.cli.verb import add_json, answer, refused, warn
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

_KEY = "the name of a setting; `sightline config show` lists them"
_DEFAULT = ("", "default")  # what people write who want a setting to be as if they had never set it


def arguments(parser: ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="show|get|set|unset|model|forget", required=True)
    show = actions.add_parser("show", help="every setting and what was learnt about models")
    get = actions.add_parser("get", help="one setting")
    get.add_argument("key", metavar="KEY", help=_KEY)
    put = actions.add_parser("set", help="change one setting in the file")
    put.add_argument("key", metavar="KEY", help=_KEY)
    put.add_argument("value", metavar="VALUE", help="- reads it from standard input, as a key should be")
    drop = actions.add_parser("unset", help="take one setting out of the file: its default counts again")
    drop.add_argument("key", metavar="KEY", help=_KEY)
    model = actions.add_parser("model", help="what is known of a model, and the rule that decided it")
    model.add_argument("model", metavar="UPSTREAM/MODEL")
    forget = actions.add_parser("forget", help="forget what was learnt about a model")
    forget.add_argument("model", metavar="UPSTREAM/MODEL")
    for action in (show, get, put, drop, model, forget):
        add_json(action)


def run(args: Namespace) -> int:
    settings = load()
    warn(settings.warnings)
    match args.action:
        case "show":
            return _show(settings, as_json=args.json)
        case "get":
            return _get(settings, args.key, as_json=args.json)
        case "set":
            return _set(settings, args.key, args.value, as_json=args.json)
        case "unset":
            return _unset(settings, args.key, as_json=args.json)
        case "model":
            return _model(settings, args.model, as_json=args.json)
        case _:
            return _forget(settings, args.model, as_json=args.json)


def _show(settings: Settings, *, as_json: bool) -> int:
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
    return answer(found, _lines(settings, lessons), as_json=as_json)


def _lines(settings: Settings, lessons: list[Json]) -> Iterator[str]:
    yield f"settings file: {settings.file}"
    width = max(len(key.name) for key in KEYS)
    for key in KEYS:
        yield f"  {key.name:<{width}} {_text(settings.shown(key.name)) or 'not set':<12} ({settings.sources[key.name]})"
    from sightline.look.upstreams import called

    yield "learnt about models:" if lessons else "learnt about models: nothing"
    for lesson in lessons:
        assert isinstance(lesson, dict)
        model = called(settings, f"{lesson['upstream']}/{lesson['model']}")
        yield f"  {model}: {lesson['learnt']} ({lesson['why']})"


def _get(settings: Settings, name: str, *, as_json: bool) -> int:
    key = find(name)
    if isinstance(key, Refusal):
        return refused(key, as_json=as_json)
    value, source = settings.shown(name), settings.sources[name]
    return answer({"key": name, "value": value, "source": source}, _text(value).split("\n"), as_json=as_json)


def _set(settings: Settings, name: str, text: str, *, as_json: bool) -> int:
    value = sys.stdin.readline().strip() if text == "-" else text
    if value is text and settings.is_secret(name, text):
        warn([f"the key may stand in your shell's history now; `sightline config set {name} -` reads standard input"])
    if refusal := settings.save(name, value):
        back = refusal.code == "invalid_input" and value in _DEFAULT
        return refused(replace(refusal, remedy=f"sightline config unset {name}") if back else refusal, as_json=as_json)
    return _now(settings, name, f"in {settings.file}", as_json=as_json)


def _unset(settings: Settings, name: str, *, as_json: bool) -> int:
    if refusal := settings.unset(name):
        return refused(refusal, as_json=as_json)
    return _now(settings, name, "by default", as_json=as_json)


def _now(settings: Settings, name: str, where: str, *, as_json: bool) -> int:
    """What a setting is, now that it has been changed."""
    shown = load(settings.environment).shown(name)
    found: Mapping[str, Json] = {"key": name, "value": shown, "file": str(settings.file)}
    return answer(found, [f"{name} is {_text(shown) or 'empty'} {where}"], as_json=as_json)


def _model(settings: Settings, name: str, *, as_json: bool) -> int:
    from sightline.cli import compose
    from sightline.look.upstreams import by_name
    from sightline.wire import WIRES

    split = _split(name)
    if isinstance(split, Refusal):
        return refused(split, as_json=as_json)
    found = compose.directory(settings)
    if isinstance(found, Refusal):
        return refused(found, as_json=as_json)
    upstream = by_name(found.named, split[0])
    if upstream is None:
        known = ", ".join(sorted(found.named))
        return refused(
            Refusal("not_found", f"there is no upstream named {split[0]!r}", f"known: {known}"), as_json=as_json
        )
    with opened(settings) as record:
        seen = {wire.name: compose.profile(settings, record, upstream, wire.name, split[1]) for wire in WIRES}
    said: dict[str, Json] = {
        wire: {"vision": each.vision, "why": each.why, "sibling": each.sibling} for wire, each in seen.items()
    }
    spoken = {wire: each for wire, each in seen.items() if wire in upstream.bases}
    return answer({"model": name, "wires": said}, _ways(name, spoken or seen), as_json=as_json)


def _ways(name: str, seen: Mapping[WireName, Profile]) -> Iterator[str]:
    """What is the same on several wires is said once."""
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
    """What an upstream of the user's is called by them, and by its address: lessons may stand under either."""
    from sightline.look.upstreams import directory, names_of, receiver

    found = directory(settings)
    own = found.named.get(upstream) if upstream in settings.upstreams and not isinstance(found, Refusal) else None
    return {upstream, *([receiver(own)] if own else names_of(settings, upstream))}


def _forgotten(policy: PolicyStore, upstreams: Iterable[str], model: str) -> bool | Refusal:
    found = [policy.forget_lesson(each, model) for each in upstreams]
    return next((each for each in found if isinstance(each, Refusal)), any(found))


def _forget(settings: Settings, name: str, *, as_json: bool) -> int:
    split = _split(name)
    if isinstance(split, Refusal):
        return refused(split, as_json=as_json)
    upstream, model = split
    with kept(settings) as record:
        known = record if isinstance(record, Refusal) else _forgotten(record.policy, _names(settings, upstream), model)
    if isinstance(known, Refusal):
        return refused(known, as_json=as_json)
    if not known:
        return refused(
            Refusal("not_found", f"nothing was learnt about {name}", "config show lists it"), as_json=as_json
        )
    return answer({"forgotten": name}, [f"forgotten: {name}"], as_json=as_json)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
