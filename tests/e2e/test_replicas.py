"""Three proxies that share a record: one description for all, the same bytes from each, and one that dies or hangs."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.forked import Forked
from tests.cli.test_serve import serving
from tests.e2e.shared_servers import Servers
from tests.proxy.clients import ask_chat, pasted_chat
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

BLIND = "deepseek-v4-pro"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with deepseek() as running:
        yield running


@pytest.fixture
def replicas(servers: Servers, provider: Provider, tmp_path: Path) -> Iterator[list[tuple[Forked, str]]]:
    address = servers.address(tmp_path)
    flags = ("--upstream", f"deepseek={provider.url}", "--store", address.store, "--blobs", address.blobs)
    with ExitStack() as stack:
        found = [stack.enter_context(serving(*flags, **servers.s3.environment())) for _ in range(3)]
        yield [(process, url) for process, url in found if isinstance(process, Forked)]
    servers.recycle_databases()


def ask(url: str, number: int) -> str:
    picture = paint_quadrants(some_colours(number))
    return ask_chat(f"{url}/u/deepseek", BLIND, pasted_chat(picture))


def count_looks(provider: Provider) -> int:
    return len(provider.exchanges) - len(provider.asked(BLIND))


@requirement("record.postgres", "record.shared.replicas")
def test_replicas_describe_each_image_once_and_send_the_same_bytes(
    replicas: list[tuple[Forked, str]], provider: Provider
) -> None:
    urls, images = [url for _, url in replicas], range(4)
    with ThreadPoolExecutor(12) as threads:
        answers = list(
            threads.map(lambda pair: (pair[1], ask(*pair)), [(url, each) for each in images for url in urls])
        )
    for number, answer in answers:
        assert describe_quadrants(some_colours(number)) in answer
    assert count_looks(provider) == len(images), "each image was described once, for all replicas"
    bodies = [exchange.body for exchange in provider.asked(BLIND)]
    assert len(bodies) == len(images) * len(urls)
    assert len(set(bodies)) == len(images), "every replica sends the same bytes for the same request"


@requirement("record.shared.replicas", "law.9")
def test_a_replica_that_is_killed_or_frozen_takes_nothing_with_it(
    replicas: list[tuple[Forked, str]], provider: Provider
) -> None:
    (killed, first), (frozen, second), (_, third) = replicas
    for number, url in enumerate((first, second, third)):
        assert describe_quadrants(some_colours(number)) in ask(url, number)
    killed.send_signal(signal.SIGKILL)
    frozen.send_signal(signal.SIGSTOP)
    try:
        for number in range(5):
            assert describe_quadrants(some_colours(number)) in ask(third, number)
        assert count_looks(provider) == 5, "what the others have paid for is not paid again"
    finally:
        frozen.send_signal(signal.SIGCONT)
    assert describe_quadrants(some_colours(4)) in ask(second, 4)
    assert count_looks(provider) == 5
