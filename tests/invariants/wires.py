"""Conversations of any shape, drawn once and written for each wire."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from sightline.model.refusal import Refusal
from sightline.model.scene import Fate, Refitted, Refused, Retired, Shown, Told
from sightline.wire import Wire
from tests.wire.bodies import block, image, part, result, text, tool, user
from tests.wire.json_texts import base64_like

PNG = "iVBORw0KGgoAAAANSUhEUg"


@dataclass(frozen=True)
class Said:
    """A message of the user or the assistant; True means an image, which only a user has."""

    role: str
    parts: Sequence[bool]


@dataclass(frozen=True)
class Called:
    """Parallel calls with their results, and the order of the results."""

    results: Sequence[Sequence[bool]]
    order: Sequence[int]
    stringified: bool


@st.composite
def called(draw: st.DrawFn) -> Called:
    results = draw(st.lists(st.lists(st.booleans(), min_size=1, max_size=3), min_size=1, max_size=3))
    return Called(results, draw(st.permutations(range(len(results)))), draw(st.booleans()))


words = st.builds(Said, st.just("user"), st.lists(st.booleans(), min_size=1, max_size=3))
answers = st.builds(Said, st.just("assistant"), st.just([False]))
talks: st.SearchStrategy[list[Said | Called]] = st.lists(words | answers | called(), max_size=7)

NO = Refusal("corrupt", "it is broken")
fates: st.SearchStrategy[Fate] = st.sampled_from(
    [
        Shown(),
        Shown("image/gif"),
        Refitted(image(b"\x89PNG\r\n\x1a\n refitted pixels"), "too large"),
        Told("[told]", "up/eye"),
        Retired("[viewed earlier]", "cold"),
        Refused("[refused]", NO),
    ]
)


class Writer:
    """Writes a conversation for one wire, with a unique payload for each image."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.payloads: list[str] = []
        self.calls = 0

    def body(self, talk: Sequence[Said | Called]) -> dict[str, Any]:
        items = [item for one in talk for item in (self._said(one) if isinstance(one, Said) else self._called(one))]
        return {"model": "m", self.wire.messages_key: items}

    def _payload(self) -> str:
        """Return a payload; every third one is long enough to be lifted out."""
        number = len(self.payloads)
        filling = base64_like(9_000 if number % 3 == 0 else 80, number).replace("-", "+").replace("_", "/")
        self.payloads.append(f"{PNG}{number:06d}{filling}")
        return self.payloads[-1]

    def _part(self, is_image: bool) -> dict[str, Any]:
        match self.wire.name, is_image:
            case "anthropic", True:
                return block(self._payload())
            case "openai_chat", True:
                return part(self._payload())
            case "openai_responses", True:
                return {"type": "input_image", "image_url": f"data:image/png;base64,{self._payload()}"}
            case "gemini", True:
                return {"inlineData": {"mimeType": "image/png", "data": self._payload()}}
            case "openai_responses", False:
                return {"type": "input_text", "text": "words"}
            case "gemini", False:
                return {"text": "words"}
            case _:
                return text("words")

    def _said(self, said: Said) -> list[Any]:
        if said.role == "assistant":
            return [
                {"role": "model", "parts": [{"text": "yes"}]}
                if self.wire.name == "gemini"
                else {"role": "assistant", "content": "yes"}
            ]
        parts = [self._part(each) for each in said.parts]
        return [{"role": "user", "parts": parts} if self.wire.name == "gemini" else user(*parts)]

    def _content(self, parts: Sequence[bool], *, stringified: bool) -> Any:
        """Return a tool result: parts of the wire, or a library's text of them."""
        if not stringified:
            return [self._part(each) for each in parts]
        media = [
            {"type": "media", "data": self._payload(), "mediaType": "image/png"} if each else text("words")
            for each in parts
        ]
        return json.dumps(media)

    def _called(self, called: Called) -> list[Any]:
        names = [f"call_{self.calls + index}" for index in range(len(called.results))]
        self.calls += len(names)
        brought = {
            index: self._content(called.results[index], stringified=called.stringified) for index in called.order
        }
        answered = [(names[index], brought[index]) for index in called.order]
        asked: list[Any]
        match self.wire.name:
            case "anthropic":
                uses = [{"type": "tool_use", "id": name, "name": "shot", "input": {}} for name in names]
                results = [{**result(name), "content": content} for name, content in answered]
                return [{"role": "assistant", "content": uses}, user(*results)]
            case "openai_chat":
                made = [
                    {"id": name, "type": "function", "function": {"name": "shot", "arguments": "{}"}} for name in names
                ]
                results = [{**tool(name), "content": content} for name, content in answered]
                return [{"role": "assistant", "content": None, "tool_calls": made}, *results]
            case "openai_responses":
                asked = [{"type": "function_call", "call_id": n, "name": "shot", "arguments": "{}"} for n in names]
                return [*asked, *({"type": "function_call_output", "call_id": n, "output": c} for n, c in answered)]
            case _:
                asked = [{"functionCall": {"id": name, "name": "shot", "args": {}}} for name in names]
                responses = [{"functionResponse": _response(name, content)} for name, content in answered]
                return [{"role": "model", "parts": asked}, {"role": "user", "parts": responses}]


def _response(name: str, content: Any) -> dict[str, Any]:
    words = content if isinstance(content, str) else "words"
    response: dict[str, Any] = {"id": name, "name": "shot", "response": {"output": words}}
    images = [] if isinstance(content, str) else [each for each in content if "inlineData" in each]
    return {**response, "parts": images} if images else response
