"""Fuzz targets: each parser that reads what others wrote, with what must hold for any bytes.

A target takes bytes, and fails by raising. Its corpus is the folder of its name in `corpus`; what is tried are those
files, changed at a few places. Put an input that has failed there, so that it is tried for ever.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from sightline.commands.grammar import find_command, is_answer, is_command, parse, split_words
from sightline.grounding import FORMATS
from sightline.grounding.parse import SeenPlace, parse_places
from sightline.model.fence import escape_attribute, escape_for_brackets, neutralize, to_one_line
from sightline.model.geometry import Size
from sightline.model.image import ImageInfo
from sightline.model.refusal import Refusal
from sightline.model.scene import Shown
from sightline.pixels.image_headers import is_animated
from sightline.pixels.probe import probe, read_orientation
from sightline.server import Receive, Scope, Send
from sightline.settings import KEYS, Settings, load_settings
from sightline.settings.settings_file import read_settings_file
from sightline.wire import WIRES, Wire
from sightline.wire.json_document import lift
from sightline.wire.message_texts import drop_commands
from sightline.wire.sse import EventBuffer, read_event, read_opening, split_events
from tests.server.serving import served
from tests.wire.bodies import HOISTING, TOKEN

Target = Callable[[bytes], None]
CORPUS = Path(__file__).parent / "corpus"


def fuzz_wire(wire: Wire, data: bytes) -> None:
    """A body is no JSON object, or is read; where all images are shown, nothing is edited that was not an image."""
    document = lift(data, TOKEN)
    if document is None:
        return
    scene = wire.read(document.tree, document)
    drop_commands(document.tree.get(wire.messages_key), find_command, is_answer)  # type: ignore[union-attr]
    edits = wire.lower(
        replace(scene, sights=tuple(each.with_fate(Shown()) for each in scene.sights)), document.tree, HOISTING
    )
    after = b"".join(document.splice(edits))
    assert after == data if not edits else isinstance(json.loads(after), dict)


def fuzz_sse(data: bytes) -> None:
    """Events end where they end, however they arrive, and no byte is lost."""
    middle = len(data) // 2
    for pieces in ([data], [data[:middle], data[middle:]]):
        buffer = EventBuffer()
        seen = b"".join(bytes(buffer.feed(piece)) for piece in pieces)
        assert data.startswith(seen)
    for event in split_events(data):
        read_event(event)
    read_opening(data)


def fuzz_fences(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    assert neutralize(neutralize(text)) == neutralize(text)
    assert len(to_one_line(text).splitlines()) <= 1
    assert '"' not in escape_attribute(text)
    assert not {"[", "]"} & set(escape_for_brackets(text))


def fuzz_commands(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    found = parse(text)
    assert not isinstance(found, Refusal) or (found.remedy and len(str(found).splitlines()) == 1)
    assert is_command(text) in (True, False)
    split_words(text)


def fuzz_image_headers(data: bytes) -> None:
    """The first bytes say what the whole says, or that more is needed."""
    whole = probe(data, len(data))
    assert whole is not None
    assert is_animated(data) in (True, False)
    if isinstance(whole, ImageInfo):
        assert whole.size.width > 0 < whole.size.height
        assert 1 <= read_orientation(data) <= 8
    for length in (0, 16, len(data) // 2):
        probe(data[:length], len(data))


def fuzz_grounding(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for name in FORMATS:
        assert all(isinstance(each, SeenPlace) for each in parse_places(text, name, [Size(640, 480)]))


def fuzz_settings(data: bytes) -> None:
    """A file has settings, or is refused; what it says wrong is left out, never used."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_bytes(data)
        read_settings_file(path)
        settings = load_settings({"SIGHTLINE_HOME": folder}, path)
    assert isinstance(settings, Settings)
    assert not [key.name for key in KEYS if key.kind.find_fault(settings.json_values[key.name])]


async def _answer(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok", "more_body": False})


def fuzz_server(data: bytes) -> None:
    """Whatever arrives gets HTTP or nothing, and the next client is served."""
    asyncio.run(_connect_twice(data))


async def _connect_twice(data: bytes) -> None:
    async with served(_answer) as port:
        for sent in (data, b"GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n"):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(sent)
                writer.write_eof()
                said = await reader.read()
            except ConnectionError:
                said = b""
            finally:
                writer.close()
            assert not said or said.startswith(b"HTTP/1.1 ")
        assert said.startswith(b"HTTP/1.1 200"), said


TARGETS: dict[str, Target] = {
    **{f"wire-{wire.name}": partial(fuzz_wire, wire) for wire in WIRES},
    "sse": fuzz_sse,
    "fences": fuzz_fences,
    "commands": fuzz_commands,
    "image-headers": fuzz_image_headers,
    "grounding": fuzz_grounding,
    "settings": fuzz_settings,
    "server": fuzz_server,
}


def read_corpus(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]
