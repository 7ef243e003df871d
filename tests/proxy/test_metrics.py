"""The counters that the proxy exports for Prometheus, and its token."""

from __future__ import annotations

import http.client
import re
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st

from sightline.surfaces.proxy.telemetry import Counts, Metrics, SharedCounts
from tests.proxy.clients import KEY, ask_chat, ask_messages, pasted_chat, pasted_message
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

PICTURE = paint_quadrants(some_colours(5))
_LINE = re.compile(r'(#.*|[a-z_]+(\{[a-z]+="[^"\n]*"(,[a-z]+="[^"\n]*")*\})? \d+)')


def counted(url: str) -> str:
    answer = exchange(url, "/sightline/metrics", method="GET")
    assert dict(answer.headers)["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    text = answer.body.decode()
    assert all(_LINE.fullmatch(line) for line in text.splitlines()), text
    return text


@requirement("route.metrics")
def test_requests_sights_and_repairs_are_counted_without_content(tmp_path: Path) -> None:
    with deepseek() as blind, sightline(tmp_path, f"deepseek={blind.url}") as proxy:
        assert "sightline_requests_under_way 0" in counted(proxy.url)
        ask_chat(f"{proxy.url}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE))
        exchange(f"{proxy.url}", "/u/deepseek/v1/models", method="GET")
        said = counted(proxy.url)
    assert 'sightline_requests_total{wire="openai_chat",upstream="deepseek",status="200"} 1' in said
    assert 'sightline_requests_total{wire="other",upstream="deepseek",status="200"} 1' in said
    assert 'sightline_sights_total{fate="told"} 1' in said
    assert KEY not in said


@requirement("route.metrics")
def test_a_repaired_request_counts_its_sights_once(tmp_path: Path) -> None:
    with Provider((("*", "ollama"),)) as blind, sightline(tmp_path, blind.url) as proxy:
        ask_messages(proxy.url, "m", pasted_message(PICTURE))
        said = counted(proxy.url)
    assert "sightline_repairs_total{" in said
    assert len(re.findall(r"sightline_sights_total\{.*\} 1", said)) == 1


_counts = st.dictionaries(
    st.tuples(st.text(), st.lists(st.tuples(st.text(), st.text()), max_size=3).map(tuple)), st.integers(0, 2**53)
).map(Counter)


@given(_counts, st.integers(0, 99))
@requirement("serve.counts")
def test_shared_counts_are_read_as_written(counts: Counts, under_way: int) -> None:
    together = SharedCounts(2)
    together.write(1, counts, under_way)
    assert together.read(1) == (counts, under_way)
    assert together.read(0) == (Counter(), 0)


@requirement("serve.counts")
def test_each_process_returns_the_sum_of_all_counts() -> None:
    together = SharedCounts(3)
    one, other = Metrics(together, 0), Metrics(together, 2)
    for metrics in (one, other, other):
        metrics.start_request()
        metrics.end_request("anthropic", "anthropic", 200)
    other.start_request()
    assert one.render() == other.render()
    assert 'status="200"} 3\n' in one.render()
    assert "sightline_requests_under_way 1\n" in one.render()
    again = Metrics(together, 2)
    again.start_request()
    again.end_request("anthropic", "anthropic", 200)
    assert 'status="200"} 4\n' in one.render()
    assert "sightline_requests_under_way 0\n" in one.render(), "what the killed one was at is over"


@requirement("serve.token")
def test_the_token_is_required_and_not_forwarded(tmp_path: Path) -> None:
    body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    with Provider() as provider, sightline(tmp_path, provider.url, token="s3cret") as proxy:
        for headers in ([], [("x-sightline-token", "wrong")], [("authorization", "Bearer s3cret")]):
            refused = exchange(proxy.url, "/v1/messages", body, headers=headers)
            assert (refused.status, b"x-sightline-token" in refused.body) == (400, True)
        assert exchange(proxy.url, "/sightline/metrics", method="GET").status == 400
        assert len(provider.exchanges) == 0
        for given in ("s3cret", "Bearer s3cret"):
            far = [("x-sightline-token", given), ("host", "proxy.example.com"), ("authorization", "Bearer theirs")]
            assert exchange(proxy.url, "/v1/messages", body, headers=far).status == 200
        assert len(provider.exchanges) == 2
        for one in provider.exchanges:
            assert (one.header("x-sightline-token"), one.header("authorization")) == ([], ["Bearer theirs"])


@requirement("serve.token")
def test_each_request_of_a_connection_needs_the_token(tmp_path: Path) -> None:
    body = b'{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'
    with Provider() as provider, sightline(tmp_path, provider.url, token="s3cret") as proxy:
        connection = http.client.HTTPConnection(urlsplit(proxy.url).netloc)
        for given, status in (("s3cret", 200), ("s3cret", 200), ("wrong", 400), ("s3cret", 200), ("", 400)):
            connection.request("POST", "/v1/messages", body, {"x-sightline-token": given})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == status
        connection.close()
        assert len(provider.exchanges) == 3


@requirement("serve.token")
def test_a_token_may_have_any_characters(tmp_path: Path) -> None:
    with Provider() as provider, sightline(tmp_path, provider.url, token="žluťoučký") as proxy:
        given = [("x-sightline-token", "žluťoučký".encode().decode("latin-1"))]
        assert exchange(proxy.url, "/sightline/health", method="GET", headers=given).status == 200
        given = [("x-sightline-token", "zlutoucky")]
        assert exchange(proxy.url, "/sightline/health", method="GET", headers=given).status == 400
