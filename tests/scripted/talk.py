"""The words between a wire's face and a scripted model's mind: what was asked, what is said, and a no."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.scripted.eye import PLAIN, Seen

Json = dict[str, Any]

_FENCE = re.compile(
    r"<vision_proxy_(?P<kind>description|analysis)\b[^>]*>(?P<told>.*?)</vision_proxy_(?P=kind)\s*>", re.DOTALL
)
_IMAGE = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Picture:
    """An image that stands in image position, still in base64."""

    where: str
    media_type: str
    base64: str
    of_tool: bool = False  # it stands in a tool's result


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as a model meets it."""

    model: str
    stream: bool
    wants_usage: bool
    pictures: tuple[Picture, ...]
    words: tuple[str, ...]  # of users and tools, oldest first
    tools: frozenset[str]
    steps: int  # assistant turns with tool calls so far

    @property
    def tokens(self) -> int:
        """A plausible count of input tokens: a model bills what it was sent."""
        return sum(len(words) for words in self.words) // 4 + 1000 * len(self.pictures) + 10


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that a scripted model makes."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Said:
    """A model's answer: words, or tool calls."""

    text: str
    calls: tuple[Call, ...] = ()

    @property
    def tokens(self) -> int:
        return len(self.text) // 4 + 20 * len(self.calls) + 1


@dataclass(frozen=True, slots=True)
class No:
    """A provider's refusal; `shape` is its JSON body where the provider has one of its own."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    code: str | None = None
    shape: Json | None = None


Script = Sequence[Sequence[Call]]
Mind = Callable[[Asked, Sequence[Seen], Script], Said]
"""What a model makes of a request and of what it has seen."""


def speak(asked: Asked, seen: Sequence[Seen], script: Script) -> Said:
    """Play the script's next step if its tools are offered; else say what is seen, and what was told."""
    if asked.steps < len(script) and asked.tools.issuperset(call.name for call in script[asked.steps]):
        return Said("", tuple(_about(call, asked.words) for call in script[asked.steps]))
    if seen and seen[-1].plain and any(_asks_for_a_line(words) for words in asked.words):
        return Said(" ".join((*seen[-1].plain, seen[-1].code or "?")))
    shown = [f"image {number} of {len(seen)}: {one.words()}" for number, one in enumerate(seen, 1)]
    told = [f"I was told: {found['told'].strip()}" for words in asked.words for found in _FENCE.finditer(words)]
    return Said("\n".join(shown + told) or "I see no image.")


def _about(call: Call, words: Sequence[str]) -> Call:
    """A call about `{image}` is about the first image that the model was told of by its name."""
    named = next((found[0] for each in words if (found := _IMAGE.search(each))), "")
    return Call(call.name, json.loads(json.dumps(dict(call.arguments)).replace("{image}", named)))


def _asks_for_a_line(words: str) -> bool:
    """Whether every everyday colour is offered as an answer: then only they and the code are wanted."""
    return all(name in words for name in PLAIN)


def pieces(text: str, size: int = 12) -> list[str]:
    """A text in the pieces in which it is streamed."""
    return [text[at : at + size] for at in range(0, len(text), size)]
