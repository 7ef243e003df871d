"""A seer behind the OpenAI Chat Completions wire, which most servers speak."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from sightline.model.image import Image
from sightline.model.ports import Http
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.seers.asking import asked

# Some servers put the model's reasoning into the answer itself.
_thought = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChatSeer:
    name: str
    model: str
    url: str
    limits: Limits
    http: Http = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)

    async def look(self, image: Image, instructions: str, question: str) -> str | Refusal:
        content: Json = [
            {"type": "text", "text": question},
            {"type": "image_url", "image_url": {"url": image.data_url}},
        ]
        messages: Json = [{"role": "system", "content": instructions}, {"role": "user", "content": content}]
        body: Json = {"model": self.model, "messages": messages}
        return await asked(self.http, self.name, self.url, self.headers, body, words)


def words(answer: Json) -> str:
    """What an answer on this wire says."""
    match answer:
        case {"choices": [{"message": {"content": str(said)}}, *_]}:
            return _thought.sub("", said)
        case _:
            return ""
