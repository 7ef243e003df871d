"""HTTP clients for the SDKs of OpenAI, Anthropic and Google that prepare the images of each request.

The SDKs take a client of httpx2, and older ones one of httpx; both have the same API. The clients here prepare the body
of a request whose path belongs to a known wire, and send everything else unchanged. A redirect to another host gets no
key.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from sightline.api.body_preparation import PreparedBody, prepare
from sightline.api.session import Session
from sightline.model.profile import CREDENTIAL_HEADERS
from sightline.vision.background_loop import run_in_thread
from sightline.wire import WIRES
from sightline.wire.scene_reader import Endpoint

_log = logging.getLogger("sightline")
_LIBRARIES: Mapping[str, Callable[[], Any]] = {
    "httpx2": lambda: import_module("httpx2"),
    "httpx": lambda: import_module("httpx"),
}
_TIMEOUT_SECONDS = 600.0  # as the SDKs have it: a model may think for minutes
_CONNECT_SECONDS = 5.0
_ORIGIN = "sightline_origin"  # the extension of a request with the origin of the first one, which redirects keep
_KEY_HEADERS = (*CREDENTIAL_HEADERS, "cookie", "proxy-authorization", "x-sightline-token")


def http_client(*, session: Session | None = None, library: str | None = None, **options: Any) -> Any:
    """Return a client for an SDK, for example `OpenAI(http_client=sightline.http_client())`.

    session: the settings and record to use; without one, the user's own.
    library: "httpx2" or "httpx"; None: httpx2 if it is installed.
    options: more arguments for the `Client` of that library.
    """
    httpx = _import_library(library)

    class PreparingClient(httpx.Client):  # type: ignore[misc, name-defined]
        def send(self, request: Any, **how: Any) -> Any:
            request.read()
            return super().send(_prepare_request(request, session), **how)

    return PreparingClient(**_complete_options(httpx, options, _drop_keys))


def async_http_client(*, session: Session | None = None, library: str | None = None, **options: Any) -> Any:
    """Return a client for an asynchronous SDK, for example `AsyncOpenAI(http_client=…)`; see `http_client`.

    session: the settings and record to use; without one, the user's own.
    library: "httpx2" or "httpx"; None: httpx2 if it is installed.
    options: more arguments for the `AsyncClient` of that library.
    """
    httpx = _import_library(library)

    class PreparingAsyncClient(httpx.AsyncClient):  # type: ignore[misc, name-defined]
        async def send(self, request: Any, **how: Any) -> Any:
            await request.aread()
            return await super().send(await run_in_thread(_prepare_request, request, session), **how)

    async def drop_keys(request: Any) -> None:
        _drop_keys(request)

    return PreparingAsyncClient(**_complete_options(httpx, options, drop_keys))


def _import_library(name: str | None) -> Any:
    """Return the module of an HTTP library. Raise an ImportError that says what to install if there is none."""
    for each, load in _LIBRARIES.items():
        if name in (None, each):
            try:
                return load()
            except ImportError:
                continue
    raise ImportError(
        f"{name or 'httpx2'} is not installed, or is not a library for this; it comes with: pip install openai"
    )


def _complete_options(httpx: Any, options: dict[str, Any], before_request: Callable[[Any], object]) -> dict[str, Any]:
    timeout = httpx.Timeout(_TIMEOUT_SECONDS, connect=_CONNECT_SECONDS)
    hooks = dict(options.get("event_hooks") or {})
    hooks["request"] = [*hooks.get("request", ()), before_request]
    return {"timeout": timeout, "follow_redirects": True, **options, "event_hooks": hooks}


def _drop_keys(request: Any) -> None:
    """Take the keys out of a request that was redirected to another host. httpx itself only does it to one of them."""
    origin, now = request.extensions[_ORIGIN], _find_origin(request)
    is_upgrade = (origin[:2], now[:2]) == (("http", now[1]), ("https", origin[1])) and origin[2] == now[2] is None
    for name in () if now == origin or is_upgrade else _KEY_HEADERS:
        request.headers.pop(name, None)


def _find_origin(request: Any) -> tuple[str, str, int | None]:
    return request.url.scheme, request.url.host, request.url.port  # None: the usual port


def _prepare_request(request: Any, session: Session | None) -> Any:
    """Return a request with a prepared body; the same request if nothing has to be changed.

    It knows its origin, so that a redirect can be told apart.
    """
    request.extensions = {**request.extensions, _ORIGIN: _find_origin(request)}
    found = _find_wire(request.url.path) if request.method == "POST" and request.content else None
    if found is None:
        return request
    prefix, wire, endpoint = found
    upstream = f"{request.url.scheme}://{request.url.netloc.decode()}{prefix}"  # without a login
    done = prepare(request.content, wire=wire, model=endpoint.model, upstream=upstream, session=session)
    if not isinstance(done, PreparedBody):
        _log.warning("the images of a request were left as they are: %s", done)
        return request
    if not done.changed:
        return request
    headers = [(name, value) for name, value in request.headers.raw if name.lower() != b"content-length"]
    rebuilt = type(request)(request.method, request.url, headers=headers, content=done.body)
    rebuilt.extensions = request.extensions
    return rebuilt


def _find_wire(path: str) -> tuple[str, str, Endpoint] | None:
    """Return the wire that a path belongs to, with the part of the path before it."""
    for wire in WIRES:
        start = len(path)
        while (start := path.rfind("/", 0, start)) >= 0:
            if (endpoint := wire.match_path(path[start:])) is not None:
                return path[:start], wire.name, endpoint
    return None
