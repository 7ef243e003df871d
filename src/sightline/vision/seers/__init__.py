"""One file for each API on which a vision model can be asked. What they have in common is here: `WireSeer`.

It bounds the time, retries once, and turns every failure into a refusal. What differs between APIs is in the
subclasses. Answers are streamed, so that the time limit applies to silence and not to long answers; a server that
answers in one piece, or that rejects streaming, works too.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace

import orjson

from sightline.model.ports import HttpReply, HttpSender
from sightline.model.profile import ImageLimits
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import TRUNCATION_MARK, Attachment, Question, SeerAnswer
from sightline.model.value import value_class
from sightline.profiles.rejections import is_page_limit
from sightline.wire.json_tree import get_at, parse_bounded_json
from sightline.wire.sse import read_event, split_events

EventList = Sequence[Json]

ASK_SECONDS = 60.0
RETRY_LATER = "try again later"
STREAM_END = "[DONE]"  # ends the streams of OpenAI's APIs and of those modelled on them
RETRY_SECONDS = 1.0
_MAX_RETRY_SECONDS = 10.0
_STREAM_FIELDS = ("stream", "stream_options")

# Some servers put the model's reasoning into the answer: complete, cut off in the middle, or without its opening tag.
_reasoning = re.compile(r"\A\s*<think>.*?(?:</think>|\Z)|\A(?:(?!<think>).)*?</think>\s*\n\n", re.DOTALL)


@value_class
class WireSeer(ABC):
    """A vision model behind an HTTP API; a subclass knows how that API takes questions and gives answers."""

    name: str
    model: str
    url: str
    limits: ImageLimits
    http: HttpSender = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    seconds: float = ASK_SECONDS
    display_name: str = ""  # in messages to people; empty: `name`
    retry_seconds: float | None = None  # None: `RETRY_SECONDS`

    @abstractmethod
    def build_body(self, question: Question) -> Json | Refusal:
        """Return the request body, or a refusal if the API can't carry one of the question's documents."""

    @abstractmethod
    def parse_answer(self, answer: Json) -> SeerAnswer:
        """Return the text and the usage of a complete response."""

    @abstractmethod
    def join_events(self, events: EventList) -> Json:
        """Return the events of a stream as one complete response; None: the stream broke off."""

    @property
    def request_headers(self) -> Mapping[str, str]:
        return self.headers

    async def ask(self, question: Question) -> SeerAnswer | Refusal:
        """Return the model's answer. A refusal never repeats what the provider said: the asking model would read it."""
        body = self.build_body(question)
        if isinstance(body, Refusal):
            return body
        reply = await self._post(body)
        if isinstance(reply, HttpReply) and _rejects_stream(reply) and isinstance(body, dict):
            reply = await self._post({name: value for name, value in body.items() if name not in _STREAM_FIELDS})
        answer = self._parse_reply(reply, self.display_name or self.name)
        return answer if isinstance(answer, Refusal) else replace(answer, seer=self.name)

    def _parse_reply(self, reply: HttpReply | Refusal, name: str) -> SeerAnswer | Refusal:
        if isinstance(reply, Refusal):
            return Refusal("unavailable", f"{name} could not be reached", RETRY_LATER)
        if reply.status != 200 and is_page_limit(reply.status, reply.body.decode("utf-8", "replace")):
            # The one failure that the caller can fix, so it gets a refusal of its own.
            return Refusal(
                "too_large", f"{name} does not take a document with that many pages", "ask about fewer pages"
            )
        if reply.status != 200:
            return Refusal("unavailable", f"{name} returned status {reply.status}", RETRY_LATER, reply.status)
        body = self._join_reply(reply.body)
        if body is None:
            return Refusal("unavailable", f"{name} broke off in the middle of its answer", RETRY_LATER)
        answer = self.parse_answer(body)
        text = strip_reasoning(answer.text)
        if not text:
            return Refusal("unavailable", f"{name} gave no answer", RETRY_LATER)
        return replace(answer, text=f"{text}\n{TRUNCATION_MARK}" if answer.is_truncated else text)

    async def _post(self, body: Json) -> HttpReply | Refusal:
        return await post_json(
            self.http,
            self.url,
            self.request_headers,
            body,
            self.seconds,
            self.retry_seconds,
            is_incomplete=lambda text: self._join_reply(text) is None,
        )

    def _join_reply(self, body: bytes) -> Json:
        """Return the response in one piece, streamed or not; None: it broke off. Empty: it has an unknown form."""
        try:
            found = parse_bounded_json(body)
        except orjson.JSONDecodeError:
            found = None
        if isinstance(found, dict) and not is_error_event(found) and found.get("done") is not False:
            return found  # the server doesn't stream
        events = parse_stream(body)
        if not events:
            return {}
        return None if any(map(is_error_event, events)) else self.join_events(events)


async def post_json(
    http: HttpSender,
    url: str,
    headers: Mapping[str, str],
    body: Json,
    seconds: float,
    pause: float | None = None,
    *,
    is_incomplete: Callable[[bytes], bool] | None = None,
) -> HttpReply | Refusal:
    """Post JSON, and once more if the failure may be temporary.

    With `is_incomplete`, failures to connect and incomplete answers are retried too.
    """
    all_headers = {**headers, "content-type": "application/json", "accept-encoding": "identity"}
    payload = orjson.dumps(body)
    reply = await http.ask("POST", url, all_headers, payload, seconds)
    if isinstance(reply, Refusal):
        retry = is_incomplete is not None
    elif reply.status == 200:
        retry = is_incomplete is not None and is_incomplete(reply.body)
    else:
        retry = reply.status in (408, 429) or reply.status >= 500
    if not retry:
        return reply
    await asyncio.sleep(_find_pause(reply, pause))
    return await http.ask("POST", url, all_headers, payload, seconds)


def _rejects_stream(reply: HttpReply) -> bool:
    """Return whether a server rejects streaming, or the fields that ask for it."""
    return reply.status in (400, 422) and b"stream" in reply.body.lower()


def _find_pause(reply: HttpReply | Refusal, pause: float | None) -> float:
    headers = {} if isinstance(reply, Refusal) else {name.lower(): value for name, value in reply.headers}
    try:
        return min(max(0.0, float(headers["retry-after"])), _MAX_RETRY_SECONDS)
    except (KeyError, ValueError):
        return RETRY_SECONDS if pause is None else pause


def parse_stream(body: bytes) -> list[Json]:
    """Return the events of a stream: server-sent events or lines of JSON. Anything else is left out."""
    found = (_parse_data(data) for event in split_events(body) for data in _split_data(event))
    return [each for each in found if each is not None]


def _split_data(event: bytes) -> Iterable[bytes]:
    """Return the data of one event, or each line that is JSON by itself."""
    _, data = read_event(event)
    return [data.strip()] if data else [line for line in event.splitlines() if line.startswith(b"{")]


def _parse_data(data: bytes) -> Json:
    if data == STREAM_END.encode():
        return STREAM_END
    try:
        return parse_bounded_json(data)
    except orjson.JSONDecodeError:
        return None


def is_error_event(event: Json) -> bool:
    """Return whether the provider reports an error in the middle of its answer."""
    return isinstance(event, dict) and (bool(event.get("error")) or event.get("type") == "error")


def find_last(events: EventList, *steps: str | int) -> Json:
    """Return the value at the end of `steps` in the last event that has one."""
    return next((value for event in reversed(events) if (value := get_at(event, *steps)) is not None), None)


def strip_reasoning(text: str) -> str:
    """Return an answer without the reasoning that some servers put in front of it."""
    return _reasoning.sub("", text).strip()


def write_question(question: Question) -> str:
    """Return the question's words, with the JSON schema of the answer if there is one.

    For APIs that have no field for a schema, or whose models don't always follow it.
    """
    if question.schema is None:
        return question.text
    schema = orjson.dumps(question.schema).decode()
    return f"{question.text}\n\nAnswer with JSON alone, nothing before or after it, of this JSON Schema:\n{schema}"


def refuse_document(seer: str, document: Attachment) -> Refusal:
    """Return the refusal for a file that an API can't carry; it must not be left out silently."""
    kind = "web address of a file" if document.url else "file"
    return Refusal("unsupported_type", f"{seer} takes no {kind} of type {document.mime}", "send images of it instead")
