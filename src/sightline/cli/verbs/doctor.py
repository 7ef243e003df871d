"""`sightline doctor`: what is set up, what is missing, and how to point each agent here."""

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
from sightline.cli.listening import DEFAULT_PORT, port, url_of
from sightline.cli.terminal import add_json, answer, progress
from sightline.cli.verbs import bytes_in, learnt, opened, quiet
from sightline.model.asking import LOCAL
from sightline.model.refusal import Refusal
from sightline.model.upstream import Upstream
from sightline.settings import Settings, load

if TYPE_CHECKING:
    from sightline.runtime import Runtime

EXAMPLE = "  sightline doctor"

Report = dict[str, Any]
_CHECK_SECONDS = 10.0  # for the check of the record


def arguments(parser: ArgumentParser) -> None:
    add_json(parser)
    parser.add_argument(
        "--port", type=port, default=DEFAULT_PORT, metavar="P",
        help=f"where a proxy is looked for, with the token in SIGHTLINE_TOKEN; default: {DEFAULT_PORT}",
    )  # fmt: skip


def run(args: Namespace) -> int:
    settings, here = load(), url_of("127.0.0.1", args.port)
    with quiet("sightline.store"):  # what is wrong with the record stands in the answer
        trouble, health = _health(settings)
        report = _report(settings, here, health)
    return answer(report, _lines(settings, report, here), as_json=args.json, trouble=trouble)


def _report(settings: Settings, here: str, health: Report) -> Report:
    return {
        "version": __version__,
        "python": platform.python_version(),
        "settings": _settings(settings),
        "record": _record(settings, health),
        "upstreams": _upstreams(settings),
        **_asked(settings, here),
        "others": _others(),
        "mcp": find_spec("mcp") is not None,
        "agents": _agents(settings, here),
    }


def _settings(settings: Settings) -> Report:
    there = settings.file.is_file()
    warnings = [*settings.warnings, *settings.advice]
    network = str(settings.json_values["network"])
    return {
        "file": str(settings.file), "exists": there, "mode": settings.mode, "network": network, "warnings": warnings
    }  # fmt: skip


def _record(settings: Settings, health: Report) -> Report:
    with opened(settings) as record:
        known = {
            "learnt": learnt(record.policy),
            "consents": {**record.policy.read_consents()},
            "omissions": [
                {"client": one.client, "model": one.model, "at": one.at}
                for one in record.conversations.list_omissions()
            ],
        }
    if settings.record == "memory":
        return {"kind": "memory", **known}
    return {"kind": "disk", "folder": str(settings.folder), "bytes": bytes_in(settings), **health, **known}


def _health(settings: Settings) -> tuple[Refusal | None, Report]:
    """Return what is wrong with the record, and what the report says about it."""
    from sightline.store.storage import check_health

    if settings.record == "memory":
        return None, {}
    with progress("checking the record …"):
        found = check_health(settings.folder, _CHECK_SECONDS)
    trouble = found.trouble
    if trouble is None and found.missing:
        what = f"the bytes of {found.missing} image{'s'[: found.missing > 1]} are missing"
        trouble = Refusal("corrupt", what, "run: sightline store repair")
    said = str(found.trouble) if found.trouble else None
    return trouble, {"trouble": said, "missing": found.missing, "checked": found.complete}


def _upstreams(settings: Settings) -> Report:
    from sightline.settings.upstreams import directory

    found = directory(settings)
    if isinstance(found, Refusal):
        return {}
    return {name: _upstream(settings, each) for name, each in sorted(found.named.items())}


def _upstream(settings: Settings, upstream: Upstream) -> Report:
    return {
        "bases": {**upstream.bases},
        "key": bool(upstream.api_key or settings.variable(upstream.key_variables)),
        "variables": [*upstream.key_variables],
        "configured": upstream.name in settings.upstreams,
    }


def _asked(settings: Settings, here: str) -> Report:
    """What can only be found out by asking around on this machine."""
    import asyncio

    from sightline.runtime import build_runtime

    whole = build_runtime(settings)
    if isinstance(whole, Refusal):
        return {"listening": None, "seers": [{"refusal": str(whole)}], "providers": {}}
    return asyncio.run(_ask(whole, here))


async def _listens(whole: Runtime, here: str) -> bool:
    from sightline.surfaces.proxy.headers import TOKEN

    name = TOKEN.decode()
    token = whole.settings.environment.get("SIGHTLINE_TOKEN", "").encode().decode("latin-1")
    health = await whole.dialler.ask("GET", f"{here}/sightline/health", {name: token} if token else {}, b"", 1.0)
    if isinstance(health, Refusal):
        return False
    return health.status == 200 or TOKEN in health.body  # which it asks for


async def _ask(whole: Runtime, here: str) -> Report:
    from sightline.vision.chooser import nobody

    try:
        listening = await _listens(whole, here)
        # As for a blind model whose upstream has no sibling that sees.
        chosen = await whole.chooser.choose()
        providers = await _providers(whole)
        local = whole.chooser.find_local()
        alone = isinstance(local, Refusal) and [each.refusal for each in chosen] == [nobody(local)]
        seers = [] if alone else [each.seer for each in chosen]  # as the lines say themselves
    finally:
        await whole.close()
    return {
        "listening": here if listening else None,
        "seers": [{"refusal": str(s)} if isinstance(s, Refusal) else {"name": s.name} for s in seers],
        "providers": providers,
    }


async def _providers(whole: Runtime) -> Report:
    """Of whom a model can be asked for by name now, and what stands in the way of the others."""
    from sightline.vision.seers.loopback import SERVERS

    seeing = {each.server for each in await whole.chooser.search_loopback()}
    found: Report = {}
    for name, each in sorted(whole.providers.known.items()):
        if name == each.provider != each.upstream.name in whole.settings.upstreams:
            continue  # it stands under the user's name for it
        why = [str(no) for no in whole.chooser.find_hindrances(each)]
        here, base = each.upstream.on_loopback, each.upstream.base("openai_chat")
        if here and name in SERVERS and name not in seeing:
            why = [f"no vision model answers at {base}"]
        elif here and isinstance(await whole.dialler.ask("GET", f"{base}/models", {}, b"", 1.0), Refusal):
            why = [f"nobody answers at {base}"]
        found[name] = {"receiver": each.provider, "wire": each.wire, "key": here or bool(each.api_key), "why": why}
    local = whole.chooser.find_local()
    why = [str(local)] if isinstance(local, Refusal) else []
    return {**found, LOCAL: {"receiver": LOCAL, "wire": None, "key": True, "why": why}}


def _others() -> list[str]:
    """The providers that only the extra `providers` reaches: it finds their keys itself, and is not loaded to ask."""
    from sightline.vision.seers.litellm import PROVIDERS, installed

    return sorted(PROVIDERS) if installed() else []


def _agents(settings: Settings, here: str) -> Report:
    path = settings.environment.get("PATH")
    return {
        name: {
            "title": agent.title,
            "installed": shutil.which(name, path=path) is not None,
            "point": "sightline run -- claude" if name == "claude" else agent.render(here).brief,
        }
        for name, agent in AGENTS.items()
    }


def _lines(settings: Settings, report: Report, here: str) -> Iterator[str]:
    from sightline.settings.upstreams import called

    shown, record = report["settings"], report["record"]
    yield f"sightline {report['version']}, Python {report['python']}"
    yield f"settings   {shown['file']}{'' if shown['exists'] else ' (not there: defaults)'}"
    yield from (f"  warning: {warning}" for warning in shown["warnings"])
    yield f"mode       {shown['mode']}"
    fetched = "are fetched" if shown["network"] == "on" else "are not fetched (sightline config set network on)"
    yield f"network    {shown['network']}: images at web addresses {fetched}"
    size = f"{record['folder']} ({record['bytes'] / 1e6:.1f} MB)" if record["kind"] == "disk" else "in memory"
    yield f"record     {size}"
    yield from _record_lines(record)
    yield f"proxy      {report['listening'] or f'does not listen on {here}; start it with: sightline serve'}"
    tools = "`sightline mcp` serves MCP hosts" if report["mcp"] else "not installed: pip install 'sightline[mcp]'"
    yield f"mcp        {tools}"
    yield "seers      the seeing sibling of the upstream where it has one; else:"
    yield from (
        f"  {called(settings, seer['name']) if 'name' in seer else seer['refusal']}" for seer in report["seers"]
    )
    if not report["seers"]:
        yield "  nobody: name one with `sightline config set model PROVIDER/MODEL`, or start one in Ollama"
    yield from _provider_lines(report["providers"])
    if report["others"]:
        yield f"  through LiteLLM, with the keys of their own tools: {', '.join(report['others'])}"
    yield from _upstream_lines(report["upstreams"])
    yield f"learnt     {'' if record['learnt'] else 'nothing'}".rstrip()
    for one in record["learnt"]:
        model = called(settings, f"{one['upstream']}/{one['model']}")
        yield f"  {model}: {one['learnt']} ({one['why']})"
    said = record["consents"].items()
    consents = [f"{'yes' if given else 'no'} to {called(settings, provider)}" for provider, given in said]
    yield f"consents   {', '.join(consents) or 'none'}"
    yield from _omission_lines(record["omissions"])
    yield "agents"
    for agent in report["agents"].values():
        yield f"  {agent['title']:<12} {'' if agent['installed'] else '(not installed) '}{agent['point']}"


def _record_lines(record: Report) -> Iterator[str]:
    """What is wrong with the record, and how it is put right."""
    if record.get("trouble"):
        yield f"  {record['trouble']}"
    if missing := record.get("missing"):
        yield f"  the bytes of {missing} image{'s'[: missing > 1]} are missing (run: sightline store repair)"
    if not record.get("checked", True):
        yield "  it is so large that not all of it was checked"


def _omission_lines(omissions: list[Report]) -> Iterator[str]:
    """Clients that keep images to themselves: nobody here can do anything about that but the user."""
    if omissions:
        yield "left out"
    for one in omissions:
        seen = datetime.fromtimestamp(one["at"]).strftime("%Y-%m-%d")  # noqa: DTZ006, the day where the user is
        yield f"  {explain_omission(one['client'], one['model'])} (last seen {seen})"


def _provider_lines(providers: Report) -> Iterator[str]:
    ready = [
        name if name == each["receiver"] else f"{name} ({each['receiver']})"
        for name, each in providers.items()
        if not each["why"]
    ]
    keyless = [name for name, each in providers.items() if not each["key"]]
    yield f"by name    PROVIDER/MODEL can look now at: {', '.join(ready) or 'nobody'}"
    for name, each in providers.items():
        if each["why"] and each["key"]:
            whose = f"not {name}: " if name != LOCAL else ""  # which says so itself
            yield f"  {whose}{'; '.join(each['why'])}"
    if keyless:
        yield f"  no key set for: {', '.join(keyless)}"


def _upstream_lines(upstreams: Report) -> Iterator[str]:
    """The user's own and those with a key; of the others the names."""
    yield "upstreams"
    shown = {name: each for name, each in upstreams.items() if each["key"] or each["configured"]}
    for name, each in shown.items():
        key = "key set" if each["key"] else f"no key in {' or '.join(each['variables']) or 'the settings'}"
        yield f"  {name:<12} {', '.join(dict.fromkeys(each['bases'].values()))} ({key})"
    yield f"  by name, with the agent's own key: {', '.join(name for name in upstreams if name not in shown)}"
