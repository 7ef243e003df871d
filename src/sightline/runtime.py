"""The composition root: builds the record, HTTP client, chooser, vision service and engine from the settings.

Nothing else builds these. A server process builds its own runtime (`build_runtime`); blocking callers share one for
each record and settings, on the background event loop (`get_shared_runtime`).
"""

from __future__ import annotations

import atexit
import logging
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from sightline.dial import FindProxy, HttpClient
from sightline.engine import Engine, EngineOptions, find_profile
from sightline.model.ports import Store
from sightline.model.profile import Profile, Upstream, UpstreamDirectory, WireName
from sightline.model.refusal import Refusal
from sightline.model.value import value_class
from sightline.pixels.renderers import start_renderers
from sightline.pixels.workers import TASKS, WorkerPool
from sightline.settings import Settings
from sightline.settings.live_settings import LiveSettings
from sightline.settings.upstreams import NO_PREVIOUS_UPSTREAMS, PreviousUpstreams, build_directory
from sightline.sources.files import PathPolicy, build_path_policy
from sightline.store import open_record, open_server_record, open_stand_in
from sightline.vision.background_loop import ForkSafeLock, close_at_exit, once
from sightline.vision.capabilities import ModelDiscovery
from sightline.vision.chooser import Chooser
from sightline.vision.json_answers import SCHEMA_TASK as SCHEMA
from sightline.vision.prompts import DESCRIBE_INSTRUCTIONS, DESCRIBE_QUESTION
from sightline.vision.providers import VisionProviders, find_loopback_servers, make_consent_reader, read_overrides
from sightline.vision.seers.local import LocalSeer, find_local_seer, start_readers
from sightline.vision.service import VisionService, make_form_finder

if TYPE_CHECKING:
    from sightline.net import WebGrant

_log = logging.getLogger(__name__)
_MAX_SHARED = 8  # shared runtimes, and shared records on disk, that stay open


@value_class
class RuntimeInputs:
    """What a runtime is built from besides the settings. It stays when they change."""

    flags: Sequence[str] = ()  # upstreams as the command line writes them: [NAME=]URL, or the NAME of a known one
    previous: PreviousUpstreams = NO_PREVIOUS_UPSTREAMS  # the addresses that an agent used before
    single_agent: bool = False  # the flag is for all requests
    path_policy: PathPolicy | None = None  # the files that may be read; None: those that the user's own tools may read
    labels_images: bool = (
        False  # images may get labels: references of pasted ones, how pages are folded (as settings say)
    )
    local_clients: bool = False  # all clients are on this machine; images may be compared with any file that they name
    client_folder: Path | None = None  # the folder where the only client works; None: not known

    def find_providers(self, settings: Settings) -> tuple[UpstreamDirectory, VisionProviders] | Refusal:
        """Return the upstreams and vision models that settings name, or why they can't be used."""
        directory = build_directory(settings, self.flags, self.previous, single_agent=self.single_agent)
        if isinstance(directory, Refusal):
            return directory
        providers = VisionProviders(settings, directory)
        return providers.configured if isinstance(providers.configured, Refusal) else (directory, providers)

    def find_fault(self, settings: Settings) -> Refusal | None:
        """Return why settings can't be used."""
        found = self.find_providers(settings)
        return found if isinstance(found, Refusal) else None


@dataclass(slots=True, eq=False)
class Runtime:
    """Everything needed to look at images, for one record. `refresh` follows the settings."""

    settings: Settings
    record: Store
    directory: UpstreamDirectory
    http_client: HttpClient
    providers: VisionProviders
    chooser: Chooser
    vision: VisionService
    workers: WorkerPool
    readers: WorkerPool  # of the local reader
    discovery: ModelDiscovery
    engine: Engine = field(repr=False)
    inputs: RuntimeInputs = field(default_factory=RuntimeInputs, repr=False)
    live: LiveSettings | None = field(default=None, repr=False)  # None: the settings stay as they are

    def refresh(self) -> None:
        """Use new settings if the settings file has changed; call this at the start of each request.

        What is remembered stays, and so does the record.
        """
        settings = self.settings if self.live is None else self.live.get()
        if settings is self.settings:
            return
        found = self.inputs.find_providers(settings)
        assert not isinstance(found, Refusal), "the live settings have checked it"
        directory, providers = found
        self.settings, self.directory, self.providers = settings, directory, providers
        self.chooser.configure(providers.find_model, find_loopback_servers(directory), auto=settings.seer == "auto")
        self.vision.configure(make_form_finder(settings), settings.cache_size)
        self.engine.configure(_build_engine_options(settings, self.inputs))

    async def close(self) -> None:
        await self.discovery.close()
        await self.readers.close()
        await self.http_client.close()
        await self.workers.close()
        self.record.close()


def build_runtime(
    settings: Settings,
    flags: Sequence[str] = (),
    previous: PreviousUpstreams = NO_PREVIOUS_UPSTREAMS,
    *,
    single_agent: bool = False,
    path_policy: PathPolicy | None = None,
    local_clients: bool = False,
    client_folder: Path | None = None,
    requires_record: bool = False,
    report: Callable[[str], None] = _log.warning,
) -> Runtime | Refusal:
    """Build a runtime with its own record and workers, for a server process. The caller closes it.

    See `RuntimeInputs` for the other arguments; `report` gets a line about changed settings that can't be used. With
    `requires_record`, a record on servers that can't be opened is refused, and not replaced by one in memory.
    """
    inputs = RuntimeInputs(
        flags,
        previous,
        single_agent,
        path_policy,
        labels_images=True,
        local_clients=local_clients,
        client_folder=client_folder,
    )
    found = inputs.find_providers(settings)
    if isinstance(found, Refusal):
        return found
    record = open_own_record(settings) if requires_record else _open_or_replace_record(settings)
    if isinstance(record, Refusal):
        return record
    runtime = _assemble(settings, record, *found, _build_workers(), start_readers(), inputs)
    runtime.live = LiveSettings(settings, report, inputs.find_fault)
    return runtime


def get_shared_runtime(
    settings: Settings, record: Store | None = None, path_policy: PathPolicy | None = None
) -> Runtime | Refusal:
    """Return the shared runtime for blocking callers; `record` is the user's own by default.

    `path_policy` are the files that paths in conversations can refer to; None: those that the user's tools may read.

    An unknown vision model in the settings is not refused here, because a call may name another one.
    """
    record = record or open_shared_record(settings)
    with _lock:
        known = (each for each in _shared if each.settings == settings and each.record is record)
        shared = next((each for each in known if each.inputs.path_policy == path_policy), None)
        return shared or _build_shared_runtime(settings, record, RuntimeInputs(path_policy=path_policy))


def _build_shared_runtime(settings: Settings, record: Store, inputs: RuntimeInputs) -> Runtime | Refusal:
    directory = build_directory(settings)
    if isinstance(directory, Refusal):
        return directory
    providers = VisionProviders(settings, directory)
    workers, readers = get_shared_workers(), get_shared_readers()
    runtime = _assemble(settings, record, directory, providers, workers, readers, inputs)
    close_at_exit(runtime.discovery.close)
    close_at_exit(runtime.http_client.close)
    _shared[_MAX_SHARED - 1 :] = []
    _shared.insert(0, runtime)
    return runtime


_shared: list[Runtime] = []
_lock = ForkSafeLock()


def _assemble(
    settings: Settings,
    record: Store,
    directory: UpstreamDirectory,
    providers: VisionProviders,
    workers: WorkerPool,
    readers: WorkerPool,
    inputs: RuntimeInputs,
) -> Runtime:
    """Build a runtime from its parts."""
    http_client = build_http_client(settings)
    chooser = Chooser(
        http_client,
        make_consent_reader(record.policy),
        providers.find_model,
        find_loopback_servers(directory),
        auto=settings.seer == "auto",
        find_local=_build_local_finder(settings, readers),
    )
    cache_size = settings.cache_size
    find_form = make_form_finder(settings)
    vision = VisionService(record.descriptions, record.ledger, chooser.choose, find_form, cache_size=cache_size)
    discovery = ModelDiscovery(http_client, record.policy)
    engine = Engine(
        vision,
        _build_engine_options(settings, inputs),
        workers,
        images=record.images,
        descriptions=record.descriptions,
        conversations=record.conversations,
        policy=record.policy,
        discover=discovery.start,
    )
    parts = (http_client, providers, chooser, vision, workers, readers, discovery, engine)
    return Runtime(settings, record, directory, *parts, inputs)


def _build_local_finder(settings: Settings, readers: WorkerPool) -> Callable[[], LocalSeer | Refusal]:
    """Return a function that finds the local reader once it is installed, and keeps it."""
    found: list[LocalSeer] = []

    def find() -> LocalSeer | Refusal:
        if not found:
            seer = find_local_seer(settings.data_folder, readers)
            if isinstance(seer, Refusal):
                return seer
            found.append(seer)
        return found[0]

    return find


def _build_engine_options(settings: Settings, inputs: RuntimeInputs) -> EngineOptions:
    policy = inputs.path_policy
    return EngineOptions(
        instructions=settings.system_prompt or DESCRIBE_INSTRUCTIONS,
        question=DESCRIBE_QUESTION,
        mode=settings.mode,
        max_images=settings.max_images_per_turn,
        include_context=settings.include_context,
        max_batch=settings.max_batch,
        similarity_threshold=settings.phash_similarity_threshold,
        joint_turns=settings.joint == "turn",
        show_boxes=settings.boxes,
        overrides=read_overrides(settings),
        retention=settings.retention,
        hoist=settings.hoist,
        network_grant=grant_network(network=settings.network),
        find_file_policy=lambda: build_read_policy(settings) if policy is None else policy,
        compares_any_file=inputs.local_clients,
        client_folder=inputs.client_folder,
        fold_pages=inputs.labels_images and settings.legible == "auto",
        references=inputs.labels_images and settings.references,
        image_model=settings.image_model,
    )


def find_model_profile(settings: Settings, record: Store, upstream: Upstream, wire: WireName, model: str) -> Profile:
    """Return what is known about a model of an upstream."""
    return find_profile(record.policy, upstream, wire, model, read_overrides(settings), hoist=settings.hoist)


def build_http_client(settings: Settings) -> HttpClient:
    """Return an HTTP client that uses the proxies of the environment."""
    return HttpClient(build_proxy_finder(settings.environment))


def build_proxy_finder(environment: Mapping[str, str]) -> FindProxy:
    """Return a function that finds the proxy for a host by HTTP_PROXY, NO_PROXY and so on, in either case."""
    variables = {
        name.lower(): value for name, value in environment.items() if name.lower().endswith("_proxy") and value
    }
    excluded = [name.strip().lstrip(".") for name in variables.get("no_proxy", "").lower().split(",") if name.strip()]

    def find_proxy(scheme: str, host: str) -> str | None:
        if any(name in ("*", host) or host.endswith(f".{name}") for name in excluded):
            return None
        proxy = variables.get(f"{scheme}_proxy") or variables.get("all_proxy")
        return proxy if proxy is None or "://" in proxy else f"http://{proxy}"

    return find_proxy


def _build_workers() -> WorkerPool:
    return WorkerPool({**TASKS, **SCHEMA})


def open_own_record(settings: Settings) -> Store | Refusal:
    """Open the record that the settings name; the caller closes it. Only a record on servers can be refused."""
    if settings.shared_address:
        return open_server_record(settings.shared_address)
    return open_record(settings.record_folder, kind=settings.record)


def open_shared_record(settings: Settings) -> Store:
    """Return the record that the settings name, which all callers in this process share.

    If a record on servers can't be opened, it is replaced by one in memory, in which there are no consents.

    The most recently used ones stay open. An older one is closed as soon as no caller uses it. A record in memory
    stays until the process ends, because it would be lost.
    """
    key = settings.record_folder, settings.record, settings.store, settings.blobs
    with _record_lock:
        record = _open_records.get(key) or _open_or_replace_record(settings)
        _open_records[key] = record
        _recent_records.pop(key, None)
        _recent_records[key] = record
        on_disk = [each for each in _recent_records if each[1] == "disk"]
        for oldest in on_disk[:-_MAX_SHARED]:
            del _recent_records[oldest]
    return record


def _open_or_replace_record(settings: Settings) -> Store:
    record = open_own_record(settings)
    if not isinstance(record, Refusal):
        return record
    _log.warning("%s; nothing is remembered, and there are no consents", record)
    return open_stand_in(record)


_record_lock = ForkSafeLock()
_open_records: WeakValueDictionary[tuple[Path, str, str, str], Store] = WeakValueDictionary()
_recent_records: dict[tuple[Path, str, str, str], Store] = {}  # the most recently used is the last


@once
def get_shared_workers() -> WorkerPool:
    """Return the worker processes that decode images for this process."""
    workers = _build_workers()
    atexit.register(workers.shut_down)
    return workers


@once
def get_shared_readers() -> WorkerPool:
    """Return the worker processes of the local reader for this process."""
    readers = start_readers()
    atexit.register(readers.shut_down)
    return readers


@once
def get_shared_renderers() -> WorkerPool:
    """Return the worker processes that render files for this process."""
    renderers = start_renderers()
    atexit.register(renderers.shut_down)
    return renderers


def _forget_after_fork() -> None:
    """Drop objects that need threads and the event loop, which a forked process doesn't have."""
    _shared.clear()
    get_shared_workers.cache_clear()
    get_shared_readers.cache_clear()
    get_shared_renderers.cache_clear()


os.register_at_fork(after_in_child=_forget_after_fork)


def build_read_policy(settings: Settings) -> PathPolicy:
    """Return the policy for the user's own tools, for the working folder that this process has now."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111, it does not raise
    allowed_home = home if home in settings.fs_reach else None
    own_files = (settings.file, settings.record_folder)
    return build_path_policy(
        find_working_folder(), _find_temporary_folder(), settings.fs_reach, allowed_home, excluded=own_files
    )


def grant_network(*, network: bool) -> WebGrant | None:
    """Return the permission to fetch, or None. The guarded client is imported only if it is needed."""
    if not network:
        return None
    from sightline.net import WebGrant

    return WebGrant()


def grant_rendering(*, render: bool) -> WorkerPool | None:
    """Return the permission to render files, which is the workers that do it, or None."""
    return get_shared_renderers() if render else None


def find_working_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it was deleted
        return None


def _find_temporary_folder() -> Path | None:
    try:
        return Path(tempfile.gettempdir())
    except OSError:  # there is no writable one
        return None
