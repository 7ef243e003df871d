"""Find out whether a model sees images, and where: ask it about a random picture, as each wire carries it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from random import Random
from typing import Literal

import orjson

from sightline.model.facts import Facts, Rules
from sightline.model.fence import to_one_line
from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import HttpReply, HttpSender
from sightline.model.profile import Lesson, Profile, ToolImagePlacement, WireName
from sightline.model.refusal import Refusal
from sightline.model.scene import Json, Scene, Shown
from sightline.passes.show import label
from sightline.pixels.trial_card import CODE_LENGTH, COLOURS, SIZE, TrialCard
from sightline.profiles.rejections import UNRELATED_STATUSES, extract_sentences, parse_rejection
from sightline.vision.seers import gemini, messages, openai, post_json, strip_reasoning
from sightline.wire import WIRES
from sightline.wire.json_edits import graft
from sightline.wire.json_tree import PlainTexts

_TOOL_NAME = "view_picture"
_TOOL_DESCRIPTION = "Shows the picture."
_CALL_ID = "call_1"
_TOOL_TEXT = "Here is the picture."
_SCHEMA: Json = {"type": "object", "properties": {}}
_ANTHROPIC_TOKENS = 4096  # the API requires a number; a model that reasons first needs some
# Google's value for a call that none of its models made: without one, newer models reject the conversation.
_UNSIGNED = "skip_thought_signature_validator"


@dataclass(frozen=True, slots=True)
class ProbeWire:
    """How the question is asked on one wire. Without an image, `build_user_body` asks only the text."""

    build_path: Callable[[str], str]
    build_user_body: Callable[[str, str, Image | None], Json]
    build_tool_body: Callable[[str, str, Image], Json]
    read_text: Callable[[Json], str]
    headers: Mapping[str, str]


def _build_chat_image(image: Image) -> Json:
    return {"type": "image_url", "image_url": {"url": image.data_url}}


def _build_chat_user(model: str, words: str, image: Image | None) -> Json:
    parts: list[Json] = [{"type": "text", "text": words}]
    content: Json = [*parts, _build_chat_image(image)] if image else words
    return {"model": model, "messages": [{"role": "user", "content": content}]}


def _build_chat_tool(model: str, words: str, image: Image) -> Json:
    call: Json = {"id": _CALL_ID, "type": "function", "function": {"name": _TOOL_NAME, "arguments": "{}"}}
    content: Json = [{"type": "text", "text": _TOOL_TEXT}, _build_chat_image(image)]
    return {
        "model": model,
        "messages": [
            {"role": "user", "content": words},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": _CALL_ID, "content": content},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": _TOOL_NAME, "description": _TOOL_DESCRIPTION, "parameters": _SCHEMA},
            }
        ],
    }


def _build_messages_image(image: Image) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": image.mime, "data": image.base64}}


def _build_messages_user(model: str, words: str, image: Image | None) -> Json:
    text: Json = {"type": "text", "text": words}
    content: Json = [_build_messages_image(image), text] if image else [text]
    return {"model": model, "max_tokens": _ANTHROPIC_TOKENS, "messages": [{"role": "user", "content": content}]}


def _build_messages_tool(model: str, words: str, image: Image) -> Json:
    call: Json = {"type": "tool_use", "id": _CALL_ID, "name": _TOOL_NAME, "input": {}}
    content: Json = [{"type": "text", "text": _TOOL_TEXT}, _build_messages_image(image)]
    result: Json = {"type": "tool_result", "tool_use_id": _CALL_ID, "content": content}
    return {
        "model": model,
        "max_tokens": _ANTHROPIC_TOKENS,
        "messages": [
            {"role": "user", "content": words},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
        "tools": [{"name": _TOOL_NAME, "description": _TOOL_DESCRIPTION, "input_schema": _SCHEMA}],
    }


def _build_responses_user(model: str, words: str, image: Image | None) -> Json:
    text: list[Json] = [{"type": "input_text", "text": words}]
    shown: list[Json] = [{"type": "input_image", "image_url": image.data_url}] if image else []
    return {"model": model, "store": False, "input": [{"role": "user", "content": text + shown}]}


def _build_responses_tool(model: str, words: str, image: Image) -> Json:
    output: Json = [{"type": "input_text", "text": _TOOL_TEXT}, {"type": "input_image", "image_url": image.data_url}]
    return {
        "model": model,
        "store": False,
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": words}]},
            {"type": "function_call", "call_id": _CALL_ID, "name": _TOOL_NAME, "arguments": "{}"},
            {"type": "function_call_output", "call_id": _CALL_ID, "output": output},
        ],
        "tools": [
            {
                "type": "function",
                "name": _TOOL_NAME,
                "description": _TOOL_DESCRIPTION,
                "parameters": _SCHEMA,
                "strict": False,
            }
        ],
    }


def _build_gemini_image(image: Image) -> Json:
    return {"inlineData": {"mimeType": image.mime, "data": image.base64}}


def _build_gemini_user(model: str, words: str, image: Image | None) -> Json:
    shown: list[Json] = [_build_gemini_image(image)] if image else []
    return {"contents": [{"role": "user", "parts": [{"text": words}, *shown]}]}


def _build_gemini_tool(model: str, words: str, image: Image) -> Json:
    call: Json = {"functionCall": {"id": _CALL_ID, "name": _TOOL_NAME, "args": {}}, "thoughtSignature": _UNSIGNED}
    response: Json = {
        "id": _CALL_ID,
        "name": _TOOL_NAME,
        "response": {"output": _TOOL_TEXT},
        "parts": [_build_gemini_image(image)],
    }
    return {
        "contents": [
            {"role": "user", "parts": [{"text": words}]},
            {"role": "model", "parts": [call]},
            {"role": "user", "parts": [{"functionResponse": response}]},
        ],
        "tools": [{"functionDeclarations": [{"name": _TOOL_NAME, "description": _TOOL_DESCRIPTION}]}],
    }


PROBE_WIRES: Mapping[WireName, ProbeWire] = {
    "anthropic": ProbeWire(
        lambda model: "/v1/messages",
        _build_messages_user,
        _build_messages_tool,
        messages.read_text,
        {"anthropic-version": "2023-06-01"},
    ),
    "openai_chat": ProbeWire(
        lambda model: "/v1/chat/completions", _build_chat_user, _build_chat_tool, openai.read_chat_text, {}
    ),
    "openai_responses": ProbeWire(
        lambda model: "/v1/responses", _build_responses_user, _build_responses_tool, openai.read_responses_text, {}
    ),
    "gemini": ProbeWire(gemini.build_path, _build_gemini_user, _build_gemini_tool, gemini.read_text, {}),
}


Verdict = Literal["sees", "does not see", "refused", "could not tell"]
ImagePosition = Literal["user", "tool", "hoisted", "bridged"]

PROBE_QUESTION = (
    f"Look at the picture. Its quarters have four plain colours, and a code of {CODE_LENGTH} characters is in its "
    "middle. Answer with one line and nothing else: the colours of the quarters in the order top left, top right, "
    "bottom left, bottom right, and then the code, with spaces between them. "
    f"The colours are among {', '.join(COLOURS)}. If there is no picture, answer: NO PICTURE"
)
PROBE_SECONDS = 120.0
_MAX_QUOTED = 300  # characters of an upstream's message
_BLIND_LESSON_DAYS, _LESSON_DAYS = 7.0, 30.0


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    verdict: Verdict
    why: str


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The findings by position of the image; tool results aren't tried if an image of the user isn't seen."""

    wire: WireName
    findings: Mapping[ImagePosition, ProbeFinding]

    @property
    def lesson(self) -> Lesson | None:
        """What the probe taught about the model; None: nothing."""
        verdict = self.findings["user"].verdict
        if verdict == "could not tell":
            return None
        if verdict != "sees":
            return Lesson(blind=True, why="a probe showed that it does not see")
        seen = {position for position, finding in self.findings.items() if finding.verdict == "sees"}
        placement = next((placement for position, placement in _TOOL_IMAGES.items() if position in seen), None)
        tools: dict[WireName, ToolImagePlacement] = {self.wire: placement} if placement else {}
        return Lesson(blind=False, why="a probe showed that it sees", tool_images=tools)

    @property
    def lesson_days(self) -> float:
        """How long the lesson is valid: a blind model may be replaced by one that sees."""
        return _LESSON_DAYS if self.findings["user"].verdict == "sees" else _BLIND_LESSON_DAYS


_TOOL_IMAGES: Mapping[ImagePosition, ToolImagePlacement] = {"tool": "native", "hoisted": "hoist", "bridged": "bridge"}


@dataclass(frozen=True, slots=True)
class ModelProbe:
    """Asks one model at one endpoint."""

    http: HttpSender
    build_url: Callable[[str], str]  # of a path
    wire: WireName
    model: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    secret: str = field(default="", repr=False)  # a key that the upstream may repeat in an error; it must not be shown
    seconds: float = PROBE_SECONDS
    random: Random = field(default_factory=Random, repr=False)

    async def run(self) -> ProbeResult:
        """Ask the model about one image at each position."""
        wire = PROBE_WIRES[self.wire]
        user = await self._try_image(
            lambda image: wire.build_user_body(self.model, PROBE_QUESTION, image), from_user=True
        )
        findings: dict[ImagePosition, ProbeFinding] = {"user": user}
        if user.verdict == "sees":
            findings["tool"] = await self._try_tool_image("native")
            findings["hoisted"] = await self._try_tool_image("hoist")
            if findings["hoisted"].verdict == "refused" and self.wire != "gemini":
                findings["bridged"] = await self._try_tool_image("bridge")
        return ProbeResult(self.wire, findings)

    async def _try_tool_image(self, placement: ToolImagePlacement) -> ProbeFinding:
        """Try an image in a tool result, placed where the proxy would put it."""

        def build(image: Image) -> Json:
            body = PROBE_WIRES[self.wire].build_tool_body(self.model, PROBE_QUESTION, image)
            return lower_body(body, self.wire, self.model, placement)

        return await self._try_image(build)

    async def _try_image(self, build: Callable[[Image], Json], *, from_user: bool = False) -> ProbeFinding:
        card = TrialCard.from_random(self.random)
        reply = await self._post(build(draw_card(card)))
        if isinstance(reply, Refusal):
            return ProbeFinding("could not tell", str(reply))
        if reply.status == 200:
            return judge_answer(card, strip_reasoning(PROBE_WIRES[self.wire].read_text(_parse_json(reply.body))))
        quote = self._quote_error(reply)
        rejection = parse_rejection(reply.status, reply.body.decode("utf-8", "replace"))
        if rejection is None and (reply.status in UNRELATED_STATUSES or reply.status >= 500):
            return ProbeFinding("could not tell", quote)
        # An unknown error message may be about anything: find out whether the model answers without an image.
        if from_user and not (rejection and rejection.lesson.blind) and not await self._can_answer():
            return ProbeFinding("could not tell", quote)
        return ProbeFinding("refused", quote)

    async def _can_answer(self) -> bool:
        body = PROBE_WIRES[self.wire].build_user_body(self.model, "Answer with one word: hello.", None)
        reply = await self._post(body)
        return isinstance(reply, HttpReply) and reply.status == 200

    async def _post(self, body: Json) -> HttpReply | Refusal:
        wire = PROBE_WIRES[self.wire]
        headers = {**wire.headers, **self.headers}
        return await post_json(self.http, self.build_url(wire.build_path(self.model)), headers, body, self.seconds)

    def _quote_error(self, reply: HttpReply) -> str:
        leaves = extract_sentences(reply.body.decode("utf-8", "replace"))
        words = max(leaves, key=lambda leaf: (" " in leaf, len(leaf)), default="")  # not a code or an id
        hidden = words.replace(self.secret, "…") if self.secret else words
        return f"status {reply.status}: {to_one_line(hidden)[:_MAX_QUOTED]}".rstrip(": ")


def draw_card(card: TrialCard) -> Image:
    data = card.to_png()
    return Image(hashlib.sha256(data).hexdigest(), "image/png", Size(*SIZE), data)


def lower_body(body: Json, wire: WireName, model: str, placement: ToolImagePlacement) -> Json:
    """Return a body as the wire's codec lowers it for an upstream that takes tool images in this place."""
    codec = next(each for each in WIRES if each.name == wire)
    profile = Profile("", wire, model, tool_images=placement)
    scene = codec.read(body, PlainTexts())
    shown = replace(scene, sights=tuple(sight.with_fate(Shown()) for sight in scene.sights))
    labelled = label(shown, Facts(), Rules(profile))
    assert isinstance(labelled, Scene)
    return graft(body, codec.lower(labelled, body, profile))


def judge_answer(card: TrialCard, answer: str) -> ProbeFinding:
    """Judge an answer strictly: all four colours in order, and the code. A near miss proves nothing either way."""
    words = [_SYNONYMS.get(word, word) for word in re.findall(r"[a-z0-9]+", answer.lower())]
    named = [word for word in words if word in COLOURS]
    codes = [word.upper() for word in [*words, *_join_letters(words)] if len(word) == CODE_LENGTH]
    quote = f"it said: {to_one_line(answer)[:_MAX_QUOTED]}" if answer.strip() else "it said nothing"
    # A model that lists all colours has only guessed.
    colours = len(named) <= _MAX_GUESSES and any(tuple(named[n : n + 4]) == card.colours for n in range(len(named)))
    if colours and card.code in codes[:_MAX_GUESSES]:
        return ProbeFinding("sees", "it named the four colours and read the code")
    hits = [
        _count_matches(named[-4:], card.colours),
        max((_count_matches(code, card.code) for code in codes), default=0),
    ]
    if hits[0] >= _NEARLY_RIGHT[0] or hits[1] >= _NEARLY_RIGHT[1]:
        return ProbeFinding("could not tell", f"it was nearly right, and {quote}")
    if _SEES_NOTHING.search(answer) or len(named) >= 4:
        return ProbeFinding("does not see", quote)
    return ProbeFinding("could not tell", quote)


_SYNONYMS = {"grey": "gray", "violet": "purple"}
_MAX_GUESSES = 8
_NEARLY_RIGHT = (3, 4)  # colours, letters: more than luck gives
_SEES_NOTHING = re.compile(
    r"no (?:picture|image)|(?:not|n't|unable to|cannot) (?:\w+ ){0,2}?(?:see|view|look|receive|access|process)\b"
    r"|(?:not|n't) (?:any |an |the )?(?:image|picture)",
    re.IGNORECASE,
)


def _join_letters(words: Sequence[str]) -> Iterator[str]:
    """Yield words that were spelt letter by letter."""
    for single, run in groupby(words, key=lambda word: len(word) == 1):
        if single:
            yield "".join(run)


def _count_matches(given: Sequence[str], right: Sequence[str]) -> int:
    return sum(a == b for a, b in zip(given, right, strict=False))


def _parse_json(body: bytes) -> Json:
    try:
        answer: Json = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return answer
