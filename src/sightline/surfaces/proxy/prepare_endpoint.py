"""`POST /sightline/prepare`: what `sightline.prepare` does, for programs in other languages.

A request is JSON: `body` (a request body, or its messages) and, as in the library, `wire`, `model`, `upstream` and
`retention`. The answer has the prepared `body`, whether it is `changed`, and the `receipt`. Images that are given here
belong to the user who runs the proxy, like those of the library. But a client is not that user: a key of the user's
environment is used only with the user's consent, and no address is put under the name of a known provider.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import orjson

from sightline.api import Failure, Session
from sightline.api.body_preparation import prepare
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.server import Receive, Scope, Send
from sightline.server.asgi import ClientDisconnected, MemoryBudget
from sightline.surfaces.proxy.request_bodies import MAX_BODY_BYTES, BufferedBody, read_request_body
from sightline.surfaces.proxy.request_context import describe_refusal
from sightline.vision.background_loop import run_in_thread
from sightline.wire.json_document import lift_runs, parse_object

PREPARE_PATH = "/sightline/prepare"
_PLACEHOLDER = "sightline-base64-"  # in the place of base64 while a request is measured
_OPTIONS = ("wire", "model", "upstream", "retention")
_USAGE = "send a JSON object with body and, if needed, wire, model, upstream and retention"
_NOT_POST = Refusal("invalid_input", "only POST is answered here", _USAGE)
_TOO_LARGE = Refusal("too_large", f"the body is larger than {MAX_BODY_BYTES >> 20} MiB", "send a smaller one")
_NAME_AND_ADDRESS = Refusal("invalid_input", "an upstream is a name or an address, not both", "leave out NAME=")
_NOT_AN_OBJECT = Refusal("invalid_input", "this is not a JSON object with a body", _USAGE)


class PrepareEndpoint:
    """An ASGI application. `open_session` is called for each request, and may follow the settings then."""

    def __init__(self, open_session: Callable[[], Session], memory: MemoryBudget | None = None) -> None:
        self._open_session = open_session
        self._memory = memory or MemoryBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._memory.start_reservation() as memory:
            length = dict(scope["headers"]).get(b"content-length", b"")
            known = int(length) if length.isdigit() else None
            if scope["method"] != "POST":
                status, answer = 405, _write_error(_NOT_POST)
            else:
                try:
                    body = await read_request_body(receive, known, MAX_BODY_BYTES, None, memory)
                except ClientDisconnected:
                    return
                status, answer = await self._answer(body)
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": answer, "more_body": False})

    async def _answer(self, body: object) -> tuple[int, bytes]:
        if isinstance(body, Refusal):
            return 503, _write_error(body)
        if not isinstance(body, BufferedBody):
            return 413, _write_error(_TOO_LARGE)
        return await run_in_thread(answer_request, body.data, self._open_session())


def answer_request(data: bytes | bytearray, session: Session) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a request."""
    request = _read_request(data)
    if isinstance(request, Refusal):
        return 413 if request.code == "too_large" else 400, _write_error(request)
    body, options = request
    done = prepare(body, session=session, **options)
    if isinstance(done, Failure):
        return 400, _write_error(done.refusal)
    fields = {"body": done.body, "changed": done.changed, "receipt": done.receipt.as_json()}
    return 200, _write_json(fields)


def _read_request(data: bytes | bytearray) -> tuple[Json, dict[str, Any]] | Refusal:
    """Return the body in a request, and its options."""
    if isinstance(size := lift_runs(data, _PLACEHOLDER).measure(), Refusal):
        return Refusal("too_large", size.what, "send less in one request")
    given = parse_object(data)
    if not isinstance(given, dict) or not isinstance(body := given.pop("body", None), dict | list):
        return _NOT_AN_OBJECT
    if unknown := sorted(given.keys() - {*_OPTIONS}):
        return Refusal("invalid_input", f"there is no option {unknown[0]!r:.60}", _USAGE)
    options = {name: value for name, value in given.items() if value is not None}
    if not all(isinstance(value, str) for value in options.values()):
        return Refusal("invalid_input", "an option is not a text", _USAGE)
    is_both = "=" in str(options.get("upstream")).partition("://")[0]
    return _NAME_AND_ADDRESS if is_both else (body, options)


def _write_json(value: object) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:  # an integer above 64 bits, a lone surrogate, or nested too deep for it
        return json.dumps(value).encode()


def _write_error(refusal: Refusal) -> bytes:
    return json.dumps({"error": {"message": describe_refusal(refusal)}}).encode()
