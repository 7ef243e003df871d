"""Vision models that already run on this machine: what is asked of them goes nowhere else."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

import orjson

from sightline.model.ports import Http, Reply
from sightline.model.refusal import Refusal
from sightline.model.scene import Json
from sightline.wire.jsonsize import parse_bounded

_SECONDS = 1.0
_HEADERS = {"content-type": "application/json"}
_PATIENCE = 5.0  # seconds for a server that somebody has named

# Families of open weights that see, by the names under which they are published.
_sees = re.compile(
    r"(?:^|[-_./])vlm?\d?(?:[-_.]|$)|vision|multimodal|internvl|llava|pixtral|molmo|minicpm-[vo]|smolvlm|idefics"
    r"|paligemma|moondream|kimi-k2[.][56]|kimi-k3|ovis\d|ui-?tars|deepseek-ocr|cogvlm"
    r"|gemma-?3(?!-(?:1b|270m))|gemma-?4|llama-?4|mistral-small-(?:3[.][12]|4)|mistral-large-3|ministral-3"
    r"|qwen-?3[.][5-9]|glm-?4[.](?:1|5|6)v|glm-5[.]3-flash|minimax-m3|-omni",
    re.IGNORECASE,
).search
_answers_no_words = re.compile(r"embed|rerank|reward|guard", re.IGNORECASE).search


@dataclass(frozen=True, slots=True)
class Found:
    server: str
    model: str
    base: str  # of its OpenAI-compatible wire


async def found(http: Http, servers: Mapping[str, str]) -> list[Found]:
    """The models that see, as their server or their name says, in the order of `servers` (name to address)."""
    asks = [SERVERS[name](http, base.removesuffix("/v1")) for name, base in servers.items() if name in SERVERS]
    names = [name for name in servers if name in SERVERS]
    answers = await asyncio.gather(*asks)
    return [Found(name, model, servers[name]) for name, models in zip(names, answers, strict=True) for model in models]


async def _json(http: Http, method: str, url: str, body: Json = None, seconds: float = _SECONDS) -> Json:
    payload = orjson.dumps(body) if body is not None else b""
    return _read(await http.ask(method, url, _HEADERS, payload, seconds))


def _read(reply: Reply | Refusal) -> Json:
    if isinstance(reply, Refusal) or reply.status != 200:
        return None
    try:
        return parse_bounded(reply.body)
    except orjson.JSONDecodeError:
        return None


async def _ollama(http: Http, base: str) -> list[str]:
    listed = await _json(http, "GET", f"{base}/api/tags")
    models = listed.get("models") if isinstance(listed, dict) else None
    seeing = []
    for name in filter(None, map(_local_name, models if isinstance(models, list) else [])):
        shown = await _json(http, "POST", f"{base}/api/show", {"model": name})
        capabilities = shown.get("capabilities") if isinstance(shown, dict) else None
        if isinstance(capabilities, list) and "vision" in capabilities and not _is_passed_on(shown):
            seeing.append(name)
    return seeing


async def runs_here(http: Http, base: str, model: str) -> bool | Refusal | None:
    """Whether a model of Ollama runs on its own machine, whatever its name is; None: it does not say."""
    reply = await http.ask("POST", f"{base}/api/show", _HEADERS, orjson.dumps({"model": model}), _PATIENCE)
    if isinstance(reply, Refusal):
        return reply
    shown = _read(reply)
    return not _is_passed_on(shown) if isinstance(shown, dict) else None


def _local_name(model: Json) -> str:
    """The name of a model that runs here: Ollama also lists those that it passes images on to, elsewhere."""
    match model:
        case {"name": str(name)} if not is_elsewhere(name) and not _is_passed_on(model):
            return name
        case _:
            return ""


def _is_passed_on(model: Json) -> bool:
    """What Ollama says of a model that runs elsewhere."""
    return isinstance(model, dict) and any(model.get(name) for name in ("remote_host", "remote_model"))


def is_elsewhere(model: str) -> bool:
    """A name by which Ollama means a model that runs elsewhere."""
    return model.lower().endswith(("-cloud", ":cloud"))


async def _lmstudio(http: Http, base: str) -> list[str]:
    match await _json(http, "GET", f"{base}/api/v1/models"):
        case {"models": list(models)}:
            return [
                key
                for model in models
                if isinstance(model, dict)
                and isinstance(key := model.get("key"), str)
                and isinstance(can := model.get("capabilities"), dict)
                and can.get("vision") is True
            ]
        case _:
            return []


async def _llamacpp(http: Http, base: str) -> list[str]:
    match await _json(http, "GET", f"{base}/props"):
        case {"modalities": {"vision": True}, **rest}:
            return [str(rest.get("model_alias") or "default")]
        case _:
            return []


async def _vllm(http: Http, base: str) -> list[str]:
    """It does not say which of its models see: their names have to. Others listen on its port, so it must say its."""
    listed = await _json(http, "GET", f"{base}/v1/models")
    models = listed.get("data") if isinstance(listed, dict) else None
    return [name for model in (models if isinstance(models, list) else []) if (name := _seeing_name(model))]


def _seeing_name(model: Json) -> str:
    """The name under which a model is asked, if that or the one of its weights is known to see."""
    match model:
        case {"id": str(name), "owned_by": "vllm", **rest}:
            known = (name, str(rest.get("root") or ""))
            return name if any(_sees(each) and not _answers_no_words(each) for each in known) else ""
        case _:
            return ""


SERVERS: Mapping[str, Callable[[Http, str], Awaitable[list[str]]]] = {
    "ollama": _ollama,
    "lmstudio": _lmstudio,
    "llamacpp": _llamacpp,
    "vllm": _vllm,
}
