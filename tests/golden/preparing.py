"""Requests on their whole way through the engine, for a model that sees or one that is blind."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from sightline.engine import EngineOptions, PreparedRequest
from sightline.model.facts import Retention
from sightline.model.ports import Store
from sightline.model.profile import RequestOrigin, Upstream
from sightline.profiles.profile_lookup import ProfileOverride
from sightline.sources.files import build_path_policy
from sightline.store import open_record
from sightline.vision.chooser import Candidate, Candidates
from sightline.vision.service import VisionService
from sightline.wire import WIRES, Wire
from tests.engine.parts import WORKERS, ScriptedSeer, build_engine

BASES = {wire.name: "http://localhost:1" for wire in WIRES}


REACH = build_path_policy(None, Path(tempfile.gettempdir()), (), None)


class Desk:
    """One engine for one conversation; `sees` says whether its model does."""

    def __init__(
        self,
        *,
        sees: bool,
        hoist: bool = False,
        retention: Retention | None = None,
        preset: str = "",
        record: Store | None = None,
        seer: ScriptedSeer | None = None,
        **more: Any,
    ) -> None:
        self.seer = seer or ScriptedSeer()
        self.upstream = Upstream("up", BASES, preset)
        self.record = record or open_record(Path("unused"), kind="memory")
        options = EngineOptions(
            "look",
            "what?",
            overrides=[ProfileOverride("*", vision=sees)],
            max_images=0,
            hoist=hoist,
            retention=retention or Retention(is_off=True),
            **{"find_file_policy": lambda: REACH, **more},
        )
        vision = VisionService(self.record.descriptions, self.record.ledger, self._choose)
        self.engine = build_engine(self.record, vision, options, WORKERS)

    async def _choose(self, *_: object) -> Candidates:
        return Candidates([Candidate(self.seer)])

    async def prepared(self, body: Any, wire: Wire, path: str) -> PreparedRequest:
        """A request to a path, which some wires name the model in."""
        endpoint = wire.match_path(path.partition("?")[0])
        reading = self.engine.read(json.dumps(body, ensure_ascii=False).encode(), wire)
        assert endpoint is not None
        assert reading is not None
        named = replace(reading, scene=endpoint.apply_to(reading.scene))
        return await self.engine.prepare(named, RequestOrigin(self.upstream, wire.name, "somebody"))

    async def sent(self, body: Any, wire: Wire, path: str) -> Any:
        """The body as the upstream reads it."""
        return json.loads(b"".join((await self.prepared(body, wire, path)).body))
