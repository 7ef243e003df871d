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
from sightline.model.facts import Description
from sightline.model.records import FiledReceipt, Receipt
from sightline.model.request_trace import RequestTrace, TraceParts
from sightline.model.scene import Json
from sightline.store import open_record
from tests.inspector.client import InspectorClient
from tests.inspector.recorded import HOSTILE_NAME, SCRIPT, paint_window, record_conversation, record_many
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement

ATTACKS: tuple[dict[str, str], ...] = (
    {"host": "evil.example"},
    {"host": "127.0.0.1.evil.example"},
    {"origin": "http://evil.example"},
    {"origin": "http://127.0.0.1:1"},
    {"origin": "null"},
    {"origin": ""},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},  # another port of this machine
    {"content_type": "text/plain"},
)
COMMAND = [sys.executable, "-m", "sightline", "inspect", "--no-browser"]


def find_home() -> Path:
    return Path(os.environ["SIGHTLINE_HOME"])


@requirement("inspector.verb", "inspector.origin")
def test_inspect_serves_the_pages_itself_without_a_proxy() -> None:
    with subprocess.Popen([*COMMAND, "--port", "9"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found = re.search(r"(http://127\.0\.0\.1:\d+)/sightline/#ticket=([\w-]+)", process.stdout.readline())
        assert found is not None
        client = InspectorClient(found[1])
        for headers in (*ATTACKS, {"origin": found[1].replace("http:", "app:")}):  # no guard is in front of it
            assert client.post("api/session", {"ticket": found[2]}, **headers).status in (400, 403), headers
        assert client.post("api/session", {"ticket": "a" * 5000}).status == 413
        opened = client.post("api/session", {"ticket": found[2]})
        assert opened.status == 200, "no attack has used the ticket"
        assert client.get("api/conversations").status == 403
        cookie = opened.headers["set-cookie"].split(";")[0]
        assert client.get("api/conversations", cookie=cookie).status == 200
        for headers in ATTACKS:
            if headers.keys() & {"host", "sec_fetch_site"}:
                assert client.get("api/conversations", cookie=cookie, **headers).status in (400, 403), headers
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
def test_an_exported_file_has_no_key_even_if_a_description_has_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A screenshot may show a key, and a description repeats the text in it."""
    own, other, pasted = 'a-key-of-"no"-known-form-123', "sk-ant-api03-" + "x" * 40, "sk-proj-" + "z" * 40
    token, private = f"eyJ{'a' * 30}.eyJ{'b' * 30}.{'w' * 43}", f"-----BEGIN PRIVATE KEY-----\n{'MIIE' * 40}\n"
    monkeypatch.setenv("DEEPSEEK_API_KEY", own)
    record = open_record(find_home() / "record")
    record_conversation(record, 1)
    image = paint_window(0)
    words = f"The terminal shows export KEY={own} and {other}, and authorization: Bearer {'y' * 30}.\n{pasted}\n{token}"
    words += f"\té{pasted}\n{private}"
    record.descriptions.keep("", Description(image.sha256, image.size, words, "zai/glm-5v"), "other prompt")
    edits: tuple[tuple[str, Json, Json], ...] = (("/messages/0/content", [{"type": "text", "text": words}], None),)
    parts = TraceParts("Fix the page.", edits, RequestTrace("", "", 2, 3))
    record.ledger.file_receipt("", FiledReceipt(Receipt("deepseek", "deepseek-chat"), "anthropic", parts=parts))
    record.close()
    assert main(["inspect", "--export", str(tmp_path / "x.html")]) == 0
    page = (tmp_path / "x.html").read_text()
    assert page.count("The terminal shows") == 2, "in a description, and in an edited place"
    leaked = [key for key in (own, other, "y" * 30, "z" * 40, "w" * 43, "MIIE" * 9) if key in page]
    assert leaked == []
    capsys.readouterr()


@requirement("inspector.export")
def test_an_empty_record_has_nothing_to_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", "--export", str(tmp_path / "x.html")]) == 1
    assert "conversation" in capsys.readouterr().err
