"""A provider on loopback that looks: the settings that name it, and what it was sent."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from sightline.model.geometry import Size
from sightline.model.image import ImageInfo
from sightline.pixels.probe import probe
from tests.scripted.eye import Seen
from tests.scripted.provider import Provider
from tests.scripted.replies import body_of
from tests.scripted.talk import Asked, Said, Script, speak

NOBODY = {"baseUrl": "http://127.0.0.1:9/v1"}
ABSENT = dict.fromkeys(("ollama", "lmstudio", "llamacpp", "vllm"), NOBODY)


@contextmanager
def eyes(*lines: str, **options: Any) -> Iterator[Provider]:
    """Says these lines, the last one again and again; without any, what is to be seen."""
    said: list[str] = []

    def mind(asked: Asked, seen: Sequence[Seen], script: Script) -> Said:
        said.append(lines[min(len(said), len(lines) - 1)])
        return Said(said[-1])

    with Provider(mind=mind if lines else speak, **options) as provider:
        yield provider


def named(provider: Provider | str, model: str = "eye-1", **more: str) -> dict[str, str]:
    """The environment in which this provider is the one who looks, under the name `mine`."""
    url = provider if isinstance(provider, str) else provider.url
    upstreams = {**ABSENT, "mine": {"baseUrl": {"openai_chat": f"{url}/v1"}}}
    return {
        "SIGHTLINE_UPSTREAMS": json.dumps(upstreams),
        "SIGHTLINE_PROVIDER": "mine",
        "SIGHTLINE_MODEL_ID": model,
        "SIGHTLINE_MODELS": json.dumps({name: {"vision": True} for name in ("eye-2", "chosen")}),
        **more,
    }


def sent(provider: Provider, index: int = -1) -> tuple[str, str, list[bytes]]:
    """What one request told, what it asked, and its images."""
    messages: list[Mapping[str, Any]] = body_of(provider.exchanges[index])["messages"]
    told = "".join(str(message["content"]) for message in messages if message["role"] == "system")
    parts = [part for message in messages if message["role"] == "user" for part in message["content"]]
    asked = "\n".join(part["text"] for part in parts if part["type"] == "text")
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return told, asked, [b64decode(url.partition(",")[2]) for url in urls]


def size_of(data: bytes) -> Size:
    seen = probe(data, len(data))
    assert isinstance(seen, ImageInfo)
    return seen.size
