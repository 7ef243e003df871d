"""Fetching what an upstream publishes: in the background, with the client's credential, once a day."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from sightline.dial import HttpClient
from sightline.model.ports import ModelListing, Store
from sightline.model.profile import Lesson, RequestOrigin, Upstream
from sightline.store import open_record
from sightline.vision.capabilities import ModelDiscovery
from tests.requirements import requirement
from tests.scripted.server import Exchange, Reply, Server

LISTING = {"data": [{"id": name, "architecture": {"input_modalities": kinds}} for name, kinds in (
    ("eye", ["text", "image"]), ("stone", ["text"]))]}  # fmt: skip


class Publisher:
    """An upstream that publishes something."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"/api/v1/models": LISTING}
        self.asked: list[Exchange] = []
        self.redirect = ""
        self.server = Server(self._answer, lambda: False)

    def _answer(self, exchange: Exchange) -> Reply:
        self.asked.append(exchange)
        if self.redirect:
            return Reply(302, (("location", self.redirect),), (b"",))
        found = self.answers.get(exchange.path)
        body = found if isinstance(found, bytes) else json.dumps(found).encode()
        return Reply(404 if found is None else 200, (("content-type", "application/json"),), (body,))

    def origin(self, preset: str = "openrouter", path: str = "/api/v1", name: str = "up") -> RequestOrigin:
        base = f"http://127.0.0.1:{self.server.port}{path}"
        return RequestOrigin(
            Upstream(name, {"openai_chat": base}, preset=preset),
            "openai_chat",
            "scope",
            (("authorization", "Bearer k"),),
        )


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    made = Publisher()
    with made.server:
        yield made


@pytest_asyncio.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient(lambda scheme, host: None)
    yield client
    await client.close()


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Store]:
    opened = open_record(tmp_path)
    yield opened
    opened.close()


@requirement("profile.discovered")
async def test_a_listing_is_fetched_once_with_the_client_s_credential(
    publisher: Publisher, http: HttpClient, record: Store, tmp_path: Path
) -> None:
    discovery = ModelDiscovery(http, record.policy)
    for model in ("eye", "stone", "unlisted"):
        discovery.start(publisher.origin(), model)
    assert record.policy.read_lesson("up", "eye") is None, "no request waits for it"
    await discovery.wait()
    discovery.start(publisher.origin(), "stone")
    await discovery.wait()
    (one,) = publisher.asked
    assert (one.method, one.path, one.header("authorization")) == ("GET", "/api/v1/models", ["Bearer k"])
    published = {model: lesson.published["vision"] for _, model, lesson in record.policy.list_lessons()}
    assert published == {"eye": True, "stone": False}
    again = open_record(tmp_path)
    later = ModelDiscovery(http, again.policy)
    later.start(publisher.origin(), "eye")
    await later.wait()
    assert len(publisher.asked) == 1, "another process knows its age"
    again.close()


@requirement("profile.discovered")
async def test_local_servers_are_asked_in_their_own_way(publisher: Publisher, http: HttpClient, record: Store) -> None:
    discovery = ModelDiscovery(http, record.policy)
    publisher.answers = {
        "/api/show": {"capabilities": ["completion", "vision"]},
        "/api/v0/models": {"data": [{"id": "local-vlm", "type": "vlm"}]},
    }
    discovery.start(publisher.origin("ollama", "/v1"), "qwen3-vl:8b")
    await discovery.wait()
    discovery.start(publisher.origin("lmstudio", "/v1", "studio"), "local-vlm")
    await discovery.wait()
    assert [(each.method, each.path) for each in publisher.asked] == [
        ("POST", "/api/show"),
        ("GET", "/api/v1/models"),
        ("GET", "/api/v0/models"),
    ]
    assert json.loads(publisher.asked[0].body) == {"model": "qwen3-vl:8b"}
    for upstream, model in (("up", "qwen3-vl:8b"), ("studio", "local-vlm")):
        lesson = record.policy.read_lesson(upstream, model)
        assert lesson is not None
        assert (lesson.published, lesson.is_learnt) == ({"vision": True}, False)


@requirement("profile.discovered")
@pytest.mark.parametrize("answer", [None, b"no JSON", {"data": []}, {"data": [{"id": "eye"}]}])
async def test_an_upstream_that_publishes_nothing_is_left_alone_for_a_while(
    publisher: Publisher, http: HttpClient, record: Store, answer: Any
) -> None:
    now = [0.0]
    discovery = ModelDiscovery(http, record.policy, lambda: now[0])
    publisher.answers = {} if answer is None else {"/api/v1/models": answer}
    for seconds in (0.0, 3599.0, 3600.0):
        now[0] = seconds
        discovery.start(publisher.origin(), "eye")
        await discovery.wait()
    assert len(publisher.asked) == 2
    assert record.policy.list_lessons() == ()


@requirement("profile.discovered")
async def test_a_redirect_is_not_followed(publisher: Publisher, http: HttpClient, record: Store) -> None:
    publisher.redirect = "/elsewhere"
    publisher.answers["/elsewhere"] = LISTING
    discovery = ModelDiscovery(http, record.policy)
    discovery.start(publisher.origin(), "eye")
    await discovery.wait()
    assert [each.path for each in publisher.asked] == ["/api/v1/models"]
    assert record.policy.list_lessons() == ()


@requirement("profile.discovered")
async def test_only_local_servers_are_asked_without_a_credential(http: HttpClient, record: Store) -> None:
    discovery = ModelDiscovery(http, record.policy)
    away = Upstream("openrouter", {"openai_chat": "https://openrouter.invalid/api/v1"}, preset="openrouter")
    for headers in ((), (("user-agent", "an agent"),)):
        discovery.start(RequestOrigin(away, "openai_chat", "scope", headers), "eye")
        assert discovery.is_idle
    await discovery.close()


@requirement("profile.discovered")
def test_a_newer_listing_replaces_an_older_one_and_keeps_what_was_learnt(record: Store) -> None:
    record.policy.keep_lesson("up", "eye", Lesson(blind=True, why="it said so"), 7)
    record.policy.keep_listing("up", ModelListing({"eye": {"vision": True}, "old": {"vision": True}}), 1)
    record.policy.keep_listing("up", ModelListing({"eye": {"vision": True}, "new": {"vision": False}}), 1)
    record.policy.keep_listing("up", ModelListing({"one": {"vision": False}}, "one"), 1)
    found = {model: lesson for _, model, lesson in record.policy.list_lessons()}
    assert found.keys() == {"eye", "new", "one"}
    assert found["eye"] == Lesson(blind=True, why="it said so", published={"vision": True})
    assert record.policy.has_fresh_listing("up", "")
    assert record.policy.has_fresh_listing("up", "one")
    assert not record.policy.has_fresh_listing("other", "")
