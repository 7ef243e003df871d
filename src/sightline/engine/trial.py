"""Does an endpoint really see? It is shown pictures that nobody can guess, and believed only what it reads in them.

Each question has a picture of its own, drawn at random: an answer that was learnt from one place is wrong in the next.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from random import Random
from typing import Literal

import orjson

from sightline.engine.forms import FORMS
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
from sightline.seers.asking import posted, unthought
from sightline.wire import WIRES
from sightline.wire.jsonedits import graft
from sightline.wire.shape import Whole

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
