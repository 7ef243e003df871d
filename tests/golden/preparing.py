"""Requests on their whole way through the engine, for a model that sees or one that is blind."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sightline.engine import Engine, Options, Prepared
from sightline.model.ports import Store
from sightline.model.rules import Retention
from sightline.model.upstream import Upstream, Visitor
from sightline.profiles.lookup import Override
from sightline.sources.file import policy_for
from sightline.store import open_record
from sightline.vision.chooser import Candidate
from sightline.vision.service import VisionService
from sightline.wire import WIRES, Wire
from tests.engine.parts import WORKERS, ScriptedSeer

BASES = {wire.name: "http://localhost:1" for wire in WIRES}


REACH = policy_for(None, Path(tempfile.gettempdir()), (), None)


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
        options = Options(
            "look",
            "what?",
            overrides=[Override("*", vision=sees)],
            max_images=0,
            hoist=hoist,
            retention=retention or Retention(off=True),
            **{"reach": lambda: REACH, **more},
        )
        self.engine = Engine(self.record, VisionService(self.record, self._choose), options, WORKERS)

    async def _choose(self, *_: object) -> Sequence[Candidate]:
        return [Candidate(self.seer)]

    async def prepared(self, body: Any, wire: Wire, path: str) -> Prepared:
        """A request to a path, which some wires name the model in."""
        endpoint = wire.match(path.partition("?")[0])
        reading = self.engine.read(json.dumps(body, ensure_ascii=False).encode(), wire)
        assert endpoint is not None
        assert reading is not None
        named = replace(reading, scene=endpoint.of(reading.scene))
        return await self.engine.prepare(named, Visitor(self.upstream, wire.name, "somebody"))

    async def sent(self, body: Any, wire: Wire, path: str) -> Any:
        """The body as the upstream reads it."""
        return json.loads(b"".join((await self.prepared(body, wire, path)).body))
