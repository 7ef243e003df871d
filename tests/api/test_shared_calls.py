"""The same look, asked for at once in several processes: one pays, and one that dies holds up nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

import sightline
from sightline.api import FileAnswer, Session
from tests.api.eyes import named
from tests.api.held import Held, holding
from tests.engine.parts import picture
from tests.requirements import requirement

ASK = """
import json, sys, sightline
from sightline.api import Session, analysis
session = Session()
print("ready", flush=True)
sys.stdin.readline()
print("asking", flush=True)
found = sightline.analyze("shot.png", sys.argv[1], session=session)
print(json.dumps(found.as_dict()), flush=True)
"""


@pytest.fixture(autouse=True)
def _working(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shot.png").write_bytes(picture(1, (640, 480)))


def use(monkeypatch: pytest.MonkeyPatch, held: Held, **more: str) -> None:
    for name, value in named(held.url, **more).items():
        monkeypatch.setenv(name, value)


@contextmanager
def asking(question: str = "What is it?") -> Iterator[subprocess.Popen[str]]:
    """A process that has all it needs, and asks when it is told to."""
    command = [sys.executable, "-c", ASK, question]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=dict(os.environ)) as process:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def start(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.stdout.readline() == "asking\n"


def said(process: subprocess.Popen[str]) -> tuple[str, bool]:
    assert process.stdout
    found = json.loads(process.stdout.readline())
    return found["text"], found["cached"]


@requirement("record.flights", "engine.single_flight")
def test_two_processes_with_the_same_question_pay_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with holding() as held:
        use(monkeypatch, held)
        with asking() as one, asking() as two, asking("And what else?") as other:
            start(one)
            assert held.came.acquire(timeout=60)
            start(two)
            start(other)
            assert held.came.acquire(timeout=60), "another question is another call"
            held.free.set()
            answers = said(one), said(two)
            assert said(other) == ("answer 2", False)
    assert answers == (("answer 1", False), ("answer 1", True))
    assert len(held.calls) == 2
    entries = [
        entry
        for entry in Session().tool_context.record.ledger.list_entries()
        if entry.about["question"] == "What is it?"
    ]
    assert sorted((entry.cache_hit, entry.usage.input) for entry in entries) == [(False, 100), (True, None)]


@requirement("record.flights")
def test_a_killed_process_does_not_block_others(monkeypatch: pytest.MonkeyPatch) -> None:
    with holding() as held:
        use(monkeypatch, held)
        with asking() as one, asking() as two:
            start(one)
            assert held.came.acquire(timeout=60)
            start(two)
            one.kill()
            assert held.came.acquire(timeout=60), "the second one asks itself"
            held.free.set()
            assert said(two) == ("answer 2", False)


@requirement("record.flights")
def test_every_process_asks_if_nothing_is_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    with holding() as held:
        use(monkeypatch, held, SIGHTLINE_CACHE_SIZE="0")
        with asking() as one, asking() as two:
            start(one)
            start(two)
            assert held.came.acquire(timeout=60)
            assert held.came.acquire(timeout=60)
            held.free.set()
            assert {said(one), said(two)} == {("answer 1", False), ("answer 2", False)}


@requirement("record.flights")
def test_cached_answers_about_a_file_are_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(path: str) -> tuple[str, bool]:
        found = sightline.vision_analyze(prompt="What is it?", file_path=path)
        assert isinstance(found, FileAnswer), found
        return found.text, found.cached

    with holding() as held, ThreadPoolExecutor(2) as threads:
        use(monkeypatch, held, SIGHTLINE_VISION_CACHE="true", SIGHTLINE_MODELS='{"eye-1": {"vision": true}}')
        path = str(Path("shot.png").absolute())
        answers = [threads.submit(ask, path) for _ in range(2)]
        assert held.came.acquire(timeout=60)
        held.free.set()
        assert sorted(answer.result() for answer in answers) == [("answer 1", False), ("answer 1", True)]
    assert len(held.calls) == 1
