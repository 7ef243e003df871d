"""Sessions of /mcp: a new one is always accepted, and a flood of them ends no session that is in use."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sightline.api.session import Session
from sightline.server import App, Message, Receive, Send
from sightline.server.asgi import MemoryBudget
from sightline.surfaces.mcp import ClientTerms, http
from sightline.surfaces.mcp.http import MAX_BYTES_WITHOUT_SESSION, HttpSessions, McpMount, SessionCaller
from sightline.surfaces.mcp.large_requests import MAX_REQUEST_MARKS
from sightline.vision.concurrency import ComputeThread
from tests.requirements import requirement
from tests.server.serving import served

VERSION = "2025-06-18"
ANYBODY = ("127.0.0.1", "")


class Ended:
    """Records the sessions that a table has ended."""

    def __init__(self) -> None:
        self.names: list[str] = []

    async def __call__(self, name: str) -> None:
        self.names.append(name)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MAX_SESSIONS", 8)
    monkeypatch.setattr(http, "MAX_SESSIONS_PER_CALLER", 4)


def use(table: HttpSessions, name: str, times: int = 2) -> None:
    for _ in range(times):
        with table.track_request(name):
            pass


async def admit(table: HttpSessions, name: str, caller: SessionCaller) -> None:
    table.add(name, caller)
    await table.end_excess(name, caller)


@requirement("mcp.http.sessions")
@pytest.mark.usefixtures("few")
async def test_a_caller_with_too_many_sessions_loses_its_own() -> None:
    ended = Ended()
    table = HttpSessions(ended)
    await admit(table, "other", ("127.0.0.1", "Bearer other"))
    for number in range(20):
        await admit(table, f"flood {number}", ANYBODY)
    assert ended.names == [f"flood {number}" for number in range(16)]


@requirement("mcp.http.sessions")
@pytest.mark.usefixtures("few")
async def test_a_flood_of_openings_ends_no_session_that_was_used() -> None:
    ended = Ended()
    table = HttpSessions(ended)
    await admit(table, "used", ANYBODY)
    use(table, "used")
    for number in range(50):
        await admit(table, f"flood {number}", ("127.0.0.1", f"Bearer {number}"))
    assert len(ended.names) == 43
    assert "used" not in ended.names


@requirement("mcp.http.sessions")
@pytest.mark.usefixtures("few")
async def test_the_least_recently_used_session_ends_first_and_a_busy_one_last() -> None:
    ended = Ended()
    table = HttpSessions(ended)
    for name in "abcd":
        await admit(table, name, ANYBODY)
        use(table, name)
    use(table, "a", 1)
    with table.track_request("b"):
        await admit(table, "e", ANYBODY)
        use(table, "e")
        await admit(table, "f", ANYBODY)
        assert ended.names == ["c", "d"]
    table.remove("a")
    use(table, "f")
    await admit(table, "g", ANYBODY)
    assert ended.names == ["c", "d"], "one has ended by itself"


# The same with the server itself.


@asynccontextmanager
async def mounted(memory: MemoryBudget | None = None, offload: ComputeThread | None = None) -> AsyncIterator[McpMount]:
    terms = ClientTerms(lambda headers: Session().tool_context, asks_consent=False, get_shared_scope=str)
    made = McpMount(terms, memory=memory, offload=offload)
    try:
        yield made
    finally:
        await made.close()


async def ask(mount: McpMount, body: bytes, session: str = "", method: str = "POST") -> tuple[int, str, bytes]:
    """Return the status, the session and the body of an answer."""
    headers = [(b"content-type", b"application/json"), (b"accept", b"application/json, text/event-stream")]
    headers += [(b"mcp-session-id", session.encode())] if session else []
    scope = {
        "type": "http",
        "method": method,
        "path": "/mcp",
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
    }
    told: list[Any] = []

    whole = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive() -> dict[str, Any]:
        if message := next(whole, None):
            return message
        await asyncio.Event().wait()  # the client stays
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message)

    await mount(scope, receive, send)
    given = dict(told[0]["headers"]).get(b"mcp-session-id", b"").decode()
    return told[0]["status"], given, b"".join(each.get("body", b"") for each in told)


def called(method: str, params: dict[str, Any] | None = None) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}).encode()


HELLO = called(
    "initialize",
    {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
)


@requirement("mcp.http.sessions")
@pytest.mark.usefixtures("few")
async def test_a_new_session_is_accepted_after_a_flood_and_an_ended_one_is_gone() -> None:
    async with mounted() as mount:
        status, own, _ = await ask(mount, HELLO)
        assert (status, bool(own)) == (200, True)
        for _ in range(3):
            assert (await ask(mount, called("ping"), own))[0] == 200
        flood = [await ask(mount, HELLO) for _ in range(12)]
        assert {status for status, *_ in flood} == {200}
        assert (await ask(mount, called("ping"), own))[0] == 200, "it was in use"
        assert (await ask(mount, called("ping"), flood[0][1]))[0] == 404
        assert (await ask(mount, called("ping"), flood[-1][1]))[0] == 200
        status, newcomer, _ = await ask(mount, HELLO)
        assert (status, (await ask(mount, called("ping"), newcomer))[0]) == (200, 200)
        assert (await ask(mount, b"", newcomer, method="DELETE"))[0] == 200
        assert (await ask(mount, called("ping"), newcomer))[0] == 404


@requirement("mcp.http.sessions")
@pytest.mark.usefixtures("few")
async def test_requests_that_open_no_session_end_none() -> None:
    async with mounted() as mount:
        _, own, _ = await ask(mount, HELLO)
        for body in [called("ping"), b"{}", b"["] * 6:
            assert (await ask(mount, body))[0] == 400
        assert (await ask(mount, called("ping"), own))[0] == 200


@requirement("mcp.http.values")
async def test_a_request_of_too_many_values_is_refused_before_it_is_parsed() -> None:
    async with mounted() as mount:
        status, _, body = await ask(mount, called("ping", {"a": [1] * (MAX_REQUEST_MARKS + 1)}))
        assert status == 413
        assert json.loads(body)["error"]["code"] == -32600
        assert (await ask(mount, HELLO))[0] == 200


async def post_from(address: str, port: int, body: bytes, session: str = "") -> tuple[int, str]:
    """Return the status and the session of the answer to a request from an address of this machine."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
    lines = ["POST /mcp HTTP/1.1", "host: 127.0.0.1", "connection: close", f"content-length: {len(body)}"]
    lines += ["content-type: application/json", "accept: application/json, text/event-stream"]
    lines += [f"mcp-session-id: {session}"] if session else []
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    status, *headers = (await reader.read()).partition(b"\r\n\r\n")[0].decode().split("\r\n")
    writer.close()
    named = dict(header.split(": ", 1) for header in headers)
    return int(status.split()[1]), named.get("mcp-session-id", "")


@requirement("mcp.http.sessions")
@pytest.mark.usefixtures("few")
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, the loopback interface has one address")
async def test_callers_without_a_credential_are_distinguished_by_address() -> None:
    async with mounted() as mount, served(mount) as port:
        status, own = await post_from("127.0.0.2", port, HELLO)
        assert status == 200
        flood = [await post_from("127.0.0.1", port, HELLO) for _ in range(6)]
        assert (await post_from("127.0.0.2", port, called("ping"), own))[0] == 200
        assert (await post_from("127.0.0.1", port, called("ping"), flood[0][1]))[0] == 404


def hold_first_response(mount: McpMount, release: asyncio.Event) -> App:
    """Return an application whose first response does not end before `release`, though its client has all of it."""
    held: list[str] = []

    async def app(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        is_first = scope["type"] == "http" and not held
        held.extend(["first"] if is_first else [])

        async def send_and_wait(message: Message) -> None:
            await send(message)
            if is_first and b"result" in message.get("body", b""):
                await release.wait()

        await mount(scope, receive, send_and_wait)

    return app


@requirement("mcp.http.sessions")
@pytest.mark.usefixtures("few")
async def test_a_session_that_is_used_before_its_opening_has_ended_counts_as_used() -> None:
    release = asyncio.Event()
    async with mounted() as mount, served(hold_first_response(mount, release)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = (
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(HELLO)}\r\ncontent-type: application/json"
        )
        writer.write(f"{head}\r\naccept: application/json, text/event-stream\r\n\r\n".encode() + HELLO)
        answer = await reader.readuntil(b"result")
        own = answer.partition(b"mcp-session-id: ")[2].partition(b"\r\n")[0].decode()
        for _ in range(3):
            assert (await post_from("127.0.0.1", port, called("ping"), own))[0] == 200
        release.set()
        for _ in range(12):
            assert (await post_from("127.0.0.1", port, HELLO))[0] == 200
        assert (await post_from("127.0.0.1", port, called("ping"), own))[0] == 200, "it was in use"
        writer.close()


@requirement("mcp.http.opening")
async def test_an_initialize_of_many_values_opens_no_session_and_is_refused() -> None:
    def initialize(count: int) -> bytes:
        known: dict[str, Any] = {"experimental": {f"k{number}": {} for number in range(count)}}
        about = {
            "protocolVersion": VERSION,
            "capabilities": known,
            "clientInfo": {"name": "a, b" * 500, "version": "0"},
        }
        return called("initialize", about)

    async with mounted() as mount:
        status, session, body = await ask(mount, initialize(400))
        assert (status, session) == (413, "")
        assert json.loads(body)["error"]["code"] == -32600
        status, own, _ = await ask(mount, initialize(100))
        assert status == 200
        assert (await ask(mount, called("ping", {"a": [1] * 5000}), own))[0] == 200, "with a session it may have more"


def opening(name: str, keys: Sequence[str] = ()) -> bytes:
    """Return an `initialize` as large as it may be."""
    client = {"name": name, "version": "0"}
    known: dict[str, Any] = {"experimental": {key: {} for key in keys}}
    params = {"protocolVersion": VERSION, "capabilities": known, "clientInfo": client}
    return json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}, ensure_ascii=False
    ).encode()


@requirement("mcp.http.opening")
@pytest.mark.parametrize(
    "body",
    [
        opening("\N{GRINNING FACE}" + "a" * 16_000),  # of which each letter takes four bytes
        opening("a", [f"{number}" + "a" * 54 for number in range(240)]),
        opening("a", [f"\N{GRINNING FACE}{number}" + "a" * 50 for number in range(240)]),
    ],
    ids=["one text", "many names", "many wide names"],
)
async def test_a_session_takes_at_most_200_kilobytes(body: bytes) -> None:
    assert 15_000 < len(body) <= MAX_BYTES_WITHOUT_SESSION <= 16 * 1024
    async with mounted() as mount:
        await ask(mount, HELLO)  # which loads everything
        tracemalloc.start()
        try:
            for _ in range(10):
                assert (await ask(mount, body))[0] == 200
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 10 * 200 * 1024
        finally:
            tracemalloc.stop()


@requirement("mcp.http.kept")
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("ping", {"x": "A" * 4_000_000}),  # base64, which is lifted out of the request
        ("ping", {"x": "a b " * 500_000}),
        ("nothing", {"x": "a b " * 500_000}),
        ("tools/call", {"name": "view_image", "arguments": {"source": "data:image/png;base64," + "A" * 4_000_000}}),
    ],
    ids=["base64", "text", "refused", "tool"],
)
async def test_an_idle_session_does_not_keep_its_last_request(method: str, params: dict[str, Any]) -> None:
    body = called(method, params)
    async with mounted() as mount:
        _, own, _ = await ask(mount, HELLO)
        await ask(mount, body, own)  # which loads everything
        await ask(mount, called("ping"), own)
        tracemalloc.start()
        try:
            assert (await ask(mount, body, own))[0] == 200
            await wait_until_small(200 * 1024)
            assert (await ask(mount, called("ping"), own))[0] == 200
        finally:
            tracemalloc.stop()


async def wait_until_small(most: int) -> None:
    """Wait until the memory that was allocated since tracing began is freed but for `most` bytes."""
    for _ in range(100):
        gc.collect()
        if tracemalloc.get_traced_memory()[0] < most:
            return
        await asyncio.sleep(0.02)
    pytest.fail(f"{tracemalloc.get_traced_memory()[0]:,} bytes are kept")
