"""An HTTP/1.1 server on loopback, in a thread of its own, that records requests and can misbehave."""

import asyncio
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Literal, Self
from urllib.parse import unquote

import h11

from tests.scripted.faults import Cut, Fault, Garble, Hang, Refuse, Reset

End = Literal["answered", "abandoned", "cut"]
_CHUNK = 256 * 1024


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request, byte for byte, and how its answer ended."""

    method: str
    target: bytes
    headers: tuple[tuple[bytes, bytes], ...]  # as sent: case, order and repetitions kept
    body: bytes
    end: Future[End] = field(default_factory=Future, compare=False, repr=False)

    @property
    def path(self) -> str:
        return unquote(self.target.partition(b"?")[0].decode("ascii"))

    @property
    def query(self) -> bytes:
        return self.target.partition(b"?")[2]

    def header(self, name: str) -> list[str]:
        """The values of a header, one for each time it was sent."""
        wanted = name.lower().encode()
        return [value.decode("latin-1") for key, value in self.headers if key.lower() == wanted]

    @property
    def abandoned(self) -> bool:
        """Whether the client went away before the answer ended; waits for the end."""
        return self.end.result(timeout=30) == "abandoned"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer: one part is a whole body, the parts of a stream are its events."""

    status: int
    headers: tuple[tuple[str, str], ...]
    parts: tuple[bytes, ...]
    streamed: bool = False
    fault: Fault | None = None


class Server:
    """Serves `answer` on 127.0.0.1 while entered; `refuse` is asked at each accept."""

    def __init__(self, answer: Callable[[Exchange], Reply], refuse: Callable[[], bool], port: int = 0) -> None:
        self._answer = answer
        self._refuse = refuse
        self._wanted_port = port
        self._ready: Future[int] = Future()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._main()), daemon=True)
        self._connections: dict[asyncio.Task[None], _Connection] = {}

    @property
    def port(self) -> int:
        return self._ready.result(timeout=30)

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result(timeout=30)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(timeout=30)

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        try:
            server = await asyncio.start_server(self._connected, "127.0.0.1", self._wanted_port, limit=_CHUNK)
        except OSError as error:
            self._ready.set_exception(error)
            return
        self._ready.set_result(server.sockets[0].getsockname()[1])
        await self._stop.wait()
        server.close()
        for task, connection in list(self._connections.items()):
            connection.abort()
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = _Connection(reader, writer)
        task = asyncio.ensure_future(self._served(connection))
        self._connections[task] = connection
        task.add_done_callback(self._connections.pop)

    async def _served(self, connection: "_Connection") -> None:
        try:
            if not self._refuse():
                await self._converse(connection)
        except (ConnectionError, h11.ProtocolError):
            pass  # a client that leaves, or talks nonsense, has no more to hear
        finally:
            connection.close()
            with suppress(ConnectionError):
                await connection.closed()

    async def _converse(self, connection: "_Connection") -> None:
        while (exchange := await connection.request()) is not None:
            end: End = "cut"
            try:
                end = await connection.answer(self._answer(exchange))
            except ConnectionError:
                end = "abandoned"
            finally:
                exchange.end.set_result(end)
            if end != "answered" or not connection.reusable():
                return


class _Connection:
    """One client's connection: HTTP by h11, and a reader that notices when the client leaves."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=1024 * 1024)
        self._reading: asyncio.Task[bytes] | None = None

    async def request(self) -> Exchange | None:
        """The next request, whole; None when the client has no more."""
        head: h11.Request | None = None
        body: list[bytes] = []
        while True:
            event = await self._event()
            match event:
                case h11.Request():
                    head = event
                case h11.Data():
                    body.append(bytes(event.data))
                case h11.EndOfMessage() if head is not None:
                    headers = tuple((bytes(key), bytes(value)) for key, value in head.headers.raw_items())
                    return Exchange(head.method.decode(), bytes(head.target), headers, b"".join(body))
                case _:
                    return None

    async def _event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._send(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._read())
        return event

    async def _read(self) -> bytes:
        reading, self._reading = self._reading, None
        return await (reading or self._reader.read(_CHUNK))

    async def answer(self, reply: Reply) -> End:
        """Send the reply, unless the client leaves before its end."""
        sending = asyncio.ensure_future(self._reply(reply))
        self._reading = self._reading or asyncio.ensure_future(self._reader.read(_CHUNK))
        try:
            await asyncio.wait({sending, self._reading}, return_when=asyncio.FIRST_COMPLETED)
            if not sending.done() and self._left():
                return "abandoned"
            return await sending
        finally:
            sending.cancel()

    def _left(self) -> bool:
        assert self._reading is not None
        return self._reading.exception() is not None or not self._reading.result()

    async def _reply(self, reply: Reply) -> End:
        fault = reply.fault
        if isinstance(fault, Hang) and fault.after is None:
            await fault.wait()
        if isinstance(fault, Refuse):
            return "cut"
        if isinstance(fault, Garble):
            self._writer.write(fault.said)
            await self._writer.drain()
            return "cut"
        if isinstance(fault, Reset):
            self._writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-st")
            await self._writer.drain()
            self.reset()
            return "cut"
        framing = ("transfer-encoding", "chunked") if reply.streamed else _length(reply)
        reason = HTTPStatus(reply.status).phrase if reply.status in set(HTTPStatus) else ""
        headers = [*reply.headers, framing]
        self._send(h11.Response(status_code=reply.status, headers=headers, reason=reason.encode()))
        return await self._parts(reply)

    async def _parts(self, reply: Reply) -> End:
        fault = reply.fault
        for number, part in enumerate((*reply.parts, b"")):
            if isinstance(fault, Hang) and fault.after == number:
                await fault.wait()
            if isinstance(fault, Cut) and (fault.after == number or not reply.streamed):
                if not reply.streamed:
                    self._send(h11.Data(data=part[: len(part) // 2]))
                await self._writer.drain()
                if fault.reset:
                    self.reset()
                return "cut"
            if part:
                self._send(h11.Data(data=part))
                await self._writer.drain()
        self._send(h11.EndOfMessage())
        return "answered"

    def _send(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)

    def reusable(self) -> bool:
        """Whether another request may follow on this connection."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        return True

    def close(self) -> None:
        """End the connection in order."""
        self._writer.close()
        if self._reading is not None:
            self._reading.cancel()

    def abort(self) -> None:
        """End the connection at once, whatever is still to be sent."""
        self._writer.transport.abort()

    def reset(self) -> None:
        """End the connection so that the client meets a reset in place of an end."""
        raw: socket.socket = self._writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    async def closed(self) -> None:
        """Wait until the connection has ended."""
        await self._writer.wait_closed()


def _length(reply: Reply) -> tuple[str, str]:
    return ("content-length", str(sum(map(len, reply.parts))))
