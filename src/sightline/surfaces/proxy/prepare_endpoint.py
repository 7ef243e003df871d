"""`POST /sightline/prepare`: what `sightline.prepare` does, for programs in other languages.

A request is JSON: `body` (a request body, or its messages) and, as in the library, `wire`, `model`, `upstream` and
`retention`. The answer has the prepared `body`, whether it is `changed`, and the `receipt`. The proxy's own engine
prepares it. Images belong to the credential that the client sends, as in the proxy; the client's upstream may be asked
about them with that credential. A client is not the user who runs the proxy: a key of the user's environment is used
only with the user's consent, no address is put under the name of a known provider, and nothing is sent to an address
that only the client knows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import orjson

from sightline.api import Failure
from sightline.api.body_preparation import BodyReading, BodySender, prepare_reading, read_given_body
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.runtime import Runtime
from sightline.server import Receive, Scope, Send
from sightline.server.asgi import ClientDisconnected, MemoryBudget
from sightline.surfaces.proxy.bodies import MAX_BODY_BYTES, BufferedBody, read_request_body
from sightline.surfaces.proxy.http_headers import CREDENTIAL_HEADERS, NO_CREDENTIAL, ClientRequest
from sightline.surfaces.proxy.request_context import CancelOnDisconnect, describe_refusal
from sightline.wire.json_document import lift_runs, parse_object

_INLINE_BYTES = 64 * 1024  # of a request that is read, prepared and written without a thread
_PLACEHOLDER = "sightline-base64-"  # in the place of base64 while a request is measured
_OPTIONS = ("wire", "model", "upstream", "retention")
_USAGE = "send a JSON object with body and, if needed, wire, model, upstream and retention"
_NOT_POST = Refusal("invalid_input", "only POST is answered here", _USAGE)
_TOO_LARGE = Refusal("too_large", f"the body is larger than {MAX_BODY_BYTES >> 20} MiB", "send a smaller one")
_NAME_AND_ADDRESS = Refusal("invalid_input", "an upstream is a name or an address, not both", "leave out NAME=")
_NOT_AN_OBJECT = Refusal("invalid_input", "this is not a JSON object with a body", _USAGE)

P = ParamSpec("P")
T = TypeVar("T")


class PrepareEndpoint:
    """An ASGI application. `find_runtime` is called for each request, and may follow the settings then."""

    def __init__(self, find_runtime: Callable[[], Runtime], memory: MemoryBudget | None = None) -> None:
        self._find_runtime = find_runtime
        self._memory = memory or MemoryBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._memory.start_reservation() as memory:
            request = ClientRequest(scope["method"], scope["headers"])
            length = request.get_header(b"content-length")
            known = int(length) if length.isdigit() else None
            answer: tuple[int, bytes] | None = (405, _write_error(_NOT_POST))
            if request.method == "POST":
                try:
                    body = await read_request_body(receive, known, MAX_BODY_BYTES, None, memory)
                except ClientDisconnected:
                    return
                answer = None
                with CancelOnDisconnect(receive):
                    answer = await self._answer(request, body)
            if answer is None:
                return
        head = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": answer[0], "headers": head})
        await send({"type": "http.response.body", "body": answer[1], "more_body": False})

    async def _answer(self, request: ClientRequest, body: object) -> tuple[int, bytes]:
        if isinstance(body, Refusal):
            return 503, _write_error(body)
        if not isinstance(body, BufferedBody):
            return 413, _write_error(_TOO_LARGE)
        runtime = self._find_runtime()
        credential = next(filter(None, map(request.get_header, CREDENTIAL_HEADERS)), NO_CREDENTIAL)
        sender = BodySender(runtime.record.compute_scope(credential), _select_headers(request))
        return await answer_request(body.data, runtime, sender)


async def answer_request(data: bytes | bytearray, runtime: Runtime, sender: BodySender) -> tuple[int, bytes]:
    """Return the status and the body of the answer to a request. Work on a large one is done in a thread."""
    heavy = len(data) > _INLINE_BYTES

    async def offload(work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        thread = runtime.engine.compute_thread
        return await thread.run(sender.scope, work, *args, **kwargs) if heavy else work(*args, **kwargs)

    request = await offload(_read_request, data)
    if isinstance(request, Refusal):
        return 413 if request.code == "too_large" else 400, _write_error(request)
    body, options = request
    wire = options.pop("wire", None)
    read = await offload(read_given_body, runtime, body, wire, heavy=heavy, caller=sender.scope)
    if not isinstance(read, BodyReading):
        return 400, _write_error(read or _NOT_AN_OBJECT)
    done = await prepare_reading(runtime, read, sender, **options)
    if isinstance(done, Failure):
        return 400, _write_error(done.refusal)
    fields = {"body": done.body, "changed": done.changed, "receipt": done.receipt.as_json()}
    return 200, await offload(_write_json, fields)


def _select_headers(request: ClientRequest) -> tuple[tuple[str, str], ...]:
    """Return the client's credential, if it has sent one."""
    return tuple((name.decode(), value) for name in CREDENTIAL_HEADERS if (value := request.get_header(name)))


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
