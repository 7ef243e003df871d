"""The HTTP/1.1 server: an `asyncio.BufferedProtocol` on httptools that runs an ASGI application.

`runner.py` listens and stops, `protocol.py` is a connection, `head.py` checks requests, `cycle.py` is one request with
its response, `asgi.py` is what an application sees, and `bodies.py` reads a body whole for it, within the memory that
all bodies may take.

What it relies on, beyond the documentation of asyncio (`tests/server` fails where one of these is not so):

- httptools: the callbacks of `HttpRequestParser`; `HttpParserUpgrade.args[0]`, the offset of the first byte behind the
  head; an error that a callback raises is the `__context__` of the `HttpParserError` that `feed_data` raises.
- llhttp is strict: it accepts no head that RFC 9112 forbids, except for what `head.py` checks.
- CPython: `PyByteArray_FromStringAndSize(NULL, n)` does not touch the memory.
"""

from sightline.server.asgi import AT_ONCE, LINE, App, Line, Message, Receive, Scope, Send
from sightline.server.runner import serve_app

__all__ = ["AT_ONCE", "LINE", "App", "Line", "Message", "Receive", "Scope", "Send", "serve_app"]
