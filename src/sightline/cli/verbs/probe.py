"""`sightline probe`: test whether a model sees, with pictures that cannot be guessed, and remember the result."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, get_args

from sightline.cli.terminal import VerbOutcome, VerbResult, add_json, print_refusal, read_settings
from sightline.cli.verbs import describe_lesson, open_record
from sightline.model.profile import WireName
from sightline.model.refusal import Refusal

if TYPE_CHECKING:
    from sightline.model.profile import Upstream
    from sightline.model.scene import Json
    from sightline.settings import Settings
    from sightline.vision.model_probe import ProbeResult

EXAMPLE = """  sightline probe --base-url http://127.0.0.1:11434/v1 --model qwen3-vl
  sightline probe --base-url https://api.deepseek.com --model deepseek-flash --json
  sightline probe --base-url https://gateway.example/v1 --model m --wire openai_responses --api-key-env GATEWAY_KEY"""

_SECONDS = 120.0
_PLACES: Mapping[str, str] = {
    "user": "in a user's message",
    "tool": "in a tool's result",
    "hoisted": "moved out of a tool result",
    "bridged": "moved, after a message of the assistant",
}


def add_arguments(parser: ArgumentParser) -> None:
    wires = get_args(WireName)
    parser.add_argument("--base-url", metavar="URL", required=True, help="the endpoint, or the NAME of an upstream")
    parser.add_argument("--model", metavar="M", required=True, help="the model to test")
    parser.add_argument(
        "--wire", metavar="W", choices=wires, help=f"{', '.join(wires)}; default: chosen by the address"
    )
    parser.add_argument(
        "--api-key-env", metavar="VAR", help="the environment variable with the key; default: the usual one"
    )
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_read_seconds, default=_SECONDS, help="the limit for each answer"
    )
    add_json(parser)


def _read_seconds(text: str) -> float:
    """Return a number of seconds; argparse prints what is wrong with it."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number <= 3600:
        raise ArgumentTypeError(f"{text!r:.40} is not a number of seconds up to 3600")
    return number


def run(args: Namespace) -> VerbOutcome:
    import asyncio

    from sightline.settings.upstreams import resolve_upstream

    settings = read_settings()
    upstream = resolve_upstream(settings, args.base_url)
    if isinstance(upstream, Refusal):
        return upstream
    key = _find_key(settings, upstream, args.api_key_env)
    if isinstance(key, Refusal):
        return key
    wire = args.wire or _choose_wire(upstream, args.base_url)
    trial = asyncio.run(_examine(settings, upstream, wire, args.model, key, args.timeout))
    remembered = _remember(settings, upstream.name, args.model, trial)
    found = _build_fields(trial, upstream.name, args.model, remembered=remembered)
    user = trial.findings["user"]
    if user.verdict != "could not tell":
        return VerbResult(found, _list_lines(trial, upstream.name, args.model, remembered=remembered))
    remedy = "" if key or upstream.is_on_loopback else "name the variable that holds its key with --api-key-env"
    refusal = Refusal("unavailable", f"can't tell whether {upstream.name}/{args.model} sees: {user.why}", remedy)
    return print_refusal(refusal, found, as_json=args.json)


def _find_key(settings: Settings, upstream: Upstream, variable: str | None) -> str | Refusal:
    """Return the key; empty if none is needed."""
    if variable is not None:
        unset = Refusal("not_found", f"{variable} is not set", "export it, or leave out --api-key-env")
        return settings.find_variable((variable,)) or unset
    key = upstream.api_key or settings.find_variable(upstream.key_variables)
    if key or not upstream.key_variables or upstream.is_on_loopback:
        return key
    how = f"set {upstream.key_variables[0]}, or name another variable with --api-key-env"
    return Refusal("unavailable", f"there is no key for {upstream.name}", how)


def _choose_wire(upstream: Upstream, address: str) -> WireName:
    """Return the wire of a known address, else one of a known provider, else Chat Completions."""
    from sightline.profiles.presets import PRESETS

    preset = PRESETS.get(upstream.preset)
    known = preset.bases if preset else {}
    there = [wire for wire, base in known.items() if base.rstrip("/") == address.rstrip("/")]
    wires: list[WireName] = there or list(known)
    return "openai_chat" if "openai_chat" in wires or not wires else wires[0]


async def _examine(
    settings: Settings, upstream: Upstream, wire: WireName, model: str, key: str, seconds: float
) -> ProbeResult:
    from sightline.model.profile import join_url
    from sightline.runtime import build_http_client
    from sightline.vision.model_probe import ModelProbe

    http_client = build_http_client(settings)
    headers = dict([upstream.build_credential(wire, key)]) if key else {}
    base = upstream.get_base(wire)
    try:
        return await ModelProbe(
            http_client, lambda path: join_url(base, path), wire, model, headers, secret=key, seconds=seconds
        ).run()
    finally:
        await http_client.close()


def _remember(settings: Settings, upstream: str, model: str, trial: ProbeResult) -> bool:
    """Keep the result in the record, and return whether that worked."""
    lesson = trial.lesson
    if lesson is None or (settings.record == "memory" and not settings.shared_address):
        return False
    with open_record(settings) as record:
        return record.policy.keep_lesson(upstream, model, lesson, trial.lesson_days) is None


def _build_fields(trial: ProbeResult, upstream: str, model: str, *, remembered: bool) -> dict[str, Json]:
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


def _list_lines(trial: ProbeResult, upstream: str, model: str, *, remembered: bool) -> Iterator[str]:
    yield f"{upstream}/{model} on {trial.wire}, each time with a new picture that cannot be guessed:"
    for place, each in trial.findings.items():
        yield f"  {_PLACES[place]:<38} {each.verdict} ({each.why})"
    lesson = trial.lesson
    assert lesson is not None
    until = f"for {trial.lesson_days:.0f} days, or until: sightline config forget {upstream}/{model}"
    yield f"found: {describe_lesson(lesson)}"
    yield f"remembered {until}" if remembered else "not remembered: the record could not be written"
