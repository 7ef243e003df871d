"""Routes: which upstream gets a request, also for paths that no wire has."""

from __future__ import annotations

import json
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.model.profile import UpstreamDirectory
from sightline.model.refusal import Refusal
from sightline.server import Headers
from sightline.settings import load_settings
from sightline.settings.upstreams import PreviousUpstreams, build_directory
from sightline.surfaces.proxy.routes import Route, Router, find_route
from tests.requirements import requirement


def known(taken: PreviousUpstreams | None = None) -> UpstreamDirectory:
    found = build_directory(load_settings({}), previous=taken or PreviousUpstreams())
    assert not isinstance(found, Refusal)
    return found


def owner(path: str, headers: Headers, query: str = "", taken: PreviousUpstreams | None = None) -> str:
    way = find_route(path, query, headers, known(taken))
    assert isinstance(way, Route)
    return way.upstream.name


@pytest.mark.parametrize(
    ("path", "header", "expected"),
    [
        ("/api/oauth/profile", ("authorization", "Bearer sk-ant-oat01-x"), "anthropic"),
        ("/api/hello", ("authorization", "bearer sk-ant-api03-x"), "anthropic"),
        ("/v1/files", ("x-api-key", "sk-ant-x"), "anthropic"),
        ("/v1/models", ("anthropic-beta", "oauth-2025-04-20"), "anthropic"),
        ("/v1internal:loadCodeAssist", ("authorization", "Bearer ya29.x"), "gemini"),
        ("/v1internal:onboardUser", ("authorization", "Bearer other"), "gemini"),
        ("/upload/v1beta/files", ("x-goog-api-key", "AIza"), "gemini"),
        ("/v1/models", ("x-goog-api-key", "AIza"), "gemini"),
        ("/v1/models", ("authorization", "Bearer sk-proj-x"), "openai"),
        ("/v1/responses/resp_1", ("authorization", "Bearer sk-proj-x"), "openai"),
    ],
)
@requirement("route.credential")
def test_a_credential_goes_only_to_its_own_host(path: str, header: tuple[str, str], expected: str) -> None:
    assert owner(path, [(header[0].encode(), header[1].encode())]) == expected


@pytest.mark.parametrize(
    ("path", "wire", "url"),
    [
        ("/u/deepseek/anthropic/v1/messages", "anthropic", "https://api.deepseek.com/anthropic/v1/messages"),
        ("/u/deepseek/v1/messages", "anthropic", "https://api.deepseek.com/anthropic/v1/messages"),
        ("/v1/messages/", "anthropic", "https://api.anthropic.com/v1/messages"),
        ("/v1/chat/completions/", "openai_chat", "https://api.openai.com/v1/chat/completions"),
        (
            "/u/gemini/v1beta/openai/chat/completions",
            "openai_chat",
            "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
        ),
    ],
)
@requirement("route.served")
def test_a_path_that_repeats_the_end_of_the_base_address_is_read(path: str, wire: str, url: str) -> None:
    way = find_route(path, "", [], known())
    assert isinstance(way, Route)
    assert way.wire is not None
    assert (way.wire.name, way.url) == (wire, url)


@requirement("route.credential")
def test_a_key_in_the_query_tells_the_api() -> None:
    assert owner("/v1/models", [], "pageSize=9&key=AIzaSyX") == "gemini"


APIS = {
    "anthropic": "/v1/messages",
    "openai_chat": "/v1/chat/completions",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/m:generateContent",
}


def list_owners(*flags: str, single_agent: bool = False) -> dict[str, str]:
    """The upstream that gets each API without a name in the path, among those that get one."""
    own = {"listed": {"baseUrl": {"gemini": "https://g.example.com"}}, "plain": {"baseUrl": "https://p.example.com"}}
    settings = load_settings({"SIGHTLINE_UPSTREAMS": json.dumps(own)})
    found = build_directory(settings, flags, single_agent=single_agent)
    assert not isinstance(found, Refusal)
    routes = {api: find_route(path, "", [], found) for api, path in APIS.items()}
    return {api: way.upstream.name for api, way in routes.items() if isinstance(way, Route)}


@requirement("route.apis")
@pytest.mark.parametrize("single_agent", [False, True])
@pytest.mark.parametrize(
    ("flag", "apis"),
    [
        ("deepseek", {"anthropic", "openai_chat", "openai_responses"}),
        ("https://api.deepseek.com", {"anthropic", "openai_chat", "openai_responses"}),
        ("openai", {"openai_chat", "openai_responses"}),
        ("mistral", {"openai_chat"}),
        ("gemini", {"gemini", "openai_chat"}),
        ("https://llm.example.com/v1", {"anthropic", "openai_chat", "openai_responses"}),
        ("plain", {"anthropic", "openai_chat", "openai_responses"}),
        ("listed", {"gemini"}),
    ],
)
def test_an_upstream_gets_only_requests_of_its_own_apis(flag: str, apis: set[str], single_agent: bool) -> None:
    owners = list_owners(flag, single_agent=single_agent)
    assert owners.keys() == apis
    assert len(set(owners.values())) == 1


@requirement("route.apis")
def test_a_named_upstream_can_be_added_for_an_api_that_the_default_lacks() -> None:
    google = "gemini=https://g.example.com"
    expected = {**dict.fromkeys(APIS, "deepseek"), "gemini": "gemini"}
    assert list_owners("deepseek", google) == list_owners(google, "deepseek") == expected
    assert list_owners(google) == dict.fromkeys(APIS, "openai") | {"anthropic": "anthropic", "gemini": "gemini"}


@requirement("route.apis")
def test_a_request_that_no_upstream_gets_is_refused_with_the_api() -> None:
    found = build_directory(load_settings({}), ["deepseek"])
    assert not isinstance(found, Refusal)
    for path, header in ((APIS["gemini"], (b"x-goog-api-key", b"k")), ("/v1/models", (b"x-goog-api-key", b"k"))):
        refused = find_route(path, "", [header], found)
        assert isinstance(refused, Refusal)
        assert (refused.code, "deepseek" in refused.what, "/u/NAME" in refused.remedy) == ("not_found", True, True)
    only_responses = build_directory(load_settings({}), ["chatgpt"])
    assert not isinstance(only_responses, Refusal)
    way = find_route("/models", "", [], only_responses)
    assert isinstance(way, Route)
    assert way.upstream.name == "chatgpt"


@requirement("route.key_stays")
@pytest.mark.parametrize(
    ("header", "owner"),
    [
        (("authorization", "Bearer sk-ant-oat01-x"), "anthropic"),
        (("x-api-key", "sk-ant-api03-x"), "anthropic"),
        (("authorization", "Bearer sk-proj-x"), "openai"),
        (("chatgpt-account-id", "acc"), "chatgpt"),
        (("x-goog-api-key", "AIzaSyX"), "gemini"),
    ],
)
def test_a_key_is_not_sent_to_a_provider_that_it_does_not_belong_to(header: tuple[str, str], owner: str) -> None:
    own = {
        "gateway": {"baseUrl": "https://llm.example.com", "preset": "deepseek"},
        "mine": {"preset": "deepseek", "apiKey": "sk-mine"},
    }
    found = build_directory(load_settings({"SIGHTLINE_UPSTREAMS": json.dumps(own)}))
    assert not isinstance(found, Refusal)
    headers = [(header[0].encode(), header[1].encode())]
    for path in ("/v1/messages", "/v1/chat/completions", "/v1beta/models/m:generateContent", "/v1/models"):
        refused = find_route(f"/u/deepseek{path}", "", headers, found)
        assert isinstance(refused, Refusal)
        assert (refused.code, owner in refused.what, "deepseek" in refused.what) == ("not_permitted", True, True)
        for name in (owner, "gateway", "mine"):  # a gateway may have the key, and an upstream's own replaces it
            assert isinstance(find_route(f"/u/{name}{path}", "", headers, found), Route), name
    refused = find_route("/u/deepseek/v1beta/models/m:generateContent", "key=AIzaSyX", [], found)
    assert isinstance(refused, Refusal)
    router = Router()  # which keeps routes
    assert isinstance(router.find("/u/deepseek/v1/messages", "", [], found), Route)
    assert isinstance(router.find("/u/deepseek/v1/messages", "", headers, found), Refusal)


@requirement("route.credential")
def test_an_unknown_api_goes_to_the_default_upstream() -> None:
    one = PreviousUpstreams({"anthropic": "https://llm.example.com"})
    assert owner("/somewhere", [(b"authorization", b"Bearer x")], taken=one) == "llm.example.com"
    both = PreviousUpstreams(
        {"openai_responses": "https://llm.example.com/v1", "openai_chat": "https://llm.example.com/v1"}
    )
    assert owner("/somewhere", [(b"authorization", b"Bearer x")], taken=both) == "llm.example.com"
    assert owner("/somewhere", [(b"authorization", b"Bearer x")]) == "openai"


@given(st.text(st.characters(codec="latin-1")), st.text(st.characters(codec="latin-1")))
@requirement("dial.lines")
def test_a_key_from_a_query_is_valid_in_a_header(before: str, key: str) -> None:
    from urllib.parse import quote

    way = find_route("/v1beta/models/m:generateContent", f"{before}&key={quote(key)}", [], known())
    assert isinstance(way, Route)
    assert way.key.isascii()
    assert way.key.isprintable()


CLIMBING = [
    "/u/work/../../x",
    "/u/work/..",
    "/u/work/.",
    "/u/work/./v1/messages",
    "/../x",
    "/..",
    "/u/../sightline/metrics",
    "/u/work/../sightline/metrics",
    "/u/work/../mcp",
    "/x/../mcp",
    "/v1/../u/work/v1/messages",
    "/u/work/%2e%2e/x",
    "/u/work/%2E%2e/x",
    "/u/work/.%2e/x",
    "/u/work/%2e./x",
    "/u/work/%2e",
    "/u/work/%252e%252e/x",
    "/u/work/..;/x",
    "/u/work/..;a=b/x",
    "/u/work/..%3bx/x",
    "/u/work/v1%2f..%2f..%2fx",
    "/u/work/v1%2F..",
    "/u/work/v1%252f..%252fx",
    "/u/work/..\\x",
    "/u/work\\..\\x",
    "/u/work/..%5cx",
    "/u/work/%5C..%5C..",
    "/u/work//../x",
    "/u/work/..//x",
    "/u/work/..%20/x",
    "/u/work/..%00/x",
    "/u/work/..%09",
    "/v1beta/models/%2e%2e/m:generateContent",
    "/v1beta/models/..%2fm:generateContent",
]
ORDINARY = [
    ("/v1beta/models/gemini-2.5-pro:generateContent", "/v1beta/models/gemini-2.5-pro:generateContent"),
    ("/u/gemini/v1beta/models/a..b:generateContent", "/v1beta/models/a..b:generateContent"),
    ("/u/gemini/v1beta/files/...", "/v1beta/files/..."),
    ("/u/gemini/v1beta/.well-known/x", "/v1beta/.well-known/x"),
    ("/u/gemini/v1beta/files/a..", "/v1beta/files/a.."),
    ("/u/gemini/v1beta/files/..a", "/v1beta/files/..a"),
    ("/u/gemini/v1beta/files/org%2Fname", "/v1beta/files/org%2Fname"),
    ("/u/gemini/v1beta//files", "/v1beta//files"),
    ("/u/gemini/v1beta/caf%c3%a9%2E", "/v1beta/caf%c3%a9%2E"),
    ("/u/gemini/v1beta/a%25b", "/v1beta/a%25b"),
]


@requirement("route.inside")
@pytest.mark.parametrize("path", CLIMBING)
def test_a_path_with_dot_segments_is_refused(path: str) -> None:
    refusal = find_route(path, "", [], directory_with_work())
    assert isinstance(refusal, Refusal)
    assert refusal.code == "invalid_input"


@requirement("route.inside")
@pytest.mark.parametrize(("path", "below"), ORDINARY)
def test_an_ordinary_path_is_sent_unchanged(path: str, below: str) -> None:
    way = find_route(path, "", [(b"x-goog-api-key", b"k")], known())
    assert isinstance(way, Route)
    assert way.url == f"https://generativelanguage.googleapis.com{below}"


@requirement("route.inside")
@given(st.lists(st.sampled_from(["..", ".", "/", "\\", "%2e", "%2f", "%5c", "%25", ";", "x", "v1", "%20"]), max_size=9))
def test_no_path_leaves_the_base_path_of_its_upstream(parts: list[str]) -> None:
    """Judged by a reader that decodes and normalises as the most generous server would."""
    way = find_route("/u/work/" + "".join(parts), "", [], directory_with_work())
    if isinstance(way, Refusal):
        return
    assert way.url.startswith("https://work.example.com/team/api/")
    path = unquote(unquote(way.url)).replace("\\", "/").partition("://")[2]
    segments = [segment.partition(";")[0].strip() for segment in path.split("/")]
    assert not {".", ".."} & set(segments)


def directory_with_work() -> UpstreamDirectory:
    found = build_directory(load_settings({}), ["work=https://work.example.com/team/api"])
    assert not isinstance(found, Refusal)
    return found


ROUTED = [
    ("/v1/messages", "", [(b"x-api-key", b"sk-ant-x")]),
    ("/v1/models", "", [(b"x-api-key", b"sk-ant-x")]),
    ("/v1/models", "", [(b"authorization", b"Bearer sk-proj-x")]),
    ("/v1beta/models/m:generateContent", "key=AIzaOne", []),
    ("/v1beta/models/m:generateContent", "key=AIzaTwo", []),
    ("/v1beta/models/m:generateContent", "", []),
    ("/u/nowhere/v1/messages", "", []),
    ("/v1/../x", "", []),
]


@requirement("route.kept")
def test_a_router_finds_the_routes_of_the_upstreams_as_they_are_now() -> None:
    """Also if the same path comes with another credential, or after the settings have changed."""
    router = Router()
    elsewhere = PreviousUpstreams({"anthropic": "https://example.com/anthropic"})
    for directory in (known(), known(elsewhere), known()):
        for _ in range(2):
            for path, query, headers in ROUTED:
                assert router.find(path, query, headers, directory) == find_route(path, query, headers, directory)


@requirement("route.kept")
def test_a_router_keeps_a_bounded_number_of_routes() -> None:
    router, directory = Router(), known()
    paths = [f"/v1beta/models/m{number}:generateContent" for number in range(1000)]
    routes = {path: router.find(path, "", [], directory) for path in paths}
    assert router.find(paths[-1], "", [], directory) is routes[paths[-1]]
    assert router.find(paths[0], "", [], directory) is not routes[paths[0]]


@requirement("route.key_stays")
@pytest.mark.parametrize(
    ("path", "query", "headers"),
    [
        ("/u/deepseek/v1/messages", "", [(b"x-api-key", b"sk-proj-x")]),
        ("/u/anthropic/v1/messages", "", [(b"x-api-key", b"sk-ant-x"), (b"authorization", b"Bearer sk-proj-x")]),
        ("/u/openai/v1/responses", "", [(b"authorization", b"Bearer  sk-ant-x")]),
        ("/u/openai/v1/chat/completions", "", [(b"api-key", b"AIzaX")]),
        ("/u/openai/v1/chat/completions", "key=AIzaX", []),
        ("/u/openai/v1beta/models/m:generateContent", "key=&key=AIzaX", []),
        ("/v1/chat/completions", "", [(b"authorization", b"Bearer sk-or-v1-x")]),
        ("/u/openai/v1/chat/completions", "", [(b"authorization", b"Bearer gsk_x")]),
        ("/u/groq/chat/completions", "", [(b"authorization", b"Bearer xai-x")]),
        ("/u/xai/v1/chat/completions", "", [(b"authorization", b"Bearer sk-or-v1-x")]),
        ("/v1/messages", "", [(b"x-api-key", b"sk-or-v1-x")]),
        ("/v1/messages", "", [(b"x-api-key", b"xai-x")]),
        ("/v1beta/models/m:generateContent", "", [(b"x-goog-api-key", b"gsk_x")]),
        ("/v1beta/models/m:generateContent", "key=sk-or-v1-x", []),
        ("/u/openrouter/v1/chat/completions", "", [(b"authorization", b"Bearer gsk_x")]),
    ],
)
def test_a_key_of_another_provider_is_refused_wherever_it_is(
    path: str, query: str, headers: list[tuple[bytes, bytes]]
) -> None:
    found = build_directory(load_settings({}), [])
    assert isinstance(found, UpstreamDirectory)
    refused = find_route(path, query, headers, found)
    assert isinstance(refused, Refusal)
    assert refused.code == "not_permitted"


@requirement("route.key_stays")
@pytest.mark.parametrize(("name", "key"), [("openrouter", b"sk-or-v1-x"), ("xai", b"xai-x"), ("groq", b"gsk_x")])
def test_a_key_that_shows_its_provider_goes_there_and_to_gateways(name: str, key: bytes) -> None:
    headers = [(b"authorization", b"Bearer " + key)]
    found = build_directory(load_settings({}), [])
    assert isinstance(found, UpstreamDirectory)
    for path, directory in (
        (f"/u/{name}/chat/completions", found),
        ("/u/work/chat/completions", directory_with_work()),
    ):
        assert isinstance(find_route(path, "", headers, directory), Route)


@requirement("route.unknown")
@pytest.mark.parametrize("flag", ["a/b=http://127.0.0.1:9", "a?b=http://127.0.0.1:9", "..=http://127.0.0.1:9"])
def test_a_name_that_no_path_can_contain_is_refused(flag: str) -> None:
    refused = build_directory(load_settings({}), [flag])
    assert isinstance(refused, Refusal)
    assert refused.code == "invalid_input"
