"""Requests of real clients, and a search for images in them that knows nothing of wires."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path as File
from typing import Any

from sightline.model.scene import Json, JsonPath
from sightline.wire import WIRES, Wire

FOLDER = File(__file__).parent
MAGIC = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF8", b"RIFF")
runs = re.compile(r"[A-Za-z0-9+/_-]{24,}={0,2}").findall


@dataclass(frozen=True)
class Capture:
    name: str
    wire: Wire
    path: str
    body: Any  # any JSON at all, read with the freedom of a test

    @property
    def raw(self) -> bytes:
        return json.dumps(self.body, ensure_ascii=False, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Payload:
    """Base64 of an image, wherever it stands."""

    place: JsonPath  # of the string
    text: str

    @property
    def sha256(self) -> str:
        return sha256(decoded(self.text)).hexdigest()

    @property
    def holder(self) -> JsonPath:
        """The place of the block or part that it stands in; of the string itself, where no wire has images there."""
        match self.place[-2:]:
            case ("source" | "inlineData" | "inline_data", "data") | ("image_url", "url"):
                return self.place[:-2]
            case (_, "image_url"):
                return self.place[:-1]
            case _:
                return self.place

    @property
    def is_pixels(self) -> bool:
        """Does it stand where a wire has a place for an image?"""
        return self.holder != self.place


def captures() -> list[Capture]:
    return [
        Capture(f"{file.parent.name}/{file.stem}", wire, held["path"], held["body"])
        for wire in WIRES
        for file in sorted((FOLDER / wire.name).rglob("*.json"))
        for held in [json.loads(file.read_text("utf-8"))]
        if held["body"] is not None
    ]


def payloads(tree: Json, place: JsonPath = ()) -> Iterator[Payload]:
    """Every base64 text of an image in every string, also where the string is JSON itself."""
    match tree:
        case str():
            yield from (Payload(place, run) for run in _images(tree))
        case list():
            for index, item in enumerate(tree):
                yield from payloads(item, (*place, index))
        case dict():
            for key, value in tree.items():
                yield from payloads(value, (*place, key))


@lru_cache(4096)  # a text is said again with each request that comes after it
def _images(text: str) -> tuple[str, ...]:
    return tuple(run for run in runs(text) if decoded(run).startswith(MAGIC))


def decoded(run: str) -> bytes:
    """In either alphabet, with or without padding."""
    bare = run.rstrip("=")
    if len(bare) % 4 == 1:
        return b""
    return b64decode(bare.replace("-", "+").replace("_", "/") + "=" * (-len(bare) % 4))
