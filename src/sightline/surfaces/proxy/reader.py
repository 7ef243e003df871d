"""Request bodies as the engine reads them; what it cannot read goes on as it came."""

from __future__ import annotations

import logging
from dataclasses import replace

from sightline.engine import Engine, Reading
from sightline.surfaces.proxy.bodies import Flowing, Held, Unpacking
from sightline.surfaces.proxy.commands import without_commands
from sightline.surfaces.proxy.headers import Request
from sightline.surfaces.proxy.routes import Route

log = logging.getLogger("sightline")


class Reader:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._unpacking = Unpacking()

    async def opened(self, request: Request, way: Route, body: Held | Flowing) -> Reading | None:
        """None: it is no request of a wire, or signed, or too large, or no JSON."""
        if way.wire is None or isinstance(body, Flowing) or request.method != "POST":
            return None
        if request.header(b"authorization").startswith("AWS4-HMAC-SHA256"):
            return None
        data = await self._unpacking.of(body.data, request.header(b"content-encoding"))
        return None if data is None else self.read(way, data)

    def read(self, way: Route, data: bytes | bytearray) -> Reading | None:
        assert way.wire is not None
        try:
            reading = self._engine.read(data, way.wire)
            if reading is None or (scene := way.endpoint.of(reading.scene)) is reading.scene:
                return reading
            return replace(reading, scene=scene)
        except Exception:  # a fault of ours must not be worse than our absence
            log.exception("a request could not be read; it goes on untouched")
            return None

    def cut(self, way: Route, body: Held, reading: Reading) -> tuple[Held, Reading | None]:
        """Without the commands that were answered here, of which the model knows nothing."""
        try:
            rest = without_commands(reading, way)
        except Exception:  # a fault of ours must not be worse than our absence
            log.exception("commands could not be cut; the request goes on with them")
            rest = None
        return (body, reading) if rest is None else (Held(rest, remade=True), self.read(way, rest))
