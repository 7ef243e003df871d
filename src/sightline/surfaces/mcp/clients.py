"""What is known of MCP clients: what each host does with results, and on what terms a client is served. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sightline.model.scene import Json

if TYPE_CHECKING:
    from sightline.api.session import Door


@dataclass(frozen=True, slots=True)
class Terms:
    door: Callable[[Mapping[str, str]], Door]  # for whoever sent a request with these headers; stdio has none
    roots: bool = False  # the folders that a client names may be read: it could read them itself
    consents: bool = False  # who uses the client can be asked: the owner agrees for good, others for themselves
    anybody: Callable[[], str] = str  # the scope of all clients that cannot be told apart, which goes with the record


_PER_TOKEN = 4  # characters, as hosts count
_CUT = " [cut off here]"
_NEVER = "[this host shows its model no images of tools: {}]"
_INSTEAD: Mapping[str, str] = {
    "analyze_image": "ask analyze_image about it, by its path or its sha256",
    "vision_analyze": "ask vision_analyze about it, by its path",
}  # the best first
_NOTHING = "the user's setting `toolset` offers nothing that answers in words"


@dataclass(frozen=True, slots=True)
class Client:
    """The limits of one host; what is not known of one is what every provider behind it takes."""

    images: int = 15  # in one result; 0: its model would get them as text
    tokens: int = 25_000  # of one result
    image_tokens: int = 1_600  # that each image counts
    edge: int = 2_000  # pixels: from 21 images in a conversation on, Anthropic takes no more
    encoded: int = 5_000_000  # characters of base64: the least that a provider of vision takes (Bedrock, Vertex)


ANY = Client()
_KNOWN: Mapping[str, Client] = {
    # MAX_MCP_OUTPUT_TOKENS is 25,000, an image counts as 1,600 of them; what is over is cut or recompressed (2.1.312).
    "claude-code": ANY,
    # Base64 is counted as if it were text (google-gemini/gemini-cli#17923).
    "gemini-cli": Client(encoded=524_288),
    # A result goes to the model as the text of its JSON, the base64 of images with it (3.0.65).
    "@cline/core": Client(images=0),
}


def client(name: str) -> Client:
    """By the name that a host gives itself; some append what they are called by their user."""
    return next((known for start, known in _KNOWN.items() if name.startswith(start)), ANY)


def within(content: list[Json], limits: Client, offers: Collection[str] = tuple(_INSTEAD)) -> list[Json]:
    """A result as the host takes it whole: words get up to a half, images the rest; what is left out is said.

    `offers`: the tools that the host is offered.
    """
    words = [block for block in content if not _is_image(block)]
    left = limits.tokens * _PER_TOKEN // 2
    texts: list[Json] = []
    for text in map(_text, words):
        texts.append({"type": "text", "text": text if len(text) <= left else text[: max(0, left - len(_CUT))] + _CUT})
        left = max(0, left - len(text))
    room = limits.tokens - sum(len(_text(block)) for block in texts) // _PER_TOKEN
    pictures = [block for block in content if _is_image(block)]
    shown = pictures[: max(0, min(limits.images, room // limits.image_tokens))]
    omitted = len(pictures) - len(shown)
    why = f"[{omitted} more images had no room in this result]" if limits.images else _never(offers)
    said: list[Json] = [{"type": "text", "text": why}]
    return [*texts, *(said if omitted else []), *shown]


def _never(offers: Collection[str]) -> str:
    return _NEVER.format(next((what for tool, what in _INSTEAD.items() if tool in offers), _NOTHING))


def _is_image(block: Json) -> bool:
    return isinstance(block, dict) and block.get("type") == "image"


def _text(block: Json) -> str:
    return str(block.get("text", "")) if isinstance(block, dict) else ""
