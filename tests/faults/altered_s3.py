"""An HTTP server between a replica and its object storage that alters answers."""

from __future__ import annotations

import http.client
from collections.abc import Callable
from dataclasses import replace

from tests.real_servers import S3
from tests.scripted.faults import Hang
from tests.scripted.server import Exchange, Reply, Server

Alter = Callable[[Exchange, Reply], Reply]
_FRAMING = ("content-length", "transfer-encoding", "connection")


class AlteredS3(Server):
    """Passes requests on as they are, their signed host included, and answers through `alter`, or `refuse` at once."""

    def __init__(self, s3: S3) -> None:
        self._s3 = s3
        self.alter: Alter = pass_on
        self.refuse: Callable[[Exchange], Reply | None] = lambda exchange: None
        self.count = 0  # requests
        super().__init__(self._forward, lambda: False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _forward(self, exchange: Exchange) -> Reply:
        self.count += 1
        if (refused := self.refuse(exchange)) is not None:
            return refused
        connection = http.client.HTTPConnection("127.0.0.1", self._s3.port, timeout=30)
        try:
            connection.putrequest(exchange.method, exchange.target.decode(), skip_host=True, skip_accept_encoding=True)
            for name, value in exchange.headers:
                connection.putheader(name.decode(), value)
            connection.endheaders(exchange.body)
            answer = connection.getresponse()
            headers = tuple(pair for pair in answer.getheaders() if pair[0].lower() not in _FRAMING)
            reply = Reply(answer.status, headers, (answer.read(),))
        finally:
            connection.close()
        return self.alter(exchange, reply)


def pass_on(exchange: Exchange, reply: Reply) -> Reply:
    return reply


def refuse_bulk_deletes(exchange: Exchange) -> Reply | None:
    """Know no DeleteObjects, like several servers that speak a part of S3."""
    body = b"<?xml version='1.0'?><Error><Code>NotImplemented</Code><Message>A header or query</Message></Error>"
    is_bulk = exchange.method == "POST" and b"?delete" in exchange.target
    return Reply(501, (("content-type", "application/xml"),), (body,)) if is_bulk else None


def refuse_for_a_while(exchange: Exchange, reply: Reply) -> Reply:
    body = b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>Reduce your request rate</Message></Error>"
    return Reply(503, (("content-type", "application/xml"),), (body,))


def change_etag(exchange: Exchange, reply: Reply) -> Reply:
    others = tuple(pair for pair in reply.headers if pair[0].lower() != "etag")
    return replace(reply, headers=(*others, ("etag", '"0123456789abcdef0123456789abcdef"')))


def change_bytes(exchange: Exchange, reply: Reply) -> Reply:
    """Answer with other bytes of the same length, as a proxy does that confuses two objects."""
    is_object = exchange.method == "GET" and reply.status == 200
    return replace(reply, parts=tuple(bytes(len(part)) for part in reply.parts)) if is_object else reply


def hang(fault: Hang) -> Alter:
    return lambda exchange, reply: replace(reply, fault=fault) if exchange.method == "PUT" else reply
