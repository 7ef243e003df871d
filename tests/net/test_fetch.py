"""The guarded client against real servers on loopback, with an injected resolver."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest

from sightline import net
from sightline.model.refusal import Refusal
from sightline.net import PUBLIC_WEB, FetchedFile, FetchPolicy, fetch, resolve_name
from tests.dial.upstream import AUTHORITY, Peer, Script, Upstream, listening, turn
from tests.net.test_address import METADATA
from tests.requirements import requirement

HERE = "127.0.0.1"
NAME = "upstream.test"  # the certificate of the tests vouches for it, and no resolver but ours knows it


@dataclass
class Names:
    """A resolver that gives its answers one after the other, the last one for good, and counts."""

    answers: Sequence[Sequence[str]] = ((HERE,),)
    asked: list[str] = field(default_factory=list)

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers[min(len(self.asked), len(self.answers)) - 1]


def reach(*upstreams: Upstream) -> FetchPolicy:
    """The web, and the servers of a test."""
    trust = ssl.create_default_context(cafile=str(AUTHORITY))
    return FetchPolicy(frozenset({443, *(each.port for each in upstreams)}), frozenset({ip_address(HERE)}), trust)


def at(upstream: Upstream, path: str = "/") -> str:
    return f"https://{NAME}:{upstream.port}{path}"


def saying(data: bytes) -> Script:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(data)

    return script


def leading(location: str) -> Script:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(status="302 Found", headers=f"location: {location}\r\n".encode())

    return script


async def from_one(
    script: Script, max_bytes: int = 1000, path: str = "/", seconds: float = 30.0
) -> FetchedFile | Refusal:
    async with listening(script, secured=True) as server:
        return await fetch(
            at(server, path), max_bytes=max_bytes, seconds=seconds, resolve=Names(), policy=reach(server)
        )


_CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


def refused(outcome: FetchedFile | Refusal) -> str:
    assert isinstance(outcome, Refusal)
    return outcome.code


@requirement("net.silent")
async def test_a_fetch_reveals_nothing_about_the_user() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"pixels", headers=b"content-type: image/png\r\nset-cookie: a=b\r\n")

    async with listening(script, secured=True) as server:
        names = Names()
        found = await fetch(at(server, "/a.png?x=1"), resolve=names, policy=reach(server))
        assert found == FetchedFile(b"pixels", at(server, "/a.png?x=1"))
        assert names.asked == [NAME]
        assert server.requests[0].head.decode().split("\r\n") == [
            "GET /a.png?x=1 HTTP/1.1",
            f"host: {NAME}:{server.port}",
            "user-agent: sightline",
            "accept: image/*, video/*, application/pdf, */*;q=0.5",
            "connection: close",
            "",
            "",
        ]


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npixels",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\npix\r\n3\r\nels\r\n0\r\nlate: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\npixels",
        b"HTTP/1.0 200 OK\r\n\r\npixels",
        b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npixels",
        b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npixelsHTTP/1.1 404 No\r\ncontent-length: 4\r\n\r\nmore",
        b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\ncontent-encoding: identity\r\n\r\npixels",
    ],
    ids=["length", "chunked", "until the end", "1.0", "after a hint", "and another", "identity"],
)
async def test_every_response_framing_is_supported(said: bytes) -> None:
    found = await from_one(saying(said))
    assert isinstance(found, FetchedFile)
    assert found.data == b"pixels"


@requirement("net.public")
@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "169.254.169.254", "[::1]", "[::ffff:10.0.0.1]", "[::ffff:a00:1]", "[64:ff9b::a00:1]",
     "[2002:a00:1::]", "[fd00:ec2::254]", "0.0.0.0", "0x7f.1", "2130706433", "0177.0.0.1"],
)  # fmt: skip
async def test_a_private_address_is_refused_without_any_connection(address: str) -> None:
    names = Names()
    assert refused(await fetch(f"https://{address}/", resolve=names)) == "not_permitted"
    assert names.asked == []


@requirement("net.public")
@pytest.mark.parametrize(
    "answer", [["10.0.0.1"], ["8.8.8.8", "10.0.0.1"], ["::ffff:127.0.0.1"], ["8.8.8.8", "fe80::1%2"]]
)
async def test_a_name_with_any_address_that_is_not_public_is_refused(answer: list[str]) -> None:
    outcome = await fetch("https://rebound.example.com/", resolve=Names([answer]))
    assert refused(outcome) == "not_permitted"
    assert not any(address in str(outcome) for address in answer)  # a model learns nothing about the network


async def test_loopback_is_refused_without_a_test_policy() -> None:
    async with listening(saying(b""), secured=True) as server:
        assert (
            refused(await fetch(at(server), resolve=Names(), policy=FetchPolicy(frozenset({server.port}))))
            == "not_permitted"
        )
        assert refused(await fetch(at(server), resolve=Names(), policy=PUBLIC_WEB)) == "not_permitted"
        assert server.connections == 0


@requirement("net.metadata")
@pytest.mark.parametrize("address", METADATA)
async def test_a_metadata_service_is_refused_behind_any_name(address: str) -> None:
    everything = FetchPolicy(extra_addresses=frozenset({ip_address(address)}))
    assert refused(await fetch("https://innocent.example.com/", resolve=Names([[address]]), policy=everything))


@requirement("net.pinned")
async def test_a_name_is_resolved_once_despite_rebinding() -> None:
    async with listening(saying(b"HTTP/1.1 200 OK\r\n\r\npixels"), secured=True) as server:
        names = Names([[HERE], ["10.0.0.1"]])
        assert isinstance(await fetch(at(server), resolve=names, policy=reach(server)), FetchedFile)
        assert names.asked == [NAME]
        assert (await asyncio.wait_for(names(NAME, 443), 1)) == ["10.0.0.1"]  # it would have been another now


@requirement("net.redirects")
async def test_a_redirect_is_resolved_again_and_checked() -> None:
    async with listening(leading("/again"), secured=True) as server:
        names = Names([[HERE], ["10.0.0.1"]])
        assert refused(await fetch(at(server), resolve=names, policy=reach(server))) == "not_permitted"
        assert (names.asked, server.connections) == ([NAME, NAME], 1)


@requirement("net.redirects", "net.https")
@pytest.mark.parametrize(
    "location",
    ["https://10.0.0.1/", "https://169.254.169.254/latest/meta-data/", "https://[::1]/", "https://me:pw@example.com/",
     "http://upstream.test/", "//127.0.0.2/", "file:///etc/passwd", "https://example.com:22/", "https://localhost/",
     "https://metadata.google.internal/computeMetadata/v1/"],
)  # fmt: skip
async def test_a_redirect_is_checked_like_any_address(location: str) -> None:
    assert refused(await from_one(leading(location))) == "not_permitted"


@pytest.mark.parametrize("location", ["https://[", "https://exa\x01mple.com/", "https://example.com/\xff"])
async def test_a_redirect_to_an_invalid_address_is_refused(location: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(status="301 Moved", headers=b"location: %b\r\n" % location.encode("latin-1"))

    assert refused(await from_one(script)) in ("invalid_input", "unavailable")


@requirement("net.redirects")
async def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    async def script(peer: Peer) -> None:
        left = int((await peer.request()).line.split()[1][1:])
        if left:
            await peer.answer(status="307 Elsewhere", headers=b"location: /%d\r\n" % (left - 1))
        else:
            await peer.answer(b"pixels")

    async with listening(script, secured=True) as server:
        found = await fetch(at(server, "/5"), resolve=Names(), policy=reach(server))
        assert found == FetchedFile(b"pixels", at(server, "/0"))
        assert refused(await fetch(at(server, "/6"), resolve=Names(), policy=reach(server))) == "not_permitted"
        assert server.connections == 12


@requirement("net.redirects")
async def test_a_redirect_loop_ends() -> None:
    assert refused(await from_one(leading("/"))) == "not_permitted"


@requirement("net.size")
@pytest.mark.parametrize("head", [b"", b"transfer-encoding: chunked\r\n"], ids=["until the end", "chunked"])
async def test_an_endless_body_is_cut_off_at_the_limit(head: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\n%b\r\n" % head)
        while not peer.reader.at_eof():
            await turn()
            await peer.say((b"8000\r\n%b\r\n" if head else b"%b") % bytes(0x8000))

    async with listening(script, secured=True) as server:
        outcome = await fetch(at(server), max_bytes=1 << 20, resolve=Names(), policy=reach(server))
        assert refused(outcome) == "too_large"
        await server.ended.wait()  # it was hung up on


@requirement("net.size")
@pytest.mark.parametrize(
    ("begun", "more", "code"),
    [
        (b"HTTP/1.1 200 OK\r\n", b"x: %b\r\n", "unavailable"),
        (b"HTTP/1.1 200 OK\r\nx: ", b"%b", "unavailable"),
        (b"", b"HTTP/1.1 103 Early Hints\r\nlink: %b\r\n\r\n", "unavailable"),
        (_CHUNKED + b"3\r\nabc\r\n0\r\nx: ", b"%b", "too_large"),
        (_CHUNKED + b"3\r\nabc\r\n0\r\n", b"x: %b\r\n", "too_large"),
        (_CHUNKED + b"3;", b"%b", "too_large"),
        (_CHUNKED, b"1;%b\r\nx\r\n", "too_large"),
    ],
    ids=["headers", "a header", "hints", "a trailer", "trailers", "an extension", "extensions"],
)
async def test_endless_headers_and_trailers_are_cut_off(begun: bytes, more: bytes, code: str) -> None:
    said = 0

    async def script(peer: Peer) -> None:
        nonlocal said
        await peer.request()
        await peer.say(begun)
        while not peer.reader.at_eof() and said < 8 << 20:
            await turn()
            await peer.say(more % bytes(b"a" * 10_000))
            said += 10_000

    outcome = await from_one(script, max_bytes=1 << 20)
    assert refused(outcome) == code
    assert said < 4 << 20


async def test_a_body_in_many_small_chunks_is_read() -> None:
    chunks = b"10\r\n%b\r\n" % bytes(16) * 50_000
    found = await from_one(saying(_CHUNKED + chunks + b"0\r\n\r\n"), max_bytes=1 << 20)
    assert isinstance(found, FetchedFile)
    assert found.data == bytes(16 * 50_000)


@requirement("net.size")
async def test_a_body_with_a_large_content_length_is_not_read() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n")
        await peer.gone()

    assert refused(await from_one(script, max_bytes=1000)) == "too_large"


@requirement("net.size")
@pytest.mark.parametrize(("length", "code"), [(32 * 1024 * 1024, "unavailable"), (32 * 1024 * 1024 + 1, "too_large")])
async def test_the_limit_is_32_mebibytes(length: int, code: str) -> None:
    async with listening(saying(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\ncut" % length), secured=True) as server:
        assert refused(await fetch(at(server), resolve=Names(), policy=reach(server))) == code


async def test_a_body_of_just_the_largest_size_is_read() -> None:
    found = await from_one(saying(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + bytes(1000)), max_bytes=1000)
    assert isinstance(found, FetchedFile)
    assert found.data == bytes(1000)


@requirement("net.time")
@pytest.mark.parametrize(
    "begun",
    [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npix"],
    ids=["silent", "head", "body"],
)
async def test_a_stalled_server_times_out(begun: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.say(begun)
        await peer.gone()

    async with listening(script, secured=True) as server:
        outcome = await fetch(at(server), seconds=1.5, resolve=Names(), policy=reach(server))
        assert refused(outcome) == "unavailable"
        await server.ended.wait()


@requirement("net.time")
async def test_the_timeout_covers_redirects_and_resolving() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        raise AssertionError

    assert refused(await fetch("https://example.com/", seconds=0.05, resolve=never)) == "unavailable"


@requirement("net.answers")
@pytest.mark.parametrize(
    ("said", "code"),
    [
        (b"", "unavailable"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "unavailable"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 300_000, "unavailable"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" * 20_000, "unavailable"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\npix", "unavailable"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\npix\r\n", "unavailable"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "unavailable"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: " + b"9" * 5000 + b"\r\n\r\n", "unavailable"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 3\r\n\r\nabc", "unavailable"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc", "unavailable"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", "unavailable"),
        (b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n", "unavailable"),
        (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", "unavailable"),
        (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "not_found"),
    ],
    ids=["nothing", "no HTTP", "endless head", "only hints", "cut", "cut chunks", "no chunk", "a length that is none",
         "packed", "another protocol", "no content", "a redirect to nowhere", "forbidden", "not there"],
)  # fmt: skip
async def test_an_unusable_response_is_a_refusal(said: bytes, code: str) -> None:
    assert refused(await from_one(saying(said))) == code


async def test_a_server_without_tls_is_refused() -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.read(100)
        await peer.say(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    async with listening(script) as server:
        assert refused(await fetch(at(server), resolve=Names(), policy=reach(server))) == "unavailable"


@requirement("net.certificate")
async def test_the_certificate_must_match_the_name() -> None:
    async with listening(saying(b"HTTP/1.1 200 OK\r\n\r\n"), secured=True) as server:
        outcome = await fetch(f"https://other.test:{server.port}/", resolve=Names(), policy=reach(server))
        assert isinstance(outcome, Refusal)
        assert "certificate" in outcome.what
        assert server.requests == []


@requirement("net.no_proxies")
async def test_certificates_from_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(AUTHORITY))
    net._load_tls_context.cache_clear()
    async with listening(saying(b"HTTP/1.1 200 OK\r\n\r\n"), secured=True) as server:
        without = FetchPolicy(reach(server).ports, reach(server).extra_addresses)
        outcome = await fetch(at(server), resolve=Names(), policy=without)
        assert isinstance(outcome, Refusal)
        assert "certificate" in outcome.what


@requirement("net.no_proxies")
async def test_a_proxy_from_the_environment_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        listening(saying(b"HTTP/1.1 200 OK\r\n\r\npixels"), secured=True) as server,
        listening(saying(b"")) as proxy,
    ):
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        assert isinstance(await fetch(at(server), resolve=Names(), policy=reach(server)), FetchedFile)
        assert (server.connections, proxy.connections) == (1, 0)


async def test_the_next_address_is_tried_when_one_fails() -> None:
    async with listening(saying(b"HTTP/1.1 200 OK\r\n\r\npixels"), secured=True) as server:
        both = reach(server)
        both = FetchPolicy(both.ports, both.extra_addresses | {ip_address("127.0.0.3")}, both.tls_context)
        found = await fetch(at(server), resolve=Names([["127.0.0.3", HERE]]), policy=both)
        assert isinstance(found, FetchedFile)


@pytest.mark.parametrize(("silent", "found"), [(3, True), (4, False)])
async def test_at_most_four_addresses_are_tried(silent: int, found: bool) -> None:
    """A name may have any number of them, each with a wait of its own."""
    async with listening(saying(b"HTTP/1.1 200 OK\r\n\r\npixels"), secured=True) as server:
        others = [f"127.0.0.{number}" for number in range(3, 3 + silent)]
        known = reach(server)
        known = FetchPolicy(known.ports, known.extra_addresses | set(map(ip_address, others)), known.tls_context)
        outcome = await fetch(at(server), resolve=Names([[*others, HERE]]), policy=known)
        assert isinstance(outcome, FetchedFile) == found
        assert server.connections == found


@pytest.mark.parametrize("answer", [[], ["not an address"], [""]])
async def test_a_name_without_an_address_is_not_found(answer: list[str]) -> None:
    assert refused(await fetch("https://example.com/", resolve=Names([answer]))) == "not_found"


async def test_a_resolver_that_fails_is_a_refusal() -> None:
    async def failing(host: str, port: int) -> Sequence[str]:
        raise OSError("no resolver")

    assert refused(await fetch("https://example.com/", resolve=failing)) == "not_found"


async def test_the_system_resolver_returns_all_addresses() -> None:
    assert HERE in await resolve_name("localhost", 443)


async def test_a_cancelled_request_leaves_no_connection_behind() -> None:
    heard = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        heard.set()
        await peer.gone()

    async with listening(script, secured=True) as server:
        task = asyncio.ensure_future(fetch(at(server), resolve=Names(), policy=reach(server)))
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.ended.wait()
