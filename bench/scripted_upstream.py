"""The scripted upstream: reads a whole request, then sends one fixed response or stream.

On the path of the Messages API it answers as Anthropic does, without streams, else as Chat Completions.
"""

import argparse
import asyncio
import json
import ssl
from pathlib import Path
from typing import cast

import uvloop
from bodies import MESSAGES_MODEL

STREAM_FLAGS = (b'"stream":true', b'"stream": true')
SMALL = 64 * 1024  # The stream flag is looked for in the beginning of a body.
MESSAGES_PATH = b"/v1/messages"
LAST_CHUNK = b"0\r\n\r\n"
ID = {"id": "chatcmpl-bench", "created": 1_700_000_000, "model": "gpt-6-sol"}


def _frame_reply(reply: object) -> bytes:
    body = json.dumps(reply).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


def _build_chat_reply() -> bytes:
    message = {"role": "assistant", "content": "Four quadrants of noise."}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    usage = {"prompt_tokens": 400, "completion_tokens": 6, "total_tokens": 406}
    return _frame_reply({**ID, "object": "chat.completion", "choices": [choice], "usage": usage})


def _build_messages_reply() -> bytes:
    said = {"type": "text", "text": "Four quadrants of noise."}
    usage = {"input_tokens": 400, "output_tokens": 6}
    message = {"id": "msg_bench", "type": "message", "role": "assistant", "model": MESSAGES_MODEL, "content": [said]}
    return _frame_reply({**message, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage})


def _build_event(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    data = b"data: " + json.dumps({**ID, "object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


CHAT_REPLY, MESSAGES_REPLY = _build_chat_reply(), _build_messages_reply()
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
STREAM_TAIL = _build_event("", "stop") + b"e\r\ndata: [DONE]\n\n\r\n" + LAST_CHUNK


class ScriptedUpstream(asyncio.BufferedProtocol):
    """One connection. All share one receive buffer: bytes of a large body are counted, never kept."""

    scratch = memoryview(bytearray(1024 * 1024))

    def __init__(self, chunks: int, gap: float) -> None:
        self.chunks, self.gap = chunks, gap
        self.kept = b""  # the head and the beginning of the body, up to SMALL
        self.tail = b""
        self.expected: int | None = None  # bytes of head and body; None while the head is incomplete
        self.received = 0
        self.chunked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's transports are not its subclasses

    def get_buffer(self, _sizehint: int) -> memoryview:
        return self.scratch

    def buffer_updated(self, nbytes: int) -> None:
        self.received += nbytes
        if len(self.kept) < SMALL:
            self.kept += bytes(self.scratch[: min(nbytes, SMALL)])
            if self.expected is None and not self._read_head():
                return
        if self.chunked:
            self.tail = (self.tail + bytes(self.scratch[max(0, nbytes - 5) : nbytes]))[-5:]
            if self.tail == LAST_CHUNK:
                self._answer()
        elif self.expected is not None and self.received >= self.expected:
            self._answer()

    def _read_head(self) -> bool:
        end = self.kept.find(b"\r\n\r\n")
        if end < 0:
            return False
        head = self.kept[:end].lower()
        _, found, length = head.partition(b"\r\ncontent-length:")
        self.chunked = b"\r\ntransfer-encoding: chunked" in head
        self.expected = end + 4 + (int(length.split(b"\r\n", 1)[0]) if found else 0)
        return True

    def _answer(self) -> None:
        streams = any(flag in self.kept for flag in STREAM_FLAGS)
        reply = MESSAGES_REPLY if self.kept.startswith(b"POST " + MESSAGES_PATH) else CHAT_REPLY
        self.kept, self.tail, self.expected, self.received, self.chunked = b"", b"", None, 0, False
        if streams:
            self.transport.write(STREAM_HEAD)
            self._send_chunk(0)
        else:
            self.transport.write(reply)

    def _send_chunk(self, index: int) -> None:
        if self.transport.is_closing():
            return
        if index == self.chunks:
            self.transport.write(STREAM_TAIL)
            return
        self.transport.write(_build_event(f"word {index} "))
        asyncio.get_running_loop().call_later(self.gap, self._send_chunk, index + 1)


def _build_tls_context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    context.set_alpn_protocols(["http/1.1"])
    return context


async def serve(chunks: int, gap: float, secured: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: ScriptedUpstream(chunks, gap), "127.0.0.1", 0, backlog=1024, ssl=secured)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=200, help="events in a stream")
    parser.add_argument("--gap", type=float, default=0.002, help="seconds between two events")
    parser.add_argument("--tls", nargs=2, type=Path, metavar=("CERTIFICATE", "KEY"), help="with TLS, by these files")
    args = parser.parse_args()
    uvloop.run(serve(args.chunks, args.gap, _build_tls_context(*args.tls) if args.tls else None))
