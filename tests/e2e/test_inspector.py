"""The inspector in a real Chromium: each view, by mouse and by keyboard, with hostile names and with many images."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sightline.cli.main import main
from sightline.model.ports import Store
from sightline.store import open_record
from sightline.surfaces.inspector.changes import InspectorAccess
from tests.inspector.recorded import (
    HOSTILE_NAME,
    HOSTILE_TEXT,
    paint_window,
    record_conversation,
    record_many,
    record_view,
)
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
PICTURES = Path(os.environ["SIGHTLINE_PICTURES"]) if "SIGHTLINE_PICTURES" in os.environ else None
"""The folder for the pictures in the documents; None: they are not wanted."""

Fill = Callable[[Store], None]


@cache
def browser_home() -> Path:
    done = subprocess.run([ROOT / "scripts" / "browser-env"], stdout=subprocess.PIPE, text=True, check=True)
    return Path(done.stdout.strip())


@contextmanager
def inspected(home: Path, fill: Fill) -> Iterator[str]:
    """A proxy whose record was filled."""
    record = open_record(home / "record")
    fill(record)
    record.close()
    with sightline(home) as proxy:
        yield proxy.url


def start(steps: str, url: str, home: Path, folder: Path) -> subprocess.Popen[str]:
    environment = browser_home()
    ticket = InspectorAccess(home / "inspector").issue_ticket()
    axe = environment / "axe" / "node_modules" / "axe-core" / "axe.min.js"
    command = [environment / "bin" / "python", ROOT / "tests" / "e2e" / "browser" / "drive.py"]
    return subprocess.Popen(
        [*command, steps, url, ticket, str(folder), str(axe)], stdout=subprocess.PIPE, text=True, env=_environment(home)
    )


def _environment(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}


def drive(steps: str, url: str, home: Path, folder: Path) -> dict[str, Any]:
    with start(steps, url, home, folder) as process:
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0, out
    seen: dict[str, Any] = json.loads(out.splitlines()[-1])
    return seen[steps] if "," not in steps else seen


def fill_forty_turns(record: Store) -> None:
    record_many(record, 1, 3)
    others = (
        (3, ("moonshot", "kimi-k2-0905-preview", "opencode/1.2")),
        (14, ("groq", "openai/gpt-oss-120b", "codex_cli/0.60")),
        (8, ("zai", "glm-4.6", "claude-cli/2.1")),
        (22, ("deepseek", "deepseek-reasoner", "qwen-code/0.9")),
    )
    for number, (turns, names) in enumerate(others, 1):
        record_conversation(record, turns, first=names[1], names=names, seed=100 * number)
    record_conversation(record, 40)
    record_view(record, 1, (600, 450, 320, 90))


@pytest.fixture(scope="module")
def forty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    home = tmp_path_factory.mktemp("forty")
    with inspected(home, fill_forty_turns) as url:
        yield url, home


@pytest.fixture(scope="module")
def seen(forty: tuple[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is seen of a conversation of 40 turns, in one browser."""
    url, home = forty
    folder = PICTURES or tmp_path_factory.mktemp("pictures")
    (folder / "given.png").write_bytes(paint_window(3).data)
    found = drive("tour,clicks,keyboard,try_image", url, home, folder)
    (folder / "given.png").unlink()
    for file in folder.glob("check-*.png") if folder == ROOT / "docs" / "inspector" else ():
        file.unlink()  # to be looked at, but not in the documents
    return found


@requirement("inspector.views")
def test_each_view_is_sound_and_accessible(seen: dict[str, Any]) -> None:
    tour = seen["tour"]
    assert tour["errors"] == []
    found = tour["axe"] | tour["axe_of_image"]
    views = ("conversations", "charts", "try", "settings", "conversation", "image")
    assert found == {f"{view}{shade}": [] for view in views for shade in ("", ", dark")}
    assert (tour["turns"], tour["charts"]) == (40, 4)
    assert set(tour["wide"].values()) == {360}
    assert set(tour["large"].values()) == {3840}


@requirement("inspector.sent")
def test_what_was_sent_is_beside_the_original_with_boxes_and_crops_on_it(seen: dict[str, Any]) -> None:
    tour = seen["tour"]
    assert tour["slider"] == "51"
    assert "the very bytes" in tour["sent"]
    assert (tour["boxes"], tour["crops"], tour["views"]) == (2, 1, 2)


@requirement("inspector.clicks")
def test_why_and_what_it_cost_are_three_clicks_away(seen: dict[str, Any]) -> None:
    assert seen["clicks"]["clicks"] <= 3
    assert "(the model takes no images)" in seen["clicks"]["why"]
    assert "zai/glm-5v" in seen["clicks"]["why"]
    assert "$0.00" in seen["clicks"]["cost"]


@requirement("inspector.views")
def test_everything_is_reached_by_keyboard(seen: dict[str, Any]) -> None:
    assert seen["keyboard"] == {"inside": True, "closed": True, "back": True, "errors": []}


@requirement("inspector.try")
def test_an_image_is_tried_and_cropped_with_the_mouse(seen: dict[str, Any]) -> None:
    tried = seen["try_image"]
    assert "Deploy" in tried["whole"]
    assert tried["marked"]
    assert "Deploy" not in tried["part"]


@requirement("inspector.views")
def test_an_empty_record_says_what_to_do(tmp_path: Path) -> None:
    with inspected(tmp_path, lambda record: None) as url:
        seen = drive("empty", url, tmp_path, PICTURES or tmp_path)
    assert "sightline run" in seen["text"]
    assert (seen["axe"], seen["errors"]) == ([], [])


@requirement("inspector.hostile")
def test_hostile_names_run_nothing(tmp_path: Path) -> None:
    with inspected(tmp_path, lambda record: record_conversation(record, 3, hostile=True)) as url:
        seen = drive("hostile", url, tmp_path, tmp_path)
    assert seen["title"] != "run"
    assert (seen["text"], seen["said"]) == (HOSTILE_NAME, HOSTILE_TEXT)
    assert (seen["scripts"], seen["errors"]) == (0, [])


class _EmptyPage(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<p>another origin")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


@requirement("inspector.origin")
def test_another_origin_reads_nothing(forty: tuple[str, Path], tmp_path: Path) -> None:
    url, home = forty
    with ThreadingHTTPServer(("127.0.0.1", 0), _EmptyPage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (tmp_path / "other.txt").write_text(f"http://127.0.0.1:{server.server_port}/")
        seen = drive("other_origin", url, home, tmp_path)
        server.shutdown()
    assert seen["read"] == "refused"
    record = open_record(home / "record")
    assert record.policy.read_consents() == {}
    record.close()


@requirement("inspector.live")
def test_a_new_request_appears_without_a_reload(tmp_path: Path) -> None:
    with (
        inspected(tmp_path, lambda record: record_conversation(record, 1)) as url,
        start("live", url, tmp_path, tmp_path) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        record = open_record(tmp_path / "record")
        record_conversation(record, 1, first="Another one")
        record.close()
        out, _ = process.communicate(timeout=60)
    seen = json.loads(out.splitlines()[-1])["live"]
    assert (seen["before"], seen["after"]) == (1, 2)
    assert seen["focused"], "the keyboard stays where it was"


@requirement("inspector.paged")
def test_a_thousand_conversations_and_ten_thousand_images_are_shown_by_pages(tmp_path: Path) -> None:
    def fill(record: Store) -> None:
        record_many(record, 1000, 8)
        record_many(record, 1, 2000, client="big/1")

    with inspected(tmp_path, fill) as url:
        seen = drive("many", url, tmp_path, tmp_path)
    assert (seen["listed"], seen["images"], seen["more"], seen["errors"]) == (50, 24, 200, [])


@requirement("inspector.export")
def test_an_exported_file_opens_from_the_disk(tmp_path: Path) -> None:
    record = open_record(Path(os.environ["SIGHTLINE_HOME"]) / "record")
    record_conversation(record, 3, hostile=True)
    record.close()
    assert main(["inspect", "--export", str(tmp_path / "exported.html")]) == 0
    with inspected(tmp_path / "home", lambda record: None) as url:
        seen = drive("exported", url, tmp_path / "home", tmp_path)
    assert seen["title"] != "run"
    assert seen["turns"] == 3
    assert seen["pictures"] >= 3
    assert seen["errors"] == []
