"""A real proxy on a real socket, in a thread of its own, composed as the command composes it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop

from sightline.cli import compose
from sightline.cli.proxy_server import bind_socket, find_url
from sightline.model.records import Receipt
from sightline.model.refusal import Refusal
from sightline.runtime import build_runtime
from sightline.server import serve_app
from sightline.settings import load_settings
from sightline.surfaces.proxy.telemetry import RequestLog

NOTHING_ON_LOOPBACK = '{"ollama":{"baseUrl":"http://127.0.0.1:9/v1"},"lmstudio":{"baseUrl":"http://127.0.0.1:9/v1"},"llamacpp":{"baseUrl":"http://127.0.0.1:9/v1"},"vllm":{"baseUrl":"http://127.0.0.1:9/v1"}}'


@dataclass
class Running:
    url: str
    receipts: list[Receipt] = field(default_factory=list)
    tasks: Callable[[], int] = lambda: 0
    """How many tasks there are in its loop."""
    check_settings: Callable[[], None] = lambda: None
    """Let the next request check the settings file, as if a second had passed."""


def declare_gemini(flags: Sequence[str], environment: dict[str, str]) -> list[str]:
    """Return the flags with another one for an address: of an unknown one, Gemini's API isn't expected."""
    addresses = [flag for flag in flags if flag.startswith("http")]
    if not addresses:
        return [*flags]
    entry = {"baseUrl": {"gemini": addresses[-1]}}
    environment["SIGHTLINE_UPSTREAMS"] = json.dumps(
        {**json.loads(environment["SIGHTLINE_UPSTREAMS"]), "scripted-gemini": entry}
    )
    return [*flags, "scripted-gemini"]


@contextmanager
def sightline(
    home: Path,
    *upstreams: str,
    patience: float = 10.0,
    env: Mapping[str, str] | None = None,
    token: str = "",
    root: Path | None = None,
    local_clients: bool = True,
    has_gemini: bool = True,
) -> Iterator[Running]:
    environment = {"SIGHTLINE_HOME": str(home), "SIGHTLINE_UPSTREAMS": NOTHING_ON_LOOPBACK, **(env or {})}
    flags = declare_gemini(upstreams, environment) if has_gemini else upstreams
    listening = bind_socket("127.0.0.1", 0)
    assert not isinstance(listening, Refusal)
    running = Running(find_url(listening))
    ready, stop = threading.Event(), threading.Event()
    ended: list[BaseException] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        running.tasks = lambda: len(asyncio.all_tasks(loop))
        settings = load_settings(environment)
        reach = compose.limit_to_folder(settings, root) if root else compose.NO_FILES
        whole = build_runtime(settings, flags, path_policy=reach if root else None, local_clients=local_clients)
        assert not isinstance(whole, Refusal), whole
        assert whole.live is not None
        running.check_settings = whole.live.check_soon
        log = RequestLog(whole.record, on_receipt=running.receipts.append)
        app = compose.build_proxy(whole, patience, token, reach, log)
        serving = asyncio.ensure_future(serve_app(app, listening, ready.set, signals=False))
        await asyncio.get_running_loop().run_in_executor(None, stop.wait)
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)
        await app.close()
        await whole.close()

    def guarded() -> None:
        try:
            uvloop.run(main())
        except BaseException as error:  # noqa: BLE001, told to the test that waits for it
            ended.append(error)
            ready.set()

    thread = threading.Thread(target=guarded)
    thread.start()
    ready.wait(30)
    try:
        assert not ended, ended
        yield running
    finally:
        stop.set()
        thread.join(30)
