"""The one composition root: settings in; record, HTTP client, chooser, vision service and engine out.

Nothing else builds these. A process that serves builds a runtime of its own (`build_runtime`); callers that block share
one for each record and settings, on the event loop of the bridge (`shared_runtime`).
"""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.dial import Dialler, ProxyFor
from sightline.engine import Engine, Options
from sightline.engine import known_profile as find_profile
from sightline.model.ports import Store
from sightline.model.profile import Profile, WireName
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory, Upstream
from sightline.pixels.part import TASK as PART
from sightline.pixels.worker import TASKS, Workers
from sightline.settings import Settings
from sightline.settings.upstreams import NOWHERE, Taken, directory
from sightline.sources.file import Policy, policy_for
from sightline.store import open_record
from sightline.vision.bridge import ForkSafeLock, close_at_exit, once
from sightline.vision.chooser import Chooser
from sightline.vision.prompts import INSTRUCTIONS, QUESTION
from sightline.vision.providers import Providers, is_consented, local_servers, overrides_of
from sightline.vision.schema import TASK as SCHEMA
from sightline.vision.seers.local import LocalSeer, local_seer, readers
from sightline.vision.service import VisionService, ground_by

if TYPE_CHECKING:
    from sightline.sources.web import Grant

_KEPT = 8  # shared runtimes, for as many different settings


@dataclass(frozen=True, slots=True)
class Runtime:
    """All that looks at images for one record under one set of settings."""

    settings: Settings
    record: Store
    directory: Directory
    dialler: Dialler
    providers: Providers
    chooser: Chooser
    vision: VisionService
    workers: Workers
    readers: Workers  # of the local reader
    engine: Engine = field(repr=False)

    async def close(self) -> None:
        await self.readers.close()
        await self.dialler.close()
        await self.workers.close()
        self.record.close()


def build_runtime(
    settings: Settings,
    flags: Sequence[str] = (),
    taken: Taken = NOWHERE,
    *,
    alone: bool = False,
    reach: Policy | None = None,
) -> Runtime | Refusal:
    """Return a runtime with a record and workers of its own, for a process that serves; its caller closes it.

    `flags` are upstreams as the command line writes them: [NAME=]URL, or the NAME of a known one. `taken` is where an
    agent went before it was pointed here. `alone`: there is one agent, and the flag is for all that it asks. `reach` is
    where files may be looked for; None: where the user's own tools may look.
    """
    found = directory(settings, flags, taken, alone=alone)
    if isinstance(found, Refusal):
        return found
    providers = Providers(settings, found)
    if isinstance(providers.own, Refusal):
        return providers.own
    record = open_record(settings.folder, kind=settings.record)
    references = settings.references
    return _assemble(settings, record, found, providers, _build_workers(), readers(), reach, references=references)


def shared_runtime(settings: Settings, record: Store | None = None) -> Runtime | Refusal:
    """Return the runtime for callers that block; `record` is the user's own if left out.

    A model that the settings name and that cannot be found is no refusal here: a call may name another one.
    """
    held = record or open_shared_record(settings.folder, settings.record)
    with _lock:
        known = next((each for each in _shared if each.settings == settings and each.record is held), None)
        return known or _build_shared(settings, held)


def _build_shared(settings: Settings, record: Store) -> Runtime | Refusal:
    found = directory(settings)
    if isinstance(found, Refusal):
        return found
    providers = Providers(settings, found)
    runtime = _assemble(settings, record, found, providers, shared_workers(), shared_readers(), lent_only=True)
    close_at_exit(runtime.dialler.close)
    _shared[_KEPT - 1 :] = []
    _shared.insert(0, runtime)
    return runtime


_shared: list[Runtime] = []
_lock = ForkSafeLock()


def _assemble(
    settings: Settings,
    record: Store,
    found: Directory,
    providers: Providers,
    workers: Workers,
    reading: Workers,
    reach: Policy | None = None,
    *,
    references: bool = False,
    lent_only: bool = False,
) -> Runtime:
    """`references`: pasted images get theirs beside them, which a program that prepares a body has to ask for."""
    dialler = build_dialler(settings)
    chooser = Chooser(
        dialler,
        is_consented(record),
        providers.find,
        local_servers(found),
        auto=settings.seer == "auto",
        local=_find_local(settings, reading),
        lent_only=lent_only,
    )
    cache_size = settings.cache_size
    vision = VisionService(record, chooser.choose, ground_by(settings), cache_size=cache_size)
    engine = _build_engine(settings, record, vision, workers, reach, references=references)
    return Runtime(settings, record, found, dialler, providers, chooser, vision, workers, reading, engine)


def _find_local(settings: Settings, reading: Workers) -> Callable[[], LocalSeer | Refusal]:
    """Return a function that finds the local reader once it is installed, and keeps it."""
    found: list[LocalSeer] = []

    def find() -> LocalSeer | Refusal:
        if not found:
            made = local_seer(settings.data, reading)
            if isinstance(made, Refusal):
                return made
            found.append(made)
        return found[0]

    return find


def _build_engine(
    settings: Settings,
    record: Store,
    vision: VisionService,
    workers: Workers,
    reach: Policy | None,
    *,
    references: bool,
) -> Engine:
    options = Options(
        instructions=settings.system_prompt or INSTRUCTIONS,
        question=QUESTION,
        mode=settings.mode,
        max_images=settings.max_images_per_turn,
        context=settings.include_context,
        max_batch=settings.max_batch,
        alike=settings.phash_similarity_threshold,
        joint_turns=settings.joint == "turn",
        boxes=settings.boxes,
        overrides=overrides_of(settings),
        retention=settings.retention,
        hoist=settings.hoist,
        web=grant_network(network=settings.network),
        reach=lambda: readable_folders(settings) if reach is None else reach,
        references=references,
        image_model=settings.image_model,
    )
    return Engine(record, vision, options, workers)


def known_profile(settings: Settings, record: Store, upstream: Upstream, wire: WireName, model: str) -> Profile:
    """Return what is known of a model of an upstream."""
    return find_profile(record, upstream, wire, model, overrides_of(settings), hoist=settings.hoist)


def build_dialler(settings: Settings) -> Dialler:
    """Return an HTTP client that goes through the proxies that the environment names."""
    return Dialler(find_proxies(settings.environment))


def find_proxies(environment: Mapping[str, str]) -> ProxyFor:
    """Return the proxies that the environment names, in either case, for every host that it does not except."""
    lowered = {name.lower(): value for name, value in environment.items() if name.lower().endswith("_proxy") and value}
    excepted = [name.strip().lstrip(".") for name in lowered.get("no_proxy", "").lower().split(",") if name.strip()]

    def proxy_for(scheme: str, host: str) -> str | None:
        if any(name in ("*", host) or host.endswith(f".{name}") for name in excepted):
            return None
        found = lowered.get(f"{scheme}_proxy") or lowered.get("all_proxy")
        return found if found is None or "://" in found else f"http://{found}"

    return proxy_for


def _build_workers() -> Workers:
    return Workers({**TASKS, **PART, **SCHEMA})


@once
def open_shared_record(folder: Path, kind: str) -> Store:
    """Return the record of this process: it is open as long as the process is, for every call and every thread."""
    record = open_record(folder, kind="memory" if kind == "memory" else "disk")
    atexit.register(record.close)
    return record


@once
def shared_workers() -> Workers:
    """Return the processes in which this one has its pixels decoded."""
    workers = _build_workers()
    atexit.register(workers.end)
    return workers


@once
def shared_readers() -> Workers:
    """Return the processes in which the local reader reads for this one."""
    shared = readers()
    atexit.register(shared.end)
    return shared


def _forget_after_fork() -> None:
    """A fork has none of the threads that wait for the workers, and no loop that runs."""
    _shared.clear()
    shared_workers.cache_clear()
    shared_readers.cache_clear()


os.register_at_fork(after_in_child=_forget_after_fork)


def readable_folders(settings: Settings) -> Policy:
    """Return the folders that may be read, seen from where this process works now."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111, which raises nothing where there is none
    asked, own = home if home in settings.fs_reach else None, (settings.file, settings.folder)
    return policy_for(find_working_folder(), _find_temporary_folder(), settings.fs_reach, asked, closed=own)


def grant_network(*, network: bool) -> Grant | None:
    """Return the permission to fetch; the guarded client is loaded only where it is given."""
    if not network:
        return None
    from sightline.sources.web import Grant

    return Grant()


def find_working_folder() -> Path | None:
    try:
        return Path.cwd()
    except OSError:  # it has been removed
        return None


def _find_temporary_folder() -> Path | None:
    try:
        return Path(tempfile.gettempdir())
    except OSError:  # there is none that can be written
        return None
