"""Ask a vision model over HTTP: bounded in time, tried at most twice, with a refusal that says what went wrong."""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import orjson

from sightline.model.asking import CUT, Answer, Document, Question, Usage
from sightline.model.ports import Http, Reply
from sightline.model.profile import Limits
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.wire.jsonsize import parse_bounded
from sightline.wire.shape import at
from sightline.wire.sse import read_event, split_events

Events = Sequence[Json]
Collect = Callable[[Events], Json]
"""Events as the answer that the wire would have given in one piece; None: it broke off before its end."""

END = "[DONE]"
"""What the wires of OpenAI, and all that look like them, say when nothing more comes."""


def events(body: bytes) -> list[Json]:
    """What a stream says: events as servers send them, or a line of JSON each. What is neither is left out."""
    found = (_payload(data) for event in split_events(body) for data in _data(event))
    return [each for each in found if each is not None]


def _data(event: bytes) -> Iterable[bytes]:
    """Return the data of one event, or each line that is JSON by itself."""
    _, data = read_event(event)
    return [data.strip()] if data else [line for line in event.splitlines() if line.startswith(b"{")]


def _payload(data: bytes) -> Json:
    if data == END.encode():
        return END
    try:
        return parse_bounded(data)
    except orjson.JSONDecodeError:
        return None


def is_broken(event: Json) -> bool:
    """Is it the provider's word that something went wrong on the way?"""
    return isinstance(event, dict) and (bool(event.get("error")) or event.get("type") == "error")


def last(found: Events, *steps: str | int) -> Json:
    """What the last event that says something there says."""
    return next((said for event in reversed(found) if (said := at(event, *steps)) is not None), None)


SECONDS = 60.0
_PAUSE = 1.0
_LONGEST_PAUSE = 10.0
_STREAMED = ("stream", "stream_options")
AGAIN = "ask again in a while"

# Some servers put the model's reasoning into the answer: whole, cut off within it, or without the word that opens it.
_thought = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)|\A(?:(?!<think>).)*?</think>\s*\n\n", re.DOTALL)

# The one trouble of a provider that whoever asked can do something about.
_pages = re.compile(
    rb"(?i)(?:maximum|limit|exceed|too many|more than|at most|up to)[^\"{}]{0,80}\bpages?\b"
    rb"|\bpages?\b[^\"{}]{0,80}(?:limit|exceed|maximum|too many)"
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
    shown: str = ""  # as people read it, where that is not its name

    @abstractmethod
    def put(self, question: Question) -> Json | Refusal:
        """The body that asks this; a refusal where the wire has no place for something of it."""

    @abstractmethod
    def heard(self, answer: Json) -> Answer:
        """What an answer says, and what it cost."""

    @abstractmethod
    def collected(self, events: Events) -> Json:
        """The answer that these events are; None: it broke off."""

    @property
    def sent_headers(self) -> Mapping[str, str]:
        return self.headers

    async def ask(self, question: Question) -> Answer | Refusal:
        body = self.put(question)
        if isinstance(body, Refusal):
            return body
        http, who, seconds = self.http, self.shown or self.name, self.seconds
        answer = await asked(http, who, self.url, self.sent_headers, body, self.heard, self.collected, seconds)
        return answer if isinstance(answer, Refusal) else replace(answer, seer=self.name)


async def asked(
    http: Http,
    seer: str,
    url: str,
    headers: Mapping[str, str],
    body: Json,
    heard: Callable[[Json], Answer],
    collect: Collect,
    seconds: float = SECONDS,
    pause: float = _PAUSE,
) -> Answer | Refusal:
    """The words of the model. What the provider says of its own troubles never reaches the model that asked."""

    async def post(body: Json) -> Reply | Refusal:
        return await posted(http, url, headers, body, seconds, pause, broken=lambda said: _whole(said, collect) is None)

    reply = await post(body)
    if isinstance(reply, Reply) and _is_unstreamed(reply) and isinstance(body, dict):
        reply = await post({name: value for name, value in body.items() if name not in _STREAMED})
    if isinstance(reply, Refusal):
        return Refusal("unavailable", f"{seer} could not be reached", AGAIN)
    if reply.status in (400, 413, 422) and _pages.search(reply.body):
        return Refusal("too_large", f"{seer} takes no document with so many pages", "ask about fewer pages")
    if reply.status != 200:
        return Refusal("unavailable", f"{seer} did not answer (status {reply.status})", AGAIN, reply.status)
    whole = _whole(reply.body, collect)
    if whole is None:
        return Refusal("unavailable", f"{seer} broke off amid its answer", AGAIN)
    answer = heard(whole)
    words = unthought(answer.text)
    if not words:
        return Refusal("unavailable", f"{seer} gave no answer", AGAIN)
    return replace(answer, text=f"{words}\n{CUT}" if answer.cut else words)


def _whole(body: bytes, collect: Collect) -> Json:
    """An answer in one piece, whichever way it came; empty, where it is nothing that anybody knows. None: it broke."""
    try:
        found = parse_bounded(body)
    except orjson.JSONDecodeError:
        found = None
    if isinstance(found, dict) and not is_broken(found) and found.get("done") is not False:
        return found  # not everybody streams who is asked to
    pieces = events(body)
    if not pieces:
        return {}
    return None if any(map(is_broken, pieces)) else collect(pieces)


async def posted(
    http: Http,
    url: str,
    headers: Mapping[str, str],
    body: Json,
    seconds: float,
    pause: float = _PAUSE,
    *,
    broken: Callable[[bytes], bool] | None = None,
) -> Reply | Refusal:
    """One answer, asked for again when the trouble may be of the moment; with `broken`, also when it is not whole."""
    sent = {**headers, "content-type": "application/json", "accept-encoding": "identity"}
    payload = orjson.dumps(body)
    reply = await http.ask("POST", url, sent, payload, seconds)
    if isinstance(reply, Refusal):
        again = broken is not None
    else:
        passing = reply.status in (408, 429) or reply.status >= 500
        again = passing or (broken is not None and reply.status == 200 and broken(reply.body))
    if not again:
        return reply
    await asyncio.sleep(_pause(reply, pause))
    return await http.ask("POST", url, sent, payload, seconds)


def _is_unstreamed(reply: Reply) -> bool:
    """Does it say that it takes no stream, or not these words about one?"""
    return reply.status in (400, 422) and b"stream" in reply.body.lower()


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
    kind = "web address of a file" if document.url else "file"
    return Refusal("unsupported_type", f"{seer} takes no {kind} of type {document.mime}", "send images of it instead")


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
