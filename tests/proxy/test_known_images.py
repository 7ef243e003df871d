"""What a request costs whose images are known: nothing of it waits for the record."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from sightline.store import sqlite_database
from tests.proxy.clients import WIRES
from tests.proxy.running_proxy import sightline
from tests.requirements import requirement
from tests.scripted.pictures import paint_quadrants, some_colours
from tests.scripted.provider import deepseek

PICTURES = paint_quadrants(some_colours(11)), paint_quadrants(some_colours(12))
SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "messages": [{"name": "Read", "description": "Read a file.", "input_schema": SCHEMA}],
    "chat": [{"type": "function", "function": {"name": "read", "description": "Read a file.", "parameters": SCHEMA}}],
}
MODELS = {
    ("messages", "sees"): "claude-haiku-x", ("messages", "is blind"): "claude-opus-x",
    ("chat", "sees"): "deepseek-flash", ("chat", "is blind"): "deepseek-v4-pro",
}  # fmt: skip


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements of SQLite, but for those of the thread that writes receipts after the answers."""
    found: list[str] = []
    connect = sqlite_database._connect

    def note(statement: str) -> None:
        if not isinstance(threading.current_thread(), threading.Timer):
            found.append(statement)

    def connect_traced(*args: Any) -> sqlite3.Connection:
        connection = connect(*args)
        connection.set_trace_callback(note)
        return connection

    monkeypatch.setattr(sqlite_database, "_connect", connect_traced)
    return found


@requirement("record.no_statements")
@pytest.mark.parametrize("way", ["pasted", "read by a tool"])
@pytest.mark.parametrize("sight", ["sees", "is blind"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_request_whose_images_are_known_takes_no_statement_of_sqlite(
    tmp_path: Path, statements: list[str], wire: str, sight: str, way: str
) -> None:
    ask, pasted, read = WIRES[wire]
    messages = pasted(PICTURES[0]) if way == "pasted" else read(*PICTURES)
    with deepseek() as provider, sightline(tmp_path, f"deepseek={provider.url}") as proxy:
        base, model = f"{proxy.url}/u/deepseek", MODELS[wire, sight]
        for _ in range(2):
            ask(base, model, messages, tools=TOOLS[wire])
            time.sleep(1.2)  # the receipt is written meanwhile
        assert statements
        statements.clear()
        ask(base, model, messages, tools=TOOLS[wire])
        assert statements == []
