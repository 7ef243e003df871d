"""A seer behind the Anthropic Messages wire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sightline.model.image import Image
from sightline.model.ports import Http
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.seers.asking import asked


@dataclass(frozen=True, slots=True)
class MessagesSeer:
    name: str
    model: str
    url: str
    limits: Limits
    http: Http = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    async def look(self, image: Image, instructions: str, question: str) -> str | Refusal:
        source: Json = {
            "type": "base64",
            "media_type": image.mime,
            "data": image.base64,
        }
        content: Json = [{"type": "image", "source": source}, {"type": "text", "text": question}]
        # No temperature, prefill or tool choice: newer models of this wire refuse them.
        body: Json = {
            "model": self.model,
            "max_tokens": 4096,
            "system": instructions,
            "messages": [{"role": "user", "content": content}],
        }
        headers = {"anthropic-version": "2023-06-01", **self.headers}
        return await asked(self.http, self.name, self.url, headers, body, words)


def words(answer: Json) -> str:
    """What an answer on this wire says."""
    blocks = answer.get("content") if isinstance(answer, dict) else None
    texts = [b.get("text") for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
    return "\n".join(text for text in texts if isinstance(text, str))
