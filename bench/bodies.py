"""The request bodies of the benchmark: Chat Completions JSON with text, or with real PNG images of noise."""

import base64
import json
import random
import struct
import zlib

MODEL = "gpt-6-sol"
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


_TOOL = {"type": "function", "function": {"name": "Read", "parameters": {"type": "object", "properties": {}}}}


def _build_body(content: object, stream: bool, *, tools: bool = False) -> bytes:
    asked: dict[str, object] = {"model": MODEL, "messages": [{"role": "user", "content": content}], "stream": stream}
    if tools:
        asked["tools"] = [_TOOL]
    return json.dumps(asked, separators=(",", ":")).encode()


def build_text_body(size: int = 2048, stream: bool = False) -> bytes:
    """Return a request of exactly `size` bytes, all text."""
    bare = len(_build_body("", stream))
    return _build_body(("Say what you see. " * size)[: size - bare], stream)


def build_many_messages_body(messages: int) -> bytes:
    """Return a request whose cost is its number of JSON values."""
    said = [{"role": "assistant" if number % 2 else "user", "content": "a"} for number in range(messages)]
    return json.dumps({"model": MODEL, "messages": said, "stream": False}, separators=(",", ":")).encode()


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
