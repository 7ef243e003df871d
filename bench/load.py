"""The load generator: kept-alive connections on one epoll loop, a bounded count of requests, JSON out."""

import argparse
import hashlib
import http.client
import itertools
import json
import math
import select
import socket
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bodies import MODEL

SEND = 1024 * 1024
LAST_CHUNK = b"0\r\n\r\n"
LEAST = 5  # requests that are sent however long they take


@dataclass
class Tally:
    """What was seen of the replies."""

    done: int = 0
    first_ms: list[float] = field(default_factory=list)
    longest_ms: list[float] = field(default_factory=list)  # the longest pause within each reply
    pauses_ms: list[float] = field(default_factory=list)  # all of them
    bodies: set[str] = field(default_factory=set)

    def add(self, flow: "Flow") -> None:
        self.done += 1
        self.first_ms.append((flow.first - flow.started) * 1000)
        pauses = [pause * 1000 for pause in flow.pauses]
        self.longest_ms.append(max(pauses, default=0.0))
        self.pauses_ms += pauses
        self.bodies.add(hashlib.sha256(flow.body()).hexdigest())


@dataclass
class Flow:
    """One connection and the request it has in flight."""

    sock: socket.socket
    out: memoryview
    started: float
    first: float = 0.0
    last: float = 0.0  # when the last piece came
    pauses: list[float] = field(default_factory=list)  # times between two pieces
    reply: bytearray = field(default_factory=bytearray)
    size: int | None = None  # of the whole reply; None while unknown or chunked

    def begin(self, request: bytes) -> None:
        self.out, self.started, self.size = memoryview(request), time.perf_counter(), None
        self.first = self.last = 0.0
        self.pauses.clear()
        self.reply.clear()

    def send(self) -> bool:
        """Send what the socket takes; true when the whole request is out."""
        while self.out:
            try:
                self.out = self.out[self.sock.send(self.out[:SEND]) :]
            except BlockingIOError:
                return False
        return True

    def receive(self) -> bool:
        """Read what has come; true when the reply is whole."""
        piece = self.sock.recv(262_144)
        if not piece:
            raise SystemExit(f"load: the connection closed within a reply: {bytes(self.reply[:600])!r}")
        now = time.perf_counter()
        if self.last:
            self.pauses.append(now - self.last)
        self.last = now
        self.reply += piece
        if self.first == 0.0 and not self._read_head():
            return False
        return len(self.reply) == self.size if self.size else self.reply.endswith(LAST_CHUNK)

    def _read_head(self) -> bool:
        """Learn where the reply ends; false until a byte of its body is there."""
        end = self.reply.find(b"\r\n\r\n")
        if end < 0 or end + 4 == len(self.reply):
            return False
        self.first = self.last
        head = bytes(self.reply[:end]).lower()
        if not head.startswith(b"http/1.1 200"):
            status, _, text = bytes(self.reply).partition(b"\r\n")[0], *bytes(self.reply).partition(b"\r\n\r\n")[1:]
            raise SystemExit(f"load: refused: {status.decode()}: {text[:160]!r}")
        _, found, length = head.partition(b"\r\ncontent-length:")
        self.size = end + 4 + int(length.split(b"\r\n", 1)[0]) if found else None
        return True

    def body(self) -> bytes:
        _, _, rest = bytes(self.reply).partition(b"\r\n\r\n")
        return rest if self.size else b"".join(_unchunk(rest))


def _unchunk(data: bytes) -> Iterator[bytes]:
    while data:
        line, _, data = data.partition(b"\r\n")
        size = int(line.split(b";")[0], 16)
        yield data[:size]
        data = data[size + 2 :]


def build_request(port: int, path: str, headers: list[str], body: bytes) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer sk-bench\r\nAccept: */*\r\nContent-Length: {len(body)}\r\n"
    )
    return "".join([head, *(f"{header}\r\n" for header in headers), "\r\n"]).encode() + body


def drive(port: int, requests: list[bytes], connections: int, count: int, seconds: float = math.inf) -> Tally:
    """Send `count` of the requests, in turn, over `connections`, and wait for every reply.

    After so many seconds no request is begun, but at least LEAST are sent, and one over each connection.
    """
    turns, connections = itertools.islice(itertools.cycle(requests), count), min(connections, count)
    return _drive(port, [_stop_after(seconds, max(LEAST, connections), turns)] * connections)


def _stop_after(seconds: float, least: int, requests: Iterator[bytes]) -> Iterator[bytes]:
    end = time.perf_counter() + seconds
    for number, request in enumerate(requests):
        if number >= least and time.perf_counter() > end:
            return
        yield request


def drive_with_pauses(port: int, requests: list[bytes], count: int, pause: float) -> Tally:
    """Send `count` of the requests, in turn, over one connection, with a pause of so many seconds before each."""
    return _drive(port, [_pause_before(pause, itertools.islice(itertools.cycle(requests), count))])


def _pause_before(seconds: float, requests: Iterator[bytes]) -> Iterator[bytes]:
    for request in requests:
        time.sleep(seconds)
        yield request


def send_repeatedly(port: int, request: bytes) -> Iterator[None]:
    """Send a request over and over, each time on a new connection; yield after each answer, whatever it is."""
    while True:
        with socket.create_connection(("127.0.0.1", port)) as sock:
            try:
                sock.sendall(request)
                response = http.client.HTTPResponse(sock)
                response.begin()
                response.read()
            except (OSError, http.client.HTTPException):
                pass  # a body may be refused before all of it is sent
        yield


def drive_conversations(port: int, conversations: list[list[bytes]]) -> Tally:
    """Send each conversation over a connection of its own, one request after the other."""
    return _drive(port, [iter(requests) for requests in conversations])


def _drive(port: int, sources: list[Iterator[bytes]]) -> Tally:
    """Send over each connection what its source gives, until no source gives anything more."""
    tally, poll, flows = Tally(), select.epoll(), {}
    for source in sources:
        sock = socket.create_connection(("127.0.0.1", port))
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(0)
        flows[sock.fileno()] = Flow(sock, memoryview(b""), 0.0), source
    for fd, (flow, source) in flows.items():
        flow.begin(next(source))
        poll.register(fd, select.EPOLLIN if flow.send() else select.EPOLLIN | select.EPOLLOUT)
    busy = len(flows)
    while busy:
        for fd, events in poll.poll():
            flow, source = flows[fd]
            if events & select.EPOLLOUT and flow.send():
                poll.modify(fd, select.EPOLLIN)
            if not events & ~select.EPOLLOUT or not flow.receive():
                continue
            tally.add(flow)
            following = next(source, None)
            if following is None:
                poll.unregister(fd)  # a server may now close it as idle
                busy -= 1
                continue
            flow.begin(following)
            if not flow.send():
                poll.modify(fd, select.EPOLLIN | select.EPOLLOUT)
    for flow, _ in flows.values():
        flow.sock.close()
    return tally


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("bodies", type=Path, nargs="+", help="files with request bodies, sent in turn")
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no more requests after that time")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds before each request, on one connection")
    parser.add_argument("--forever", action="store_true", help="print a line after each answer, until terminated")
    parser.add_argument("--path", default="/v1/chat/completions")
    parser.add_argument("--model", default=MODEL, help="the name of the model, if the peer wants another one")
    parser.add_argument("--header", action="append", default=[], help="another header: 'name: value'")
    args = parser.parse_args()
    named = f'"model":"{args.model}"'.encode()
    bodies = [path.read_bytes().replace(f'"model":"{MODEL}"'.encode(), named, 1) for path in args.bodies]
    requests = [build_request(args.port, args.path, args.header, body) for body in bodies]
    if args.forever:
        for _ in send_repeatedly(args.port, requests[0]):
            print(flush=True)
    start = time.perf_counter()
    if args.pause:
        tally = drive_with_pauses(args.port, requests, args.count, args.pause)
    else:
        tally = drive(args.port, requests, args.connections, args.count, args.seconds)
    seconds = time.perf_counter() - start
    first = statistics.median(tally.first_ms)
    p99 = sorted(tally.first_ms)[int(len(tally.first_ms) * 0.99)]
    seen = {"done": tally.done, "seconds": seconds, "first_ms": first, "p99_ms": p99, "sha256": sorted(tally.bodies)}
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
