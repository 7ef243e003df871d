"""`sightline serve`, as a process."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from sightline.agents import AGENTS
from sightline.cli.proxy_server import bind_socket
from sightline.model.refusal import Refusal
from tests.cli.command import ALONE, COMMAND, assert_refused, environment, sightline
from tests.cli.forked import Forked
from tests.proxy.clients import ask_chat, pasted_chat
from tests.requirements import requirement
from tests.scripted.eye import describe_quadrants
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import Provider, deepseek
from tests.waiting import try_again

BEHIND = ("sh", "-c", 'trap "" INT; exec "$@"', "sh", *COMMAND)
"""As a script starts what is to run in its background."""


@contextmanager
def serving(
    *words: str, command: Sequence[str] = (), **env: str
) -> Iterator[tuple[subprocess.Popen[str] | Forked, str]]:
    """The process and its address, once it listens. `command`: how it is to be started, if that matters."""
    words, variables = ("serve", "--port", "0", *words), environment(**{**ALONE, **env})
    process: subprocess.Popen[str] | Forked
    if command:
        pipe = subprocess.PIPE
        process = subprocess.Popen([*command, *words], stdout=pipe, stderr=pipe, text=True, env=variables)
    else:
        process = Forked(words, variables, None, (0, subprocess.PIPE, subprocess.PIPE), text=True)
    assert process.stdout
    assert process.stderr
    with process.stdout, process.stderr:
        try:
            first = process.stdout.readline()
            assert first.split()[-1].startswith("http://127.0.0.1:"), first
            yield process, first.split()[-1]
        finally:
            process.kill()
            process.wait(60)


def get(address: str, path: str) -> tuple[int, bytes]:
    connection = HTTPConnection(address.removeprefix("http://"), timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@requirement("serve.banner")
def test_the_banner_has_the_address_the_agents_and_how_to_stop() -> None:
    with serving() as (process, address):
        assert process.stdout
        lines = [process.stdout.readline() for _ in range(len(AGENTS) + 4)]
        assert [line.split("  ")[1].strip() for line in lines[1:-3]] == [agent.title for agent in AGENTS.values()]
        assert AGENTS["claude"].render(address).one_run in lines[1], "as `setup` says"
        assert not any("sightline run" in line for line in lines), "it would start another proxy"
        assert f"{address}/v1 (OpenAI)" in lines[-3]
        assert lines[-2].split() == ["MCP", "hosts", f"{address}/mcp"]
        assert "Ctrl-C" in lines[-1]
        assert get(address, "/sightline/health")[0] == 200


@requirement("serve.stops")
@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(("told", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_serve_stops_on_a_signal(told: signal.Signals, code: int, workers: str) -> None:
    with serving("--workers", workers) as (process, address):
        assert get(address, "/sightline/health")[0] == 200
        process.send_signal(told)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (code, "")


SIGNAL_ON_IMPORT = """
import os, signal, sys
from sightline.cli.main import main

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "uvloop":
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Finder())
sys.exit(main(["serve", "--port", "0"]))
"""


@requirement("serve.stops")
def test_a_signal_before_the_event_loop_stops_serve_silently() -> None:
    started = subprocess.run(
        [sys.executable, "-W", "error", "-c", SIGNAL_ON_IMPORT],
        capture_output=True, text=True, timeout=60, check=False, env=environment(**ALONE),
    )  # fmt: skip
    assert (started.returncode, started.stdout, started.stderr) == (143, "", "")


@requirement("serve.background")
def test_an_interrupt_is_ignored_in_a_background_job() -> None:
    with serving(command=BEHIND) as (process, address):
        process.send_signal(signal.SIGINT)
        for _ in range(10):  # nothing would be answered any more once it had begun to leave
            assert get(address, "/sightline/health")[0] == 200
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (143, "")


@requirement("upstream.configured", "serve.config")
def test_requests_are_forwarded_to_the_named_upstream(tmp_path: Path) -> None:
    with Provider() as provider:
        with serving("--upstream", provider.url) as (_, address):
            assert json.loads(get(address, "/v1/anything?x=1")[1])["path"] == "/v1/anything"
        with serving("--upstream", f"office={provider.url}") as (_, address):
            assert json.loads(get(address, "/u/office/v1/anything")[1])["path"] == "/v1/anything"
        settings = tmp_path / "other.json"
        settings.write_text(json.dumps({"upstreams": {"office": {"baseUrl": provider.url}}}))
        with serving("--config", str(settings), SIGHTLINE_UPSTREAMS="") as (_, address):
            assert json.loads(get(address, "/u/office/v1/anything")[1])["path"] == "/v1/anything"


@requirement("serve.busy")
def test_a_busy_port_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_refused(sightline("serve", "--port", str(port)), str(port), "--port")


@requirement("serve.loopback")
@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::", "example.com", ""])
def test_serve_listens_only_on_loopback(host: str) -> None:
    assert_refused(sightline("serve", "--port", "0", "--host", host), "--host 127.0.0.1")


@pytest.mark.parametrize("port", ["-1", "65536", "99999999999"])
def test_a_port_that_does_not_exist_is_wrong_usage(port: str) -> None:
    ended = sightline("serve", f"--port={port}")
    assert (ended.code, ended.out) == (2, "")


@pytest.mark.parametrize("upstream", ["nobody", "http://", "ftp://example.com", "work=nowhere", "http://[::1", "="])
def test_an_invalid_upstream_is_refused(upstream: str) -> None:
    assert_refused(sightline("serve", "--port", "0", "--upstream", upstream), repr(upstream))


def test_a_missing_settings_file_is_refused(tmp_path: Path) -> None:
    assert_refused(sightline("serve", "--config", str(tmp_path / "no.json")), "no.json")


def test_warnings_about_settings_go_to_stderr() -> None:
    with serving(SIGHTLINE_MODE="sometimes") as (process, _):
        assert process.stderr
        assert process.stderr.readline().startswith("sightline: warning: mode (environment SIGHTLINE_MODE)")


@requirement("receipts.verbose")
def test_verbose_output_says_what_was_done_to_a_request() -> None:
    picture = paint_quadrants(some_colours(1))
    with Provider() as provider, serving("-v", "--upstream", provider.url) as (process, address):
        ask_chat(address, "gpt-6", pasted_chat(picture))
        assert process.stderr
        assert process.stderr.readline().startswith("sightline: gpt-6 at 127.0.0.1:")


@requirement("settings.live")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_mode_off_takes_effect_in_a_running_proxy(workers: str) -> None:
    numbers = iter(range(10_000))

    def is_described(address: str) -> bool:
        colours = some_colours(next(numbers))
        said = ask_chat(f"{address}/u/deepseek", "deepseek-v4-pro", pasted_chat(paint_quadrants(colours)))
        return describe_quadrants(colours) in said

    flags = ("--workers", workers, "--upstream")
    with deepseek() as provider, serving(*flags, f"deepseek={provider.url}") as (_, address):
        assert is_described(address)
        assert sightline("config", "set", "mode", "off").code == 0
        for _ in try_again():  # it takes a second
            if not any(is_described(address) for _ in range(3 * int(workers))):
                break


@requirement("serve.beyond", "serve.token")
def test_serve_needs_a_token_to_listen_beyond_loopback() -> None:
    assert_refused(sightline("serve", "--host", "0.0.0.0", "--port", "0"), "--token")
    listening = bind_socket("0.0.0.0", 0, guarded=True)
    assert not isinstance(listening, Refusal)
    listening.close()
    with serving(SIGHTLINE_TOKEN="s3cret") as (process, address):
        assert get(address, "/sightline/health")[0] == 400
        assert process.stdout
        said = "".join(process.stdout.readline() for _ in range(len(AGENTS) + 6))
        assert "x-sightline-token: TOKEN" in said
        assert "ANTHROPIC_CUSTOM_HEADERS='x-sightline-token: TOKEN'" in said
        assert "s3cret" not in said


@requirement("serve.workers")
def test_workers_share_a_port_and_one_that_is_killed_is_replaced() -> None:
    with serving("--workers", "2") as (process, address):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        first = {int(each) for each in children.read_text().split()}
        assert len(first) == 2
        # One that has just begun would not be replaced: it would fail again.
        while any(time.time() - Path(f"/proc/{each}").stat().st_ctime < 3 for each in first):
            time.sleep(0.05)
        os.kill(min(first), signal.SIGKILL)
        for _ in try_again():
            if len(now := {int(each) for each in children.read_text().split()}) == 2 and now != first:
                break
            with contextlib.suppress(ConnectionError):  # one that the killed worker had been dealt
                assert get(address, "/sightline/health")[0] == 200
            time.sleep(0.05)
        assert get(address, "/sightline/health")[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 143
        assert not any(Path(f"/proc/{each}").exists() for each in now)


@requirement("serve.counts")
def test_every_worker_reports_the_counts_of_all_workers() -> None:
    with Provider() as provider, serving("--workers", "3", "--upstream", provider.url) as (_, address):
        for _ in range(12):
            assert get(address, "/v1/models")[0] == 200
        for _ in try_again():  # the last one is counted when its answer is out
            if counted(address) >= 12:
                break
        assert {counted(address) for _ in range(12)} == {12}


def counted(address: str) -> int:
    said = get(address, "/sightline/metrics")[1].splitlines()
    return sum(int(line.split()[-1]) for line in said if line.startswith(b"sightline_requests_total{"))


def test_a_failure_of_all_workers_is_reported_once() -> None:
    ended = sightline("serve", "--port", "0", "--workers", "2", "--upstream", "nobody")
    assert ended.err.count("'nobody'") == 1
    assert ended.code != 0


@requirement("serve.workers")
def test_workers_do_not_outlive_a_parent_that_is_killed() -> None:
    with serving("--workers", "2") as (process, _):
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        watched = [os.pidfd_open(int(each)) for each in children]
        process.kill()
        for each in watched:
            assert select.select([each], [], [], 60)[0], "it lives on"
            os.close(each)


@pytest.mark.parametrize("number", ["0", "65", "two"])
def test_an_invalid_number_of_workers_is_wrong_usage(number: str) -> None:
    assert sightline("serve", "--workers", number).code == 2
