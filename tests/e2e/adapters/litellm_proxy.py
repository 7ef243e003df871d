"""LiteLLM's own server with our callback, and a scripted provider behind all its models."""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tests.e2e.adapters.rehearsals import BLIND, MODELS, declare, find_framework, make_env
from tests.scripted.provider import Provider

MASTER_KEY = "sk-0123456789abcdef0123456789abcdef"
GROUPS = {"eyes": "openai/deepseek-v4-flash", "blind": f"openai/{BLIND}", "claude": "anthropic/claude-sonnet-5"}


@dataclass
class LiteLlmProxy:
    """LiteLLM's own server with our callback, and the provider of all its models."""

    url: str
    provider: Provider
    process: subprocess.Popen[bytes]
    log: Path

    def wait(self) -> None:
        """Wait until it answers."""
        for _ in range(600):
            assert self.process.poll() is None, self.log.read_text()[-3000:]
            try:
                if httpx2.get(f"{self.url}/health/liveliness", timeout=5).status_code == 200:
                    return
            except httpx2.TransportError:
                threading.Event().wait(0.2)
        raise AssertionError(self.log.read_text()[-3000:])

    def ask(self, path: str, *, stream: bool, **body: Any) -> str:
        """Return the text of the answer, in one piece or streamed."""
        self.wait()
        headers = {"authorization": f"Bearer {MASTER_KEY}"}
        answer = httpx2.post(f"{self.url}{path}", json={**body, "stream": stream}, headers=headers, timeout=60)
        if not stream:
            return "".join(map(_read_text, [answer.json()]))
        lines = (line.removeprefix("data: ") for line in answer.text.splitlines() if line.startswith("data: {"))
        return "".join(_read_text(json.loads(line)) for line in lines)


def _read_text(answer: Any) -> str:
    """Return the text in an answer, or in an event of a stream, of Chat Completions or Messages."""
    match answer:
        case {"choices": [{"message": {"content": str(text)}}]} | {"choices": [{"delta": {"content": str(text)}}]}:
            return text
        case {"content": [{"text": str(text)}]} | {"delta": {"text": str(text)}}:
            return text
        case _:
            return ""


@contextmanager
def run_litellm_proxy(folder: Path, package: Path) -> Iterator[LiteLlmProxy]:
    """Start the server; it answers after `wait`."""
    with Provider(MODELS) as provider:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        models = [
            {
                "model_name": group,
                "litellm_params": {"model": model, "api_base": f"{provider.url}{path}", "api_key": "k"},
            }
            for group, model in GROUPS.items()
            for path in ["/v1" if model.startswith("openai") else ""]
        ]
        callbacks = ["sightline.surfaces.adapters.litellm.callback"]
        config = {"model_list": models, "litellm_settings": {"callbacks": callbacks}}
        (folder / "config.yaml").write_text(json.dumps({**config, "general_settings": {"master_key": MASTER_KEY}}))
        command: list[Any] = [find_framework("litellm") / "litellm", "--config", "config.yaml", "--host", "127.0.0.1"]
        env = {**make_env(folder, package), **declare(provider)}
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [*command, "--port", str(port)], cwd=folder, env=env, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            yield LiteLlmProxy(f"http://127.0.0.1:{port}", provider, process, folder / "log")
        finally:
            process.kill()
            process.wait()
