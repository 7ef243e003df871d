"""Providers that no wire of ours reaches: asked through a library of many, in the environment that has it."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.requirements import requirement

ROOT = Path(__file__).parents[2]
SCRIPT = Path(__file__).parent / "peers" / "other.py"
CHAT = {
    "id": "1",
    "object": "chat.completion",
    "created": 1,
    "model": "eye",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "a red pixel"}}],
    "usage": {"prompt_tokens": 11, "completion_tokens": 3, "total_tokens": 14},
}
CONVERSE = {
    "output": {"message": {"role": "assistant", "content": [{"text": "a red pixel"}]}},
    "stopReason": "end_turn",
    "usage": {"inputTokens": 11, "outputTokens": 3, "totalTokens": 14},
    "metrics": {"latencyMs": 1},
}


class Server:
    def __init__(self) -> None:
        self.status, self.asked, self.url = 200, list[tuple[str, Any]](), ""

    def reply(self, path: str, body: Any) -> Any:
        self.asked.append((path, body))
        if self.status != 200:
            return {"message": "the key sk-secret-1234 is no good", "error": {"message": "sk-secret-1234 is no good"}}
        return CONVERSE if "converse" in path else CHAT


@pytest.fixture
def server() -> Iterator[Server]:
    there = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            answer = json.dumps(
                there.reply(self.path, json.loads(self.rfile.read(int(self.headers["content-length"]))))
            )
            self.send_response(there.status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer.encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, the library's word
            """Nobody reads it."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        there.url = f"http://127.0.0.1:{listening.server_address[1]}"
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield there
        listening.shutdown()


def asked(server: Server, provider: str, model: str) -> dict[str, Any]:
    home = subprocess.run([ROOT / "scripts" / "peers-env"], capture_output=True, text=True, check=True).stdout.strip()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "HOSTED_VLLM_API_BASE": f"{server.url}/v1",
        "AWS_BEDROCK_RUNTIME_ENDPOINT": server.url,
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "sk-secret-1234",
        "AWS_REGION_NAME": "eu-west-1",
    }
    # The library's own packages come first; what else we need is taken from where the tests run.
    ours = json.dumps([str(ROOT / "src"), sysconfig.get_paths()["purelib"]])
    start = f"import sys, runpy; sys.path += {ours}; del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
    command = [f"{home}/bin/python", "-c", start, str(SCRIPT), provider, model]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=180, env=environment)
    assert ended.returncode == 0, ended.stderr[-2000:]
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


@requirement("seer.others")
@pytest.mark.parametrize(
    ("provider", "model", "path"),
    [
        ("hosted_vllm", "eye", "/v1/chat/completions"),
        ("bedrock", "amazon.nova-lite-v1:0", "/model/amazon.nova-lite-v1%3A0/converse"),
    ],
)
def test_a_provider_of_another_wire_describes_an_image(server: Server, provider: str, model: str, path: str) -> None:
    found = asked(server, provider, model)
    assert found == {"text": "a red pixel", "seer": f"{provider}/{model}", "usage": [11, 3]}
    ((where, body),) = server.asked
    assert where == path
    written = json.dumps(body)
    assert "iVBORw0KGgo" in written
    assert "What is it?" in written


@requirement("seer.others")
def test_a_provider_error_is_one_sentence_after_one_retry(server: Server) -> None:
    server.status = 503
    found = asked(server, "hosted_vllm", "eye")
    assert found["refusal"][0] == "unavailable"
    assert "1234" not in found["refusal"][1]
    assert "status 50" in found["refusal"][1]
    assert len(server.asked) == 2
