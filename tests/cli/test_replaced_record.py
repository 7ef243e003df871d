"""The record is deleted or replaced under a running server: what the user says to the new one counts there, too."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from sightline.store import open_record
from tests.cli.command import ALONE, sightline
from tests.cli.forked import Forked
from tests.cli.test_serve import serving
from tests.proxy.clients import ask_chat, pasted_chat
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider
from tests.scripted.tunnel import Tunnel
from tests.store.damaged_records import damage_root

HOST = "llm.example.com"


@dataclass
class Place:
    """A proxy in front of a model that takes no images, and a provider elsewhere that looks where it may."""

    process: subprocess.Popen[str] | Forked
    url: str
    elsewhere: Provider
    shown: int = 0

    def looks(self) -> int:
        """How many images that are new went elsewhere for one more request."""
        before = self._sent()
        self.shown += 1
        ask_chat(f"{self.url}/u/blind", "text-only", pasted_chat(paint_quadrants(some_colours(self.shown))))
        return self._sent() - before

    def _sent(self) -> int:
        return sum(b"base64" in each.body for each in self.elsewhere.exchanges)

    def stop(self) -> list[str]:
        """What it has said on stderr."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.communicate(timeout=60)[1].splitlines()


Run = Callable[..., AbstractContextManager[Place]]


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> Run:
    return contextmanager(partial(_run, monkeypatch))


def _run(monkeypatch: pytest.MonkeyPatch, *words: str) -> Iterator[Place]:
    with (
        Provider((("*", "ollama"),)) as blind,
        Provider() as elsewhere,
        Tunnel(int(elsewhere.url.rpartition(":")[2])) as way,
    ):
        upstreams = {
            **json.loads(ALONE["SIGHTLINE_UPSTREAMS"]),
            "blind": {"baseUrl": blind.url},
            "work": {"baseUrl": f"http://{HOST}/v1", "apiKey": "sk-work"},
        }
        named = {
            "SIGHTLINE_UPSTREAMS": json.dumps(upstreams),
            "SIGHTLINE_MODEL": "work/eye",
            "SIGHTLINE_MODELS": json.dumps({"text-only": {"vision": False}, "work/eye": {"vision": True}}),
        }
        for name, value in named.items():
            monkeypatch.setenv(name, value)
        with serving(*words, **named, HTTP_PROXY=way.url) as (process, url):
            yield Place(process, url, elsewhere)


def delete_folder(record: Path) -> None:
    """At once: a server that notices it half-way would write there again."""
    shutil.rmtree(record.rename(record.with_name("gone")))


def delete_database(record: Path) -> None:
    """What is left is damaged, and has to be repaired before anything can be written."""
    for path in record.glob("record.sqlite*"):
        path.unlink()
    assert sightline("consent", "no", "work").code == 1
    assert sightline("store", "repair").code == 0


def replace_database(record: Path) -> None:
    """As somebody does who restores an older copy."""
    copy = record.with_name("copy")
    shutil.copytree(record, copy)
    for path in record.glob("record.sqlite*"):
        path.unlink()
    shutil.move(copy / "record.sqlite", record / "record.sqlite")


@requirement("record.replaced", "consent.exact")
@pytest.mark.parametrize("lose", [delete_folder, delete_database, replace_database])
def test_a_running_server_follows_a_withdrawal_in_a_new_record(
    home: Path, running: Run, lose: Callable[[Path], None]
) -> None:
    with running() as place:
        assert place.looks() == 0
        assert sightline("consent", "yes", "work").code == 0
        assert place.looks() == 1
        lose(home / "record")
        assert sightline("consent", "no", "work").code == 0
        assert place.looks() == 0
        assert sightline("consent", "yes", "work").code == 0
        assert place.looks() == 1, "the new record is used from now on"
        said = place.stop()
    assert sum("deleted or replaced" in line for line in said) == 1, said
    assert sightline("consent", "--json").json["consents"] == {HOST: True}, (
        "the old file did no harm when it was closed"
    )


@requirement("record.replaced")
def test_a_deleted_record_means_no_consent_and_nothing_is_sent(home: Path, running: Run) -> None:
    with running() as place:
        assert sightline("consent", "yes", "work").code == 0
        assert place.looks() == 1
        delete_folder(home / "record")
        assert place.looks() == 0
        assert sightline("consent", "--json").json["consents"] == {}


@requirement("record.replaced", "serve.workers")
def test_every_worker_notices_a_replaced_record(home: Path, running: Run) -> None:
    with running("--workers", "2") as place:
        assert sightline("consent", "yes", "work").code == 0
        assert sum(place.looks() for _ in range(8)) == 8
        delete_folder(home / "record")
        assert sightline("consent", "no", "work").code == 0
        assert sum(place.looks() for _ in range(8)) == 0


@requirement("record.damage.consents", "store.repair.running")
def test_a_server_with_a_damaged_record_sends_nothing_until_it_is_repaired(home: Path, running: Run) -> None:
    open_record(home / "record").close()
    with running() as place:
        assert sightline("consent", "yes", "work").code == 0
        assert place.looks() == 1
        place.stop()
    damage_root("consents")(home / "record")
    with running() as place:
        assert place.looks() == 0
        assert sightline("consent", "yes", "work").code == 1
        assert sightline("store", "repair").code == 0
        assert place.looks() == 0, "what could not be relied on has to be given again"
        assert sightline("consent", "yes", "work").code == 0
        assert place.looks() == 1
