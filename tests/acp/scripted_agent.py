"""An agent on the standard library whose command line scripts it; the request `_heard` returns what it has read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ACTS: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
HEARD: list[str] = []
HELD: list[Any] = []  # prompts that are refused only when they are cancelled


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(message: dict[str, Any]) -> None:
    method, request, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "session/cancel" and HELD:
        refuse(HELD.pop())
    if request is None or method is None:
        return
    if method == "_heard":
        say({"id": request, "result": {"lines": HEARD}})
    elif method == "_leave":
        sys.stderr.write("the agent leaves\n")
        sys.exit(params["code"])
    elif method == "initialize":
        if not ACTS.get("mute"):
            say({"id": request, "result": ACTS.get("initialize", {"protocolVersion": 1})})
    elif method in ("session/new", "session/load", "session/resume", "session/fork"):
        for update in ACTS.get("early", ()):
            say({"method": "session/update", "params": {"sessionId": f"s{request}", "update": update}})
        say(
            {
                "id": request,
                "result": {"sessionId": params.get("sessionId") or f"s{request}", **ACTS.get("session", {})},
            }
        )
        for update in ACTS.get("updates", ()):
            say({"method": "session/update", "params": {"sessionId": f"s{request}", "update": update}})
    elif method == "session/prompt":
        prompted(request, params)
    else:
        say({"id": request, "result": {"method": method}})


def prompted(request: Any, params: dict[str, Any]) -> None:
    pictures = [block for block in params["prompt"] if block.get("type") in ("image", "resource")]
    if pictures and "refuses" in ACTS:
        for done in ACTS.get("done", ()):
            padding = {"padding": "x" * done.pop("padding")} if "padding" in done else {}
            say({**done, "params": {"sessionId": params["sessionId"], **done["params"], **padding}})
        if ACTS.get("late"):
            HELD.append(request)
        else:
            refuse(request)
        return
    said = ACTS.get("says", "all right")
    words = said if isinstance(said, str) else said.pop(0) if len(said) > 1 else said[0]
    content = {"type": "text", "text": words}
    update = {"sessionUpdate": "agent_message_chunk", "content": content}
    say({"method": "session/update", "params": {"sessionId": params["sessionId"], "update": update}})
    say({"id": request, "result": {"stopReason": "end_turn"}})


def refuse(request: Any) -> None:
    said = {"code": -32603, "message": "Internal error", "data": {"details": ACTS["refuses"]}}
    say({"id": request, "error": said})


def main() -> None:
    for line in sys.stdin:
        HEARD.append(line)
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict):
            answer(message)
    if "leaves" in ACTS:
        Path(ACTS["leaves"]).write_text("".join(HEARD), encoding="utf-8")
    sys.exit(ACTS.get("code", 0))


if __name__ == "__main__":
    main()
