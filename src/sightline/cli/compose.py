"""Put the surfaces on a runtime: the proxy, and the tools for MCP hosts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import cast

from sightline.api.results import Refused
from sightline.api.session import Door, Turns
from sightline.api.toolset import call, tools
from sightline.commands.answer import answer_text
from sightline.model.receipt import Receipt
from sightline.model.scene import Json
from sightline.model.upstream import Visitor, is_loopback
from sightline.runtime import Runtime, grant_network, known_profile, shared_workers
from sightline.server import App
from sightline.settings import Settings
from sightline.sources.file import Policy, policy_for
from sightline.surfaces.mcp.clients import Terms
from sightline.surfaces.mcp.http import Mount
from sightline.surfaces.proxy.app import Proxy
from sightline.surfaces.proxy.commands import Commands
from sightline.surfaces.proxy.headers import ANYBODY, CREDENTIALS
from sightline.surfaces.proxy.middleware import serve_mounts
from sightline.surfaces.proxy.telemetry import Metrics, RequestLog
from sightline.surfaces.proxy.tool_loop import Tools
from sightline.vision.chooser import Caller
from sightline.wire.tool_loop import Offer, Result

NOWHERE = Policy(roots=())
MCP = "/mcp"
_CALLERS = 1024  # credentials whose calls over MCP are counted


def under(settings: Settings, root: Path) -> Policy:
    """One folder and nothing else; Sightline's own files are closed there, too."""
    return policy_for(root, None, (), None, closed=(settings.file, settings.folder))


def reaches(settings: Settings, root: Path | None, host: str) -> tuple[Policy, Policy | None]:
    """Which files a command may name to a proxy that listens on `host`, and which may be counted on to be there.

    Whoever calls from this machine works on its files; a path that comes from another one means nothing here.
    """
    named = under(settings, root) if root else NOWHERE
    return named, None if root is None and is_loopback(host) else named


def proxy(
    whole: Runtime,
    say: Callable[[Receipt], None] = lambda receipt: None,
    patience: float = 10.0,
    token: str = "",
    reach: Policy = NOWHERE,
    request_log: RequestLog | None = None,
    metrics: Metrics | None = None,
    mcp: Mount | None = None,
) -> Proxy:
    commands = Commands(partial(_commanded, whole, reach))
    mounts = {} if mcp is None else _mounted(mcp)
    tools = Tools(offers(whole), partial(_called, whole, reach, Turns()))
    rooms = (whole.engine, whole.dialler, whole.directory, whole.record)
    memory = None if mcp is None else mcp.memory
    return Proxy(*rooms, say, patience, token, commands, request_log, tools, metrics, mounts, memory)


def only(mount: Mount, token: str = "") -> App:
    """The tools for MCP hosts and nothing else."""
    return serve_mounts(_mounted(mount), token)


def _mounted(mount: Mount) -> dict[str, Mount]:
    return {MCP: mount, f"{MCP}/": mount}


def mcp(whole: Runtime, reach: Policy = NOWHERE, token: str = "", *, alone: bool = True) -> Mount:
    """The tools for MCP hosts. A host that has to bring a token is somebody else's, who agrees to nothing here.

    `alone`: no other process answers at the same address; else who answers a question may meet one that has not asked.
    """
    turns = lru_cache(_CALLERS)(lambda scope: Turns())
    anybody = partial(whole.record.scope_of, ANYBODY)
    terms = Terms(partial(_served, whole, reach, turns), consents=alone and not token, anybody=anybody)
    return Mount(terms, stateless=not alone, offload=whole.engine.thread)


def _served(whole: Runtime, reach: Policy, turns: Callable[[str], Turns], headers: Mapping[str, str]) -> Door:
    """With what was seen under the same credential, and no file beyond `reach`; its calls are counted.

    Whoever has none is anybody: what such clients have seen is theirs who know its sha256, and only what stands under
    `reach` is listed, unless the user lets all of it be.
    """
    credential = next(filter(None, (headers.get(name.decode(), "") for name in CREDENTIALS)), ANYBODY)
    scope = whole.record.scope_of(credential)
    door = _door(whole, reach, scope, turns=turns(scope))
    is_known = credential != ANYBODY or whole.settings.list_images == "all"
    return door if is_known else replace(door, here=reach.roots)


def offers(whole: Runtime) -> Callable[[bool], Sequence[Offer]]:
    """The tools that a model is offered in its conversation: whoever sees gets none, unless the user wants it so."""
    wanted = whole.settings.tool
    listed = {str(each["name"]): each for each in tools(_door(whole, NOWHERE, whole.record.scope_of("")))}
    blind, seeing = (
        [_offer(listed[name]) for name in names if name in listed and wanted != "off"]
        for names in (("analyze_image",), ("analyze_image", "view_image"))
    )
    return lambda sees: blind if not sees else seeing if wanted == "on" else []


def _offer(tool: dict[str, Json]) -> Offer:
    return Offer(str(tool["name"]), str(tool["description"]), cast("dict[str, Json]", tool["parameters"]))


def _called(
    whole: Runtime, reach: Policy, turns: Turns, name: str, arguments: Json, visitor: Visitor, model: str, turn: str
) -> Result:
    """A model's call, on behalf of its client: what that may see, and no file beyond `reach`."""
    known = known_profile(whole.settings, whole.record, visitor.upstream, visitor.wire, model)
    own = f"{visitor.scope} {turn}"  # the same words of another client are another turn
    outcome = call(_door(whole, reach, visitor.scope, Caller(visitor, known), own, turns), name, arguments)
    blocks = [each for each in outcome.content() if isinstance(each, dict)]
    text = "\n".join(str(each["text"]) for each in blocks if "text" in each)
    images = tuple((str(each["mimeType"]), str(each["data"])) for each in blocks if "data" in each)
    return Result(text, images, failed=isinstance(outcome, Refused))


def _door(
    whole: Runtime,
    reach: Policy,
    scope: str,
    caller: Caller | None = None,
    turn: str | None = None,
    turns: Turns | None = None,
) -> Door:
    return Door(
        whole.record,
        scope,
        reach,
        shared_workers(),
        toolset=whole.settings.toolset,
        network=grant_network(network=whole.settings.network),
        settings=whole.settings,
        caller=caller,
        turn=turn,
        turns=turns or Turns(),
    )


def _commanded(whole: Runtime, reach: Policy, text: str, visitor: Visitor, model: str, images: Sequence[str]) -> str:
    """What is typed into a conversation is answered with what its client may see, and no file beyond `reach`."""
    known = known_profile(whole.settings, whole.record, visitor.upstream, visitor.wire, model)
    return answer_text(text, _door(whole, reach, visitor.scope, Caller(visitor, known)), images)
