"""Sessions: the user's settings and record, what may be read and fetched, and how often models may ask."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.model.image import MAX_UNCHANGED_BYTES, ImageTarget
from sightline.model.ports import ReportProgress, Store, ignore_progress
from sightline.pixels.workers import WorkerPool
from sightline.runtime import (
    build_read_policy,
    find_working_folder,
    get_shared_workers,
    grant_network,
    grant_rendering,
    open_shared_record,
)
from sightline.settings import Settings, load_settings
from sightline.sources.files import PathPolicy, build_path_policy
from sightline.vision.background_loop import once
from sightline.vision.concurrency import TurnQuota

if TYPE_CHECKING:
    from sightline.net import WebGrant
    from sightline.vision.chooser import Caller

NATIVE_FORMATS = ("image/png", "image/jpeg", "image/webp", "image/gif")  # that every provider takes
_MAX_EDGE = 8000  # the widest that any known provider takes
SAFE_EDGE = 2000  # pixels of an edge that every provider takes, however many images there are
ANY_PROVIDER = ImageTarget(NATIVE_FORMATS, encoded_bytes=4 * -(-MAX_UNCHANGED_BYTES // 3), edge=_MAX_EDGE)


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What the calls of one caller may use: the record, files, the network, models; and the limits of its results."""

    record: Store
    scope: str  # images of one scope cannot be found from another by their sha256
    policy: PathPolicy
    workers: WorkerPool
    target: ImageTarget = ANY_PROVIDER  # the limits of the model that will see the pixels
    untouched_bytes: int = MAX_UNCHANGED_BYTES  # of an image that is shown as it is, where the target admits it
    toolset: frozenset[str] = frozenset({"vision"})
    can_edit: bool = False  # `edit_file` is offered, too
    is_owner: bool = False  # of the record: may see every image in it, because its files are readable anyway
    listed_folders: tuple[Path, ...] | None = None  # whose images are listed; None: all that may be seen
    network: WebGrant | None = None  # permission to view images at web addresses
    renderers: WorkerPool | None = None  # permission to render files that are not images, and what does it
    settings: Settings | None = None  # of the user; None: tools that ask a model are not offered
    turn: str | None = None  # of the conversation, as its host names it; None: calls are not counted
    quota: TurnQuota = field(default_factory=TurnQuota, compare=False, repr=False)
    caller: Caller | None = field(default=None, repr=False)  # of a client whose own provider may be asked, too
    report: ReportProgress = field(default=ignore_progress, compare=False, repr=False)  # of documents with many pages

    @property
    def visible_scope(self) -> str | None:
        """The scope whose images may be seen by their sha256; None: any."""
        return None if self.is_owner else self.scope

    @property
    def saved_scope(self) -> str | None:
        """The scope whose conversations get a saved description; None: any, if all are those of the record's owner."""
        is_shared = self.settings is not None and self.settings.shared_address is not None
        return self.scope if is_shared else self.visible_scope


class Session:
    """What calls may use: the user's settings and record, files, the network. Calls without one use `Session()`.

    settings: the settings to use; if left out, those of the user's file and environment.
    reach: the folders that may be read; a relative path starts at the first of them. If left out, functions read what
        the process may read, and tools (`tools`, `call`) the working folder, the temporary one and those of `fsReach`.
    network: whether a view may fetch images at public https addresses; None: as the setting `network` says. A
        `file_url` doesn't depend on it: naming an address permits fetching it.
    render: whether files that are not images may be rendered; None: as the setting `render` says.
    turn: a name for the current turn of the conversation. Without one, tool calls belong to one turn, which ends when
        no model has been asked for a minute.
    can_edit: also offer the tool `edit_file`.
    """

    __slots__ = ("context", "tool_context")

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        reach: Iterable[str | os.PathLike[str]] | None = None,
        network: bool | None = None,
        render: bool | None = None,
        turn: str | None = None,
        can_edit: bool = False,
    ) -> None:
        known = settings or load_settings()
        record = open_shared_record(known)
        working = find_working_folder()
        self.tool_context = ToolContext(
            record,
            record.compute_scope(""),
            build_read_policy(known) if reach is None else _limit_to(reach, known),
            get_shared_workers(),
            toolset=known.toolset,
            can_edit=can_edit or "edit_file" in known.toolset,
            is_owner=True,
            listed_folders=None if known.list_images == "all" else tuple(filter(None, [working])),
            network=grant_network(network=known.network if network is None else network),
            renderers=grant_rendering(render=known.render if render is None else render),
            settings=known,
            turn=turn,
            quota=_find_quota(known.record_folder, known.record),
        )
        unlimited = PathPolicy(tuple(filter(None, [working])), is_unlimited=True)
        self.context = self.tool_context if reach is not None else replace(self.tool_context, policy=unlimited)

    @classmethod
    def from_context(cls, context: ToolContext) -> Session:
        """Return a session whose functions and tools use the same context."""
        session = cls.__new__(cls)
        session.context = session.tool_context = context
        return session

    def __repr__(self) -> str:
        policy = self.context.policy
        return f"<Session reach={None if policy.is_unlimited else [*map(str, policy.roots)]}>"


def _limit_to(reach: Iterable[str | os.PathLike[str]], settings: Settings) -> PathPolicy:
    folders = [reach] if isinstance(reach, str | os.PathLike) else reach
    allowed = [Path(os.path.expanduser(each)) for each in folders]  # noqa: PTH111, which raises nothing without a home
    return build_path_policy(None, None, allowed, None, excluded=(settings.file, settings.record_folder))


@once
def _find_quota(folder: Path, kind: str) -> TurnQuota:
    """Return the counts of this process for the user of a record."""
    return TurnQuota()
