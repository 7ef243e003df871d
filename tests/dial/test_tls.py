"""TLS, and the HTTP proxy of the environment."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator

import pytest

from sightline import dial
from sightline.dial import Buffer, Exchange, HttpClient
from sightline.model.refusal import Refusal
from tests.dial.test_http_client import everything, fetched, forever, saying, sent
from tests.dial.upstream import AUTHORITY, Peer, Request, Script, Upstream, listening, until
from tests.requirements import requirement


@pytest.fixture
def trusted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The tests' own authority is among those that are trusted."""
    monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
    dial._load_tls_context.cache_clear()
    yield
    dial._load_tls_context.cache_clear()


@requirement("upstream.certificates")
@pytest.mark.usefixtures("trusted")
async def test_an_upstream_with_a_valid_certificate_is_reached() -> None:
    async with listening(forever, secured=True) as upstream:
        dialler = HttpClient()
        assert [await fetched(dialler, upstream, body=[bytes(300_000)]) for _ in range(3)] == [b"answer"] * 3
        assert upstream.connections == 1
        assert {len(request.body) for request in upstream.requests} == {300_000}
        await dialler.close()


@pytest.mark.usefixtures("trusted")
async def test_a_large_tls_response_is_read_with_back_pressure() -> None:
    size = 30_000_000

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(bytes(size))
        await peer.gone()

    async with listening(script, secured=True) as upstream:
        exchange = await sent(HttpClient(), "GET", upstream.url)
        first = await exchange.read_piece()
        assert first is not None
        assert len(first) + len(await everything(exchange)) == size
        exchange.close()


LONG: list[Buffer] = [b"[", bytes(700_000), b",", bytes(20_000_000), memoryview(b"]")]


@pytest.mark.usefixtures("trusted")
async def test_a_large_tls_request_is_written_in_steps() -> None:
    async with listening(forever, secured=True) as upstream:
        dialler = HttpClient()
        assert [await fetched(dialler, upstream, body=LONG) for _ in range(2)] == [b"answer"] * 2
        assert upstream.connections == 1
        assert [request.body for request in upstream.requests] == [b"".join(LONG)] * 2
        await dialler.close()


@pytest.mark.usefixtures("trusted")
async def test_an_early_tls_response_does_not_cut_the_request() -> None:
    answered = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        await peer.answer(b"early")
        await answered.wait()
        upstream.requests.append(Request(b"", await peer.reader.readexactly(len(b"".join(LONG)))))
        await forever(peer)

    async with listening(script, secured=True) as upstream:
        exchange = await sent(HttpClient(), "POST", upstream.url, [], LONG)
        assert await everything(exchange) == b"early"
        assert not exchange.reusable  # bytes of its question are owed
        answered.set()
        await until(lambda: exchange.reusable and bool(upstream.requests))
        assert upstream.requests[0].body == b"".join(LONG)
        exchange.close()


@requirement("upstream.certificates")
async def test_an_upstream_with_an_unknown_authority_is_refused() -> None:
    async with listening(forever, secured=True) as upstream:
        outcome = await HttpClient().send("GET", upstream.url, [], [])
        assert isinstance(outcome, Refusal)
        assert "certificate" in outcome.what


@requirement("upstream.certificates")
@pytest.mark.usefixtures("trusted")
async def test_a_certificate_for_another_name_is_refused() -> None:
    async with listening(forever, secured=True) as upstream:
        outcome = await HttpClient().send("GET", f"https://127.0.0.2:{upstream.port}", [], [])
        assert isinstance(outcome, Refusal)


@pytest.mark.usefixtures("trusted")
async def test_an_upstream_that_does_not_speak_tls_is_refused() -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.read(100)
        await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(script) as upstream:
        outcome = await HttpClient().send("GET", f"https://localhost:{upstream.port}", [], [])
        assert isinstance(outcome, Refusal)


def tunnelling(to: Upstream) -> Script:
    """A proxy that alone knows where upstream.test is."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", to.port)

        async def onward() -> None:
            while data := await peer.reader.read(65536):
                writer.write(data)
                await writer.drain()
            writer.close()

        sending = asyncio.ensure_future(onward())
        try:
            while data := await reader.read(65536):
                await peer.say(data)
        finally:
            sending.cancel()
            writer.close()

    return script


def by_way_of(proxy: Upstream, login: str = "") -> HttpClient:
    return HttpClient(lambda scheme, host: f"http://{login}localhost:{proxy.port}" if host == "upstream.test" else None)


@requirement("upstream.tunnel")
@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("secured", [False, True], ids=["plain", "TLS"])
async def test_a_tunnel_through_the_proxy_reaches_a_name_that_only_the_proxy_knows(secured: bool) -> None:
    async with listening(forever, secured) as upstream, listening(tunnelling(upstream)) as proxy:
        dialler = by_way_of(proxy)
        url = f"{'https' if secured else 'http'}://upstream.test:4321/path"
        for _ in range(3):
            exchange = await sent(dialler, "POST", url, [], [bytes(200_000)])
            assert await everything(exchange) == b"answer"
            dialler.release(exchange)
        assert (proxy.connections, upstream.connections, len(upstream.requests)) == (1, 1, 3)
        assert proxy.requests[0].head == b"CONNECT upstream.test:4321 HTTP/1.1\r\nhost: upstream.test:4321\r\n\r\n"
        assert dict(upstream.requests[0].headers)["host"] == "upstream.test:4321"
        await dialler.close()


async def test_a_proxy_gets_its_login_and_the_upstream_does_not() -> None:
    async with listening(forever) as upstream, listening(tunnelling(upstream)) as proxy:
        exchange = await sent(by_way_of(proxy, "me:p%40ss@"), "GET", "http://upstream.test/")
        assert await everything(exchange) == b"answer"
        assert dict(proxy.requests[0].headers)["proxy-authorization"] == f"Basic {b64encode(b'me:p@ss').decode()}"
        assert "proxy-authorization" not in dict(upstream.requests[0].headers)
        exchange.close()


@requirement("upstream.tunnel")
async def test_loopback_is_never_reached_through_a_proxy() -> None:
    async with listening(forever) as upstream, listening(saying(b"")) as proxy:
        dialler = HttpClient(lambda scheme, host: f"http://localhost:{proxy.port}")
        await fetched(dialler, upstream)
        assert (upstream.connections, proxy.connections) == (1, 0)
        await dialler.close()


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200",
        b"",
        b"garbage\r\n\r\n",
        b"x" * 200_000,
    ],
    ids=["refused", "cut", "silent", "garbage", "endless"],
)
async def test_a_proxy_that_rejects_the_tunnel_is_a_refusal(said: bytes) -> None:
    async with listening(saying(said)) as proxy:
        outcome = await by_way_of(proxy).send("GET", "https://upstream.test/", [], [])
        assert isinstance(outcome, Refusal)
        assert "upstream.test " in outcome.what
        await proxy.ended.wait()


async def test_an_unreachable_proxy_is_a_refusal() -> None:
    dialler = HttpClient(lambda scheme, host: "http://localhost:1")
    assert isinstance(await dialler.send("GET", "https://upstream.test/", [], []), Refusal)


@pytest.mark.usefixtures("trusted")
async def test_a_cancelled_tunnel_leaves_no_connection_behind() -> None:
    heard = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        heard.set()
        await peer.gone()

    async with listening(script) as proxy:
        task = asyncio.ensure_future(by_way_of(proxy).send("GET", "https://upstream.test/", [], []))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await proxy.ended.wait()


async def test_a_name_without_a_proxy_is_connected_directly() -> None:
    async with listening(forever) as upstream:
        asked: list[tuple[str, str]] = []
        dialler = HttpClient(lambda scheme, host: asked.append((scheme, host)))
        outcome = await dialler.send("GET", f"http://127.0.0.1.nip.invalid:{upstream.port}/", [], [])
        assert isinstance(outcome, Refusal | Exchange)
        assert asked == [("http", "127.0.0.1.nip.invalid")]
