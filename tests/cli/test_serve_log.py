"""What `serve` says of requests: a word about clients that leave images out, and logs for machines."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import signal
import subprocess
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from sightline.agents import AGENTS, explain_omission
from sightline.cli import proxy_server
from sightline.model.records import Receipt, ReceiptLine
from sightline.store import open_record
from sightline.surfaces.proxy import telemetry
from sightline.surfaces.proxy.request_context import LogEntry
from sightline.surfaces.proxy.telemetry import RequestLog, RequestPrinter
from sightline.surfaces.proxy.upstream_client import FAILED_UPSTREAM
from sightline.vision.vision_request import SEER_ACTIVITY, SeerActivity
from tests.cli.command import ALONE, sightline
from tests.cli.forked import Forked
from tests.cli.test_serve import get, serving
from tests.golden.captures import captures
from tests.proxy.clients import KEY, ask_chat, ask_messages, pasted_chat, pasted_message
from tests.proxy.raw_http import exchange
from tests.requirements import requirement
from tests.scripted.faults import Fail
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek

PICTURE = paint_quadrants(some_colours(78))
WORDS = "What does the aardvark hold?"
CODEX = next(capture for capture in captures() if capture.name == "codex/read.textonly-2")


def ended(process: subprocess.Popen[str] | Forked) -> list[str]:
    """What it has said on stderr, to its end."""
    process.send_signal(signal.SIGTERM)
    return process.communicate(timeout=60)[1].splitlines()


@requirement("omitted.noticed")
def test_an_omission_is_reported_once_per_client_and_model() -> None:
    other = json.dumps({**CODEX.body, "model": "another"}).encode()
    with Provider() as provider, serving("--upstream", provider.url) as (process, address):
        for body in (CODEX.raw, CODEX.raw, other, CODEX.raw):
            assert exchange(address, CODEX.path, body).status == 200
        said = ended(process)
    assert sorted(said) == [
        f"sightline: {explain_omission('codex', model)}" for model in sorted((CODEX.body["model"], "another"))
    ]
    assert all("`sightline setup codex`" in line for line in said)
    with Provider() as provider, serving("--upstream", provider.url) as (process, address):
        assert exchange(address, CODEX.path, CODEX.raw).status == 200
        assert ended(process) == [], "whoever shares the record knows that it was said"
    doctor = sightline("doctor", env=ALONE).out
    assert f"left out\n  {explain_omission('codex', 'another')} (last seen 20" in doctor
    assert sightline("doctor", "--json", env=ALONE).json["record"]["omissions"][0]["client"] == "codex"


def test_an_omission_names_the_agent_by_its_title() -> None:
    for name in ("codex", "qwen", "pi", "opencode"):
        assert AGENTS[name].title in explain_omission(name, "m")


LINE = re.compile(r"\d\d:\d\d:\d\d (\S+): (.+); \d+\.\d s, (.+)")


@requirement("serve.lines")
def test_each_changed_request_is_one_line() -> None:
    with deepseek() as blind, serving("--upstream", f"deepseek={blind.url}") as (process, address):
        ask_chat(f"{address}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE, words=WORDS))
        ask_chat(f"{address}/u/deepseek", "deepseek-flash", pasted_chat(PICTURE, words=WORDS))
        ask_chat(f"{address}/u/deepseek", "deepseek-v4-pro", [{"role": "user", "content": WORDS}])
        ask_chat(f"{address}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE, words=WORDS))
        said = ended(process)
    first, again = [found.groups() for line in said if (found := LINE.fullmatch(line))]
    assert len(said) == 2, "the other requests went on as they came"
    described = "1 image described by deepseek/deepseek-flash (the model takes no images)"
    assert first == ("deepseek-v4-pro", described, "price unknown")
    assert again == (*first[:2], "at no cost"), "its description is known"


@requirement("serve.lines")
def test_a_request_that_failed_upstream_is_one_line_too() -> None:
    with Provider(faults=[Fail(status=529)]) as provider, serving("--upstream", provider.url) as (process, address):
        body = json.dumps({"model": "m", "messages": pasted_chat(PICTURE)}).encode()
        assert exchange(address, "/v1/chat/completions", body).status == 529
        (line,) = ended(process)
    found = LINE.fullmatch(line)
    assert found
    assert found.groups() == ("m", FAILED_UPSTREAM.format("status 529"), "at no cost")


@requirement("serve.lines")
async def test_a_slow_description_shows_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "SLOW_SECONDS", 0.01)
    printed, waits = asyncio.Event(), list[LogEntry]()

    def print_wait(entry: LogEntry) -> None:
        waits.append(entry)
        printed.set()

    record = open_record(Path("unused"), kind="memory")
    log = RequestLog(record, printer=RequestPrinter(lambda entry: None, print_wait))
    entries = [LogEntry(), LogEntry()]
    for entry, answered in zip(entries, (True, False), strict=True):
        log.start_activity(entry)
        activity = SEER_ACTIVITY.get()
        assert activity is not None
        activity.seers.append("local")
        activity.costs.extend([0.0] if answered else [])
        await asyncio.to_thread(activity.on_question)
    await printed.wait()
    assert waits == entries[1:], "only the one that still waits"
    record.close()


def test_a_line_about_a_request_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    activity = SeerActivity(seers=["local", "zai/glm", "zai/glm"], costs=[0.0, 0.002, None])
    lines = tuple(ReceiptLine(f"/{n}", "told", "by zai/glm") for n in range(2))
    entry = LogEntry(
        model="a\x1b[31mb", receipts=[Receipt("u", "m", lines), Receipt("u", "m", notes=("leg 1", "leg 1"))]
    )
    entry.activity = activity
    proxy_server._print_change(entry)
    proxy_server._print_wait(entry)
    change, wait = capsys.readouterr().err.splitlines()
    found = LINE.fullmatch(change)
    assert found
    assert found[2] == "2 images described by zai/glm; leg 1"
    assert found[3] == "$0.0020 and calls of unknown price"
    assert "waiting for local, zai/glm" in wait
    assert all(line.isprintable() for line in (change, wait))


def lines(said: list[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said]


@requirement("serve.log")
@pytest.mark.parametrize("how", ["flag", "variable"])
def test_each_request_is_one_json_line(how: str) -> None:
    words, env = (("--log", "json", "-v"), {}) if how == "flag" else ((), {"SIGHTLINE_LOG": "json"})
    with deepseek() as blind, serving("--upstream", f"deepseek={blind.url}", *words, **env) as (process, address):
        ask_chat(f"{address}/u/deepseek", "deepseek-v4-pro", pasted_chat(PICTURE, words=WORDS))
        ask_messages(f"{address}/u/deepseek", "deepseek-flash", pasted_message(PICTURE, words=WORDS), stream=True)
        assert get(address, "/u/deepseek/v1/models")[0] == 200
        assert get(address, "/u/nobody/v1/models")[0] == 400
        assert exchange(address, "/v1/messages", b"{}", headers=[("origin", "https://evil.example")]).status == 400
        said = lines(ended(process))
    assert all(one["time"].endswith("Z") and one["ms"] >= 0 for one in said)
    shown = [{name: value for name, value in one.items() if name not in ("time", "ms")} for one in said]
    routed = {"upstream": "deepseek", "notes": []}
    refused = {"wire": "other", "upstream": "", "model": "", "status": 400, "fates": {}, "notes": []}
    assert shown == [
        {**routed, "wire": "openai_chat", "model": "deepseek-v4-pro", "status": 200, "fates": {"told": 1}},
        {**routed, "wire": "anthropic", "model": "deepseek-flash", "status": 200, "fates": {"shown": 1}},
        {**routed, "wire": "other", "model": "", "status": 200, "fates": {}},
        refused,
        refused,
    ]


@requirement("serve.log")
def test_the_log_has_no_image_text_or_key() -> None:
    talk = pasted_chat(PICTURE, words=WORDS)
    command = {"role": "user", "content": "/vision-proxy describe sha256:0000000000000000 --question armadillo"}
    with Provider((("*", "ollama"),)) as blind, serving("--upstream", blind.url, "--log", "json") as (process, address):
        ask_chat(address, "m", talk)
        ask_chat(address, "m", [command])
        exchange(address, f"/v1beta/models/m:generateContent?key={KEY}", b'{"contents":"pangolin')
        exchange(address, f"/v1/pangolin?key={KEY}", WORDS.encode(), headers=[("x-api-key", KEY)])
        said = ended(process)
    assert len(said) == 4
    assert " 400" in lines(said)[0]["notes"][0]
    whole = "\n".join(said)
    for secret in (KEY, "aardvark", "armadillo", "pangolin", b64encode(PICTURE).decode()[40:80]):
        assert secret not in whole


@requirement("serve.log")
def test_warnings_in_a_json_log_are_json() -> None:
    odd = {"SIGHTLINE_MODE": "sometimes", "SIGHTLINE_LOG": "json"}
    with Provider() as provider, serving("--upstream", provider.url, **odd) as (process, address):
        exchange(address, CODEX.path, CODEX.raw)
        said = lines(ended(process))
    warnings = [line["message"] for line in said if line.get("level") == "warning"]
    assert warnings[0].startswith("mode (environment SIGHTLINE_MODE)")
    assert warnings[1:] == [explain_omission("codex", CODEX.body["model"])]
    assert [line["status"] for line in said if "status" in line] == [200]


@requirement("serve.log")
def test_an_error_is_logged_by_type_and_place_without_its_message() -> None:
    try:
        raise ValueError(f"cannot read {KEY}")
    except ValueError as fault:
        trouble = (ValueError, fault, fault.__traceback__)
    for logger, message in (("sightline", "unreadable"), ("asyncio", f"odd: {KEY}")):
        record = logging.LogRecord(logger, logging.ERROR, __file__, 1, message, (), trouble)
        text = proxy_server._JsonFormatter().format(record)
        assert KEY not in text
        said = json.loads(text)
        assert (said["level"], said["fault"]) == ("error", "ValueError")
        assert said["at"][0].startswith("test_serve_log.py:")
        assert (said["message"] == message) == (logger == "sightline")


def test_an_unknown_log_format_is_wrong_usage() -> None:
    assert sightline("serve", "--log", "xml").code == 2


@requirement("record.decisions")
def test_usage_shows_the_last_receipts() -> None:
    assert sightline("usage", "--receipts").out.count("\n") == 1
    assert sightline("usage", "--receipts", "--json").json["receipts"] == []
    body = json.dumps({"model": "m", "messages": pasted_chat(PICTURE)}).encode()
    with Provider() as provider, serving("--upstream", provider.url) as (process, address):
        for session in ("one", "two", "three"):
            exchange(address, "/v1/chat/completions", body, headers=[("session-id", session)])
        ended(process)
    shown = sightline("usage", "--receipts", "2").out.splitlines()
    assert len(shown) == 2
    assert shown[0].endswith(" [session-id three]")
    found = sightline("usage", "--receipts", "--json").json["receipts"]
    assert [each["labels"]["session-id"] for each in found] == ["three", "two", "one"]
    assert found[0]["sights"][0]["fate"] == "shown"
    assert (found[0]["model"], found[0]["wire"]) == ("m", "openai_chat")
    for wrong in ("0", "-1", "x"):
        assert sightline("usage", f"--receipts={wrong}").code == 2


_AGENT = """
import os, pathlib, sys
from urllib.request import Request, urlopen
body = pathlib.Path(sys.argv[1]).read_bytes()
for _ in range(2):
    with urlopen(Request(os.environ["OPENAI_BASE_URL"] + "/responses", body)) as answer:
        answer.read()
"""


@requirement("omitted.noticed")
def test_run_reports_an_omission_once(tmp_path: Path) -> None:
    (tmp_path / "body.json").write_bytes(CODEX.raw)
    (tmp_path / "agent.py").write_text(_AGENT)
    with Provider() as provider:
        agent = ("python3", str(tmp_path / "agent.py"), str(tmp_path / "body.json"))
        run = sightline("run", "--upstream", provider.url, "--", *agent, env=ALONE)
    assert run.code == 0, run.err
    assert run.err.splitlines().count(f"sightline: {explain_omission('codex', CODEX.body['model'])}") == 1
