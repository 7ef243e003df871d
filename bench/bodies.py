"""The request bodies of the benchmark: JSON with text, or with real PNG images of noise."""

import base64
import json
import random
import struct
import zlib

MODEL = "gpt-6-sol"
MESSAGES_MODEL = "claude-opus-5-5"  # of bodies of the Messages API
SMALL_EDGE = 224  # of noise: 200 KB of base64
EDGE = 512  # 512 x 512 noise is 786 KB of PNG, 1.05 MB of base64: within every provider's limits, so it is kept.


def _build_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def build_noise_png(rng: random.Random, edge: int = EDGE) -> bytes:
    """Return a valid RGB PNG of noise, stored uncompressed because noise does not compress."""
    rows = b"".join(b"\0" + rng.randbytes(edge * 3) for _ in range(edge))
    header = struct.pack(">IIBBBBB", edge, edge, 8, 2, 0, 0, 0)
    data = zlib.compress(rows, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + _build_chunk(b"IHDR", header) + _build_chunk(b"IDAT", data) + _build_chunk(b"IEND", b"")
    )


_SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOLS = [{"type": "function", "function": {"name": "Read", "parameters": _SCHEMA}}]


def _build_body(content: object, stream: bool, *, tools: bool = False) -> bytes:
    asked: dict[str, object] = {"model": MODEL, "messages": [{"role": "user", "content": content}], "stream": stream}
    if tools:
        asked["tools"] = TOOLS
    return _dump(asked)


def build_text_body(size: int = 2048, stream: bool = False) -> bytes:
    """Return a request of exactly `size` bytes, all text."""
    bare = len(_build_body("", stream))
    return _build_body(("Say what you see. " * size)[: size - bare], stream)


def build_many_messages_body(messages: int) -> bytes:
    """Return a request whose cost is its number of JSON values."""
    said = [{"role": "assistant" if number % 2 else "user", "content": "a"} for number in range(messages)]
    return _dump({"model": MODEL, "messages": said, "stream": False})


def build_image_part(rng: random.Random, edge: int = EDGE) -> dict[str, object]:
    """Return a content part with an image of noise."""
    url = "data:image/png;base64," + base64.b64encode(build_noise_png(rng, edge)).decode()
    return {"type": "image_url", "image_url": {"url": url}}


def build_image_body(images: int, seed: int, edge: int = EDGE, *, tools: bool = False) -> bytes:
    """Return a request with that many different images; the same seed gives the same bytes.

    With `tools`, it has one of the client's, as the requests of agents do.
    """
    rng = random.Random(seed)
    words: dict[str, object] = {"type": "text", "text": "What is in these pictures?"}
    return _build_body([words, *(build_image_part(rng, edge) for _ in range(images))], stream=False, tools=tools)


def build_tool_calls(rng: random.Random, number: int, edge: int = SMALL_EDGE) -> list[dict[str, object]]:
    """Return the two messages of an agent that reads an image by its tool: the call, and the result with the image."""
    path = json.dumps({"path": f"/home/me/screen{number}.png"})
    call = {"id": f"call_{number}", "type": "function", "function": {"name": "Read", "arguments": path}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call["id"], "content": [build_image_part(rng, edge)]},
    ]


def build_read_image_body(seed: int) -> bytes:
    """Return a request of 200 KB whose image a tool has read, as the requests of agents are."""
    asked = {"role": "user", "content": "What is on the screen?"}
    messages = [asked, *build_tool_calls(random.Random(seed), seed)]
    return _dump({"model": MODEL, "messages": messages, "tools": TOOLS, "stream": False})


def build_messages_api_body(images: int, seed: int, edge: int = EDGE) -> bytes:
    """Return a request of the Messages API with that many images; 2 KB of text if there are none."""
    rng = random.Random(seed)
    pictures = (base64.b64encode(build_noise_png(rng, edge)).decode() for _ in range(images))
    sources = [{"type": "base64", "media_type": "image/png", "data": picture} for picture in pictures]
    words = "What is in these pictures?" if images else ("Say what you see. " * 2048)[:1900]
    content = [{"type": "text", "text": words}, *({"type": "image", "source": source} for source in sources)]
    return _dump({"model": MESSAGES_MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": content}]})


def _dump(body: object) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode()
