"""Replies of a scripted provider: JSON, streams, refusals and echoes, before they go out."""

import base64
import json
import zlib
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Protocol

import brotli
import zstandard

from tests.scripted.faults import Fail
from tests.scripted.server import Exchange, Reply
from tests.scripted.talk import Asked, Json, No, Picture, Said


class Face(Protocol):
    """One wire: how a request is read, and how an answer is written."""

    PART: str
    PRELUDE: tuple[bytes, ...]  # what may come in a stream before it says anything

    def read(self, body: Json, *, counting: bool = False, lenient: bool = False) -> Asked | No: ...
    def index(self, picture: Picture) -> int: ...
    def error(self, no: No) -> Json: ...
    def error_event(self, no: No) -> bytes: ...
    def whole(self, asked: Asked, said: Said) -> Json: ...
    def events(self, asked: Asked, said: Said) -> list[bytes]: ...


_FAILURES: dict[int, tuple[str, str]] = {
    401: ("authentication_error", "invalid x-api-key"),
    429: ("rate_limit_error", "This request would exceed your account's rate limit. Please try again later."),
    503: ("api_error", "Service Unavailable"),
    529: ("overloaded_error", "Overloaded"),
}
_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: zlib.decompress(data, wbits=31),
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}


def body_of(exchange: Exchange) -> Json:
    """The request's JSON object; empty when there is none."""
    data = exchange.body
    try:
        for encoding in exchange.header("content-encoding"):
            data = _DECODERS[encoding](data)
        body = json.loads(data)
    except (ValueError, KeyError, zlib.error, brotli.error, zstandard.ZstdError):
        return {}
    return body if isinstance(body, dict) else {}


def failure(status: int) -> No:
    """What a provider says with this status."""
    kind, message = _FAILURES.get(status, ("api_error", "Internal server error"))
    return No(status, message, kind)


def echo(exchange: Exchange) -> Json:
    """The request as it came, byte for byte."""
    return {
        "method": exchange.method,
        "path": exchange.path,
        "query": exchange.query.decode("latin-1"),
        "headers": [[key.decode("latin-1"), value.decode("latin-1")] for key, value in exchange.headers],
        "body_base64": base64.b64encode(exchange.body).decode(),
    }


def whole(body: Json, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """A JSON answer in one part."""
    kind = (("content-type", "application/json"), ("x-request-id", "req_scripted"))
    return Reply(status, (*kind, *headers), (json.dumps(body, ensure_ascii=False).encode(),))


def stream(events: Iterable[bytes]) -> Reply:
    """An answer that comes event by event."""
    kind = (("content-type", "text/event-stream; charset=utf-8"), ("cache-control", "no-cache"))
    return Reply(200, (*kind, ("x-request-id", "req_scripted")), tuple(events), streamed=True)


def refuse(face: Face, no: No, headers: tuple[tuple[str, str], ...] = ()) -> Reply:
    """A no, in the face's shape."""
    return whole(face.error(no), no.status, headers)


def failed(face: Face, fault: Fail) -> Reply:
    """The error that a fault asks for."""
    wait = () if fault.retry_after is None else (("retry-after", str(fault.retry_after)),)
    no = failure(fault.status)
    return replace(refuse(face, replace(no, message=fault.words or no.message), wait), fault=fault)


def packed(reply: Reply) -> Reply:
    """The reply in gzip, each part of a stream readable when it arrives."""
    packer = zlib.compressobj(wbits=31)
    parts = [packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in reply.parts]
    headers = (*reply.headers, ("content-encoding", "gzip"), ("vary", "accept-encoding"))
    return replace(reply, headers=headers, parts=(*parts, packer.flush()))
