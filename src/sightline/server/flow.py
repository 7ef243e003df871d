"""Flow control of one connection, in both directions."""

from __future__ import annotations

import asyncio


class FlowControl:
    """Remembers whether reading and writing are paused; pausing or resuming twice does nothing."""

    __slots__ = ("_transport", "_writable", "read_paused", "write_paused")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._writable: asyncio.Event | None = None  # set by `resume_writing`; made when something waits for it
        self.read_paused = False
        self.write_paused = False

    async def drain(self) -> None:
        """Wait until there is room to write."""
        while self.write_paused:
            if self._writable is None:
                self._writable = asyncio.Event()
            await self._writable.wait()

    def pause_reading(self) -> None:
        if not self.read_paused:
            self.read_paused = True
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self.read_paused:
            self.read_paused = False
            self._transport.resume_reading()

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._writable is not None:
            self._writable.set()
            self._writable = None
