"""Request bodies for the tests of the wires, and helpers that lift, read, give fates, lower and splice one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sightline.model.facts import Facts, Rules
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.profile import Profile
from sightline.model.scene import Fate, InlineSource, Json, Scene
from sightline.passes.show import label
from sightline.wire import Codec
from sightline.wire.json_document import JsonDocument, lift
from tests.wire.json_texts import base64_like

TOKEN = "sightline-0123456789abcdef-"
MARK: Json = {"type": "ephemeral"}
SEEING = Profile("up", "anthropic", "m")
HOISTING = Profile("up", "openai_chat", "m", tool_images="hoist")

SMALL = "iVBORw0KGgo="
LONG = base64_like(20_000)  # is lifted out of the body


@dataclass(frozen=True)
class Read:
    document: JsonDocument
    scene: Scene

    def texts(self) -> list[str]:
        """The base64 of the sights that have some."""
        sources = [sight.source for sight in self.scene.sights]
        return [bytes(source.text).decode() for source in sources if isinstance(source, InlineSource)]


def read(wire: Codec, body: Json) -> Read:
    document = lift(json.dumps(body).encode(), TOKEN)
    assert document is not None
    return Read(document, wire.read(document.tree, document))


def lower_body(wire: Codec, body: Json, fates: Sequence[Fate | None], profile: Profile = HOISTING) -> Json:
    """Return the body after its sights, in their order, got these fates."""
    found = read(wire, body)
    sights = tuple(replace(s, fate=fate) for s, fate in zip(found.scene.sights, fates, strict=True))
    scene = label(replace(found.scene, sights=sights), Facts(), Rules(profile))
    assert isinstance(scene, Scene)
    edits = wire.lower(scene, found.document.tree, profile)
    after: Json = json.loads(b"".join(found.document.splice(edits)))
    return after


def image(data: bytes = b"pixels", mime: str = "image/jpeg") -> Image:
    return Image("0" * 64, mime, Size(10, 10), data)


def block(data: str = SMALL, mime: str = "image/png") -> dict[str, Json]:
    """Return an image block of the Messages wire."""
    return {"type": "image", "source": {"type": "base64", "media_type": mime, "data": data}}


def part(data: str = SMALL, mime: str = "image/png") -> dict[str, Json]:
    """Return an image part of the Chat Completions wire."""
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}


def text(words: str) -> dict[str, Json]:
    return {"type": "text", "text": words}


def user(*content: Json) -> dict[str, Json]:
    return {"role": "user", "content": list(content)}


def result(call: str, *content: Json) -> dict[str, Json]:
    """Return a tool result of the Messages wire."""
    return {"type": "tool_result", "tool_use_id": call, "content": list(content)}


def tool(call: str, *content: Json) -> dict[str, Json]:
    """Return a tool message of the Chat Completions wire."""
    return {"role": "tool", "tool_call_id": call, "content": list(content)}


def calling(*calls: str, name: str = "read") -> dict[str, Json]:
    """Return an assistant's message of the Chat Completions wire that makes these calls."""
    made: list[Json] = [
        {"id": call, "type": "function", "function": {"name": name, "arguments": f'{{"path": "/home/me/{call}.png"}}'}}
        for call in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": made}


def body(*messages: Json, **fields: Json) -> dict[str, Json]:
    return {"model": "m", "messages": list(messages), **fields}
