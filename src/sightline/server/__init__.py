"""The HTTP/1.1 server: an `asyncio.BufferedProtocol` on httptools that runs an ASGI application.

`runner.py` listens and stops, `protocol.py` is a connection, `head.py` checks requests, `probing.py` notices
clients that left, `cycle.py` is one request with its response, `asgi.py` is what an application sees. `bodies.py` reads
a body whole for an application, within the memory that `budget.py` lets all bodies take.
"""

from sightline.server.asgi import AT_ONCE, LINE, App, Line, Message, Receive, Send
from sightline.server.runner import serve_app

__all__ = ["AT_ONCE", "LINE", "App", "Line", "Message", "Receive", "Send", "serve_app"]
