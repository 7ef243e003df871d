"""The MCP server: Sightline's tools for any host, over stdio and at /mcp of the proxy.

The official SDK speaks the protocol. Modules of the SDK and of the packages below are imported when they are first
needed, so that the handshake is fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from sightline.model.value import value_class

if TYPE_CHECKING:
    from sightline.api.session import ToolContext


@value_class
class ClientTerms:
    """What clients of one server may do."""

    open_context: Callable[[Mapping[str, str]], ToolContext]  # for a request with these headers; stdio has none
    reads_roots: bool = False  # folders that a client names may be read, because it could read them itself
    asks_consent: bool = (
        False  # the client's user may be asked: the owner agrees permanently, others only for themselves
    )
    get_shared_scope: Callable[[], str] = str  # the scope of all clients that can't be told apart
