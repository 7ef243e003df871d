"""The pipe itself: lines that no SDK would send, and output that is not the protocol's."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import ALONE, COMMAND, assert_refused, environment, sightline
from tests.cli.forked import Forked
from tests.requirements import requirement

# The command, in a process in which a library prints when it is imported and when a session is opened.
_NOISY = """
import os, sys
import sightline.api.session as session
opened = session.Session.__init__
def noisy(*args, **kwargs):
    print("a library says hello")
    os.write(1, b"and so does another\\n")
    os.system("echo and a program")
    opened(*args, **kwargs)
session.Session.__init__ = noisy
class Loud:
    def find_spec(self, name, *more):
        if name == "mcp.server.stdio":
            print("and one that is loaded")
sys.meta_path.insert(0, Loud())
from sightline.cli.main import main
sys.exit(main(["mcp"]))
"""
# The command where the library is not installed.
_WITHOUT = """
import sys
import importlib.util as util
found = util.find_spec
util.find_spec = lambda name, *more: None if name == "mcp" else found(name, *more)
from sightline.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
SERVER = (*COMMAND, "mcp")
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "0"}}


class Pipe:
    def __init__(self, process: subprocess.Popen[bytes] | Forked) -> None:
        self.process = process

    def send(self, line: Any) -> None:
        assert self.process.stdin is not None
        text = line if isinstance(line, bytes) else json.dumps(line).encode()
        self.process.stdin.write(text + b"\n")
        self.process.stdin.flush()

    def heard(self) -> Any:
        """Return the next line, parsed as JSON."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, number: Any = 1, **params: Any) -> Any:
        self.send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return self.heard()

    def hello(self, **told: Any) -> None:
        """Initialize as an old client does, or with other parameters."""
        params = {**HELLO, **told}
        result = self.ask("initialize", **params)["result"]
        assert (result["serverInfo"]["name"], result["protocolVersion"]) == ("sightline", params["protocolVersion"])
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def left(self) -> bytes:
        """Close stdin, and return what was still written."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        rest = self.process.stdout.read()
        assert self.process.wait(30) == 0
        return rest


@contextmanager
def pipe(folder: Path, *command: str, env: Mapping[str, str] | None = None) -> Iterator[Pipe]:
    """Run the server; `command`: how it is to be started, where it matters that nothing of it was loaded before."""
    usual = {name: value for name, value in environment(**ALONE).items() if name != "PYTHONUNBUFFERED"}
    variables, streams = usual if env is None else env, [subprocess.PIPE] * 3
    process: subprocess.Popen[bytes] | Forked
    if command:
        stdin, stdout, stderr = streams
        process = subprocess.Popen(command, cwd=folder, env=variables, stdin=stdin, stdout=stdout, stderr=stderr)
    else:
        process = Forked(["mcp"], variables, folder, streams)
    try:
        yield Pipe(process)
    finally:
        process.kill()
        process.wait(30)
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()


@requirement("mcp.bad_lines")
def test_a_line_that_is_not_a_message_is_answered(folder: Path) -> None:
    with pipe(folder) as raw:
        for line, code in [
            (b"{not json", -32700),
            (b"\xff\xfe\x00", -32700),
            (b"[" * 100_000, -32700),
            (
                b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": '
                + b'{"a":' * 100_000
                + b"1"
                + b"}" * 100_001,
                -32700,
            ),
            (b'"words"', -32600),
            (b"[]", -32600),
            (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "ping"}]', -32600),
            (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600),
            (b'{"jsonrpc": "2.0", "id": {"a": 1}, "method": "ping"}', -32600),
            (b'{"jsonrpc": "2.0", "id": [1], "method": "tools/list"}', -32600),
            (b'{"jsonrpc": "2.0", "id": false, "method": "ping"}', -32600),
            (b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}', -32600),
            (b'{"id": 1}', -32600),
            (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', -32700),
            (b'{"jsonrpc": "2.0", "id": true, "method": 7}', -32600),
        ]:
            raw.send(line)
            said = raw.heard()
            assert (said["id"], said["error"]["code"]) == (None, code), line[:40]
            assert "(" in said["error"]["message"], "it says what to do about it"
        raw.send(b"")
        raw.send(b"   ")
        raw.hello()
        assert raw.ask("no/such/method", 2)["error"]["code"] == -32601
        raw.send({"jsonrpc": "2.0", "id": 99, "result": {}})  # to a question that nobody asked
        raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "nobody's"}})
        raw.send({"jsonrpc": "2.0", "method": "notifications/unheard-of"})
        raw.send({"jsonrpc": "2.0", "method": "notifications/unheard-of", "params": {"id": 7}})
        assert raw.ask("ping", "a name")["id"] == "a name"
        assert raw.left() == b""


@requirement("mcp.bad_lines")
def test_a_malformed_request_is_answered_under_its_id(folder: Path) -> None:
    """A model's arguments may contain a lone surrogate, and its host would wait forever for the answer."""
    half = (
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"view_image","arguments":{"path":"\\udcff"}}}'
    )
    with pipe(folder) as raw:
        raw.hello()
        for line, number, code in [
            (half, 5, -32700),
            (b'{"jsonrpc": "1.0", "id": 6, "method": "ping"}', 6, -32600),
            (b'{"jsonrpc": "2.0", "id": "seven", "method": "tools/list", "params": [1]}', "seven", -32600),
            (b'{"jsonrpc": "2.0", "id": 8, "method": 7}', 8, -32600),
            (
                b'{"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {"a":' + b"[" * 400 + b"]" * 400 + b"}}",
                9,
                -32700,
            ),
            (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', 1.5, -32600),
            (b'{"jsonrpc": "2.0", "id": 2.0, "method": "tools/list", "params": {}}', 2.0, -32600),
        ]:
            raw.send(line)
            said = raw.heard()
            assert (said["id"], said["error"]["code"]) == (number, code), line
            assert ("surrogate" in said["error"]["message"]) == (line is half)
        assert raw.ask("ping", 9)["result"] == {}
        assert raw.left() == b""


@requirement("mcp.bad_params")
def test_invalid_parameters_are_answered_with_a_remedy(folder: Path) -> None:
    with pipe(folder) as raw:
        early = raw.ask("tools/list", 1)["error"]
        assert (early["code"], "initialize" in early["message"]) == (-32602, True)
        raw.hello()
        wrong: list[tuple[str, dict[str, Any], str]] = [
            ("tools/call", {}, "params.name"),
            ("tools/call", {"name": 7, "arguments": {}}, "params.name"),
            ("prompts/get", {"name": "describe", "arguments": [1]}, "params.arguments"),
            ("prompts/get", {"name": "describe", "arguments": {"images": 7}}, "params.arguments.images"),
            ("resources/read", {}, "params.uri"),
            ("resources/read", {"uri": {"a\nb": 1}}, "params.uri"),
        ]
        for number, (method, params, where) in enumerate(wrong, start=2):
            error = raw.ask(method, number, **params)["error"]
            assert error["code"] == -32602
            assert error["message"].startswith(f"{method} ")
            assert f" {where}: " in error["message"]
            assert "modelcontextprotocol.io/specification" in error["message"]
            assert "\n" not in error["message"]
        assert raw.left() == b""


@requirement("mcp.bad_calls")
@requirement("mcp.bad_params")
def test_invalid_arguments_are_a_result_for_the_model(folder: Path) -> None:
    with pipe(folder) as raw:
        raw.hello()
        half, deep = '{"path": "\\ud800"}', '{"path":' * 5000 + "1" + "}" * 5000
        for number, given in enumerate([[1], [], 7, True, "shot.png", '["shot.png"]', "{", half, deep], start=2):
            said = raw.ask("tools/call", number, name="view_image", arguments=given)["result"]
            assert said["isError"], given
            (block,) = said["content"]
            assert '{"path": "shot.png"}' in block["text"]
        as_text = raw.ask("tools/call", 20, name="view_image", arguments=json.dumps({"path": "shot.png"}))["result"]
        assert [block["type"] for block in as_text["content"]] == ["text", "image"], "an object that came as its text"
        assert not raw.ask("tools/call", 22, name="list_images", arguments="")["result"].get("isError"), (
            "there are none"
        )
        prompt = raw.ask("prompts/get", 21, name="describe", arguments=json.dumps({"images": "gone.png"}))["result"]
        assert "file" in prompt["messages"][0]["content"]["text"]
        assert raw.left() == b""


@requirement("mcp.bad_lines")
def test_a_second_initialize_is_refused(folder: Path) -> None:
    with pipe(folder) as raw:
        assert raw.ask("initialize", 1, protocolVersion=7)["error"]["code"] == -32602
        raw.hello()
        no = raw.ask("initialize", 2, **HELLO)
        assert (no["id"], no["error"]["code"]) == (2, -32600)
        assert "initialized" in no["error"]["message"]
        assert raw.ask("tools/list", 3)["result"]["tools"]
        assert raw.left() == b""


@requirement("mcp.bad_lines")
def test_huge_arguments_are_refused_in_a_line(folder: Path) -> None:
    with pipe(folder) as raw:
        raw.hello()
        huge = {"prompt": "?", "file_base64": "A" * 100_000_000}
        said = raw.ask("tools/call", 2, name="vision_analyze", arguments=huge)["result"]
        assert said["isError"]
        assert "FILE_TOO_LARGE" in said["content"][0]["text"]
        assert len(json.dumps(said)) < 1000
        assert raw.left() == b""


@requirement("mcp.bad_lines")
def test_a_line_of_too_many_values_is_refused_by_its_id(folder: Path) -> None:
    with pipe(folder) as raw:
        raw.hello()
        refused = raw.ask("tools/call", 2, name="view_image", arguments={"path": "shot.png", "x": [1] * 1_100_000})
        assert refused["error"]["code"] == -32600
        assert raw.ask("tools/list", 3)["result"]["tools"]
        assert raw.left() == b""


@requirement("mcp.stdout")
def test_only_the_protocol_is_on_stdout(folder: Path) -> None:
    with pipe(folder, sys.executable, "-c", _NOISY) as raw:
        raw.send(b"")
        raw.hello()
        seen = raw.ask("tools/call", 2, name="view_image", arguments={"path": "shot.png"})["result"]
        assert [block["type"] for block in seen["content"]] == ["text", "image"]
        assert raw.left() == b""
        assert raw.process.stderr is not None
        said = raw.process.stderr.read().decode()
    for words in ("and one that is loaded", "a library says hello", "and so does another", "and a program"):
        assert words in said


@requirement("mcp.leaves")
def test_the_server_ends_with_its_client(folder: Path) -> None:
    with pipe(folder, *SERVER) as raw:
        assert raw.left() == b"", "nobody has said a word"
    with pipe(folder, *SERVER) as raw:
        raw.hello()
        assert raw.process.stdout is not None
        raw.process.stdout.close()  # the client is dead, and nobody reads any more
        raw.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        assert raw.process.wait(30) is not None
        assert b"Traceback" not in (raw.process.stderr.read() if raw.process.stderr else b"")


@requirement("mcp.leaves")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "terminated"])
def test_a_signal_ends_the_server_while_it_waits_for_a_line(folder: Path, how: signal.Signals) -> None:
    with pipe(folder, *SERVER) as raw:
        raw.hello()
        raw.ask("tools/call", 2, name="view_image", arguments={"path": "shot.png"})
        raw.process.send_signal(how)
        assert raw.process.wait(30) != 0
        assert raw.process.stderr is not None
        assert b"Traceback" not in raw.process.stderr.read()


@requirement("mcp.extra")
def test_a_missing_sdk_is_reported_with_a_remedy(folder: Path) -> None:
    ended = sightline("mcp", folder=folder, command=(sys.executable, "-c", _WITHOUT))
    assert_refused(ended, "MCP", "pip install 'sightline[mcp]'")
    assert "claude mcp add" in sightline("mcp", "--help").out
