"""What replacing PDFs costs: memory, which is reserved, and time, but not the event loop's or after a disconnect."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sightline.engine.requests import Reading
from sightline.model.refusal import Refusal
from sightline.pixels.workers import WorkerPool, WorkerReply
from sightline.runtime import get_shared_renderers
from sightline.server import asgi
from sightline.surfaces.proxy import document_expander
from sightline.surfaces.proxy.document_expander import DocumentExpander, ExpandedBody
from sightline.wire import WIRES
from tests.engine.parts import Stage, visitor
from tests.pixels.renderers.pdf_files import RED, document, fill, text
from tests.proxy.raw_http import exchange
from tests.proxy.running_proxy import sightline
from tests.proxy.test_documents import ENV, REPORT, build, list_notes
from tests.requirements import requirement
from tests.scripted.provider import Provider

MESSAGES = next(wire for wire in WIRES if wire.name == "anthropic")


def build_expander(stage: Stage) -> DocumentExpander:
    return DocumentExpander(stage.engine, stage.record.images, get_shared_renderers, lambda caller, model: False)


@requirement("document.memory")
async def test_all_of_the_expanded_body_is_reserved() -> None:
    stage, reserved = Stage(), list[int]()
    body = build("anthropic", "sure", REPORT)[1]
    body["messages"].append({"role": "user", "content": "long " * 9000})

    def reserve(size: int) -> bool:
        reserved.append(size)
        return True

    expanded = await build_expander(stage).expand(stage.read(body), visitor(), reserve)
    assert isinstance(expanded, ExpandedBody)
    assert sum(reserved) == len(expanded.data)


@requirement("document.memory")
def test_pages_that_replace_a_pdf_take_memory_of_the_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, body = build("anthropic", "eye", REPORT)
    sent = json.dumps(body).encode()
    monkeypatch.setattr(asgi, "MAX_SMALL_BODY", 100)
    monkeypatch.setattr(asgi, "MAX_BUFFERED_BYTES", len(sent) + 1000)
    with Provider() as provider, sightline(tmp_path, provider.url, env=ENV) as proxy:
        for _ in range(2):  # all of it is returned
            assert exchange(proxy.url, path, sent).status == 200
            assert provider.exchanges[-1].body == sent
            assert "memory" in list_notes(proxy)[-1]


@requirement("document.threads")
async def test_a_body_with_pdfs_is_searched_and_written_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: dict[str, int] = {}

    def watch(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def work_and_note(*args: Any) -> Any:
            threads[name] = threading.get_ident()
            return work(*args)

        return work_and_note

    for name in ("find_documents", "replace_documents"):
        monkeypatch.setattr(document_expander, name, watch(name, getattr(document_expander, name)))
    stage = Stage()
    reading = stage.read(build("anthropic", "sure", REPORT)[1])
    expanded = await build_expander(stage).expand(reading, visitor(), lambda size: True)
    assert isinstance(expanded, ExpandedBody)
    assert isinstance(await stage.engine.open(expanded.data, MESSAGES), Reading)
    assert threads.keys() == {"find_documents", "replace_documents"}
    assert threading.get_ident() not in threads.values()


@requirement("document.leaves")
async def test_no_page_is_rendered_after_the_client_has_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    run, reached, left, pages = WorkerPool.run_sync, threading.Event(), threading.Event(), list[int]()

    def run_and_wait(pool: WorkerPool, name: str, data: bytes, arguments: Any, *more: Any) -> WorkerReply | Refusal:
        pages.append(arguments["options"].get("page", 1))
        reached.set()
        assert left.wait(60)
        return run(pool, name, data, arguments, *more)

    monkeypatch.setattr(WorkerPool, "run_sync", run_and_wait)
    stage = Stage()
    report = document([fill(RED) + " " + text(f"page {page}") for page in range(5)])
    reading = stage.read(build("anthropic", "sure", report)[1])
    work = asyncio.ensure_future(build_expander(stage).expand(reading, visitor(), lambda size: True))
    await asyncio.to_thread(reached.wait, 60)
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    left.set()
    await asyncio.get_running_loop().shutdown_default_executor()  # all threads have ended
    assert pages == [1]
