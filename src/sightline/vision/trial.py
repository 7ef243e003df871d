"""A question about one picture as each wire puts it, pasted by a user or brought by a tool; and the answer's words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from random import Random
from typing import Literal

import orjson

from sightline.model.facts import Facts
from sightline.model.fate import Shown
from sightline.model.fence import one_line
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import Http, Reply
from sightline.model.profile import Lesson, Profile, ToolImages, WireName
from sightline.model.refusal import Refusal
from sightline.model.rules import Rules
from sightline.model.scene import Json, Scene
from sightline.passes.label import label
from sightline.pixels.card import CODE_LENGTH, COLOURS, SIZE, Card
from sightline.profiles.rejections import DENIED, sentences
from sightline.profiles.rejections import lesson as rejected
from sightline.vision.seers import chat_completions, gemini, messages, responses
from sightline.vision.seers.wire_seer import posted, unthought
from sightline.wire import WIRES
from sightline.wire.jsonedits import graft
from sightline.wire.shape import Whole

_TOOL = "view_picture"
_ABOUT = "Shows the picture."
_CALL = "call_1"
_HERE = "Here is the picture."
_SCHEMA: Json = {"type": "object", "properties": {}}
_ANTHROPIC_TOKENS = 4096  # the wire wants a number; a model that thinks first needs some
# Google's own word for a call that no model of its has made: without one, newer models refuse the conversation.
_UNSIGNED = "skip_thought_signature_validator"


@dataclass(frozen=True, slots=True)
class Form:
    """One wire's way to ask. A picture of None is the same question about nothing."""

    path: Callable[[str], str]
    pasted: Callable[[str, str, Image | None], Json]
    brought: Callable[[str, str, Image], Json]
    words: Callable[[Json], str]
    headers: Mapping[str, str]


def _chat_image(image: Image) -> Json:
    return {"type": "image_url", "image_url": {"url": image.data_url}}


def _chat_pasted(model: str, words: str, image: Image | None) -> Json:
    said: list[Json] = [{"type": "text", "text": words}]
    content: Json = [*said, _chat_image(image)] if image else words
    return {"model": model, "messages": [{"role": "user", "content": content}]}


def _chat_brought(model: str, words: str, image: Image) -> Json:
    called: Json = {"id": _CALL, "type": "function", "function": {"name": _TOOL, "arguments": "{}"}}
    content: Json = [{"type": "text", "text": _HERE}, _chat_image(image)]
    return {
        "model": model,
        "messages": [
            {"role": "user", "content": words},
            {"role": "assistant", "content": "", "tool_calls": [called]},
            {"role": "tool", "tool_call_id": _CALL, "content": content},
        ],
        "tools": [{"type": "function", "function": {"name": _TOOL, "description": _ABOUT, "parameters": _SCHEMA}}],
    }


def _messages_image(image: Image) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": image.base64}}


def _messages_pasted(model: str, words: str, image: Image | None) -> Json:
    said: Json = {"type": "text", "text": words}
    content: Json = [_messages_image(image), said] if image else [said]
    return {"model": model, "max_tokens": _ANTHROPIC_TOKENS, "messages": [{"role": "user", "content": content}]}


def _messages_brought(model: str, words: str, image: Image) -> Json:
    called: Json = {"type": "tool_use", "id": _CALL, "name": _TOOL, "input": {}}
    content: Json = [{"type": "text", "text": _HERE}, _messages_image(image)]
    result: Json = {"type": "tool_result", "tool_use_id": _CALL, "content": content}
    return {
        "model": model,
        "max_tokens": _ANTHROPIC_TOKENS,
        "messages": [
            {"role": "user", "content": words},
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
        ],
        "tools": [{"name": _TOOL, "description": _ABOUT, "input_schema": _SCHEMA}],
    }


def _responses_pasted(model: str, words: str, image: Image | None) -> Json:
    said: list[Json] = [{"type": "input_text", "text": words}]
    shown: list[Json] = [{"type": "input_image", "image_url": image.data_url}] if image else []
    return {"model": model, "store": False, "input": [{"role": "user", "content": said + shown}]}


def _responses_brought(model: str, words: str, image: Image) -> Json:
    output: Json = [{"type": "input_text", "text": _HERE}, {"type": "input_image", "image_url": image.data_url}]
    return {
        "model": model,
        "store": False,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": words}]},
            {"type": "function_call", "call_id": _CALL, "name": _TOOL, "arguments": "{}"},
            {"type": "function_call_output", "call_id": _CALL, "output": output},
        ],
        "tools": [{"type": "function", "name": _TOOL, "description": _ABOUT, "parameters": _SCHEMA, "strict": False}],
    }


def _gemini_image(image: Image) -> Json:
    return {"inlineData": {"mimeType": image.mime, "data": image.base64}}


def _gemini_pasted(model: str, words: str, image: Image | None) -> Json:
    shown: list[Json] = [_gemini_image(image)] if image else []
    return {"contents": [{"role": "user", "parts": [{"text": words}, *shown]}]}


def _gemini_brought(model: str, words: str, image: Image) -> Json:
    called: Json = {"functionCall": {"id": _CALL, "name": _TOOL, "args": {}}, "thoughtSignature": _UNSIGNED}
    response: Json = {"id": _CALL, "name": _TOOL, "response": {"output": _HERE}, "parts": [_gemini_image(image)]}
    return {
        "contents": [
            {"role": "user", "parts": [{"text": words}]},
            {"role": "model", "parts": [called]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ],
        "tools": [{"functionDeclarations": [{"name": _TOOL, "description": _ABOUT}]}],
    }


FORMS: Mapping[WireName, Form] = {
    "anthropic": Form(
        lambda model: "/v1/messages",
        _messages_pasted,
        _messages_brought,
        messages.words,
        {"anthropic-version": "2023-06-01"},
    ),
    "openai_chat": Form(lambda model: "/v1/chat/completions", _chat_pasted, _chat_brought, chat_completions.words, {}),
    "openai_responses": Form(lambda model: "/v1/responses", _responses_pasted, _responses_brought, responses.words, {}),
    "gemini": Form(
        gemini.path,
        _gemini_pasted,
        _gemini_brought,
        gemini.words,
        {},
    ),
}


Verdict = Literal["sees", "does not see", "refused", "could not tell"]
Place = Literal["user", "tool", "hoisted", "bridged"]

QUESTION = (
    f"Look at the picture. Its quarters have four plain colours, and a code of {CODE_LENGTH} characters stands in its "
    "middle. Answer with one line and nothing else: the colours of the quarters in the order top left, top right, "
    "bottom left, bottom right, and then the code, with spaces between them. "
    f"The colours are among {', '.join(COLOURS)}. If there is no picture, answer: NO PICTURE"
)
SECONDS = 120.0
_LONGEST = 300  # characters of what an upstream has said
_BLIND_DAYS, _DAYS = 7.0, 30.0


@dataclass(frozen=True, slots=True)
class Finding:
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What was found out, place by place; nothing is asked of tools where a pasted picture is not seen."""

    wire: WireName
    findings: Mapping[Place, Finding]

    @property
    def lesson(self) -> Lesson | None:
        seen = {place for place, found in self.findings.items() if found.verdict == "sees"}
        known = self.findings["user"].verdict
        if known == "could not tell":
            return None
        if known != "sees":
            return Lesson(blind=True, why="a probe showed that it does not see")
        placed = next((way for place, way in _WAYS.items() if place in seen), None)
        tools: dict[WireName, ToolImages] = {self.wire: placed} if placed else {}
        return Lesson(blind=False, why="a probe showed that it sees", tool_images=tools)

    @property
    def days(self) -> float:
        """How long that counts: a model that was blind may be taught to see."""
        return _DAYS if self.findings["user"].verdict == "sees" else _BLIND_DAYS


_WAYS: Mapping[Place, ToolImages] = {"tool": "native", "hoisted": "hoist", "bridged": "bridge"}


@dataclass(frozen=True, slots=True)
class Examiner:
    """Asks one model of one endpoint."""

    http: Http
    url: Callable[[str], str]  # of a path
    wire: WireName
    model: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)  # a key that an upstream may repeat and nobody may read
    seconds: float = SECONDS
    random: Random = field(default_factory=Random, repr=False)

    async def examine(self) -> Trial:
        form = FORMS[self.wire]
        user = await self._shown(lambda image: form.pasted(self.model, QUESTION, image), pasted=True)
        findings: dict[Place, Finding] = {"user": user}
        if user.verdict == "sees":
            findings["tool"] = await self._brought("native")
            findings["hoisted"] = await self._brought("hoist")
            if findings["hoisted"].verdict == "refused" and self.wire != "gemini":
                findings["bridged"] = await self._brought("bridge")
        return Trial(self.wire, findings)

    async def _brought(self, way: ToolImages) -> Finding:
        """A picture that a tool brought, where the proxy would put it."""
        form = FORMS[self.wire]
        return await self._shown(
            lambda image: lowered(form.brought(self.model, QUESTION, image), self.wire, self.model, way)
        )

    async def _shown(self, body: Callable[[Image], Json], *, pasted: bool = False) -> Finding:
        card = Card.drawn_by(self.random)
        reply = await self._posted(body(picture(card)))
        if isinstance(reply, Refusal):
            return Finding("could not tell", str(reply))
        if reply.status == 200:
            return judged(card, unthought(FORMS[self.wire].words(_json(reply.body))))
        said = self._said(reply)
        blamed = rejected(reply.status, reply.body.decode("utf-8", "replace"))
        if blamed is None and (reply.status in DENIED or reply.status >= 500):
            return Finding("could not tell", said)
        # A no in words that nobody knows may be about anything: then the same is asked without a picture.
        if pasted and not (blamed and blamed.lesson.blind) and not await self._answers():
            return Finding("could not tell", said)
        return Finding("refused", said)

    async def _answers(self) -> bool:
        reply = await self._posted(FORMS[self.wire].pasted(self.model, "Answer with one word: hello.", None))
        return isinstance(reply, Reply) and reply.status == 200

    async def _posted(self, body: Json) -> Reply | Refusal:
        form = FORMS[self.wire]
        headers = {**form.headers, **self.headers}
        return await posted(self.http, self.url(form.path(self.model)), headers, body, self.seconds)

    def _said(self, reply: Reply) -> str:
        leaves = sentences(reply.body.decode("utf-8", "replace"))
        words = max(leaves, key=lambda leaf: (" " in leaf, len(leaf)), default="")  # not a code or an id
        hidden = words.replace(self.secret, "…") if self.secret else words
        return f"status {reply.status}: {one_line(hidden)[:_LONGEST]}".rstrip(": ")


def picture(card: Card) -> Image:
    data = card.png()
    return Image(hashlib.sha256(data).hexdigest(), "image/png", Size(*SIZE), data)


def lowered(body: Json, wire: WireName, model: str, way: ToolImages) -> Json:
    """A body as the wire's own codec lowers it for an upstream that takes images of tools in this way."""
    codec = next(each for each in WIRES if each.name == wire)
    profile = Profile("", wire, model, tool_images=way)
    scene = codec.read(body, Whole())
    met = replace(scene, sights=tuple(sight.meets(Shown()) for sight in scene.sights))
    labelled = label(met, Facts(), Rules(profile))
    assert isinstance(labelled, Scene)
    return graft(body, codec.lower(labelled, body, profile))


def judged(card: Card, answer: str) -> Finding:
    """Strictly: all four colours in order, and the code; what is only nearly right proves nothing either way."""
    words = [_SAME.get(word, word) for word in re.findall(r"[a-z0-9]+", answer.lower())]
    named = [word for word in words if word in COLOURS]
    codes = [word.upper() for word in [*words, *_spelt(words)] if len(word) == CODE_LENGTH]
    quote = f"it said: {one_line(answer)[:_LONGEST]}" if answer.strip() else "it said nothing"
    # Whoever names all that there is has seen none of it.
    colours = len(named) <= _MOST and any(tuple(named[n : n + 4]) == card.colours for n in range(len(named)))
    if colours and card.code in codes[:_MOST]:
        return Finding("sees", "it named the four colours and read the code")
    hits = [_hits(named[-4:], card.colours), max((_hits(code, card.code) for code in codes), default=0)]
    if hits[0] >= _NEAR[0] or hits[1] >= _NEAR[1]:
        return Finding("could not tell", f"it was nearly right, and {quote}")
    if _NONE.search(answer) or len(named) >= 4:
        return Finding("does not see", quote)
    return Finding("could not tell", quote)


_SAME = {"grey": "gray", "violet": "purple"}
_MOST = 8
_NEAR = (3, 4)  # colours, letters: more than luck gives
_NONE = re.compile(
    r"no (?:picture|image)|(?:not|n't|unable to|cannot) (?:\w+ ){0,2}?(?:see|view|look|receive|access|process)\b"
    r"|(?:not|n't) (?:any |an |the )?(?:image|picture)",
    re.IGNORECASE,
)


def _spelt(words: Sequence[str]) -> Iterator[str]:
    """What was spelt letter by letter, as one word."""
    for single, run in groupby(words, key=lambda word: len(word) == 1):
        if single:
            yield "".join(run)


def _hits(given: Sequence[str], right: Sequence[str]) -> int:
    return sum(a == b for a, b in zip(given, right, strict=False))


def _json(body: bytes) -> Json:
    try:
        answer: Json = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return answer
