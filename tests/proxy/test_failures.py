"""More failures: unusual responses, failing seers, an unwritable record, and disconnects at any point."""

from __future__ import annotations

import gc
import gzip
import json
import re
import sqlite3
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sightline.dial import Exchange
from tests.privileges import as_nobody
from tests.proxy.clients import WIRES, ask_chat, ask_messages, pasted_chat, pasted_message
from tests.proxy.raw_http import exchange, head, plug, until
from tests.proxy.running_proxy import Running, sightline
from tests.proxy.test_streams import ANSWERED, EVERY, Stopped, Waiting, Way, both, plain
from tests.refusals import NOT_SHOWN
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.faults import Fail, Fault, Garble, Hang, Page, Refuse, Reset
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek
from tests.server.test_hostile import RESTING, open_files
from tests.store.test_disk_errors import full_disk

COLOURS = some_colours(71)
PICTURE = paint_quadrants(COLOURS)
SEEN = f"image 1 of 1: {describe_quadrants(COLOURS)}"
Json = dict[str, Any]


# The upstream.


@EVERY
@requirement("fault.odd")
def test_an_upstream_that_is_not_http_is_503(tmp_path: Path, way: Way) -> None:
    with Provider(faults=[Garble()]) as provider, sightline(tmp_path, provider.url) as proxy:
        got = exchange(proxy.url, way.path, way.body)
        assert (got.status, b"HTTP" in got.body) == (503, True)
        assert ("retry-after", "2") in got.headers
        assert exchange(proxy.url, way.path, way.body).status == 200


PACKED = gzip.compress(b"<html>this model does not support image input</html>")
PAGES = {
    "a page that lets nobody through": Page(),
    "a page of a gateway": Page(502, body=b"<html><h1>502 Bad Gateway</h1></html>"),
    "a page that speaks of images": Page(500, body=b'<html><img src="image.png"> image not found</html>'),
    "nothing": Page(500, "text/plain", b""),
    "half of an error": Page(400, "application/json", b'{"error": {"message": "image'),
    "bytes": Page(200, "application/octet-stream", bytes(range(256)) * 400),
    "a packed page": Page(200, "text/html", PACKED, (("content-encoding", "gzip"),)),
    "too many requests": Page(429, "application/json", b'{"error":"slow down"}', (("retry-after", "31"),)),
}


def in_one_piece(way: Way) -> tuple[str, bytes]:
    """The same question, with no stream for its answer."""
    path = way.path.replace("streamGenerateContent?alt=sse", "generateContent")
    return path, way.body.replace(b'"stream": true', b'"stream": false')


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@EVERY
@requirement("fault.odd", "pass.routes")
def test_unusual_responses_are_relayed_unchanged(tmp_path: Path, way: Way, page: Page) -> None:
    path, body = (way.path, way.body) if page.status != 200 else in_one_piece(way)
    sent = 2 if page.status == 400 else 1  # after a rejection, the client's own body
    with Provider(faults=[page] * (sent + 1)) as provider, sightline(tmp_path, provider.url) as proxy:
        relayed, direct = both(provider, proxy, path, body)
        assert plain(relayed) == plain(direct)
        assert (relayed.status, relayed.body) == (page.status, page.body)
        assert len(provider.exchanges) == sent + 1


# The seer, while the main model is well.

EYE = "deepseek-flash"
BLIND = {"messages": "claude-opus-x", "chat": "deepseek-v4-pro"}
SEER_FAULTS: dict[str, tuple[Fault, str]] = {
    "refuses": (Refuse(model=EYE), ""),
    "resets": (Reset(model=EYE), ""),
    "speaks no HTTP": (Garble(model=EYE), ""),
    "answers with a page": (Page(model=EYE), ""),
    "answers with bytes": (Page(200, "application/json", b"\x00\xff{", model=EYE), ""),
    "answers with another shape": (Page(200, "application/json", b'[{"x":1}]', model=EYE), ""),
    "has no time": (Fail(429, 0, model=EYE), "429"),
    "is broken": (Page(500, headers=(("retry-after", "0"),), model=EYE), "500"),
}


@pytest.mark.parametrize(("fault", "status"), SEER_FAULTS.values(), ids=SEER_FAULTS)
@pytest.mark.parametrize("wire", WIRES)
@requirement("fault.seer", "tell.failure")
@pytest.mark.usefixtures("no_local_reader")
def test_a_failing_seer_costs_one_sentence_and_not_the_turn(
    tmp_path: Path, wire: str, fault: Fault, status: str
) -> None:
    ask, pasted, _ = WIRES[wire]
    with deepseek(faults=[fault, fault]) as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        assert ask(f"{proxy.url}/u/deepseek", BLIND[wire], pasted(PICTURE)) == "I see no image."
        (sent,) = provider.asked(BLIND[wire])
        words = json.dumps(json.loads(sent.body)["messages"], ensure_ascii=False)
    assert words.count(NOT_SHOWN) == 1
    assert re.search(rf"deepseek/{EYE} [^\]]*{status}", words)
    assert "base64" not in words


@requirement("fault.seer", "tell.failure")
def test_waiting_for_a_hanging_seer_is_bounded(tmp_path: Path) -> None:
    hang = Hang(model=EYE)
    body = json.dumps({"model": BLIND["chat"], "messages": pasted_chat(PICTURE)}).encode()
    waiting = Waiting(tmp_path, Way("/u/deepseek/v1/chat/completions", body, str))

    async def script(loop: Stopped) -> AsyncIterator[None]:
        loop.now = 44.9
        yield
        assert provider.asked(BLIND["chat"]) == []
        loop.now = 45.0
        while not provider.asked(BLIND["chat"]):
            yield
        assert b"base64" not in provider.asked(BLIND["chat"])[0].body

    with deepseek(faults=[hang]) as provider:
        waiting.run(provider, hang, script, name="deepseek")
    assert json.loads(waiting.sent[1]["body"])["choices"][0]["message"]["content"] == "I see no image."


# The record.


@contextmanager
def closed(home: Path) -> Iterator[None]:
    """Nobody may write there, nor below it."""
    folders = [home, *(each for each in home.rglob("*") if each.is_dir())]
    for each in home.rglob("*"):
        each.chmod(0o555 if each.is_dir() else 0o444)
    home.chmod(0o555)
    try:
        with as_nobody():
            yield
    finally:
        for each in folders:
            each.chmod(0o755)


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """Another process writes, and does not come to an end."""
    program = (
        "import sqlite3, sys\n"
        "held = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "held.execute('BEGIN EXCLUSIVE')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    (file,) = home.rglob("record.sqlite")
    with subprocess.Popen(
        [sys.executable, "-c", program, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            sqlite3.connect(file, timeout=0, isolation_level=None).execute("BEGIN IMMEDIATE")
        yield
        assert other.stdin is not None
        other.stdin.close()


@contextmanager
def full(home: Path) -> Iterator[None]:
    with full_disk(1):
        yield


TROUBLES = pytest.mark.parametrize("trouble", [closed, locked, full], ids=["read-only", "locked", "full"])
WHEN = pytest.mark.parametrize("used", [True, False], ids=["while it serves", "from the start"])


@TROUBLES
@WHEN
@requirement("record.trouble", "fault.record")
def test_an_unwritable_record_fails_no_request(
    trouble: Callable[[Path], Any], used: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.store.sqlite_database._BUSY_SECONDS", 0.05)
    fresh = paint_quadrants(some_colours(72))
    with tempfile.TemporaryDirectory() as folder, deepseek() as provider, Provider() as seeing:
        home = Path(folder) / "home"
        home.mkdir()
        Path(folder).chmod(0o755)
        places = f"deepseek={provider.url}", f"anthropic={seeing.url}"

        def asked(proxy: Running, picture: bytes) -> list[str]:
            told = ask_chat(f"{proxy.url}/u/deepseek", BLIND["chat"], pasted_chat(picture))
            seen = ask_messages(f"{proxy.url}/u/anthropic", "claude-sonnet-x", pasted_message(picture), stream=True)
            return [told, seen]

        if not used:
            with sightline(home, *places) as proxy:
                asked(proxy, PICTURE)
            with trouble(home), sightline(home, *places) as proxy:
                said = asked(proxy, PICTURE) + asked(proxy, fresh)
        else:
            with sightline(home, *places) as proxy:
                asked(proxy, PICTURE)
                with trouble(home):
                    said = asked(proxy, PICTURE) + asked(proxy, fresh)
    old, new = describe_quadrants(COLOURS), describe_quadrants(some_colours(72))
    assert [old in said[0], said[1] == f"image 1 of 1: {old}"] == [True, True]
    assert [new in said[2], said[3] == f"image 1 of 1: {new}"] == [True, True]
    assert said[2].startswith("I was told: ")


# Clients that leave.


def leave_amid_the_head(proxy: Running, way: Way, hang: Hang) -> None:
    with plug(proxy.url) as connection:
        connection.sendall(head(way.path, len(way.body))[:25])


def leave_amid_the_body(proxy: Running, way: Way, hang: Hang) -> None:
    with plug(proxy.url) as connection:
        connection.sendall(head(way.path, len(way.body)) + way.body[:-5])


def leave_where_the_upstream_hangs(proxy: Running, way: Way, hang: Hang) -> None:
    with plug(proxy.url) as connection:
        connection.sendall(head(way.path, len(way.body)) + way.body)
        hang.reached.result(30)


def leave_after_keep_alives(proxy: Running, way: Way, hang: Hang) -> None:
    with plug(proxy.url) as connection:
        connection.sendall(head(way.path, len(way.body)) + way.body)
        until(connection, b"\r\n\r\n")


Leave = Callable[[Running, Way, Hang], None]
POINTS: dict[str, tuple[Leave, int | None, Json, float]] = {
    "amid its head": (leave_amid_the_head, None, {}, 10.0),
    "amid its body": (leave_amid_the_body, None, {}, 10.0),
    "before the upstream speaks": (leave_where_the_upstream_hangs, None, {}, 10.0),
    "while the beginning is held back": (leave_where_the_upstream_hangs, 0, {}, 10.0),
    "amid the stream": (leave_where_the_upstream_hangs, 3, {}, 10.0),
    "amid an answer in one piece": (leave_where_the_upstream_hangs, 0, {"streams": False}, 10.0),
    "after keep-alives": (leave_after_keep_alives, None, {}, 0.001),
}


@pytest.mark.parametrize(("leave", "after", "options", "patience"), POINTS.values(), ids=POINTS)
@requirement("fault.leaves", "fault.rest")
def test_disconnected_clients_leave_nothing_behind(
    tmp_path: Path, leave: Leave, after: int | None, options: Json, patience: float
) -> None:
    way = ANSWERED["messages"]
    rounds = 12
    with Provider(**options) as provider, sightline(tmp_path, provider.url, patience=patience) as proxy:
        exchange(proxy.url, way.path, way.body)
        tasks, files, exchanges = proxy.tasks(), open_files(), living(Exchange)
        for _ in range(rounds):
            hang = Hang(after=after)
            provider.faults.clear()
            provider.faults.append(hang)
            leave(proxy, way, hang)
            hang.release()
        provider.faults.clear()
        for _ in range(50):  # time passes for the proxy, too
            if at_rest(proxy, tasks, files, exchanges):
                break
            assert exchange(proxy.url, way.path, way.body).status == 200
        assert proxy.tasks() <= tasks
        assert open_files() <= files + RESTING
        assert living(Exchange) <= exchanges + 2


def living(kind: type) -> int:
    gc.collect()
    return sum(isinstance(each, kind) for each in gc.get_objects())


def at_rest(proxy: Running, tasks: int, files: int, exchanges: int) -> bool:
    return proxy.tasks() <= tasks and open_files() <= files + RESTING and living(Exchange) <= exchanges + 2


@requirement("fault.rest")
def test_the_memory_of_abandoned_requests_is_freed(tmp_path: Path) -> None:
    size, rounds = 3_000_000, 15
    padding = {"role": "user", "content": "x" * size}
    body = json.dumps({"model": "m", "max_tokens": 9, "messages": [padding, *pasted_message(PICTURE)]}).encode()
    way = Way("/v1/messages", body, str)
    hello = json.dumps({"model": "m", "max_tokens": 9, "messages": pasted_message(PICTURE)}).encode()
    with Provider() as provider, sightline(tmp_path, provider.url) as proxy:
        exchange(proxy.url, way.path, hello)
        tracemalloc.start()
        try:
            for _ in range(rounds):
                hang = Hang()
                provider.faults.append(hang)
                leave_where_the_upstream_hangs(proxy, way, hang)
                assert provider.exchanges[-1].abandoned
                provider.exchanges.clear()
            for _ in range(200):
                exchange(proxy.url, way.path, hello)
                provider.exchanges.clear()
                gc.collect()
                if tracemalloc.get_traced_memory()[0] < size:
                    break
            assert tracemalloc.get_traced_memory()[0] < 2 * size
        finally:
            tracemalloc.stop()
