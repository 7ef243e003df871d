"""A seer: the request that asks a question, and what becomes of the server's reply."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any, get_args

from sightline.model.geometry import Size
from sightline.model.image import Image
from sightline.model.ports import HttpReply
from sightline.model.profile import Upstream, WireName
from sightline.model.refusal import Refusal
from sightline.model.seer import Question
from sightline.vision.background_loop import run_blocking
from sightline.vision.providers import SEER_TYPES, make_wire_seer

NAMES = tuple(SEER_TYPES)


class Recorder:
    """The port `HttpSender`: keeps the request, and returns the reply of the case."""

    def __init__(self, reply: Any) -> None:
        self.reply = reply
        self.sent: list[Any] = []

    async def ask(self, method: str, url: str, headers: Any, body: bytes, seconds: float) -> HttpReply:
        self.sent.append({"method": method, "url": url, "body": json.loads(body)})
        return HttpReply(self.reply["status"], (), self.reply["body"].encode())


def run(name: str, given: Any) -> Any:
    http = Recorder(given["reply"])
    base = "http://server/v1" if name in ("ollama", "others") else "http://server"
    wires: dict[WireName, str] = dict.fromkeys(get_args(WireName), base)
    seer = make_wire_seer(http, "up/eye", "eye", Upstream("up", wires), _find_wire(name), {})
    asked = given["question"]
    images = tuple(Image("0" * 64, "image/png", Size(1, 1), b64decode(each)) for each in asked.get("images", []))
    question = Question(asked["text"], images, asked.get("instructions", ""), schema=asked.get("schema"))
    answer = run_blocking(seer.ask(question))
    if isinstance(answer, Refusal):
        return {"sent": http.sent, "refusal": answer.code}
    usage = {"input": answer.usage.input, "output": answer.usage.output, "cached": answer.usage.cached}
    return {"sent": http.sent, "text": answer.text, "usage": usage, "truncated": answer.is_truncated}


def _find_wire(name: str) -> Any:
    return next(wire for wire in SEER_TYPES if wire == name)
