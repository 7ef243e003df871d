"""Requests of real clients, and a search for images in them that knows nothing of wires."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

from sightline.model.scene import Json, Path
from sightline.wire import WIRES, Wire

FOLDER = File(__file__).parent
MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")
runs = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}").findall


@dataclass(frozen=True)
class Capture:
    name: str
    wire: Wire
    body: Any  # any JSON at all, read with the freedom of a test

    @property
    def raw(self) -> bytes:
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Payload:
    """Base64 of an image, wherever it stands."""

    place: Path  # of the string
    text: str

    @property
    def is_native(self) -> bool:
        """Does it stand where a wire has a place for an image?"""
        return (self.place[-1] == "data" and self.place[-2] == "source") or "image_url" in self.place[-2:]


def captures() -> list[Capture]:
    return [
        Capture(f"{file.parent.name}/{file.stem}", wire, json.loads(file.read_text("utf-8"))["body"])
        for wire in WIRES
        for file in sorted((FOLDER / wire.name).rglob("*.json"))
    ]


def payloads(tree: Json, place: Path = ()) -> Iterator[Payload]:
    """Every base64 text of an image in every string."""
    match tree:
        case str():
            yield from (Payload(place, run) for run in runs(tree) if is_image(run))
        case list():
            for index, item in enumerate(tree):
                yield from payloads(item, (*place, index))
        case dict():
            for key, value in tree.items():
                yield from payloads(value, (*place, key))


def is_image(run: str) -> bool:
    return b64decode(run[:24]).startswith(MAGIC)
