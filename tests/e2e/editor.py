"""An ACP editor in a few lines: it sends one prompt with a picture and prints every message that it gets.

editor.py PICTURE WORDS [--model MODEL] -- AGENT ARGS…
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from base64 import b64encode
from pathlib import Path
from typing import Any

PATIENCE = 150  # seconds


class Editor:
    def __init__(self, command: list[str]) -> None:
        self._agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        late = threading.Timer(PATIENCE, self._agent.kill)
        late.daemon = True
        late.start()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._write({"id": self._number, "method": method, "params": params})
        assert self._agent.stdout
        for line in self._agent.stdout:
            print(line.decode()[:20_000], end="", flush=True)
            message = _read(line)
            if "method" in message and "id" in message:
                self._agree(message)
            elif message.get("id") == self._number:
                return message
        raise SystemExit(f"the agent has left while it was asked for {method}")

    def _agree(self, message: dict[str, Any]) -> None:
        """Whatever the agent asks, it may, or it is told that nobody knows."""
        options = message.get("params", {}).get("options") or [{}]
        outcome = {"outcome": {"outcome": "selected", "optionId": options[0].get("optionId")}}
        known = message["method"] == "session/request_permission"
        answer = {"result": outcome} if known else {"error": {"code": -32601, "message": "unknown"}}
        self._write({"id": message["id"], **answer})

    def _write(self, message: dict[str, Any]) -> None:
        assert self._agent.stdin
        self._agent.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._agent.stdin.flush()

    def leave(self) -> None:
        self._agent.kill()


def _read(line: bytes) -> dict[str, Any]:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def main(picture: str, words: str, *rest: str) -> None:
    options, command = [*rest[: rest.index("--")]], [*rest[rest.index("--") + 1 :]]
    editor = Editor(command)
    editor.ask("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
    for method in options[options.index("--auth") + 1 : options.index("--auth") + 2] if "--auth" in options else ():
        editor.ask("authenticate", {"methodId": method})
    session = editor.ask("session/new", {"cwd": str(Path.cwd()), "mcpServers": []})
    name = session.get("result", {}).get("sessionId")
    image = {"type": "image", "mimeType": "image/png", "data": b64encode(Path(picture).read_bytes()).decode()}
    editor.ask("session/prompt", {"sessionId": name, "prompt": [{"type": "text", "text": words}, image]})
    editor.leave()


if __name__ == "__main__":
    main(*sys.argv[1:])
