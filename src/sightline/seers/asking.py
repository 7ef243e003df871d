"""One call to a vision model over HTTP: bounded, tried twice at the most, and honest about what went wrong."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import orjson

from sightline.model.asking import Answer, Document, Question, Usage
from sightline.model.image import Image
from sightline.model.ports import Http, Reply
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.wire.shape import at

SECONDS = 60.0
_PAUSE = 1.0
_LONGEST = 30_000  # characters of a description: nobody reads more, and everybody pays for it
_LONGEST_PAUSE = 10.0
_AGAIN = "ask again in a while"
_RETRY = "send another message in a while to have it looked at again"

# Some servers put the model's reasoning into the answer: whole, cut off within it, or without the word that opens it.
_thought = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)|\A(?:(?!<think>).)*?</think>\s*\n\n", re.DOTALL)

# The one trouble of a provider that whoever asked can do something about.
_pages = re.compile(
    rb"(?i)(?:maximum|limit|exceed|too many)[^\"]{0,80}\bpages?\b|\bpages?\b[^\"]{0,80}(?:limit|exceed)"
)


@dataclass(frozen=True, slots=True)
class WireSeer(ABC):
    """A model behind a wire of HTTP; each wire says how a question is put and what an answer holds."""

    name: str
    model: str
    url: str
    limits: Limits
    http: Http = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    seconds: float = SECONDS

    @abstractmethod
    def put(self, question: Question) -> Json | Refusal:
        """The body that asks this; a refusal where the wire has no place for something of it."""

    @abstractmethod
    def heard(self, answer: Json) -> Answer:
        """What an answer says, and what it cost."""

    @property
    def sent_headers(self) -> Mapping[str, str]:
        return self.headers

    async def ask(self, question: Question) -> Answer | Refusal:
        body = self.put(question)
        if isinstance(body, Refusal):
            return body
        answer = await asked(self.http, self.name, self.url, self.sent_headers, body, self.heard, seconds=self.seconds)
        return answer if isinstance(answer, Refusal) else replace(answer, seer=self.name)

    async def look(self, image: Image, instructions: str, question: str) -> str | Refusal:
        answer = await self.ask(Question(question, (image,), instructions))
        return replace(answer, remedy=_RETRY) if isinstance(answer, Refusal) else answer.text[:_LONGEST].strip()


async def asked(
    http: Http,
    seer: str,
    url: str,
    headers: Mapping[str, str],
    body: Json,
    heard: Callable[[Json], Answer],
    pause: float = _PAUSE,
    seconds: float = SECONDS,
) -> Answer | Refusal:
    """The words of the model. What the provider says of its own troubles never reaches the model that asked."""
    reply = await posted(http, url, headers, body, seconds, pause, unheard=True)
    if isinstance(reply, Refusal):
        return Refusal("unavailable", f"{seer} could not be reached", _AGAIN)
    if reply.status in (400, 413, 422) and _pages.search(reply.body):
        return Refusal("too_large", f"{seer} takes no document with so many pages", "ask about fewer pages")
    if reply.status != 200:
        return Refusal("unavailable", f"{seer} did not answer (status {reply.status})", _AGAIN)
    try:
        answer = heard(orjson.loads(reply.body))
    except orjson.JSONDecodeError:
        answer = Answer("")
    words = unthought(answer.text)
    return replace(answer, text=words) if words else Refusal("unavailable", f"{seer} gave no answer", _AGAIN)


async def posted(
    http: Http,
    url: str,
    headers: Mapping[str, str],
    body: Json,
    seconds: float,
    pause: float = _PAUSE,
    *,
    unheard: bool = False,
) -> Reply | Refusal:
    """One answer, asked for again when the trouble may be of the moment; with `unheard`, also when nothing came."""
    sent = {**headers, "content-type": "application/json", "accept-encoding": "identity"}
    payload = orjson.dumps(body)
    reply = await http.ask("POST", url, sent, payload, seconds)
    again = unheard if isinstance(reply, Refusal) else reply.status in (408, 429) or reply.status >= 500
    if not again:
        return reply
    await asyncio.sleep(_pause(reply, pause))
    return await http.ask("POST", url, sent, payload, seconds)


def _pause(reply: Reply | Refusal, pause: float) -> float:
    named = {} if isinstance(reply, Refusal) else {name.lower(): value for name, value in reply.headers}
    try:
        return min(max(0.0, float(named["retry-after"])), _LONGEST_PAUSE)
    except (KeyError, ValueError):
        return pause


def unthought(text: str) -> str:
    """What the model said, without what it only thought."""
    return _thought.sub("", text).strip()


def in_words(question: Question) -> str:
    """The question's words, and where JSON is wanted the shape of it: for wires that have no surer place for that."""
    if question.schema is None:
        return question.words
    shape = orjson.dumps(question.schema).decode()
    return f"{question.words}\n\nAnswer with JSON alone, nothing before or after it, of this JSON Schema:\n{shape}"


def no_place(seer: str, document: Document) -> Refusal:
    """A kind of file that a wire cannot carry is never left out silently."""
    kind = "a web address of" if document.url else "a file of"
    return Refusal("unsupported_type", f"{seer} takes no {kind} type {document.mime}", "send images of it instead")


def count(tree: Json, *steps: str | int) -> int | None:
    """A number of tokens, if there is one at the end of `steps`."""
    found = at(tree, *steps)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def usage(tree: Json, given: str, made: str, kept: str) -> Usage:
    """The three counts under `usage`, as both wires of OpenAI and most others name them."""
    counts = at(tree, "usage")
    return Usage(count(counts, given), count(counts, made), count(counts, kept, "cached_tokens"))


def total(*counts: int | None) -> int | None:
    known = [each for each in counts if each is not None]
    return sum(known) if known else None
