"""`sightline doctor`: what is set up, what is missing, and how to point each agent at the proxy."""

from __future__ import annotations

import platform
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sightline import __version__
from sightline.agents import AGENTS, explain_omission
from sightline.cli.proxy_server import DEFAULT_PORT, format_url, read_port
from sightline.cli.terminal import add_json, print_result, show_progress
from sightline.cli.verbs import list_lessons, measure_record, open_record, silence_warnings
from sightline.model.profile import API_TITLES, Upstream
from sightline.model.refusal import Refusal
from sightline.model.seer import LOCAL_SEER
from sightline.model.shared_address import mask_address
from sightline.settings import Settings, load_settings

if TYPE_CHECKING:
    from sightline.runtime import Runtime
    from sightline.vision.providers import VisionModel

EXAMPLE = "  sightline doctor"

Report = dict[str, Any]
_CHECK_SECONDS = 10.0  # for the check of the record


def add_arguments(parser: ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument(
        "--port", type=read_port, default=DEFAULT_PORT, metavar="P",
        help=f"the port of the proxy to look for, with the token in SIGHTLINE_TOKEN; default: {DEFAULT_PORT}",
    )  # fmt: skip


def run(args: Namespace) -> int:
    settings, proxy_url = load_settings(), format_url("127.0.0.1", args.port)
    with silence_warnings("sightline.store"):  # the answer says what is wrong with the record
        trouble, health = _check_record(settings)
        report = _build_report(settings, proxy_url, health)
    return print_result(report, _list_lines(settings, report, proxy_url), as_json=args.json, trouble=trouble)


def _build_report(settings: Settings, proxy_url: str, health: Report) -> Report:
    live = _report_live(settings, proxy_url)
    return {
        "version": __version__,
        "python": platform.python_version(),
        "settings": _report_settings(settings),
        "record": _report_record(settings, health),
        "upstreams": _report_upstreams(settings),
        **live,
        "others": _list_litellm_providers(),
        "mcp": find_spec("mcp") is not None,
        "agents": _report_agents(settings, proxy_url, is_running=live["listening"] is not None),
    }


def _report_settings(settings: Settings) -> Report:
    exists = settings.file.is_file()
    warnings = [*settings.warnings, *settings.advice]
    network = "on" if settings.network else "off"
    return {
        "file": str(settings.file), "exists": exists, "mode": settings.mode, "network": network, "warnings": warnings
    }  # fmt: skip


def _report_record(settings: Settings, health: Report) -> Report:
    with open_record(settings) as record:
        known = {
            "learnt": list_lessons(record.policy),
            "consents": {**record.policy.read_consents()},
            "omissions": [
                {"client": one.client, "model": one.model, "at": one.at}
                for one in record.conversations.list_omissions()
            ],
        }
    if settings.shared_address:
        return {"kind": "servers", "store": mask_address(settings.store), "blobs": settings.blobs, **health, **known}
    if settings.record == "memory":
        return {"kind": "memory", **known}
    return {"kind": "disk", "folder": str(settings.record_folder), "bytes": measure_record(settings), **health, **known}


def _check_record(settings: Settings) -> tuple[Refusal | None, Report]:
    """Check the record: return what is wrong with it, and its part of the report."""
    from sightline.store import open_server_record
    from sightline.store.record_folder import check_health

    if settings.shared_address:
        opened = open_server_record(settings.shared_address)
        if isinstance(opened, Refusal):
            return opened, {"trouble": str(opened)}
        opened.close()
        return None, {"trouble": None}
    if settings.record == "memory":
        return None, {}
    with show_progress("checking the record …"):
        found = check_health(settings.record_folder, _CHECK_SECONDS)
    trouble = found.refusal
    if trouble is None and found.missing_images:
        what = f"the bytes of {found.missing_images} image{'s'[: found.missing_images > 1]} are missing"
        trouble = Refusal("corrupt", what, "run: sightline store repair")
    message = str(found.refusal) if found.refusal else None
    return trouble, {"trouble": message, "missing": found.missing_images, "checked": found.is_complete}


def _report_upstreams(settings: Settings) -> Report:
    from sightline.settings.upstreams import build_directory

    found = build_directory(settings)
    if isinstance(found, Refusal):
        return {}
    return {name: _report_upstream(settings, each) for name, each in sorted(found.by_name.items())}


def _report_upstream(settings: Settings, upstream: Upstream) -> Report:
    from sightline.vision.providers import find_upstream_key

    key_name, key = find_upstream_key(settings, upstream)
    return {
        "bases": {**upstream.bases},
        "key": bool(key),
        "key_name": key_name or None,
        "variables": [*upstream.key_variables],
        "configured": upstream.name in settings.upstreams,
    }


def _report_live(settings: Settings, proxy_url: str) -> Report:
    """Report what only servers on this machine can tell."""
    import asyncio

    from sightline.runtime import build_runtime

    runtime = build_runtime(settings)
    if isinstance(runtime, Refusal):
        return {"listening": None, "vision_model": None, "seers": [{"refusal": str(runtime)}], "providers": {}}
    return asyncio.run(_probe_live(runtime, proxy_url))


async def _is_listening(runtime: Runtime, proxy_url: str) -> bool:
    from sightline.surfaces.proxy.http_headers import TOKEN_HEADER

    name = TOKEN_HEADER.decode()
    token = runtime.settings.environment.get("SIGHTLINE_TOKEN", "").encode().decode("latin-1")
    health = await runtime.http_client.ask(
        "GET", f"{proxy_url}/sightline/health", {name: token} if token else {}, b"", 1.0
    )
    if isinstance(health, Refusal):
        return False
    return health.status == 200 or TOKEN_HEADER in health.body  # or it asks for the token


async def _probe_live(runtime: Runtime, proxy_url: str) -> Report:
    from sightline.vision.chooser import explain_no_seer

    try:
        listening = await _is_listening(runtime, proxy_url)
        # As for a text-only model whose provider has no vision model.
        chosen = await (await runtime.chooser.choose()).list_all()
        providers = await _report_providers(runtime)
        local = runtime.chooser.find_local()
        has_no_seer = isinstance(local, Refusal) and [each.refusal for each in chosen] == [explain_no_seer(local)]
        seers = [] if has_no_seer else [each.seer for each in chosen]  # the printed lines say so
    finally:
        await runtime.close()
    return {
        "listening": proxy_url if listening else None,
        "vision_model": _report_vision_model(runtime.providers.configured),
        "seers": [{"refusal": str(s)} if isinstance(s, Refusal) else {"name": s.name} for s in seers],
        "providers": providers,
    }


def _report_vision_model(model: VisionModel | Refusal | None) -> Report | None:
    """Report which model the settings name, where it is asked, and which setting or variable has its key."""
    if model is None or isinstance(model, Refusal) or not model.upstream.bases:
        return None
    from sightline.vision.providers import get_base_wire

    address = model.upstream.get_base(get_base_wire(model.wire))
    return {"name": model.display_name, "address": address, "wire": model.wire, "key_name": model.key_name or None}


async def _report_providers(runtime: Runtime) -> Report:
    """Report which providers can be asked by name now, and why the others cannot."""
    from sightline.vision.seers.loopback import LOOPBACK_SERVERS

    seeing = {each.server for each in await runtime.chooser.search_loopback()}
    found: Report = {}
    for name, each in sorted(runtime.providers.by_name.items()):
        if name == each.provider != each.upstream.name in runtime.settings.upstreams:
            continue  # it is listed under the name that the user gave it
        why = [str(obstacle) for obstacle in runtime.chooser.find_obstacles(each)]
        is_local, base = each.upstream.is_on_loopback, each.upstream.get_base("openai_chat")
        if is_local and name in LOOPBACK_SERVERS and name not in seeing:
            why = [f"no vision model answers at {base}"]
        elif is_local and isinstance(await runtime.http_client.ask("GET", f"{base}/models", {}, b"", 1.0), Refusal):
            why = [f"there is no answer from {base}"]
        found[name] = {"receiver": each.provider, "wire": each.wire, "key": is_local or bool(each.api_key), "why": why}
    local = runtime.chooser.find_local()
    why = [str(local)] if isinstance(local, Refusal) else []
    return {**found, LOCAL_SEER: {"receiver": LOCAL_SEER, "wire": None, "key": True, "why": why}}


def _list_litellm_providers() -> list[str]:
    """List the providers that need the extra `providers`. LiteLLM finds their keys itself, and is not imported here."""
    from sightline.vision.seers.litellm_client import LITELLM_PROVIDERS, is_installed

    return sorted(LITELLM_PROVIDERS) if is_installed() else []


def _report_agents(settings: Settings, proxy_url: str, *, is_running: bool) -> Report:
    """Report how each agent is pointed at the running proxy, as its banner does, or started with one of its own."""
    path = settings.environment.get("PATH")
    return {
        name: {
            "title": agent.title,
            "installed": shutil.which(name, path=path) is not None,
            "point": agent.render(proxy_url).brief if is_running else f"sightline run -- {name}",
        }
        for name, agent in AGENTS.items()
    }


def _list_lines(settings: Settings, report: Report, proxy_url: str) -> Iterator[str]:
    from sightline.settings.upstreams import format_provider

    shown, record = report["settings"], report["record"]
    yield f"sightline {report['version']}, Python {report['python']}"
    yield f"settings   {shown['file']}{'' if shown['exists'] else ' (does not exist; the defaults apply)'}"
    yield from (f"  warning: {warning}" for warning in shown["warnings"])
    yield f"mode       {shown['mode']}"
    fetched = "are fetched" if shown["network"] == "on" else "are not fetched (sightline config set network on)"
    yield f"network    {shown['network']}: images at web addresses {fetched}"
    yield f"record     {_describe_place(record)}"
    yield from _list_record_lines(record)
    yield f"proxy      {report['listening'] or f'not running on {proxy_url}; start it with: sightline serve'}"
    tools = "`sightline mcp` serves MCP hosts" if report["mcp"] else "not installed: pip install 'sightline[mcp]'"
    yield f"mcp        {tools}"
    if (model := report["vision_model"]) is not None:
        key = f"with the key in {model['key_name']}" if model["key_name"] else "without a key"
        api = "Ollama's own API" if model["wire"] == "ollama" else API_TITLES.get(model["wire"], "LiteLLM")
        yield f"seer       {model['name']} at {model['address']}, through {api}, {key}"
    yield "seers      a vision model of the same provider if it has one, otherwise:"
    yield from (
        f"  {format_provider(settings, seer['name']) if 'name' in seer else seer['refusal']}"
        for seer in report["seers"]
    )
    if not report["seers"]:
        yield "  none: name one with `sightline config set seer PROVIDER/MODEL`, or start one in Ollama"
    yield from _list_provider_lines(report["providers"])
    if report["others"]:
        yield f"  through LiteLLM, with the keys of their own tools: {', '.join(report['others'])}"
    yield from _list_upstream_lines(report["upstreams"])
    yield f"learnt     {'' if record['learnt'] else 'nothing'}".rstrip()
    for one in record["learnt"]:
        model = format_provider(settings, f"{one['upstream']}/{one['model']}")
        yield f"  {model}: {one['learnt']} ({one['why']})"
    answers = record["consents"].items()
    consents = [f"{'yes' if given else 'no'} to {format_provider(settings, provider)}" for provider, given in answers]
    yield f"consents   {', '.join(consents) or 'none'}"
    yield from _list_omission_lines(record["omissions"])
    yield "agents"
    for agent in report["agents"].values():
        yield f"  {agent['title']:<12} {'' if agent['installed'] else '(not installed) '}{agent['point']}"


def _describe_place(record: Report) -> str:
    match record["kind"]:
        case "disk":
            return f"{record['folder']} ({record['bytes'] / 1e6:.1f} MB)"
        case "servers":
            return f"{record['store']} and {record['blobs']}"
        case _:
            return "in memory"


def _list_record_lines(record: Report) -> Iterator[str]:
    """List what is wrong with the record, and how to repair it."""
    if record.get("trouble"):
        yield f"  {record['trouble']}"
    if missing := record.get("missing"):
        yield f"  the bytes of {missing} image{'s'[: missing > 1]} are missing (run: sightline store repair)"
    if not record.get("checked", True):
        yield "  it is large, so not all of it was checked"


def _list_omission_lines(omissions: list[Report]) -> Iterator[str]:
    """List clients that leave images out of their requests, which only the user can change."""
    if omissions:
        yield "left out"
    for one in omissions:
        seen = datetime.fromtimestamp(one["at"]).strftime("%Y-%m-%d")  # noqa: DTZ006, the user's local day
        yield f"  {explain_omission(one['client'], one['model'])} (last seen {seen})"


def _list_provider_lines(providers: Report) -> Iterator[str]:
    ready = [
        name if name == each["receiver"] else f"{name} ({each['receiver']})"
        for name, each in providers.items()
        if not each["why"]
    ]
    keyless = [name for name, each in providers.items() if not each["key"]]
    yield f"by name    PROVIDER/MODEL works now for: {', '.join(ready) or 'no provider'}"
    for name, each in providers.items():
        if each["why"] and each["key"]:
            prefix = f"not {name}: " if name != LOCAL_SEER else ""  # the reason names it
            yield f"  {prefix}{'; '.join(each['why'])}"
    if keyless:
        yield f"  no key set for: {', '.join(keyless)}"


def _list_upstream_lines(upstreams: Report) -> Iterator[str]:
    """List the user's upstreams and those with a key; of the others only the names."""
    yield "upstreams"
    shown = {name: each for name, each in upstreams.items() if each["key"] or each["configured"]}
    for name, each in shown.items():
        unset = f"no key in {' or '.join(each['variables']) or 'the settings'}"
        key = f"key in {each['key_name']}" if each["key"] else unset
        yield f"  {name:<12} {', '.join(dict.fromkeys(each['bases'].values()))} ({key})"
    yield f"  also by name, with the agent's own key: {', '.join(name for name in upstreams if name not in shown)}"
