"""Model servers on this machine: the search for vision models in them, and the seer for Ollama's own API.

Ollama can pass requests on to its cloud, for models under any name. Before the first question to a model, its server is
asked whether the model runs there: images must not leave the machine without the user's consent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import field

import orjson

from sightline.model.ports import HttpReply, HttpSender
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.model.seer import Question, SeerAnswer, Usage
from sightline.model.value import value_class
from sightline.vision.capabilities import parse_listing
from sightline.vision.seers import (
    RETRY_LATER,
    EventList,
    WireSeer,
    refuse_document,
    write_question,
)
from sightline.wire.answer_usage import read_count
from sightline.wire.json_tree import get_at, get_text, parse_bounded_json

OLLAMA_PATH = "/api/chat"

_SEARCH_SECONDS = 1.0
_HEADERS = {"content-type": "application/json"}
_SHOW_SECONDS = 5.0  # more than for a search: the user named this server

# Families of open-weight vision models, by the names under which they are published.
_SEES = (
    r"(?i)(?:^|[-_./])vlm?\d?(?:[-_.]|$)|vision|multimodal|internvl|llava|pixtral|molmo|minicpm-[vo]|smolvlm|idefics"
    r"|paligemma|moondream|kimi-k2[.][56]|kimi-k3|ovis\d|ui-?tars|deepseek-ocr|cogvlm"
    r"|gemma-?3(?!-(?:1b|270m))|gemma-?4|llama-?4|mistral-small-(?:3[.][12]|4)|mistral-large-3|ministral-3"
    r"|qwen-?3[.][5-9]|glm-?4[.](?:1|5|6)v|glm-5[.]3-flash|minimax-m3|-omni"
)
_WRITES_NO_TEXT = "(?i)embed|rerank|reward|guard"


@value_class
class LoopbackModel:
    server: str
    model: str
    base: str  # of its OpenAI-compatible API


async def search_servers(http: HttpSender, servers: Mapping[str, str]) -> list[LoopbackModel]:
    """Return the vision models of servers, in the order of `servers`, a mapping from names to addresses."""
    names = [name for name in servers if name in LOOPBACK_SERVERS]
    searches = (LOOPBACK_SERVERS[name](http, servers[name].removesuffix("/v1")) for name in names)
    found = zip(names, await asyncio.gather(*searches), strict=True)
    return [LoopbackModel(name, model, servers[name]) for name, models in found for model in models]


async def _request_json(http: HttpSender, method: str, url: str, body: Json = None) -> Json:
    payload = orjson.dumps(body) if body is not None else b""
    return _parse_reply(await http.ask(method, url, _HEADERS, payload, _SEARCH_SECONDS))


def _parse_reply(reply: HttpReply | Refusal) -> Json:
    if isinstance(reply, Refusal) or reply.status != 200:
        return None
    try:
        return parse_bounded_json(reply.body)
    except orjson.JSONDecodeError:
        return None


async def _list_ollama(http: HttpSender, base: str) -> list[str]:
    listed = await _request_json(http, "GET", f"{base}/api/tags")
    models = listed.get("models") if isinstance(listed, dict) else None
    found = list[str]()
    for name in filter(None, map(_get_local_name, models if isinstance(models, list) else [])):
        details = await _request_json(http, "POST", f"{base}/api/show", {"model": name})
        found += [] if _is_remote(details) else _list_seeing(details, name)
    return found


async def runs_here(http: HttpSender, base: str, model: str) -> bool | Refusal | None:
    """Return whether a model of Ollama runs on the server's own machine; None: the server doesn't say."""
    reply = await http.ask("POST", f"{base}/api/show", _HEADERS, orjson.dumps({"model": model}), _SHOW_SECONDS)
    if isinstance(reply, Refusal):
        return reply
    details = _parse_reply(reply)
    return not _is_remote(details) if isinstance(details, dict) else None


def _get_local_name(model: Json) -> str:
    """Return the name of a model that runs on this machine; empty for the cloud models that Ollama lists too."""
    match model:
        case {"name": str(name)} if not is_cloud_name(name) and not _is_remote(model):
            return name
        case _:
            return ""


def _is_remote(model: Json) -> bool:
    """Return whether Ollama says that a model runs elsewhere."""
    return isinstance(model, dict) and any(model.get(name) for name in ("remote_host", "remote_model"))


def is_cloud_name(model: str) -> bool:
    """Return whether a name is one that Ollama uses for its cloud models."""
    return model.lower().endswith(("-cloud", ":cloud"))


async def _list_lmstudio(http: HttpSender, base: str) -> list[str]:
    return _list_seeing(await _request_json(http, "GET", f"{base}/api/v1/models"))


async def _list_llamacpp(http: HttpSender, base: str) -> list[str]:
    """Return the only model of llama.cpp, if it sees."""
    answer = await _request_json(http, "GET", f"{base}/props")
    return _list_seeing(answer, str(get_at(answer, "model_alias") or "default"))


def _list_seeing(answer: Json, model: str = "") -> list[str]:
    return [name for name, takes in parse_listing(answer, model).items() if takes.get("vision")]


async def _list_vllm(http: HttpSender, base: str) -> list[str]:
    """Return the vision models of vLLM by their names, since it doesn't say which of them see.

    Other servers use the same port, so the models must also be marked as vLLM's.
    """
    listed = await _request_json(http, "GET", f"{base}/v1/models")
    models = listed.get("data") if isinstance(listed, dict) else None
    return [name for model in (models if isinstance(models, list) else []) if (name := _get_vision_name(model))]


def _get_vision_name(model: Json) -> str:
    """Return the name of a model if it, or the name of its weights, is that of a vision model; else nothing."""
    match model:
        case {"id": str(name), "owned_by": "vllm", **rest}:
            names = (name, str(rest.get("root") or ""))
            return (
                name if any(re.search(_SEES, each) and not re.search(_WRITES_NO_TEXT, each) for each in names) else ""
            )
        case _:
            return ""


LOOPBACK_SERVERS: Mapping[str, Callable[[HttpSender, str], Awaitable[list[str]]]] = {
    "ollama": _list_ollama,
    "lmstudio": _list_lmstudio,
    "llamacpp": _list_llamacpp,
    "vllm": _list_vllm,
}


@value_class
class OllamaSeer(WireSeer):
    """A model of Ollama, asked through Ollama's own API."""

    consent_refusal: Refusal | None = None  # returned if the model runs elsewhere; None: the user has agreed to that
    local_models: set[str] = field(default_factory=set, repr=False, compare=False)  # known to run on the server itself

    async def ask(self, question: Question) -> SeerAnswer | Refusal:
        return await self.find_obstacle() or await WireSeer.ask(self, question)

    async def find_obstacle(self) -> Refusal | None:
        """Return why the model may not be used. The server knows where the model runs; its name doesn't say."""
        if self.consent_refusal is None or self.model in self.local_models:
            return None
        address = self.url.removesuffix(OLLAMA_PATH)
        is_local = await runs_here(self.http, address, self.model)
        if isinstance(is_local, Refusal):
            what = f"{self.name} could not be asked: nothing answers at {address}"
            return Refusal("unavailable", what, "run: ollama serve")
        if is_local is None:
            return Refusal("unavailable", f"{self.name} does not say where it runs", RETRY_LATER)
        if not is_local:
            return self.consent_refusal
        self.local_models.add(self.model)
        return None

    def build_body(self, question: Question) -> Json | Refusal:
        if question.attachments:
            return refuse_document(self.name, question.attachments[0])
        system: list[Json] = [{"role": "system", "content": question.instructions}] if question.instructions else []
        message: dict[str, Json] = {"role": "user", "content": write_question(question)}
        if question.images:
            message["images"] = [image.base64 for image in question.images]
        body: dict[str, Json] = {"model": self.model, "messages": [*system, message], "stream": True}
        if question.max_tokens is not None:
            body["options"] = {"num_predict": question.max_tokens}
        if question.schema is not None:
            body["format"] = question.schema
        return body

    def parse_answer(self, answer: Json) -> SeerAnswer:
        usage = Usage(read_count(answer, "prompt_eval_count"), read_count(answer, "eval_count"))
        return SeerAnswer(read_ollama_text(answer), usage, is_truncated=get_at(answer, "done_reason") == "length")

    def join_events(self, events: EventList) -> Json:
        end = events[-1]
        if not isinstance(end, dict) or end.get("done") is not True:
            return None
        return {**end, "message": {"content": "".join(map(read_ollama_text, events))}}


def read_ollama_text(answer: Json) -> str:
    """Return the text of a response; the model's reasoning is in another field."""
    return get_text(get_at(answer, "message"), "content")
