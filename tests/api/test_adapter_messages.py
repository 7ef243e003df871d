"""What adapters do with messages, without a framework."""

from __future__ import annotations

import base64
import json
import socketserver
import threading
from typing import Any

import pytest

from sightline.surfaces.adapters.message_preparation import Destination, list_perception_tools, prepare_body
from tests.engine.parts import picture
from tests.requirements import requirement

PASTED = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(picture()).decode()}"}}
MESSAGES: list[Any] = [{"role": "user", "content": [PASTED]}]


@requirement("adapter.address")
@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_the_key_of_a_gateway_does_not_go_to_the_provider(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[bytes] = []

    class WebProxy(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            lines.append(self.rfile.readline())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), WebProxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setenv("OPENAI_API_KEY", "key-of-the-gateway")
        monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
        done = prepare_body(MESSAGES, "openai_chat", Destination("gpt-3.5-turbo", "openai"), None)
        server.shutdown()
    assert lines == []
    assert done.receipt.upstream == "127.0.0.1:9"


@requirement("adapter.arguments")
async def test_whatever_arguments_a_model_writes_the_tool_answers() -> None:
    tool = next(each for each in list_perception_tools(None) if each.name == "view_image")
    texts = ["not JSON", "[1]", "null", "", "{}", '{"path": 7}', '{"self": 1, "tool": 2}', "[" * 100_000]
    results = [await tool.run_json(text) for text in texts]
    results += [tool.run(self=1), await tool.run_async(self=1)]
    assert {json.loads(result[0]["text"])["reason"] for result in results} == {"invalid_input"}
    assert all(len(result) == 1 for result in results)
