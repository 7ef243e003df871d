"""`sightline probe`: does a model really see? It is shown what nobody can guess, and what was found is remembered."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, get_args

from sightline.cli.verb import add_json, answer, refused, warn
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal
from sightline.settings import Settings, load

if TYPE_CHECKING:
    from sightline.engine.trial import Trial
    from sightline.model.scene import Json
    from sightline.model.upstream import Upstream

EXAMPLE = """  sightline probe --base-url http://127.0.0.1:11434/v1 --model qwen3-vl
  sightline probe --base-url https://api.deepseek.com --model deepseek-flash --json
  sightline probe --base-url https://gateway.example/v1 --model m --wire openai_responses --api-key-env GATEWAY_KEY"""

_SECONDS = 120.0
_PLACES: Mapping[str, str] = {
    "user": "in a user's message",
    "tool": "in a tool's result",
    "hoisted": "moved out of a tool's result",
    "bridged": "moved, behind a word of the assistant",
}


def arguments(parser: ArgumentParser) -> None:
    wires = get_args(WireName)
    parser.add_argument("--base-url", metavar="URL", required=True, help="of the endpoint, or the NAME of an upstream")
    parser.add_argument("--model", metavar="M", required=True, help="that is asked there")
    parser.add_argument("--wire", metavar="W", choices=wires, help=f"{', '.join(wires)}; default: by the address")
    parser.add_argument("--api-key-env", metavar="VAR", help="the variable that holds the key; default: the usual one")
    parser.add_argument("--timeout", metavar="SECONDS", type=_seconds, default=_SECONDS, help="for each answer")
    add_json(parser)


def _seconds(text: str) -> float:
    """For argparse, which prints what is wrong with it."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 3600:
        raise ArgumentTypeError(f"{text!r:.40} is not a number of seconds up to 3600")
    return number


def run(args: Namespace) -> int:
    import asyncio

    from sightline.look.upstreams import reached

    settings = load()
    warn(settings.warnings)
    upstream = reached(settings, args.base_url)
    if isinstance(upstream, Refusal):
        return refused(upstream, as_json=args.json)
    key = _key(settings, upstream, args.api_key_env)
    if isinstance(key, Refusal):
        return refused(key, as_json=args.json)
    if not key and upstream.key_variables and not upstream.on_loopback:
        return refused(_keyless(upstream), as_json=args.json)
    wire = args.wire or _spoken(upstream, args.base_url)
    trial = asyncio.run(_tried(settings, upstream, wire, args.model, key, args.timeout))
    remembered = _remembered(settings, upstream.name, args.model, trial)
    found = _found(trial, upstream.name, args.model, remembered=remembered)
    user = trial.findings["user"]
    if user.verdict != "could not tell":
        return answer(found, _lines(trial, upstream.name, args.model, remembered=remembered), as_json=args.json)
    remedy = "" if key or upstream.on_loopback else "give its key by --api-key-env"
    no = Refusal("unavailable", f"whether {upstream.name}/{args.model} sees is not known: {user.why}", remedy)
    return refused(no, found, as_json=args.json)


def _keyless(upstream: Upstream) -> Refusal:
    """Nobody answers without one: nothing is sent to find that out."""
    how = f"set {upstream.key_variables[0]}, or name another variable by --api-key-env"
    return Refusal("unavailable", f"there is no key for {upstream.name}", how)


def _key(settings: Settings, upstream: Upstream, variable: str | None) -> str | Refusal:
    if variable is None:
        return upstream.api_key or settings.variable(upstream.key_variables)
    return settings.variable((variable,)) or Refusal(
        "not_found", f"{variable} is not set", "export it, or leave it out"
    )


def _spoken(upstream: Upstream, address: str) -> WireName:
    """The wire that the address is a known base of; else the first of a known provider; else the one most speak."""
    from sightline.profiles.presets import PRESETS

    preset = PRESETS.get(upstream.preset)
    known = preset.bases if preset else {}
    there = [wire for wire, base in known.items() if base.rstrip("/") == address.rstrip("/")]
    wires: list[WireName] = there or list(known)
    return "openai_chat" if "openai_chat" in wires or not wires else wires[0]


async def _tried(settings: Settings, upstream: Upstream, wire: WireName, model: str, key: str, seconds: float) -> Trial:
    from sightline.dial import Dialler
    from sightline.engine.trial import Examiner
    from sightline.look.whole import proxies
    from sightline.model.upstream import joined

    dialler = Dialler(proxies(settings.environment))
    headers = dict([upstream.credential(wire, key)]) if key else {}
    base = upstream.base(wire)
    try:
        return await Examiner(
            dialler, lambda path: joined(base, path), wire, model, headers, secret=key, seconds=seconds
        ).examine()
    finally:
        await dialler.close()


def _remembered(settings: Settings, upstream: str, model: str, trial: Trial) -> bool:
    """Return whether what was found is in the record, for the next program that opens it."""
    from sightline.cli.memory import opened

    lesson = trial.lesson
    if lesson is None or settings.record == "memory":
        return False
    with opened(settings) as record:
        return record.policy.keep_lesson(upstream, model, lesson, trial.days) is None


def _found(trial: Trial, upstream: str, model: str, *, remembered: bool) -> dict[str, Json]:
    lesson = trial.lesson
    return {
        "upstream": upstream,
        "model": model,
        "wire": trial.wire,
        "places": {place: {"verdict": each.verdict, "why": each.why} for place, each in trial.findings.items()},
        "sees": None if lesson is None else not lesson.blind,
        "tool_images": lesson.tool_images.get(trial.wire) if lesson else None,
        "remembered": remembered,
    }


def _lines(trial: Trial, upstream: str, model: str, *, remembered: bool) -> Iterator[str]:
    from sightline.cli.memory import words

    yield f"{upstream}/{model} on {trial.wire}, each time shown a new picture that cannot be guessed:"
    for place, each in trial.findings.items():
        yield f"  {_PLACES[place]:<38} {each.verdict} ({each.why})"
    lesson = trial.lesson
    assert lesson is not None
    until = f"for {trial.days:.0f} days, or until: sightline config forget {upstream}/{model}"
    yield f"found: {words(lesson)}"
    yield f"remembered {until}" if remembered else "not remembered: the record could not be written"
