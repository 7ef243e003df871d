"""`sightline inspect`: its own server, the link, and the exported file."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.cli.main import main
from sightline.store import open_record
from tests.inspector.client import InspectorClient
from tests.inspector.recorded import HOSTILE_NAME, SCRIPT, record_conversation, record_many
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement

COMMAND = [sys.executable, "-m", "sightline", "inspect", "--no-browser"]


def find_home() -> Path:
    return Path(os.environ["SIGHTLINE_HOME"])


@requirement("inspector.verb")
def test_inspect_serves_the_pages_itself_without_a_proxy() -> None:
    with subprocess.Popen([*COMMAND, "--port", "9"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"(http://127\.0\.0\.1:\d+)/sightline/#ticket=([\w-]+)", process.stdout.readline())
        assert found is not None
        client = InspectorClient(found[1])
        assert client.post("api/session", {"ticket": found[2]}).status == 200
        assert client.get("api/conversations").status == 403
        assert client.get("../u/deepseek/v1/models").status == 404
        process.send_signal(signal.SIGINT)


@requirement("inspector.verb")
def test_inspect_uses_a_running_proxy(capsys: pytest.CaptureFixture[str]) -> None:
    with sightline(find_home()) as proxy:
        assert main(["inspect", "--no-browser", "--port", proxy.url.rpartition(":")[2]]) == 0
        ticket = capsys.readouterr().out.strip().rpartition("#ticket=")[2]
        assert InspectorClient(proxy.url).post("api/session", {"ticket": ticket}).status == 200


@requirement("inspector.export")
def test_a_conversation_is_exported_as_one_file_that_loads_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = open_record(find_home() / "record")
    record_many(record, 1, 2)
    record_conversation(record, 2, hostile=True)
    record.close()
    file = tmp_path / "conversation.html"
    assert main(["inspect", "--export", str(file)]) == 0
    page = file.read_text()
    assert "data:image/" in page
    assert SCRIPT not in page
    assert HOSTILE_NAME not in page
    assert not re.search(r"""(?:src|href)=["']?(?!#)[\w/]""", page.partition("<script")[0])
    assert "default-src 'none'" in page
    assert main(["inspect", "--export", str(file)]) == 1, "it exists"
    assert main(["inspect", "--export", str(file), "--force", "--images", "none"]) == 0
    assert "data:image/" not in file.read_text()
    assert main(["inspect", "--export", str(tmp_path / "x.html"), "--conversation", "zz"]) == 1
    assert main(["inspect", "--images", "none"]) == 1
    capsys.readouterr()


@requirement("inspector.export")
def test_an_empty_record_has_nothing_to_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--export", str(tmp_path / "x.html")]) == 1
    assert "conversation" in capsys.readouterr().err
