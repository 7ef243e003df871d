"""Build the surfaces on a runtime: the proxy, and the MCP server at /mcp.

What tools, commands, the inspector and /sightline/prepare need is imported once the proxy listens, by `preload` in the
background or by the first request that needs it, so that the proxy listens sooner.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sightline.model.image import Image
from sightline.model.ports import Store
from sightline.model.profile import RequestOrigin, UpstreamDirectory, is_loopback
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.pixels.workers import WorkerPool
from sightline.profiles.rejections import PAGE_LIMIT, compile_pattern, compile_patterns
from sightline.runtime import (
    Runtime,
    find_model_profile,
    get_shared_workers,
    grant_network,
    grant_rendering,
)
from sightline.server import App, Receive, Scope, Send
from sightline.server.asgi import MemoryBudget
from sightline.settings import Settings
from sightline.settings.upstreams import build_directory
from sightline.sources.files import PathPolicy, build_path_policy
from sightline.surfaces.mcp import ClientTerms
from sightline.surfaces.mcp.http import McpMount
from sightline.surfaces.proxy.app import ChatCommands, Proxy
from sightline.surfaces.proxy.document_expander import DocumentExpander
from sightline.surfaces.proxy.http_headers import CREDENTIAL_HEADERS, NO_CREDENTIAL
from sightline.surfaces.proxy.middleware import serve_mounts
from sightline.surfaces.proxy.telemetry import Metrics, RequestLog
from sightline.surfaces.proxy.tool_loop import OwnTools
from sightline.vision.background_loop import once
from sightline.vision.capabilities import get_provider_name, may_take_pdf
from sightline.vision.chooser import Caller
from sightline.vision.concurrency import CallerQuotas, TurnQuota
from sightline.wire.image_bytes import compile_image_patterns
from sightline.wire.tool_loop import OwnResult, OwnTool

if TYPE_CHECKING:
    from sightline.api.session import ToolContext
    from sightline.surfaces.inspector import Inspector
    from sightline.surfaces.inspector.changes import InspectorAccess


NO_FILES = PathPolicy(roots=())
MCP_PATH = "/mcp"
PREPARE_PATH = "/sightline/prepare"
_MIN_KEY_LENGTH = 8  # characters: a shorter value is a placeholder such as `none`
_CALLERS = 1024  # credentials that have a quota for calls over MCP


def limit_to_folder(settings: Settings, root: Path) -> PathPolicy:
    """Return a policy that allows one folder, except Sightline's own files in it."""
    return build_path_policy(root, None, (), None, excluded=(settings.file, settings.record_folder))


def find_policies(settings: Settings, root: Path | None, host: str) -> tuple[PathPolicy, PathPolicy | None]:
    """Return the files that clients of a proxy on `host` may name, and those that their paths can refer to.

    A client on this machine works with its files; the paths of a client elsewhere mean nothing here.
    """
    named = limit_to_folder(settings, root) if root else NO_FILES
    return named, None if root is None and is_loopback(host) else named


def build_proxy(
    runtime: Runtime,
    timeout: float = 10.0,
    token: str = "",
    policy: PathPolicy = NO_FILES,
    request_log: RequestLog | None = None,
    metrics: Metrics | None = None,
    mcp: McpMount | None = None,
) -> Proxy:
    commands = ChatCommands(partial(_answer_command, runtime, policy))
    memory = MemoryBudget() if mcp is None else mcp.memory
    prepare_endpoint = _defer_app(partial(_build_prepare_endpoint, runtime, memory))
    mounts: dict[str, App] = {PREPARE_PATH: prepare_endpoint, **({} if mcp is None else _list_mounts(mcp))}
    tools = OwnTools(choose_offers(runtime), partial(_answer_call, runtime, policy, TurnQuota()))
    parts = (runtime.engine, runtime.http_client, partial(_find_directory, runtime), runtime.record)
    documents, inspector = _build_expander(runtime), _defer_app(partial(build_inspector, runtime))
    return Proxy(*parts, timeout, token, commands, request_log, tools, metrics, mounts, memory, documents, inspector)


def preload(proxy: Proxy) -> Iterator[None]:
    """Import and build, step by step, what requests would otherwise wait for on the event loop."""
    _import_after_start()
    yield
    if proxy.tools is not None:
        proxy.tools.list_offers(False)  # noqa: FBT003, as the port has it
    yield
    compile_pattern(PAGE_LIMIT)
    yield
    yield from compile_patterns()
    yield from compile_image_patterns()


@once
def _import_after_start() -> None:
    """Import what is only needed once the proxy listens.

    Whatever needs it calls this first: if one thread imports a package while another imports one of its modules, Python
    may raise a deadlock error.
    """
    import_module("difflib")
    import_module("importlib.resources")
    import_module("sightline.api.tool_registry")
    import_module("sightline.commands.execution")
    import_module("sightline.surfaces.inspector")
    import_module("sightline.surfaces.proxy.prepare_endpoint")


def _defer_app(build: Callable[[], App]) -> App:
    """Return an application that is built with its first request."""
    get_app = cache(build)

    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        return get_app()(scope, receive, send)

    return serve


def _build_prepare_endpoint(runtime: Runtime, memory: MemoryBudget) -> App:
    _import_after_start()
    from sightline.surfaces.proxy.prepare_endpoint import PrepareEndpoint

    return PrepareEndpoint(partial(_refresh, runtime), memory)


def _build_expander(runtime: Runtime) -> DocumentExpander:
    """Return what replaces PDFs for models that take none, by the settings as they are for each request."""

    def takes_pdf(caller: RequestOrigin, model: str) -> bool:
        return may_take_pdf(model, get_provider_name(caller.upstream, runtime.settings), runtime.settings)

    def find_renderers() -> WorkerPool | None:
        return grant_rendering(render=runtime.settings.render)

    return DocumentExpander(runtime.engine, runtime.record.images, find_renderers, takes_pdf)


def _refresh(runtime: Runtime) -> Runtime:
    """Return the runtime for a new request, with the settings as they are now."""
    runtime.refresh()
    return runtime


def _find_directory(runtime: Runtime) -> UpstreamDirectory:
    """Return the upstreams for a new request, by the settings as they are now."""
    runtime.refresh()
    return runtime.directory


def build_inspector_access(settings: Settings) -> InspectorAccess:
    from sightline.surfaces.inspector.changes import InspectorAccess

    return InspectorAccess(settings.data_folder / "inspector")


def build_inspector(runtime: Runtime) -> Inspector:
    _import_after_start()
    from sightline.surfaces.inspector import Inspector
    from sightline.surfaces.inspector.changes import Changes
    from sightline.surfaces.inspector.queries import PictureMaker, Queries

    def open_context() -> ToolContext:
        runtime.refresh()
        scope = runtime.record.compute_scope("")
        return replace(_build_context(runtime, NO_FILES, scope), is_owner=True)

    queries = Queries(runtime.record, lambda: runtime.settings, partial(_find_directory, runtime))
    pictures = PictureMaker(runtime.record.images, runtime.workers)
    return Inspector(build_inspector_access(runtime.settings), queries, pictures, Changes(open_context))


def build_inspector_app(runtime: Runtime) -> App:
    """Return an application that serves the inspector and nothing else."""
    from sightline.surfaces.inspector import serve_inspector

    return serve_inspector(build_inspector(runtime))


def export_conversation(settings: Settings, record: Store, conversation: str, *, with_images: bool) -> bytes | Refusal:
    """Return a conversation, the newest one if the id is empty, as one HTML file."""
    from sightline.surfaces.inspector.export import choose_conversation, find_pictures, make_small, write_page
    from sightline.surfaces.inspector.queries import Queries

    directory = build_directory(settings)
    if isinstance(directory, Refusal):
        return directory
    chosen = choose_conversation(record, conversation)
    if isinstance(chosen, Refusal):
        return chosen
    make = partial(make_small, get_shared_workers()) if with_images else _leave_out
    queries = Queries(record, lambda: settings, lambda: directory)
    return write_page(queries, chosen, find_pictures(record, chosen, make), _list_keys(settings, directory))


def _list_keys(settings: Settings, directory: UpstreamDirectory) -> set[str]:
    """Return the keys of all upstreams, in settings and environment."""
    upstreams = directory.by_name.values()
    variables = {name for each in upstreams for name in each.key_variables}
    values = {each.api_key for each in upstreams} | {settings.find_variable([name]) for name in variables}
    return {value for value in values if len(value) >= _MIN_KEY_LENGTH}


def _leave_out(image: Image) -> None:
    """Return no picture."""


def build_mcp_app(mount: McpMount, token: str = "") -> App:
    """Return an application that serves MCP and nothing else."""
    return serve_mounts(_list_mounts(mount), token)


def _list_mounts(mount: McpMount) -> dict[str, McpMount]:
    return {MCP_PATH: mount, f"{MCP_PATH}/": mount}


def build_mcp_mount(
    runtime: Runtime, policy: PathPolicy = NO_FILES, token: str = "", *, is_only_process: bool = True
) -> McpMount:
    """Build the MCP server. A client that needs a token is not the user's own, and is not asked for consent.

    `is_only_process`: no other process serves the same address. Otherwise the answer to a question could reach a
    process that did not ask it, so no questions are asked.
    """
    get_shared_scope = partial(runtime.record.compute_scope, NO_CREDENTIAL)
    terms = ClientTerms(
        partial(_open_client_context, runtime, policy, CallerQuotas(_CALLERS)),
        asks_consent=is_only_process and not token,
        get_shared_scope=get_shared_scope,
    )
    return McpMount(terms, stateless=not is_only_process, offload=runtime.engine.compute_thread)


def _open_client_context(
    runtime: Runtime, policy: PathPolicy, quotas: CallerQuotas, headers: Mapping[str, str]
) -> ToolContext:
    """Return the context of a client: the images seen under the same credential, the files of `policy`, its quota.

    Clients without a credential share one scope. They can see an image of it by its sha256, but only those found in
    the folders of `policy` are listed, unless the setting `listImages` is "all".
    """
    runtime.refresh()
    credential = next(filter(None, (headers.get(name.decode(), "") for name in CREDENTIAL_HEADERS)), NO_CREDENTIAL)
    scope = runtime.record.compute_scope(credential)
    context = _build_context(runtime, policy, scope, quota=quotas.find(scope))
    is_known = credential != NO_CREDENTIAL or runtime.settings.list_images == "all"
    return context if is_known else replace(context, listed_folders=policy.roots)


def choose_offers(runtime: Runtime) -> Callable[[bool], Sequence[OwnTool]]:
    """Return a function that lists the tools to offer to a model. Vision models get none unless the user wants it."""
    built: tuple[Settings, Mapping[bool, Sequence[OwnTool]]] | None = None  # the offers, and for which settings

    def list_offers(sees: bool) -> Sequence[OwnTool]:
        nonlocal built
        current, settings = built, runtime.settings
        if current is None or current[0] is not settings:
            built = current = settings, _build_offers(runtime)
        return current[1][sees]

    return list_offers


def _build_offers(runtime: Runtime) -> dict[bool, list[OwnTool]]:
    """Return the tools for models that don't see and for those that do."""
    _import_after_start()
    from sightline.api.tool_registry import list_tools

    context = _build_context(runtime, NO_FILES, runtime.record.compute_scope(""))
    listed = {str(each["name"]): each for each in list_tools(context)}
    wanted = runtime.settings.tool
    names = {False: ("analyze_image",), True: ("analyze_image", "view_image") if wanted == "on" else ()}
    return {
        sees: [_build_offer(listed[name]) for name in offered if name in listed and wanted != "off"]
        for sees, offered in names.items()
    }


def _build_offer(tool: dict[str, Json]) -> OwnTool:
    return OwnTool(str(tool["name"]), str(tool["description"]), cast("dict[str, Json]", tool["parameters"]))


def _answer_call(
    runtime: Runtime,
    policy: PathPolicy,
    quota: TurnQuota,
    name: str,
    arguments: Json,
    origin: RequestOrigin,
    model: str,
    turn: str,
) -> OwnResult:
    """Run a tool call of a model, with the images that its client may see and the files of `policy`."""
    _import_after_start()
    from sightline.api.failure import Failure
    from sightline.api.tool_registry import call_tool

    profile = find_model_profile(runtime.settings, runtime.record, origin.upstream, origin.wire, model)
    turn_key = f"{origin.scope} {turn}"  # clients never share a turn
    outcome = call_tool(
        _build_context(runtime, policy, origin.scope, Caller(origin, profile), turn_key, quota), name, arguments
    )
    blocks = [each for each in outcome.content() if isinstance(each, dict)]
    text = "\n".join(str(each["text"]) for each in blocks if "text" in each)
    images = tuple((str(each["mimeType"]), str(each["data"])) for each in blocks if "data" in each)
    return OwnResult(text, images, failed=isinstance(outcome, Failure))


def _build_context(
    runtime: Runtime,
    policy: PathPolicy,
    scope: str,
    caller: Caller | None = None,
    turn: str | None = None,
    quota: TurnQuota | None = None,
) -> ToolContext:
    _import_after_start()
    from sightline.api.session import ToolContext

    return ToolContext(
        runtime.record,
        scope,
        policy,
        get_shared_workers(),
        toolset=runtime.settings.toolset,
        network=grant_network(network=runtime.settings.network),
        renderers=grant_rendering(render=runtime.settings.render),
        settings=runtime.settings,
        caller=caller,
        turn=turn,
        quota=quota or TurnQuota(),
    )


def _answer_command(
    runtime: Runtime, policy: PathPolicy, text: str, origin: RequestOrigin, model: str, images: Sequence[str]
) -> str:
    """Answer a command that was typed into a conversation, with what its client may see and the files of `policy`."""
    _import_after_start()
    from sightline.commands.execution import answer_text

    profile = find_model_profile(runtime.settings, runtime.record, origin.upstream, origin.wire, model)
    return answer_text(text, _build_context(runtime, policy, origin.scope, Caller(origin, profile)), images)


_DELAY_SECONDS = 1.0  # the agent that a proxy is started for starts meanwhile, and sends the first requests


class Preloader:
    """A thread that takes the steps of an iterator. A failing step ends it silently: requests report the error."""

    def __init__(self, steps: Iterator[None], delay: float = _DELAY_SECONDS) -> None:
        self._steps, self._delay, self._stopping = steps, delay, threading.Event()
        self._thread = threading.Thread(target=self._run, name="preload", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Skip the steps that are left, and wait until the thread has ended."""
        self._stopping.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()

    def _run(self) -> None:
        self._stopping.wait(self._delay)
        with suppress(Exception):  # also the end of the steps
            while not self._stopping.is_set():
                next(self._steps)
