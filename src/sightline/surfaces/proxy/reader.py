"""Request bodies as the engine reads them; what it cannot read goes on as it came."""

from __future__ import annotations

import logging
from dataclasses import replace

from sightline.engine import Engine, Reading
from sightline.model.refusal import Refusal
from sightline.server.bodies import Reservation
from sightline.surfaces.proxy.bodies import LARGEST, Flowing, Held, Unpacking
from sightline.surfaces.proxy.commands import without_commands
from sightline.surfaces.proxy.errand import Errand
from sightline.surfaces.proxy.routes import Route
from sightline.wire import Wire

log = logging.getLogger("sightline")

MOST_VALUES_HELD = 8_000_000  # JSON values of all the large requests under way: each takes about 100 bytes
_REMEDY = "it is forwarded as it came"
_TOO_LONG = Refusal("too_large", f"it has more than {LARGEST >> 20} MB", _REMEDY)
_NOT_UNPACKED = Refusal("too_large", "its content-encoding is unknown, broken, or unpacks to too much", _REMEDY)
_NO_ROOM = Refusal("unavailable", "other large requests take all the memory that reading may take", _REMEDY)


class Reader:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._unpacking = Unpacking()
        self._values = 0  # held by the requests under way

    async def opened(self, errand: Errand, body: Held | Flowing, memory: Reservation) -> Reading | Refusal | None:
        """Read a body; None: it is no request of a wire, or signed, or no JSON. A refusal: it is too large to be read.

        A reading has to be given back with `release`.
        """
        request, way = errand.request, errand.way
        signed = request.header(b"authorization").startswith("AWS4-HMAC-SHA256")
        if way.wire is None or request.method != "POST" or signed:
            return None
        if isinstance(body, Flowing):
            return _TOO_LONG
        if not (packing := request.header(b"content-encoding")):
            return await self._open(errand, way.wire, body.data)
        data = await self._unpacking.of(body.data, packing)
        if data is None:
            return _NOT_UNPACKED
        return await self._open(errand, way.wire, data) if memory.add(len(data)) else _NO_ROOM

    async def _open(self, errand: Errand, wire: Wire, data: bytes | bytearray) -> Reading | Refusal | None:
        try:
            reading = await self._engine.open(data, wire, lambda: errand.visitor.scope)
        except Exception:  # a fault of ours must not be worse than our absence
            log.exception("a request could not be read; it goes on untouched")
            return None
        if not isinstance(reading, Reading):
            return reading
        if self._values + reading.values > MOST_VALUES_HELD:
            return _NO_ROOM
        self._values += reading.values
        return _placed(errand.way, reading)

    def release(self, reading: Reading) -> None:
        """Give back a reading that is no longer used: others may be read then."""
        self._values -= reading.values

    def read(self, way: Route, data: bytes | bytearray) -> Reading | None:
        """Read a body that was written here."""
        assert way.wire is not None
        try:
            reading = self._engine.read(data, way.wire)
            return None if reading is None else _placed(way, reading)
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


def _placed(way: Route, reading: Reading) -> Reading:
    """Return a reading with what the path of its request says about it."""
    scene = way.endpoint.of(reading.scene)
    return reading if scene is reading.scene else replace(reading, scene=scene)
