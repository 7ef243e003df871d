"""Whose host a request reaches that is none of a wire's: that of its credential."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.look.upstreams import Taken, directory
from sightline.model.refusal import Refusal
from sightline.model.upstream import Directory
from sightline.settings import load
from sightline.surfaces.proxy.routes import Headers, Route, route
from tests.requirements import requirement


def known(taken: Taken | None = None) -> Directory:
    found = directory(load({}), taken=taken or Taken())
    assert not isinstance(found, Refusal)
    return found


def owner(path: str, headers: Headers, query: str = "", taken: Taken | None = None) -> str:
    way = route(path, query, headers, known(taken))
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
def test_a_credential_goes_to_no_host_but_its_own(path: str, header: tuple[str, str], expected: str) -> None:
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
def test_a_path_that_says_again_what_its_upstream_s_address_ends_with_is_read(path: str, wire: str, url: str) -> None:
    way = route(path, "", [], known())
    assert isinstance(way, Route)
    assert way.wire is not None
    assert (way.wire.name, way.url) == (wire, url)


@requirement("route.credential")
def test_a_key_in_the_query_tells_it_too() -> None:
    assert owner("/v1/models", [], "pageSize=9&key=AIzaSyX") == "gemini"


@requirement("route.credential")
def test_what_does_not_tell_goes_where_the_agent_went_before() -> None:
    one = Taken({"anthropic": "https://llm.example.com"})
    assert owner("/somewhere", [(b"authorization", b"Bearer x")], taken=one) == "llm.example.com"
    both = Taken({"openai_responses": "https://llm.example.com/v1", "openai_chat": "https://llm.example.com/v1"})
    assert owner("/somewhere", [(b"authorization", b"Bearer x")], taken=both) == "llm.example.com"
    assert owner("/somewhere", [(b"authorization", b"Bearer x")]) == "openai"


@given(st.text(st.characters(codec="latin-1")), st.text(st.characters(codec="latin-1")))
@requirement("dial.lines")
def test_a_key_out_of_a_query_can_stand_in_a_header(before: str, key: str) -> None:
    from urllib.parse import quote

    way = route("/v1beta/models/m:generateContent", f"{before}&key={quote(key)}", [], known())
    assert isinstance(way, Route)
    assert way.key.isascii()
    assert way.key.isprintable()
