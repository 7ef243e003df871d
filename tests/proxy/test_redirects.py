"""Redirects of an upstream stay with that upstream and never lead a client to another one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.profile import UpstreamDirectory
from sightline.model.refusal import Refusal
from sightline.settings import load_settings
from sightline.settings.upstreams import PreviousUpstreams, build_directory
from sightline.surfaces.proxy.http_headers import ClientRequest, LocationRewriter, drop_body_headers
from sightline.surfaces.proxy.routes import Route, find_route
from tests.proxy.raw_http import Got, exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.faults import Page
from tests.scripted.provider import Provider

HERE = "127.0.0.1:8790"
FLAGS = (
    "evil=https://evil.example.com",
    "team=https://corp.example.com/team/api/v1",
    "other=https://other.example.com",
)
ASKED = "/u/evil/v1/messages"


def known() -> UpstreamDirectory:
    found = build_directory(load_settings({}), FLAGS, PreviousUpstreams({"gemini": "https://unnamed.example.com"}))
    assert not isinstance(found, Refusal)
    return found


def rewriter(asked: str = ASKED, host: str = HERE) -> LocationRewriter:
    headers = [(b"host", host.encode())] if host else []
    way = find_route(asked, "", headers, known())
    assert isinstance(way, Route)
    return LocationRewriter(ClientRequest("POST", headers), way, known())


def rewritten(*values: str, asked: str = ASKED, host: str = HERE, name: str = "location") -> list[str]:
    """The values of a header that an answer to a request has for the client."""
    given = [(b"content-type", b"text/plain"), *((name.encode(), value.encode()) for value in values)]
    kept = rewriter(asked, host).rewrite(given)
    assert kept[0] == given[0]
    return [value.decode() for _, value in kept[1:]]


EVIL = "https://evil.example.com"
WITHHELD: list[str] = []


@requirement("route.redirect")
@pytest.mark.parametrize(
    ("location", "expected"),
    [
        # into the upstream: the client goes on through the proxy
        ("/v1/messages", "/u/evil/v1/messages"),
        ("/v1/messages?a=b&c#d", "/u/evil/v1/messages?a=b&c#d"),
        ("messages/batches", "/u/evil/v1/messages/batches"),
        ("?a=b", "/u/evil/v1/messages?a=b"),
        ("#top", "/u/evil/v1/messages#top"),
        ("", "/u/evil/v1/messages"),
        ("/", "/u/evil/"),
        (f"{EVIL}/v1/x", "/u/evil/v1/x"),
        ("HTTPS://Evil.Example.COM:443/v1/x", "/u/evil/v1/x"),
        ("//evil.example.com/v1/x", "/u/evil/v1/x"),
        ("  /v1/x\t", "/u/evil/v1/x"),
        # names of our routes mean nothing to the upstream, and nothing special to us
        ("/u/other/v1/messages", "/u/evil/u/other/v1/messages"),
        ("/mcp", "/u/evil/mcp"),
        ("/sightline/metrics", "/u/evil/sightline/metrics"),
        # dot segments are resolved at the upstream
        ("../../u/other/v1/messages", "/u/evil/u/other/v1/messages"),
        ("/../../u/other/v1", "/u/evil/u/other/v1"),
        ("/v1/./x/../y", "/u/evil/v1/y"),
        # what the proxy would refuse is followed at the upstream itself
        ("/v1/%2e%2e/%2E%2e/u/other", f"{EVIL}/v1/%2e%2e/%2E%2e/u/other"),
        ("/v1/..;/u/other", f"{EVIL}/v1/..;/u/other"),
        ("/v1/messages/", f"{EVIL}/v1/messages/"),
        # a backslash is a slash to some clients; encoded it is the same to all
        ("\\\\other.example.com\\x", "/u/evil/v1/%5C%5Cother.example.com%5Cx"),
        ("/\\other.example.com/x", "/u/evil/%5Cother.example.com/x"),
        ("/v1\\..\\..\\u\\other", f"{EVIL}/v1%5C..%5C..%5Cu%5Cother"),
        # control characters, spaces and other letters
        ("/v1/\t/x", "/u/evil/v1/%09/x"),
        ("/\t/other.example.com", "/u/evil/%09/other.example.com"),
        ("/v1/.\t./x", f"{EVIL}/v1/.%09./x"),
        ("/v1/a b", "/u/evil/v1/a%20b"),
        ("/v1/é", "/u/evil/v1/%C3%A9"),
        # a scheme without a host: some clients add the host that they asked
        ("https:/u/other/v1/messages", "/u/evil/u/other/v1/messages"),
        ("http:/u/other/v1/messages", "/u/evil/u/other/v1/messages"),
        ("https:u/other", "/u/evil/v1/u/other"),
        ("https:///u/other", "/u/evil/u/other"),
        ("///u/other", "/u/evil/u/other"),
        # elsewhere: as it came
        ("https://elsewhere.example.com/v1/x", "https://elsewhere.example.com/v1/x"),
        ("//elsewhere.example.com/v1/x", "https://elsewhere.example.com/v1/x"),
        ("http://evil.example.com/v1/x", "http://evil.example.com/v1/x"),
        ("https://evil.example.com:8443/x", "https://evil.example.com:8443/x"),
        ("https://other.example.com/v1/x", "https://other.example.com/v1/x"),
        ("https://elsewhere.example.com/?u=a\\b", "https://elsewhere.example.com/?u=a%5Cb"),
        (f"https://{HERE}\\@elsewhere.example.com/", f"https://{HERE}%5C@elsewhere.example.com/"),
        ("mailto:me@example.com", "mailto:me@example.com"),
    ],
)
def test_a_location_stays_in_its_upstream_or_is_absolute(location: str, expected: str) -> None:
    assert rewritten(location) == [expected]


@requirement("route.redirect")
@pytest.mark.parametrize(
    "location",
    [
        f"http://{HERE}/u/other/v1/messages",
        f"HTTP://{HERE}/u/other/v1/messages",
        f"//{HERE}/u/other/v1/messages",
        f"https://{HERE}/u/other/v1/messages",
        f"http://me:pw@{HERE}/u/other",
        f"http://elsewhere.example.com@{HERE}/u/other",
        "http://localhost:8790/u/other",
        "http://LOCALHOST.:8790/u/other",
        "http://a.localhost:8790/u/other",
        "http://[::1]:8790/u/other",
        "http://[::ffff:127.0.0.1]:8790/u/other",
        "http://127.1:8790/u/other",
        "http://2130706433:8790/u/other",
        "http://0x7f.0.0.1:8790/u/other",
        "http://0.0.0.0:8790/u/other",
        "http://[::]:8790/u/other",
        "http://127.0.0.1:9001/u/other",  # another proxy of ours may listen there
        "http://points-to-loopback.example.com:8790/u/other",
        "http://127.0.0.1%3a8790/u/other",
        "http://１２７.0.0.1:8790/u/other",
        "http://127.0.0.1:99999/u/other",
        "http://127.0.0.1:x/u/other",
        "http://[::1/u/other",
        "http://:8790/u/other",
        "http://@/u/other",
    ],
)
def test_a_location_that_may_be_a_proxy_is_withheld(location: str) -> None:
    assert rewritten(location) == WITHHELD
    assert rewritten(location, host="") == WITHHELD or "points-to" in location
    assert rewritten(location, name="content-location") == WITHHELD
    assert rewritten(f'<{location}>; rel="next"', name="link") == WITHHELD
    assert rewritten(location, name="x-goog-upload-url") == WITHHELD


@requirement("route.redirect")
def test_a_location_to_the_proxys_own_name_is_withheld() -> None:
    here = "proxy.example.com"
    assert rewritten(f"https://{here}/u/other/v1", host=here) == WITHHELD
    assert rewritten(f"http://{here.upper()}.:80/u/other/v1", host=here) == WITHHELD
    assert rewritten(f"https://{here}:8443/x", host=here) == [f"https://{here}:8443/x"], "another server of that host"
    assert rewritten("https://elsewhere.example.com/x", host=here) == ["https://elsewhere.example.com/x"]


@requirement("route.redirect")
@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("/team/api/v1/files", "/u/team/v1/files"),
        ("/team/api/v1/chat/completions?x", "/u/team/v1/chat/completions?x"),
        ("files", "/u/team/v1/chat/files"),
        ("../files", "/u/team/v1/files"),
        ("/v1/files", "https://corp.example.com/v1/files"),
        ("/team/api/v1x", "https://corp.example.com/team/api/v1x"),
        ("/u/other/v1", "https://corp.example.com/u/other/v1"),
        ("../../../../u/other/v1", "https://corp.example.com/u/other/v1"),
    ],
)
def test_a_location_outside_the_base_path_is_made_absolute(location: str, expected: str) -> None:
    assert rewritten(location, asked="/u/team/v1/chat/completions") == [expected]


@requirement("route.redirect")
def test_an_unnamed_upstream_keeps_its_redirects() -> None:
    assert rewritten("/v1/x", asked="/v1/messages") == ["/u/anthropic/v1/x"]
    gemini = "/v1beta/models/m:generateContent"
    assert rewritten(f"{gemini}?a", asked=gemini) == [f"{gemini}?a"], "an upstream without a name"
    assert rewritten("/v1/messages", asked=gemini) == ["https://unnamed.example.com/v1/messages"], "another's wire"
    assert rewritten("/u/other/v1/messages", asked=gemini) == ["https://unnamed.example.com/u/other/v1/messages"]
    assert rewritten("/u/anthropic/v1", asked=gemini) == ["https://unnamed.example.com/u/anthropic/v1"]


@requirement("route.redirect")
def test_only_the_first_of_several_locations_is_kept() -> None:
    assert rewritten("/v1/a", "/u/other/v1") == ["/u/evil/v1/a"]
    assert rewritten(f"http://{HERE}/u/other", "/v1/a") == WITHHELD


@requirement("route.redirect")
@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("content-location", "/u/other/v1", ["/u/evil/u/other/v1"]),
        ("refresh", "0; url=/u/other/v1", []),
        (
            "link",
            '</u/other/v1?after=1>; rel="next", <x>; rel=prev',
            ['</u/evil/u/other/v1?after=1>; rel="next", </u/evil/v1/x>; rel=prev'],
        ),
        ("link", "<https://docs.example.com/a>; rel=help", ["<https://docs.example.com/a>; rel=help"]),
        ("x-goog-upload-url", f"{EVIL}/upload/1?upload_id=A", [f"{EVIL}/upload/1?upload_id=A"]),
        ("x-goog-upload-url", "/u/other/upload", [f"{EVIL}/u/other/upload"]),
        ("operation-location", "/u/other/operations/1", [f"{EVIL}/u/other/operations/1"]),
        ("azure-asyncoperation", f"{EVIL}/operations/1", [f"{EVIL}/operations/1"]),
        ("x-other", "/u/other/v1", ["/u/other/v1"]),
    ],
)
def test_other_headers_that_clients_follow_stay_with_the_upstream_too(
    name: str, value: str, expected: list[str]
) -> None:
    assert rewritten(value, name=name) == expected


PIECES = ["/", "//", "\\", "..", ".", "%2e", "%2f", "%5c", "u", "other", "evil", "team", "v1", "http:", "https:", HERE]
PIECES += ["127.0.0.1", ":8790", "@", "?", "#", ";", "\t", " ", "evil.example.com", "localhost"]


@requirement("route.redirect")
@given(
    st.lists(st.sampled_from(PIECES), max_size=8).map("".join), st.sampled_from([ASKED, "/u/team/v1/chat/completions"])
)
def test_no_location_leads_to_another_upstream(location: str, asked: str) -> None:
    """Followed as clients do: resolved against the proxy's address, with backslashes as slashes or not."""
    way = find_route(asked, "", [], known())
    assert isinstance(way, Route)
    for value in rewritten(location, asked=asked):
        for read in (value, value.replace("\\", "/")):
            target = urlsplit(urljoin(f"http://{HERE}{asked}", read))
            if (target.hostname, target.port) != ("127.0.0.1", 8790):
                assert target.hostname not in ("127.0.0.1", "localhost")
                continue
            followed = find_route(target.path, target.query, [], known())
            assert isinstance(followed, Refusal) or followed.upstream == way.upstream


@requirement("route.redirect")
@given(st.sampled_from(["evil.example.com", "elsewhere.example.com", HERE]), st.text(max_size=12))
def test_any_location_is_handled(authority: str, rest: str) -> None:
    for value in rewritten(f"http://{authority}{rest}"):
        assert value.isascii()
        assert value.isprintable()


KEY = "sk-the-users-own-key"
TALK: dict[str, object] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
REDIRECTS = [301, 302, 303, 307, 308]


def ask_with_sdk(kind: str, base: str) -> str:
    """What the official SDK, which follows redirects, ends with: an answer or the status of an error."""
    if kind == "anthropic":
        with anthropic.Anthropic(base_url=base, api_key=KEY, max_retries=0) as client:
            try:
                return client.messages.create(**TALK).id  # type: ignore[call-overload,no-any-return]
            except anthropic.APIStatusError as error:
                return str(error.status_code)
    with openai.OpenAI(base_url=f"{base}/v1", api_key=KEY, max_retries=0) as client_of_openai:
        try:
            return client_of_openai.chat.completions.create(**TALK).id  # type: ignore[call-overload,no-any-return]
        except openai.APIStatusError as error:
            return str(error.status_code)


PATHS = {"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}


@requirement("route.redirect")
@pytest.mark.parametrize("kind", PATHS)
@pytest.mark.parametrize("status", REDIRECTS)
@pytest.mark.parametrize(
    "how", ["/u/other{path}", "{proxy}/u/other{path}", "http:/u/other{path}", "../../../../u/other{path}"]
)
def test_a_key_never_follows_a_redirect_to_another_upstream(tmp_path: Path, kind: str, status: int, how: str) -> None:
    with Provider() as evil, Provider() as other:
        flags = (f"evil={evil.url}", f"other={other.url}")
        with sightline(tmp_path, *flags) as proxy:
            location = how.format(path=PATHS[kind], proxy=proxy.url)
            evil.faults.append(Page(status, "text/plain", b"", (("location", location),)))
            ask_with_sdk(kind, f"{proxy.url}/u/evil")
        assert evil.exchanges
        assert not other.exchanges


@requirement("route.redirect")
@pytest.mark.parametrize("kind", PATHS)
def test_a_redirect_within_the_upstream_is_followed_through_the_proxy(tmp_path: Path, kind: str) -> None:
    with Provider() as moved, Provider() as other:
        with sightline(tmp_path, f"moved={moved.url}", f"other={other.url}") as proxy:
            location = f"{PATHS[kind]}?moved=1"
            moved.faults.append(Page(307, "text/plain", b"", (("location", location),)))
            answer = ask_with_sdk(kind, f"{proxy.url}/u/moved")
        assert not answer.isdigit()
        assert [one.query for one in moved.exchanges] == [b"", b"moved=1"]
        for one in moved.exchanges:
            assert any(KEY.encode() in value for _, value in one.headers)
        assert not other.exchanges


@requirement("route.redirect")
def test_a_redirect_that_is_withheld_is_an_error_of_the_wire(tmp_path: Path) -> None:
    with Provider() as evil, sightline(tmp_path, f"evil={evil.url}") as proxy:
        evil.faults.append(Page(307, "text/plain", b"", (("location", f"{proxy.url}/u/openai/v1/messages"),)))
        got = exchange(proxy.url, "/u/evil/v1/messages", json.dumps(TALK).encode())
        assert (got.status, locations(got)) == (400, [])
        assert json.loads(got.body)["type"] == "error"
        evil.faults.append(Page(201, "text/plain", b"made", (("location", f"{proxy.url}/u/openai/v1/messages"),)))
        made = exchange(proxy.url, "/u/evil/v1/messages", json.dumps(TALK).encode())
        assert (made.status, made.body, locations(made)) == (201, b"made", [])


def locations(got: Got) -> Sequence[str]:
    return [value for name, value in got.headers if name.lower() == "location"]


@requirement("route.cookies")
def test_a_cookie_goes_back_only_to_its_upstream(tmp_path: Path) -> None:
    """With a client that keeps cookies, as those of the SDKs do."""
    set_cookies = tuple(("set-cookie", f"{name}=1{rest}") for name, rest in COOKIES.items())
    with Provider() as evil, Provider() as other:
        flags = (f"evil={evil.url}", f"other={other.url}")
        with sightline(tmp_path, *flags) as proxy, httpx2.Client(base_url=proxy.url) as client:
            evil.faults.append(Page(200, "application/json", b"{}", set_cookies))
            client.post("/u/evil/v1/messages", json=TALK)
            client.post("/u/evil/v1/messages", json=TALK)
            client.post("/u/other/v1/messages", json=TALK)
        first, second = (dict(one.headers) for one in evil.exchanges)
        assert b"cookie" not in first
        assert {pair.split(b"=")[0].decode() for pair in second[b"cookie"].split(b"; ")} == {*COOKIES}
        assert [dict(one.headers).get(b"cookie") for one in other.exchanges] == [None]


@requirement("route.cookies")
@pytest.mark.parametrize(("path", "kept"), [("/v1/messages", {*"abcde"}), ("/x", set[str]())])
def test_a_cookie_of_the_default_upstream_goes_to_no_other(tmp_path: Path, path: str, kept: set[str]) -> None:
    set_cookies = tuple(("set-cookie", f"{name}=1{rest}") for name, rest in COOKIES.items())
    with Provider() as only:
        with (
            sightline(tmp_path, only.url, has_gemini=False) as proxy,
            httpx2.Client(base_url=proxy.url) as client,
        ):
            only.faults.append(Page(200, "application/json", b"{}", set_cookies))
            client.post(path, json=TALK)
            client.post(path, json=TALK)
            assert not any(cookie.path in ("/", "/u", "/u/other") for cookie in client.cookies.jar)
        sent = dict(only.exchanges[-1].headers).get(b"cookie", b"")
        assert {pair.split(b"=")[0].decode() for pair in sent.split(b"; ") if pair} == kept


COOKIES = {
    "a": "",
    "b": "; Path=/; HttpOnly",
    "c": "; path=/u/other",
    "d": "; Domain=127.0.0.1; Path=/",
    "e": ";PATH=/v1;",
}


@requirement("route.cookies")
def test_a_cookie_keeps_its_other_attributes() -> None:
    given = "a=b=c; Max-Age=9; Path=/; SameSite=Lax; Domain=evil.example.com; Path=/u/other"
    assert rewritten(given, name="set-cookie") == ["a=b=c; Max-Age=9; SameSite=Lax; Path=/u/evil/"]
    assert rewritten("a=b; Path=/", name="set-cookie2") == []
    assert rewritten("a=b", name="set-cookie", asked="/v1beta/models/m:generateContent") == [], "it has no name here"


ORIGIN_HEADERS = {
    "Alt-Svc": 'h3="evil.example.com:443"; ma=86400',
    "Strict-Transport-Security": "max-age=31536000; includeSubDomains",
    "Public-Key-Pins": 'pin-sha256="x"; max-age=1',
    "Expect-CT": 'max-age=1, enforce, report-uri="https://evil.example.com"',
    "Clear-Site-Data": '"*"',
    "NEL": '{"report_to":"r","max_age":1,"success_fraction":1}',
    "Report-To": '{"group":"r","max_age":1,"endpoints":[{"url":"https://evil.example.com"}]}',
    "Reporting-Endpoints": 'r="https://evil.example.com"',
    "Refresh": "0; url=/u/other/v1",
    "Accept-CH": "Sec-CH-UA-Full-Version-List",
    "Service-Worker-Allowed": "/",
    "Use-As-Dictionary": 'match="/*"',
    "Origin-Agent-Cluster": "?1",
    "Set-Login": "logged-in",
    "Secure-Session-Registration": '(ES256);path="/u/other/v1"',
}
OTHER_HEADERS = {
    "retry-after": "1",
    "www-authenticate": "Bearer",
    "cache-control": "no-store",
    "etag": '"a"',
    "x-request-id": "r",
    "x-ratelimit-remaining-requests": "9",
    "openai-processing-ms": "3",
}


@requirement("route.origin")
@pytest.mark.parametrize("status", [200, 302, 400, 503])
def test_headers_about_the_origin_are_not_relayed(tmp_path: Path, status: int) -> None:
    given = tuple({**ORIGIN_HEADERS, **OTHER_HEADERS}.items())
    with Provider() as evil, sightline(tmp_path, f"evil={evil.url}") as proxy:
        evil.faults.append(Page(status, "application/json", b"{}", given))
        with httpx2.Client(base_url=proxy.url) as client:
            got = client.post("/u/evil/v1/messages", json=TALK)
    assert got.status_code == status
    assert [name for name in ORIGIN_HEADERS if name in got.headers] == []
    assert {name: got.headers.get(name) for name in OTHER_HEADERS} == OTHER_HEADERS


@requirement("route.origin")
def test_a_response_with_another_body_has_no_headers_about_the_origin_either() -> None:
    given = [(name.lower().encode(), value.encode()) for name, value in ORIGIN_HEADERS.items() if name != "Refresh"]
    assert drop_body_headers([*given, (b"x-request-id", b"r")]) == [(b"x-request-id", b"r")]
